/* SPDX-License-Identifier: MIT */
/*
 * What the collector tells the guard in the kernel: limits, slots, which cgroups are whose; and the
 * reason where something has no room. The guard is one of files, and so are the cgroups; collector
 * and command are real.
 *
 * For scripts: daemon_guards files DIRECTORY [PID] writes a guard's files, with a refusal of
 * that process in slot 1. daemon_guards counts DIRECTORY writes what slot 1 has counted: 3 QPs,
 * 2 refusals, 1 overrun.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fixture.h"
#include "guardfiles.h"
#include "harness.h"
#include "kernel.h"

/* ---- on, off, and limits */

static void switches_and_limits(void)
{
	__u32 slot;
	__u64 epoch;

	guard_fresh("[tenant a]\nmatch = cgroup=/a\nqp = 5\ncqe = 9\nguard = on\n"
		    "[tenant b]\nmatch = cgroup=/b\nqp = 6\n");
	/* By the file: in force when the collector answers. */
	CHECK(guard_limit("/a", KIND_qp) == 5 && guard_mapped() == 1 && guard_head->epoch == 1);
	CHECK(guard_slot("/a") == 3, "%u", guard_slot("/a"));
	CHECK(guard_limit("/a", KIND_mr) == UNLIMITED);
	CHECK(guard_limit("/a", KIND_cqe) == UNLIMITED, "a kind that cannot be guarded");
	CHECK(guard_head->wanted == (GUARD_IOCTL | GUARD_COMPAT | GUARD_WRITE), "%x",
	      guard_head->wanted);
	CHECK(guard_is("a", GUARANTEE_KERNEL, "") && guard_row("a").on &&
	      guard_row("a").cgroups == 1 && guard_row("a").limit[KIND_qp] == 5);
	CHECK(guard_is("b", GUARANTEE_OFF, "") && !guard_row("b").on && !guard_slot("/b"));
	CHECK(guard_row(NULL).on == 1 && guard_row(NULL).armed &&
	      guard_row(NULL).guarded == GUARDED && guard_row(NULL).cgroups == 1);
	/* By a command. */
	command_output("guard on b");
	CHECK(guard_limit("/b", KIND_qp) == 6 && guard_slot("/b") != guard_slot("/a"));
	CHECK(guard_slot("/a") && guard_head->epoch == 2, "epoch %llu", guard_head->epoch);
	/* Limits, at once. */
	CHECK(collector_set("tenant a", "qp = 7") == 0);
	CHECK(guard_limit("/a", KIND_qp) == 7 && guard_limit("/b", KIND_qp) == 6 &&
	      guard_head->epoch == 2);
	CHECK(collector_set("default", "mr = 3") == 0);
	CHECK(guard_limit("/a", KIND_mr) == 3 && guard_limit("/b", KIND_mr) == 3);
	/* Who does not enforce refuses nothing, here as well. */
	CHECK(collector_set("tenant a", "mode = audit") == 0);
	CHECK(guard_limit("/a", KIND_qp) == UNLIMITED &&
	      guard_is("a", GUARANTEE_NONE, "mode is audit"));
	CHECK(collector_set("tenant a", "mode = unset") == 0);
	CHECK(guard_limit("/a", KIND_qp) == 7 && guard_is("a", GUARANTEE_KERNEL, ""));
	/* Off: counted on, so that on again is exact. */
	slot = guard_slot("/a");
	epoch = guard_head->epoch;
	command_output("guard off a");
	CHECK(guard_limit("/a", KIND_qp) == UNLIMITED && guard_slot("/a") == slot);
	CHECK(guard_is("a", GUARANTEE_OFF, "") && guard_head->wanted && guard_head->epoch == epoch);
	command_output("guard off b");
	CHECK(guard_head->wanted == (GUARD_IOCTL | GUARD_COMPAT | GUARD_WRITE) &&
	      guard_mapped() == 2);
	command_output("guard on a b");
	CHECK(guard_limit("/a", KIND_qp) == 7 && guard_slot("/a") == slot);
	CHECK(guard_limit("/b", KIND_qp) == 6 && guard_head->epoch == epoch);
	/* Ways: write() is guarded unless somebody says otherwise, and then it is told. */
	CHECK(guard_head->wanted == (GUARD_IOCTL | GUARD_COMPAT | GUARD_WRITE));
	guard_head->ways = GUARD_IOCTL | GUARD_COMPAT;
	EVENTUALLY(guard_is("a", GUARANTEE_PARTLY, "write() is not guarded: rdma_monitor has not"));
	strcpy(guard_head->problem, "no hook for writes");
	EVENTUALLY(guard_is("a", GUARANTEE_PARTLY, "write() is not guarded: no hook for writes"));
	guard_head->problem[0] = '\0';
	CHECK(collector_set("host", "guard_writes = off") == 0);
	CHECK(guard_head->wanted == (GUARD_IOCTL | GUARD_COMPAT));
	EVENTUALLY(guard_is("a", GUARANTEE_PARTLY, "[host] has guard_writes = off"));
	CHECK(strstr(command_output("guard status"), "partly: write() is not guarded") &&
	      strstr(command_output("doctor || true"), "write() is not guarded"));
	CHECK(collector_set("host", "guard_writes = unset") == 0);
	CHECK(guard_head->wanted == (GUARD_IOCTL | GUARD_COMPAT | GUARD_WRITE));
	guard_head->ways = GUARD_IOCTL | GUARD_COMPAT | GUARD_WRITE;
	EVENTUALLY(guard_is("a", GUARANTEE_KERNEL, ""));
	/* What is counted is shown. */
	guard_counts[slot].used[KIND_qp] = 4;
	guard_counts[slot].refused[KIND_qp] = 2;
	guard_counts[slot].overrun[KIND_mr] = 1;
	guard_counts[slot].killed = 1;
	CHECK(guard_row("a").used[KIND_qp] == 4 && guard_row("a").refused[KIND_qp] == 2 &&
	      guard_row("a").overrun[KIND_mr] == 1 && guard_row("a").killed == 1);
	CHECK(guard_row("b").used[KIND_qp] == 0 && guard_row(NULL).used[KIND_qp] == 5);
	/* A tenant that is gone takes its limits along; the file is as good as a command. */
	collector_policy("[tenant b]\nmatch = cgroup=/b\nqp = 6\nguard = off\n");
	CHECK(collector_set("tenant a", "guard = unset") == 0);
	CHECK(collector_call(MESSAGE_REPLACE, NULL, NULL) == 0);
	CHECK(guard_limit("/a", KIND_qp) == UNLIMITED);
	CHECK(collector_set("tenant b", "guard = unset") == 0);
	CHECK(guard_limit("/b", KIND_qp) == UNLIMITED);
	collector_policy("[tenant b]\nmatch = cgroup=/b\nqp = 6\nguard = on\n");
	CHECK(collector_call(MESSAGE_RELOAD, NULL, NULL) == 0 && guard_limit("/b", KIND_qp) == 6);
	CHECK(collector_stop() == 0 && guard_limit("/b", KIND_qp) == 6,
	      "the end leaves it in force");
}

static void guard_on_waits(void)
{
	struct guard_head unready = guard_usual();
	FILE *output;

	guard_fresh("[tenant a]\nmatch = cgroup=/a\nqp = 5\n");
	unready.armed = unready.ways = 0;
	unready.counted = 0;
	guard_load(unready);
	output = command_begin("guard on a");
	/* Until everything is attached, and what the tenant holds is counted. */
	EVENTUALLY(guard_is("a", GUARANTEE_NONE, "not attached it yet") && guard_row("a").pending);
	guard_head->ways = GUARD_IOCTL | GUARD_COMPAT | GUARD_WRITE;
	__atomic_store_n(&guard_head->armed, 1, __ATOMIC_SEQ_CST);
	EVENTUALLY(guard_is("a", GUARANTEE_PARTLY, "has not counted yet") &&
		   guard_row("a").pending);
	__atomic_store_n(&guard_head->counted, guard_head->epoch, __ATOMIC_SEQ_CST);
	CHECK(strstr(command_end(output, 0), "in the kernel"));
	CHECK(guard_is("a", GUARANTEE_KERNEL, "") && !guard_row("a").pending);
	/* There is nothing to wait for if it cannot be had. */
	CHECK(collector_set("tenant a", "guard = off") == 0);
	strcpy(unready.problem, "this kernel has no BPF LSM");
	guard_load(unready);
	CHECK(strstr(command_end(command_begin("guard on a"), 1),
		     "nothing is guarded: this kernel has no BPF LSM"));
	unready.problem[0] = '\0';
	unready.tended_ns = 0;
	guard_load(unready);
	CHECK(strstr(command_end(command_begin("guard on a"), 1),
		     "nothing is guarded: no rdma_monitor is running"));
	CHECK(strstr(command_output("doctor"), "no rdma_monitor is running"));
	CHECK(collector_set("tenant a", "mode = audit") == 0);
	CHECK(strstr(command_end(command_begin("guard on a"), 1), "its mode is audit"));
	collector_stop();
}

/* ---- which cgroups */

static void cgroups_of_tenants(void)
{
	__u64 epoch, inode;
	__u32 slot;

	guard_fresh("[tenant late]\nmatch = cgroup=/late/*\nqp = 1\nguard = on\n"
		    "[tenant pods]\nmatch = cgroup=/pods/pod?x*\nqp = 2\nguard = on\n"
		    "[tenant first]\nmatch = cgroup=/both\nqp = 3\nguard = on\n"
		    "[tenant second]\nmatch = cgroup=/both\nqp = 4\nguard = on\n"
		    "[tenant wide]\nmatch = cgroup=/wide/*\nqp = 5\n"
		    "[tenant inner]\nmatch = cgroup=/wide/inner/*\nqp = 6\nguard = on\n"
		    "[tenant mixed]\nmatch = uid=4000000\nmatch = uid=4000001 cgroup=/a\n"
		    "guard = on\nqp = 7\n"
		    "[tenant some]\nmatch = uid=4000000\nmatch = cgroup=/b\nguard = on\nqp = 8\n");
	CHECK(guard_is("late", GUARANTEE_KERNEL, "") && guard_rule_slot("/late") &&
		      !guard_slot("/late"),
	      "not guarded before the first cgroup comes: %s", guard_row("late").reason);
	CHECK(guard_is("mixed", GUARANTEE_NONE, "the tenant needs a match line") && !guard_slot("/a"));
	CHECK(guard_is("some", GUARANTEE_KERNEL, "more than a cgroup: 1") &&
	      guard_limit("/b", KIND_qp) == 8);
	CHECK(guard_head->wanted != 0, "armed before the first cgroup comes");
	/* They appear; what is below is meant with a group. */
	epoch = guard_head->epoch;
	cgroup_make("/late");
	EVENTUALLY(guard_limit("/late", KIND_qp) == 1, "%s", guard_row("late").reason);
	CHECK(guard_is("late", GUARANTEE_KERNEL, "") && guard_head->epoch == epoch + 1);
	cgroup_make("/late/below");
	cgroup_make("/pods");
	cgroup_make("/pods/pod1x-a");
	cgroup_make("/pods/pod2x-b");
	cgroup_make("/pods/other");
	EVENTUALLY(guard_slot("/pods/pod1x-a") && guard_slot("/pods/pod2x-b"));
	CHECK(guard_slot("/pods/pod1x-a") == guard_slot("/pods/pod2x-b") &&
	      guard_row("pods").cgroups == 2);
	CHECK(guard_limit("/pods/pod1x-a", KIND_qp) == 2 && !guard_slot("/pods/other"));
	CHECK(!guard_slot("/late/below") && !guard_slot("/pods"));
	/* The first line has it. */
	cgroup_make("/both");
	cgroup_make("/wide");
	cgroup_make("/wide/inner");
	EVENTUALLY(guard_limit("/both", KIND_qp) == 3);
	CHECK(guard_is("second", GUARANTEE_NONE, "an earlier match line gives its cgroups to another tenant"), "%s",
	      guard_row("second").reason);
	CHECK(!guard_slot("/wide/inner") && !guard_slot("/wide") &&
	      guard_row("inner").cgroups == 0);
	/* And when it has it no more, the other. */
	CHECK(collector_set("tenant second", "match = cgroup=/b") == 0); /* some's, by the file */
	CHECK(guard_limit("/b", KIND_qp) == 8);
	slot = guard_slot("/pods/pod1x-a");
	/* One that is gone leaves the map, and nothing else changes. */
	epoch = guard_head->epoch;
	inode = cgroup_inode("/pods/pod2x-b");
	rmdir(cgroup_path("/pods/pod2x-b"));
	EVENTUALLY(!guard_inode_slot(inode) && guard_head->epoch == epoch + 1);
	CHECK(guard_slot("/pods/pod1x-a") == slot && guard_row("pods").cgroups == 1);
	usleep((useconds_t)(SAMPLE * 1e6));
	CHECK(guard_head->epoch == epoch + 1, "the epoch moves by itself");
	/* The last goes; the tenant has its slot when another comes. */
	rmdir(cgroup_path("/pods/pod1x-a"));
	EVENTUALLY(guard_row("pods").cgroups == 0);
	CHECK(guard_is("pods", GUARANTEE_KERNEL, "") && guard_rule_slot("/pods/pod4x") == slot);
	guard_counts[slot].used[KIND_qp] = 1;
	cgroup_make("/pods/pod3x");
	EVENTUALLY(guard_slot("/pods/pod3x") == slot);
	/* A cgroup that changes hands is not held to the limits of who had it. */
	collector_policy("[tenant heir]\nmatch = cgroup=/pods/pod3x\n"
			 "[tenant pods]\nmatch = cgroup=/pods/pod?x*\nqp = 2\nguard = on\n"
			 "match = cgroup=/late\n");
	CHECK(collector_call(MESSAGE_REPLACE, NULL, NULL) == 0);
	CHECK(!guard_slot("/pods/pod3x") && guard_limit("/late", KIND_qp) == 2, "slot %u",
	      guard_slot("/pods/pod3x"));
	/* A slot that still holds something is nobody else's. */
	CHECK(collector_set("tenant heir", "guard = on") == 0);
	CHECK(guard_slot("/pods/pod3x") && guard_slot("/pods/pod3x") != slot);
	collector_stop();
}

/* ---- room */

static void tables_full(void)
{
	const __s64 share = (PLACES - PLACES / GUARD_RESERVE) / 2;
	__u32 slot;

	guard_fresh("[tenant a]\nmatch = cgroup=/a\nqp = 5\nguard = on\n"
		    "[tenant b]\nmatch = cgroup=/b\nqp = 5\nguard = on\n");
	slot = guard_slot("/a");
	CHECK(guard_is("a", GUARANTEE_KERNEL, "") && guard_is("b", GUARANTEE_KERNEL, ""));
	/* One that has its share is told so, others are not. */
	for (unsigned table = 0; table < GUARD_TABLES; table++) {
		guard_head->taken[table] = guard_counts[slot].taken[table] = share;
		EVENTUALLY(guard_is("a", GUARANTEE_PARTLY,
				    table == GUARD_OBJECTS ? "table of objects is full" :
						       "table of threads is full"));
		CHECK(guard_is("b", GUARANTEE_KERNEL, ""));
		guard_head->taken[table] = guard_counts[slot].taken[table] = share - 1;
		EVENTUALLY(guard_is("a", GUARANTEE_KERNEL, ""));
	}
	/* Where not all is known that there is, all are told. */
	guard_head->incomplete = 1;
	EVENTUALLY(guard_is("a", GUARANTEE_PARTLY, "no room to list all objects") &&
		   guard_is("b", GUARANTEE_PARTLY, "no room to list all objects"));
	guard_head->incomplete = 0;
	EVENTUALLY(guard_is("a", GUARANTEE_KERNEL, "") && guard_is("b", GUARANTEE_KERNEL, ""));
	/* A refusal for want of a place is an event that says so. */
	guard_log(GUARD_CROWDED, slot, 4000021, KIND_qp, 480);
	EVENTUALLY(strstr(told_of(4000021).last.text, "used its share of the guard"));
	collector_stop();
}

/* Without a place for a cgroup the rules decide; without a rule the tenant is told. */
static void no_room_for_cgroups(void)
{
	guard_fresh("[tenant a]\nmatch = cgroup=/a\nqp = 5\nguard = on\n"
		    "[tenant pods]\nmatch = cgroup=/crowd*\nqp = 5\nguard = on\n"
		    "[tenant long]\nmatch = cgroup=/[l][o][n][g][s]*\nqp = 5\nguard = on\n");
	CHECK(guard_is("a", GUARANTEE_KERNEL, "") && guard_is("pods", GUARANTEE_KERNEL, ""));
	CHECK(guard_is("long", GUARANTEE_NONE, "none of its cgroups exists"), "%s",
	      guard_row("long").reason);
	for (unsigned i = 0; i < GUARD_CGROUPS; i++)
		if (!guard_tenants[i].cgroup) /* no cgroup has such a number here */
			guard_tenants[i].cgroup = ~0ull - i;
	cgroup_make("/crowded");
	cgroup_make("/longs");
	EVENTUALLY(guard_is("long", GUARANTEE_NONE, "no room for its cgroups"), "%s",
		   guard_row("long").reason);
	CHECK(!guard_slot("/crowded") && guard_rule_slot("/crowded") &&
		      guard_is("pods", GUARANTEE_KERNEL, ""),
	      "%s", guard_row("pods").reason);
	for (unsigned i = 0; i < GUARD_CGROUPS; i++)
		if (guard_tenants[i].cgroup > ~0ull - GUARD_CGROUPS)
			guard_tenants[i].cgroup = 0;
	EVENTUALLY(guard_is("long", GUARANTEE_PARTLY, "within a second") && guard_slot("/longs") &&
		   guard_slot("/crowded"));
	rmdir(cgroup_path("/crowded"));
	rmdir(cgroup_path("/longs"));
	collector_stop();
}

/* All are held by what is left of others. */
static void no_slot_left(void)
{
	guard_fresh("[tenant a]\nmatch = cgroup=/a\nqp = 5\n");
	for (unsigned slot = 1; slot < GUARD_TENANTS; slot++)
		guard_counts[slot].used[KIND_qp] = 1;
	CHECK(strstr(command_end(command_begin("guard on a"), 1), "no room for its cgroups"));
	CHECK(guard_is("a", GUARANTEE_NONE, "no room for its cgroups") && !guard_slot("/a"), "%s",
	      guard_row("a").reason);
	guard_counts[GUARD_TENANTS - 1].used[KIND_qp] = 0;
	EVENTUALLY(guard_is("a", GUARANTEE_KERNEL, "") && guard_slot("/a") == GUARD_TENANTS - 1);
	collector_stop();
}

/* ---- */

static void drive(void)
{
	guard_files_prepare();
	RUN(switches_and_limits);
	RUN(cgroups_of_tenants);
	RUN(guard_on_waits);
	RUN(tables_full);
	RUN(no_room_for_cgroups);
	RUN(no_slot_left);
}

static int counts_write(const char *where)
{
	struct guard_counts count = { .used[KIND_qp] = 3, .refused[KIND_qp] = 2,
				      .overrun[KIND_qp] = 1 };
	char path[PATH_MAX];
	bool good;
	int fd;

	snprintf(path, sizeof(path), "%s/guard_counts", where);
	fd = open(path, O_RDWR | O_CLOEXEC);
	good = fd >= 0 && pwrite(fd, &count, sizeof(count), sizeof(count)) == sizeof(count);
	if (fd >= 0)
		close(fd);
	return good ? 0 : 1;
}

int main(int argc, char **argv)
{
	if (argc >= 3 && !strcmp(argv[1], "files")) {
		snprintf(guard_directory, sizeof(guard_directory), "%s", argv[2]);
		guard_load(guard_usual());
		if (argc > 3)
			guard_log(GUARD_REFUSED, 1, atoi(argv[3]), KIND_qp, 4);
		return 0;
	}
	if (argc >= 3 && !strcmp(argv[1], "counts"))
		return counts_write(argv[2]);
	return harness_main(argc, argv, NULL, drive);
}
