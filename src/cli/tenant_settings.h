/* SPDX-License-Identifier: MIT */
/* What the processes of a tenant follow besides limits. */
#ifndef CLI_TENANT_SETTINGS_H
#define CLI_TENANT_SETTINGS_H

#include "cli/cli.h"
#include "output/page.h"

/* Asks the collector and shows them, as "settings" of the document. */
int tenant_settings_show(const struct cli *cli, struct page *page, const char *tenant);

#endif
