/* SPDX-License-Identifier: MIT */
/*
 * What the kernel has, beside what the books say. rdma_monitor counts what processes make
 * in the kernel, guarded or not; here its counts are read, summed by process and joined
 * with the members. From that come the processes that nobody guards, differences between
 * kernel and books that last, what tenants and host have in the kernel, and whether a
 * member that has ended left something behind. Nothing here grants or takes back, and
 * without a monitor there is nothing but a sentence that says so.
 */
#ifndef COLLECTOR_TRUTH_H
#define COLLECTOR_TRUTH_H

#include <limits.h>

#include "collector/books.h"
#include "collector/members.h"
#include "monitor/reader/reader.h"
#include "proto/messages.h"

struct collector;
struct truth_sample;
struct drift_state;

enum { TRUTH_PROBLEM = 256 };

/* All zeros before the first look. */
struct truth {
	struct monitor_reader reader; /* head NULL: there is none, */
	char problem[TRUTH_PROBLEM];  /* and why */
	enum monitor_mode mode;
	char directory[PATH_MAX];
	bool looked;			  /* for a monitor, at least once */
	struct truth_sample *now, *spare; /* who has what; made anew in turn */
	uint64_t taken_ns;		  /* `now` is not older than that; 0: there is none */
	struct drift_state *member;	  /* BOOKS_MEMBERS: how kernel and books differ */
	bool summed;			  /* there is something in the sums of the owners */
};

/* A process that made something in the kernel. */
struct truth_process {
	uint64_t start;
	pid_t pid;
	uint32_t uid;
	uint32_t member; /* BOOKS_NOBODY: it is not registered */
	uint32_t tenant; /* of an uncovered one, by the rules */
	uint32_t next;	 /* of the same bucket */
	uint32_t parts;	 /* the first, chained */
	unsigned judged; /* when its tenant was found: struct collector, policies */
	bool holds;	 /* has anything at this moment, of whatever sort */
	bool driver;	 /* also objects of a driver's own */
	bool uncovered;
	bool told;	    /* of it, in an event */
	int16_t library;    /* loaded: 1, not: 0, cannot be seen: -errno */
	uint64_t absent_ns; /* since when it is known that it has ended, and not whose it was */
	char command[MONITOR_COMMAND];
	uint64_t kernel[KIND_COUNT];
	uint64_t moves[KIND_COUNT]; /* ever made and gone */
};

/* Every second: finds the monitor if there is one, counts, and compares with the books, of
 * which grants_measure has just made the sums. */
void truth_measure(struct collector *collector);

/* Before an answer: brings sums and uncovered processes up to date, if they are not. */
void truth_look(struct collector *collector);

void truth_close(struct truth *truth);

/* For struct members; the closure is the collector. */
enum member_remains truth_remains(void *closure, unsigned member, uint64_t since);

/* ---- what was found */

static inline bool truth_is_watching(const struct truth *truth)
{
	return truth->reader.head;
}

/* The kernel itself tells the monitor of everything, at the moment when it happens; */
bool truth_is_exact(const struct truth *truth);
/* and nothing was lost: who has no row has nothing. */
bool truth_is_complete(const struct truth *truth);

void truth_describe(const struct collector *collector, struct proto_pong *pong);

/* Bit k: kind k is counted completely. */
uint64_t truth_observed(const struct truth *truth);

/* What the kernel has of a member, or NULL. */
const struct truth_process *truth_of_member(const struct collector *collector, unsigned member);

/* What a process (NULL: nobody) has by now, of what it had on the devices of the sample. */
void truth_look_again(const struct truth *truth, const struct truth_process *process,
		      struct truth_process *ret_process);

/* The next uncovered process, or NULL. *cursor is 0 at first. */
const struct truth_process *truth_uncovered(const struct truth *truth, unsigned *cursor);

/* What a process has on each device. Bit d of the result: there is something to say of
 * device d, and its row is filled. */
uint32_t truth_devices(const struct truth *truth, const struct truth_process *process,
		       uint64_t ret_kernel[LEDGER_DEVICES][KIND_COUNT]);

#endif
