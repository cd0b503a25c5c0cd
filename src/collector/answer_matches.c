/* SPDX-License-Identifier: MIT */
/* GET_MATCHES: the match lines of the policy in force, in the order in which they are tried. */
#include "collector/answers.h"

#include <stdio.h>
#include <string.h>

void answer_GET_MATCHES(struct collector *collector, const struct request *request)
{
	struct proto_choose choose = request_choice(request);
	const struct policy_tenant *chosen = policy_tenant_find(collector->effective, choose.tenant);
	uint32_t order = 0;

	/* A tenant that a pattern has made has the lines of the pattern. */
	if (chosen && chosen->pattern)
		snprintf(choose.tenant, sizeof(choose.tenant), "%s", chosen->pattern->name);

	for (const struct policy_rule *rule = collector->effective->rules; rule;
	     rule = rule->next) {
		struct proto_match row = { .in_kernel = policy_rule_in_kernel(rule) };

		row.order = ++order;
		if (choose.tenant[0] && strcmp(choose.tenant, rule->tenant->name))
			continue;
		snprintf(row.tenant, sizeof(row.tenant), "%s", rule->tenant->name);
		snprintf(row.source, sizeof(row.source), "%s", rule->source);
		snprintf(row.text, sizeof(row.text), "%s", rule->text);
		server_row(request, &row);
	}
	server_end(request);
}
