/* SPDX-License-Identifier: MIT */
/* The limits of the program that run starts. */
#ifndef CLI_RUN_LIMITS_H
#define CLI_RUN_LIMITS_H

#include "cli/cli.h"

/* Puts the values of --limit into the environment, behind the limits that are there already: of two
 * values for one limit, the library takes the later. An exit status. */
int run_limits_set(const struct cli *cli);

#endif
