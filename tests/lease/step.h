/* SPDX-License-Identifier: MIT */
/*
 * A victim under ptrace: a forked process that does one thing and can be brought to
 * the moment after its N-th instruction. A reference run notes the address of each
 * instruction; to come to point N, a victim runs to a breakpoint shortly before it, at
 * an address that is not visited often, and is stepped from there. A repeated string
 * instruction is one instruction.
 */
#ifndef TESTS_LEASE_STEP_H
#define TESTS_LEASE_STEP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* What a victim does: both in its own process, the second by single steps. */
struct script {
	void (*prepare)(void);
	void (*run)(void);
};

struct victim {
	pid_t pid;
	uintptr_t at;
	int status; /* of the last wait */
};

/* Exits with 77 where a process cannot be traced and stepped. */
void step_probe(void);

/*
 * The reference run: a victim that is not stopped before it is done. The fingerprint
 * (may be NULL) is a number of what outlives the victim; where it changes, and after
 * the system calls (of those in a loop, the first few) is a notable point.
 */
bool trace_record(const struct script *script, uint64_t (*fingerprint)(void));

/* Instructions of the reference run. Point 0 is before the first, the last after all. */
unsigned trace_length(void);
bool trace_is_notable(unsigned point);

/* A victim, stopped where the thing begins. */
bool victim_start(struct victim *victim, const struct script *script);

/* From there to the point; or to the end, when its way is another one this time. */
bool victim_go(struct victim *victim, unsigned point);
bool victim_is_done(void);

/* Lets it do the rest, at full speed, and stop at the end. */
bool victim_finish(struct victim *victim);

/* SIGKILL, and gone when this returns. */
void victim_kill(struct victim *victim);

/* fork(), whose child ends with the test, however that ends; the test ends if it fails. */
pid_t family_fork(void);

#endif
