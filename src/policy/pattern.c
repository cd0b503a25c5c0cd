/* SPDX-License-Identifier: MIT */
/*
 * Names of tenants that are patterns, such as job-%j: whether one is valid, which conditions its
 * match lines need, and the name of the tenant that it makes for a process.
 */
#include "policy/pattern.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "base/translation.h"
#include "policy/keys.h"

enum {
	VALUE_ROOM = 24,      /* that a name has at least for each placeholder */
	HASH_TEXT = 9,	      /* "-" and eight digits */
	CONTAINER_ID = 64,    /* digits by which engines call a container, */
	CONTAINER_DIGITS = 12 /* and how many of them they show */
};

#define HEX_DIGITS "0123456789abcdef"

/* What may stand behind a '%'. */
struct placeholder {
	char letter;
	int condition; /* that a match line must have, so that there is a value; -1: none */
	const char *example; /* a match line that gives it a value */
	const char *(*value)(const struct policy_facts *facts, char ret_text[POD_SIZE]);
};

static const char *value_user(const struct policy_facts *facts, char ret_text[POD_SIZE])
{
	snprintf(ret_text, POD_SIZE, "%u", (unsigned)facts->subject->uid);
	return ret_text;
}

static const char *value_job(const struct policy_facts *facts, char ret_text[POD_SIZE])
{
	return facts->job;
}

static const char *value_container(const struct policy_facts *facts, char ret_text[POD_SIZE])
{
	return facts->container;
}

static const char *value_namespace(const struct policy_facts *facts, char ret_text[POD_SIZE])
{
	return facts->namespace;
}

/* NAMESPACE.NAME: pods of the same name in two namespaces are two. A namespace has no dot. */
static const char *value_pod(const struct policy_facts *facts, char ret_text[POD_SIZE])
{
	char *slash;

	snprintf(ret_text, POD_SIZE, "%s", facts->pod);
	slash = strchr(ret_text, '/');
	if (slash)
		*slash = '.';
	return ret_text;
}

static const struct placeholder placeholders[] = {
	{ 'u', -1, "uid=1000-1999", value_user },
	{ 'j', POLICY_CONDITION_NUMBER_job, "job=*", value_job },
	{ 'c', POLICY_CONDITION_NUMBER_container, "container=*", value_container },
	{ 'n', POLICY_CONDITION_NUMBER_namespace, "namespace=*", value_namespace },
	{ 'p', POLICY_CONDITION_NUMBER_pod, "pod=*", value_pod },
};

enum { PLACEHOLDERS = sizeof(placeholders) / sizeof(placeholders[0]) };

static const struct placeholder *placeholder_find(char letter)
{
	for (unsigned i = 0; i < PLACEHOLDERS; i++)
		if (placeholders[i].letter == letter)
			return &placeholders[i];
	return NULL;
}

/* The placeholder that stands next in a name; *ret_rest is what stands behind it. */
static const struct placeholder *placeholder_next(const char *name, const char **ret_rest)
{
	const char *mark = strchr(name, '%');

	if (!mark || !mark[1])
		return NULL;
	*ret_rest = mark + 2;
	return placeholder_find(mark[1]);
}

bool policy_name_is_pattern(const char *name)
{
	return strchr(name, '%') != NULL;
}

static unsigned placeholders_count(const char *name)
{
	unsigned count = 0;

	for (; *name; name++)
		count += *name == '%';
	return count;
}

const char *policy_pattern_mistake(const char *name)
{
	static const char too_long[] =
		N_("too long: expected at most two placeholders, and besides them at most 39 "
		   "characters with one, 15 with two");
	unsigned count = placeholders_count(name);
	char fixed[NAME_SIZE];
	size_t used = 0;

	_Static_assert(NAME_SIZE - 1 - VALUE_ROOM == 39 && NAME_SIZE - 1 - 2 * VALUE_ROOM == 15,
		       "as the sentence says");
	if (strlen(name) >= NAME_SIZE)
		return too_long;
	for (const char *at = name; *at; at++) {
		if (*at != '%')
			fixed[used++] = *at;
		else if (!placeholder_find(*++at))
			/* xgettext:no-c-format */
			return N_("unknown placeholder: expected %u (user), %j (job), %c "
				  "(container), %n (namespace) or %p (pod) after the beginning of "
				  "the name, such as job-%j");
	}
	fixed[used] = '\0';
	if (name[0] == '%' || !policy_name_is_valid(fixed))
		/* xgettext:no-c-format */
		return N_("expected a name that begins with a character of a name and contains %u, "
			  "%j, %c, %n or %p, such as job-%j");
	return used + count * VALUE_ROOM < NAME_SIZE ? NULL : too_long;
}

const char *policy_pattern_example(const char *name)
{
	const struct placeholder *placeholder = placeholder_next(name, &name);

	return placeholder ? placeholder->example : "uid=1000";
}

bool policy_pattern_fits(const char *pattern, const char *name)
{
	char text[NAME_SIZE];
	size_t used = 0;

	if (!policy_name_is_pattern(pattern))
		return false;
	for (; *pattern && used + 1 < sizeof(text); pattern++) {
		text[used++] = *pattern == '%' ? '*' : *pattern;
		pattern += *pattern == '%';
	}
	text[used] = '\0';
	return fnmatch(text, name, FNM_NOESCAPE) == 0;
}

int policy_pattern_check_rule(const struct policy_source *source, const char *name,
			      const struct policy_rule *rule)
{
	const struct placeholder *placeholder;

	while ((placeholder = placeholder_next(name, &name))) {
		if (placeholder->condition < 0 ||
		    policy_condition_get(&policy_conditions[placeholder->condition], rule))
			continue;
		return policy_fail(source, -EINVAL,
				   "match: missing condition %s=: expected in each match line of a "
				   "pattern whose name contains %%%c",
				   policy_conditions[placeholder->condition].name,
				   placeholder->letter);
	}
	return 0;
}

/* ---- the name for a process */

/* FNV-1a */
static uint32_t text_hash(const char *text)
{
	uint32_t hash = 2166136261u;

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 16777619u;
	return hash;
}

/* The value if it is a name and fits; otherwise what can be shown of it, and a hash of all of it,
 * so that different values do not become one name. */
static void value_write(const char *value, char *ret_text, size_t room)
{
	static const char characters[] = POLICY_NAME_CHARACTERS;
	size_t length = strlen(value);

	if (strspn(value, characters) == length && length <= room) {
		strcpy(ret_text, value);
		return;
	}
	if (length == CONTAINER_ID && strspn(value, HEX_DIGITS) == length) {
		snprintf(ret_text, room + 1, "%.*s", CONTAINER_DIGITS, value);
		return;
	}
	if (length > room - HASH_TEXT)
		length = room - HASH_TEXT;
	for (size_t i = 0; i < length; i++)
		ret_text[i] = strchr(characters, value[i]) ? value[i] : '_';
	snprintf(ret_text + length, HASH_TEXT + 1, "-%08x", text_hash(value));
}

void policy_pattern_expand(const char *name, const struct policy_facts *facts,
			   char ret_name[NAME_SIZE])
{
	unsigned count = placeholders_count(name);
	size_t fixed = strlen(name) - 2 * count, used = 0;
	size_t room = (NAME_SIZE - 1 - fixed) / (count ? count : 1);
	const struct placeholder *placeholder;
	char text[POD_SIZE];

	for (; *name; name++) {
		if (*name != '%') {
			ret_name[used++] = *name;
			continue;
		}
		/* The reader accepts no other one. */
		placeholder = placeholder_find(*++name);
		if (!placeholder)
			break;
		value_write(placeholder->value(facts, text), ret_name + used, room);
		used += strlen(ret_name + used);
	}
	ret_name[used] = '\0';
}
