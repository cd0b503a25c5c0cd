/* SPDX-License-Identifier: MIT */
/*
 * Verbs that failed behind the library, in the provider or the kernel, for want of something: the log
 * says that no limit of ours was in the way, and which other one probably was. A program shows its
 * user nothing but "Cannot allocate memory" for both.
 */
#ifndef INTERCEPT_FAILURES_H
#define INTERCEPT_FAILURES_H

#include <stdint.h>

struct ibv_context;
struct library;

struct failure {
	const char *verb;
	int error;		     /* an errno */
	struct ibv_context *context; /* NULL: not known */
	int object;		     /* enum object; -1: none was to be made */
	uint64_t bytes;		     /* of memory that was to be registered */
};

/* Writes the line, at most one a second in a process; errors that tell nothing of resources are
 * left out. Leaves errno alone. */
void failure_report(struct library *library, const struct failure *failure);

#endif
