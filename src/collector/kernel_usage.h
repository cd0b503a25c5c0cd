/* SPDX-License-Identifier: MIT */
/*
 * What the kernel has: rdma_monitor counts what processes make there, guarded or not, and here
 * its rows are read and summed by process. Reading changes nothing, neither on the books nor in
 * the kernel. Whose the processes are is for others to find (coverage.c), and so is how that
 * compares with the books (drift.c, reconcile.c). Without a monitor there is only a message that
 * says so.
 */
#ifndef COLLECTOR_KERNEL_USAGE_H
#define COLLECTOR_KERNEL_USAGE_H

#include <limits.h>
#include <sys/types.h>

#include "base/log.h"
#include "base/problem.h"
#include "ledger/ledger.h"
#include "monitor/reader/reader.h"

struct kernel_sample;

/* All zeros before the first look. */
struct kernel_usage {
	struct monitor_reader reader; /* head NULL: there is none, */
	char problem[PROBLEM_SIZE];   /* and why */
	enum monitor_mode mode;
	char directory[PATH_MAX];
	bool looked;			   /* for a monitor, at least once */
	struct kernel_sample *now, *spare; /* who has what; made anew in turn */
	uint64_t taken_ns;		   /* `now` is not older than that; 0: there is none */
	unsigned generation;		   /* counts the monitors, and times without one */
	/* The devices that rows named, by numbers of our own; the first has no name. */
	char device[DEVICES_MAX][NAME_SIZE];
};

/* What coverage.c found out about a process. It stays while the process has a row. */
struct kernel_coverage {
	uint32_t member; /* BOOKS_NOBODY: it is not registered */
	uint32_t tenant; /* of an uncovered one, by the rules */
	unsigned judged; /* when its tenant was found: struct collector, policy_generation */
	bool uncovered;
	bool told;	    /* of it, in an event */
	int16_t library;    /* loaded: 1, not: 0, cannot be seen: -errno, not yet: -EINPROGRESS */
	uint64_t absent_ns; /* since when it is known that it has ended, and not whose it was */
};

/* A process that made something in the kernel. */
struct kernel_process {
	uint64_t start;
	pid_t pid;
	uint32_t uid;
	uint32_t next;	/* of the same bucket */
	uint32_t parts; /* the first, chained */
	bool holds;	/* has anything at this moment, of whatever sort */
	bool driver;	/* also objects of a driver's own */
	char command[MONITOR_COMMAND];
	uint64_t kernel[KIND_COUNT];
	uint64_t moves[KIND_COUNT]; /* ever made and gone */
	struct kernel_coverage coverage;
};

/* What one process has on one device: a row of the monitor's. */
struct kernel_part {
	uint32_t next; /* of the same process */
	uint32_t row;
	uint32_t device; /* struct kernel_usage, device */
	uint64_t kernel[KIND_COUNT];
};

/* Finds the monitor if there is one; what is new is said in the log, once. */
void kernel_find(struct kernel_usage *usage, const struct log *log);
/* Reads all rows. What coverage.c knows of a process that was there before stays known. */
void kernel_sample(struct kernel_usage *usage);
void kernel_close(struct kernel_usage *usage);

/* ---- how it is counted */

static inline bool kernel_is_watched(const struct kernel_usage *usage)
{
	return usage->reader.head;
}

/* The kernel itself tells the monitor of everything, at the moment when it happens; */
bool kernel_is_exact(const struct kernel_usage *usage);
/* and nothing was lost: who has no row has nothing. */
bool kernel_is_complete(const struct kernel_usage *usage);
/* Bit k: kind k is counted completely. */
uint64_t kernel_observed(const struct kernel_usage *usage);

/* ---- what was found */

/* How many processes there are in the sample, and one of them. */
unsigned kernel_processes(const struct kernel_usage *usage);
struct kernel_process *kernel_process_at(const struct kernel_usage *usage, unsigned number);
/* The process of that identity, or NULL. */
struct kernel_process *kernel_process_of(const struct kernel_usage *usage, pid_t pid,
					 uint64_t start);
/* The next part of a process after another, or its first after NULL; or NULL. */
const struct kernel_part *kernel_part_next(const struct kernel_usage *usage,
					   const struct kernel_process *process,
					   const struct kernel_part *part);
/* What processes have for which the monitor had no row left. */
const uint64_t *kernel_unowned(const struct kernel_usage *usage);

/* What a process (NULL: nobody) has by now, of what it had on the devices of the sample. */
void kernel_look_again(const struct kernel_usage *usage, const struct kernel_process *process,
		       struct kernel_process *ret_process);

/* The number of the device of that name, or DEVICES_MAX. */
unsigned kernel_device_find(const struct kernel_usage *usage, const char *name);
/* What a process has on each device. Bit d of the result: there is something to say of device d,
 * and its row is filled. */
uint32_t kernel_devices_of(const struct kernel_usage *usage, const struct kernel_process *process,
			   uint64_t ret_kernel[DEVICES_MAX][KIND_COUNT]);

#endif
