/* SPDX-License-Identifier: MIT */
/* Whether the library can be loaded into a program. */
#ifndef CLI_PROGRAM_H
#define CLI_PROGRAM_H

#include <limits.h>
#include <stdbool.h>

#include "base/problem.h"

/* 0, or -ENOEXEC with the reason and the way out, if the dynamic linker would not load the library
 * into the program that execvp() would start for `name`. A script is followed to its interpreter.
 * Also 0 if there is no such program, or it cannot be read: execvp() then tells, or it starts. */
int program_check(const char *name, const char *library, char problem[PROBLEM_SIZE]);

/* Says why execvp() of the name failed with the error. */
void program_failure(const char *name, int error, char problem[PROBLEM_SIZE]);

#endif
