/* SPDX-License-Identifier: MIT */
/*
 * A client of a real collector as the victim. On one side it is killed itself: then the
 * collector must give back all it had, and nothing else. On the other the collector is
 * killed while the client stands still, and started again: then the client must get what
 * it asked for, as if nothing had been. Either way a bystander keeps its amounts, and
 * the limit holds to the last unit. The tenant has a share, a rate and a pace: all victims
 * together never make more calls than the rate allows.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector.h"
#include "family.h"
#include "harness.h"
#include "ledger/leaselayout.h"
#include "ledger/ledger.h"
#include "sides.h"

#define TENANT "guests"
#define DEVICE "fake_device_0"

enum { LIMIT_QPS = 40, BYSTANDER_QPS = 2, SMALL = 3, LARGE = 12, TOO_LARGE = 39 };
enum { CLIENT_PATIENCE_SECONDS = 1 }; /* PATIENCE_MS of lease.c */
enum { WORD_OUTCOME, WORD_CALLS };
enum { CALLS_PER_SECOND = 20, CALLS_BURST = 5 };

static pid_t bystander;
static struct proto_row alone; /* the tenant's row while only the bystander is there */
static double scene_begin, side_begin;
static unsigned late; /* outages that lasted longer than a client waits */

/* ---- clients */

static struct ledger ledger;
static struct ledger_limits no_limits;
static struct ledger_refusal refusal;
static const struct log no_log = { .level = LOG_OFF };

static void must(bool good)
{
	if (!good)
		_exit(1);
}

static struct cost cost_of(uint64_t qps)
{
	return COST3(qp, qps, send_wr, 16 * qps, recv_wr, 8 * qps);
}

static int charge(uint64_t qps)
{
	struct cost cost = cost_of(qps);

	return ledger_charge(&ledger, 1, &cost, &refusal);
}

static void refund(uint64_t qps)
{
	struct cost cost = cost_of(qps);

	ledger_refund(&ledger, 1, &cost);
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
	int result = ledger_open(&ledger, &options, problem);

	return result < 0 ? result : ledger_device(&ledger, DEVICE) == 1 ? 0 : -1;
}

static void prepare_nothing(void)
{
}

static void prepare_member(void)
{
	must(join() == 0);
}

static void prepare_holder(void)
{
	prepare_member();
	must(charge(SMALL) == 0);
}

static void prepare_refunded(void)
{
	prepare_holder();
	refund(SMALL);
}

static void outcome_is(int result)
{
	*shared_word(WORD_OUTCOME) = (uint64_t)(int64_t)result;
}

static void run_first(void)
{
	int result = join();

	outcome_is(result ? result : charge(SMALL));
}

static void run_charge(void)
{
	outcome_is(charge(SMALL));
}

static void run_grow(void)
{
	outcome_is(charge(LARGE));
}

static void run_refused(void)
{
	outcome_is(charge(TOO_LARGE));
}

static void run_refund(void)
{
	refund(SMALL);
	outcome_is(0);
}

/* A call that the tenant's rate allows; most are not allowed. */
static void run_call(void)
{
	struct rate_set set;
	uint64_t *taken = NULL, wait_ns;

	wait_ns = rate_leases_take(ledger.rate_leases, ledger.rate_uses, RATE_OF_TENANT,
				   RATE_create_qp, &set, &taken);
	if (!wait_ns)
		__atomic_fetch_add(shared_word(WORD_CALLS), 1, __ATOMIC_SEQ_CST);
	outcome_is(wait_ns || taken ? 0 : -1);
}

/* flags: what a victim holds that was not killed; and whether it is refused. */
enum { REFUSED = 1 << 16, HOLDS = REFUSED - 1 };

static const struct operation client_operations[] = {
	{ "charge_inside_lease", { prepare_refunded, run_charge }, 400, SMALL },
	{ "refund", { prepare_holder, run_refund }, 400, 0 },
	{ "first_charge_with_registration", { prepare_nothing, run_first }, 400, SMALL },
	{ "charge_that_grows", { prepare_holder, run_grow }, 400, SMALL + LARGE },
	{ "charge_that_is_refused", { prepare_holder, run_refused }, 400, SMALL | REFUSED },
	{ "call_of_a_rate", { prepare_member, run_call }, 100, 0 },
};

static const struct operation outage_operations[] = {
	{ "first_charge_in_outage", { prepare_nothing, run_first }, 40, SMALL },
	{ "first_lease_in_outage", { prepare_member, run_charge }, 40, SMALL },
	{ "charge_that_grows_in_outage", { prepare_holder, run_grow }, 40, SMALL + LARGE },
	{ "charge_that_is_refused_in_outage", { prepare_holder, run_refused }, 40,
	  SMALL | REFUSED },
	{ "call_of_a_rate_in_outage", { prepare_member, run_call }, 20, 0 },
};

/* ---- the bystander */

static void bystander_live(int ready)
{
	must(join() == 0 && charge(BYSTANDER_QPS) == 0);
	must(write(ready, "", 1) == 1);
	for (;;)
		pause();
}

static bool bystander_start(void)
{
	int ready[2];
	char byte;
	bool good;

	if (pipe(ready))
		return false;
	bystander = family_fork();
	if (bystander == 0)
		bystander_live(ready[1]);
	close(ready[1]);
	good = read(ready[0], &byte, 1) == 1;
	close(ready[0]);
	return CHECK(good, "there is no bystander");
}

/* ---- what must be true */

/* Nobody else is there, and nothing of anybody else. Idle credit may have been taken back. */
static bool is_alone(const struct proto_row *now)
{
	if (now->processes != 1)
		return false;
	for (unsigned kind = 0; kind < KINDS_COUNTED; kind++)
		if (now->used[kind] != alone.used[kind] || now->granted[kind] > alone.granted[kind])
			return false;
	return true;
}

static bool becomes_alone(void)
{
	struct waiting waiting = { .for_what = "the bystander is alone" };
	struct proto_row now;

	while (now = collector_tenant(TENANT), !is_alone(&now))
		if (!waiting_goes_on(&waiting))
			return CHECK(false,
				     "%u processes, %llu QPs used and %llu granted, not %llu and "
				     "%llu",
				     now.processes, (unsigned long long)now.used[KIND_qp],
				     (unsigned long long)now.granted[KIND_qp],
				     (unsigned long long)alone.used[KIND_qp],
				     (unsigned long long)alone.granted[KIND_qp]);
	return true;
}

/* All that is left can be had by a newcomer, and not one more. */
static void newcomer_live(void)
{
	bool good = CHECK(join() == 0, "a newcomer cannot join") &&
		    CHECK(charge(LIMIT_QPS - BYSTANDER_QPS) == 0,
			  "%llu of %llu QPs are granted", (unsigned long long)refusal.used,
			  (unsigned long long)refusal.limit) &&
		    CHECK(charge(1) == LEDGER_REFUSED && refusal.scope == SCOPE_TENANT &&
				  refusal.used == LIMIT_QPS && refusal.limit == LIMIT_QPS,
			  "scope %d, %llu of %llu QPs", (int)refusal.scope,
			  (unsigned long long)refusal.used, (unsigned long long)refusal.limit);

	_exit(good ? 0 : 1);
}

static bool limit_is_exact(void)
{
	pid_t pid = family_fork();
	int status = 0;

	if (pid == 0)
		newcomer_live();
	waitpid(pid, &status, 0);
	return CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the newcomer: status %#x",
		     (unsigned)status);
}

/* The calls were counted before the look at the clock, by which buckets fill. */
static bool rate_holds(void)
{
	uint64_t calls = *shared_word(WORD_CALLS);
	double may = CALLS_BURST + CALLS_PER_SECOND * (seconds_now() - side_begin);

	return CHECK((double)calls <= may, "%llu calls, at most %.1f", (unsigned long long)calls,
		     may);
}

/* The usage page of the victim, which the collector reads. */
static bool page_changed(pid_t victim, bool files)
{
	static struct memory_copy copy;
	static struct usage_page page;
	static struct ledger theirs;
	struct iovec here = { &theirs, sizeof(theirs) }, there = { &ledger, sizeof(ledger) };
	bool there_is_one = process_vm_readv(victim, &here, 1, &there, 1, 0) == sizeof(theirs) &&
			    theirs.lease.usage;

	here = (struct iovec){ &page, sizeof(page) };
	there = (struct iovec){ theirs.lease.usage, sizeof(page) };
	there_is_one = there_is_one &&
		       process_vm_readv(victim, &here, 1, &there, 1, 0) == sizeof(page);
	return memory_changed(&copy, &page, there_is_one ? sizeof(page) : 0);
}

static bool client_killed(const struct operation *operation, struct victim *victim, unsigned point)
{
	victim_kill(victim);
	return becomes_alone() && limit_is_exact() && rate_holds();
}

/*
 * The client, which stands still after its end, and the collector agree. On a busy machine the
 * collector may start later than a client waits for it; then the client may have failed, and
 * there is nothing to judge.
 */
static bool outcome_is_exact(const struct operation *operation, pid_t pid)
{
	uint64_t holds = operation->flags & HOLDS;
	int outcome = (int)(int64_t)*shared_word(WORD_OUTCOME);
	struct proto_row own = collector_process(pid), all = collector_tenant(TENANT);
	bool expected = outcome == (operation->flags & REFUSED ? LEDGER_REFUSED : 0);

	if (!expected && seconds_now() - scene_begin >= CLIENT_PATIENCE_SECONDS) {
		late++;
		return true;
	}
	return CHECK(expected, "the charge ended with %d", outcome) &&
	       CHECK(own.used[KIND_qp] == holds && own.granted[KIND_qp] >= holds &&
			     all.used[KIND_qp] == holds + BYSTANDER_QPS && all.processes == 2,
		     "it uses %llu QPs, not %llu; %llu granted; the tenant's %u use %llu",
		     (unsigned long long)own.used[KIND_qp], (unsigned long long)holds,
		     (unsigned long long)own.granted[KIND_qp], all.processes,
		     (unsigned long long)all.used[KIND_qp]) &&
	       CHECK(!(all.flags & ROW_DRAINING));
}

static bool collector_killed(const struct operation *operation, struct victim *victim,
			     unsigned point)
{
	bool good;

	collector_kill();
	collector_start("");
	good = CHECK(victim_finish(victim), "the client ended with status %#x",
		     (unsigned)victim->status) &&
	       outcome_is_exact(operation, victim->pid);
	victim_kill(victim);
	return becomes_alone() && limit_is_exact() && rate_holds() && good;
}

/* ---- the scene: one collector and one bystander for all victims */

static void begin(void)
{
	char policy[256];

	snprintf(policy, sizeof(policy),
		 "[host]\nqp = %d\npressure = 20%%\n"
		 "[tenant " TENANT "]\nmatch = uid=%u\nqp = %d\nweight = 2\nguarantee.qp = %d\n"
		 "rate.create_qp = %d/s burst %d\npace.bytes = 1MB/s\n",
		 2 * LIMIT_QPS, (unsigned)geteuid(), LIMIT_QPS, LIMIT_QPS, CALLS_PER_SECOND,
		 CALLS_BURST);
	collector_policy(policy);
	side_begin = seconds_now();
	*shared_word(WORD_CALLS) = 0;
	ledger_limits_clear(&no_limits);
	collector_socket();
	collector_start("");
	bystander_start();
	alone = collector_tenant(TENANT);
	CHECK(alone.processes == 1 && alone.used[KIND_qp] == BYSTANDER_QPS);
}

static bool scene_set(const struct operation *operation)
{
	bool good = becomes_alone();

	outcome_is(-1);
	scene_begin = seconds_now();
	return good;
}

static void end(void)
{
	printf("%llu calls in %.0f s at %d/s\n", (unsigned long long)*shared_word(WORD_CALLS),
	       seconds_now() - side_begin, CALLS_PER_SECOND);
	if (late)
		printf("%u outages lasted longer than a client waits, and were not judged\n", late);
	late = 0;
	family_kill(&bystander);
	collector_stop();
}

const struct side client_side = {
	.name = "a client is killed",
	.operations = client_operations,
	.count = sizeof(client_operations) / sizeof(client_operations[0]),
	.begin = begin,
	.scene = scene_set,
	.changed = page_changed,
	.examine = client_killed,
	.end = end,
};

const struct side outage_side = {
	.name = "the collector of a client is killed",
	.operations = outage_operations,
	.count = sizeof(outage_operations) / sizeof(outage_operations[0]),
	.begin = begin,
	.scene = scene_set,
	.changed = page_changed,
	.examine = collector_killed,
	.end = end,
};
