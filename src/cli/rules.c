/* SPDX-License-Identifier: MIT */
/* The when lines of the policy; see rules.h. */
#include "cli/rules.h"

#include <stdlib.h>

#include "cli/collector.h"
#include "view/rule.h"

int rules_show(const struct cli *cli, struct page *page)
{
	struct list rules = { .size = sizeof(struct proto_rule) };
	int result = collector_rows(cli, MESSAGE_GET_RULES, &(struct proto_choose){ .pid = 0 },
				    rule_take, &rules);

	if (!result && (rules.count || page->document))
		page_table(page, "rules", rule_columns, &rules);
	free(rules.row);
	return result;
}
