/* SPDX-License-Identifier: MIT */
/*
 * Limits of a port without a collector (RDMA_INTERCEPT_LIMITS=port:rxe0/1:...): when a QP takes a
 * place and gives it back, also with threads that move one QP, in closed contexts, in forked
 * children and after SIGKILL; and that several processes share the limit.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fakeverbs.h"
#include "fixture.h"
#include "harness.h"

enum { QPS = 6, THREADS = 4, MOVES = 3000 };

static int port_set(struct ibv_qp *qp, unsigned port)
{
	struct ibv_qp_attr attr = { .qp_state = port ? IBV_QPS_INIT : IBV_QPS_RESET,
				    .port_num = (uint8_t)port };

	return ibv_modify_qp(qp, &attr, port ? IBV_QP_STATE | IBV_QP_PORT : IBV_QP_STATE);
}

static uint64_t on_port(enum kind kind, unsigned port)
{
	return used_on("rxe0", (enum kind)kind_on_port(kind, port));
}

/* The limit is 2 QPs and 1 address handle. */
static void life(const char *argument)
{
	struct fixture fixture = fixture_open();
	struct ibv_ah_attr address = { .port_num = 1 };
	struct ibv_wc wc = { 0 };
	struct ibv_qp *qp[QPS];
	struct ibv_ah *ah;
	unsigned long calls;

	for (int i = 0; i < QPS; i++)
		CHECK((qp[i] = qp_make(&fixture, IBV_QPT_RC)) != NULL);
	errno = 0;
	CHECK(port_set(qp[0], 1) == 0 && port_set(qp[1], 1) == 0 && errno == 0);
	CHECK(on_port(KIND_qp, 1) == 2 && used_on("rxe0", KIND_qp) == QPS);
	calls = fake_calls("ibv_modify_qp");
	CHECK(port_set(qp[2], 1) == EDQUOT && errno == EDQUOT);
	CHECK(fake_calls("ibv_modify_qp") == calls && on_port(KIND_qp, 1) == 2);
	CHECK(port_set(qp[2], 2) == 0 && on_port(KIND_qp, 2) == 1);
	fake_set("ibv_modify_qp", FAKE_CODE, EINVAL, 0, 1);
	CHECK(port_set(qp[0], 2) == EINVAL && on_port(KIND_qp, 1) == 2 && on_port(KIND_qp, 2) == 1);
	CHECK(port_set(qp[0], 2) == 0 && on_port(KIND_qp, 1) == 1 && on_port(KIND_qp, 2) == 2);
	CHECK(port_set(qp[0], 0) == 0 && on_port(KIND_qp, 2) == 1);
	CHECK(ibv_destroy_qp(qp[1]) == 0 && on_port(KIND_qp, 1) == 0);
	/* A destruction that fails gives nothing back. */
	CHECK(port_set(qp[3], 1) == 0);
	fake_set("ibv_destroy_qp", FAKE_CODE, EBUSY, 0, 1);
	CHECK(ibv_destroy_qp(qp[3]) == EBUSY && on_port(KIND_qp, 1) == 1);
	CHECK((ah = ibv_create_ah(fixture.pd, &address)) && on_port(KIND_ah, 1) == 1);
	CHECK(!ibv_create_ah(fixture.pd, &address) && errno == EDQUOT);
	CHECK(!ibv_create_ah_from_wc(fixture.pd, &wc, NULL, 1) && errno == EDQUOT);
	CHECK(ibv_destroy_ah(ah) == 0 && on_port(KIND_ah, 1) == 0);
	CHECK((ah = ibv_create_ah_from_wc(fixture.pd, &wc, NULL, 1)) && on_port(KIND_ah, 1) == 1);
	/* Closing the context frees what is in it. */
	CHECK(ibv_close_device(fixture.context) == 0);
	CHECK(on_port(KIND_qp, 1) == 0 && on_port(KIND_qp, 2) == 0 && on_port(KIND_ah, 1) == 0);
}

static struct ibv_qp *shared_qp;

static void *move_about(void *closure)
{
	unsigned seed = (unsigned)(uintptr_t)closure;

	for (int i = 0; i < MOVES; i++)
		port_set(shared_qp, (unsigned)rand_r(&seed) % 4);
	return NULL;
}

/* Threads that move one QP: whatever the order, it is counted on the port that it is on. */
static void threads(const char *argument)
{
	struct fixture fixture = fixture_open();
	pthread_t thread[THREADS];
	uint64_t sum = 0;

	shared_qp = qp_make(&fixture, IBV_QPT_RC);
	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK(pthread_create(&thread[i], NULL, move_about, (void *)(i + 1)) == 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	for (unsigned port = 1; port <= PORTS_COUNTED; port++)
		sum += on_port(KIND_qp, port);
	CHECK(sum <= 1, "one QP counts %llu times", (unsigned long long)sum);
	CHECK(port_set(shared_qp, 3) == 0 && on_port(KIND_qp, 3) == 1);
	CHECK(port_set(shared_qp, 0) == 0 && on_port(KIND_qp, 3) == 0);
	CHECK(on_port(KIND_qp, 1) == 0 && on_port(KIND_qp, 2) == 0);
	ibv_destroy_qp(shared_qp);
	fixture_close(&fixture);
}

static unsigned overtaking_port;

static void overtake(int signal)
{
	port_set(shared_qp, overtaking_port);
}

/* Another call moves the QP while this one is in the real verb: a signal handler, so that the
 * order is certain. What counts is the order in which the calls return. */
static void overtaken(const char *argument)
{
	struct fixture fixture = fixture_open();

	shared_qp = qp_make(&fixture, IBV_QPT_RC);
	signal(SIGUSR1, overtake);
	for (unsigned from = 0; from < 4; from++)
		for (unsigned to = 0; to < 4; to++)
			for (overtaking_port = 0; overtaking_port < 4; overtaking_port++) {
				CHECK(port_set(shared_qp, from) == 0);
				fake_set("ibv_modify_qp", FAKE_RAISE, SIGUSR1, 0, 1);
				CHECK(port_set(shared_qp, to) == 0);
				for (unsigned port = 1; port < 4; port++)
					CHECK(on_port(KIND_qp, port) == (port == to),
					      "from %u to %u, overtaken by %u: %llu on %u", from,
					      to, overtaking_port,
					      (unsigned long long)on_port(KIND_qp, port), port);
			}
	ibv_destroy_qp(shared_qp);
	fixture_close(&fixture);
}

/* "N[w]": gets N of QPS QPs onto port 1; with w it waits to be killed. */
static void fill(const char *argument)
{
	struct fixture fixture = fixture_open();
	unsigned got = 0;

	for (int i = 0; i < QPS; i++)
		got += port_set(qp_make(&fixture, IBV_QPT_RC), 1) == 0;
	CHECK(got == (unsigned)atoi(argument), "%u, not %d", got, atoi(argument));
	word_add(0, 1);
	if (strchr(argument, 'w'))
		pause();
}

/* A child has counts of its own, and what its parent holds stays the parent's. */
static void child(const char *argument)
{
	struct fixture fixture = fixture_open();
	struct ibv_qp *qp = qp_make(&fixture, IBV_QPT_RC);
	pid_t pid;
	int status;

	CHECK(port_set(qp, 1) == 0);
	pid = fork();
	if (pid == 0) {
		struct fixture own = fixture_open();
		struct ibv_qp *mine = qp_make(&own, IBV_QPT_RC);

		_exit(port_set(mine, 1) == 0 && on_port(KIND_qp, 1) == 2 &&
				      port_set(qp_make(&own, IBV_QPT_RC), 1) == EDQUOT ?
			      0 :
			      1);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0, "status %x", status);
	CHECK(on_port(KIND_qp, 1) == 1);
	ibv_destroy_qp(qp);
	CHECK(on_port(KIND_qp, 1) == 0);
	fixture_close(&fixture);
}

static void killed(void)
{
	pid_t pid;

	shm_remove();
	words_clear();
	pid = spawn_start("fill:4w", "LIMITS=port:rxe0/1:qp=4\nQUIET=1");
	NEED(word_load(0) == 1);
	CHECK(on_port(KIND_qp, 1) == 4);
	spawn("fill:0", "QUIET=1");
	kill(pid, SIGKILL);
	CHECK(spawn_wait(pid) == 128 + SIGKILL);
	spawn("fill:4", "QUIET=1");
	shm_remove();
}

static void modes(void)
{
	shm_remove();
	log_clear();
	spawn("fill:6", "LIMITS=port:rxe0/1:qp=2\nMODE=warn\nQUIET=1");
	CHECK(strstr(log_text(), "over limit, allowed: ibv_modify_qp: tenant=default device=rxe0/1 qp "
				 "used 2/2, wanted 1 more, limit of the port") != NULL,
	      "%s", log_text());
	shm_remove();
	spawn("fill:6", "LIMITS=port:rxe0/1:qp=2\nMODE=audit\nQUIET=1");
	shm_remove();
	spawn("fill:2", "LIMITS=port:rxe0/1:qp=2\nQUIET=1");
	/* Other limits that a later process names are not used, and the log says so. */
	log_clear();
	spawn("fill:2", "LIMITS=port:rxe0/1:qp=3\nQUIET=1");
	CHECK(strstr(log_text(), "rxe0/1 limit qp=2 is set already by an earlier process") != NULL,
	      "%s", log_text());
	shm_remove();
}

static void drive(void)
{
	CASE("life") {
		spawn("life", "LIMITS=port:rxe0/1:qp=2,ah=1\nQUIET=1");
		shm_remove();
	}
	CASE("threads") {
		spawn("threads", "QUIET=1");
		shm_remove();
	}
	CASE("overtaken") {
		spawn("overtaken", "QUIET=1");
		shm_remove();
	}
	CASE("child") {
		spawn("child", "LIMITS=port:rxe0/1:qp=2\nQUIET=1");
		shm_remove();
	}
	RUN(killed);
	RUN(modes);
}

int main(int argc, char **argv)
{
	static const struct scenario scenarios[] = {
		{ "life", life }, { "threads", threads }, { "overtaken", overtaken },
		{ "fill", fill }, { "child", child },	  { NULL, NULL },
	};

	return harness_main(argc, argv, scenarios, drive);
}
