/* SPDX-License-Identifier: MIT */
/*
 * A victim under ptrace: a forked process that runs one operation and can be brought to the
 * moment after its N-th instruction. A reference run notes the address of each instruction; to
 * come to point N, a victim runs to a breakpoint shortly before it, at an address that is not
 * visited often, and is stepped from there. A repeated string instruction is one instruction.
 */
#ifndef TESTS_STEP_STEP_H
#define TESTS_STEP_STEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Both run in the victim's process, the second one by single steps. */
struct script {
	void (*prepare)(void);
	void (*run)(void);
};

struct victim {
	pid_t pid;
	uintptr_t at;
	int status; /* of the last wait */
};

/* Ends the test with 77 where a process cannot be traced and stepped. */
void step_probe(void);

/*
 * Whether the state that outlives the victim (its shared memory) differs from that at the last
 * call. files: the victim has just done a system call, so there may be new files.
 */
typedef bool state_changed(pid_t victim, bool files);

/* Helper for a state_changed: compares memory with a copy, and renews the copy. */
struct memory_copy {
	void *bytes;
	size_t size;
};
bool memory_changed(struct memory_copy *copy, const void *memory, size_t size);

/*
 * The reference run: the victim is not killed before it is done. Notable points are those where
 * the shared state changes, where the list of the robust mutexes that the victim holds changes,
 * and those after a system call (of a call in a loop, the first few). Between two notable
 * points a kill leaves the same state behind at every instruction. changed may be NULL.
 */
bool trace_record(const struct script *script, state_changed *changed);

/* Instructions of the reference run. Point 0 is before the first, the last after all. */
unsigned trace_length(void);
bool trace_is_notable(unsigned point);
unsigned trace_notable_count(void);

/*
 * Chooses the points to try: the notable ones and, in each of about `samples` stretches of the
 * rest, the point that is reached with the fewest stops.
 */
void trace_choose(unsigned samples);
bool trace_is_chosen(unsigned point);

/* A victim, stopped where the operation begins. */
bool victim_start(struct victim *victim, const struct script *script);

/* From there to the point; or to the end, if the victim takes another way this time. */
bool victim_go(struct victim *victim, unsigned point);
bool victim_is_done(void);

/* Lets the victim run to the end at full speed, and stop there. */
bool victim_finish(struct victim *victim);

/* SIGKILL; the process has ended when this returns. */
void victim_kill(struct victim *victim);

#endif
