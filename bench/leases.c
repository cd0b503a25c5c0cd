/* SPDX-License-Identifier: MIT */
/*
 * What a charge with its refund costs: by lease, in the embedded file, by socket,
 * and under a plain spin lock in shared memory, which is the way to beat. Pools of
 * processes take turns in short slices, so that whatever else the machine does hits
 * all ways alike; the cost is CPU time, with the collector's, and the median counts.
 *
 * Usage: leases [KINDS]              the comparison, for a cost of so many kinds
 *        leases pairs TRANSPORT N    N pairs between two calls of getppid, to be traced
 */
#include <errno.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/cycles.h"
#include "collector.h"
#include "harness.h"
#include "ledger/ledger.h"

enum { PROCESSES = 64, ROUNDS = 15, SLICE_US = 200000, PATIENCE_SECONDS = 60, TARGET_NS = 15 };

#define LOAD(word) __atomic_load_n(&(word), __ATOMIC_RELAXED)
#define STORE(word, value) __atomic_store_n(&(word), (value), __ATOMIC_RELAXED)

static const unsigned companies[] = { 1, 2, 8, PROCESSES };
enum { COMPANIES = sizeof(companies) / sizeof(companies[0]) };

static struct cost cost;
static unsigned device;

static void give_up(const char *text)
{
	printf("%s\n", text);
	fflush(stdout);
	_exit(1);
}

/* ---- the ledger */

static struct ledger ledger;
static struct ledger_limits limits;

static void ledger_join(enum transport transport, const char *socket)
{
	static const struct log no_log = { .level = LOG_OFF };
	const struct ledger_options options = {
		.transport = transport,
		.socket = socket,
		.name = shm_name(),
		.mode = 0600,
		.limits = &limits,
		.log = &no_log,
	};
	char problem[PROBLEM_SIZE];

	ledger_limits_clear(&limits);
	if (ledger_open(&ledger, &options, problem) < 0)
		give_up(problem);
	device = (unsigned)ledger_device(&ledger, "bench0");
}

static void ledger_pairs(unsigned count)
{
	struct ledger_refusal refusal;

	while (count--) {
		if (ledger_charge(&ledger, device, &cost, &refusal))
			give_up("refused");
		ledger_refund(&ledger, device, &cost);
	}
}

/* ---- the spin lock */

enum { SPIN_HOST, SPIN_TENANT, SPIN_FIRST_PROCESS };

static struct spin {
	uint32_t held;
	_Alignas(64) struct spin_counter {
		_Alignas(64) uint64_t used[KIND_COUNT];
		uint64_t limit[KIND_COUNT];
	} counter[SPIN_FIRST_PROCESS + PROCESSES];
} *spin;

static unsigned spin_self; /* our counter */

static void spin_acquire(void)
{
	while (__atomic_exchange_n(&spin->held, 1, __ATOMIC_ACQUIRE))
		while (LOAD(spin->held))
			cycles_pause();
}

static void spin_release(void)
{
	__atomic_store_n(&spin->held, 0, __ATOMIC_RELEASE);
}

static bool spin_fits(const struct spin_counter *counter)
{
	for (unsigned i = 0; i < cost.count; i++)
		if (counter->used[cost.kind[i]] + cost.amount[i] > counter->limit[cost.kind[i]])
			return false;
	return true;
}

static void spin_add(struct spin_counter *counter, uint64_t sign)
{
	for (unsigned i = 0; i < cost.count; i++)
		counter->used[cost.kind[i]] += sign * cost.amount[i];
}

static bool spin_charge(void)
{
	struct spin_counter *host = &spin->counter[SPIN_HOST];
	struct spin_counter *tenant = &spin->counter[SPIN_TENANT];
	struct spin_counter *process = &spin->counter[spin_self];
	bool fits;

	spin_acquire();
	fits = spin_fits(process) && spin_fits(tenant) && spin_fits(host);
	if (fits) {
		spin_add(process, 1);
		spin_add(tenant, 1);
		spin_add(host, 1);
	}
	spin_release();
	return fits;
}

static void spin_refund(void)
{
	spin_acquire();
	spin_add(&spin->counter[spin_self], -1);
	spin_add(&spin->counter[SPIN_TENANT], -1);
	spin_add(&spin->counter[SPIN_HOST], -1);
	spin_release();
}

static void spin_pairs(unsigned count)
{
	while (count--) {
		if (!spin_charge())
			give_up("refused");
		spin_refund();
	}
}

/* ---- the pools */

enum way { WAY_LEASE, WAY_EMBEDDED, WAY_SPIN, WAY_SOCKET, WAYS };

static const struct {
	const char *name;
	enum transport transport; /* AUTO: has no ledger */
	void (*pairs)(unsigned count);
	unsigned batch; /* between two looks whether the slice is over */
} ways[WAYS] = {
	[WAY_LEASE] = { "lease", TRANSPORT_LEASE, ledger_pairs, 64 },
	[WAY_EMBEDDED] = { "embedded", TRANSPORT_EMBEDDED, ledger_pairs, 64 },
	[WAY_SPIN] = { "spin lock", TRANSPORT_AUTO, spin_pairs, 64 },
	[WAY_SOCKET] = { "socket", TRANSPORT_SOCKET, ledger_pairs, 1 },
};

static struct board {
	uint32_t over; /* 1: the slice is */
	sem_t done;
	_Alignas(64) struct seat {
		_Alignas(64) sem_t go;
		uint64_t ns, pairs; /* of the last slice */
	} seat[WAYS][PROCESSES];
} *board;

static uint64_t cpu_ns(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Company is company only if it is not all on one CPU. */
static void take_cpu(unsigned number)
{
	cpu_set_t allowed, own;
	unsigned cpu = 0, nth;

	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		return;
	nth = number % (unsigned)CPU_COUNT(&allowed);
	while (!CPU_ISSET(cpu, &allowed) || nth--)
		cpu++;
	CPU_ZERO(&own);
	CPU_SET(cpu, &own);
	sched_setaffinity(0, sizeof(own), &own);
}

static __attribute__((noreturn)) void serve(enum way way, unsigned number)
{
	struct seat *seat = &board->seat[way][number];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	take_cpu(number);
	if (ways[way].transport != TRANSPORT_AUTO)
		ledger_join(ways[way].transport, collector_socket());
	spin_self = SPIN_FIRST_PROCESS + number;
	ways[way].pairs(1); /* the first charge asks for the lease */
	sem_post(&board->done);
	for (;;) {
		uint64_t before, pairs = 0;

		while (sem_wait(&seat->go))
			;
		before = cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
		for (; !LOAD(board->over); pairs += ways[way].batch)
			ways[way].pairs(ways[way].batch);
		seat->ns = cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - before;
		seat->pairs = pairs;
		sem_post(&board->done);
	}
}

static void all_done(unsigned count)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += PATIENCE_SECONDS;
	while (count) {
		if (!sem_timedwait(&board->done, &until)) {
			count--;
		} else if (errno != EINTR) {
			printf("%u processes do not answer\n", count);
			exit(1);
		}
	}
}

static void *shared(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		abort();
	return memory;
}

static void pools_start(void)
{
	board = shared(sizeof(*board));
	spin = shared(sizeof(*spin));
	for (unsigned i = 0; i < sizeof(spin->counter) / sizeof(spin->counter[0]); i++)
		memset(spin->counter[i].limit, 0xff, sizeof(spin->counter[i].limit));
	sem_init(&board->done, 1, 0);
	for (unsigned way = 0; way < WAYS; way++) {
		for (unsigned i = 0; i < PROCESSES; i++) {
			sem_init(&board->seat[way][i].go, 1, 0);
			if (fork() == 0)
				serve(way, i);
		}
		all_done(PROCESSES);
	}
}

/* CPU ns per pair of so many processes at once. */
static double slice(enum way way, unsigned company, clockid_t collector)
{
	uint64_t ns, pairs = 0;

	STORE(board->over, 0);
	ns = -cpu_ns(collector);
	for (unsigned i = 0; i < company; i++)
		sem_post(&board->seat[way][i].go);
	usleep(SLICE_US);
	STORE(board->over, 1);
	all_done(company);
	ns += cpu_ns(collector);
	for (unsigned i = 0; i < company; i++) {
		ns += board->seat[way][i].ns;
		pairs += board->seat[way][i].pairs;
	}
	return pairs ? (double)ns / (double)pairs : 0;
}

/* ---- the comparison */

static int ascending(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

static double median(double *values, unsigned count)
{
	qsort(values, count, sizeof(*values), ascending);
	return values[count / 2];
}

static void row_print(const char *name, const double *values, const double *parts,
		      const char *format)
{
	printf("%-22s", name);
	for (unsigned i = 0; i < COMPANIES; i++)
		printf(format, parts ? values[i] / parts[i] : values[i]);
	printf("\n");
}

static void report(double ns[WAYS][COMPANIES])
{
	const double *lease = ns[WAY_LEASE];
	double alone[COMPANIES];

	printf("%-22s", "CPU ns, processes:");
	for (unsigned i = 0; i < COMPANIES; i++) {
		printf("%12u", companies[i]);
		alone[i] = lease[0];
	}
	printf("\n");
	for (unsigned way = 0; way < WAYS; way++)
		row_print(ways[way].name, ns[way], NULL, "%12.1f");
	row_print("spin lock / lease", ns[WAY_SPIN], lease, "%11.1fx");
	row_print("embedded / lease", ns[WAY_EMBEDDED], lease, "%11.1fx");
	row_print("socket / lease", ns[WAY_SOCKET], lease, "%11.0fx");
	row_print("lease / alone", lease, alone, "%11.2fx");
}

static void check_targets(double ns[WAYS][COMPANIES])
{
	const double *lease = ns[WAY_LEASE];

	CHECK(lease[0] <= TARGET_NS, "%.1f ns alone", lease[0]);
	CHECK(lease[COMPANIES - 1] <= 1.5 * lease[0], "%.1f ns alone, %.1f among %u", lease[0],
	      lease[COMPANIES - 1], PROCESSES);
	CHECK(lease[COMPANIES - 1] < ns[WAY_SPIN][COMPANIES - 1]);
}

static void compare(void)
{
	static double seen[WAYS][COMPANIES][ROUNDS];
	double ns[WAYS][COMPANIES];
	clockid_t clock;

	collector_start("");
	clock_getcpuclockid(collector_pid(), &clock);
	pools_start();
	for (unsigned round = 0; round < ROUNDS; round++)
		for (unsigned i = 0; i < COMPANIES; i++)
			for (unsigned way = 0; way < WAYS; way++)
				seen[way][i][round] = slice(way, companies[i], clock);
	for (unsigned way = 0; way < WAYS; way++)
		for (unsigned i = 0; i < COMPANIES; i++)
			ns[way][i] = median(seen[way][i], ROUNDS);
	report(ns);
	check_targets(ns);
}

/* ---- pairs to be traced */

static int pairs(const char *name, unsigned count)
{
	unsigned transport = TRANSPORT_LEASE;

	while (transport < TRANSPORTS && strcmp(transport_names[transport], name))
		transport++;
	if (transport == TRANSPORTS)
		return 2;
	ledger_join(transport, getenv(PROTO_SOCKET_VARIABLE));
	ledger_pairs(1);
	getppid();
	ledger_pairs(count);
	getppid();
	return 0;
}

int main(int argc, char **argv)
{
	int kinds = argc == 2 ? atoi(argv[1]) : 1;

	cost = COST3(qp, 1, send_wr, 16, recv_wr, 16);
	if (argc == 4 && !strcmp(argv[1], "pairs")) {
		cost.count = 1;
		return pairs(argv[2], (unsigned)atol(argv[3]));
	}
	if (argc > 2 || kinds < 1 || kinds > COST_KINDS) {
		fprintf(stderr, "usage: leases [KINDS] | leases pairs TRANSPORT N\n");
		return 2;
	}
	cost.count = (uint8_t)kinds;
	printf("a charge and its refund, %d kind%s\n", kinds, kinds == 1 ? "" : "s");
	return harness_main(1, argv, NULL, compare);
}
