/* SPDX-License-Identifier: MIT */
/*
 * Posts that are counted and paced, without a collector: both interfaces, what is counted, what a
 * refused post costs, whose functions stand in contexts and queue pairs, and that a call leaves
 * errno, order and threads alone.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fakeverbs.h"
#include "fixture.h"
#include "harness.h"
#include "ledger/layout.h"
#include "ledger/view.h"

static struct posted posted_now(void)
{
	static struct ledger_view view;
	char problem[PROBLEM_SIZE];
	struct posted posted = { 0 };
	pid_t pid;

	if (!view.header && ledger_view_open(&view, shm_name(), problem) < 0)
		abort();
	for (unsigned seat = 0; seat < ledger_view_seats(&view); seat++) {
		const struct layout_slot *slot = ledger_view_seat(&view, seat, &pid);

		for (unsigned device = 0; slot && pid == getpid() && device < DEVICES_MAX; device++) {
			struct posted one = ledger_view_gauges(slot, device)->posted;

			posted_fold(&one);
			posted.bytes += one.bytes;
			posted.operations += one.operations;
			posted.errors += one.errors;
			posted.delays += one.delays;
			posted.delayed_ns += one.delayed_ns;
			posted.waiting += one.waiting;
		}
	}
	return posted;
}

static int post(struct ibv_qp *qp, uint32_t length)
{
	struct ibv_sge sge = { .length = length };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_send(qp, &wr, &bad);
}

/* Each way to give a request its size. */
static void counted(const char *argument)
{
	struct fixture fixture = fixture_open();
	struct ibv_qp *qp = qp_make(&fixture, IBV_QPT_RC);
	struct ibv_qp_ex *ex = qp_extended_make(&fixture);
	struct ibv_sge list[3] = { { .length = 1 }, { .length = 20 }, { .length = 300 } };
	struct ibv_data_buf buffers[2] = { { NULL, 4000 }, { NULL, 50000 } };
	struct ibv_send_wr third = { .sg_list = list, .num_sge = 3 };
	struct ibv_send_wr second = { .next = &third, .num_sge = 0 };
	struct ibv_send_wr first = { .next = &second, .sg_list = list, .num_sge = 1 }, *bad = NULL;
	struct ibv_wc wc[4];
	struct posted posted;

	errno = 77;
	CHECK(ibv_post_send(qp, &first, &bad) == 0 && errno == 77);
	posted = posted_now();
	CHECK(posted.bytes == 1 + 321 && posted.operations == 3, "%llu",
	      (unsigned long long)posted.bytes);
	/* Nothing of a post that failed counts, nor of what follows the bad one. */
	fake_set("ibv_post_send", FAKE_FAIL, ENOMEM, 0, 1);
	CHECK(ibv_post_send(qp, &first, &bad) == ENOMEM && bad == &first);
	posted = posted_now();
	CHECK(posted.bytes == 322 && posted.operations == 3, "%llu",
	      (unsigned long long)posted.bytes);
	if (!CHECK(ex != NULL))
		return;
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_sge(ex, 1, 0, 1000);
	ibv_wr_rdma_write(ex, 1, 0);
	ibv_wr_set_sge_list(ex, 3, list);
	ibv_wr_send_imm(ex, 0);
	ibv_wr_set_inline_data(ex, NULL, 7);
	ibv_wr_rdma_read(ex, 1, 0);
	ibv_wr_set_inline_data_list(ex, 2, buffers);
	CHECK(posted_now().operations == 3, "counted before wr_complete");
	CHECK(ibv_wr_complete(ex) == 0);
	posted = posted_now();
	CHECK(posted.bytes == 322 + 1000 + 321 + 7 + 54000 && posted.operations == 7, "%llu",
	      (unsigned long long)posted.bytes);
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_sge(ex, 1, 0, 1000);
	ibv_wr_abort(ex);
	CHECK(posted_now().operations == 7, "an aborted batch counts");
	fake_set("ibv_poll_cq", FAKE_CODE, 3, 0, 1);
	CHECK(ibv_poll_cq(fixture.cq, 4, wc) == 3 && posted_now().errors == 0);
	CHECK(posted_now().delays == 0, "far below the pace");
	CHECK(ibv_destroy_qp(&ex->qp_base) == 0 && ibv_destroy_qp(qp) == 0);
	fixture_close(&fixture);
}

static bool is_ours(void *function)
{
	Dl_info info;

	return dladdr(function, &info) && strstr(info.dli_fname, "librdma_intercept");
}

/* Without a pace the functions are the provider's own; with one all of them are ours. */
static void pointers(const char *argument)
{
	struct fixture fixture = fixture_open();
	struct ibv_qp_ex *ex = qp_extended_make(&fixture);
	bool ours = argument[0] == 'p';

	if (!CHECK(ex != NULL))
		return;
	CHECK(is_ours((void *)fixture.context->ops.post_send) == ours);
	CHECK(is_ours((void *)fixture.context->ops.poll_cq) == ours);
	CHECK(!is_ours((void *)fixture.context->ops.post_recv));
	CHECK(is_ours((void *)ex->wr_start) == ours && is_ours((void *)ex->wr_complete) == ours);
	CHECK(is_ours((void *)ex->wr_send) == ours && is_ours((void *)ex->wr_set_sge) == ours);
	CHECK(!is_ours((void *)ex->wr_set_ud_addr));
	CHECK(ibv_destroy_qp(&ex->qp_base) == 0);
	fixture_close(&fixture);
}

/* A post waits for the debt of the one before, at its full size; the time is the bucket's. */
static void paced(const char *argument)
{
	struct fixture fixture = fixture_open();
	struct ibv_qp *qp = qp_make(&fixture, IBV_QPT_RC);
	struct ibv_qp_ex *ex = qp_extended_make(&fixture);
	double begun = seconds_now(), took;
	struct posted posted;

	errno = 77;
	for (int i = 0; i < 5; i++)
		CHECK(post(qp, 1 << 20) == 0 && errno == 77);
	/* 5 MiB at 10 MiB/s with 64 KiB to begin with: the last one waited for 4 MiB. */
	took = seconds_now() - begun;
	CHECK(took >= 0.39, "%.3f s", took);
	posted = posted_now();
	/* At most: a process that did not run for a while finds its debt paid. */
	CHECK(posted.delays > 0 && posted.delays <= 4, "%llu", (unsigned long long)posted.delays);
	CHECK(posted.waiting == 0 && posted.bytes == 5 << 20);
	CHECK(posted.delayed_ns > 0 && (double)posted.delayed_ns <= took * 1e9, "%llu ns",
	      (unsigned long long)posted.delayed_ns);
	/* The other interface shares the bucket. */
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_sge(ex, 1, 0, 100);
	CHECK(ibv_wr_complete(ex) == 0 && errno == 77);
	took = seconds_now() - begun;
	CHECK(took >= 0.49, "%.3f s", took);
	CHECK(ibv_destroy_qp(qp) == 0);
	fixture_close(&fixture);
}

enum { THREADS = 4, POSTS = 20000, FORKS = 300, QPS = 100 };

static void *thread_posts(void *closure)
{
	for (int i = 0; i < POSTS; i++)
		CHECK(post(closure, 3) == 0);
	return NULL;
}

/* Threads at once: nothing is lost or counted twice, at and below the pace. */
static void threads(const char *argument)
{
	struct fixture fixture = fixture_open();
	struct ibv_qp *qp = qp_make(&fixture, IBV_QPT_RC);
	pthread_t thread[THREADS];
	struct posted posted;

	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_create(&thread[i], NULL, thread_posts, qp) == 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	posted = posted_now();
	CHECK(posted.operations == THREADS * POSTS && posted.bytes == 3 * THREADS * POSTS, "%llu",
	      (unsigned long long)posted.operations);
	CHECK(ibv_destroy_qp(qp) == 0);
	fixture_close(&fixture);
}

/* Lists that no provider reads are not read by us, and a bad request that the provider does not name
 * is none. */
static void unread(const char *argument)
{
	struct fixture fixture = fixture_open();
	struct ibv_qp *qp = qp_make(&fixture, IBV_QPT_RC);
	struct ibv_send_wr *const wild = (struct ibv_send_wr *)0x1234567, *bad = wild;
	struct ibv_sge sge = { .length = 7 };
	struct ibv_send_wr long_list = { .sg_list = &sge, .num_sge = INT32_MAX };
	struct ibv_send_wr no_list = { .num_sge = 1, .opcode = IBV_WR_LOCAL_INV };
	struct ibv_send_wr one = { .sg_list = &sge, .num_sge = 1 };

	CHECK(ibv_post_send(qp, &long_list, &bad) == 0 && ibv_post_send(qp, &no_list, &bad) == 0);
	CHECK(posted_now().bytes == 0 && posted_now().operations == 2);
	fake_set("ibv_post_send", FAKE_FAIL_SILENT, 0, 0, 1);
	CHECK(ibv_post_send(qp, &one, &bad) == EOPNOTSUPP && bad == wild);
	CHECK(posted_now().bytes == 0 && posted_now().operations == 2);
	/* Queue pairs of some providers have no room for what the conversion reads. */
	CHECK(fake_calls("ibv_qp_to_qp_ex") == 0, "a plain queue pair was converted");
	CHECK(ibv_destroy_qp(qp) == 0);
	fixture_close(&fixture);
}

/* A child with its parent's queue pair has a pace of its own, and is not charged to the parent. */
static void forked(const char *argument)
{
	struct fixture fixture = fixture_open();
	struct ibv_qp *qp = qp_make(&fixture, IBV_QPT_RC);
	int status;
	pid_t child;

	CHECK(post(qp, 5) == 0);
	child = fork_child();
	if (child == 0) {
		double begun = seconds_now();

		for (int i = 0; i < 10; i++)
			if (post(qp, 1))
				_exit(1);
		_exit(seconds_now() - begun < 0.19 || posted_now().operations != 10);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0, "%d", status);
	CHECK(posted_now().bytes == 5 && posted_now().operations == 1);
	CHECK(ibv_destroy_qp(qp) == 0);
	fixture_close(&fixture);
}

static bool makes_stop;

static void *thread_makes(void *closure)
{
	struct fixture *fixture = closure;

	while (!__atomic_load_n(&makes_stop, __ATOMIC_RELAXED)) {
		struct ibv_qp_ex *ex = qp_extended_make(fixture);

		CHECK(ex && ibv_destroy_qp(&ex->qp_base) == 0);
	}
	return NULL;
}

/* On a context of its own: locks of the provider may be held in the parent's. */
static int makes_some(void)
{
	struct fixture fixture = fixture_open();

	for (int i = 0; i < QPS; i++)
		if (!qp_extended_make(&fixture))
			return 1;
	return 0;
}

/* Children that are forked while another thread makes queue pairs make some themselves. The thread
 * ends before we wait, so that a child that hangs is noticed. */
static void forked_amid(const char *argument)
{
	struct fixture fixture = fixture_open();
	bool fine = true;

	for (int i = 0; i < FORKS && fine; i++) {
		pthread_t thread;
		int status = -1;
		pid_t child;

		__atomic_store_n(&makes_stop, false, __ATOMIC_RELAXED);
		CHECK(pthread_create(&thread, NULL, thread_makes, &fixture) == 0);
		usleep(1000);
		child = fork_child();
		if (child == 0)
			_exit(makes_some());
		__atomic_store_n(&makes_stop, true, __ATOMIC_RELAXED);
		pthread_join(thread, NULL);
		fine = EVENTUALLY(waitpid(child, &status, WNOHANG) == child, "child %d hangs", i) &&
		       CHECK(status == 0, "child %d ended with %d", i, status);
		if (!fine)
			kill(child, SIGKILL);
	}
	fixture_close(&fixture);
}

static void driver(void)
{
	static const struct {
		const char *scenario, *settings;
	} rows[] = {
		{ "counted", "PACE=bytes=1000G/s burst 1000G" },
		{ "pointers:paced", "PACE=ops=1000000/s" },
		{ "pointers:bare", "" },
		{ "paced", "PACE=bytes=10M/s burst 64K" },
		{ "threads", "PACE=bytes=1000G/s" },
		{ "threads:operations", "PACE=ops=400000/s burst 100,bytes=100M/s" },
		{ "unread", "PACE=bytes=1000G/s" },
		{ "forked", "PACE=ops=20/s burst 5" },
#ifndef __SANITIZE_ADDRESS__ /* a child may find a lock of its allocator taken */
		{ "forked_amid", "PACE=bytes=1000G/s" },
#endif
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		CASE(rows[i].scenario)
			CHECK(spawn(rows[i].scenario, rows[i].settings) == 0);
}

int main(int argc, char **argv)
{
	static const struct scenario scenarios[] = {
		{ "counted", counted }, { "pointers", pointers }, { "paced", paced },
		{ "threads", threads }, { "forked", forked },	  { "forked_amid", forked_amid },
		{ "unread", unread },
		{ NULL, NULL },
	};

	return harness_main(argc, argv, scenarios, driver);
}
