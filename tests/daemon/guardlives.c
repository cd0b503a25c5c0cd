/* SPDX-License-Identifier: MIT */
/*
 * Guards and collectors that come and go: a collector that starts finds the slots of its tenants
 * again, and a guard that is missing, not ready or of another version is named as the reason. The
 * guard is one of files; collector and command are real.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fixture.h"
#include "guardfiles.h"
#include "harness.h"
#include "kernel.h"

/* ---- collectors that die */

static void restarts(void)
{
	struct guard_cgroup before[8];
	struct guard_head kept;
	__u32 slot;

	guard_fresh("[tenant b]\nmatch = cgroup=/b\nqp = 2\nguard = on\n"
		    "[tenant a]\nmatch = cgroup=/a\nqp = 5\nguard = on\n");
	slot = guard_slot("/a");
	guard_counts[slot].used[KIND_qp] = 3;
	collector_kill();
	memcpy(before, guard_tenants, sizeof(before));
	kept = *guard_head;
	CHECK(guard_limit("/a", KIND_qp) == 5 && guard_head->wanted);
	/* In another order: who is who is told by the names. */
	collector_policy("[tenant a]\nmatch = cgroup=/a\nqp = 6\nguard = on\n"
			 "[tenant b]\nmatch = cgroup=/b\nqp = 2\nguard = on\n");
	collector_start(guard_variables);
	CHECK(guard_slot("/a") == slot && guard_limit("/a", KIND_qp) == 6 &&
	      guard_limit("/b", KIND_qp) == 2);
	CHECK(!memcmp(before, guard_tenants, sizeof(before)), "something was changed");
	CHECK(guard_rule_slot("/a") == slot && guard_head->epoch == kept.epoch + 1,
	      "rules of another order");
	kept = *guard_head;
	collector_kill();
	collector_start(guard_variables);
	/* The earlier one may have died before it said that cgroups changed: look them up anew. */
	kept.epoch++;
	CHECK(!memcmp(before, guard_tenants, sizeof(before)) &&
		      !memcmp(&kept, guard_head, sizeof(kept)),
	      "something was changed");
	CHECK(guard_row("a").used[KIND_qp] == 3);
	/* What happened in between is noticed. */
	collector_kill();
	collector_forget_policy();
	collector_policy("[tenant a]\nmatch = cgroup=/a\nqp = 6\nguard = off\n");
	rmdir(cgroup_path("/b"));
	collector_start(guard_variables);
	CHECK(guard_slot("/a") == slot && guard_limit("/a", KIND_qp) == UNLIMITED);
	CHECK(guard_mapped() == 1 && guard_head->epoch == kept.epoch + 1, "mapped %u",
	      guard_mapped());
	command_output("guard on a");
	CHECK(guard_slot("/a") == slot && guard_limit("/a", KIND_qp) == 6);
	collector_stop();
	cgroup_make("/b");
}

/* After a restart one of a tenant's two cgroups is another tenant's: what was made before stays
 * with the first, whose limit it would have twice otherwise. */
static void restarts_with_another(const char *given, const char *left)
{
	char policy[256];
	__u32 slot;

	guard_fresh("[tenant c]\nmatch = cgroup=/a\nmatch = cgroup=/b\nqp = 5\nguard = on\n");
	slot = guard_slot(given);
	CHECK(slot && guard_slot(left) == slot);
	guard_counts[slot].used[KIND_qp] = 5;
	collector_kill();
	collector_forget_policy();
	snprintf(policy, sizeof(policy),
		 "[tenant d]\nmatch = cgroup=%s\nqp = 5\nguard = on\n"
		 "[tenant c]\nmatch = cgroup=%s\nqp = 5\nguard = on\n",
		 given, left);
	collector_policy(policy);
	collector_start(guard_variables);
	CHECK(guard_slot(left) == slot && guard_row("c").used[KIND_qp] == 5);
	CHECK(guard_slot(given) != slot && guard_row("d").used[KIND_qp] == 0, "slot %u of %u",
	      guard_slot(given), slot);
	/* One that has got another name keeps what it has. */
	collector_kill();
	collector_forget_policy();
	snprintf(policy, sizeof(policy), "[tenant e]\nmatch = cgroup=%s\nqp = 5\nguard = on\n",
		 left);
	collector_policy(policy);
	collector_start(guard_variables);
	CHECK(guard_slot(left) == slot && guard_row("e").used[KIND_qp] == 5);
	collector_stop();
}

static void restarts_with_other_tenants(void)
{
	restarts_with_another("/a", "/b");
	restarts_with_another("/b", "/a");
}

/* ---- guards that are not there */

static void absent_guards(void)
{
	struct guard_head unready = guard_usual(), newer = unready, other = unready;
	FILE *file;

	file = fopen(guard_lsm, "we");
	if (!file || fputs("lockdown,capability,yama\n", file) < 0 || fclose(file))
		abort();
	collector_fresh("[tenant a]\nmatch = cgroup=/a\nqp = 5\nguard = on\n", guard_variables);
	CHECK(guard_is("a", GUARANTEE_NONE, "no rdma_monitor is loaded"), "%s",
	      guard_row("a").reason);
	kernel_load(guard_directory, MONITOR_FENTRY);
	EVENTUALLY(guard_is("a", GUARANTEE_NONE,
				"BPF LSM is not active in this kernel: boot it with lsm=lockdown,capability,yama,bpf"),
	      "%s", guard_row("a").reason);
	unlink(guard_lsm);
	EVENTUALLY(guard_is("a", GUARANTEE_NONE, "rdma_monitor has loaded no guard"), "%s",
	      guard_row("a").reason);
	CHECK(strstr(command_output("guard status"), "not guarded: rdma_monitor has loaded no guard"));
	/* It comes, is not ready, is. */
	unready.armed = 0;
	guard_load(unready);
	EVENTUALLY(guard_is("a", GUARANTEE_NONE, "not attached it yet"), "%s",
	      guard_row("a").reason);
	CHECK(guard_limit("/a", KIND_qp) == 5 && guard_head->wanted);
	strcpy(guard_head->problem, "this kernel has no BPF LSM");
	EVENTUALLY(guard_is("a", GUARANTEE_NONE, "this kernel has no BPF LSM"));
	CHECK(!strcmp(guard_row(NULL).reason, "this kernel has no BPF LSM"));
	guard_head->problem[0] = '\0';
	guard_head->armed = 1;
	EVENTUALLY(guard_is("a", GUARANTEE_KERNEL, ""));
	CHECK(strstr(command_output("guard status"), "in the kernel") &&
	      strstr(command_output("guard status"), "by the library only: ctx") &&
	      strstr(command_output("doctor || true"), "tenants that the kernel guards: 1\n"));
	/* Another in its place, from the beginning; of another version, of other kinds; cut. */
	guard_log(GUARD_REFUSED, guard_slot("/a"), 4000011, KIND_qp, 5);
	CHECK(told_of(4000011).count == 1);
	guard_load(guard_usual());
	EVENTUALLY(guard_limit("/a", KIND_qp) == 5 && guard_head->wanted && guard_head->epoch == 1);
	guard_log(GUARD_REFUSED, guard_slot("/a"), 4000012, KIND_qp, 5);
	CHECK(told_of(4000012).count == 1);
	newer.version++;
	guard_load(newer);
	EVENTUALLY(guard_is("a", GUARANTEE_NONE, "another version of rdma_monitor"), "%s",
	      guard_row("a").reason);
	CHECK(strstr(guard_row("a").reason, "unload it with: rdma_monitor --unload"), "%s",
	      guard_row("a").reason);
	other.kinds++;
	guard_load(other);
	EVENTUALLY(guard_is("a", GUARANTEE_NONE, "another version of rdma_monitor"));
	CHECK(!guard_mapped() && !guard_head->wanted, "written to nevertheless");
	guard_load(guard_usual());
	EVENTUALLY(guard_is("a", GUARANTEE_KERNEL, ""));
	CHECK(truncate(harness_path("monitor/guard_counts"), 64) == 0);
	EVENTUALLY(guard_is("a", GUARANTEE_NONE, "guard_counts"), "%s", guard_row("a").reason);
	guard_load(guard_usual());
	EVENTUALLY(guard_is("a", GUARANTEE_KERNEL, ""));
	/* A line for each change, and not each second. */
	CHECK(occurrences(collector_log(), "tenant a: the guard is on, in the kernel") <= 4 &&
		      occurrences(collector_log(), "has not attached it yet") == 1,
	      "%s", collector_log());
	collector_stop();
	kernel_unload(guard_directory);
}

static void drive(void)
{
	guard_files_prepare();
	RUN(restarts);
	RUN(restarts_with_other_tenants);
	RUN(absent_guards);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, drive);
}
