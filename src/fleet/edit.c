/* SPDX-License-Identifier: MIT */
/* Changes of a policy's text; see edit.h. What the lines mean is checked by others. */
#include "fleet/edit.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "output/memory.h"

#define SIGNATURE "# changed by "
#define BLANKS_OF_TEXT " \t\r"

struct text_line {
	const char *begin;
	size_t length; /* without the newline */
};

static bool text_line_next(const char **rest, struct text_line *ret_line)
{
	const char *begin = *rest;

	if (!*begin)
		return false;
	*ret_line = (struct text_line){ begin, strcspn(begin, "\n") };
	*rest = begin + ret_line->length + (begin[ret_line->length] == '\n');
	return true;
}

/* Compares words, however many blanks are around them: the line up to a byte, and a text. */
static bool words_are_same(const char *at, const char *end, const char *text)
{
	for (;;) {
		while (at < end && strchr(BLANKS_OF_TEXT, *at))
			at++;
		text += strspn(text, BLANKS_OF_TEXT);
		if (at == end || !*text)
			return at == end && !*text;
		while (at < end && *text && !strchr(BLANKS_OF_TEXT, *at))
			if (*at++ != *text++)
				return false;
		if (*text && !strchr(BLANKS_OF_TEXT, *text))
			return false;
	}
}

static const char *line_start(const struct text_line *line)
{
	const char *at = line->begin, *end = at + line->length;

	while (at < end && strchr(BLANKS_OF_TEXT, *at))
		at++;
	return at;
}

/* Whether it is the title of a section, and of that one. */
static bool line_is_title(const struct text_line *line, const char *section, bool *ret_same)
{
	const char *at = line_start(line), *end = line->begin + line->length, *close;

	if (at == end || *at != '[')
		return false;
	close = memchr(at, ']', (size_t)(end - at));
	*ret_same = close && words_are_same(at + 1, close, section);
	return true;
}

static bool line_sets(const struct text_line *line, const char *key)
{
	const char *at = line_start(line), *end = line->begin + line->length;
	const char *equal = memchr(at, '=', (size_t)(end - at));

	return equal && *at != '#' && *at != ';' && words_are_same(at, equal, key);
}

/* Whether the text has the section, and the key in it. */
static void text_look(const char *text, const char *section, const char *key, bool *ret_section,
		      bool *ret_key)
{
	struct text_line line;
	bool inside = false;

	*ret_section = *ret_key = false;
	while (text_line_next(&text, &line)) {
		if (!line_is_title(&line, section, &inside))
			*ret_key |= inside && line_sets(&line, key);
		*ret_section |= inside;
	}
}

char *fleet_text_set(const char *text, const char *section, const char *key, const char *value)
{
	bool has_section, has_key, inside = false, done = false;
	struct text_line line;
	char *result = NULL;
	size_t size;
	FILE *file = memory_need(open_memstream(&result, &size));

	text_look(text, section, key, &has_section, &has_key);
	while (text_line_next(&text, &line)) {
		bool is_title = line_is_title(&line, section, &inside);

		if (!is_title && inside && line_sets(&line, key)) {
			if (value && !done)
				fprintf(file, "%s = %s\n", key, value);
			done = true;
			continue;
		}
		fprintf(file, "%.*s\n", (int)line.length, line.begin);
		if (is_title && inside && !has_key && value && !done) {
			fprintf(file, "%s = %s\n", key, value);
			done = true;
		}
	}
	if (!has_section && value)
		fprintf(file, "\n[%s]\n%s = %s\n", section, key, value);
	fclose(file);
	return memory_need(result);
}

char *fleet_text_sign(const char *text, const char *author, const char *what)
{
	time_t now = time(NULL);
	struct tm tm;
	char when[32], *result = NULL;

	gmtime_r(&now, &tm);
	strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
	if (!strncmp(text, SIGNATURE, sizeof(SIGNATURE) - 1)) {
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
	if (asprintf(&result, SIGNATURE "%s at %s: %.120s\n%s", author, when, what, text) < 0)
		result = NULL;
	return memory_need(result);
}

void fleet_text_signature(const char *text, char ret_signature[256])
{
	ret_signature[0] = '\0';
	if (!strncmp(text, SIGNATURE, sizeof(SIGNATURE) - 1)) {
		text += sizeof(SIGNATURE) - 1;
		snprintf(ret_signature, 256, "%.*s", (int)strcspn(text, "\n"), text);
	}
}
