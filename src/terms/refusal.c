/* SPDX-License-Identifier: MIT */
/* The words of a refusal; see refusal.h. */
#include "terms/refusal.h"

#include <inttypes.h>
#include <stdio.h>

#include "terms/terms.h"

const char *refusal_text(const struct refusal_words *words, char ret_text[REFUSAL_TEXT])
{
	char limit[24] = "-";

	if (words->limit != UNLIMITED)
		snprintf(limit, sizeof(limit), "%" PRIu64, words->limit);
	snprintf(ret_text, REFUSAL_TEXT,
		 "%s used %" PRIu64 "/%s, wanted %" PRIu64 " more, limit of the %s%s", words->kind,
		 words->used, limit, words->wanted, words->scope, words->own ? " (its own)" : "");
	return ret_text;
}
