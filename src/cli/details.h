/* SPDX-License-Identifier: MIT */
/* Counters of a process and gauges of its queue pairs, beside what it holds. */
#ifndef CLI_DETAILS_H
#define CLI_DETAILS_H

#include "cli/cli.h"
#include "output/page.h"

/* Adds them to the page; an exit status. A process that is not registered has none. */
int details_show(const struct cli *cli, struct page *page, int32_t pid);

#endif
