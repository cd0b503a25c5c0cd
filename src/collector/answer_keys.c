/* SPDX-License-Identifier: MIT */
/* GET_KEYS: the keys of the policy in force, and where each was set. */
#include "collector/answers.h"

#include <stdio.h>

#include "collector/origins.h"

static bool line_send(void *closure, const struct policy_line *line)
{
	struct proto_key row = { .section = "" };

	snprintf(row.section, sizeof(row.section), "%s", line->section);
	snprintf(row.key, sizeof(row.key), "%s", line->key);
	snprintf(row.value, sizeof(row.value), "%s", line->value);
	origin_cut(line->origin, row.origin);
	return server_row(closure, &row);
}

void answer_GET_KEYS(struct collector *collector, const struct request *request)
{
	struct proto_choose choose = request_choice(request);

	policy_lines_visit(collector->effective, choose.tenant[0] ? choose.tenant : NULL, line_send,
			   (void *)request);
	server_end(request);
}
