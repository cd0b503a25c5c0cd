/* SPDX-License-Identifier: MIT */
/* The when lines of the policy; see rules.h. */
#include "cli/rules.h"

#include <stdlib.h>

#include "cli/collector.h"
#include "output/form.h"

static const struct column rule_columns[] = {
	COLUMN(struct proto_rule, in_force, "in_force", "IN FORCE", form_flag),
	COLUMN(struct proto_rule, since_ns, "since", "SINCE", form_time),
	COLUMN(struct proto_rule, used, "used", NULL, form_count),
	COLUMN(struct proto_rule, source, "source", "SOURCE", form_text),
	COLUMN(struct proto_rule, text, "when", "WHEN", form_text),
	COLUMN(struct proto_rule, problem, "problem", "PROBLEM", form_text),
	COLUMNS_END,
};

static int rule_take(const void *row, void *rules)
{
	struct proto_rule *rule = list_add(rules);

	*rule = *(const struct proto_rule *)row;
	proto_text(rule->text);
	proto_text(rule->source);
	proto_text(rule->problem);
	return 0;
}

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
