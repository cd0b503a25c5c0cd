/* SPDX-License-Identifier: MIT */
/*
 * A library whose destructor runs after those of preloaded libraries: it is linked to the
 * program, so it is initialised before them.
 */
#include <stddef.h>

extern void (*late_work)(void);
void (*late_work)(void);

static __attribute__((destructor)) void late(void)
{
	if (late_work)
		late_work();
}
