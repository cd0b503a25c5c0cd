/* SPDX-License-Identifier: MIT */
/*
 * Whose a cgroup is by the rules of the guard, as the kernel decides it: patterns mean what they
 * mean to libc, the first line counts, and the nearest group is asked for by its own path.
 */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "monitor/guard/guard_maps.h"
#include "monitor/guard/patterns.h"

static bool matches(const struct guard_rule *rule, const char *path, bool crosses)
{
	char copy[GUARD_PATH] = "";
	struct pattern_match match;

	strcpy(copy, path);
	pattern_begin(&match, rule->first, rule->length, (__u32)strlen(path), crosses);
	for (unsigned step = 0; !match.verdict && step < PATTERN_STEPS; step++)
		pattern_step(&match, rule, copy, (__u32)strlen(path));
	CHECK(match.verdict, "undecided after all steps: %s", path);
	return match.verdict == PATTERN_YES;
}

static void text_make(char *ret_text, unsigned most, const char *const pieces[], unsigned count)
{
	ret_text[0] = '/';
	ret_text[1] = '\0';
	for (unsigned length = (unsigned)rand() % most; length > 0; length--)
		strcat(ret_text, pieces[(unsigned)rand() % count]);
}

static void patterns_mean_what_libc_says(void)
{
	static const char *const pieces[] = { "a", "b", "/", "*", "?", "[ab]", "[!a]", "[", "]",
					      "[a-c]", "**", "\\", "[[:alpha:]]" };
	static const char *const names[] = { "a", "b", "c", "/", "ab", "[", "]", "\\", "-" };
	unsigned yes = 0;

	srand(1);
	for (unsigned i = 0; i < 200000; i++) {
		char pattern[64], path[64];
		struct guard_rule rule;
		int result;

		text_make(pattern, 6, pieces, sizeof(pieces) / sizeof(pieces[0]));
		text_make(path, 8, names, sizeof(names) / sizeof(names[0]));
		result = monitor_guard_rule(&rule, pattern);
		if (result == -EINVAL || result == -E2BIG)
			continue; /* nothing that could be decided wrongly */
		CHECK(result == 0, "%s: %d", pattern, result);
		CHECK(matches(&rule, path, true) == !fnmatch(pattern, path, FNM_NOESCAPE),
		      "%s, %s", pattern, path);
		if (!strchr(pattern, '[')) /* libc leaves sets with a slash open */
			CHECK(matches(&rule, path, false) ==
				      !fnmatch(pattern, path, FNM_NOESCAPE | FNM_PATHNAME),
			      "%s, %s, names only", pattern, path);
		yes += !fnmatch(pattern, path, FNM_NOESCAPE);
	}
	CHECK(yes > 1000, "%u", yes);
}

/* The slot of a path by patterns, each of the tenant and slot that its place says; 0: none. */
static __u32 slot_by(const char *const patterns[], unsigned count, const char *path)
{
	struct guard_rule rules[8];
	__u32 slot = 0;

	for (unsigned i = 0; i < count; i++) {
		CHECK(monitor_guard_rule(&rules[i], patterns[i]) == 0);
		rules[i].tenant = rules[i].slot = i + 1;
	}
	monitor_guard_rules_name(rules, count, path, &slot);
	return slot;
}
#define SLOT(path, ...)                                                                            \
	slot_by((const char *const[]){ __VA_ARGS__ },                                              \
		sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *), path)

static void the_first_line_counts(void)
{
	CHECK(SLOT("/a", "/a", "/a") == 1);
	CHECK(SLOT("/a", "/b", "/a") == 2 && SLOT("/c", "/b", "/a") == 0);
	/* A star for what is below names the group itself. */
	CHECK(SLOT("/a", "/a/*") == 1 && SLOT("/a/b", "/a/*") == 0 && SLOT("/a", "a/*") == 1);
	/* What an earlier line has matched is not another's, also deep below. */
	CHECK(SLOT("/a/b", "/a/*", "/a/b") == 0 && SLOT("/a/b", "/a/b", "/a/*") == 1);
	CHECK(SLOT("/a/x/y/inner", "/a/x*", "/a/*/*/inner") == 0);
	CHECK(SLOT("/a/y/y/inner", "/a/x*", "/a/*/*/inner") == 2);
	CHECK(SLOT("/a", "/a", "/a/*") == 1 && SLOT("/a", "/a/b", "/a/*") == 2);
}

static void what_is_too_long_is_no_rule(void)
{
	char text[2 * GUARD_PATTERN];
	struct guard_rule rule;
	__u32 slot = 7;

	memset(text, 'a', sizeof(text));
	text[0] = '/';
	text[GUARD_PATTERN] = '\0';
	CHECK(monitor_guard_rule(&rule, text) == 0 && rule.length == GUARD_PATTERN);
	CHECK(matches(&rule, text, false) && matches(&rule, text, true));
	text[GUARD_PATTERN] = 'a';
	text[GUARD_PATTERN + 1] = '\0';
	CHECK(monitor_guard_rule(&rule, text) == -E2BIG);
	CHECK(monitor_guard_rule(&rule, "/[a][b][c][d]") == 0);
	CHECK(monitor_guard_rule(&rule, "/[a][b][c][d][e]") == -E2BIG);
	CHECK(monitor_guard_rule(&rule, "/x[a/b]") == -EINVAL);
	CHECK(!monitor_guard_rules_name(&rule, 0, "/a", &slot) && slot == 7);
}

/* A path that tries everything is decided within the steps that the kernel makes. */
static void the_worst_path_is_decided(void)
{
	char path[GUARD_PATH];
	struct guard_rule rule;

	memset(path, 'a', sizeof(path));
	path[0] = '/';
	path[GUARD_PATH - 1] = '\0';
	CHECK(monitor_guard_rule(&rule, "/*aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab") == 0);
	CHECK(!matches(&rule, path, true) && !matches(&rule, path, false));
	CHECK(monitor_guard_rule(&rule, "/*a*a*a*a*a*a*a*a*a*a*b") == 0);
	CHECK(!matches(&rule, path, true) && !matches(&rule, path, false));
}

static void driver(void)
{
	RUN(patterns_mean_what_libc_says);
	RUN(the_first_line_counts);
	RUN(what_is_too_long_is_no_rule);
	RUN(the_worst_path_is_decided);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
