/* SPDX-License-Identifier: MIT */
/* What the options --pid, --device, --cgroup and --kind choose, of rows, objects and events. */
#ifndef MONITOR_TOOL_FILTER_H
#define MONITOR_TOOL_FILTER_H

#include <stdbool.h>

#include "base/problem.h"
#include "monitor/reader/reader.h"

/* The option's value into the filter: 0, or -EINVAL with a sentence. A kind is added to those that are
 * chosen already. */
int filter_set_pid(struct monitor_filter *filter, const char *value, char problem[PROBLEM_SIZE]);
int filter_set_device(struct monitor_filter *filter, const char *value, char problem[PROBLEM_SIZE]);
int filter_set_cgroup(struct monitor_filter *filter, const char *value, char problem[PROBLEM_SIZE]);
int filter_set_kind(struct monitor_filter *filter, const char *value, char problem[PROBLEM_SIZE]);

/* Whether the row is of the process, device and cgroup. */
bool filter_takes_owner(const struct monitor_filter *filter, const struct monitor_row *row);

/* That, and it holds something of one of the kinds. */
bool filter_takes_row(const struct monitor_filter *filter, const struct monitor_row *row);

/* Whether the counter is of one of the kinds. */
bool filter_takes_counter(const struct monitor_filter *filter, unsigned counter);

#endif
