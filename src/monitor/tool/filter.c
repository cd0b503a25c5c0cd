/* SPDX-License-Identifier: MIT */
/* The options that choose; see filter.h. */
#include "monitor/tool/filter.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cgroup.h"
#include "terms/size.h"

int filter_set_pid(struct monitor_filter *filter, const char *value, char problem[PROBLEM_SIZE])
{
	uint64_t pid;

	if (size_parse(value, strlen(value), 1, false, &pid) < 0 || !pid || pid > INT32_MAX)
		return problem_set(-EINVAL, problem,
				   "--pid: invalid value '%s': expected a process ID", value);
	filter->pid = (__u32)pid;
	filter->is_set = 1;
	return 0;
}

int filter_set_device(struct monitor_filter *filter, const char *value, char problem[PROBLEM_SIZE])
{
	if (!*value || strlen(value) >= sizeof(filter->device_name))
		return problem_set(-EINVAL, problem,
				   "--device: invalid value '%s': expected a name such as mlx5_0",
				   value);
	memset(filter->device_name, 0, sizeof(filter->device_name));
	memcpy(filter->device_name, value, strlen(value));
	filter->is_set = 1;
	return 0;
}

int filter_set_cgroup(struct monitor_filter *filter, const char *value, char problem[PROBLEM_SIZE])
{
	char path[PATH_MAX];
	struct stat status;
	uint64_t number;

	/* By its number: also one that was removed, as the table shows it. */
	if (size_parse(value, strlen(value), 1, false, &number) == 0 && number) {
		filter->cgroup = number;
		filter->is_set = 1;
		return 0;
	}
	if (*value != '/')
		return problem_set(-EINVAL, problem,
				   "--cgroup: invalid value '%s': expected a path such as "
				   "/user.slice, or a number",
				   value);
	snprintf(path, sizeof(path), "%s%s", cgroup_mount(), value);
	if (stat(path, &status))
		return problem_set(-EINVAL, problem, "--cgroup: %s: %s", path, strerror(errno));
	filter->cgroup = status.st_ino;
	filter->is_set = 1;
	return 0;
}

int filter_set_kind(struct monitor_filter *filter, const char *value, char problem[PROBLEM_SIZE])
{
	char names[512] = "";

	for (unsigned i = 0; i < MONITOR_COUNTERS; i++) {
		if (!strcmp(value, monitor_counter_names[i])) {
			filter->counters |= 1ull << i;
			filter->is_set = 1;
			return 0;
		}
		snprintf(strchr(names, '\0'), sizeof(names) - strlen(names), "%s%s", i ? ", " : "",
			 monitor_counter_names[i]);
	}
	return problem_set(-EINVAL, problem, "--kind: unknown kind '%s': expected one of: %s", value,
			   names);
}

bool filter_takes_owner(const struct monitor_filter *filter, const struct monitor_row *row)
{
	return (!filter->pid || filter->pid == row->pid) &&
	       (!filter->cgroup || filter->cgroup == row->cgroup) &&
	       (!filter->device_name[0] ||
		!strncmp(filter->device_name, row->device_name, sizeof(row->device_name)));
}

bool filter_takes_counter(const struct monitor_filter *filter, unsigned counter)
{
	return !filter->counters || (counter < MONITOR_COUNTERS && filter->counters >> counter & 1);
}

bool filter_takes_row(const struct monitor_filter *filter, const struct monitor_row *row)
{
	bool holds = !filter->counters;

	for (unsigned i = 0; i < MONITOR_COUNTERS && !holds; i++)
		holds = filter->counters >> i & 1 && monitor_row_count(row, i);
	return holds && filter_takes_owner(filter, row);
}
