/* SPDX-License-Identifier: MIT */
/*
 * What coming, staying and going cost, with a real collector: how fast thousands of
 * processes register, what each of them takes of memory, how soon a first charge and a
 * growth are answered, what the collector does while nothing happens, how long a sweep
 * over all leases takes, and how fast the dead are given back. The targets are checks.
 *
 * Usage: registrations [PROCESSES]
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "collector.h"
#include "collector/grants.h"
#include "collector/members.h"
#include "harness.h"
#include "ledger/ledger.h"

enum {
	PROCESSES_MOST = 4000,
	SAMPLES = 1000, /* processes that come one after the other */
	GROWTHS = 10,	/* of each of them */
	IDLE_SECONDS = 10,
	SETTLE_SECONDS = 2, /* until the kernel has freed what was closed */
	GIVE_BACK_SECONDS = 60,
	SWEEPS = 101,
};

static unsigned processes = PROCESSES_MOST;

/* What the processes tell the driver. */
static struct board {
	pthread_barrier_t go;
	sem_t all;
	uint32_t arrived;
	uint32_t failed;
	double together[PROCESSES_MOST]; /* seconds to the first charge, all at once */
	double own_cpu[PROCESSES_MOST];	 /* of that, at work */
	double alone[SAMPLES];		 /* the same, one after the other */
	double growth[SAMPLES * GROWTHS];
} *board;

/* ---- figures */

static int ascending(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

static double part(double *values, unsigned count, double fraction)
{
	qsort(values, count, sizeof(*values), ascending);
	return values[(unsigned)(fraction * (count - 1))];
}

static void latency_print(const char *what, double *seconds, unsigned count)
{
	double half = part(seconds, count, 0.5) * 1e6;

	printf("%-44s %10.0f us p50 %10.0f us p99\n", what, half, part(seconds, count, 0.99) * 1e6);
}

/* A figure and what it has to be: at least, or at most. */
static void target(const char *what, double value, const char *unit, double least, double most)
{
	printf("%-44s %10.*f %s\n", what, value < 100 ? 1 : 0, value, unit);
	CHECK(value >= least && value <= most, "%s: %g %s", what, value, unit);
}

/* The number after a word in a file of /proc. */
static double number_after(const char *path, const char *word)
{
	char text[8192];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	const char *found;

	if (fd >= 0)
		close(fd);
	text[length > 0 ? length : 0] = '\0';
	found = strstr(text, word);
	return found ? strtod(found + strlen(word), NULL) : 0;
}

/* CPU seconds of a process so far. */
static double cpu_of(pid_t pid)
{
	struct timespec time = { 0 };
	clockid_t clock;

	if (!clock_getcpuclockid(pid, &clock))
		clock_gettime(clock, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static unsigned registered(void)
{
	struct proto_status pong = { 0 };

	return collector_call(MESSAGE_STATUS, NULL, &pong) < 0 ? UINT32_MAX : pong.processes;
}

/* ---- memory, in KB */

struct memory {
	double slab, shared, tables, collector, available;
};

static struct memory memory_now(void)
{
	char path[64];
	struct memory now = {
		.slab = number_after("/proc/meminfo", "\nSlab:"),
		.shared = number_after("/proc/meminfo", "\nShmem:"),
		.tables = number_after("/proc/meminfo", "\nPageTables:"),
		.available = number_after("/proc/meminfo", "\nMemAvailable:"),
	};

	snprintf(path, sizeof(path), "/proc/%d/status", (int)collector_pid());
	now.collector = number_after(path, "\nRssAnon:") + number_after(path, "\nRssFile:");
	return now;
}

static void memory_print(const struct memory *before, const struct memory *after)
{
	double slab = (after->slab - before->slab) / processes;
	double shared = (after->shared - before->shared) / processes;
	double tables = (after->tables - before->tables) / processes;
	double collector = (after->collector - before->collector) / processes;

	target("memory of a registered process", slab + shared + tables + collector, "KB", 0, 16);
	printf("%-44s %10.1f KB slab, %.1f shared, %.1f page tables, %.1f collector\n", "its parts",
	       slab, shared, tables, collector);
	printf("%-44s %10.1f KB, if nothing else runs\n", "the same by MemAvailable",
	       (before->available - after->available) / processes);
}

/* ---- a process */

static struct ledger ledger;
static unsigned device;

static void failure(const char *text)
{
	if (!__atomic_fetch_add(&board->failed, 1, __ATOMIC_RELAXED))
		printf("%s\n", text);
}

static void charge(uint64_t amount)
{
	struct ledger_refusal refusal;

	if (ledger_charge(&ledger, device, &COST1(qp, amount), &refusal))
		failure("a charge was refused or not answered");
}

/* Seconds from nothing to the first charge. */
static double registration(void)
{
	static const struct log no_log = { .level = LOG_OFF };
	static struct ledger_limits limits;
	const struct ledger_options options = {
		.transport = TRANSPORT_LEASE,
		.socket = collector_socket(),
		.limits = &limits,
		.log = &no_log,
	};
	char problem[PROBLEM_SIZE];
	double start;

	ledger_limits_clear(&limits);
	start = seconds_now();
	if (ledger_open(&ledger, &options, problem) < 0) {
		failure(problem);
	} else {
		device = (unsigned)ledger_device(&ledger, "bench0");
		charge(1);
	}
	return seconds_now() - start;
}

static void arrive(void)
{
	if (__atomic_add_fetch(&board->arrived, 1, __ATOMIC_SEQ_CST) == processes)
		sem_post(&board->all);
}

static void all_arrived(void)
{
	while (sem_wait(&board->all))
		;
	board->arrived = 0;
}

/*
 * Touches what a registration will, so that no page of the process itself is new then; and
 * the files of /proc that the collector reads, of which the kernel keeps a cache that any
 * ps fills and that it drops when it needs memory.
 */
static void warm_up(void)
{
	struct proto_status pong;
	char problem[PROBLEM_SIZE];

	memset(&ledger, 1, sizeof(ledger));
	proto_call("/nonexistent", MESSAGE_STATUS, NULL, &pong, NULL, 0, 0, problem);
	number_after("/proc/self/stat", "(");
	number_after("/proc/self/cgroup", ":");
}

static pid_t child(void)
{
	pid_t pid = fork();

	if (pid < 0)
		skip("%u processes cannot be had: %s", processes, strerror(errno));
	if (pid == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

/* ---- one after the other */

static void measure_alone(unsigned sample)
{
	uint64_t total = 1;

	warm_up();
	board->alone[sample] = registration();
	if (board->failed)
		_exit(1);
	for (unsigned i = 0; i < GROWTHS; i++) {
		/* More than the credit of the last growth: as much again as is held, or 16. */
		uint64_t more = total + 17;
		double start = seconds_now();

		charge(more);
		board->growth[sample * GROWTHS + i] = seconds_now() - start;
		total += more;
	}
	_exit(0);
}

static void one_after_the_other(void)
{
	for (unsigned i = 0; i < SAMPLES; i++) {
		pid_t pid = child();

		if (pid == 0)
			measure_alone(i);
		waitpid(pid, NULL, 0);
	}
	latency_print("first charge with registration, alone", board->alone, SAMPLES);
	latency_print("growth", board->growth, SAMPLES * GROWTHS);
}

/* ---- all at once */

static pid_t crowd[PROCESSES_MOST];

static __attribute__((noreturn)) void measure_together(unsigned number)
{
	double cpu;

	warm_up();
	arrive();
	pthread_barrier_wait(&board->go);
	cpu = cpu_of(0);
	board->together[number] = registration();
	board->own_cpu[number] = cpu_of(0) - cpu;
	arrive();
	for (;;)
		pause();
}

static void crowd_start(void)
{
	for (unsigned i = 0; i < processes; i++) {
		crowd[i] = child();
		if (crowd[i] == 0)
			measure_together(i);
	}
	all_arrived();
}

static void crowd_registers(void)
{
	double start = seconds_now(), cpu = cpu_of(collector_pid());

	pthread_barrier_wait(&board->go);
	all_arrived();
	start = seconds_now() - start;
	cpu = cpu_of(collector_pid()) - cpu;
	CHECK(!board->failed, "%u of %u failed, and are in the rate", board->failed, processes);
	CHECK(registered() == processes, "%u of %u", registered(), processes);
	target("registrations with a first charge", processes / start, "/s", 5000, 1e9);
	printf("%-44s %10.0f us collector %8.0f us process\n", "CPU time of each",
	       cpu / processes * 1e6, part(board->own_cpu, processes, 0.5) * 1e6);
	latency_print("first charge with registration, all at once", board->together, processes);
}

static void crowd_idles(void)
{
	double cpu = cpu_of(collector_pid());

	sleep(IDLE_SECONDS);
	cpu = cpu_of(collector_pid()) - cpu;
	target("the collector's idle CPU", 100 * cpu / IDLE_SECONDS, "%", 0, 1);
}

static void crowd_dies(void)
{
	double start = seconds_now(), cpu = cpu_of(collector_pid());

	for (unsigned i = 0; i < processes; i++)
		kill(crowd[i], SIGKILL);
	while (registered() > 0 && seconds_now() < start + GIVE_BACK_SECONDS)
		usleep(1000);
	start = seconds_now() - start;
	cpu = cpu_of(collector_pid()) - cpu;
	for (unsigned i = 0; i < processes; i++)
		waitpid(crowd[i], NULL, 0);
	CHECK(registered() == 0, "%u are left", registered());
	printf("%-44s %10.0f /s\n", "deaths, given back", processes / start);
	printf("%-44s %10.0f us collector\n", "CPU time of each", cpu / processes * 1e6);
}

static void all_at_once(void)
{
	struct memory before, after;

	crowd_start();
	sleep(SETTLE_SECONDS);
	before = memory_now();
	crowd_registers();
	sleep(SETTLE_SECONDS);
	after = memory_now();
	memory_print(&before, &after);
	crowd_idles();
	crowd_dies();
}

/* ---- the sweep, in this process, over as many leases */

/* A member of made-up number that uses one QP, with a lease on a device. */
static unsigned lease_make(struct members *members, unsigned tenant, unsigned number)
{
	struct books *books = members->books;
	struct proto_hello hello = { 0 };
	struct peer peer = { .pid = (pid_t)number + 1, .pidfd = eventfd(0, EFD_CLOEXEC) };
	struct usage_page *page;
	int usage, member, lease;

	memset(hello.process_limit, 0xff, sizeof(hello.process_limit));
	memset(hello.host_limit, 0xff, sizeof(hello.host_limit));
	member = members_join(members, &peer, tenant, &hello, -1, &usage);
	lease = books_lease_row(books);
	if (member < 0 || lease < 0 ||
	    books_lease_take(books, (unsigned)lease, (unsigned)member, 1, 1) < 0)
		abort();
	page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, usage, 0);
	page->row[1].used[KIND_qp] = 1;
	munmap(page, sizeof(*page));
	close(usage);
	return (unsigned)lease;
}

/* Every lease gets credit that it does not use. */
static void leases_grow(struct books *books, unsigned count)
{
	struct grants_need need = { .count = 1, .kind = { KIND_qp }, .total = { 2 } };
	struct ledger_refusal refusal;

	for (need.lease = 0; need.lease < count; need.lease++)
		if (grants_need(books, &need, &refusal))
			abort();
}

static double sweep_ns(struct books *books)
{
	double start = seconds_now();

	grants_sweep_all(books, KIND_qp);
	return (seconds_now() - start) * 1e9 / processes;
}

static void sweeps(void)
{
	static const struct log no_log = { .level = LOG_OFF };
	static struct books books;
	static double taking[SWEEPS], looking[SWEEPS];
	struct rlimit descriptors;
	struct members members;
	char problem[PROBLEM_SIZE];
	int tenant;

	getrlimit(RLIMIT_NOFILE, &descriptors);
	descriptors.rlim_cur = descriptors.rlim_max;
	setrlimit(RLIMIT_NOFILE, &descriptors);
	if (books_open(&books, harness_path("sweep"), &no_log, problem) < 0 ||
	    members_init(&members, &books) < 0)
		abort();
	tenant = books_tenant(&books, "bench");
	for (unsigned i = 0; i < processes; i++)
		lease_make(&members, (unsigned)tenant, i);
	for (unsigned i = 0; i < SWEEPS; i++) {
		leases_grow(&books, processes);
		taking[i] = sweep_ns(&books);
		looking[i] = sweep_ns(&books);
	}
	target("sweep, all with idle credit, per lease", part(taking, SWEEPS, 0.5), "ns", 0, 50);
	target("sweep, none with idle credit, per lease", part(looking, SWEEPS, 0.5), "ns", 0, 50);
	members_close(&members);
	books_close(&books);
}

static void measure(void)
{
	pthread_barrierattr_t between_processes;

	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (board == MAP_FAILED)
		abort();
	pthread_barrierattr_init(&between_processes);
	pthread_barrierattr_setpshared(&between_processes, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&board->go, &between_processes, processes + 1);
	sem_init(&board->all, 1, 0);
	collector_start("");
	one_after_the_other();
	all_at_once();
	collector_stop();
	sweeps();
}

int main(int argc, char **argv)
{
	if (argc == 2)
		processes = (unsigned)atoi(argv[1]);
	if (argc > 2 || processes < 1 || processes > PROCESSES_MOST) {
		fprintf(stderr, "usage: registrations [PROCESSES, at most %d]\n", PROCESSES_MOST);
		return 2;
	}
	printf("%u processes\n", processes);
	return harness_main(1, argv, NULL, measure);
}
