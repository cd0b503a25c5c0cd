/* SPDX-License-Identifier: MIT */
/*
 * What the collector makes of the guard's log: each refusal in the kernel is one event with a
 * number, told once. The guard is one of files; collector and command are real.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"
#include "guardfiles.h"
#include "harness.h"
#include "kernel.h"

/* A guarded one that has a QP, and was refused another by the library. */
static void run_refused(const char *argument)
{
	struct fixture fixture = fixture_open();

	CHECK(qp_make(&fixture, IBV_QPT_RC) && !qp_make(&fixture, IBV_QPT_RC));
	word_store(0, 1);
	for (;;)
		pause();
}

/* Both rings number the refusals of a process, and never alike. */
static void numbers_of_refusals(void)
{
	char line[64];
	pid_t pid;

	guard_fresh(
		"[tenant default]\nprocess.qp = 1\n[tenant a]\nmatch = cgroup=/a\nguard = on\n");
	pid = spawn_start("refused", "TRANSPORT=lease\nQUIET=1");
	NEED(word_load(0) == 1);
	guard_log(GUARD_REFUSED, guard_slot("/a"), pid, KIND_qp, 5);
	CHECK(told_of(pid).count == 1 && told_of(pid).last.number == 2);
	snprintf(line, sizeof(line), "explain %d-1", (int)pid);
	CHECK(strstr(command_output(line), "Refused by the library."), "%s", command_output(line));
	snprintf(line, sizeof(line), "explain %d-2", (int)pid);
	CHECK(strstr(command_output(line), "Refused in the kernel (guard of tenant a)."), "%s",
	      command_output(line));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	collector_stop();
}

/* Waits for two samples, and asks the collector nothing: new cgroups show that it looked. */
static void samples_pass(void)
{
	cgroup_make("/mark1");
	EVENTUALLY(guard_slot("/mark1"));
	cgroup_make("/mark2");
	EVENTUALLY(guard_slot("/mark2"));
}

static void refusals_are_told(void)
{
	struct told told;
	const char *text;
	__u32 slot;

	guard_fresh("[tenant a]\nmatch = cgroup=/a\nqp = 5\nguard = on\n"
		    "[tenant marks]\nmatch = cgroup=/mark?\nguard = on\n");
	slot = guard_slot("/a");
	guard_log(GUARD_REFUSED, slot, 4000001, KIND_qp, 5);
	told = told_of(4000001); /* asked for before a second has passed */
	CHECK(told.count == 1 && told.last.type == EVENT_REFUSED && told.last.number == 1);
	CHECK(!strcmp(told.last.tenant, "a") && told.last.kind == KIND_qp && told.last.used == 5 &&
	      told.last.wanted == 1 && told.last.limit == 5 && strstr(told.last.text, "intruder"));
	guard_log(GUARD_OVERRUN, slot, 4000001, KIND_mr, 9);
	guard_log(GUARD_KILLED, slot, 4000001, KIND_qp, 5);
	told = told_of(4000001);
	CHECK(told.count == 3 && told.last.type == EVENT_KILLED && told.last.number == 3 &&
	      strstr(told.last.text, "intruder"));
	guard_log(GUARD_REFUSED, slot, 4000002, KIND_mr_bytes, 4096);
	text = command_output("explain 4000002-1"); /* not asked for before */
	CHECK(strstr(text, "Refused in the kernel (guard of tenant a)") &&
		      strstr(text, "limit set tenant a mr_bytes=4097"),
	      "%s", text);
	text = command_output("explain 4000001-2");
	CHECK(strstr(text, "overrun") && strstr(text, "could not refuse"), "%s", text);
	text = command_output("explain 4000001-3");
	CHECK(strstr(text, "No correct program"), "%s", text);
	text = command_output("events");
	CHECK(strstr(text, "intruder: refused in the kernel: qp used 5/5, wanted 1 more, "
			   "limit of the tenant, from ") &&
		      strstr(text, "policy.conf:3, event 4000001-1"),
	      "%s", text);
	text = command_output("-j events");
	CHECK(strstr(text, "\"ring\":\"kernel\""), "%s", text);
	/* Told once; also by itself; and what came too fast is told in the log. */
	CHECK(told_of(4000001).count == 3);
	guard_log(GUARD_REFUSED, slot, 4000003, KIND_qp, 5);
	samples_pass();
	for (unsigned i = 0; i < GUARD_LOG + 10; i++)
		guard_log(GUARD_REFUSED, slot, 4000004, KIND_qp, 5);
	CHECK(told_of(4000003).count == 1 && told_of(4000004).count == GUARD_LOG, "%u",
	      told_of(4000004).count);
	CHECK(strstr(collector_log(), ": 10 refusals of the guard are missing in the events"), "%s",
	      collector_log());
	/* One that is being written is waited for. */
	guard_log(GUARD_REFUSED, slot, 4000005, KIND_qp, 5);
	__atomic_store_n(&guard_entries[(guard_head->logged - 1) % GUARD_LOG].number, 0,
			 __ATOMIC_SEQ_CST);
	CHECK(told_of(4000005).count == 0);
	__atomic_store_n(&guard_entries[(guard_head->logged - 1) % GUARD_LOG].number,
			 guard_head->logged, __ATOMIC_SEQ_CST);
	CHECK(told_of(4000005).count == 1);
	/* Of nobody's slot, and of kinds that are none. */
	guard_log(GUARD_REFUSED, 77, 4000006, KIND_qp, 5);
	guard_log(GUARD_REFUSED, slot, 4000006, (enum kind)KIND_COUNT, 5);
	told = told_of(4000006);
	CHECK(told.count == 1 && !told.last.tenant[0]);
	/* Events begin anew with each collector. */
	collector_kill();
	collector_start(guard_variables);
	CHECK(told_of(4000001).count == 0);
	guard_log(GUARD_REFUSED, slot, 4000001, KIND_qp, 5);
	CHECK(told_of(4000001).count == 1);
	collector_stop();
}

static void drive(void)
{
	guard_files_prepare();
	RUN(refusals_are_told);
	RUN(numbers_of_refusals);
}

int main(int argc, char **argv)
{
	static const struct scenario scenarios[] = {
		{ "refused", run_refused },
		{ NULL, NULL },
	};

	return harness_main(argc, argv, scenarios, drive);
}
