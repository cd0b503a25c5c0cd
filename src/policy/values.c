/* SPDX-License-Identifier: MIT */
/* The types of values; see values.h. Which key has which type is said in keys.def. */
#include "policy/values.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>

#include "policy/conditions.h"
#include "policy/keys.h"
#include "policy/problem.h"

static int value_fail(const struct policy_source *source, const struct policy_key *key,
		      const char *text)
{
	return policy_fail(source, -EINVAL, "%s: invalid value " POLICY_WORD ": expected %s",
			   key->name, text, key->type->expected);
}

/* ---- words: the number of the one that stands there */

static int word_parse(const char *text, const char *const *words, int count)
{
	int number = 0;

	while (number < count && strcasecmp(text, words[number]))
		number++;
	return number;
}

static int mode_parse(const struct policy_source *source, const struct policy_key *key,
		      const struct policy_place *place, const char *text, void *ret_value)
{
	int mode = word_parse(text, mode_names, MODE_UNSET);

	if (mode == MODE_UNSET)
		return value_fail(source, key, text);
	*(enum mode *)ret_value = (enum mode)mode;
	return 0;
}

static void mode_print(FILE *file, const void *value)
{
	fputs(mode_names[*(const enum mode *)value], file);
}

const struct policy_type policy_type_mode = {
	.expected = "enforce, warn or audit",
	.unset = &(const enum mode){ MODE_UNSET },
	.parse = mode_parse,
	.print = mode_print,
};

static int switch_parse(const struct policy_source *source, const struct policy_key *key,
			const struct policy_place *place, const char *text, void *ret_value)
{
	int position = word_parse(text, policy_switch_names, SWITCH_UNSET);

	if (position == SWITCH_UNSET)
		return value_fail(source, key, text);
	*(enum policy_switch *)ret_value = (enum policy_switch)position;
	return 0;
}

static void switch_print(FILE *file, const void *value)
{
	fputs(policy_switch_names[*(const enum policy_switch *)value], file);
}

const struct policy_type policy_type_switch = {
	.expected = "on or off",
	.unset = &(const enum policy_switch){ SWITCH_UNSET },
	.parse = switch_parse,
	.print = switch_print,
};

/* ---- amounts of a kind: counts, or sizes where the kind is bytes */

static int amount_parse(const struct policy_source *source, const struct policy_key *key,
			const struct policy_place *place, const char *text, void *ret_value)
{
	bool bytes = kind_rows[place->kind].unit == UNIT_BYTES;
	int result = kind_amount_parse(place->kind, text, strlen(text), ret_value);
	char name[POLICY_KEY_NAME];

	if (result == 0)
		return 0;
	policy_key_print(key, place, name);
	return policy_fail(source, -EINVAL, "%s: %s " POLICY_WORD ": expected %s or unlimited",
			   name, result == -ERANGE ? "too large a value" : "invalid value", text,
			   bytes ? "a size in bytes, also with K, M, G or T behind it," :
				   "a count");
}

static void amount_print(FILE *file, const void *value)
{
	uint64_t amount = *(const uint64_t *)value;

	if (amount == UNLIMITED)
		fputs("unlimited", file);
	else
		fprintf(file, "%" PRIu64, amount);
}

const struct policy_type policy_type_amounts = {
	.shape = POLICY_PER_KIND,
	.expected = "a count or unlimited; for kinds of bytes a size, also with K, M, G or T",
	.unset = &(const uint64_t){ UNSET },
	.parse = amount_parse,
	.print = amount_print,
};

/* ---- texts */

static const union policy_value no_text;

static int text_parse(const struct policy_source *source, const struct policy_key *key,
		      const char *text, char *ret_text, size_t size)
{
	if (strlen(text) >= size)
		return policy_fail(source, -EINVAL,
				   "%s: value too long: expected at most %zu bytes", key->name,
				   size - 1);
	strcpy(ret_text, text);
	return 0;
}

static int path_parse(const struct policy_source *source, const struct policy_key *key,
		      const struct policy_place *place, const char *text, void *ret_value)
{
	if (text[0] != '/')
		return value_fail(source, key, text);
	return text_parse(source, key, text, ret_value, key->size);
}

static void text_print(FILE *file, const void *value)
{
	fputs(value, file);
}

const struct policy_type policy_type_path = {
	.expected = "a path that begins with /",
	.unset = &no_text,
	.parse = path_parse,
	.print = text_print,
};

/* No longer than the kernel takes it. */
_Static_assert(POLICY_SOCKET == sizeof(((struct sockaddr_un *)0)->sun_path), "paths of sockets");

const struct policy_type policy_type_socket_path = {
	.expected = "a path that begins with /, of at most 107 bytes",
	.unset = &no_text,
	.parse = path_parse,
	.print = text_print,
};

static int group_parse(const struct policy_source *source, const struct policy_key *key,
		       const struct policy_place *place, const char *text, void *ret_value)
{
	struct policy_group *group = ret_value;
	int result = policy_group_resolve(source, key->name, text, &group->gid);

	return result < 0 ? result :
			    text_parse(source, key, text, group->name, sizeof(group->name));
}

static void group_print(FILE *file, const void *value)
{
	fputs(((const struct policy_group *)value)->name, file);
}

const struct policy_type policy_type_group = {
	.expected = "a group of this host",
	.unset = &no_text,
	.parse = group_parse,
	.print = group_print,
};

/* Names of devices: what a device can be called, and * and ?. One blank between two. */
static int patterns_parse(const struct policy_source *source, const struct policy_key *key,
			  const struct policy_place *place, const char *text, void *ret_value)
{
	static const char characters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-*?";
	char names[SETTINGS_DEVICES] = "";
	size_t end = 0, length;

	while (*(text += strspn(text, " \t"))) {
		length = strcspn(text, " \t");
		if (length >= NAME_SIZE || strspn(text, characters) < length)
			return value_fail(source, key, text);
		if (end + 1 + length >= sizeof(names))
			return policy_fail(source, -EINVAL,
					   "%s: value too long: expected at most %zu bytes",
					   key->name, sizeof(names) - 1);
		end += (size_t)sprintf(names + end, "%s%.*s", end ? " " : "", (int)length, text);
		text += length;
	}
	strcpy(ret_value, names);
	return 0;
}

const struct policy_type policy_type_patterns = {
	.expected = "names of devices with blanks between; * stands for any characters, ? for one",
	.unset = &no_text,
	.parse = patterns_parse,
	.print = text_print,
};

/* ---- rules: read and written as lines, see conditions.h and when.h */

const struct policy_type policy_type_rule = {
	.shape = POLICY_LINES,
	.expected = "conditions CONDITION=VALUE with blanks between",
};

const struct policy_type policy_type_when = {
	.shape = POLICY_LINES,
	.expected = "CONDITION : SECTION.KEY = VALUE",
};
