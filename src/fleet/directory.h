/* SPDX-License-Identifier: MIT */
/* The files that the collector follows; see policy/fleet.h. All of them are replaced whole. */
#ifndef FLEET_DIRECTORY_H
#define FLEET_DIRECTORY_H

#include <stddef.h>
#include <stdint.h>

#include "base/problem.h"

/* Makes the directory if need be, makes sure that no other rdma_fleet uses it, and removes what a
 * killed one has left half written. -errno. */
int fleet_directory_take(const char *directory, char problem[PROBLEM_SIZE]);

/* A text that no other directory has, nor this one in another boot. */
enum { FLEET_IDENTITY = 128 };
int fleet_identity_print(const char *directory, char ret_id[FLEET_IDENTITY],
			 char problem[PROBLEM_SIZE]);

/* Replaces a file unless it says the same. */
int fleet_file_write(const char *directory, const char *name, const char *text,
		     char problem[PROBLEM_SIZE]);

/* The text of a file, as new memory; NULL if it cannot be read. */
char *fleet_file_text(const char *directory, const char *name);

/* The end of the lease; 0: it has ended. */
int fleet_lease_write(const char *directory, uint64_t until_ns, char problem[PROBLEM_SIZE]);

/*
 * Checks a policy as `rdma_intercept check` does, and puts it in the place of the last one. -EINVAL
 * with the first mistake, and the last one stays.
 */
int fleet_policy_write(const char *directory, const char *text, size_t length,
		       char problem[PROBLEM_SIZE]);

/* The same check of a text that comes from elsewhere; nothing stays in the directory. */
int fleet_policy_check(const char *directory, const char *text, size_t length,
		       char problem[PROBLEM_SIZE]);

#endif
