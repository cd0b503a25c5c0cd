/* SPDX-License-Identifier: MIT */
/*
 * Users who take all leases that they can get: each of their processes takes one in every row of
 * its page. Whoever comes after them still gets leases, root from a reserve, and who is refused
 * is told that there are no leases, not that the collector is silent or a limit in the way.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector.h"
#include "family.h"
#include "harness.h"
#include "ledger/leaselayout.h"
#include "ledger/ledger.h"

enum {
	HOARDERS = 2,		/* users, */
	PROCESSES_OF_EACH = 258, /* with so many processes */
	FIRST_UID = 61000,
	OTHERS = 4, /* users who come later, each with two devices */
	WORD_READY = 0,
	WORD_LEASES,
	WORD_REFUSED,
};

static struct ledger ledger;
static struct ledger_limits no_limits;
static const struct log no_log = { .level = LOG_OFF };

static void become(unsigned user)
{
	if (user && setresuid(user, user, user))
		_exit(1);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* another user's process has lost it */
}

static int join(void)
{
	const struct ledger_options options = {
		.transport = TRANSPORT_LEASE,
		.socket = collector_socket(),
		.limits = &no_limits,
		.log = &no_log,
	};
	char problem[PROBLEM_SIZE];
	int result;

	while ((result = ledger_open(&ledger, &options, problem)) < 0 && result != -EUSERS)
		;
	return result;
}

/* Whether it has a lease on the device now. */
static bool lease_get(unsigned device)
{
	const struct cost cost = COST1(ah, 1);
	struct ledger_refusal refusal = { 0 };
	int result;

	while ((result = ledger_charge(&ledger, device, &cost, &refusal)) == LEDGER_UNANSWERED &&
	       !refusal.no_lease)
		;
	return result == 0;
}

static void hoarder_live(unsigned user)
{
	char name[16];

	become(user);
	if (join() == 0)
		for (unsigned device = 0; device < DEVICES_MAX; device++) {
			snprintf(name, sizeof(name), "fake%u", device);
			if (device)
				ledger_device(&ledger, name);
			word_add(lease_get(device) ? WORD_LEASES : WORD_REFUSED, 1);
		}
	word_add(WORD_READY, 1);
	pause();
}

/* Comes when all is taken, and needs two. */
static void newcomer_live(unsigned user)
{
	become(user);
	if (!CHECK(join() == 0, "user %u cannot register", user))
		_exit(1);
	CHECK(ledger_device(&ledger, "fake1") == 1);
	CHECK(lease_get(0) && lease_get(1), "user %u", user);
	_exit(checks_failed() ? 1 : 0);
}

static void newcomer(unsigned user)
{
	pid_t pid = family_fork();

	if (pid == 0)
		newcomer_live(user);
	CHECK(spawn_wait(pid) == 0, "user %u", user);
}

static struct proto_status collector_state(void)
{
	struct proto_status answer = { 0 };

	CHECK(collector_call(MESSAGE_STATUS, NULL, &answer) == 0);
	return answer;
}

static void hoarders(void)
{
	static pid_t pid[HOARDERS][PROCESSES_OF_EACH];

	if (geteuid() != 0)
		skip("processes of other users need root");
	words_clear();
	ledger_limits_clear(&no_limits);
	collector_fresh("[tenant a]\nmatch = uid=61000\n[tenant b]\nmatch = uid=61001\n", "");
	for (unsigned i = 0; i < HOARDERS; i++)
		for (unsigned j = 0; j < PROCESSES_OF_EACH; j++)
			if ((pid[i][j] = family_fork()) == 0)
				hoarder_live(FIRST_UID + i);
	NEED(word_load(WORD_READY) == HOARDERS * PROCESSES_OF_EACH, "%llu are ready",
	     (unsigned long long)word_load(WORD_READY));
	printf("%llu leases of %d were given, %llu requests refused\n",
	       (unsigned long long)word_load(WORD_LEASES), LEASES_MAX,
	       (unsigned long long)word_load(WORD_REFUSED));
	CHECK(collector_state().leases == word_load(WORD_LEASES), "%u leases", collector_state().leases);
	CHECK(word_load(WORD_LEASES) < LEASES_MAX);
	newcomer(0);
	for (unsigned i = 0; i < OTHERS; i++)
		newcomer(FIRST_UID + HOARDERS + i);
	for (unsigned i = 0; i < HOARDERS; i++)
		for (unsigned j = 0; j < PROCESSES_OF_EACH; j++)
			family_kill(&pid[i][j]);
	EVENTUALLY(collector_state().leases == 0);
	collector_stop();
}

/* Who is refused all it asks for keeps no lease. */
static void refused_ones(void)
{
	const struct cost cost = COST1(qp, 1);
	struct ledger_refusal refusal;

	words_clear();
	ledger_limits_clear(&no_limits);
	collector_fresh("[default]\nqp = 0\n", "");
	CHECK(join() == 0);
	for (unsigned device = 0; device < 3; device++) {
		char name[16];

		snprintf(name, sizeof(name), "fake%u", device);
		if (device)
			CHECK(ledger_device(&ledger, name) == (int)device);
		CHECK(ledger_charge(&ledger, device, &cost, &refusal) == LEDGER_REFUSED &&
			      refusal.limit == 0,
		      "device %u", device);
		CHECK(collector_state().leases == 0, "%u leases", collector_state().leases);
	}
	/* As soon as there is something to be had, it gets one. */
	CHECK(collector_set("default", "qp = 1\n") == 0);
	CHECK(ledger_charge(&ledger, 1, &cost, &refusal) == 0);
	CHECK(ledger_charge(&ledger, 2, &cost, &refusal) == LEDGER_REFUSED);
	CHECK(collector_state().leases == 1, "%u leases", collector_state().leases);
	collector_stop();
}

static void driver(void)
{
	/* Processes of other users come this way. */
	chmod(harness_path(""), 0711);
	RUN(refused_ones);
	RUN(hoarders);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
