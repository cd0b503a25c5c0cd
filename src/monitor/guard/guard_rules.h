/* SPDX-License-Identifier: MIT */
/*
 * Match lines of the policy that have a cgroup and nothing else, as the guard has them: patterns of
 * tokens (patterns.h). Knows paths, and nothing of maps.
 */
#ifndef MONITOR_GUARD_GUARD_RULES_H
#define MONITOR_GUARD_GUARD_RULES_H

#include <stdbool.h>

#include "monitor/guard/guard_rows.h"

/*
 * A rule for a pattern of the policy, but for whose it is. -E2BIG if it is too long, or has too
 * many sets of characters; -EINVAL if it has a slash in one.
 */
int monitor_guard_rule(struct guard_rule *ret_rule, const char *pattern);

/* Whether a rule names the group of a path, and whose that is then; as the kernel finds it. */
bool monitor_guard_rules_name(const struct guard_rule *rules, unsigned count, const char *path,
			      __u32 *ret_slot);

#endif
