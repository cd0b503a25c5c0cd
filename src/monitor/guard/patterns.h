/* SPDX-License-Identifier: MIT */
/*
 * The tenant of a cgroup, by the match lines of the policy: decided in the kernel at once,
 * and by the loader in the same way, for groups that the collector has not seen yet. The
 * collector compiles the lines (see collector/guards.c); what they mean is
 * rdma_intercept_policy(5). Compiled for both sides; knows paths and rules, and nothing of
 * processes.
 */
#ifndef MONITOR_GUARD_PATTERNS_H
#define MONITOR_GUARD_PATTERNS_H

#include "monitor/guard/guard_rows.h"

enum {
	PATTERN_NO = 1,
	PATTERN_YES = 2,
	/* More steps than any pattern takes on any path: each place in the path is tried as the
	 * end of the last star once, with at most all tokens after it. */
	PATTERN_STEPS = GUARD_PATH * GUARD_PATTERN * 2,
};

/* A pattern that is being held against a path. */
struct pattern_match {
	__u32 verdict; /* 0: not known yet */
	__u32 token, tokens;
	__u32 at, length;	/* in the path; the two characters after its end are "/x" */
	__u32 star, star_at;	/* after the last star: the token, and where it ended; 0: none */
	__u32 crosses;		/* wildcards match slashes */
};

static inline __attribute__((always_inline)) void
pattern_begin(struct pattern_match *match, __u32 first, __u32 tokens, __u32 length, __u32 crosses)
{
	*match = (struct pattern_match){
		.token = first, .tokens = tokens, .length = length, .crosses = crosses
	};
}

static inline __attribute__((always_inline)) __u8
pattern_character(const char path[GUARD_PATH], __u32 end, __u32 at)
{
	return at < end ? (__u8)path[at % GUARD_PATH] : at == end ? '/' : 'x';
}

/* Whether a token that is no star stands for a character. */
static inline __attribute__((always_inline)) int
pattern_stands_for(const struct guard_rule *rule, __u32 token, __u8 character, __u32 crosses)
{
	__u32 set = token - GUARD_SET;

	if (token < GUARD_STAR)
		return token == character;
	if (character == '/' && !crosses)
		return 0;
	if (token == GUARD_ANY)
		return 1;
	return rule->set[set % GUARD_SETS][character / 8 % 32] >> character % 8 & 1;
}

/* One step: the token and the character that it is at. `end` is the end of the path itself. */
static inline __attribute__((always_inline)) void
pattern_step(struct pattern_match *match, const struct guard_rule *rule,
	     const char path[GUARD_PATH], __u32 end)
{
	__u32 token = GUARD_STAR;

	if (match->token < match->tokens)
		token = rule->token[match->token % GUARD_PATTERN];
	if (match->token >= match->tokens) {
		if (match->at >= match->length) {
			match->verdict = PATTERN_YES;
			return;
		}
	} else if (token == GUARD_STAR) {
		match->token++;
		match->star = match->token;
		match->star_at = match->at;
		return;
	} else if (match->at < match->length &&
		   pattern_stands_for(rule, token, pattern_character(path, end, match->at),
				      match->crosses)) {
		match->token++;
		match->at++;
		return;
	}
	/* The last star stands for one character more. */
	if (!match->star || match->star_at >= match->length ||
	    (!match->crosses && pattern_character(path, end, match->star_at) == '/')) {
		match->verdict = PATTERN_NO;
		return;
	}
	match->star_at++;
	match->at = match->star_at;
	match->token = match->star;
}

/* What the rules so far say of one group. */
struct pattern_group {
	__u32 end;   /* of its path */
	__u32 found; /* a rule names it, */
	__u32 slot;  /* and this is its tenant's; 0: not guarded */
	/* Tenants whose rules match a process in the group, and in groups below it: the first, and
	 * whether there is another. */
	__u32 in, in_others, below, below_others;
};

/* What one rule adds to that: whether it names the group, and matches processes there. */
static inline __attribute__((always_inline)) void
pattern_group_add(struct pattern_group *group, const struct guard_rule *rule, int names, int in,
		  int below)
{
	__u32 before = rule->group < rule->length ? group->below : group->in,
	      others = rule->group < rule->length ? group->below_others : group->in_others;

	if (names && !group->found && (!before || (before == rule->tenant && !others))) {
		group->found = 1;
		group->slot = rule->slot;
	}
	if (in) {
		group->in_others |= group->in && group->in != rule->tenant;
		group->in = group->in ? group->in : rule->tenant;
	}
	if (below) {
		group->below_others |= group->below && group->below != rule->tenant;
		group->below = group->below ? group->below : rule->tenant;
	}
}

#endif
