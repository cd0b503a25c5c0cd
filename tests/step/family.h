/* SPDX-License-Identifier: MIT */
/* Child processes of a test that end with it, also when the test is killed. */
#ifndef TESTS_STEP_FAMILY_H
#define TESTS_STEP_FAMILY_H

#include <sys/types.h>

/* fork(), whose child gets SIGKILL when its parent ends. The test ends if fork() fails. */
pid_t family_fork(void);

/* Kills the process, waits for its end, and sets *pid to 0. Does nothing if *pid is 0. */
void family_kill(pid_t *pid);

#endif
