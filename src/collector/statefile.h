/* SPDX-License-Identifier: MIT */
/*
 * Files of the state directory: each begins with a signature, is complete before it has its
 * name, and gets memory before it is touched. Knows nothing of what they hold.
 */
#ifndef COLLECTOR_STATEFILE_H
#define COLLECTOR_STATEFILE_H

#include <stddef.h>

#include "base/problem.h"

/* A sentence that begins with the file's path (name "": the directory's): what is wrong, or if
 * that is NULL the text of the error. Returns the error. */
int statefile_problem(char problem[PROBLEM_SIZE], int result, const char *path, const char *name,
		      const char *what);

/* Opens the directory, made if need be; it must be closed to other users. -errno, with a
 * sentence. */
int statefile_directory(const char *path, char problem[PROBLEM_SIZE]);
/* For as long as the collector lives; the kernel lets go of it at its death. */
int statefile_directory_lock(int directory, const char *path, char problem[PROBLEM_SIZE]);

/* Makes a file of that size that begins with those bytes; complete before it has its name. */
int statefile_make(int directory, const char *name, size_t size, const void *head,
		   size_t head_size);
/* Memory for a part of a file before it is touched: a full file system must not be a SIGBUS. */
int statefile_reserve(int fd, const void *base, const void *from, size_t size);
/* Maps a file that has exactly that size; NULL with errno. */
void *statefile_map(int directory, const char *name, size_t size, int *ret_fd);

#endif
