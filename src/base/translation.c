/* SPDX-License-Identifier: MIT */
/* The way of every text to its translation; see translation.h. Calls no gettext by itself, so
 * that the library does not contain it. */
#include "base/translation.h"

#include <stddef.h>

static char *(*find_text)(const char *text);

void translation_use(char *(*find)(const char *text))
{
	find_text = find;
}

const char *translated(const char *text)
{
	/* For gettext the empty text is the head of the catalog. */
	return find_text && *text ? find_text(text) : text;
}
