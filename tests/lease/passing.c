/* SPDX-License-Identifier: MIT */
/*
 * A unit that moves while the collector looks. Two processes pass one unit to and fro, so that
 * one of two is always free, and a third, which asks each time, takes and gives back one: nobody
 * may ever be refused. Between the leases of the two lie thousands of another tenant, so that the
 * collector needs a while from the one to the other. It ends after RDMA_INTERCEPT_TEST_PASSES
 * questions of the third.
 */
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector.h"
#include "family.h"
#include "harness.h"
#include "ledger/ledger.h"
#include "proto/client.h"

enum {
	CROWD = 240, /* processes of the other tenant, each with a lease in every row */
	CROWD_UID = 61000,
	PASSES_DEFAULT = 10000,
	HOLD_MOST = 20000, /* of some ns each: up to a sweep over all leases */
	WORD_TURN = 0,	/* of the passers: even and odd */
	WORD_READY = 1, /* processes that are in their places */
	WORD_REFUSED = 2,
	WORD_CHARGES = 3,
};

#define DEVICE "fake0"

static const char policy[] = "[tenant crowd]\nmatch = uid=61000\n"
			     "[default]\nqp = 2\n";

static struct ledger ledger;
static struct ledger_limits no_limits;
static const struct log no_log = { .level = LOG_OFF };

static void must(bool good)
{
	if (!good)
		_exit(1);
}

static void join(enum transport transport)
{
	const struct ledger_options options = {
		.transport = transport,
		.socket = collector_socket(),
		.limits = &no_limits,
		.log = &no_log,
	};
	char problem[PROBLEM_SIZE];

	while (ledger_open(&ledger, &options, problem) < 0)
		;
	must(ledger_device(&ledger, DEVICE) == 1);
}

/* Takes one, keeps it for a moment, and gives it back. A collector on a busy machine may not
 * answer in time; then the charge is tried again. */
static void charge(unsigned moments)
{
	const struct cost cost = COST1(qp, 1);
	struct ledger_refusal refusal;
	int result;

	while ((result = ledger_charge(&ledger, 1, &cost, &refusal)) == LEDGER_UNANSWERED)
		;
	word_add(WORD_CHARGES, 1);
	for (volatile unsigned i = 0; i < moments; i++)
		;
	if (result == 0)
		ledger_refund(&ledger, 1, &cost);
	else if (word_add(WORD_REFUSED, 1) <= 3)
		CHECK(false, "refused: %llu used, %llu wanted of %llu",
		      (unsigned long long)refusal.used, (unsigned long long)refusal.wanted,
		      (unsigned long long)refusal.limit);
}

/* ---- the crowd */

static void crowd_live(void)
{
	const struct cost cost = COST1(ah, 1);
	struct ledger_refusal refusal;
	char name[16];

	if (geteuid() == 0)
		must(setresuid(CROWD_UID, CROWD_UID, CROWD_UID) == 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* another user's process has lost it */
	join(TRANSPORT_LEASE);
	for (unsigned device = 0; device < DEVICES_MAX; device++) {
		snprintf(name, sizeof(name), "fake%u", device);
		if (device > 1)
			ledger_device(&ledger, name);
		while (ledger_charge(&ledger, device, &cost, &refusal) != 0)
			;
	}
	word_add(WORD_READY, 1);
	pause();
}

/* ---- those who pass the unit */

/* Its lease is there before it says that it is ready. */
static void passer_live(unsigned number)
{
	unsigned seed = number;

	join(TRANSPORT_LEASE);
	charge(0);
	word_add(WORD_READY, 1);
	for (uint64_t turn = number; ; turn += 2) {
		while (word_load(WORD_TURN) < turn + 2)
			sched_yield();
		charge((unsigned)rand_r(&seed) % HOLD_MOST);
		word_store(WORD_TURN, turn + 3);
	}
}

static pid_t passer_start(unsigned number)
{
	uint64_t ready = word_load(WORD_READY);
	pid_t pid = family_fork();

	if (pid == 0)
		passer_live(number);
	NEED(word_load(WORD_READY) == ready + 1);
	return pid;
}

static uint64_t passes_wanted(void)
{
	const char *wish = getenv("RDMA_INTERCEPT_TEST_PASSES");

	return wish && atoll(wish) > 0 ? (uint64_t)atoll(wish) : PASSES_DEFAULT;
}

static void unit_that_moves(void)
{
	static pid_t crowd[CROWD];
	uint64_t passes = passes_wanted();
	double begun;
	pid_t passer[2];

	words_clear();
	ledger_limits_clear(&no_limits);
	collector_fresh(policy, "");
	passer[0] = passer_start(0);
	for (unsigned i = 0; i < CROWD; i++)
		if ((crowd[i] = family_fork()) == 0)
			crowd_live();
	NEED(word_load(WORD_READY) == CROWD + 1, "%llu are ready",
	     (unsigned long long)word_load(WORD_READY));
	passer[1] = passer_start(1);
	join(TRANSPORT_SOCKET);
	word_store(WORD_CHARGES, 0);
	begun = seconds_now();
	word_store(WORD_TURN, 2);
	for (uint64_t i = 0; i < passes; i++)
		charge(0);
	printf("%llu charges of three processes in %.1f s, %llu refused\n",
	       (unsigned long long)word_load(WORD_CHARGES), seconds_now() - begun,
	       (unsigned long long)word_load(WORD_REFUSED));
	CHECK(word_load(WORD_REFUSED) == 0, "%llu refused",
	      (unsigned long long)word_load(WORD_REFUSED));
	CHECK(collector_tenant("default").refused[KIND_qp] == 0);
	for (unsigned i = 0; i < 2; i++)
		family_kill(&passer[i]);
	for (unsigned i = 0; i < CROWD; i++)
		family_kill(&crowd[i]);
	collector_stop();
}

static void driver(void)
{
	/* Processes of other users come this way. */
	chmod(harness_path(""), 0711);
	RUN(unit_that_moves);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
