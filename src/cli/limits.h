/* SPDX-License-Identifier: MIT */
/* The limits in force, each with the place where it was set: a part of a page. */
#ifndef CLI_LIMITS_H
#define CLI_LIMITS_H

#include "cli/cli.h"
#include "output/page.h"

/*
 * Of a section ("host", "default", "tenant NAME"; "": of all), for a tenant also those of the host
 * if wanted. *ret_found (or NULL): the collector knows such a section. An exit status.
 */
int limits_show(const struct cli *cli, struct page *page, const char *section, bool with_host,
		bool *ret_found);

#endif
