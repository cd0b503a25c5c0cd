/* SPDX-License-Identifier: MIT */
/*
 * What rdma_monitor's rows say, in a line: "ctx 1 pd 2 ...", counters that are not zero,
 * in the order of the table. Only reads, and is done in milliseconds: scenarios poll it.
 * Usage: rows [PID | device NAME | cgroup INODE]  the sum of the rows that fit, or of all
 *        rows used                                how many belong to a process
 *        rows head                                how the kernel is watched, and what was lost
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "monitor/reader/reader.h"

static bool fits(const struct monitor_row *row, const char *what, const char *which)
{
	if (!what)
		return true;
	if (!strcmp(what, "device"))
		return !strcmp(row->device_name, which);
	if (!strcmp(what, "cgroup"))
		return row->cgroup == strtoull(which, NULL, 10);
	return row->pid == strtoul(what, NULL, 10);
}

static void sums(const struct monitor_reader *reader, const char *what, const char *which)
{
	long long sum[MONITOR_COUNTERS] = { 0 };
	const char *space = "";
	struct monitor_row row;
	unsigned cursor = 0;

	while (monitor_reader_next(reader, &cursor, &row))
		for (unsigned i = 0; i < MONITOR_COUNTERS && fits(&row, what, which); i++)
			sum[i] += (long long)monitor_row_count(&row, i);
	for (unsigned i = 0; i < MONITOR_COUNTERS; i++) {
		if (!sum[i])
			continue;
		printf("%s%s %lld", space, monitor_counter_names[i], sum[i]);
		space = " ";
	}
	printf("\n");
}

/* Without the first, which is nobody's. */
static void used(const struct monitor_reader *reader)
{
	struct monitor_row row;
	unsigned cursor = 1, count = 0;

	while (monitor_reader_next(reader, &cursor, &row))
		count++;
	printf("%u\n", count);
}

static void head(const struct monitor_head *head)
{
	printf("mode %s observed %#llx seeded_at %.6f found %llu lost_objects %llu lost_rows %llu "
	       "dropped %llu\n",
	       monitor_mode_names[head->mode], (unsigned long long)head->observed,
	       (double)head->seeded_ns / 1e9, (unsigned long long)head->seeded,
	       (unsigned long long)head->lost_objects, (unsigned long long)head->lost_rows,
	       (unsigned long long)head->dropped);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : NULL;
	struct monitor_reader reader;
	char problem[PROBLEM_SIZE];

	if (argc > 3 ||
	    (argc == 3) != (what && (!strcmp(what, "device") || !strcmp(what, "cgroup")))) {
		fprintf(stderr, "usage: rows [PID | device NAME | cgroup INODE | used | head]\n");
		return 2;
	}
	if (monitor_reader_open(&reader, monitor_directory(), problem) < 0) {
		fprintf(stderr, "rows: %s\n", problem);
		return 1;
	}
	if (what && !strcmp(what, "used"))
		used(&reader);
	else if (what && !strcmp(what, "head"))
		head(reader.head);
	else
		sums(&reader, what, argv[argc > 2 ? 2 : 0]);
	return 0;
}
