/* SPDX-License-Identifier: MIT */
/* The match lines of a tenant; see matches.h. */
#include "cli/matches.h"

#include <stdio.h>
#include <stdlib.h>

#include "cli/collector.h"
#include "view/match.h"

int matches_ask(const struct cli *cli, const char *tenant, struct list *matches)
{
	struct proto_choose choose = { .pid = 0 };

	snprintf(choose.tenant, sizeof(choose.tenant), "%s", tenant);
	return collector_rows(cli, MESSAGE_GET_MATCHES, &choose, match_take, matches);
}

int matches_show(const struct cli *cli, struct page *page, const char *tenant)
{
	struct list matches = { .size = sizeof(struct proto_match) };
	int result = matches_ask(cli, tenant, &matches);

	if (!result && (matches.count || page->document))
		page_table(page, "matches", match_columns, &matches);
	free(matches.row);
	return result;
}
