/* SPDX-License-Identifier: MIT */
/* Single steps, breakpoints and the trace; see step.h. */
#include "step.h"

#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "family.h"
#include "harness.h"

/* ---- the processor: address of the next instruction, breakpoint, system call */

#ifdef __x86_64__
enum { PROCESSOR_KNOWN = 1, AT_OFFSET = offsetof(struct user, regs.rip) };
enum { TRAP = 0xcc, TRAP_MASK = 0xff, SYSTEM_CALL = 0x050f, SYSTEM_CALL_MASK = 0xffff };
#define BREAK() __asm__ volatile("int3" ::: "memory")
#else
enum { PROCESSOR_KNOWN = 0, AT_OFFSET = 0 };
enum { TRAP = 0, TRAP_MASK = 0, SYSTEM_CALL = 0, SYSTEM_CALL_MASK = 0xff };
#define BREAK() raise(SIGTRAP)
#endif

enum {
	TABLE_BITS = 17,
	TABLE_ROWS = 1 << TABLE_BITS, /* more than twice the addresses of one trace */
	TRACE_MAX = 1 << 20,
	NOTABLE_VISITS = 4, /* of a system call in a loop */
};

enum stage { STARTING, READY, DONE };

static volatile enum stage *stage; /* shared with the victim */

static struct instruction {
	uintptr_t at;
	unsigned visit; /* of this address, from 1 */
	unsigned mark;	/* from where to step to here: the cheapest */
	bool notable, chosen;
} *trace;
static unsigned length;
static bool first_chosen; /* point 0, which has no instruction before it */

static struct visits {
	uintptr_t at;
	unsigned count;
	bool calls; /* a system call is at this address */
} *table;

static void *map(size_t size, int flags)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	return memory;
}

/* Memory of the tracer alone, which fork() need not copy. */
static void *map_own(size_t size)
{
	void *memory = map(size, MAP_PRIVATE);

	madvise(memory, size, MADV_DONTFORK);
	return memory;
}

/* ---- the victim */

static void stop_as(enum stage now)
{
	*stage = now;
	BREAK();
}

static bool stopped_by(const struct victim *victim, int number)
{
	return WIFSTOPPED(victim->status) && WSTOPSIG(victim->status) == number;
}

/* Resumes the victim by the request until its next stop; true if that is a trap. */
static bool resume(struct victim *victim, int request)
{
	do {
		if (ptrace(request, victim->pid, NULL,
			   (void *)(intptr_t)(stopped_by(victim, SIGCHLD) ? SIGCHLD : 0)) ||
		    waitpid(victim->pid, &victim->status, 0) != victim->pid)
			return false;
	} while (stopped_by(victim, SIGCHLD));
	if (!stopped_by(victim, SIGTRAP))
		return false;
	victim->at = (uintptr_t)ptrace(PTRACE_PEEKUSER, victim->pid, AT_OFFSET, NULL);
	return true;
}

bool victim_start(struct victim *victim, const struct script *script)
{
	if (!stage)
		stage = map(sizeof(*stage), MAP_SHARED);
	*stage = STARTING;
	victim->pid = family_fork();
	if (victim->pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
			_exit(1);
		script->prepare();
		stop_as(READY);
		script->run();
		stop_as(DONE);
		_exit(0);
	}
	if (waitpid(victim->pid, &victim->status, 0) != victim->pid)
		return false;
	while (stopped_by(victim, SIGCHLD))
		if (!resume(victim, PTRACE_CONT))
			return false;
	if (!stopped_by(victim, SIGTRAP) || *stage != READY)
		return false;
	victim->at = 0;
	return !ptrace(PTRACE_SETOPTIONS, victim->pid, NULL, (void *)PTRACE_O_EXITKILL);
}

bool victim_is_done(void)
{
	return *stage == DONE;
}

void victim_kill(struct victim *victim)
{
	while (!WIFEXITED(victim->status) && !WIFSIGNALED(victim->status)) {
		kill(victim->pid, SIGKILL);
		if (waitpid(victim->pid, &victim->status, 0) != victim->pid)
			break;
	}
}

bool victim_finish(struct victim *victim)
{
	return victim_is_done() || (resume(victim, PTRACE_CONT) && victim_is_done());
}

static bool step(struct victim *victim)
{
	uintptr_t from = victim->at;

	do {
		if (!resume(victim, PTRACE_SINGLESTEP))
			return false;
	} while (victim->at == from && !victim_is_done());
	return true;
}

/* To the given visit of an address. */
static bool run_to(struct victim *victim, uintptr_t at, unsigned visit)
{
	void *address = (void *)at;
	long text = ptrace(PTRACE_PEEKTEXT, victim->pid, address, NULL);
	long trap = (text & ~(long)TRAP_MASK) | TRAP;

	for (;;) {
		if (ptrace(PTRACE_POKETEXT, victim->pid, address, (void *)trap) ||
		    !resume(victim, PTRACE_CONT))
			return false;
		if (victim->at != at + 1)
			return victim_is_done();
		victim->at = at;
		if (ptrace(PTRACE_POKETEXT, victim->pid, address, (void *)text) ||
		    ptrace(PTRACE_POKEUSER, victim->pid, AT_OFFSET, address))
			return false;
		if (--visit == 0)
			return true;
		if (!step(victim) || victim_is_done())
			return victim_is_done();
	}
}

bool victim_go(struct victim *victim, unsigned point)
{
	const struct instruction *mark;
	unsigned steps;

	if (!point)
		return true;
	mark = &trace[trace[point - 1].mark];
	if (!run_to(victim, mark->at, mark->visit))
		return false;
	for (steps = point - 1 - trace[point - 1].mark; steps && !victim_is_done(); steps--)
		if (!step(victim))
			return false;
	return true;
}

static void nothing(void)
{
}

void step_probe(void)
{
	static const struct script probe = { nothing, nothing };
	struct victim victim = { 0 };
	bool started, stepped;

	if (!PROCESSOR_KNOWN)
		skip("single steps are implemented for x86-64 only");
	started = victim_start(&victim, &probe);
	stepped = started && step(&victim) && step(&victim);
	victim_kill(&victim);
	if (!stepped)
		skip(started ? "no single steps by ptrace here" : "no ptrace here");
}

/* ---- the trace */

bool memory_changed(struct memory_copy *copy, const void *memory, size_t size)
{
	if (copy->size == size && !memcmp(copy->bytes, memory, size))
		return false;
	if (copy->size != size) {
		if (copy->size)
			munmap(copy->bytes, copy->size);
		copy->bytes = size ? map_own(size) : NULL;
		copy->size = size;
	}
	if (size)
		memcpy(copy->bytes, memory, size);
	return true;
}

static struct visits *visits_of(uintptr_t at)
{
	size_t row = at * 0x9e3779b97f4a7c15u >> (64 - TABLE_BITS);

	while (table[row].count && table[row].at != at)
		row = (row + 1) % TABLE_ROWS;
	table[row].at = at;
	return &table[row];
}

/* Stops that it takes to run to the mark and to step from there. */
static unsigned stops_from(unsigned mark, unsigned point)
{
	return 2 * trace[mark].visit + point - mark;
}

static unsigned stops_to(unsigned point)
{
	return point ? stops_from(trace[point - 1].mark, point - 1) : 0;
}

/* Returns whether the instruction that comes next is a system call. */
static bool trace_add(const struct victim *victim, bool called, bool changed)
{
	struct instruction *now = &trace[length];
	struct visits *visits = visits_of(victim->at);

	if (!visits->count++)
		visits->calls = (ptrace(PTRACE_PEEKTEXT, victim->pid, (void *)victim->at, NULL) &
				 SYSTEM_CALL_MASK) == SYSTEM_CALL;
	*now = (struct instruction){ victim->at, visits->count, length,
				     changed || (called && visits->count <= NOTABLE_VISITS),
				     false };
	if (length && stops_from(now[-1].mark, length) < stops_from(length, length))
		now->mark = now[-1].mark;
	length++;
	return visits->calls;
}

/* What the kernel reads when the thread ends: the robust mutexes that it holds. */
static bool robust_list_changed(pid_t pid, struct robust_list_head *now)
{
	struct robust_list_head before = *now, *head = NULL;
	struct iovec here = { now, sizeof(*now) }, there = { NULL, sizeof(*now) };
	size_t size;

	if (syscall(SYS_get_robust_list, pid, &head, &size) || !head)
		return false;
	there.iov_base = head;
	if (process_vm_readv(pid, &here, 1, &there, 1, 0) != sizeof(*now))
		return false;
	return now->list.next != before.list.next || now->list_op_pending != before.list_op_pending;
}

bool trace_record(const struct script *script, state_changed *changed)
{
	struct robust_list_head held = { 0 };
	struct victim victim = { 0 };
	bool good, called = false;

	if (!trace) {
		trace = map_own(TRACE_MAX * sizeof(*trace));
		table = map_own(TABLE_ROWS * sizeof(*table));
	}
	memset(table, 0, TABLE_ROWS * sizeof(*table));
	length = 0;
	good = victim_start(&victim, script);
	robust_list_changed(victim.pid, &held);
	if (changed)
		changed(victim.pid, true);
	while (good && !victim_is_done() && length < TRACE_MAX) {
		bool differs;

		good = step(&victim);
		differs = robust_list_changed(victim.pid, &held);
		if (changed)
			differs |= changed(victim.pid, called);
		called = trace_add(&victim, called, differs);
	}
	victim_kill(&victim);
	trace_choose(0);
	return good && length < TRACE_MAX;
}

unsigned trace_length(void)
{
	return length;
}

bool trace_is_notable(unsigned point)
{
	return point == 0 || point == length || trace[point - 1].notable;
}

unsigned trace_notable_count(void)
{
	unsigned count = 0;

	for (unsigned point = 0; point <= length; point++)
		count += trace_is_notable(point);
	return count;
}

static bool *chosen_of(unsigned point)
{
	return point ? &trace[point - 1].chosen : &first_chosen;
}

void trace_choose(unsigned samples)
{
	unsigned stretch = samples ? 1 + length / samples : length + 1;

	for (unsigned begin = 0; begin <= length; begin += stretch) {
		unsigned end = begin + stretch > length + 1 ? length + 1 : begin + stretch;
		unsigned cheapest = begin;

		for (unsigned point = begin; point < end; point++) {
			*chosen_of(point) = trace_is_notable(point);
			if (stops_to(point) < stops_to(cheapest))
				cheapest = point;
		}
		if (samples)
			*chosen_of(cheapest) = true;
	}
}

bool trace_is_chosen(unsigned point)
{
	return *chosen_of(point);
}
