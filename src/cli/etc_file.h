/* SPDX-License-Identifier: MIT */
/*
 * Changes small files below /etc so that a reader finds the old file or the whole new one, whenever
 * this process is killed. The candidate stands beside the file, under a fixed name, which the next
 * change takes over.
 */
#ifndef CLI_ETC_FILE_H
#define CLI_ETC_FILE_H

#include "base/problem.h"

#define ETC_FILE_CANDIDATE ".rdma_intercept"

/* One change at a time: a descriptor for etc_file_unlock(), or -errno. The lock is a file that only
 * root can open, since who can open a file can lock it and keep root waiting. */
int etc_file_lock(char problem[PROBLEM_SIZE]);
void etc_file_unlock(int lock);

/* The text, to be freed; NULL if there is no such file. */
int etc_file_read(const char *path, char **ret_text, char problem[PROBLEM_SIZE]);

/* Writes the candidate, with owner, mode and label of the file, and waits until it is on the disk. */
int etc_file_prepare(const char *path, const char *text, char problem[PROBLEM_SIZE]);

/* Lets the candidate take the place of the file, if its text is still `old` (NULL: no file). */
int etc_file_commit(const char *path, const char *old, char problem[PROBLEM_SIZE]);

/* Removes the candidate, if there is one. */
void etc_file_abandon(const char *path);

/* Removes the file: it need not exist. */
int etc_file_remove(const char *path, char problem[PROBLEM_SIZE]);

#endif
