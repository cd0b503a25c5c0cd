/* SPDX-License-Identifier: MIT */
/* Everything that is wrong with a policy, or cannot work as its author expects; see checks.def. */
#ifndef POLICY_CHECK_H
#define POLICY_CHECK_H

#include "policy/report.h"

struct policy_check {
	const char *name;
	const char *text;
	void (*look)(const struct policy *policy, const char *devices); /* NULL: a MISTAKE */
};

extern const struct policy_check policy_checks[POLICY_CHECKS];

/*
 * Reads a policy as policy_read does, and fills in its report, the findings in the order of files
 * and lines. `devices` is the directory whose entries are the devices of the host; names of devices
 * are not compared if it has none. 0 whatever is found; -ENOMEM.
 */
int policy_check(struct policy *policy, const char *path, const char *devices);

#endif
