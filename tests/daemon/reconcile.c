/* SPDX-License-Identifier: MIT */
/*
 * What the collector makes of a monitor's counts: processes that nobody guards, books and
 * kernel that differ, sums of tenants and host, orphans; and monitors that come, go and are
 * damaged. The kernel is one of files (kernel.h), the guarded programs are real.
 */
#include "collector.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"
#include "harness.h"
#include "kernel.h"

/* Words of the shared page. */
enum { WORD_READY, WORD_GO, WORD_END, WORD_MADE };

/* The collector looks every second, give or take a quarter. */
#define SAMPLE 1.25

static char directory[128], variables[256];

static void wait_seconds(double seconds)
{
	usleep((useconds_t)(seconds * 1e6));
}

/* ---- processes */

/* "N": a guarded one that makes N QPs, and one more when told. */
static void run_holder(const char *argument)
{
	struct fixture fixture = fixture_open();

	for (int i = 0; i < atoi(argument); i++)
		CHECK(qp_make(&fixture, IBV_QPT_RC) != NULL);
	word_add(WORD_READY, 1);
	word_await(WORD_END, 1);
}

/* Has the library, and no use for it. */
static void run_idle(const char *argument)
{
	word_add(WORD_READY, 1);
	word_await(WORD_END, 1);
}

/*
 * "ROW": makes and frees QPs all the time, and is its own kernel: an object is there when
 * the verb has returned, and gone before the verb that frees it is called. In between, most of
 * the time, the books have one more.
 */
static void run_churner(const char *argument)
{
	struct fixture fixture = fixture_open();
	unsigned row = (unsigned)atoi(argument), held = 0, seed = (unsigned)getpid();
	struct ibv_qp *qp[8];

	kernel_open(harness_path("monitor"));
	word_add(WORD_READY, 1);
	word_await(WORD_GO, 1);
	while (!word_load(WORD_END)) {
		if (held < 8 && (!held || rand_r(&seed) % 2)) {
			CHECK((qp[held++] = qp_make(&fixture, IBV_QPT_RC)) != NULL);
			usleep(rand_r(&seed) % 2000);
			__atomic_add_fetch(&kernel_rows[row].made[KIND_qp], 1, __ATOMIC_SEQ_CST);
		} else {
			__atomic_add_fetch(&kernel_rows[row].gone[KIND_qp], 1, __ATOMIC_SEQ_CST);
			usleep(rand_r(&seed) % 2000);
			CHECK(ibv_destroy_qp(qp[--held]) == 0);
		}
		word_add(WORD_MADE, 1);
	}
}

static pid_t guarded(const char *scenario, const char *settings)
{
	uint64_t ready = word_load(WORD_READY);
	pid_t pid = spawn_start(scenario, settings);

	NEED(word_load(WORD_READY) > ready, "%s", scenario);
	return pid;
}

/* One without the library. */
static pid_t unguarded(void)
{
	pid_t pid = fork_child();

	if (pid == 0) {
		for (;;)
			pause();
	}
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* ---- what the collector says */

static struct proto_status collector_state(void)
{
	struct proto_status answer = { 0 };

	CHECK(collector_call(MESSAGE_STATUS, NULL, &answer) == 0);
	return answer;
}

struct wanted {
	enum proto_event_type type;
	pid_t pid;
	unsigned count;
	char text[256]; /* of the last */
};

static int event_count(const void *row, void *closure)
{
	const struct proto_event *event = row;
	struct wanted *wanted = closure;

	if (event->type != wanted->type || (wanted->pid && event->pid != wanted->pid))
		return 0;
	wanted->count++;
	snprintf(wanted->text, sizeof(wanted->text), "%.250s", event->text);
	return 0;
}

/* Asks for events only, which makes the collector look at nothing. */
static struct wanted events(enum proto_event_type type, pid_t pid)
{
	struct wanted wanted = { .type = type, .pid = pid };
	struct proto_choose all = { 0 };
	char problem[PROBLEM_SIZE];

	CHECK(proto_rows(collector_socket(), MESSAGE_EVENTS, &all, event_count, &wanted,
			 COLLECTOR_PATIENCE_MS, problem) >= 0,
	      "%s", problem);
	return wanted;
}

static int row_keep(const void *row, void *closure)
{
	const struct proto_row *given = row;

	memcpy(closure, given, sizeof(*given));
	return 0;
}

/* The last row of an answer about one device. */
static struct proto_row on_device(enum message type, const char *tenant, pid_t pid,
				  const char *device)
{
	struct proto_choose choose = { .pid = pid };
	struct proto_row row = { 0 };
	char problem[PROBLEM_SIZE];

	snprintf(choose.tenant, sizeof(choose.tenant), "%s", tenant);
	snprintf(choose.device, sizeof(choose.device), "%s", device);
	CHECK(proto_rows(collector_socket(), type, &choose, row_keep, &row, COLLECTOR_PATIENCE_MS,
			 problem) >= 0,
	      "%s", problem);
	return row;
}

static bool has_flag(pid_t pid, uint32_t flag)
{
	return collector_process(pid).flags & flag;
}

/* The kernel has what the books say. */
static unsigned mirrored(pid_t pid, const char *device)
{
	struct proto_row books = collector_process(pid);
	unsigned row = kernel_row(pid, device, "guarded");

	CHECK(books.used[KIND_ctx] == 1 && books.used[KIND_cqe], "not registered");
	for (unsigned kind = 0; kind < KIND_COUNT; kind++)
		kernel_set(row, kind, books.used[kind]);
	return row;
}

static void begin(const char *policy, enum monitor_mode mode)
{
	words_clear();
	kernel_load(directory, mode);
	collector_fresh(policy, variables);
}

/* ---- */

static void uncovered(void)
{
	char policy[128];
	struct proto_row row;
	pid_t bare, loaded, holder;
	unsigned bare_row, loaded_row;
	double before;

	snprintf(policy, sizeof(policy), "[tenant mine]\nmatch = uid=%u\nprocess.qp = 3\n",
		 (unsigned)geteuid());
	begin(policy, MONITOR_FENTRY);
	holder = guarded("holder:2", "TRANSPORT=lease\nQUIET=1");
	mirrored(holder, "rxe0");
	bare = unguarded();
	loaded = guarded("idle", "QUIET=1");
	before = seconds_now();
	bare_row = kernel_row(bare, "rxe0", "raw");
	kernel_set(bare_row, KIND_ctx, 1);
	kernel_set(bare_row, KIND_qp, 5);
	loaded_row = kernel_row(loaded, "rxe1", "inactive");
	kernel_set(loaded_row, MONITOR_driver, 1); /* whatever it is */
	EVENTUALLY(events(EVENT_UNCOVERED, bare).count, "not noticed");
	EVENTUALLY(events(EVENT_UNCOVERED, loaded).count, "not noticed");
	printf("uncovered processes were noticed after %.2f s\n", seconds_now() - before);
	CHECK(!strcmp(events(EVENT_UNCOVERED, bare).text, "raw: the library is not loaded"), "%s",
	      events(EVENT_UNCOVERED, bare).text);
	CHECK(strstr(events(EVENT_UNCOVERED, loaded).text, "loaded, but not registered"), "%s",
	      events(EVENT_UNCOVERED, loaded).text);

	row = collector_process(bare);
	CHECK(row.flags == (ROW_UNCOVERED | ROW_WATCHED), "%x", row.flags);
	CHECK(row.scope == ROW_PROCESS && !strcmp(row.tenant, "mine") && row.uid == geteuid());
	CHECK(!strcmp(row.command, "raw") && row.limit[KIND_qp] == 3);
	CHECK(row.used[KIND_qp] == 0 && row.kernel[KIND_qp] == 5 && row.kernel[KIND_mr] == 0);
	row = on_device(MESSAGE_GET_PROC_STATS, "", bare, "rxe0");
	CHECK(row.pid == bare && !strcmp(row.device, "rxe0") && row.kernel[KIND_qp] == 5);
	CHECK(on_device(MESSAGE_GET_PROC_STATS, "", bare, "rxe1").pid == 0);
	CHECK(on_device(MESSAGE_GET_PROC_STATS, "theirs", bare, "").pid == 0);
	row = collector_process(loaded);
	CHECK(row.flags == (ROW_UNCOVERED | ROW_WATCHED | ROW_INACTIVE), "%x", row.flags);
	row = collector_process(holder);
	CHECK(row.flags == ROW_WATCHED && row.kernel[KIND_qp] == 2, "%x", row.flags);
	CHECK(collector_state().uncovered == 2 && collector_state().processes == 1 && collector_state().drifting == 0);
	CHECK(!strcmp(collector_state().monitor, "fentry") && !collector_state().monitor_problem[0]);
	row = collector_tenant("mine");
	CHECK(row.flags & ROW_UNCOVERED && row.processes == 1 && row.used[KIND_qp] == 2 &&
	      row.kernel[KIND_qp] == 7);

	/* Who has nothing is nobody's concern; coming back is no news. */
	kernel_clear(bare_row);
	EVENTUALLY(collector_state().uncovered == 1);
	CHECK(!collector_process(bare).pid);
	kernel_set(bare_row, KIND_pd, 1);
	EVENTUALLY(collector_state().uncovered == 2);
	CHECK(events(EVENT_UNCOVERED, bare).count == 1);
	/* Another policy is another tenant. */
	collector_policy("");
	CHECK(collector_call(MESSAGE_REPLACE, NULL, NULL) == 0);
	EVENTUALLY(!strcmp(collector_process(bare).tenant, "default"));
	CHECK(collector_process(bare).flags & ROW_UNCOVERED);
	EVENTUALLY(collector_tenant("default").kernel[KIND_pd] == 1);
	/* Dead, and a child has it: still uncovered. Nobody has it: gone. */
	end(bare);
	wait_seconds(SAMPLE);
	CHECK(collector_process(bare).flags & ROW_UNCOVERED);
	kernel_free(bare_row);
	EVENTUALLY(collector_state().uncovered == 1);
	/* Seen only after its death: when it lasts. */
	bare = unguarded();
	bare_row = kernel_row(bare, "rxe0", "late");
	end(bare);
	before = seconds_now();
	kernel_set(bare_row, KIND_pd, 1);
	EVENTUALLY(collector_state().uncovered == 2 && events(EVENT_UNCOVERED, bare).count == 1);
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
	begin(policy, MONITOR_KPROBE);
	lease = guarded("holder:2", "TRANSPORT=lease\nQUIET=1");
	socket = guarded("holder:3", "TRANSPORT=socket\nQUIET=1");
	bare = unguarded();
	mirrored(lease, "rxe0");
	mirrored(socket, "rxe0");
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
	CHECK(on_device(MESSAGE_GET_STATS, "mine", 0, "rxe0").kernel[KIND_qp] == 115);
	CHECK(on_device(MESSAGE_GET_STATS, "mine", 0, "rxe1").kernel[KIND_qp] == 1000);
	CHECK(on_device(MESSAGE_GET_STATS, "", 0, "-").kernel[KIND_cm_id] == 4);
	CHECK(on_device(MESSAGE_GET_PROC_STATS, "", bare, "rxe0").kernel[KIND_qp] == 110);
	CHECK(on_device(MESSAGE_GET_PROC_STATS, "", lease, "rxe0").kernel[KIND_qp] == 2);
	CHECK(!strcmp(collector_state().monitor, "kprobe") && collector_state().uncovered == 1);
	/* A guarded process on a device that the books know nothing of. */
	row = kernel_row(lease, "rxe1", "guarded");
	kernel_set(row, KIND_mr, 6);
	EVENTUALLY(on_device(MESSAGE_GET_PROC_STATS, "", lease, "rxe1").kernel[KIND_mr] == 6);
	CHECK(on_device(MESSAGE_GET_PROC_STATS, "", lease, "rxe1").used[KIND_mr] == 0);
	/* What is not counted completely is not known. */
	kernel_head->observed &= ~(1ull << KIND_qp);
	EVENTUALLY(collector_tenant("mine").kernel[KIND_qp] == PROTO_UNKNOWN);
	CHECK(collector_process(bare).kernel[KIND_qp] == PROTO_UNKNOWN &&
	      collector_process(bare).kernel[KIND_cm_id] == 4);
	CHECK(!(collector_state().observed >> KIND_qp & 1) && collector_state().observed >> KIND_pd & 1);
	word_store(WORD_END, 1);
	spawn_wait(lease);
	spawn_wait(socket);
	end(bare);
	collector_stop();
}

/* Devices that only the kernel knows get no number on the books: a program finds room there. */
static void devices_of_the_kernel(void)
{
	enum { DEVICES = 20 };
	struct proto_row row;
	char name[16];
	pid_t bare, holder;

	begin("", MONITOR_FENTRY);
	bare = unguarded();
	for (int i = 0; i < DEVICES; i++) {
		snprintf(name, sizeof(name), "other%d", i);
		kernel_set(kernel_row(bare, name, "raw"), KIND_qp, 1);
	}
	EVENTUALLY(collector_process(bare).kernel[KIND_qp] == DEVICES);
	row = on_device(MESSAGE_GET_STATS, "", 0, "other19");
	CHECK(row.kernel[KIND_qp] == 1 && row.limit[KIND_qp] == UNLIMITED);
	CHECK(on_device(MESSAGE_GET_PROC_STATS, "", bare, "other7").kernel[KIND_qp] == 1);
	holder = guarded("holder:2", "TRANSPORT=lease\nQUIET=1");
	row = on_device(MESSAGE_GET_PROC_STATS, "", holder, "rxe0");
	CHECK(row.pid == holder && row.used[KIND_qp] == 2, "%u", (unsigned)row.used[KIND_qp]);
	CHECK(!on_device(MESSAGE_GET_PROC_STATS, "", holder, "-").pid);
	word_store(WORD_END, 1);
	spawn_wait(holder);
	end(bare);
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

	begin("", MONITOR_FENTRY);
	holder = guarded("holder:2", "TRANSPORT=lease\nQUIET=1");
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

static bool drifts(pid_t pid, enum kind kind, int64_t amount)
{
	struct proto_row row = collector_process(pid);

	return row.drift[kind] == amount && !(row.flags & ROW_DRIFT) == !amount;
}

/* A difference for less than a sample. Returns false if this machine made it longer. */
static bool brief_difference(unsigned row)
{
	double begin = seconds_now(), lasted;

	kernel_set(row, KIND_qp, 5);
	wait_seconds(.6);
	kernel_set(row, KIND_qp, 2);
	lasted = seconds_now() - begin;
	wait_seconds(1.3);
	return lasted < .7; /* two samples are further apart */
}

static void differences_without_drift(void)
{
	unsigned row, before, brief = 0;
	pid_t lease;

	begin("", MONITOR_FENTRY);
	lease = guarded("holder:2", "TRANSPORT=lease\nQUIET=1");
	row = mirrored(lease, "rxe0");
	/* What differs by nature, for ever; the other differences last for less than a sample. */
	kernel_set(row, KIND_cqe, 100000);
	kernel_set(row, KIND_send_wr, 0);
	kernel_set(row, KIND_recv_wr, 100000);
	kernel_set(row, KIND_cm_id, 3);
	for (unsigned round = 0; brief < 3 && round < 20; round++) {
		before = events(EVENT_DRIFT, 0).count;
		if (!brief_difference(row))
			continue;
		brief++;
		CHECK(events(EVENT_DRIFT, 0).count == before, "%s", events(EVENT_DRIFT, 0).text);
	}
	printf("%u brief differences\n", brief);
	if (!brief)
		skip_part("the machine made every brief difference a long one");
	word_store(WORD_END, 1);
	spawn_wait(lease);
	collector_stop();
}

/* The kernel has more, and more still; then the same again. */
static void drift_comes_and_goes(void)
{
	struct proto_row owner;
	unsigned row;
	pid_t lease;

	begin("", MONITOR_FENTRY);
	lease = guarded("holder:2", "TRANSPORT=lease\nQUIET=1");
	row = mirrored(lease, "rxe0");
	kernel_set(row, KIND_cqe, 100000);
	kernel_set(row, KIND_qp, 5);
	EVENTUALLY(events(EVENT_DRIFT, lease).count == 1, "not noticed");
	CHECK(drifts(lease, KIND_qp, 3));
	CHECK(strstr(events(EVENT_DRIFT, lease).text, ": qp +3") &&
		      !strstr(events(EVENT_DRIFT, lease).text, "cqe"),
	      "%s", events(EVENT_DRIFT, lease).text);
	owner = collector_tenant("default");
	CHECK(owner.flags & ROW_DRIFT && owner.drift[KIND_qp] == 3 && collector_state().drifting == 1);
	CHECK(collector_tenant(NULL).drift[KIND_qp] == 3);
	kernel_set(row, KIND_qp, 7);
	EVENTUALLY(drifts(lease, KIND_qp, 5));
	kernel_set(row, KIND_qp, 2);
	EVENTUALLY(drifts(lease, KIND_qp, 0));
	CHECK(collector_state().drifting == 0 && !(collector_tenant("default").flags & ROW_DRIFT));
	CHECK(events(EVENT_DRIFT, 0).count == 1);
	word_store(WORD_END, 1);
	spawn_wait(lease);
	collector_stop();
}

/* What was made over a limit that is only audited is in the books, in every mode. */
static void drift_and_audit(void)
{
	unsigned socket_row;
	pid_t socket, audit;

	begin("[tenant default]\nqp = 1\nmode = audit\n", MONITOR_FENTRY);
	audit = guarded("holder:3", "TRANSPORT=lease\nQUIET=1");
	mirrored(audit, "rxe0");
	CHECK(collector_process(audit).used[KIND_qp] == 3);
	collector_policy("[tenant default]\nqp = 100\nmode = audit\n");
	EVENTUALLY(collector_tenant("default").limit[KIND_qp] == 100);
	socket = guarded("holder:2", "TRANSPORT=socket\nQUIET=1");
	socket_row = mirrored(socket, "rxe0");
	kernel_set(socket_row, KIND_qp, 4);
	wait_seconds(3 * SAMPLE);
	CHECK(drifts(socket, KIND_qp, 0) && drifts(audit, KIND_qp, 0));
	collector_policy("[tenant default]\nqp = 100\nmode = enforce\n");
	EVENTUALLY(drifts(socket, KIND_qp, 2));
	CHECK(drifts(audit, KIND_qp, 0) && collector_state().drifting == 1);
	/* A registration that ends takes its drift along. */
	end(socket);
	end(audit);
	EVENTUALLY(collector_state().drifting == 0);
	collector_stop();
}

/* The kernel has less: a drift only when it has been so for long, and not by DevX. */
static void drift_to_less(void)
{
	unsigned less_row, devx_row;
	pid_t less, devx;
	double before;

	begin("", MONITOR_FENTRY);
	less = guarded("holder:2", "TRANSPORT=lease\nQUIET=1");
	devx = guarded("holder:2", "TRANSPORT=lease\nQUIET=1");
	less_row = mirrored(less, "rxe0");
	devx_row = mirrored(devx, "rxe0");
	kernel_set(devx_row, MONITOR_driver, 1);
	before = seconds_now();
	kernel_set(devx_row, KIND_qp, 1);
	kernel_set(less_row, KIND_mr, 0);
	kernel_set(less_row, KIND_qp, 1);
	EVENTUALLY(drifts(less, KIND_qp, -1));
	CHECK(seconds_now() - before > 5, "after %.2f s: too early", seconds_now() - before);
	wait_seconds(SAMPLE);
	CHECK(drifts(devx, KIND_qp, 0) && collector_state().drifting == 1);
	end(less);
	EVENTUALLY(collector_state().drifting == 0);
	word_store(WORD_END, 1);
	spawn_wait(devx);
	collector_stop();
}

/* Books and kernel of busy processes differ at nearly every moment, and nobody hears of it. */
static void churn_without_drift(void)
{
	enum { CHURNERS = 4 };
	unsigned drifting = 0;
	pid_t pid[CHURNERS];
	char scenario[32];
	double until;

	begin("", MONITOR_FENTRY);
	for (int i = 0; i < CHURNERS; i++) {
		struct proto_row books;

		snprintf(scenario, sizeof(scenario), "churner:%d", i + 1);
		pid[i] = guarded(scenario, "TRANSPORT=lease\nQUIET=1");
		books = collector_process(pid[i]);
		CHECK(kernel_row(pid[i], "rxe0", "churner") == (unsigned)i + 1);
		for (unsigned kind = 0; kind < KIND_COUNT; kind++)
			kernel_set((unsigned)i + 1, kind, books.used[kind]);
	}
	word_store(WORD_GO, 1);
	/* More samples than the most patient comparison needs. */
	for (until = seconds_now() + 11 * SAMPLE * test_factor(); seconds_now() < until;
	     usleep(50000))
		drifting += collector_state().drifting;
	EVENTUALLY(word_load(WORD_MADE) > 1000, "%llu", (unsigned long long)word_load(WORD_MADE));
	CHECK(drifting == 0 && events(EVENT_DRIFT, 0).count == 0, "%s",
	      events(EVENT_DRIFT, 0).text);
	/* Being busy hides nothing. */
	__atomic_add_fetch(&kernel_rows[1].made[KIND_qp], 20, __ATOMIC_SEQ_CST);
	EVENTUALLY(events(EVENT_DRIFT, pid[0]).count == 1, "not noticed");
	word_store(WORD_END, 1);
	for (int i = 0; i < CHURNERS; i++)
		CHECK(spawn_wait(pid[i]) == 0);
	collector_stop();
}

/* ---- orphans */

static bool is_gone(pid_t pid)
{
	return !collector_process(pid).pid;
}

/* Nothing is left: over at once, and no orphan. */
static void death_without_orphan(void)
{
	unsigned row;
	pid_t pid;

	begin("", MONITOR_FENTRY);
	pid = guarded("holder:3", "TRANSPORT=lease\nQUIET=1");
	row = mirrored(pid, "rxe0");
	kernel_free(row); /* as if it had been */
	end(pid);
	CHECK(is_gone(pid) && events(EVENT_DIED, pid).count == 1);
	CHECK(events(EVENT_ORPHANED, pid).count == 0);
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

	begin("", MONITOR_FENTRY);
	for (unsigned round = 0; judged < 2 && round < 10; round++) {
		double begin = seconds_now(), taken;
		pid_t pid = guarded("holder:3", "TRANSPORT=lease\nQUIET=1");

		row = mirrored(pid, "rxe0");
		end(pid);
		CHECK(has_flag(pid, ROW_ORPHAN) && collector_tenant(NULL).used[KIND_qp] == 3);
		wait_seconds(.3);
		CHECK(has_flag(pid, ROW_ORPHAN));
		kernel_free(row);
		taken = given_back(pid);
		if (taken >= 0) {
			judged++;
			CHECK(taken < .3, "%.2f s", taken);
		}
		CHECK(collector_tenant(NULL).used[KIND_qp] == 0 &&
		      collector_tenant(NULL).processes == 0);
		CHECK(events(EVENT_DIED, pid).count == 1);
		/* It takes longer to be an orphan for good. */
		if (seconds_now() - begin < 1)
			CHECK(events(EVENT_ORPHANED, pid).count == 0);
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

	begin("", MONITOR_FENTRY);
	pid = guarded("holder:3", "TRANSPORT=socket\nQUIET=1");
	row = mirrored(pid, "rxe0");
	end(pid);
	EVENTUALLY(events(EVENT_ORPHANED, pid).count == 1);
	wait_seconds(SAMPLE);
	CHECK(has_flag(pid, ROW_ORPHAN) && collector_tenant(NULL).used[KIND_qp] == 3);
	CHECK(events(EVENT_ORPHANED, pid).count == 1 && events(EVENT_UNCOVERED, pid).count == 0);
	CHECK(collector_state().drifting == 0 && collector_state().uncovered == 0);
	/* It goes bit by bit; the orphan with the last. */
	kernel_set(row, KIND_qp, 0);
	wait_seconds(2);
	CHECK(has_flag(pid, ROW_ORPHAN) && collector_state().drifting == 0);
	kernel_clear(row);
	EVENTUALLY(is_gone(pid));
	CHECK(events(EVENT_DIED, pid).count == 1);
	kernel_free(row);
	collector_stop();
}

/* Over a restart, and until the monitor goes. */
static void orphan_after_restart(void)
{
	pid_t pid;

	begin("", MONITOR_FENTRY);
	pid = guarded("holder:3", "TRANSPORT=lease\nQUIET=1");
	mirrored(pid, "rxe0");
	collector_kill();
	end(pid);
	collector_start(variables);
	CHECK(has_flag(pid, ROW_ORPHAN));
	wait_seconds(2);
	CHECK(has_flag(pid, ROW_ORPHAN));
	kernel_unload(directory);
	EVENTUALLY(is_gone(pid));
	collector_stop();
}

/* Who was not counted for want of room may have something; and a list of a while ago says
 * nothing of this moment. Then it is as without a monitor. */
static void orphans_of_weak_monitors(void)
{
	unsigned row;
	pid_t pid;

	begin("", MONITOR_FENTRY);
	pid = guarded("holder:3", "TRANSPORT=lease\nQUIET=1");
	row = mirrored(pid, "rxe0");
	kernel_head->lost_objects = 1;
	end(pid);
	CHECK(has_flag(pid, ROW_ORPHAN)); /* what is there is there */
	kernel_free(row);
	EVENTUALLY(is_gone(pid));
	collector_stop();
	begin("", MONITOR_NETLINK);
	pid = guarded("holder:3", "TRANSPORT=lease\nQUIET=1");
	row = mirrored(pid, "rxe0");
	end(pid);
	CHECK(is_gone(pid));
	wait_seconds(1);
	CHECK(collector_state().uncovered == 0 && events(EVENT_UNCOVERED, pid).count == 0);
	kernel_free(row);
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

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	CHECK(truncate(path, size) == 0);
}

static void monitors(void)
{
	struct proto_row row;
	unsigned number;
	pid_t bare = unguarded();

	collector_fresh("", variables);
	/* None. */
	CHECK(says("none", directory) && strstr(collector_state().monitor_problem, "no rdma_monitor"), "%s",
	      collector_state().monitor_problem);
	row = collector_tenant(NULL);
	CHECK(!(row.flags & ROW_WATCHED) && row.kernel[KIND_qp] == 0 && !collector_state().observed);
	/* One comes. */
	kernel_load(directory, MONITOR_FENTRY);
	number = kernel_row(bare, "rxe0", "raw");
	kernel_set(number, KIND_qp, 5);
	EVENTUALLY(says("fentry", ""), "%s", collector_state().monitor_problem);
	EVENTUALLY(collector_process(bare).kernel[KIND_qp] == 5);
	CHECK(collector_tenant(NULL).flags & ROW_WATCHED);
	kernel_head->lost_objects = 3;
	kernel_head->lost_rows = 4;
	CHECK(collector_state().lost_objects == 3 && collector_state().lost_rows == 4);
	/* Another, in its place. */
	kernel_load(directory, MONITOR_NETLINK);
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
	kernel_load(directory, MONITOR_KPROBE);
	EVENTUALLY(says("kprobe", ""), "%s", collector_state().monitor_problem);
	cut("head", 8);
	EVENTUALLY(says("none", "/head: "), "%s", collector_state().monitor_problem);
	/* Of another version, of another table of kinds, of no known mode. */
	kernel_load(directory, MONITOR_FENTRY);
	EVENTUALLY(says("fentry", ""));
	kernel_load(directory, MONITOR_FENTRY);
	kernel_head->version = MONITOR_VERSION + 1;
	kernel_head->load++; /* the collector may have opened it already */
	EVENTUALLY(says("none", "another version of rdma_monitor"), "%s",
	      collector_state().monitor_problem);
	kernel_load(directory, MONITOR_FENTRY);
	kernel_head->kinds++;
	kernel_head->load++;
	EVENTUALLY(says("none", "another version of rdma_monitor"), "%s",
	      collector_state().monitor_problem);
	kernel_load(directory, (enum monitor_mode)77);
	EVENTUALLY(says("none", "watches nothing"), "%s", collector_state().monitor_problem);
	/* And gone. */
	kernel_unload(directory);
	EVENTUALLY(says("none", "no rdma_monitor"), "%s", collector_state().monitor_problem);
	CHECK(occurrences(collector_log(), "no rdma_monitor") == 2, "%s", collector_log());
	end(bare);
	collector_stop(); /* it is the same one */
}

static void drive(void)
{
	snprintf(directory, sizeof(directory), "%s", harness_path("monitor"));
	snprintf(variables, sizeof(variables), MONITOR_VARIABLE "=%s\n", directory);
	chmod(harness_path(""), 0711);
	cases_at_once();
	RUN(monitors);
	RUN(uncovered);
	RUN(sums);
	RUN(devices_of_the_kernel);
	RUN(filters);
	RUN(differences_without_drift);
	RUN(drift_comes_and_goes);
	RUN(drift_and_audit);
	RUN(drift_to_less);
	RUN(churn_without_drift);
	RUN(death_without_orphan);
	RUN(orphan_for_a_moment);
	RUN(orphan_for_long);
	RUN(orphan_after_restart);
	RUN(orphans_of_weak_monitors);
}

int main(int argc, char **argv)
{
	static const struct scenario scenarios[] = {
		{ "holder", run_holder },
		{ "idle", run_idle },
		{ "churner", run_churner },
		{ NULL, NULL },
	};

	return harness_main(argc, argv, scenarios, drive);
}
