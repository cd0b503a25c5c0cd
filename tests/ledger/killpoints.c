/* SPDX-License-Identifier: MIT */
/*
 * SIGKILL after every instruction. A victim does one operation of the ledger
 * under ptrace and is killed after N instructions, for each N; then a fresh
 * process joins, and what it finds must be exact: the bystander's amounts and
 * nothing else, a lock that is free, and limits that hold to the last unit.
 *
 * A reference run first notes the address of each instruction. To come to
 * point N, a victim runs to a breakpoint shortly before it, at an address that
 * is not visited often, and is stepped from there. Long operations are sampled,
 * mostly outside the lock. A repeated string instruction is one instruction.
 */
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "books.h"
#include "harness.h"
#include "ledger/shmfile.h"

#if defined(__x86_64__) && !BOOKS_TSAN

#define DEVICE "fake_device_0"
#define NEW_DEVICE "fake_device_with_a_long_name_1"

enum {
	HOST_QPS = 10,
	BYSTANDER_QPS = 2,
	CORPSE_QPS = 3,
	UNNOTICED_QPS = 6, /* with those above more than the host allows */
	HOST_MRS = 20,
	DEFAULT_MRS = 50, /* what the bystander proposes without meaning it */
	TABLE_BITS = 20,
	TABLE_ROWS = 1 << TABLE_BITS,
	TRACE_MAX = TABLE_ROWS / 2,
	VISITS_MIN = 8, /* of an address under the lock: tried, however long a loop is */
	VIOLATIONS_MAX = 5, /* of one operation: a lock that is stuck takes seconds each time */
};

static const double usable_seconds = 1;

enum stage { STARTING, READY, DONE };

struct operation {
	const char *name;
	void (*prepare)(void); /* in the victim */
	void (*run)(void);     /* the same, to be killed */
	bool from_nothing;     /* no file, hence no bystander, before */
	unsigned locked;       /* how many points to try in long loops under the lock, */
	unsigned others;       /* and how many elsewhere */
};

static volatile enum stage *stage; /* shared with the victim */
static pid_t bystander;
static unsigned early; /* victims that were done before their point, on a shorter way */

/* ---- the victim ---- */

static struct ledger own;
static struct ledger_refusal refusal;
static const struct cost cost = { 3, { KIND_qp, KIND_send_wr, KIND_recv_wr }, { 3, 64, 32 } };

static void must(bool good)
{
	if (!good)
		_exit(1);
}

static unsigned device_number(struct ledger *ledger)
{
	return ledger_device(ledger, DEVICE);
}

static void charge(struct ledger *ledger, const struct cost *what)
{
	must(ledger_charge(ledger, device_number(ledger), what, &refusal) == 0);
}

static void prepare_nothing(void)
{
}

static void prepare_member(void)
{
	must(books_join(&own));
	must(device_number(&own) == 1);
}

static void prepare_holder(void)
{
	prepare_member();
	charge(&own, &cost);
}

static void prepare_refunded(void)
{
	prepare_holder();
	ledger_refund(&own, 1, &cost);
}

/* As if the bystander, in the first seat, had charged and refunded, and nobody noticed yet. */
static void bystander_churn(struct layout_header *header)
{
	struct layout_slot *slot = layout_slot(header, 0);

	slot->device[1].charged[KIND_qp] += UNNOTICED_QPS;
	slot->device[1].returned[KIND_qp] += UNNOTICED_QPS;
	slot->used[KIND_qp] += UNNOTICED_QPS;
	header->used[KIND_qp] += UNNOTICED_QPS;
	header->device[1].used[KIND_qp] += UNNOTICED_QPS;
}

static void prepare_churn(void)
{
	prepare_member();
	bystander_churn(own.embedded.header);
}

/* A process that joins after the victim and ends holding something: the lock, too. */
static void corpse_make(bool locked)
{
	pid_t pid = fork();

	if (pid == 0) {
		static struct ledger other;

		must(books_join(&other));
		charge(&other, &COST1(qp, CORPSE_QPS));
		if (locked) {
			must(pthread_mutex_lock(&other.embedded.header->lock) == 0);
			other.embedded.slot->used[KIND_send_wr] += 100;
			other.embedded.slot->device[1].charged[KIND_recv_wr] += 100;
			other.embedded.header->used[KIND_qp] += 100;
			other.embedded.header->device[1].used[KIND_qp] -= 100;
		}
		_exit(0);
	}
	must(waitpid(pid, NULL, 0) == pid);
}

static void prepare_corpse(void)
{
	prepare_member();
	corpse_make(false);
	bystander_churn(own.embedded.header);
}

static void prepare_locked_corpse(void)
{
	prepare_member();
	corpse_make(true);
	bystander_churn(own.embedded.header);
}

static void run_join(void)
{
	books_join(&own);
}

static void run_charge(void)
{
	ledger_charge(&own, 1, &cost, &refusal);
}

static void run_refund(void)
{
	ledger_refund(&own, 1, &cost);
}

static void run_leave(void)
{
	ledger_close(&own);
}

static void run_charge_all(void)
{
	ledger_charge(&own, 1, &COST1(qp, HOST_QPS - BYSTANDER_QPS), &refusal);
}

static void run_name(void)
{
	ledger_device(&own, NEW_DEVICE);
}

static const struct operation operations[] = {
	{ "charge", prepare_member, run_charge, false, 500, 2000 },
	{ "charge after refund", prepare_refunded, run_charge, false, 500, 2000 },
	{ "charge that notices", prepare_churn, run_charge, false, 500, 2000 },
	{ "refund", prepare_holder, run_refund, false, 500, 2000 },
	{ "leave", prepare_member, run_leave, false, 500, 2000 },
	{ "name a device", prepare_member, run_name, false, 500, 2000 },
	{ "join", prepare_nothing, run_join, false, 500, 15000 },
	{ "join again", prepare_holder, run_join, false, 200, 400 },
	{ "create", prepare_nothing, run_join, true, 200, 400 },
	{ "release of dead", prepare_corpse, run_charge_all, false, 500, 400 },
	{ "rebuild", prepare_locked_corpse, run_charge, false, 500, 2000 },
};

static void stop_as(enum stage now)
{
	*stage = now;
	__asm__ volatile("int3" ::: "memory");
}

static pid_t victim_fork(const struct operation *operation)
{
	pid_t pid = books_fork();

	if (pid)
		return pid;
	must(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0);
	operation->prepare();
	stop_as(READY);
	operation->run();
	stop_as(DONE);
	_exit(0);
}

/* ---- the tracer ---- */

struct tracee {
	pid_t pid;
	uintptr_t at;
	int status; /* of the last wait */
};

static bool stopped_by(const struct tracee *tracee, int number)
{
	return WIFSTOPPED(tracee->status) && WSTOPSIG(tracee->status) == number;
}

/* Lets it go on, by the request, to its next stop; true if that is a trap. */
static bool resume(struct tracee *tracee, int request)
{
	int number = 0;

	do {
		if (ptrace(request, tracee->pid, NULL, (void *)(intptr_t)number) ||
		    waitpid(tracee->pid, &tracee->status, 0) != tracee->pid)
			return false;
		number = WIFSTOPPED(tracee->status) ? WSTOPSIG(tracee->status) : 0;
	} while (stopped_by(tracee, SIGCHLD));
	if (!stopped_by(tracee, SIGTRAP))
		return false;
	tracee->at = (uintptr_t)ptrace(PTRACE_PEEKUSER, tracee->pid,
				       offsetof(struct user, regs.rip), NULL);
	return true;
}

/* To where the operation begins. */
static bool tracee_start(struct tracee *tracee, const struct operation *operation)
{
	*stage = STARTING;
	tracee->pid = victim_fork(operation);
	if (waitpid(tracee->pid, &tracee->status, 0) != tracee->pid)
		return false;
	while (stopped_by(tracee, SIGCHLD))
		if (!resume(tracee, PTRACE_CONT))
			return false;
	if (!stopped_by(tracee, SIGTRAP) || *stage != READY)
		return false;
	tracee->at = 0;
	return !ptrace(PTRACE_SETOPTIONS, tracee->pid, NULL, (void *)PTRACE_O_EXITKILL);
}

static void tracee_kill(struct tracee *tracee)
{
	while (!WIFEXITED(tracee->status) && !WIFSIGNALED(tracee->status)) {
		kill(tracee->pid, SIGKILL);
		if (waitpid(tracee->pid, &tracee->status, 0) != tracee->pid)
			break;
	}
}

static bool step(struct tracee *tracee)
{
	uintptr_t from = tracee->at;

	do {
		if (!resume(tracee, PTRACE_SINGLESTEP))
			return false;
	} while (tracee->at == from && *stage != DONE);
	return true;
}

/* To the given visit of an address; or to the end, when /proc tells other numbers this time. */
static bool run_to(struct tracee *tracee, uintptr_t at, unsigned visit)
{
	void *address = (void *)at;
	long text = ptrace(PTRACE_PEEKTEXT, tracee->pid, address, NULL);
	long trap = (text & ~0xffl) | 0xcc;

	for (;;) {
		if (ptrace(PTRACE_POKETEXT, tracee->pid, address, (void *)trap) ||
		    !resume(tracee, PTRACE_CONT))
			return false;
		if (tracee->at != at + 1)
			return *stage == DONE;
		tracee->at = at;
		if (ptrace(PTRACE_POKETEXT, tracee->pid, address, (void *)text) ||
		    ptrace(PTRACE_POKEUSER, tracee->pid, offsetof(struct user, regs.rip), address))
			return false;
		if (--visit == 0)
			return true;
		if (!step(tracee) || *stage == DONE)
			return *stage == DONE;
	}
}

/* ---- the reference run ---- */

static struct instruction {
	uintptr_t at;
	unsigned visit; /* of this address, from 1 */
	unsigned mark;	/* from where to step to here: the cheapest */
	bool locked;	/* or about to be, or just no more */
} trace[TRACE_MAX];
static unsigned trace_length;

/* What the kernel would look at if the thread ended now. */
static bool holds_robust(pid_t pid)
{
	struct robust_list_head *head;
	size_t size;
	long next, pending;

	if (syscall(SYS_get_robust_list, pid, &head, &size))
		return true;
	next = ptrace(PTRACE_PEEKDATA, pid, &head->list.next, NULL);
	pending = ptrace(PTRACE_PEEKDATA, pid, &head->list_op_pending, NULL);
	return next != (long)&head->list || pending != 0;
}

/* Counts the visits of each address in this trace. */
static unsigned visit_count(uintptr_t at)
{
	static struct {
		uintptr_t at;
		unsigned visits;
	} table[TABLE_ROWS];
	size_t row = at * 0x9e3779b97f4a7c15u >> (64 - TABLE_BITS);

	if (!trace_length)
		memset(table, 0, sizeof(table));
	while (table[row].visits && table[row].at != at)
		row = (row + 1) % TABLE_ROWS;
	table[row].at = at;
	return ++table[row].visits;
}

/* Stops that it takes to run to the mark and to step from there. */
static unsigned stops_from(unsigned mark, unsigned point)
{
	return 2 * trace[mark].visit + point - mark;
}

static void trace_add(uintptr_t at, bool locked)
{
	unsigned i = trace_length;
	struct instruction *now = &trace[i];

	*now = (struct instruction){ at, visit_count(at), i, locked };
	if (i && stops_from(now[-1].mark, i) < stops_from(i, i))
		now->mark = now[-1].mark;
	trace_length++;
}

static bool trace_record(const struct operation *operation)
{
	struct tracee tracee;
	bool good = tracee_start(&tracee, operation);

	trace_length = 0;
	while (good && *stage != DONE && trace_length < TRACE_MAX) {
		good = step(&tracee);
		trace_add(tracee.at, holds_robust(tracee.pid));
	}
	tracee_kill(&tracee);
	return good && trace_length < TRACE_MAX;
}

/* ---- what must be true afterwards ---- */

static uint64_t expected(unsigned kind, bool nobody, uint64_t more_qps)
{
	if (kind == KIND_qp)
		return (nobody ? 0 : BYSTANDER_QPS) + more_qps;
	if (nobody)
		return 0;
	return kind == KIND_send_wr ? 16 : kind == KIND_recv_wr ? 8 : 0;
}

static bool counts_are(struct layout_header *header, bool nobody, uint64_t more_qps)
{
	bool good = books_drift(header) == 0;

	for (unsigned kind = 0; good && kind < KIND_COUNT; kind++) {
		uint64_t want = expected(kind, nobody, more_qps);
		uint64_t host = header->used[kind], device = header->device[1].used[kind];

		good = CHECK(host == want && device == want, "%s: host %lld, device %lld, not %lld",
			     kind_rows[kind].name, (long long)host, (long long)device,
			     (long long)want);
	}
	return good;
}

static bool limit_is_exact(struct ledger *fresh, bool nobody)
{
	uint64_t left = HOST_QPS - expected(KIND_qp, nobody, 0);
	struct cost rest = COST1(qp, left);
	struct cost one = COST1(qp, 1);
	bool good;

	if (!CHECK(ledger_charge(fresh, 1, &rest, &refusal) == 0, "%llu of %llu QPs are held",
		   (unsigned long long)refusal.used, (unsigned long long)refusal.limit))
		return false;
	good = counts_are(fresh->embedded.header, nobody, left);
	good &= CHECK(ledger_charge(fresh, 1, &one, &refusal) == LEDGER_REFUSED &&
		      refusal.scope == SCOPE_HOST && refusal.used == HOST_QPS);
	ledger_refund(fresh, 1, &rest);
	good &= CHECK(ledger_used(fresh, KIND_qp) == 0);
	return good;
}

static bool device_names_are_whole(struct layout_header *header)
{
	bool good = true;

	for (unsigned device = 0; device < LEDGER_DEVICES; device++) {
		const char *name = header->device[device].name;

		good &= CHECK(!name[0] || !strcmp(name, device == 1 ? DEVICE : NEW_DEVICE),
			      "device %u is called \"%.64s\"", device, name);
	}
	return good;
}

static bool ledger_is_exact(struct ledger *fresh, bool nobody)
{
	struct layout_header *header = fresh->embedded.header;

	return CHECK(device_number(fresh) == 1) && counts_are(header, nobody, 0) &&
	       limit_is_exact(fresh, nobody) &&
	       CHECK(books_seats_taken(header) == (nobody ? 1 : 2)) &&
	       CHECK(header->limit[KIND_mr] == HOST_MRS, "the limit of MRs is %lld",
		     (long long)header->limit[KIND_mr]) &&
	       device_names_are_whole(header);
}

/* Some things stay for ever, but the next victim shall find what this one found. */
static void history_forget(struct layout_header *header)
{
	header->seats_high = 1;
	memset(header->device[2].name, 0, sizeof(header->device[2].name));
	header->limit[KIND_mr] = DEFAULT_MRS;
	header->defaults |= 1ull << KIND_mr;
	bystander_churn(header);
}

static bool books_are_exact(bool nobody)
{
	static struct ledger fresh;
	double before = seconds_now();
	bool good;

	if (!books_join(&fresh))
		return false;
	good = CHECK(seconds_now() - before < usable_seconds, "the lock was stuck") &&
	       ledger_is_exact(&fresh, nobody);
	ledger_close(&fresh);
	good = good && counts_are(fresh.embedded.header, nobody, 0) &&
	       CHECK(books_seats_taken(fresh.embedded.header) == (nobody ? 0 : 1));
	if (!nobody)
		history_forget(fresh.embedded.header);
	shmfile_unmap(fresh.embedded.header);
	return good;
}

/* ---- one kill, many kills ---- */

static void bystander_live(int ready)
{
	static struct ledger ledger;

	books_limits.host[KIND_mr] = DEFAULT_MRS;
	books_limits.host_defaults = 1ull << KIND_mr;
	must(books_join(&ledger));
	charge(&ledger, &COST3(qp, BYSTANDER_QPS, send_wr, 16, recv_wr, 8));
	charge(&ledger, &COST1(qp, UNNOTICED_QPS));
	ledger_refund(&ledger, 1, &COST1(qp, UNNOTICED_QPS));
	must(write(ready, "", 1) == 1);
	for (;;)
		pause();
}

static void bystander_end(void)
{
	if (bystander) {
		kill(bystander, SIGKILL);
		waitpid(bystander, NULL, 0);
		bystander = 0;
	}
}

/* A file without history, and the bystander in it. */
static bool scene_set(bool from_nothing)
{
	int ready[2];
	char byte;
	bool good;

	bystander_end();
	books_remove();
	if (from_nothing)
		return true;
	if (pipe(ready))
		return false;
	bystander = books_fork();
	if (bystander == 0) {
		close(ready[0]);
		bystander_live(ready[1]);
	}
	close(ready[1]);
	good = read(ready[0], &byte, 1) == 1;
	close(ready[0]);
	return CHECK(good, "there is no bystander");
}

static bool kill_at(const struct operation *operation, unsigned point)
{
	struct tracee tracee;
	bool good = tracee_start(&tracee, operation);
	unsigned steps = point;

	if (good && point) {
		unsigned mark = trace[point - 1].mark;

		good = run_to(&tracee, trace[mark].at, trace[mark].visit);
		steps = point - 1 - mark;
	}
	while (good && steps-- && *stage != DONE)
		good = step(&tracee);
	early += *stage == DONE && point < trace_length;
	tracee_kill(&tracee);
	good = CHECK(good, "the victim ended by itself, with status %#x", tracee.status);
	good &= books_are_exact(operation->from_nothing);
	if (!good)
		printf("%s: killed after %u instructions, at %#lx\n", operation->name, point,
		       (unsigned long)tracee.at);
	return good;
}

struct coverage {
	unsigned locked, others; /* instructions */
	unsigned locked_stride, others_stride;
	unsigned points, violations;
};

static struct coverage coverage_plan(const struct operation *operation, bool every)
{
	struct coverage coverage = { .locked_stride = 1, .others_stride = 1 };

	for (unsigned i = 0; i < trace_length; i++)
		coverage.locked += trace[i].locked;
	coverage.others = trace_length - coverage.locked;
	if (!every) {
		coverage.locked_stride += coverage.locked / operation->locked;
		coverage.others_stride += coverage.others / operation->others;
	}
	return coverage;
}

/* Point 0 is before the first instruction; the last is the completed operation. */
static bool point_is_wanted(const struct coverage *coverage, unsigned point)
{
	const struct instruction *before = &trace[point] - 1;

	if (!point || point == trace_length || before[0].locked != before[1].locked)
		return true;
	if (!before->locked)
		return point % coverage->others_stride == 0;
	return before->visit <= VISITS_MIN || point % coverage->locked_stride == 0;
}

static void points_kill(const struct operation *operation, struct coverage *coverage)
{
	for (unsigned point = 0; point <= trace_length; point++) {
		if (!point_is_wanted(coverage, point))
			continue;
		if (operation->from_nothing)
			books_remove();
		coverage->points++;
		if (kill_at(operation, point))
			continue;
		coverage->violations++;
		if (coverage->violations < VIOLATIONS_MAX && scene_set(operation->from_nothing))
			continue;
		printf("%s: given up\n", operation->name);
		return;
	}
}

/* A first victim, that is not killed before it is done. */
static bool reference_run(const struct operation *operation)
{
	return scene_set(operation->from_nothing) &&
	       CHECK(trace_record(operation), "%s cannot be traced", operation->name) &&
	       books_are_exact(operation->from_nothing);
}

static unsigned operation_test(const struct operation *operation, bool every)
{
	double before = seconds_now();
	struct coverage coverage = { .violations = 1 };

	early = 0;
	if (reference_run(operation)) {
		coverage = coverage_plan(operation, every);
		points_kill(operation, &coverage);
	}
	printf("%s: %u kill points, %u violations\n", operation->name, coverage.points,
	       coverage.violations);
	printf("  with the lock: the first %d visits of each address, 1 in %u of %u instructions; "
	       "without: 1 in %u of %u; %u victims were done early; %.1f s\n", VISITS_MIN,
	       coverage.locked_stride, coverage.locked, coverage.others_stride, coverage.others,
	       early, seconds_now() - before);
	return coverage.violations;
}

/* Exits with 77 where a process cannot be traced and stepped. */
static void ptrace_probe(void)
{
	static const struct operation probe = {
		.prepare = prepare_nothing,
		.run = prepare_nothing,
	};
	struct tracee tracee;

	if (!tracee_start(&tracee, &probe))
		skip("no ptrace here");
	if (!step(&tracee) || !step(&tracee)) {
		tracee_kill(&tracee);
		skip("no single steps by ptrace here");
	}
	tracee_kill(&tracee);
}

/* Tracer and victim never run at once: on one processor a stop is a mere switch. */
static void processor_pin(void)
{
	cpu_set_t set;
	int processor = sched_getcpu();

	if (processor < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET(processor, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* killpoints [operation [every]]: one operation only, and no sampling. */
int main(int argc, char **argv)
{
	unsigned violations = 0;
	bool every = argc > 2 && !strcmp(argv[2], "every");

	setvbuf(stdout, NULL, _IOLBF, 0);
	stage = mmap(NULL, sizeof(*stage), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (stage == MAP_FAILED)
		return 1;
	books_init("killpoints");
	books_limits.host[KIND_qp] = HOST_QPS;
	books_limits.host[KIND_mr] = HOST_MRS;
	ledger_limits_device(&books_limits, DEVICE, strlen(DEVICE))->limit[KIND_qp] = 2 * HOST_QPS;
	processor_pin();
	ptrace_probe();
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		if (argc < 2 || !strcmp(argv[1], operations[i].name))
			violations += operation_test(&operations[i], every);
	bystander_end();
	return violations ? 1 : 0;
}

#else

int main(void)
{
	skip("it knows x86-64 only, without the thread sanitizer");
}

#endif
