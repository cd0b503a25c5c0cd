/* SPDX-License-Identifier: MIT */
/* The text of /etc/ld.so.preload; see preload_list.h. */
#include "cli/preload_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/library.h"
#include "output/memory.h"

static const char separators[] = " \t\r\n:";

static bool word_is_library(const char *word, size_t length)
{
	const size_t own = strlen(LIBRARY_FILE);

	return length >= own && !strncmp(word + length - own, LIBRARY_FILE, own) &&
	       (length == own || word[length - own - 1] == '/');
}

/* Copies a line, with its end, and leaves the library out. Returns where the copy ends. */
static char *preload_line_copy(const char *line, size_t length, char *to)
{
	const char *at = line, *end = line + length, *comment = memchr(line, '#', length);
	char *begin = to;
	bool found = false, others = false;

	while (at < end) {
		size_t blank = strspn(at, separators), word;

		if (blank > (size_t)(end - at))
			blank = (size_t)(end - at);
		memcpy(to, at, blank);
		to += blank;
		at += blank;
		if (at == comment) {
			others = true;
			word = (size_t)(end - at);
		} else {
			word = strcspn(at, " \t\r\n:#");
			if (word > (size_t)(end - at))
				word = (size_t)(end - at);
			if (word && word_is_library(at, word)) {
				found = true;
				at += word;
				/* With the separators that follow; the line's end stays. */
				at += strspn(at, " \t:");
				continue;
			}
			others |= word > 0;
		}
		memcpy(to, at, word);
		to += word;
		at += word;
	}
	return found && !others ? begin : to;
}

char *preload_list_without(const char *text)
{
	char *copy = memory_need(malloc(strlen(text) + 1)), *to = copy;

	while (*text) {
		const char *end = strchrnul(text, '\n');
		size_t length = (size_t)(end - text) + (*end == '\n');

		to = preload_line_copy(text, length, to);
		text += length;
	}
	*to = '\0';
	return copy;
}

char *preload_list_with(const char *text, const char *path)
{
	char *others = preload_list_without(text), *all;
	size_t length = strlen(others);

	if (asprintf(&all, "%s%s%s\n", others, length && others[length - 1] != '\n' ? "\n" : "", path) <
	    0)
		memory_need(NULL);
	free(others);
	return all;
}
