/* SPDX-License-Identifier: MIT */
/* The when lines of the policy, and which of them are in force: a part of `status`. */
#ifndef CLI_RULES_H
#define CLI_RULES_H

#include "cli/cli.h"
#include "output/page.h"

/* Asks the collector. An exit status. */
int rules_show(const struct cli *cli, struct page *page);

#endif
