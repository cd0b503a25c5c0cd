/* SPDX-License-Identifier: MIT */
/*
 * Everything that rules of advice look at: what a collector said at one moment, and what was
 * seen of its processes. Rules are functions of it and send no requests.
 */
#ifndef ADVICE_OBSERVATION_H
#define ADVICE_OBSERVATION_H

#include "base/problem.h"
#include "output/table.h"
#include "proto/messages.h"

/* How often the memory regions of a process became fewer between two readings. */
struct churn {
	int32_t pid;
	char tenant[NAME_SIZE];
	uint64_t last; /* regions at the reading before */
	unsigned falls;
};

/* RLIMIT_MEMLOCK of a process. */
struct memlock {
	int32_t pid;
	uint64_t bytes; /* UNLIMITED */
};

struct observation {
	struct proto_status status;
	struct list rows;      /* struct proto_row: host, tenants and processes, in total and on
				  devices */
	struct list details;   /* struct proto_details */
	struct list guards;    /* struct proto_guard; the first is the host's */
	struct list rates;     /* struct proto_rate, of tenants */
	struct list churns;    /* struct churn */
	struct list memlocks;  /* struct memlock */
	unsigned readings;     /* after the first one, for the churns */
	double seconds;	       /* that they took */
};

void observation_begin(struct observation *observation);
void observation_free(struct observation *observation);

/* Rows of GET_STATS and GET_PROC_STATS, GET_DETAILS, GUARD and GET_RATES: proto_row_functions. */
int observation_take_row(const void *row, void *observation);
int observation_take_details(const void *row, void *observation);
int observation_take_guard(const void *row, void *observation);
int observation_take_rate(const void *row, void *observation);

/*
 * Asks the collector at the path, reads limits of the processes from /proc, and then reads their
 * memory regions so many times more, 50 ms apart. 0, or -errno with a sentence.
 */
int observation_take(struct observation *observation, const char *path, unsigned readings,
		     char problem[PROBLEM_SIZE]);

#endif
