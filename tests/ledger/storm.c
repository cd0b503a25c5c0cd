/* SPDX-License-Identifier: MIT */
/*
 * A storm of SIGKILL: workers of two threads each charge and refund at random against limits
 * that they meet often, leave and join again, and are killed at random moments. Between kills the
 * sums are audited under the lock; when all have ended, everything must be zero. It ends after
 * RDMA_INTERCEPT_TEST_KILLS kills, of which so many must have hit a holder of the lock.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "books.h"
#include "family.h"
#include "harness.h"
#include "holding.h"

enum {
	WORKERS = 12,
	THREADS = 2,
	DEVICES = 3,
	HELD_MAX = 6,	 /* charges that a thread holds at once */
	ROUNDS_MAX = 20000, /* after which a worker leaves by itself */
	WORKER_NICE = 10, /* or the killer would mostly wait for a processor */
	PAUSE_MAX_US = 3000, /* between two bursts */
	BURST_MAX = 4,	     /* kills at once */
	KILLS_DEFAULT = 5000,
	KILLS_PER_AUDIT = 60,
	KILLS_PER_REBUILD = 100, /* of so many kills at least one must hit a holder of the lock */
	LOCK_SECONDS = 30, /* without a turn of any other holder */
	ATTEMPTS_MAX = 10, /* of an audit */
};

enum { AUDIT_GOOD, AUDIT_BAD, AUDIT_AGAIN };

/* Shared with the workers, who may be killed while they count: lower bounds. */
struct tally {
	uint64_t joins, leaves, charges, refusals, faults;
	uint64_t rebuilds; /* that the last audit found: deaths with the lock */
	unsigned latest; /* the worker that called the ledger last: likely to be inside it */
};

static struct tally *tally;
static pid_t workers[WORKERS];
static unsigned self; /* a worker's number */
static struct ledger ledger; /* of a worker or an auditor; never of the main process till the end */

static void count(uint64_t *word)
{
	__atomic_fetch_add(word, 1, __ATOMIC_RELAXED);
}

/* ---- a worker ---- */

/* The numbers in a refusal must justify it, and there must be no fault. */
static bool charge(const struct holding *holding)
{
	struct ledger_refusal refusal;
	int result;

	__atomic_store_n(&tally->latest, self, __ATOMIC_RELAXED);
	result = ledger_charge(&ledger, holding->device, &holding->cost, &refusal);
	if (result == LEDGER_REFUSED) {
		count(&tally->refusals);
		if (!CHECK(refusal.used <= refusal.limit &&
			   refusal.used + refusal.wanted > refusal.limit,
			   "refused %s: %lld used, %lld wanted, %lld allowed",
			   kind_rows[refusal.kind].name, (long long)refusal.used,
			   (long long)refusal.wanted, (long long)refusal.limit))
			count(&tally->faults);
		return false;
	}
	count(CHECK(result == 0, "charge: %d", result) ? &tally->charges : &tally->faults);
	return result == 0;
}

static void *work(void *argument)
{
	unsigned seed = *(unsigned *)argument;
	struct holding held[HELD_MAX];
	unsigned holds = 0;

	for (unsigned rounds = below(&seed, ROUNDS_MAX); rounds; rounds--) {
		if (holds < HELD_MAX && below(&seed, 2)) {
			held[holds] = holding_invent(&seed, DEVICES);
			holds += charge(&held[holds]);
		} else if (holds) {
			holds--;
			ledger_refund(&ledger, held[holds].device, &held[holds].cost);
		}
	}
	while (holds--)
		ledger_refund(&ledger, held[holds].device, &held[holds].cost);
	return NULL;
}

/* Joins, works, leaves; returns if it was not killed meanwhile. */
static void career(unsigned *seed)
{
	pthread_t thread[THREADS];
	unsigned seeds[THREADS];

	if (!books_join(&ledger)) {
		count(&tally->faults);
		return;
	}
	count(&tally->joins);
	for (unsigned i = 0; i < THREADS; i++) {
		seeds[i] = (unsigned)rand_r(seed);
		pthread_create(&thread[i], NULL, work, &seeds[i]);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	for (unsigned kind = 0; kind < KIND_COUNT; kind++)
		if (!CHECK(ledger_used(&ledger, kind) == 0, "%s: %lld left over",
			   kind_rows[kind].name, (long long)ledger_used(&ledger, kind)))
			count(&tally->faults);
	books_leave(&ledger);
	count(&tally->leaves);
}

static pid_t process_start(void (*run)(unsigned argument), unsigned argument)
{
	pid_t pid = family_fork();

	if (pid == 0) {
		run(argument);
		_exit(0);
	}
	return pid;
}

static void worker_run(unsigned number)
{
	unsigned seed = (unsigned)getpid();

	self = number;
	setpriority(PRIO_PROCESS, 0, WORKER_NICE);
	for (;;)
		career(&seed);
}

static int process_wait(pid_t pid)
{
	int status = 0;

	waitpid(pid, &status, 0);
	return status;
}

/* ---- the audit ---- */

/* Waits as long as other processes get the lock. */
static int audit_lock(struct layout_header *header)
{
	uint64_t turns;
	int result;

	do {
		struct timespec until;

		turns = __atomic_load_n(&header->turns, __ATOMIC_RELAXED);
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += LOCK_SECONDS;
		result = pthread_mutex_timedlock(&header->lock, &until);
	} while (result == ETIMEDOUT && turns != __atomic_load_n(&header->turns, __ATOMIC_RELAXED));
	return result;
}

/* No worker is killed meanwhile, so every seat that is taken is of a living process. */
static void audit_run(unsigned attempt)
{
	struct layout_header *header;
	unsigned bad = 0;
	int result;

	if (!CHECK(attempt < ATTEMPTS_MAX) || !books_join(&ledger))
		_exit(AUDIT_BAD);
	header = ledger.embedded.header;
	result = audit_lock(header);
	/* Only a join can rebuild: leave the lock as it was found, by dying with it. */
	if (result == EOWNERDEAD)
		_exit(AUDIT_AGAIN);
	if (!CHECK(result == 0, "the lock: error %d", result))
		_exit(AUDIT_BAD);
	tally->rebuilds = header->rebuilds;
	bad += books_drift(header);
	for (unsigned kind = 0; kind < KIND_COUNT; kind++)
		bad += !CHECK(header->used[kind] <= header->limit[kind], "%s: %lld of %lld",
			      kind_rows[kind].name, (long long)header->used[kind],
			      (long long)header->limit[kind]);
	bad += !CHECK(books_seats_taken(header) <= WORKERS + 1, "%u seats are taken",
		      books_seats_taken(header));
	pthread_mutex_unlock(&header->lock);
	ledger_close(&ledger);
	_exit(bad ? AUDIT_BAD : AUDIT_GOOD);
}

static bool audit(void)
{
	unsigned attempt = 0;
	int status;

	do {
		status = process_wait(process_start(audit_run, attempt++));
	} while (WIFEXITED(status) && WEXITSTATUS(status) == AUDIT_AGAIN);
	return CHECK(WIFEXITED(status) && WEXITSTATUS(status) == AUDIT_GOOD, "audit: status %#x",
		     status);
}

/* When all workers have ended, a new process must find an empty ledger. */
static unsigned final_drift(void)
{
	unsigned drift;

	if (!books_join(&ledger))
		return 1;
	drift = books_drift(ledger.embedded.header);
	for (unsigned kind = 0; kind < KIND_COUNT; kind++)
		drift += !CHECK(ledger.embedded.header->used[kind] == 0, "%s: %lld at the end",
				kind_rows[kind].name, (long long)ledger.embedded.header->used[kind]);
	drift += !CHECK(books_seats_taken(ledger.embedded.header) == 1);
	printf("rebuilt after %llu deaths with the lock, %llu seats given back\n",
	       (unsigned long long)ledger.embedded.header->rebuilds,
	       (unsigned long long)ledger.embedded.header->reaped);
	books_leave(&ledger);
	return drift;
}

/* ---- the storm ---- */

static void workers_start(void)
{
	for (unsigned i = 0; i < WORKERS; i++)
		if (!workers[i])
			workers[i] = process_start(worker_run, i);
}

/* Kills those of the set and waits until they have ended; how many they were. */
static unsigned workers_kill(unsigned set)
{
	unsigned kills = 0;

	for (unsigned i = 0; i < WORKERS; i++)
		if (set >> i & 1)
			kill(workers[i], SIGKILL);
	for (unsigned i = 0; i < WORKERS; i++) {
		int status;

		if (!(set >> i & 1))
			continue;
		status = process_wait(workers[i]);
		workers[i] = 0;
		kills++;
		if (!CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
			   "a worker ended with status %#x", status))
			count(&tally->faults);
	}
	return kills;
}

static unsigned victims_choose(void)
{
	unsigned set = 1u << __atomic_load_n(&tally->latest, __ATOMIC_RELAXED);

	for (int more = rand() % BURST_MAX; more; more--)
		set |= 1u << rand() % WORKERS;
	return set;
}

static unsigned kills_wanted(void)
{
	const char *wish = getenv("RDMA_INTERCEPT_TEST_KILLS");

	return wish && atoi(wish) > 0 ? (unsigned)atoi(wish) : KILLS_DEFAULT;
}

/* Until there were enough kills, and enough of them under the lock; or a fault, or far more kills. */
static void storm(unsigned wanted)
{
	unsigned kills = 0, audits = 0, bad_audits = 0, next_audit = 0;
	unsigned rebuilds = wanted / KILLS_PER_REBUILD;
	double start = seconds_now();

	while (!tally->faults &&
	       (kills < wanted || (tally->rebuilds < rebuilds && kills < 10 * wanted))) {
		workers_start();
		if (kills >= next_audit) {
			bad_audits += !audit();
			audits++;
			next_audit = kills + KILLS_PER_AUDIT;
		}
		usleep((useconds_t)(rand() % PAUSE_MAX_US));
		kills += workers_kill(victims_choose());
	}
	workers_start();
	kills += workers_kill((1u << WORKERS) - 1);
	printf("%u kills, %llu of them with the lock; %u audits, %u of them bad; %.1f s\n", kills,
	       (unsigned long long)tally->rebuilds, audits, bad_audits, seconds_now() - start);
	CHECK(tally->faults || tally->rebuilds >= rebuilds, "%llu kills with the lock, %u are the least",
	      (unsigned long long)tally->rebuilds, rebuilds);
	tally->faults += bad_audits;
}

static void limits_set(void)
{
	books_limits.host[KIND_qp] = 90;
	books_limits.host[KIND_send_wr] = 8000;
	books_limits.host[KIND_mr] = 50;
	books_limits.host[KIND_mr_bytes] = 7u << 20;
	books_limits.process[KIND_qp] = 15;
	ledger_limits_device(&books_limits, "fake0", 5)->limit[KIND_qp] = 40;
	ledger_limits_device(&books_limits, "fake1", 5)->limit[KIND_recv_wr] = 4000;
}

static void storm_of_kills(void)
{
	unsigned drift;

	tally = mmap(NULL, sizeof(*tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (tally == MAP_FAILED)
		abort();
	srand((unsigned)getpid());
	books_init("storm");
	limits_set();
	storm(kills_wanted());
	drift = final_drift();
	printf("%llu joins, %llu leaves, %llu charges, %llu refusals, %llu faults; drift %u\n",
	       (unsigned long long)tally->joins, (unsigned long long)tally->leaves,
	       (unsigned long long)tally->charges, (unsigned long long)tally->refusals,
	       (unsigned long long)tally->faults, drift);
	CHECK(tally->charges > 0 && tally->refusals > 0);
	CHECK(drift == 0 && tally->faults == 0);
}

static void driver(void)
{
	RUN(storm_of_kills);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
