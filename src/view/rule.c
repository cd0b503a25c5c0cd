/* SPDX-License-Identifier: MIT */
/* The when lines of the policy in the form in which they are shown; see rule.h. */
#include "view/rule.h"

#include "output/form.h"

const struct column rule_columns[] = {
	COLUMN(struct proto_rule, in_force, "in_force", "IN FORCE", form_flag),
	COLUMN(struct proto_rule, since_ns, "since", "SINCE", form_time),
	COLUMN(struct proto_rule, used, "used", NULL, form_count),
	COLUMN(struct proto_rule, source, "source", "SOURCE", form_text),
	COLUMN(struct proto_rule, text, "when", "WHEN", form_text),
	COLUMN(struct proto_rule, problem, "problem", "PROBLEM", form_text),
	COLUMNS_END,
};

int rule_take(const void *row, void *rules)
{
	struct proto_rule *rule = list_add(rules);

	*rule = *(const struct proto_rule *)row;
	proto_text(rule->text);
	proto_text(rule->source);
	proto_text(rule->problem);
	return 0;
}
