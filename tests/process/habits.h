/* SPDX-License-Identifier: MIT */
/* Habits of daemons: a function for each row of habits.def, and what the functions share. */
#ifndef TESTS_PROCESS_HABITS_H
#define TESTS_PROCESS_HABITS_H

#include <stdbool.h>
#include <sys/types.h>

#include "fixture.h"
#include "harness.h"

enum { NOBODY = 65534, SOME = 40, NOT_HERE = 77 };

#define HABIT(name, settings) void habit_##name(void);
#include "habits.def"
#undef HABIT

extern struct fixture habit_fixture;
extern int habit_output; /* where it tells */

/* Makes some QPs and MRs, and frees them unless they are to stay; tells how it went. */
unsigned habit_work(bool keep);
void habit_tell(const char *what, long number);
void habit_tell_work(void);
/* Waits for the child, and tells how it ended. */
void habit_reap(pid_t pid);
/* The habit cannot be had here, for want of a right: with the library as without. */
void habit_need(bool good);
/* Becomes this program with another scenario. */
void habit_again(const char *scenario);

#endif
