/* SPDX-License-Identifier: MIT */
/* Calls of a process that failed in the kernel or the provider, for explain. */
#ifndef CLI_FAILED_CALLS_H
#define CLI_FAILED_CALLS_H

#include <stdint.h>

struct cli;
struct page;

/* Adds the classes of verbs of which calls failed, beside those that a limit refused, and what can be
 * done. An exit status. */
int failed_calls_show(const struct cli *cli, struct page *page, int32_t pid);

#endif
