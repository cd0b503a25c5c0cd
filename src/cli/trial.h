/* SPDX-License-Identifier: MIT */
/*
 * Starts programs of this host to see whether they work with the library. A trial changes nothing.
 */
#ifndef CLI_TRIAL_H
#define CLI_TRIAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/problem.h"

struct trial {
	const char *preload; /* LD_PRELOAD; NULL: none */
	bool list;	     /* the dynamic linker lists what it loads, and the program does not run */
	bool unprivileged;   /* as a user without privileges, for whom set-user-ID counts */
};

/* Runs a program: its status as of wait(), and what it printed first. -1 if it could not be started. */
int trial_start(char *const words[], const struct trial *trial, char *ret_text, size_t size);

/* How programs work without the library: what later trials are compared with. */
struct trial_results;
struct trial_results *trial_record(void);

/* Whether they work the same, as root and without privileges, and have the library: by LD_PRELOAD,
 * or without it by what is in /etc. 0, or -errno with a sentence in problem. */
int trial_compare(const struct trial_results *before, const char *library, bool by_variable,
		  char problem[PROBLEM_SIZE]);

/* The same where another file has taken the place of `file`, which only the trial sees: 0, also
 * where the kernel does not let this process make a mount namespace. */
int trial_compare_with_file(const struct trial_results *before, const char *library,
			    const char *candidate, const char *file, char problem[PROBLEM_SIZE]);

#endif
