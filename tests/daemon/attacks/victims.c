/* SPDX-License-Identifier: MIT */
/*
 * The victims of an attack, and how they fared; see attack.h. They are processes that use the
 * library's ledger as every program does, so they also have the library's time limits.
 */
#include "attack.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "ledger/ledger.h"

enum {
	SAMPLES_MAX = 1 << 16,
	PAUSE_US = 5000,
	AGAIN_US = 50000,   /* before a request that was not answered is sent again */
	GIVE_UP_SECONDS = 60, /* of such requests: the collector hangs or has ended */
};

/* The process that has the turn writes; the driver reads `rounds` meanwhile. */
static struct {
	unsigned wanted, rounds, lost, gained, unanswered, samples;
	uint64_t begun_ns, ended_ns; /* of the first round and the last wanted one */
	uint64_t sample_ns[SAMPLES_MAX];
} *shared;

static struct ledger ledger;
static struct ledger_limits no_limits;
static const struct log complaints = { .level = LOG_WARN, .to_stderr = true };

static uint64_t nanoseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void victims_share(void)
{
	if (!shared)
		shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		abort();
	memset(shared, 0, sizeof(*shared));
}

/* How long a call took that had to ask the collector. */
static void sample(uint64_t begun)
{
	unsigned place = __atomic_fetch_add(&shared->samples, 1, __ATOMIC_RELAXED);

	if (place < SAMPLES_MAX)
		shared->sample_ns[place] = nanoseconds() - begun;
}

/* A request was not answered in the library's time. Returns unless the victim should give up. */
static void try_again(uint64_t begun)
{
	__atomic_add_fetch(&shared->unanswered, 1, __ATOMIC_RELAXED);
	if (!CHECK(nanoseconds() - begun < GIVE_UP_SECONDS * 1000000000ull,
		   "the collector does not answer the victim"))
		finish();
	usleep(AGAIN_US);
}

void victim_enter(void)
{
	char problem[PROBLEM_SIZE] = "";
	struct ledger_options options = { .transport = TRANSPORT_LEASE,
					  .socket = collector_socket(),
					  .limits = &no_limits,
					  .log = &complaints };
	uint64_t begun = nanoseconds();

	become(victim_uid(), NULL);
	ledger_limits_clear(&no_limits);
	while (ledger_open(&ledger, &options, problem) < 0)
		try_again(begun);
	sample(begun);
	CHECK(!strcmp(ledger_tenant(&ledger), "victim"), "%s", ledger_tenant(&ledger));
}

unsigned victim_device(const char *name)
{
	return (unsigned)ledger_device(&ledger, name);
}

static int charge(unsigned device, bool sampled)
{
	struct cost cost = COST1(qp, 1);
	struct ledger_refusal refusal;
	uint64_t begun = nanoseconds();
	int result;

	while ((result = ledger_charge(&ledger, device, &cost, &refusal)) == LEDGER_UNANSWERED)
		try_again(begun);
	if (sampled)
		sample(begun);
	return result;
}

int victim_charge(unsigned device)
{
	return charge(device, false);
}

unsigned victim_take(unsigned device, unsigned amount)
{
	unsigned got = 0;

	for (unsigned i = 0; i < amount; i++)
		got += charge(device, i == 0) == 0;
	shared->lost += amount - got;
	if (charge(device, true) == 0) {
		shared->gained++;
		got++;
	}
	return got;
}

static void round_play(unsigned device, unsigned other)
{
	struct cost cost = COST1(qp, 1);
	unsigned got, more;

	if (!shared->begun_ns)
		shared->begun_ns = nanoseconds();
	got = victim_take(device, QUOTA_ON_DEVICE);
	more = victim_take(other, QUOTA - QUOTA_ON_DEVICE);
	while (got--)
		ledger_refund(&ledger, device, &cost);
	while (more--)
		ledger_refund(&ledger, other, &cost);
	if (shared->rounds < shared->wanted)
		shared->ended_ns = nanoseconds();
	else
		usleep(PAUSE_US);
	__atomic_add_fetch(&shared->rounds, 1, __ATOMIC_SEQ_CST);
}

static void __attribute__((noreturn)) victim(int turns)
{
	unsigned device, other;
	char token;

	victim_enter();
	device = victim_device(DEVICE);
	other = victim_device(OTHER_DEVICE);
	while (read(turns, &token, 1) == 1 && token != 'e') {
		round_play(device, other);
		token = attack_is_on() ? 't' : 'e';
		if (write(turns, &token, 1) != 1 || token == 'e')
			break;
	}
	finish();
}

void victims_start(unsigned rounds, pid_t ret_pid[2])
{
	int ends[2];

	victims_share();
	shared->wanted = rounds;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) || write(ends[0], "t", 1) != 1)
		abort();
	for (int i = 0; i < 2; i++) {
		ret_pid[i] = split();
		if (ret_pid[i] == 0) {
			close(ends[!i]);
			victim(ends[i]);
		}
	}
	close(ends[0]);
	close(ends[1]);
}

unsigned victims_rounds(void)
{
	return __atomic_load_n(&shared->rounds, __ATOMIC_SEQ_CST);
}

static int ascending(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return left < right ? -1 : left > right;
}

static double milliseconds_at(double part)
{
	unsigned samples = shared->samples < SAMPLES_MAX ? shared->samples : SAMPLES_MAX;

	return samples ? (double)shared->sample_ns[(unsigned)(part * (samples - 1))] / 1e6 : 0;
}

struct victims_report victims_end(const pid_t pid[2])
{
	struct victims_report report;

	for (int i = 0; i < 2; i++)
		CHECK(reap(pid[i]) == 0, "a victim failed");
	qsort(shared->sample_ns, shared->samples < SAMPLES_MAX ? shared->samples : SAMPLES_MAX,
	      sizeof(shared->sample_ns[0]), ascending);
	report = (struct victims_report){
		.rounds = shared->rounds,
		.lost = shared->lost,
		.gained = shared->gained,
		.unanswered = shared->unanswered,
		.ms_half = milliseconds_at(0.5),
		.ms_99 = milliseconds_at(0.99),
		.ms_all = milliseconds_at(1),
	};
	if (shared->ended_ns)
		report.rate = (shared->rounds < shared->wanted ? shared->rounds : shared->wanted) *
			      1e9 / (double)(shared->ended_ns - shared->begun_ns);
	return report;
}
