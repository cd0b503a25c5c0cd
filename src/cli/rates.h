/* SPDX-License-Identifier: MIT */
/* The rates of control verbs that are in force, as a table of the page. */
#ifndef CLI_RATES_H
#define CLI_RATES_H

#include "cli/cli.h"
#include "output/page.h"
#include "proto/messages.h"

/* Shows the rates of the chosen tenants, or of processes with CHOOSE_PROCESSES. Prints no table if
 * there are no rates. */
int rates_show(const struct cli *cli, struct page *page, const struct proto_choose *choose);

#endif
