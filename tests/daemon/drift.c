/* SPDX-License-Identifier: MIT */
/*
 * Drift: the collector reports a process whose objects in the kernel differ from the books for
 * long, and no difference that lasts a moment. The kernel is one of files, the guarded programs are
 * real.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fixture.h"
#include "watched.h"

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

	watched_begin("", MONITOR_FENTRY);
	lease = guarded_start("holder:2", "TRANSPORT=lease\nQUIET=1");
	row = kernel_mirror(lease, "rxe0");
	/* What differs by nature, for ever; the other differences last for less than a sample. */
	kernel_set(row, KIND_cqe, 100000);
	kernel_set(row, KIND_send_wr, 0);
	kernel_set(row, KIND_recv_wr, 100000);
	kernel_set(row, KIND_cm_id, 3);
	for (unsigned round = 0; brief < 3 && round < 20; round++) {
		before = events_of(EVENT_DRIFT, 0).count;
		if (!brief_difference(row))
			continue;
		brief++;
		CHECK(events_of(EVENT_DRIFT, 0).count == before, "%s",
		      events_of(EVENT_DRIFT, 0).text);
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

	watched_begin("", MONITOR_FENTRY);
	lease = guarded_start("holder:2", "TRANSPORT=lease\nQUIET=1");
	row = kernel_mirror(lease, "rxe0");
	kernel_set(row, KIND_cqe, 100000);
	kernel_set(row, KIND_qp, 5);
	EVENTUALLY(events_of(EVENT_DRIFT, lease).count == 1, "not noticed");
	CHECK(drifts(lease, KIND_qp, 3));
	CHECK(strstr(events_of(EVENT_DRIFT, lease).text, ": qp +3") &&
		      !strstr(events_of(EVENT_DRIFT, lease).text, "cqe"),
	      "%s", events_of(EVENT_DRIFT, lease).text);
	owner = collector_tenant("default");
	CHECK(owner.flags & ROW_DRIFT && owner.drift[KIND_qp] == 3 &&
	      collector_state().drifting == 1);
	CHECK(collector_tenant(NULL).drift[KIND_qp] == 3);
	kernel_set(row, KIND_qp, 7);
	EVENTUALLY(drifts(lease, KIND_qp, 5));
	kernel_set(row, KIND_qp, 2);
	EVENTUALLY(drifts(lease, KIND_qp, 0));
	CHECK(collector_state().drifting == 0 && !(collector_tenant("default").flags & ROW_DRIFT));
	CHECK(events_of(EVENT_DRIFT, 0).count == 1);
	word_store(WORD_END, 1);
	spawn_wait(lease);
	collector_stop();
}

/* What was made over a limit that is only audited is in the books, in every mode. */
static void drift_and_audit(void)
{
	unsigned socket_row;
	pid_t socket, audit;

	watched_begin("[tenant default]\nqp = 1\nmode = audit\n", MONITOR_FENTRY);
	audit = guarded_start("holder:3", "TRANSPORT=lease\nQUIET=1");
	kernel_mirror(audit, "rxe0");
	CHECK(collector_process(audit).used[KIND_qp] == 3);
	collector_policy("[tenant default]\nqp = 100\nmode = audit\n");
	EVENTUALLY(collector_tenant("default").limit[KIND_qp] == 100);
	socket = guarded_start("holder:2", "TRANSPORT=socket\nQUIET=1");
	socket_row = kernel_mirror(socket, "rxe0");
	kernel_set(socket_row, KIND_qp, 4);
	wait_seconds(3 * SAMPLE);
	CHECK(drifts(socket, KIND_qp, 0) && drifts(audit, KIND_qp, 0));
	collector_policy("[tenant default]\nqp = 100\nmode = enforce\n");
	EVENTUALLY(drifts(socket, KIND_qp, 2));
	CHECK(drifts(audit, KIND_qp, 0) && collector_state().drifting == 1);
	/* A registration that ends takes its drift along. */
	process_kill(socket);
	process_kill(audit);
	EVENTUALLY(collector_state().drifting == 0);
	collector_stop();
}

/* The kernel has less: a drift only when it has been so for long, and not by DevX. */
static void drift_to_less(void)
{
	unsigned less_row, devx_row;
	pid_t less, devx;
	double before;

	watched_begin("", MONITOR_FENTRY);
	less = guarded_start("holder:2", "TRANSPORT=lease\nQUIET=1");
	devx = guarded_start("holder:2", "TRANSPORT=lease\nQUIET=1");
	less_row = kernel_mirror(less, "rxe0");
	devx_row = kernel_mirror(devx, "rxe0");
	kernel_set(devx_row, MONITOR_driver, 1);
	before = seconds_now();
	kernel_set(devx_row, KIND_qp, 1);
	kernel_set(less_row, KIND_mr, 0);
	kernel_set(less_row, KIND_qp, 1);
	EVENTUALLY(drifts(less, KIND_qp, -1));
	CHECK(seconds_now() - before > 5, "after %.2f s: too early", seconds_now() - before);
	wait_seconds(SAMPLE);
	CHECK(drifts(devx, KIND_qp, 0) && collector_state().drifting == 1);
	process_kill(less);
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

	watched_begin("", MONITOR_FENTRY);
	for (int i = 0; i < CHURNERS; i++) {
		struct proto_row books;

		snprintf(scenario, sizeof(scenario), "churner:%d", i + 1);
		pid[i] = guarded_start(scenario, "TRANSPORT=lease\nQUIET=1");
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
	CHECK(drifting == 0 && events_of(EVENT_DRIFT, 0).count == 0, "%s",
	      events_of(EVENT_DRIFT, 0).text);
	/* Being busy hides nothing. */
	__atomic_add_fetch(&kernel_rows[1].made[KIND_qp], 20, __ATOMIC_SEQ_CST);
	EVENTUALLY(events_of(EVENT_DRIFT, pid[0]).count == 1, "not noticed");
	word_store(WORD_END, 1);
	for (int i = 0; i < CHURNERS; i++)
		CHECK(spawn_wait(pid[i]) == 0);
	collector_stop();
}

static void drive(void)
{
	watched_prepare();
	RUN(differences_without_drift);
	RUN(drift_comes_and_goes);
	RUN(drift_and_audit);
	RUN(drift_to_less);
	RUN(churn_without_drift);
}

int main(int argc, char **argv)
{
	static const struct scenario scenarios[] = {
		{ "holder", watched_holder },
		{ "churner", run_churner },
		{ NULL, NULL },
	};

	return harness_main(argc, argv, scenarios, drive);
}
