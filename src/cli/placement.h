/* SPDX-License-Identifier: MIT */
/* explain --as: where a process would belong that there need not be. */
#ifndef CLI_PLACEMENT_H
#define CLI_PLACEMENT_H

#include "cli/cli.h"

/* Asks the collector, or the policy file that --policy names. An exit status. */
int placement_explain(const struct cli *cli);

#endif
