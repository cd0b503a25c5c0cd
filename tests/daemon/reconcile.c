/* SPDX-License-Identifier: MIT */
/*
 * What the collector makes of a monitor's counts: processes that are not registered, and sums of
 * tenants, host and devices; also with monitors that come, go and are damaged. The kernel is one of
 * files, the guarded programs are real.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fixture.h"
#include "watched.h"

static void uncovered(void)
{
	char policy[128];
	struct proto_row row;
	pid_t bare, loaded, holder;
	unsigned bare_row, loaded_row;
	double before;

	snprintf(policy, sizeof(policy), "[tenant mine]\nmatch = uid=%u\nprocess.qp = 3\n",
		 (unsigned)geteuid());
	watched_begin(policy, MONITOR_FENTRY);
	holder = guarded_start("holder:2", "TRANSPORT=lease\nQUIET=1");
	kernel_mirror(holder, "rxe0");
	bare = unguarded_start();
	loaded = guarded_start("idle", "QUIET=1");
	before = seconds_now();
	bare_row = kernel_row(bare, "rxe0", "raw");
	kernel_set(bare_row, KIND_ctx, 1);
	kernel_set(bare_row, KIND_qp, 5);
	loaded_row = kernel_row(loaded, "rxe1", "inactive");
	kernel_set(loaded_row, MONITOR_driver, 1); /* whatever it is */
	EVENTUALLY(events_of(EVENT_UNCOVERED, bare).count, "not noticed");
	EVENTUALLY(events_of(EVENT_UNCOVERED, loaded).count, "not noticed");
	printf("uncovered processes were noticed after %.2f s\n", seconds_now() - before);
	CHECK(!strcmp(events_of(EVENT_UNCOVERED, bare).text, "raw: the library is not loaded"),
	      "%s", events_of(EVENT_UNCOVERED, bare).text);
	CHECK(strstr(events_of(EVENT_UNCOVERED, loaded).text, "loaded, but not registered"), "%s",
	      events_of(EVENT_UNCOVERED, loaded).text);

	row = collector_process(bare);
	CHECK(row.flags == (ROW_UNCOVERED | ROW_WATCHED), "%x", row.flags);
	CHECK(row.scope == ROW_PROCESS && !strcmp(row.tenant, "mine") && row.uid == geteuid());
	CHECK(!strcmp(row.command, "raw") && row.limit[KIND_qp] == 3);
	CHECK(row.used[KIND_qp] == 0 && row.kernel[KIND_qp] == 5 && row.kernel[KIND_mr] == 0);
	row = row_on_device(MESSAGE_GET_PROC_STATS, "", bare, "rxe0");
	CHECK(row.pid == bare && !strcmp(row.device, "rxe0") && row.kernel[KIND_qp] == 5);
	CHECK(row_on_device(MESSAGE_GET_PROC_STATS, "", bare, "rxe1").pid == 0);
	CHECK(row_on_device(MESSAGE_GET_PROC_STATS, "theirs", bare, "").pid == 0);
	row = collector_process(loaded);
	CHECK(row.flags == (ROW_UNCOVERED | ROW_WATCHED | ROW_INACTIVE), "%x", row.flags);
	row = collector_process(holder);
	CHECK(row.flags == ROW_WATCHED && row.kernel[KIND_qp] == 2, "%x", row.flags);
	CHECK(collector_state().uncovered == 2 && collector_state().processes == 1 &&
	      collector_state().drifting == 0);
	CHECK(!strcmp(collector_state().monitor, "fentry") &&
	      !collector_state().monitor_problem[0]);
	row = collector_tenant("mine");
	CHECK(row.flags & ROW_UNCOVERED && row.processes == 1 && row.used[KIND_qp] == 2 &&
	      row.kernel[KIND_qp] == 7);

	/* Who has nothing is nobody's concern; coming back is no news. */
	kernel_clear(bare_row);
	EVENTUALLY(collector_state().uncovered == 1);
	CHECK(!collector_process(bare).pid);
	kernel_set(bare_row, KIND_pd, 1);
	EVENTUALLY(collector_state().uncovered == 2);
	CHECK(events_of(EVENT_UNCOVERED, bare).count == 1);
	/* Another policy is another tenant. */
	collector_policy("");
	CHECK(collector_call(MESSAGE_REPLACE, NULL, NULL) == 0);
	EVENTUALLY(!strcmp(collector_process(bare).tenant, "default"));
	CHECK(collector_process(bare).flags & ROW_UNCOVERED);
	EVENTUALLY(collector_tenant("default").kernel[KIND_pd] == 1);
	/* Dead, and a child has it: still uncovered. Nobody has it: gone. */
	process_kill(bare);
	wait_seconds(SAMPLE);
	CHECK(collector_process(bare).flags & ROW_UNCOVERED);
	kernel_free(bare_row);
	EVENTUALLY(collector_state().uncovered == 1);
	/* Seen only after its death: when it lasts. */
	bare = unguarded_start();
	bare_row = kernel_row(bare, "rxe0", "late");
	process_kill(bare);
	before = seconds_now();
	kernel_set(bare_row, KIND_pd, 1);
	EVENTUALLY(collector_state().uncovered == 2 && events_of(EVENT_UNCOVERED, bare).count == 1);
	CHECK(seconds_now() - before > 1.9, "after %.2f s: too early", seconds_now() - before);
	word_store(WORD_END, 1);
	spawn_wait(holder);
	spawn_wait(loaded);
	collector_stop();
}

static void sums(void)
{
	pid_t lease, socket, bare;
	unsigned row, second;
	char policy[128];

	snprintf(policy, sizeof(policy), "[tenant mine]\nmatch = uid=%u\n[tenant theirs]\n",
		 (unsigned)geteuid());
	watched_begin(policy, MONITOR_KPROBE);
	lease = guarded_start("holder:2", "TRANSPORT=lease\nQUIET=1");
	socket = guarded_start("holder:3", "TRANSPORT=socket\nQUIET=1");
	bare = unguarded_start();
	kernel_mirror(lease, "rxe0");
	kernel_mirror(socket, "rxe0");
	row = kernel_row(bare, "rxe0", "raw");
	kernel_set(row, KIND_qp, 10);
	second = kernel_row(bare, "rxe0", "raw"); /* from another cgroup */
	kernel_set(second, KIND_qp, 100);
	row = kernel_row(bare, "rxe1", "raw");
	kernel_set(row, KIND_qp, 1000);
	row = kernel_row(bare, "", "raw"); /* of no device */
	kernel_set(row, KIND_cm_id, 4);
	kernel_set(kernel_row(0, "", ""), KIND_qp, 10000); /* of nobody known */
	EVENTUALLY(collector_tenant(NULL).kernel[KIND_qp] == 11115 &&
		   collector_process(bare).kernel[KIND_qp] == 1110);
	CHECK(collector_tenant("mine").kernel[KIND_qp] == 1115, "%llu",
	      (unsigned long long)collector_tenant("mine").kernel[KIND_qp]);
	CHECK(collector_tenant("mine").used[KIND_qp] == 5);
	CHECK(collector_tenant("theirs").kernel[KIND_qp] == 0);
	CHECK(collector_tenant(NULL).kernel[KIND_qp] == 11115);
	CHECK(collector_tenant(NULL).flags & ROW_UNCOVERED &&
	      collector_tenant(NULL).flags & ROW_WATCHED);
	CHECK(!(collector_tenant("theirs").flags & ROW_UNCOVERED));
	CHECK(row_on_device(MESSAGE_GET_STATS, "mine", 0, "rxe0").kernel[KIND_qp] == 115);
	CHECK(row_on_device(MESSAGE_GET_STATS, "mine", 0, "rxe1").kernel[KIND_qp] == 1000);
	CHECK(row_on_device(MESSAGE_GET_STATS, "", 0, "-").kernel[KIND_cm_id] == 4);
	CHECK(row_on_device(MESSAGE_GET_PROC_STATS, "", bare, "rxe0").kernel[KIND_qp] == 110);
	CHECK(row_on_device(MESSAGE_GET_PROC_STATS, "", lease, "rxe0").kernel[KIND_qp] == 2);
	CHECK(!strcmp(collector_state().monitor, "kprobe") && collector_state().uncovered == 1);
	/* A guarded process on a device that the books know nothing of. */
	row = kernel_row(lease, "rxe1", "guarded");
	kernel_set(row, KIND_mr, 6);
	EVENTUALLY(row_on_device(MESSAGE_GET_PROC_STATS, "", lease, "rxe1").kernel[KIND_mr] == 6);
	CHECK(row_on_device(MESSAGE_GET_PROC_STATS, "", lease, "rxe1").used[KIND_mr] == 0);
	/* What is not counted completely is not known. */
	kernel_head->observed &= ~(1ull << KIND_qp);
	EVENTUALLY(collector_tenant("mine").kernel[KIND_qp] == PROTO_UNKNOWN);
	CHECK(collector_process(bare).kernel[KIND_qp] == PROTO_UNKNOWN &&
	      collector_process(bare).kernel[KIND_cm_id] == 4);
	CHECK(!(collector_state().observed >> KIND_qp & 1) &&
	      collector_state().observed >> KIND_pd & 1);
	word_store(WORD_END, 1);
	spawn_wait(lease);
	spawn_wait(socket);
	process_kill(bare);
	collector_stop();
}

/* Devices that only the kernel knows get no number on the books: a program finds room there. */
static void devices_of_the_kernel(void)
{
	enum { DEVICES = 20 };
	struct proto_row row;
	char name[16];
	pid_t bare, holder;

	watched_begin("", MONITOR_FENTRY);
	bare = unguarded_start();
	for (int i = 0; i < DEVICES; i++) {
		snprintf(name, sizeof(name), "other%d", i);
		kernel_set(kernel_row(bare, name, "raw"), KIND_qp, 1);
	}
	EVENTUALLY(collector_process(bare).kernel[KIND_qp] == DEVICES);
	row = row_on_device(MESSAGE_GET_STATS, "", 0, "other19");
	CHECK(row.kernel[KIND_qp] == 1 && row.limit[KIND_qp] == UNLIMITED);
	CHECK(row_on_device(MESSAGE_GET_PROC_STATS, "", bare, "other7").kernel[KIND_qp] == 1);
	holder = guarded_start("holder:2", "TRANSPORT=lease\nQUIET=1");
	row = row_on_device(MESSAGE_GET_PROC_STATS, "", holder, "rxe0");
	CHECK(row.pid == holder && row.used[KIND_qp] == 2, "%u", (unsigned)row.used[KIND_qp]);
	CHECK(!row_on_device(MESSAGE_GET_PROC_STATS, "", holder, "-").pid);
	word_store(WORD_END, 1);
	spawn_wait(holder);
	process_kill(bare);
	collector_stop();
}

static int scope_count(const void *row, void *closure)
{
	unsigned *count = closure;

	count[((const struct proto_row *)row)->scope]++;
	return 0;
}

/* How many rows of each scope an answer has. */
static void filtered(enum message type, const char *tenant, uint32_t flags, unsigned ret_count[3])
{
	struct proto_choose choose = { .flags = flags };
	char problem[PROBLEM_SIZE];

	memset(ret_count, 0, 3 * sizeof(*ret_count));
	snprintf(choose.tenant, sizeof(choose.tenant), "%s", tenant);
	CHECK(proto_rows(collector_socket(), type, &choose, scope_count, ret_count,
			 COLLECTOR_PATIENCE_MS, problem) >= 0,
	      "%s", problem);
}

/* Both messages are one query; the flags say of whom. */
static void filters(void)
{
	static const struct {
		enum message type;
		const char *tenant;
		uint32_t flags;
		bool host, tenants, processes;
	} rows[] = {
		{ MESSAGE_GET_STATS, "", 0, true, true, false },
		{ MESSAGE_GET_STATS, "default", 0, false, true, false },
		{ MESSAGE_GET_STATS, "default", CHOOSE_HOST, true, false, false },
		{ MESSAGE_GET_STATS, "", CHOOSE_TENANTS, false, true, false },
		{ MESSAGE_GET_STATS, "", CHOOSE_HOST | CHOOSE_PROCESSES, true, false, true },
		{ MESSAGE_GET_PROC_STATS, "", 0, false, false, true },
		{ MESSAGE_GET_PROC_STATS, "default", CHOOSE_TENANTS, false, true, false },
	};
	unsigned count[3];
	pid_t holder;

	watched_begin("", MONITOR_FENTRY);
	holder = guarded_start("holder:2", "TRANSPORT=lease\nQUIET=1");
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		filtered(rows[i].type, rows[i].tenant, rows[i].flags, count);
		CHECK(!count[ROW_HOST] == !rows[i].host && !count[ROW_TENANT] == !rows[i].tenants &&
			      !count[ROW_PROCESS] == !rows[i].processes,
		      "row %u: %u, %u, %u", i, count[0], count[1], count[2]);
	}
	word_store(WORD_END, 1);
	spawn_wait(holder);
	collector_stop();
}

/* ---- the monitor itself */

static bool says(const char *mode, const char *problem)
{
	struct proto_status answer = collector_state();

	return !strcmp(answer.monitor, mode) && strstr(answer.monitor_problem, problem) &&
	       !answer.monitor_problem[0] == !problem[0];
}

static void cut(const char *name, off_t size)
{
	char path[160];

	snprintf(path, sizeof(path), "%s/%s", watched_directory, name);
	CHECK(truncate(path, size) == 0);
}

static void monitors(void)
{
	struct proto_row row;
	unsigned number;
	pid_t bare = unguarded_start();

	collector_fresh("", watched_variables);
	/* None. */
	CHECK(says("none", watched_directory) &&
		      strstr(collector_state().monitor_problem, "no rdma_monitor"),
	      "%s", collector_state().monitor_problem);
	row = collector_tenant(NULL);
	CHECK(!(row.flags & ROW_WATCHED) && row.kernel[KIND_qp] == 0 &&
	      !collector_state().observed);
	/* One comes. */
	kernel_load(watched_directory, MONITOR_FENTRY);
	number = kernel_row(bare, "rxe0", "raw");
	kernel_set(number, KIND_qp, 5);
	EVENTUALLY(says("fentry", ""), "%s", collector_state().monitor_problem);
	EVENTUALLY(collector_process(bare).kernel[KIND_qp] == 5);
	CHECK(collector_tenant(NULL).flags & ROW_WATCHED);
	kernel_head->lost_objects = 3;
	kernel_head->lost_rows = 4;
	CHECK(collector_state().lost_objects == 3 && collector_state().lost_rows == 4);
	/* Another, in its place. */
	kernel_load(watched_directory, MONITOR_NETLINK);
	number = kernel_row(bare, "rxe0", "raw");
	kernel_set(number, KIND_qp, 6);
	EVENTUALLY(says("netlink", ""), "%s", collector_state().monitor_problem);
	EVENTUALLY(collector_process(bare).kernel[KIND_qp] == 6);
	CHECK(collector_state().lost_objects == 0 && collector_state().uncovered == 1);
	/* Cut while it is being read; whole again. */
	cut("rows", 4096);
	EVENTUALLY(says("none", "/rows: "), "%s", collector_state().monitor_problem);
	CHECK(collector_state().uncovered == 0 && !(collector_tenant(NULL).flags & ROW_WATCHED));
	CHECK(collector_tenant(NULL).kernel[KIND_qp] == 0);
	kernel_load(watched_directory, MONITOR_KPROBE);
	EVENTUALLY(says("kprobe", ""), "%s", collector_state().monitor_problem);
	cut("head", 8);
	EVENTUALLY(says("none", "/head: "), "%s", collector_state().monitor_problem);
	/* Of another version, of another table of kinds, of no known mode. */
	kernel_load(watched_directory, MONITOR_FENTRY);
	EVENTUALLY(says("fentry", ""));
	kernel_load(watched_directory, MONITOR_FENTRY);
	kernel_head->version = MONITOR_VERSION + 1;
	kernel_head->load++; /* the collector may have opened it already */
	EVENTUALLY(says("none", "another version of rdma_monitor"), "%s",
	      collector_state().monitor_problem);
	kernel_load(watched_directory, MONITOR_FENTRY);
	kernel_head->kinds++;
	kernel_head->load++;
	EVENTUALLY(says("none", "another version of rdma_monitor"), "%s",
	      collector_state().monitor_problem);
	kernel_load(watched_directory, (enum monitor_mode)77);
	EVENTUALLY(says("none", "its programs are not attached"), "%s", collector_state().monitor_problem);
	/* And gone. */
	kernel_unload(watched_directory);
	EVENTUALLY(says("none", "no rdma_monitor"), "%s", collector_state().monitor_problem);
	CHECK(occurrences(collector_log(), "no rdma_monitor") == 2, "%s", collector_log());
	process_kill(bare);
	collector_stop(); /* it is the same one */
}

/* A process without the library has the tenant that a pattern makes, too, while the kernel has
 * objects of it. */
static void patterns(void)
{
	char policy[128], name[NAME_SIZE];
	unsigned row;
	pid_t bare;

	snprintf(policy, sizeof(policy), "[tenant me-%%u]\nmatch = uid=%u\n", (unsigned)geteuid());
	snprintf(name, sizeof(name), "me-%u", (unsigned)geteuid());
	watched_begin(policy, MONITOR_KPROBE);
	bare = unguarded_start();
	CHECK(collector_tenant(name).scope != ROW_TENANT);
	row = kernel_row(bare, "rxe0", "raw");
	kernel_set(row, KIND_qp, 5);
	EVENTUALLY(collector_tenant(name).kernel[KIND_qp] == 5);
	wait_seconds(2 * SAMPLE);
	CHECK(collector_tenant(name).flags & ROW_UNCOVERED &&
	      collector_tenant(name).flags & ROW_PATTERN);
	kernel_clear(row);
	EVENTUALLY(collector_tenant(name).scope != ROW_TENANT);
	collector_must_live();
	process_kill(bare);
	collector_stop();
}

static void drive(void)
{
	watched_prepare();
	RUN(monitors);
	RUN(uncovered);
	RUN(sums);
	RUN(devices_of_the_kernel);
	RUN(filters);
	RUN(patterns);
}

int main(int argc, char **argv)
{
	static const struct scenario scenarios[] = {
		{ "holder", watched_holder },
		{ "idle", watched_idle },
		{ NULL, NULL },
	};

	return harness_main(argc, argv, scenarios, drive);
}
