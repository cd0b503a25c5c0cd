/* SPDX-License-Identifier: MIT */
/*
 * Rates of the environment, without a collector: each class of verbs is refused with EAGAIN, or
 * waits, and never sooner than its rate says; what frees is never refused; a wait goes on over
 * signals and leaves errno alone.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>

#include "fixture.h"
#include "harness.h"
#include "ledger/view.h"

#define DENY ";action=deny"

enum { BURST = 3 };

static struct fixture fixture;
static struct rdma_cm_id *id;
static struct ibv_qp *qp;
static char memory[MR_LENGTH];

/* 0, or the errno. What a call makes stays until the end of the process. */
static int call_create_qp(void) { return qp_make(&fixture, IBV_QPT_RC) ? 0 : errno; }
static int call_reg_mr(void)
{
	return ibv_reg_mr(fixture.pd, memory, sizeof(memory), 0) ? 0 : errno;
}
static int call_create_ah(void)
{
	struct ibv_ah_attr attr = { .port_num = 1 };

	return ibv_create_ah(fixture.pd, &attr) ? 0 : errno;
}
static int call_modify_qp(void)
{
	return ibv_modify_qp(qp, &(struct ibv_qp_attr){ .qp_state = IBV_QPS_INIT }, IBV_QP_STATE);
}
static int call_connect(void) { return rdma_connect(id, NULL) ? errno : 0; }
static int call_accept(void) { return rdma_accept(id, NULL) ? errno : 0; }

static const struct {
	char name[16], class[16];
	int (*call)(void);
} calls[] = {
	{ "create_qp", "create_qp", call_create_qp }, { "reg_mr", "reg_mr", call_reg_mr },
	{ "create_ah", "create_ah", call_create_ah }, { "modify_qp", "modify_qp", call_modify_qp },
	{ "connect", "connect", call_connect },	      { "accept", "connect", call_accept },
};
enum { CALLS = sizeof(calls) / sizeof(calls[0]) };

static int (*call_find(const char *name))(void)
{
	unsigned i = 0;

	while (strcmp(calls[i].name, name))
		i++;
	return calls[i].call;
}

static void open_all(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();

	fixture = fixture_open();
	qp = qp_make(&fixture, IBV_QPT_RC);
	CHECK(qp && channel && rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0);
}

/* Calls until it is refused. A full bucket lasts for BURST calls, and 1/s refills it. */
static void refused(const char *name)
{
	int (*call)(void) = call_find(name), error;
	unsigned made = 0;
	double begun;

	open_all();
	made += !strcmp(name, "create_qp"); /* open_all took one */
	begun = seconds_now();
	while (!(error = call()))
		made++;
	CHECK(error == EAGAIN, "errno %d after %u", error, made);
	CHECK(made >= BURST && made <= BURST + 1 + (seconds_now() - begun), "%u in %f s", made,
	      seconds_now() - begun);
}

/* Destroys more than its rate allows; every one succeeds. */
static void freed(const char *unused)
{
	struct ibv_mr *mr[4 * BURST];
	struct ibv_qp *made[4 * BURST];

	open_all();
	for (unsigned i = 0; i < 4 * BURST; i++) {
		mr[i] = ibv_reg_mr(fixture.pd, memory, sizeof(memory), 0);
		made[i] = qp_make(&fixture, IBV_QPT_RC);
		CHECK(mr[i] && made[i]);
	}
	for (unsigned i = 0; i < 4 * BURST; i++)
		CHECK(ibv_dereg_mr(mr[i]) == 0 && ibv_destroy_qp(made[i]) == 0, "%u", i);
}

/* 20 of 20/s with a burst of 1 take 19/20 s at least: to deny is not to let them pass. */
static void freed_slowly(const char *unused)
{
	struct ibv_mr *mr[20];
	double begun;

	open_all();
	for (unsigned i = 0; i < 20; i++)
		CHECK((mr[i] = ibv_reg_mr(fixture.pd, memory, sizeof(memory), 0)) != NULL);
	begun = seconds_now();
	for (unsigned i = 0; i < 20; i++)
		CHECK(ibv_dereg_mr(mr[i]) == 0, "%u", i);
	CHECK(seconds_now() - begun >= 19.0 / 20, "%f s", seconds_now() - begun);
}

static unsigned alarms;

static void on_alarm(int unused)
{
	alarms++;
}

/* 20 calls of 20/s with a burst of 1 take 19/20 s at least, and none fails, whatever signals come;
 * errno is as it was. */
static void waits(const char *signals)
{
	struct sigaction action = { .sa_handler = on_alarm };
	struct itimerval often = { { 0, 3000 }, { 0, 3000 } };
	double begun;

	open_all();
	sigaction(SIGALRM, &action, NULL);
	if (*signals)
		setitimer(ITIMER_REAL, &often, NULL);
	begun = seconds_now();
	for (unsigned i = 0; i < 20; i++) {
		errno = 77;
		CHECK(ibv_reg_mr(fixture.pd, memory, sizeof(memory), 0) != NULL && errno == 77,
		      "call %u: errno %d", i, errno);
	}
	CHECK(seconds_now() - begun >= 19.0 / 20, "%f s", seconds_now() - begun);
	CHECK(!*signals || alarms > 10, "%u signals", alarms);
}

/* A call that may wait 50 ms waits so long before it is refused. */
static void gives_up(const char *unused)
{
	double begun;
	int error;

	open_all();
	do {
		begun = seconds_now();
		error = call_reg_mr();
	} while (!error);
	CHECK(error == EAGAIN && seconds_now() - begun >= 0.05, "errno %d, %f s", error,
	      seconds_now() - begun);
}

/* More than the bucket has, and all of it is made. */
static void tolerated(const char *unused)
{
	open_all();
	for (unsigned i = 0; i < 10 * BURST; i++)
		CHECK(call_reg_mr() == 0);
}

static void driver(void)
{
	char settings[256];

	for (unsigned i = 0; i < CALLS; i++)
		CASE(calls[i].name)
		{
			char scenario[64];

			snprintf(scenario, sizeof(scenario), "refused:%.15s", calls[i].name);
			snprintf(settings, sizeof(settings), "RATES=process:%.15s=1/s burst %d" DENY,
				 calls[i].class, BURST + !strcmp(calls[i].class, "create_qp"));
			log_clear();
			CHECK(spawn(scenario, settings) == 0);
			snprintf(settings, sizeof(settings), "above the rate of %.15s: 1/s burst %d, rate of the program",
				 calls[i].class, BURST + !strcmp(calls[i].class, "create_qp"));
			CHECK(strstr(stderr_text(), settings) && strstr(log_text(), settings), "%s",
			      stderr_text());
		}
	CASE("frees")
	{
		log_clear();
		CHECK(spawn("freed", "RATES=process:dereg_mr=1/s,destroy_qp=1/s" DENY
				     ";max_delay=10ms") == 0);
		CHECK(!strstr(stderr_text(), "refused"), "%s", stderr_text());
	}
	CASE("frees_slowly")
		CHECK(spawn("freed_slowly", "RATES=process:dereg_mr=20/s burst 1" DENY
					    ";max_delay=60s") == 0);
	CASE("waits")
		spawn("waits", "RATES=process:reg_mr=20/s burst 1;max_delay=60s");
	CASE("signals")
		spawn("waits:signals", "RATES=process:reg_mr=20/s burst 1;max_delay=60s");
	CASE("max_delay")
		spawn("gives_up", "RATES=process:reg_mr=1/s burst 1;max_delay=50ms\nQUIET=1");
	CASE("warn")
	{
		log_clear();
		spawn("tolerated", "MODE=warn\nRATES=process:reg_mr=1/s burst 3" DENY);
		CHECK(strstr(stderr_text(), "over limit, allowed: ibv_reg_mr"), "%s",
		      stderr_text());
	}
	CASE("audit")
	{
		log_clear();
		spawn("tolerated", "MODE=audit\nRATES=process:reg_mr=1/s burst 3" DENY);
		CHECK(!strstr(stderr_text(), "over limit"), "%s", stderr_text());
	}
}

int main(int argc, char **argv)
{
	static const struct scenario scenarios[] = {
		{ "refused", refused },	  { "freed", freed },	      { "waits", waits },
		{ "gives_up", gives_up }, { "tolerated", tolerated },
		{ "freed_slowly", freed_slowly }, { NULL, NULL },
	};

	return harness_main(argc, argv, scenarios, driver);
}
