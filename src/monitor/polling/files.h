/* SPDX-License-Identifier: MIT */
/*
 * Files in place of pinned maps: made in a directory that all users may read and only its owner
 * may write, without a name until they are complete.
 */
#ifndef MONITOR_POLLING_FILES_H
#define MONITOR_POLLING_FILES_H

#include <stddef.h>
#include <sys/stat.h>

#include "base/problem.h"

/* Opens a directory, and makes it with those above it if need be. 0, or -errno with a sentence. */
int files_open(const char *path, int *ret_fd, char problem[PROBLEM_SIZE]);

/* Zeroed memory of a new file, which has a temporary name. 0 or -errno. */
int files_make(int directory, const char *name, size_t bytes, void **ret_memory,
	       struct stat *ret_identity);

/* Gives the file its name, in place of what has it. 0 or -errno. */
int files_name(int directory, const char *name);

/* Removes a file that did not get its name. */
void files_discard(int directory, const char *name);

#endif
