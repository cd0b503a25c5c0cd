/* SPDX-License-Identifier: MIT */
/* Single steps, breakpoints and the trace; see step.h. */
#include "step.h"

#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"

pid_t family_fork(void)
{
	pid_t parent = getpid(), pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0) {
		perror("fork");
		exit(1);
	}
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
	}
	return pid;
}

#ifdef __x86_64__

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
	bool notable;
} *trace;
static unsigned length;

static struct visits {
	uintptr_t at;
	unsigned count;
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

/* What only the tracer needs would make every fork() a longer one. */
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
	__asm__ volatile("int3" ::: "memory");
}

static bool stopped_by(const struct victim *victim, int number)
{
	return WIFSTOPPED(victim->status) && WSTOPSIG(victim->status) == number;
}

/* Lets it go on, by the request, to its next stop; true if that is a trap. */
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
	victim->at = (uintptr_t)ptrace(PTRACE_PEEKUSER, victim->pid,
				       offsetof(struct user, regs.rip), NULL);
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
	long trap = (text & ~0xffl) | 0xcc;

	for (;;) {
		if (ptrace(PTRACE_POKETEXT, victim->pid, address, (void *)trap) ||
		    !resume(victim, PTRACE_CONT))
			return false;
		if (victim->at != at + 1)
			return victim_is_done();
		victim->at = at;
		if (ptrace(PTRACE_POKETEXT, victim->pid, address, (void *)text) ||
		    ptrace(PTRACE_POKEUSER, victim->pid, offsetof(struct user, regs.rip), address))
			return false;
		if (--visit == 0)
			return true;
		if (!step(victim) || victim_is_done())
			return victim_is_done();
	}
}

bool victim_go(struct victim *victim, unsigned point)
{
	unsigned steps;

	if (!point)
		return true;
	if (!run_to(victim, trace[trace[point - 1].mark].at, trace[trace[point - 1].mark].visit))
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
	struct victim victim;

	if (!victim_start(&victim, &probe))
		skip("no ptrace here");
	if (!step(&victim) || !step(&victim)) {
		victim_kill(&victim);
		skip("no single steps by ptrace here");
	}
	victim_kill(&victim);
}

/* ---- the trace */

/* Counts the visits of each address in this trace. */
static unsigned visit_count(uintptr_t at)
{
	size_t row = at * 0x9e3779b97f4a7c15u >> (64 - TABLE_BITS);

	while (table[row].count && table[row].at != at)
		row = (row + 1) % TABLE_ROWS;
	table[row].at = at;
	return ++table[row].count;
}

/* Stops that it takes to run to the mark and to step from there. */
static unsigned stops_from(unsigned mark, unsigned point)
{
	return 2 * trace[mark].visit + point - mark;
}

static void trace_add(uintptr_t at, bool called, bool changed)
{
	struct instruction *now = &trace[length];
	unsigned visit = visit_count(at);

	*now = (struct instruction){ at, visit, length,
				     changed || (called && visit <= NOTABLE_VISITS) };
	if (length && stops_from(now[-1].mark, length) < stops_from(length, length))
		now->mark = now[-1].mark;
	length++;
}

/* Whether the instruction that it comes to next is a system call. */
static bool at_system_call(const struct victim *victim)
{
	return victim->at && (ptrace(PTRACE_PEEKTEXT, victim->pid, (void *)victim->at, NULL) &
			      0xffff) == 0x050f;
}

bool trace_record(const struct script *script, uint64_t (*fingerprint)(void))
{
	struct victim victim;
	bool good, called;
	uint64_t before, after;

	if (!trace) {
		trace = map_own(TRACE_MAX * sizeof(*trace));
		table = map_own(TABLE_ROWS * sizeof(*table));
	}
	memset(table, 0, TABLE_ROWS * sizeof(*table));
	length = 0;
	good = victim_start(&victim, script);
	before = fingerprint ? fingerprint() : 0;
	while (good && !victim_is_done() && length < TRACE_MAX) {
		called = at_system_call(&victim);
		good = step(&victim);
		after = fingerprint ? fingerprint() : 0;
		trace_add(victim.at, called, after != before);
		before = after;
	}
	victim_kill(&victim);
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

#else

void step_probe(void)
{
	skip("it knows x86-64 only");
}

bool trace_record(const struct script *script, uint64_t (*fingerprint)(void))
{
	return false;
}

unsigned trace_length(void)
{
	return 0;
}

bool trace_is_notable(unsigned point)
{
	return false;
}

bool victim_start(struct victim *victim, const struct script *script)
{
	return false;
}

bool victim_go(struct victim *victim, unsigned point)
{
	return false;
}

bool victim_is_done(void)
{
	return false;
}

bool victim_finish(struct victim *victim)
{
	return false;
}

void victim_kill(struct victim *victim)
{
}

#endif
