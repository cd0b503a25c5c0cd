/* SPDX-License-Identifier: MIT */
/*
 * What the guard in the kernel says, in lines for scenarios: kinds that have anything, in the
 * order of the table. It is done in milliseconds, so that it can be polled.
 * Usage: guardrows                a line for each slot in use: "slot S cgroups C qp USED/LIMIT
 *                                 ... killed K", of which -: no limit
 *        guardrows head           whether it is armed, for which ways, and what was logged
 *        guardrows slot OF        the number
 *        guardrows used OF [KIND...]
 *                                 "qp 5 mr 3", all or these; so for limits, floating, refused
 *                                 and overrun
 *        guardrows killed OF      how many processes
 *        guardrows places OF      taken in the tables of objects and of threads; then how many
 *                                 commands were refused for want of one
 *        guardrows trusting 0|1   the test of the test: whether to let pass what was changed
 * OF is the number of a slot, or the path of a cgroup: then it is the slot of that one, or of
 * the next above it that has one.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "monitor/guard/guard_maps.h"
#include "monitor/reader/reader.h"

static struct monitor_guard guard;
static struct guard_cgroup *cgroups;
static int cgroup_count;

static unsigned cgroups_of(__u32 slot)
{
	unsigned count = 0;

	for (int i = 0; i < cgroup_count; i++)
		count += cgroups[i].slot == slot;
	return count;
}

/* Without the first slot, which is nobody's. */
static int all(void)
{
	for (__u32 slot = 1; slot < GUARD_TENANTS; slot++) {
		unsigned count = cgroups_of(slot);
		struct guard_counts counts;
		bool any = count > 0;

		monitor_guard_counts(&guard, slot, &counts);
		for (unsigned kind = 0; kind < KIND_COUNT; kind++)
			any |= counts.used[kind] != 0;
		if (!any)
			continue;
		printf("slot %u cgroups %u", slot, count);
		for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
			__u64 limit = guard.limits[slot].limit[kind];

			if (!counts.used[kind] && limit == UNLIMITED)
				continue;
			printf(" %s %lld/", kind_rows[kind].name, (long long)counts.used[kind]);
			if (limit == UNLIMITED)
				printf("-");
			else
				printf("%llu", (unsigned long long)limit);
		}
		printf(" killed %llu\n", (unsigned long long)counts.killed);
	}
	return 0;
}

static int head(void)
{
	const struct guard_head *head = guard.head;

	printf("armed %u ways %u wanted %u epoch %llu trusting %llu logged %llu closed %llu "
	       "objects %lld threads %lld incomplete %llu problem %s\n",
	       head->armed, head->ways, head->wanted, (unsigned long long)head->epoch,
	       (unsigned long long)head->trusting, (unsigned long long)head->logged,
	       (unsigned long long)head->closed,
	       (long long)head->taken[GUARD_OBJECTS], (long long)head->taken[GUARD_RUNNING],
	       (unsigned long long)head->incomplete,
	       head->problem[0] ? head->problem : "none");
	return 0;
}

static __u32 slot_of_cgroup(const char *path)
{
	char group[PATH_MAX];
	struct stat file;

	snprintf(group, sizeof(group), "%s", path);
	for (char *end; (end = strrchr(group, '/')) && !stat(group, &file); *end = '\0')
		for (int i = 0; i < cgroup_count; i++)
			if (cgroups[i].cgroup == file.st_ino)
				return cgroups[i].slot;
	return 0;
}

/* 0 if there is none. */
static __u32 slot_of(const char *text)
{
	unsigned long number = strtoul(text, NULL, 10);

	return text[0] == '/' ? slot_of_cgroup(text) : number < GUARD_TENANTS ? (__u32)number : 0;
}

static int trusting(const char *value)
{
	__atomic_store_n(&guard.head->trusting, (__u64)(value[0] == '1'), __ATOMIC_SEQ_CST);
	return 0;
}

static bool is_asked(unsigned kind, char **asked)
{
	if (!*asked)
		return true;
	while (*asked && strcmp(*asked, kind_rows[kind].name) != 0)
		asked++;
	return *asked;
}

/* Without those that are `nothing`. */
static int numbers(const __u64 values[KIND_COUNT], __u64 nothing, char **asked)
{
	const char *space = "";

	for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
		if (values[kind] == nothing || !is_asked(kind, asked))
			continue;
		printf("%s%s %lld", space, kind_rows[kind].name, (long long)values[kind]);
		space = " ";
	}
	printf("\n");
	return 0;
}

static int of_slot(const char *what, __u32 slot, char **asked)
{
	struct guard_counts counts;

	if (!slot) {
		fprintf(stderr, "guardrows: there is no such slot\n");
		return 1;
	}
	monitor_guard_counts(&guard, slot, &counts);
	if (!strcmp(what, "used"))
		return numbers((const __u64 *)counts.used, 0, asked);
	if (!strcmp(what, "limits"))
		return numbers(guard.limits[slot].limit, UNLIMITED, asked);
	if (!strcmp(what, "floating"))
		return numbers((const __u64 *)counts.floating, 0, asked);
	if (!strcmp(what, "refused"))
		return numbers(counts.refused, 0, asked);
	if (!strcmp(what, "overrun"))
		return numbers(counts.overrun, 0, asked);
	if (!strcmp(what, "places")) {
		printf("objects %lld threads %lld refused %llu %llu\n",
		       (long long)counts.taken[GUARD_OBJECTS],
		       (long long)counts.taken[GUARD_RUNNING],
		       (unsigned long long)counts.crowded[GUARD_OBJECTS],
		       (unsigned long long)counts.crowded[GUARD_RUNNING]);
		return 0;
	}
	if (strcmp(what, "killed") != 0 && strcmp(what, "slot") != 0)
		return 2;
	printf("%llu\n", !strcmp(what, "slot") ? slot : (unsigned long long)counts.killed);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	char problem[PROBLEM_SIZE];
	int result = 2;

	if (monitor_guard_open(&guard, monitor_directory(), problem) < 0) {
		fprintf(stderr, "guardrows: %s\n", problem);
		return 1;
	}
	cgroup_count = monitor_guard_cgroups(&guard, &cgroups);
	if (cgroup_count < 0) {
		fprintf(stderr, "guardrows: the cgroups: %s\n", strerror(-cgroup_count));
		return 1;
	}
	if (argc == 1)
		result = all();
	else if (argc == 2 && !strcmp(what, "head"))
		result = head();
	else if (argc == 3 && !strcmp(what, "trusting"))
		result = trusting(argv[2]);
	else if (argc >= 3)
		result = of_slot(what, slot_of(argv[2]), argv + 3);
	if (result == 2)
		fprintf(stderr, "usage: guardrows [head | slot OF | killed OF | places OF |\n"
				"       trusting 0|1 |\n"
				"       used|limits|floating|refused|overrun OF [KIND...]]\n");
	return result;
}
