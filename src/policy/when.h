/* SPDX-License-Identifier: MIT */
/*
 * Rules "when = CONDITION : SECTION.KEY = VALUE" of [host]: a value that counts while usage is
 * above or below a mark, or in a window of time. Knows neither usage nor the time of day: the
 * caller has both, and remembers which rules are in force.
 */
#ifndef POLICY_WHEN_H
#define POLICY_WHEN_H

#include <stdio.h>
#include <time.h>

#include "base/problem.h"
#include "policy/policy.h"

struct policy_source;

enum {
	POLICY_WHENS = 64,
	POLICY_WHEN_TEXT = 320,
	POLICY_WHEN_CHANGE = 320,
	POLICY_WHEN_MARGIN = 10, /* percent of the mark: how far usage goes back before a rule ends */
};

/* Usage of the host or of a tenant, in total or on a device, compared with a mark. */
struct policy_usage_mark {
	char tenant[NAME_SIZE]; /* "": of the host */
	char device[NAME_SIZE]; /* "": in total */
	enum kind kind;
	bool above;   /* usage > mark; otherwise usage < mark */
	bool percent; /* the mark is in percent of the limit */
	uint64_t mark;
};

/* Minutes of a day. A window whose end is not after its begin ends on the next day. */
struct policy_window {
	unsigned days; /* bit 0: Sunday; the days on which it begins */
	unsigned begin, end;
};

struct policy_when {
	struct policy_when *next;
	char source[POLICY_PATH];	 /* "FILE:LINE", or "command" */
	char text[POLICY_WHEN_TEXT];	 /* what stands behind "when =" */
	bool by_time;			 /* window, otherwise usage */
	struct policy_usage_mark usage;
	struct policy_window window;
	char section[2 * NAME_SIZE];	 /* "host", "default" or "tenant NAME" */
	char change[POLICY_WHEN_CHANGE]; /* "KEY = VALUE" */
};

/* Reads what stands behind "when =". 0 or -errno with a problem. */
int policy_when_parse(const struct policy_source *source, const char *text,
		      struct policy_when *ret_when);

/* Whether the condition is met. held: the rule was in force before, so that usage must pass the
 * mark by a margin to end it. Percents of UNLIMITED are never met. */
bool policy_when_usage_holds(const struct policy_usage_mark *mark, uint64_t used, uint64_t limit,
			     bool held);
bool policy_when_window_holds(const struct policy_window *window, const struct tm *now);

/* Puts the rule's value over the policy's. 0 or -errno with a problem. */
int policy_when_apply(struct policy *policy, const struct policy_when *when,
		      char problem[PROBLEM_SIZE]);

/* Adds a copy to a policy's rules; the same text is not added again. -ENOMEM, -E2BIG. */
int policy_when_add(struct policy *policy, const struct policy_when *when);
void policy_whens_drop(struct policy *policy);

#endif
