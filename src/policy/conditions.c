/* SPDX-License-Identifier: MIT */
/*
 * The conditions of match lines as text: the types of their values, and the table;
 * see conditions.h. Whether a process meets one is known to match.c.
 */
#include "policy/conditions.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <string.h>

#include "base/translation.h"
#include "policy/accounts.h"
#include "policy/problem.h"

#define DIGITS "0123456789"
#define PATTERN_SIGNS "*?["

/* ---- names of users and groups */

static int id_resolve(const struct policy_source *source, const char *what,
		      enum policy_account which, const char *name, uint32_t *ret_id)
{
	const char *who = which == POLICY_USER ? _("user") : _("group");
	int result = policy_account_number(which, name, ret_id);

	if (result == 0)
		return 0;
	if (result == -ENOENT)
		return policy_fail(source, -EINVAL,
				   "%s: unknown %s " POLICY_WORD ": expected a %s of this host",
				   what, who, name, who);
	return policy_fail(source, result, "%s: cannot look up the %s " POLICY_WORD ": %s", what,
			   who, name, strerror(-result));
}

int policy_group_resolve(const struct policy_source *source, const char *what, const char *name,
			 uint32_t *ret_id)
{
	return id_resolve(source, what, POLICY_GROUP, name, ret_id);
}

/* ---- ids: numbers, ranges, names */

static int id_parse(const char *text, size_t length, uint32_t *ret_id)
{
	uint64_t number;

	/* The last one is what the kernel says for "no id". */
	if (size_parse(text, length, 1, false, &number) < 0 || number >= UINT32_MAX)
		return -EINVAL;
	*ret_id = (uint32_t)number;
	return 0;
}

static int id_range_parse(const char *text, struct policy_range *ret_range)
{
	const char *dash = strchrnul(text, '-');

	if (id_parse(text, (size_t)(dash - text), &ret_range->first) < 0)
		return -EINVAL;
	ret_range->last = ret_range->first;
	if (*dash && id_parse(dash + 1, strlen(dash + 1), &ret_range->last) < 0)
		return -EINVAL;
	return ret_range->first <= ret_range->last ? 0 : -EINVAL;
}

static int ids_parse(const struct policy_source *source, const struct policy_condition *condition,
		     char *text, enum policy_account which, struct policy_ids *ids)
{
	struct policy_range range = { 0, 0 };
	char *entry;
	int result;

	while ((entry = strsep(&text, ","))) {
		if (ids->count == POLICY_IDS)
			return policy_fail(source, -EINVAL,
					   "%s: more than %d entries: expected ranges such as "
					   "1000-1099, or another match line",
					   condition->name, POLICY_IDS);
		if (entry[strspn(entry, DIGITS "-")] == '\0') {
			if (id_range_parse(entry, &range) < 0)
				return policy_fail(source, -EINVAL,
						   "%s: invalid value " POLICY_WORD ": expected %s",
						   condition->name, entry,
						   _(condition->type->expected));
		} else if (entry[strcspn(entry, PATTERN_SIGNS)]) {
			return policy_fail(source, -EINVAL,
					   "%s: invalid value " POLICY_WORD
					   ": patterns are not possible here: expected %s; for all "
					   "of them: 0-4294967294",
					   condition->name, entry, _(condition->type->expected));
		} else {
			result = id_resolve(source, condition->name, which, entry, &range.first);
			if (result < 0)
				return result;
			range.last = range.first;
		}
		ids->range[ids->count++] = range;
	}
	return 0;
}

static int users_parse(const struct policy_source *source, const struct policy_condition *condition,
		       char *text, void *ret_field)
{
	return ids_parse(source, condition, text, POLICY_USER, ret_field);
}

static int groups_parse(const struct policy_source *source,
			const struct policy_condition *condition, char *text, void *ret_field)
{
	return ids_parse(source, condition, text, POLICY_GROUP, ret_field);
}

static void ids_print(FILE *file, const void *field)
{
	const struct policy_ids *ids = field;

	for (unsigned i = 0; i < ids->count; i++) {
		fprintf(file, "%s%" PRIu32, i ? "," : "", ids->range[i].first);
		if (ids->range[i].last != ids->range[i].first)
			fprintf(file, "-%" PRIu32, ids->range[i].last);
	}
}

static bool ids_are_set(const void *field)
{
	return ((const struct policy_ids *)field)->count > 0;
}

static bool ids_are_same(const void *a, const void *b)
{
	const struct policy_ids *one = a, *other = b;

	return one->count == other->count &&
	       !memcmp(one->range, other->range, one->count * sizeof(one->range[0]));
}

/* Ranges may be next to each other, and overlap. */
static bool range_is_covered(const struct policy_ids *wide, const struct policy_range *range)
{
	uint64_t next = range->first;
	bool moved = true;

	while (moved && next <= range->last) {
		moved = false;
		for (unsigned i = 0; i < wide->count; i++)
			if (wide->range[i].first <= next && next <= wide->range[i].last) {
				next = (uint64_t)wide->range[i].last + 1;
				moved = true;
			}
	}
	return next > range->last;
}

static bool ids_cover(const void *wide, const void *narrow)
{
	const struct policy_ids *ids = narrow;

	for (unsigned i = 0; i < ids->count; i++)
		if (!range_is_covered(wide, &ids->range[i]))
			return false;
	return true;
}

/* ---- patterns */

static int pattern_parse(const struct policy_source *source,
			 const struct policy_condition *condition, char *text, void *ret_field)
{
	if (strlen(text) >= condition->size)
		return policy_fail(source, -EINVAL,
				   "%s: value too long: expected at most %zu bytes",
				   condition->name, condition->size - 1);
	if (!*text)
		return policy_fail(source, -EINVAL,
				   "%s: missing value: expected a pattern; * stands for any",
				   condition->name);
	strcpy(ret_field, text);
	return 0;
}

static int path_pattern_parse(const struct policy_source *source,
			      const struct policy_condition *condition, char *text, void *ret_field)
{
	if (*text && !strchr("/*?[", text[0]))
		return policy_fail(source, -EINVAL,
				   "%s: invalid value " POLICY_WORD ": expected %s",
				   condition->name, text, _(condition->type->expected));
	return pattern_parse(source, condition, text, ret_field);
}

/* "*" fits every pod; another pattern without a slash would fit none, or more than it says. */
static int pod_pattern_parse(const struct policy_source *source,
			     const struct policy_condition *condition, char *text, void *ret_field)
{
	if (*text && strcmp(text, "*") && !strchr(text, '/'))
		return policy_fail(source, -EINVAL,
				   "%s: invalid value " POLICY_WORD ": expected %s",
				   condition->name, text, _(condition->type->expected));
	return pattern_parse(source, condition, text, ret_field);
}

static void pattern_print(FILE *file, const void *field)
{
	fputs(field, file);
}

static bool pattern_is_set(const void *field)
{
	return *(const char *)field != '\0';
}

static bool pattern_is_same(const void *a, const void *b)
{
	return !strcmp(a, b);
}

/* Only what can be proven: the same pattern, a name that fits, or "TEXT*" before "TEXT...". */
static bool pattern_covers(const void *wide, const void *narrow)
{
	const char *pattern = wide, *text = narrow;
	size_t head = strcspn(pattern, PATTERN_SIGNS);

	if (!strcmp(pattern, text))
		return true;
	if (!strcmp(pattern + head, "*") && strcspn(text, PATTERN_SIGNS) >= head)
		return !strncmp(pattern, text, head);
	return !strpbrk(text, PATTERN_SIGNS) && fnmatch(pattern, text, FNM_NOESCAPE) == 0;
}

/* ---- the tables */

#define IDS_EXPECTED "a number below 4294967295, a range such as 1000-1099, or the name of a "

static const struct policy_condition_type type_users = {
	.expected = N_(IDS_EXPECTED "user"),
	.parse = users_parse,
	.print = ids_print,
	.is_set = ids_are_set,
	.is_same = ids_are_same,
	.covers = ids_cover,
};

static const struct policy_condition_type type_groups = {
	.expected = N_(IDS_EXPECTED "group"),
	.parse = groups_parse,
	.print = ids_print,
	.is_set = ids_are_set,
	.is_same = ids_are_same,
	.covers = ids_cover,
};

static const struct policy_condition_type type_path = {
	.expected = N_("a pattern of paths that begin with /"),
	.parse = path_pattern_parse,
	.print = pattern_print,
	.is_set = pattern_is_set,
	.is_same = pattern_is_same,
	.covers = pattern_covers,
};

static const struct policy_condition_type type_label = {
	.expected = N_("a pattern"),
	.parse = pattern_parse,
	.print = pattern_print,
	.is_set = pattern_is_set,
	.is_same = pattern_is_same,
	.covers = pattern_covers,
};
#define type_short_label type_label

static const struct policy_condition_type type_pod = {
	.expected = N_("NAMESPACE/NAME, in which patterns are possible, such as team-a/web-*"),
	.parse = pod_pattern_parse,
	.print = pattern_print,
	.is_set = pattern_is_set,
	.is_same = pattern_is_same,
	.covers = pattern_covers,
};

const struct policy_condition policy_conditions[POLICY_CONDITIONS] = {
#define CONDITION(name, type, in_kernel, help)                                                     \
	{ #name,                                                                                   \
	  &type_##type,                                                                            \
	  in_kernel,                                                                               \
	  help,                                                                                    \
	  offsetof(struct policy_rule, name),                                                      \
	  sizeof(((struct policy_rule *)0)->name),                                                 \
	  policy_meets_##name },
#include "policy/conditions.def"
#undef CONDITION
};

const void *policy_condition_get(const struct policy_condition *condition,
				 const struct policy_rule *rule)
{
	const void *field = (const char *)rule + condition->offset;

	return condition->type->is_set(field) ? field : NULL;
}

static const struct policy_condition *condition_find(const char *name)
{
	for (int i = 0; i < POLICY_CONDITIONS; i++)
		if (!strcmp(policy_conditions[i].name, name))
			return &policy_conditions[i];
	return NULL;
}

static const char *conditions_place(const struct policy_source *source)
{
	return source->what ? source->what : "match";
}

static int condition_fail(const struct policy_source *source, const char *name)
{
	char names[256] = "", word[NAME_SIZE];

	for (unsigned i = 0; i < POLICY_CONDITIONS; i++) {
		snprintf(word, sizeof(word), "%s=", policy_conditions[i].name);
		policy_list_add(names, sizeof(names), i, POLICY_CONDITIONS, word);
	}
	return policy_fail(source, -EINVAL,
			   "%s: unknown condition " POLICY_WORD
			   ": expected %s, each followed by its value without blanks",
			   conditions_place(source), name, names);
}

int policy_condition_parse(const struct policy_source *source, char *text, struct policy_rule *rule)
{
	char *value = strchr(text, '=');
	const struct policy_condition *condition;

	if (value)
		*value++ = '\0';
	condition = condition_find(text);
	if (!condition || !value)
		return condition_fail(source, text);
	if (policy_condition_get(condition, rule))
		return policy_fail(source, -EINVAL,
				   "%s: repeated condition %s=: expected once",
				   conditions_place(source), condition->name);
	return condition->type->parse(source, condition, value, (char *)rule + condition->offset);
}

bool policy_rule_is_same(const struct policy_rule *a, const struct policy_rule *b)
{
	if (a->first != b->first)
		return false;
	for (int i = 0; i < POLICY_CONDITIONS; i++) {
		size_t offset = policy_conditions[i].offset;

		if (!policy_conditions[i].type->is_same((const char *)a + offset,
							(const char *)b + offset))
			return false;
	}
	return true;
}

bool policy_rule_covers(const struct policy_rule *wide, const struct policy_rule *narrow)
{
	for (int i = 0; i < POLICY_CONDITIONS; i++) {
		const void *field = policy_condition_get(&policy_conditions[i], wide);
		const void *other = policy_condition_get(&policy_conditions[i], narrow);

		if (field && (!other || !policy_conditions[i].type->covers(field, other)))
			return false;
	}
	return true;
}
