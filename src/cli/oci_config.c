/* SPDX-License-Identifier: MIT */
/*
 * Finding one place in a JSON text; see oci_config.h. An engine wrote the text, and a runtime reads it
 * after us, so what is passed over is not checked.
 */
#include "cli/oci_config.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/memory.h"

#define BLANKS " \t\r\n"
#define PRELOAD "LD_PRELOAD="

/* What stands between the quotation marks of a string. */
struct raw {
	const char *text;
	size_t length;
};

static bool raw_is(struct raw raw, const char *text)
{
	return raw.length == strlen(text) && !memcmp(raw.text, text, raw.length);
}

/* Behind the sign, if it is what comes next. */
static bool sign_take(const char **at, char sign)
{
	*at += strspn(*at, BLANKS);
	if (**at != sign)
		return false;
	++*at;
	return true;
}

static bool string_take(const char **at, struct raw *ret_raw)
{
	if (!sign_take(at, '"'))
		return false;
	ret_raw->text = *at;
	while (**at && **at != '"')
		*at += **at == '\\' && (*at)[1] ? 2 : 1;
	ret_raw->length = (size_t)(*at - ret_raw->text);
	return sign_take(at, '"');
}

/* Behind a value of any sort. */
static bool value_pass(const char **at)
{
	unsigned depth = 0;
	struct raw raw;

	do {
		*at += strspn(*at, BLANKS);
		if (**at == '"') {
			if (!string_take(at, &raw))
				return false;
			continue;
		}
		if (!**at || (!depth && strchr("]},:", **at)))
			return false;
		if (strchr("{[", **at)) {
			depth++;
			++*at;
		} else if (strchr("]}", **at)) {
			depth--;
			++*at;
		} else if (strchr(",:", **at)) {
			++*at;
		} else {
			*at += strcspn(*at, "\"{}[],:" BLANKS);
		}
	} while (depth);
	return true;
}

/* The value of a member of the object that begins there; NULL if the object has no such member. */
static const char *member_find(const char *object, const char *name)
{
	const char *at = object;
	struct raw found;

	if (!at || !sign_take(&at, '{'))
		return NULL;
	while (string_take(&at, &found) && sign_take(&at, ':')) {
		if (raw_is(found, name))
			return at + strspn(at, BLANKS);
		if (!value_pass(&at) || !sign_take(&at, ','))
			break;
	}
	return NULL;
}

/* The next value of an array, from its beginning on; false behind the last one. */
static bool element_next(const char **at, bool first)
{
	if (!sign_take(at, first ? '[' : ','))
		return false;
	*at += strspn(*at, BLANKS);
	return **at != ']';
}

static bool config_has_mount(const char *config, const char *destination)
{
	const char *at = member_find(config, "mounts");

	for (bool first = true; at && element_next(&at, first); first = false) {
		const char *value = member_find(at, "destination");
		struct raw raw;

		if (value && string_take(&value, &raw) && raw_is(raw, destination))
			return true;
		if (!value_pass(&at))
			break;
	}
	return false;
}

/* Whether a list of libraries has this one, and not only one whose path is longer. */
static bool raw_names(struct raw raw, const char *library)
{
	const char *end = raw.text + raw.length;

	for (const char *at = raw.text; at < end; at++) {
		struct raw name = { at, 0 };

		while (at < end && *at != ':' && *at != ' ')
			at++;
		name.length = (size_t)(at - name.text);
		if (raw_is(name, library))
			return true;
	}
	return false;
}

/* The strings of the environment. */
struct environment {
	const char *begin;   /* behind the bracket; NULL: the configuration has no environment */
	bool empty;
	struct raw preload; /* the value of LD_PRELOAD; text NULL: it is not set */
};

static struct environment environment_find(const char *array)
{
	struct environment found = { .begin = NULL };
	const char *at = array;

	if (!at || *at != '[')
		return found;
	found.begin = at + 1;
	found.empty = true;
	for (bool first = true; element_next(&at, first); first = false) {
		struct raw raw;

		found.empty = false;
		if (!string_take(&at, &raw))
			break;
		/* The last one counts: a runtime sets them in this order. */
		if (raw.length >= strlen(PRELOAD) && !memcmp(raw.text, PRELOAD, strlen(PRELOAD)))
			found.preload = (struct raw){ raw.text + strlen(PRELOAD),
						      raw.length - strlen(PRELOAD) };
	}
	return found;
}

/* A copy of the text with something put in. */
static char *text_with(const char *text, const char *place, const char *format, const char *library,
		       const char *end)
{
	char *added = NULL, *whole = NULL;

	if (asprintf(&added, format, library, end) < 0 ||
	    asprintf(&whole, "%.*s%s%s", (int)(place - text), text, added, place) < 0)
		memory_need(NULL);
	free(added);
	return whole;
}

int oci_config_preload(const char *config, const char *library, char **ret_text)
{
	const char *process = member_find(config, "process"), *end = config, *inside;
	struct environment environment;

	if (config[strspn(config, BLANKS)] != '{' || !value_pass(&end) || end[strspn(end, BLANKS)])
		return -EINVAL;
	if (!process || *process != '{' || !config_has_mount(config, library))
		return 0;
	inside = process + 1;
	environment = environment_find(member_find(process, "env"));
	if (environment.preload.text && raw_names(environment.preload, library))
		return 0;
	if (environment.preload.text)
		*ret_text = text_with(config, environment.preload.text, "%s%s", library,
				      environment.preload.length ? ":" : "");
	else if (environment.begin)
		*ret_text = text_with(config, environment.begin, "\"" PRELOAD "%s\"%s", library,
				      environment.empty ? "" : ",");
	else if (!member_find(process, "env"))
		*ret_text = text_with(config, inside, "\"env\":[\"" PRELOAD "%s\"]%s", library,
				      inside[strspn(inside, BLANKS)] == '}' ? "" : ",");
	else
		return 0;
	return 1;
}
