/* SPDX-License-Identifier: MIT */
/* The match lines of a tenant on a page. */
#ifndef CLI_MATCHES_H
#define CLI_MATCHES_H

#include "cli/cli.h"
#include "output/page.h"

/* Appends the lines of a tenant or a pattern to a list of struct proto_match. An exit status. */
int matches_ask(const struct cli *cli, const char *tenant, struct list *matches);

/* In the order in which the collector tries them. An exit status. */
int matches_show(const struct cli *cli, struct page *page, const char *tenant);

#endif
