/* SPDX-License-Identifier: MIT */
/*
 * Orphans: what a process that ended still has in the kernel stays charged, and no longer than the
 * kernel has it. The kernel is one of files, the guarded programs are real.
 */
#include <stdio.h>
#include <unistd.h>

#include "fixture.h"
#include "watched.h"

static bool is_gone(pid_t pid)
{
	return !collector_process(pid).pid;
}

/* Nothing is left: over at once, and no orphan. */
static void death_without_orphan(void)
{
	unsigned row;
	pid_t pid;

	watched_begin("", MONITOR_FENTRY);
	pid = guarded_start("holder:3", "TRANSPORT=lease\nQUIET=1");
	row = kernel_mirror(pid, "rxe0");
	kernel_free(row); /* as if it had been */
	process_kill(pid);
	CHECK(is_gone(pid) && events_of(EVENT_DIED, pid).count == 1);
	CHECK(events_of(EVENT_ORPHANED, pid).count == 0);
	collector_stop();
}

/* Waits until the collector has given back what the process held. Returns how long that took,
 * or a negative number if this machine kept us or the collector waiting in the meantime. */
static double given_back(pid_t pid)
{
	double before = seconds_now(), last = before, longest = 0;
	struct waiting waiting = { .for_what = "given back", .file = __FILE__, .line = __LINE__ };

	while (!is_gone(pid)) {
		double now;

		if (!waiting_goes_on(&waiting)) {
			CHECK(false, "process %d is not given back", (int)pid);
			stop_here();
		}
		now = seconds_now();
		longest = now - last > longest ? now - last : longest;
		last = now;
	}
	printf("given back %.0f ms after the kernel\n", (seconds_now() - before) * 1e3);
	return longest < .05 ? seconds_now() - before : -1;
}

/* The kernel needs a moment: what it has counts as long, and no longer. */
static void orphan_for_a_moment(void)
{
	unsigned row, judged = 0;

	watched_begin("", MONITOR_FENTRY);
	for (unsigned round = 0; judged < 2 && round < 10; round++) {
		double begin = seconds_now(), taken;
		pid_t pid = guarded_start("holder:3", "TRANSPORT=lease\nQUIET=1");

		row = kernel_mirror(pid, "rxe0");
		process_kill(pid);
		CHECK(process_has(pid, ROW_ORPHAN) && collector_tenant(NULL).used[KIND_qp] == 3);
		wait_seconds(.3);
		CHECK(process_has(pid, ROW_ORPHAN));
		kernel_free(row);
		taken = given_back(pid);
		if (taken >= 0) {
			judged++;
			CHECK(taken < .3, "%.2f s", taken);
		}
		CHECK(collector_tenant(NULL).used[KIND_qp] == 0 &&
		      collector_tenant(NULL).processes == 0);
		CHECK(events_of(EVENT_DIED, pid).count == 1);
		/* It takes longer to be an orphan for good. */
		if (seconds_now() - begin < 1)
			CHECK(events_of(EVENT_ORPHANED, pid).count == 0);
	}
	if (!judged)
		skip_part("the machine is too busy to judge the time");
	collector_stop();
}

/* Somebody has it whom nobody finds: a descriptor on its way, say. */
static void orphan_for_long(void)
{
	unsigned row;
	pid_t pid;

	watched_begin("", MONITOR_FENTRY);
	pid = guarded_start("holder:3", "TRANSPORT=socket\nQUIET=1");
	row = kernel_mirror(pid, "rxe0");
	process_kill(pid);
	EVENTUALLY(events_of(EVENT_ORPHANED, pid).count == 1);
	wait_seconds(SAMPLE);
	CHECK(process_has(pid, ROW_ORPHAN) && collector_tenant(NULL).used[KIND_qp] == 3);
	CHECK(events_of(EVENT_ORPHANED, pid).count == 1 &&
	      events_of(EVENT_UNCOVERED, pid).count == 0);
	CHECK(collector_state().drifting == 0 && collector_state().uncovered == 0);
	/* It goes bit by bit; the orphan with the last. */
	kernel_set(row, KIND_qp, 0);
	wait_seconds(2);
	CHECK(process_has(pid, ROW_ORPHAN) && collector_state().drifting == 0);
	kernel_clear(row);
	EVENTUALLY(is_gone(pid));
	CHECK(events_of(EVENT_DIED, pid).count == 1);
	kernel_free(row);
	collector_stop();
}

/* Over a restart, and until the monitor goes. */
static void orphan_after_restart(void)
{
	pid_t pid;

	watched_begin("", MONITOR_FENTRY);
	pid = guarded_start("holder:3", "TRANSPORT=lease\nQUIET=1");
	kernel_mirror(pid, "rxe0");
	collector_kill();
	process_kill(pid);
	collector_start(watched_variables);
	CHECK(process_has(pid, ROW_ORPHAN));
	wait_seconds(2);
	CHECK(process_has(pid, ROW_ORPHAN));
	kernel_unload(watched_directory);
	EVENTUALLY(is_gone(pid));
	collector_stop();
}

/* Who was not counted for want of room may have something; and a list of a while ago says
 * nothing of this moment. Then it is as without a monitor. */
static void orphans_of_weak_monitors(void)
{
	unsigned row;
	pid_t pid;

	watched_begin("", MONITOR_FENTRY);
	pid = guarded_start("holder:3", "TRANSPORT=lease\nQUIET=1");
	row = kernel_mirror(pid, "rxe0");
	kernel_head->lost_objects = 1;
	process_kill(pid);
	CHECK(process_has(pid, ROW_ORPHAN)); /* what is there is there */
	kernel_free(row);
	EVENTUALLY(is_gone(pid));
	collector_stop();
	watched_begin("", MONITOR_NETLINK);
	pid = guarded_start("holder:3", "TRANSPORT=lease\nQUIET=1");
	row = kernel_mirror(pid, "rxe0");
	process_kill(pid);
	CHECK(is_gone(pid));
	wait_seconds(1);
	CHECK(collector_state().uncovered == 0 && events_of(EVENT_UNCOVERED, pid).count == 0);
	kernel_free(row);
	collector_stop();
}

static void drive(void)
{
	watched_prepare();
	RUN(death_without_orphan);
	RUN(orphan_for_a_moment);
	RUN(orphan_for_long);
	RUN(orphan_after_restart);
	RUN(orphans_of_weak_monitors);
}

int main(int argc, char **argv)
{
	static const struct scenario scenarios[] = {
		{ "holder", watched_holder },
		{ NULL, NULL },
	};

	return harness_main(argc, argv, scenarios, drive);
}
