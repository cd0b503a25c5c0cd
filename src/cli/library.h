/* SPDX-License-Identifier: MIT */
/* Where librdma_intercept.so is, for those who put it into programs. */
#ifndef CLI_LIBRARY_H
#define CLI_LIBRARY_H

#include <limits.h>

#include "base/problem.h"

#define LIBRARY_FILE "librdma_intercept.so"
#define LIBRARY_VARIABLE "RDMA_INTERCEPT_LIBRARY"

/* The directory of this program; "" when it cannot be told. */
void library_own_directory(char ret_path[PATH_MAX]);

/* 0 with an absolute path that LD_PRELOAD can take, or -errno with a sentence in problem. */
int library_find(char ret_path[PATH_MAX], char problem[PROBLEM_SIZE]);

/* Loads the library in a child, which may die of it: 0, or -errno with the loader's reason. */
int library_load_try(const char *path, char problem[PROBLEM_SIZE]);

#endif
