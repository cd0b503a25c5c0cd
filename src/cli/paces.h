/* SPDX-License-Identifier: MIT */
/* The paces and priorities of tenants, and what their processes have posted. */
#ifndef CLI_PACES_H
#define CLI_PACES_H

#include "cli/cli.h"
#include "output/page.h"

/* Of one tenant, or of all (""): for people only where there is one. An exit status. */
int paces_show(const struct cli *cli, struct page *page, const char *tenant);

#endif
