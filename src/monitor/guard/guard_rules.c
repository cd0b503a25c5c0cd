/* SPDX-License-Identifier: MIT */
/* Patterns of the policy as rules, and rules held against a path; see guard_rules.h. */
#include "monitor/guard/guard_rules.h"

#include <errno.h>
#include <fnmatch.h>
#include <stddef.h>
#include <string.h>

#include "monitor/guard/patterns.h"

/* How much of a pattern is a set of characters, "[...]"; 0: none begins here. */
static size_t set_length(const char *text)
{
	size_t at = 1;

	if (text[0] != '[')
		return 0;
	at += text[at] == '!' || text[at] == '^';
	at += text[at] == ']';
	while (text[at] && text[at] != ']') {
		const char class[] = { text[at + 1], ']', '\0' };
		const char *end = text[at] == '[' && text[at + 1] && strchr(":.=", text[at + 1]) ?
					  strstr(text + at + 2, class) :
					  NULL;

		at = end ? (size_t)(end - text) + 2 : at + 1;
	}
	return text[at] ? at + 1 : 0;
}

/* libc knows best which characters are in it. */
static int set_write(__u8 set[32], const char *text, size_t length)
{
	char pattern[GUARD_PATTERN], one[2] = "";

	if (length >= sizeof(pattern))
		return -E2BIG;
	if (memchr(text, '/', length))
		return -EINVAL;
	memcpy(pattern, text, length);
	pattern[length] = '\0';
	memset(set, 0, 32);
	for (unsigned character = 1; character < 256; character++) {
		one[0] = (char)character;
		if (!fnmatch(pattern, one, FNM_NOESCAPE))
			set[character / 8] |= (__u8)(1u << character % 8);
	}
	return 0;
}

int monitor_guard_rule(struct guard_rule *ret_rule, const char *pattern)
{
	struct guard_rule rule = { .first = pattern[0] != '/' };
	unsigned sets = 0;
	const char *at = pattern;
	int result;

	if (rule.first)
		rule.token[rule.length++] = '/';
	while (*at) {
		size_t length = set_length(at);

		if (rule.length == GUARD_PATTERN || (length && sets == GUARD_SETS))
			return -E2BIG;
		if (length) {
			result = set_write(rule.set[sets], at, length);
			if (result < 0)
				return result;
		}
		rule.token[rule.length++] = length     ? (__u16)(GUARD_SET + sets++) :
					    *at == '*' ? GUARD_STAR :
					    *at == '?' ? GUARD_ANY :
							 (__u8)*at;
		at += length ? length : 1;
	}
	/* A group and what is below it are one to the guard. */
	rule.group = rule.length;
	if (rule.length >= 2 && rule.token[rule.length - 1] == GUARD_STAR &&
	    rule.token[rule.length - 2] == '/')
		rule.group = (__u16)(rule.length - 2);
	*ret_rule = rule;
	return 0;
}

static bool rule_matches(const struct guard_rule *rule, __u32 first, __u32 tokens,
			 const char path[GUARD_PATH], __u32 end, __u32 beyond, bool crosses)
{
	struct pattern_match match;

	pattern_begin(&match, first, tokens, end + beyond, crosses);
	while (!match.verdict)
		pattern_step(&match, rule, path, end);
	return match.verdict == PATTERN_YES;
}

bool monitor_guard_rules_name(const struct guard_rule *rules, unsigned count, const char *path,
			      __u32 *ret_slot)
{
	struct pattern_group group = { .end = (__u32)strlen(path) };
	char copy[GUARD_PATH] = "";

	if (!group.end || group.end >= GUARD_PATH)
		return false;
	memcpy(copy, path, group.end);
	for (unsigned i = 0; i < count && !group.found; i++) {
		const struct guard_rule *rule = &rules[i];

		pattern_group_add(
			&group, rule, rule_matches(rule, 0, rule->group, copy, group.end, 0, false),
			rule_matches(rule, rule->first, rule->length, copy, group.end, 0, true),
			rule_matches(rule, rule->first, rule->length, copy, group.end, 2, true));
	}
	if (group.found)
		*ret_slot = group.slot;
	return group.found;
}
