/* SPDX-License-Identifier: MIT */
/* The match lines of a tenant; see matches.h. */
#include "cli/matches.h"

#include <stdio.h>
#include <stdlib.h>

#include "cli/collector.h"
#include "view/match.h"

int matches_show(const struct cli *cli, struct page *page, const char *tenant)
{
	struct list matches = { .size = sizeof(struct proto_match) };
	struct proto_choose choose = { .pid = 0 };
	int result;

	snprintf(choose.tenant, sizeof(choose.tenant), "%s", tenant);
	result = collector_rows(cli, MESSAGE_GET_MATCHES, &choose, match_take, &matches);
	if (!result && (matches.count || page->document))
		page_table(page, "matches", match_columns, &matches);
	free(matches.row);
	return result;
}
