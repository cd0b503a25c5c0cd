/* SPDX-License-Identifier: MIT */
/* The types of values; see values.h. Which key has which type is said in keys.def. */
#include "policy/values.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>

#include "base/translation.h"
#include "policy/conditions.h"
#include "policy/keys.h"
#include "policy/pattern.h"
#include "policy/problem.h"

static int value_fail(const struct policy_source *source, const struct policy_key *key,
		      const char *text)
{
	return policy_fail(source, -EINVAL, "%s: invalid value " POLICY_WORD ": expected %s",
			   key->name, text, _(key->type->expected));
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
	.expected = N_("enforce, warn or audit"),
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
	.expected = N_("on or off"),
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
			   name, result == -ERANGE ? _("too large a value") : _("invalid value"), text,
			   bytes ? _("a size in bytes, also with K, M, G or T behind it,") :
				   _("a count"));
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
	.by_port = true,
	.expected = N_("a count or unlimited; for kinds of bytes a size, also with K, M, G or T"),
	.unset = &(const uint64_t){ UNSET },
	.parse = amount_parse,
	.print = amount_print,
};

/* A guarantee is a part of a limit, so that "unlimited" is none. */
static int guarantee_parse(const struct policy_source *source, const struct policy_key *key,
			   const struct policy_place *place, const char *text, void *ret_value)
{
	union policy_value value;
	char name[POLICY_KEY_NAME];
	int result = amount_parse(source, key, place, text, &value);

	if (result < 0)
		return result;
	if (value.amount == UNLIMITED) {
		policy_key_print(key, place, name);
		return policy_fail(source, -EINVAL,
				   "%s: invalid value " POLICY_WORD ": expected an amount", name,
				   text);
	}
	*(uint64_t *)ret_value = value.amount;
	return 0;
}

const struct policy_type policy_type_guarantees = {
	.shape = POLICY_PER_KIND,
	.expected = N_("a count; for kinds of bytes a size, also with K, M, G or T"),
	.unset = &(const uint64_t){ UNSET },
	.parse = guarantee_parse,
	.print = amount_print,
};

/* ---- small numbers */

/* Digits only, then END. */
static bool small_number_parse(const char *text, const char *end, uint32_t least, uint32_t most,
			       uint32_t *ret_number)
{
	size_t digits = strspn(text, "0123456789");
	unsigned long number = digits && digits <= 9 ? strtoul(text, NULL, 10) : 0;

	if (!digits || digits > 9 || strcmp(text + digits, end) || number < least || number > most)
		return false;
	*ret_number = (uint32_t)number;
	return true;
}

static int percent_parse(const struct policy_source *source, const struct policy_key *key,
			 const struct policy_place *place, const char *text, void *ret_value)
{
	return small_number_parse(text, "%", 0, 100, ret_value) ? 0 : value_fail(source, key, text);
}

static void percent_print(FILE *file, const void *value)
{
	fprintf(file, "%" PRIu32 "%%", *(const uint32_t *)value);
}

const struct policy_type policy_type_percent = {
	/* xgettext:no-c-format */
	.expected = N_("0% to 100%"),
	.unset = &(const uint32_t){ UINT32_MAX },
	.parse = percent_parse,
	.print = percent_print,
};

static int weight_parse(const struct policy_source *source, const struct policy_key *key,
			const struct policy_place *place, const char *text, void *ret_value)
{
	return small_number_parse(text, "", 1, POLICY_WEIGHT_MOST, ret_value) ?
		       0 :
		       value_fail(source, key, text);
}

static void weight_print(FILE *file, const void *value)
{
	fprintf(file, "%" PRIu32, *(const uint32_t *)value);
}

const struct policy_type policy_type_weight = {
	.expected = N_("a whole number, 1 to 10000"),
	.unset = &(const uint32_t){ 0 },
	.parse = weight_parse,
	.print = weight_print,
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
	.expected = N_("a path that begins with /"),
	.unset = &no_text,
	.parse = path_parse,
	.print = text_print,
};

static int tenant_parse(const struct policy_source *source, const struct policy_key *key,
			const struct policy_place *place, const char *text, void *ret_value)
{
	if (!policy_name_is_valid(text) &&
	    (!policy_name_is_pattern(text) || policy_pattern_mistake(text)))
		return value_fail(source, key, text);
	return text_parse(source, key, text, ret_value, key->size);
}

const struct policy_type policy_type_tenant = {
	.expected = N_("the name of a tenant or of a pattern"),
	.unset = &no_text,
	.parse = tenant_parse,
	.print = text_print,
};

/* No longer than the kernel takes it. */
_Static_assert(POLICY_SOCKET == sizeof(((struct sockaddr_un *)0)->sun_path), "paths of sockets");

const struct policy_type policy_type_socket_path = {
	.expected = N_("a path that begins with /, of at most 107 bytes"),
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
	.expected = N_("a group of this host"),
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
	.expected = N_("names of devices with blanks between; * stands for any characters, ? for one"),
	.unset = &no_text,
	.parse = patterns_parse,
	.print = text_print,
};

/* ---- rates of control verbs */

static int rate_value_parse(const struct policy_source *source, const struct policy_key *key,
			    const struct policy_place *place, const char *text, void *ret_value)
{
	return rate_parse(text, ret_value) < 0 ? value_fail(source, key, text) : 0;
}

static void rate_value_print(FILE *file, const void *value)
{
	char text[RATE_TEXT];

	rate_print(value, text);
	fputs(text, file);
}

const struct policy_type policy_type_rate = {
	.family = "CLASS",
	.expected = N_("N/s or N/s burst N, each from 1 to 1000000, or unlimited"),
	.unset = &(const struct rate){ UINT32_MAX, 0 },
	.parse = rate_value_parse,
	.print = rate_value_print,
};

static int rate_action_parse(const struct policy_source *source, const struct policy_key *key,
			     const struct policy_place *place, const char *text, void *ret_value)
{
	int action = word_parse(text, rate_action_names, RATE_ACTIONS);

	if (action == RATE_ACTIONS)
		return value_fail(source, key, text);
	*(enum rate_action *)ret_value = (enum rate_action)action;
	return 0;
}

static void rate_action_print(FILE *file, const void *value)
{
	fputs(rate_action_names[*(const enum rate_action *)value], file);
}

const struct policy_type policy_type_rate_action = {
	.expected = N_("throttle or deny"),
	.unset = &(const enum rate_action){ RATE_ACTIONS },
	.parse = rate_action_parse,
	.print = rate_action_print,
};

static int delay_parse(const struct policy_source *source, const struct policy_key *key,
		       const struct policy_place *place, const char *text, void *ret_value)
{
	return rate_delay_parse(text, ret_value) < 0 ? value_fail(source, key, text) : 0;
}

static void delay_print(FILE *file, const void *value)
{
	char text[RATE_TEXT];

	rate_delay_print(*(const uint64_t *)value, text);
	fputs(text, file);
}

const struct policy_type policy_type_delay = {
	.expected = N_("a time such as 100ms, 2s or 500us, of at most 60s"),
	.unset = &(const uint64_t){ UINT64_MAX },
	.parse = delay_parse,
	.print = delay_print,
};

/* ---- classes of service: a value, a range, or keep */

static bool class_number_parse(const char **text, unsigned most, unsigned *ret_number)
{
	int base = !strncmp(*text, "0x", 2) || !strncmp(*text, "0X", 2) ? 16 : 10;
	const char *digits = *text + (base == 16 ? 2 : 0);
	char *end;
	unsigned long number;

	if (!isxdigit((unsigned char)*digits)) /* nor a sign or a blank */
		return false;
	number = strtoul(digits, &end, base);
	if (end == digits || number > most)
		return false;
	*text = end;
	*ret_number = (unsigned)number;
	return true;
}

static int class_parse(const struct policy_source *source, const struct policy_key *key,
		       const char *text, unsigned most, uint32_t *ret_class)
{
	const char *at = text;
	unsigned first, last;

	if (!strcasecmp(text, "keep")) {
		*ret_class = CLASS_KEEP;
		return 0;
	}
	if (!class_number_parse(&at, most, &first))
		return value_fail(source, key, text);
	last = first;
	if (*at == '-') {
		at++;
		if (!class_number_parse(&at, most, &last))
			return value_fail(source, key, text);
	}
	if (*at || last < first)
		return value_fail(source, key, text);
	*ret_class = class_make(first, last);
	return 0;
}

static int traffic_class_parse(const struct policy_source *source, const struct policy_key *key,
			       const struct policy_place *place, const char *text, void *ret_value)
{
	return class_parse(source, key, text, TRAFFIC_CLASS_MAX, ret_value);
}

static int service_level_parse(const struct policy_source *source, const struct policy_key *key,
			       const struct policy_place *place, const char *text, void *ret_value)
{
	return class_parse(source, key, text, SERVICE_LEVEL_MAX, ret_value);
}

static void traffic_class_print(FILE *file, const void *value)
{
	char text[CLASS_TEXT];

	fputs(class_text(*(const uint32_t *)value, true, text), file);
}

static void service_level_print(FILE *file, const void *value)
{
	char text[CLASS_TEXT];

	fputs(class_text(*(const uint32_t *)value, false, text), file);
}

#define CLASS_UNSET UINT32_MAX

const struct policy_type policy_type_traffic_class = {
	.expected = N_("keep, a number from 0 to 0xff, or a range such as 0x20-0x3f"),
	.unset = &(const uint32_t){ CLASS_UNSET },
	.parse = traffic_class_parse,
	.print = traffic_class_print,
};

const struct policy_type policy_type_service_level = {
	.expected = N_("keep, a number from 0 to 15, or a range such as 0-3"),
	.unset = &(const uint32_t){ CLASS_UNSET },
	.parse = service_level_parse,
	.print = service_level_print,
};

/* ---- rates: so many a second, of bytes or of something else */

static int pace_value_parse(const struct policy_source *source, const struct policy_key *key,
			    const struct policy_place *place, const char *text, void *ret_value)
{
	bool bytes = key->type == &policy_type_byte_rate;

	return pace_rate_parse(text, strlen(text), bytes, ret_value) < 0 ? value_fail(source, key, text) :
								      0;
}

static void pace_value_print(FILE *file, const void *value)
{
	char text[PACE_RATE_TEXT];

	pace_rate_print(value, text);
	fputs(text, file);
}

const struct policy_type policy_type_post_rate = {
	.expected = N_("a number with /s behind it, such as 100/s or 100/s burst 20, or unlimited"),
	.unset = &(const struct pace_rate){ .per_second = 0 },
	.parse = pace_value_parse,
	.print = pace_value_print,
};

const struct policy_type policy_type_byte_rate = {
	.expected = N_("a size with /s behind it, such as 5MB/s or 5MB/s burst 64K, or unlimited"),
	.unset = &(const struct pace_rate){ .per_second = 0 },
	.parse = pace_value_parse,
	.print = pace_value_print,
};

/* Nanoseconds. */
static int pace_delay_parse(const struct policy_source *source, const struct policy_key *key,
		       const struct policy_place *place, const char *text, void *ret_value)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = { { "us", 1000 }, { "ms", 1000000 }, { "s", 1000000000 } };
	size_t digits = strspn(text, "0123456789");
	uint64_t number, unit = 0;

	for (unsigned i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (!strcmp(text + digits, units[i].name))
			unit = units[i].ns;
	if (!unit || size_parse(text, digits, 1, false, &number) < 0 || number > (1ull << 40) ||
	    number * unit > 3600000000000ull)
		return value_fail(source, key, text);
	*(uint64_t *)ret_value = number * unit;
	return 0;
}

static void pace_delay_print(FILE *file, const void *value)
{
	uint64_t ns = *(const uint64_t *)value;

	if (ns % 1000000000 == 0)
		fprintf(file, "%" PRIu64 "s", ns / 1000000000);
	else if (ns % 1000000 == 0)
		fprintf(file, "%" PRIu64 "ms", ns / 1000000);
	else
		fprintf(file, "%" PRIu64 "us", ns / 1000);
}

const struct policy_type policy_type_pace_delay = {
	.expected = N_("a time of at most an hour, such as 500us, 20ms or 10s"),
	.unset = &(const uint64_t){ UNSET },
	.parse = pace_delay_parse,
	.print = pace_delay_print,
};

static int priority_parse(const struct policy_source *source, const struct policy_key *key,
			  const struct policy_place *place, const char *text, void *ret_value)
{
	int priority = word_parse(text, policy_priority_names, PRIORITY_UNSET);

	if (priority == PRIORITY_UNSET)
		return value_fail(source, key, text);
	*(enum policy_priority *)ret_value = (enum policy_priority)priority;
	return 0;
}

static void priority_print(FILE *file, const void *value)
{
	fputs(policy_priority_names[*(const enum policy_priority *)value], file);
}

const struct policy_type policy_type_priority = {
	.expected = N_("latency, normal or bulk"),
	.unset = &(const enum policy_priority){ PRIORITY_UNSET },
	.parse = priority_parse,
	.print = priority_print,
};

/* ---- rules: read and written as lines, see conditions.h and when.h */

const struct policy_type policy_type_rule = {
	.shape = POLICY_LINES,
	.expected = N_("conditions CONDITION=VALUE with blanks between"),
};

const struct policy_type policy_type_when = {
	.shape = POLICY_LINES,
	.expected = N_("CONDITION : SECTION.KEY = VALUE"),
};
