/* SPDX-License-Identifier: MIT */
/* Counters of a process or a tenant and gauges of its queue pairs, beside what it holds. */
#ifndef CLI_DETAILS_H
#define CLI_DETAILS_H

#include "cli/cli.h"
#include "output/page.h"
#include "proto/messages.h"

/* Adds them to the page; an exit status. A process that is not registered has none. */
int details_show(const struct cli *cli, struct page *page, const struct proto_choose *choose);

/* The same for the gauges of all processes on a device, added up. */
int details_show_device(const struct cli *cli, struct page *page, const char *device);

#endif
