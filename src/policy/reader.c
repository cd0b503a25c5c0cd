/* SPDX-License-Identifier: MIT */
/*
 * The reader of a policy's text: sections, lines of files, lines of commands. What may
 * stand there is known to keys.def and conditions.def. The reader of lines is our own
 * because libinih cuts names after 49 and lines after 199 bytes without a word, and
 * process.device.NAME.KIND is longer than that.
 */
#include "policy/reader.h"

#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/translation.h"
#include "policy/conditions.h"
#include "policy/keys.h"
#include "policy/origins.h"
#include "policy/pattern.h"
#include "policy/report.h"
#include "policy/when.h"

#define BLANKS " \t"

struct reader {
	struct policy *policy;
	struct policy_source source;
	bool runtime;
	bool skips; /* the section's title is wrong, so that its lines say nothing */
	const struct policy_section *section; /* NULL: before the first one */
	struct policy_tenant *owner; /* whose section it is; NULL: of the host or collector */
	void *settings;		     /* a tree of struct setting */
	const char *origin; /* of all values; NULL: their lines */
};

static char *blanks_skip(char *text)
{
	return text + strspn(text, BLANKS);
}

/* Cuts blanks at both ends. */
static char *blanks_cut(char *text)
{
	size_t length;

	text = blanks_skip(text);
	length = strlen(text);
	while (length > 0 && strchr(BLANKS, text[length - 1]))
		length--;
	text[length] = '\0';
	return text;
}

/* ---- once only: which keys a text has set so far */

struct setting {
	const struct policy_section *section;
	const struct policy_tenant *owner;
	const char *key;
	unsigned line;
};

static int setting_compare(const void *left, const void *right)
{
	const struct setting *a = left, *b = right;

	if (a->section != b->section)
		return a->section < b->section ? -1 : 1;
	if (a->owner != b->owner)
		return (uintptr_t)a->owner < (uintptr_t)b->owner ? -1 : 1;
	return strcmp(a->key, b->key);
}

static int setting_add(struct reader *reader, const char *key)
{
	struct setting *setting = malloc(sizeof(*setting)), **stored;

	if (!setting)
		return policy_fail_errno(&reader->source, -ENOMEM);
	*setting = (struct setting){ reader->section, reader->owner, key, reader->source.line };
	stored = tsearch(setting, &reader->settings, setting_compare);
	if (stored && *stored == setting)
		return 0;
	free(setting);
	if (!stored)
		return policy_fail_errno(&reader->source, -ENOMEM);
	return policy_fail(&reader->source, -EINVAL,
			   "%s: set already in line %u: expected once in a section", key,
			   (*stored)->line);
}

/* ---- KEY = VALUE */

static bool value_is_unset(const struct reader *reader, const char *value)
{
	return !reader->source.file && !strcmp(value, "unset");
}

/* What a command has set stands in a file of the collector's after a restart. */
static void rule_name(const struct reader *reader, const char *value, struct policy_rule *rule)
{
	if (reader->runtime)
		snprintf(rule->source, sizeof(rule->source), "command");
	else
		snprintf(rule->source, sizeof(rule->source), "%.*s:%u", POLICY_PATH - 16,
			 reader->source.file, reader->source.line);
	snprintf(rule->text, sizeof(rule->text), "%s", value);
}

/* A line begins with FIRST, or with a condition. */
static int rule_conditions_read(const struct reader *reader, char *value, struct policy_rule *rule)
{
	unsigned conditions = 0;
	char *word;
	int result = 0;

	while (result == 0 && (word = strsep(&value, BLANKS))) {
		if (!*word)
			continue;
		if (!conditions && !rule->first && !strcmp(word, POLICY_FIRST)) {
			rule->first = true;
			continue;
		}
		result = policy_condition_parse(&reader->source, word, rule);
		conditions++;
	}
	if (result == 0 && !conditions)
		return policy_fail(&reader->source, -EINVAL,
				   "match: missing condition behind " POLICY_FIRST
				   ": expected one such as cgroup=/x*");
	return result;
}

/* The rule behind "unset", which a command takes out; NULL if it is to be added. */
static char *rule_of_unset(const struct reader *reader, char *value)
{
	static const char word[] = "unset";
	size_t length = sizeof(word) - 1;

	if (reader->source.file || strncmp(value, word, length) || !strchr(BLANKS, value[length]))
		return NULL;
	return blanks_skip(value + length);
}

static int rule_unset(struct reader *reader, char *value)
{
	struct policy_rule rule = { .next = NULL };
	int result;

	snprintf(rule.text, sizeof(rule.text), "%s", value);
	result = rule_conditions_read(reader, value, &rule);
	if (result < 0 || policy_rule_drop(reader->policy, reader->owner, &rule))
		return result;
	return policy_fail(&reader->source, -EINVAL,
			   "match: no command has added the line " POLICY_WORD
			   ": expected one that show tenant has from command",
			   rule.text);
}

static int rule_read(struct reader *reader, char *value)
{
	struct policy_rule rule = { .next = NULL };
	char *dropped = rule_of_unset(reader, value);
	int result;

	if (value_is_unset(reader, value)) {
		policy_rules_drop(reader->policy, reader->owner);
		return 0;
	}
	if (dropped && *dropped)
		return rule_unset(reader, dropped);
	rule_name(reader, value, &rule);
	result = rule_conditions_read(reader, value, &rule);
	if (result == 0)
		result = policy_pattern_check_rule(&reader->source, reader->owner->name, &rule);
	if (result < 0)
		return result;
	result = policy_rule_add(reader->policy, reader->owner, &rule);
	if (result == -E2BIG)
		return policy_fail(&reader->source, result,
				   "match: too many lines: expected at most %d match lines",
				   POLICY_RULES);
	return result < 0 ? policy_fail_errno(&reader->source, result) : 0;
}

static int when_read(struct reader *reader, const char *value)
{
	struct policy_when when;
	int result;

	if (value_is_unset(reader, value)) {
		policy_whens_drop(reader->policy);
		return 0;
	}
	result = policy_when_parse(&reader->source, value, &when);
	if (result < 0)
		return result;
	result = policy_when_add(reader->policy, &when);
	if (result == -E2BIG)
		return policy_fail(&reader->source, result,
				   "when: too many lines: expected at most %d when lines",
				   POLICY_WHENS);
	return result < 0 ? policy_fail_errno(&reader->source, result) : 0;
}

/* What the tenants of a pattern cannot have: the kernel's guard knows tenants by their cgroups, and
 * how many guarantees there will be is not known. */
static int pattern_value_check(const struct reader *reader, const struct policy_key *key,
			       const struct policy_place *place, const union policy_value *value)
{
	char name[POLICY_KEY_NAME];

	if (!reader->owner || !policy_name_is_pattern(reader->owner->name))
		return 0;
	if (key != &policy_keys[POLICY_KEY_guarantee] &&
	    (key != &policy_keys[POLICY_KEY_guard] ||
	     *(const enum policy_switch *)value != POLICY_ON))
		return 0;
	policy_key_print(key, place, name);
	return policy_fail(&reader->source, -EINVAL,
			   "%s: not possible in the pattern [tenant %s]: expected it in the section "
			   "of a single tenant",
			   name, reader->owner->name);
}

/* Which tenants there are is known after all files are read; whether a section may say it, now. */
static int within_check(const struct reader *reader, const struct policy_key *key, const char *text)
{
	if (key != &policy_keys[POLICY_KEY_within] || !reader->owner ||
	    (!policy_name_is_pattern(reader->owner->name) && strcmp(reader->owner->name, text) != 0))
		return 0;
	return policy_fail(&reader->source, -EINVAL,
			   "within: not possible in [%s]: expected it in the section of a single tenant, "
			   "with the name of another one",
			   reader->owner->name);
}

/* Where the line stands. The file that keeps what commands set repeats these. */
static void origin_print(const struct reader *reader, char ret_origin[POLICY_ORIGIN])
{
	if (reader->origin)
		snprintf(ret_origin, POLICY_ORIGIN, "%s", reader->origin);
	else if (reader->source.file && !reader->runtime)
		snprintf(ret_origin, POLICY_ORIGIN, "%.*s:%u", POLICY_PATH - 1,
			 reader->source.file, reader->source.line);
	else
		strcpy(ret_origin, POLICY_COMMAND);
}

static int value_read(struct reader *reader, const struct policy_key *key,
		      const struct policy_place *place, const char *text)
{
	void *structure = reader->owner ? (void *)reader->owner : (void *)reader->policy;
	union policy_value value = { .text = "" };
	char origin[POLICY_ORIGIN];
	bool unset = value_is_unset(reader, text);
	int result = 0;

	if (!unset)
		result = key->type->parse(&reader->source, key, place, text, &value);
	if (!unset && result == 0)
		result = pattern_value_check(reader, key, place, &value);
	if (!unset && result == 0)
		result = within_check(reader, key, text);
	if (result < 0)
		return result;
	result = policy_key_set(key, structure, place, unset ? NULL : &value);
	origin_print(reader, origin);
	if (result == 0)
		result = policy_origin_set(policy_origins(reader->policy, reader->owner), key, place,
					   unset ? NULL : origin);
	if (result == -E2BIG)
		return policy_fail(&reader->source, result,
				   "%s: too many devices: expected limits for at most %d devices",
				   place->device, POLICY_DEVICES);
	return result < 0 ? policy_fail_errno(&reader->source, result) : 0;
}

static int key_value_read(struct reader *reader, const struct policy_key *key,
			  const struct policy_place *place, const char *name, char *value)
{
	int result;

	if (key->type == &policy_type_rule)
		return rule_read(reader, value);
	if (key->type == &policy_type_when)
		return when_read(reader, value);
	result = setting_add(reader, name);
	return result < 0 ? result : value_read(reader, key, place, value);
}

static int key_read(struct reader *reader, const char *name, char *value)
{
	struct policy_mark mark = { .tenant = reader->owner };
	int result =
		policy_key_parse(&reader->source, reader->section, name, &mark.key, &mark.place);

	if (result < 0)
		return result;
	result = key_value_read(reader, mark.key, &mark.place, name, value);
	mark.invalid = result < 0;
	policy_report_mark(reader->policy, &reader->source, &mark);
	return result;
}

/* ---- [SECTION] */

static int tenant_read(struct reader *reader, const char *name)
{
	int result;

	if (!*name)
		return policy_fail(&reader->source, -EINVAL,
				   "[tenant]: missing name: expected [tenant NAME]");
	if (policy_name_is_pattern(name) && policy_pattern_mistake(name))
		return policy_fail(&reader->source, -EINVAL, POLICY_WORD ": invalid pattern: %s",
				   name, _(policy_pattern_mistake(name)));
	if (!policy_name_is_pattern(name) && !policy_name_is_valid(name))
		return policy_fail(&reader->source, -EINVAL,
				   POLICY_WORD
				   ": invalid name of a tenant: expected " POLICY_NAME_EXPECTED,
				   name);
	result = policy_tenant_add(reader->policy, name, reader->runtime, &reader->owner);
	if (result == -E2BIG)
		return policy_fail(&reader->source, result,
				   "%s: too many tenants: expected at most %d tenants", name,
				   POLICY_TENANTS);
	return result < 0 ? policy_fail_errno(&reader->source, result) : 0;
}

static bool section_is_allowed(const struct reader *reader, const struct policy_section *section)
{
	return reader->source.file || section->by_command;
}

static int section_fail(const struct reader *reader, const char *title)
{
	unsigned count = 0, number = 0;
	char titles[128] = "";

	for (int i = 0; i < POLICY_SECTIONS; i++)
		count += section_is_allowed(reader, &policy_sections[i]);
	for (int i = 0; i < POLICY_SECTIONS; i++)
		if (section_is_allowed(reader, &policy_sections[i]))
			policy_list_add(titles, sizeof(titles), number++, count,
					policy_sections[i].title);
	return policy_fail(&reader->source, -EINVAL, "[%.64s]: unknown section: expected %s", title,
			   titles);
}

/* The text of a title: "host", "tenant NAME". */
static int section_read(struct reader *reader, char *title)
{
	char *rest = title + strcspn(title, BLANKS);
	size_t length = (size_t)(rest - title);

	rest = blanks_skip(rest);
	for (int i = 0; i < POLICY_SECTIONS; i++) {
		const struct policy_section *section = &policy_sections[i];
		bool named = section->bit == POLICY_IN_TENANT;

		if (strlen(section->name) != length || memcmp(section->name, title, length) ||
		    (*rest && !named) || !section_is_allowed(reader, section))
			continue;
		reader->section = section;
		reader->owner = section->bit == POLICY_IN_DEFAULT ? &reader->policy->fallback :
								    NULL;
		return named ? tenant_read(reader, rest) : 0;
	}
	return section_fail(reader, title);
}

static int title_read(struct reader *reader, char *line)
{
	size_t length = strlen(line);
	int result;

	reader->skips = true;
	if (!reader->source.file)
		return policy_fail(&reader->source, -EINVAL,
				   POLICY_WORD
				   ": second section in a command: expected lines of one section",
				   line);
	if (line[length - 1] != ']')
		return policy_fail(&reader->source, -EINVAL,
				   POLICY_WORD
				   ": incomplete title: expected [SECTION], and nothing behind ]",
				   line);
	line[length - 1] = '\0';
	result = section_read(reader, blanks_cut(line + 1));
	reader->skips = result < 0;
	if (result == 0)
		policy_report_mark(reader->policy, &reader->source,
				   &(struct policy_mark){ .tenant = reader->owner });
	return result;
}

/* ---- lines */

static bool value_has_comment(const char *value)
{
	const char *mark = value;

	while ((mark = strpbrk(mark, "#;"))) {
		if (mark == value || strchr(BLANKS, mark[-1]))
			return true;
		mark++;
	}
	return false;
}

static int text_line_read(struct reader *reader, char *line)
{
	char *value;

	line = blanks_cut(line);
	if (!*line || *line == '#' || *line == ';')
		return 0;
	if (*line == '[')
		return title_read(reader, line);
	if (reader->skips)
		return 0;
	value = strchr(line, '=');
	if (!value)
		return policy_fail(&reader->source, -EINVAL,
				   POLICY_WORD ": invalid line: expected KEY = VALUE or [SECTION]",
				   line);
	*value++ = '\0';
	line = blanks_cut(line);
	value = blanks_cut(value);
	if (!reader->section)
		return policy_fail(&reader->source, -EINVAL,
				   POLICY_WORD ": no section yet: expected [SECTION] before it",
				   line);
	if (!*value)
		return policy_fail(&reader->source, -EINVAL,
				   POLICY_WORD ": missing value: expected KEY = VALUE", line);
	if (value_has_comment(value))
		return policy_fail(&reader->source, -EINVAL,
				   POLICY_WORD
				   ": comment behind a value: expected it in a line of its own",
				   value);
	return key_read(reader, line, value);
}

static int line_read(struct reader *reader, char *line, char *end)
{
	if (end > line && end[-1] == '\r')
		end--;
	*end = '\0';
	for (const char *at = line; at < end; at++)
		if (policy_is_control(*at) && *at != '\t')
			return policy_fail(&reader->source, -EINVAL,
					   "byte 0x%02x: not allowed: expected plain text",
					   (unsigned char)*at);
	return text_line_read(reader, line);
}

/* The last line of the file has no end. */
static void file_end_note(struct reader *reader)
{
	const struct policy_source *source = &reader->source;
	struct policy *policy = reader->policy;

	snprintf(policy->cut, sizeof(policy->cut), "%.*s:%u", POLICY_PATH - 1, source->file,
		 source->line);
	if (policy->report)
		policy_report_add(policy->report, POLICY_CHECK_cut_file, source->file, source->line,
				  "the last line has no newline at its end: the file may be cut");
}

/* text[length] is there to be written. */
static int lines_read(struct reader *reader, char *text, size_t length)
{
	static const char byte_order_mark[] = "\xef\xbb\xbf";
	struct policy_source *source = &reader->source;
	char *at = text, *end = text + length;
	int result = 0;

	if (length >= 3 && !memcmp(text, byte_order_mark, 3))
		at += 3;
	while (at < end && result == 0) {
		char *stop = memchr(at, '\n', (size_t)(end - at));

		source->line++;
		if (!stop) {
			stop = end;
			if (source->file)
				file_end_note(reader);
		}
		result = policy_report_mistake(reader->policy, POLICY_CHECK_invalid, source,
					       line_read(reader, at, stop));
		at = stop + 1;
	}
	tdestroy(reader->settings, free);
	return result;
}

int policy_read_text(struct policy *policy, const struct policy_source *source, bool runtime,
		     char *text, size_t length)
{
	struct reader reader = { .policy = policy, .source = *source, .runtime = runtime };

	if (policy->report)
		policy_report_file(policy->report, source->file);
	return lines_read(&reader, text, length);
}

/* ---- commands */

static void policy_swap(struct policy *a, struct policy *b)
{
	struct policy held = *a;

	*a = *b;
	*b = held;
}

int policy_change(struct policy *policy, const char *section, const char *text,
		  char problem[PROBLEM_SIZE])
{
	return policy_change_from(policy, section, text, POLICY_COMMAND, problem);
}

int policy_change_from(struct policy *policy, const char *section, const char *text,
		       const char *origin, char problem[PROBLEM_SIZE])
{
	struct reader reader = { .source.problem = problem, .runtime = true, .origin = origin };
	char *title = strdup(section), *lines = strdup(text);
	int result;

	reader.policy = policy_merge(policy, NULL);
	if (!title || !lines || !reader.policy) {
		result = policy_fail_errno(&reader.source, -ENOMEM);
		goto out;
	}
	result = section_read(&reader, blanks_cut(title));
	if (result == 0)
		result = lines_read(&reader, lines, strlen(lines));
	if (result == 0) {
		policy_swap(policy, reader.policy);
		policy_bases_find(policy);
	}
out:
	policy_free(reader.policy);
	free(title);
	free(lines);
	return result;
}
