/* SPDX-License-Identifier: MIT */
/* The clients of the storm, and what is counted beside the ledger; see storm.h. */
#include "storm.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "harness.h"
#include "holding.h"
#include "ledger/ledger.h"

enum {
	HELD_MAX = 6,	     /* charges that a client holds at once */
	OPERATIONS_MAX = 30, /* before it rests */
	REST_MAX_US = 2000,
	CLIENT_NICE = 5, /* or the killer would mostly wait for a processor */
};

static const double patience_seconds = 0.9; /* less than what a client waits in an outage */

/* ---- limits, and what is held beside them */

uint64_t storm_limit[LIMITED_SCOPES][KIND_COUNT];
struct rate storm_rate[TENANTS];
unsigned storm_tenants = TENANTS;
const char *const storm_devices[DEVICES] = { "fake0", "fake1" };
char storm_socket[PROTO_PATH];
struct tally *storm_tally;

void storm_count(uint64_t *word)
{
	__atomic_fetch_add(word, 1, __ATOMIC_RELAXED);
}

static void held_add(enum scope_number scope, unsigned kind, int64_t amount)
{
	int64_t now = __atomic_add_fetch(&storm_tally->held[scope][kind], amount, __ATOMIC_SEQ_CST);

	if (amount > 0 && now > 0 && (uint64_t)now > storm_limit[scope][kind]) {
		storm_count(&storm_tally->excesses);
		CHECK(false, "%lld %s held in scope %d, %llu allowed", (long long)now,
		      kind_rows[kind].name, (int)scope, (unsigned long long)storm_limit[scope][kind]);
	}
}

static void scopes_add(unsigned tenant, unsigned device, unsigned kind, int64_t amount)
{
	held_add(HOST, kind, amount);
	held_add(ON_DEVICE + device, kind, amount);
	held_add(OF_TENANT + tenant, kind, amount);
}

/* The share first: who is killed in between is counted too low. */
static void hold(unsigned client, unsigned device, const struct cost *cost)
{
	for (unsigned i = 0; i < cost->count; i++) {
		storm_tally->client[client].share[device][cost->kind[i]] += (int64_t)cost->amount[i];
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		scopes_add(client % storm_tenants, device, cost->kind[i], (int64_t)cost->amount[i]);
	}
}

/* Likewise, the share last. */
static void let_go(unsigned client, unsigned device, const struct cost *cost)
{
	for (unsigned i = 0; i < cost->count; i++) {
		scopes_add(client % storm_tenants, device, cost->kind[i], -(int64_t)cost->amount[i]);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		storm_tally->client[client].share[device][cost->kind[i]] -= (int64_t)cost->amount[i];
	}
}

void storm_share_drop(unsigned client)
{
	for (unsigned device = 0; device < DEVICES; device++)
		for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
			int64_t *share = &storm_tally->client[client].share[device][kind];

			if (*share)
				scopes_add(client % storm_tenants, device, kind, -*share);
			*share = 0;
		}
}

/* ---- a client */

static struct ledger ledger;
static struct ledger_limits no_limits;
static const struct log no_log = { .level = LOG_OFF };

/* A client without an answer must have waited for it; then the client ends. Its share is dropped
 * first, since the collector gives it to others at once. */
static void unanswered(unsigned client, double since, const char *what)
{
	storm_count(&storm_tally->unanswered);
	if (!CHECK(seconds_now() - since >= patience_seconds, "%s: unanswered after %.3f s", what,
		   seconds_now() - since))
		storm_count(&storm_tally->faults);
	storm_share_drop(client);
	_exit(0);
}

/* A refusal must be right by its own numbers. A tenant may hold more than its share. */
static bool charge(unsigned client, const struct holding *holding)
{
	struct ledger_refusal refusal;
	double before = seconds_now();
	int result;

	__atomic_store_n(&storm_tally->latest, client, __ATOMIC_RELAXED);
	result = ledger_charge(&ledger, 1 + holding->device, &holding->cost, &refusal);
	if (result == LEDGER_REFUSED) {
		storm_count(&storm_tally->refusals);
		if (!CHECK((refusal.used <= refusal.limit || refusal.configured) &&
				   refusal.used + refusal.wanted > refusal.limit,
			   "refused %s: %llu used, %llu wanted, %llu allowed",
			   kind_rows[refusal.kind].name, (unsigned long long)refusal.used,
			   (unsigned long long)refusal.wanted, (unsigned long long)refusal.limit))
			storm_count(&storm_tally->faults);
		return false;
	}
	if (result == LEDGER_UNANSWERED)
		unanswered(client, before, "a charge");
	if (!CHECK(result == 0, "charge: %d", result))
		storm_count(&storm_tally->faults);
	hold(client, holding->device, &holding->cost);
	storm_count(&storm_tally->charges);
	return true;
}

static void join(unsigned client)
{
	const struct ledger_options options = {
		.transport = TRANSPORT_LEASE,
		.socket = storm_socket,
		.limits = &no_limits,
		.log = &no_log,
	};
	char problem[PROBLEM_SIZE] = "";
	double before = seconds_now();

	if (ledger_open(&ledger, &options, problem) < 0)
		unanswered(client, before, problem);
	for (unsigned i = 0; i < DEVICES; i++)
		if (!CHECK(ledger_device(&ledger, storm_devices[i]) == (int)(1 + i)))
			storm_count(&storm_tally->faults);
	storm_count(&storm_tally->joins);
}

/* A call that its tenant's rate allows, as the library takes it; or it is left out. */
static bool call_is_allowed(unsigned client)
{
	unsigned tenant = client % storm_tenants;
	struct rate_set set;
	uint64_t *taken;

	__atomic_fetch_add(&ledger.rate_uses->asked[RATE_create_qp], 1, __ATOMIC_RELAXED);
	if (rate_leases_take(ledger.rate_leases, ledger.rate_uses, RATE_OF_TENANT, RATE_create_qp,
			     &set, &taken)) {
		storm_count(&storm_tally->throttled);
		return false;
	}
	if (!storm_rate[tenant].per_second)
		return true;
	if (!CHECK(taken, "a client of a tenant with a rate has none"))
		storm_count(&storm_tally->faults);
	storm_count(&storm_tally->calls[tenant]);
	return true;
}

/* The calls were counted before the look at the clock, by which the buckets fill: a slow machine only
 * makes them fewer. */
bool storm_rate_holds(unsigned tenant, double since)
{
	const struct rate *rate = &storm_rate[tenant];
	uint64_t calls = __atomic_load_n(&storm_tally->calls[tenant], __ATOMIC_SEQ_CST);
	double may = rate->burst + rate->per_second * (seconds_now() - since);

	return !rate->per_second ||
	       CHECK((double)calls <= may, "tenant %u: %llu calls, at most %.0f", tenant,
		     (unsigned long long)calls, may);
}

/* Works until it is killed. */
void storm_client_live(unsigned client)
{
	unsigned seed = (unsigned)getpid(), holds = 0;
	uid_t uid = FIRST_UID + client % storm_tenants;
	struct holding held[HELD_MAX];

	if (storm_tenants > 1 && setresuid(uid, uid, uid))
		_exit(1);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* another user's process has lost it */
	setpriority(PRIO_PROCESS, 0, CLIENT_NICE);
	ledger_limits_clear(&no_limits);
	join(client);
	for (;;) {
		for (unsigned left = below(&seed, OPERATIONS_MAX); left; left--) {
			if (holds < HELD_MAX && below(&seed, 2)) {
				if (!call_is_allowed(client))
					break;
				held[holds] = holding_invent(&seed, DEVICES);
				holds += charge(client, &held[holds]);
			} else if (holds) {
				holds--;
				let_go(client, held[holds].device, &held[holds].cost);
				ledger_refund(&ledger, 1 + held[holds].device, &held[holds].cost);
				storm_count(&storm_tally->refunds);
			}
		}
		usleep(below(&seed, REST_MAX_US));
	}
}
