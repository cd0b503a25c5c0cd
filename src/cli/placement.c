/* SPDX-License-Identifier: MIT */
/*
 * Where a process would belong; see placement.h. The collector says it of the policy in force, the
 * reader of policies of a file; both by the same function of the policy's room.
 */
#include "cli/placement.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/translation.h"
#include "cli/collector.h"
#include "output/page.h"
#include "policy/policy.h"
#include "view/amount.h"
#include "view/vocabulary.h"

struct placement_view {
	char rule[2 * PLACEMENT_TEXT + 16];
	struct placement given;
};

static const struct form form_met_rule = {
	.show = form_text_show,
	.json = form_text_json,
	.nothing = N_("no match line fits"),
};

static const struct column placement_columns[] = {
	COLUMN(struct placement_view, given.container, "container", "container", form_text),
	COLUMN(struct placement_view, given.job, "job", "job", form_text),
	COLUMN(struct placement_view, given.pod, "pod", "pod", form_text),
	COLUMN(struct placement_view, rule, "rule", "rule", form_met_rule),
	COLUMN(struct placement_view, given.tenant, "tenant", "tenant", form_text),
	COLUMN(struct placement_view, given.pattern, "pattern", "pattern", form_text),
	COLUMN(struct placement_view, given.mode, "mode", "mode", form_mode),
	COLUMN(struct placement_view, given.guard, "guard", "guard", form_flag),
	COLUMNS_END,
};

/* ---- limits */

struct placement_limit {
	const char *kind;
	struct amount limit, process_limit;
};

static const struct column placement_limit_columns[] = {
	COLUMN(struct placement_limit, kind, "kind", "KIND", form_string),
	COLUMN(struct placement_limit, limit, "limit", "LIMIT", form_amount),
	COLUMN(struct placement_limit, process_limit, "process_limit", "PER PROCESS", form_amount),
	COLUMNS_END,
};

static struct list placement_limits(const struct placement *placement)
{
	struct list limits = { .size = sizeof(struct placement_limit) };

	for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
		struct placement_limit *limit;

		if (placement->limit[kind] == UNLIMITED &&
		    placement->process_limit[kind] == UNLIMITED)
			continue;
		limit = list_add(&limits);
		*limit = (struct placement_limit){
			kind_rows[kind].name,
			{ placement->limit[kind], &kind_rows[kind] },
			{ placement->process_limit[kind], &kind_rows[kind] },
		};
	}
	return limits;
}

/* ---- asking */

static int collector_place(const struct cli *cli, const struct policy_given *given,
			   struct placement *ret_placement)
{
	const struct policy_subject *subject = &given->subject;
	struct proto_subject asked = {
		.uid = subject->uid,
		.gid = subject->gid,
		.groups = subject->groups,
		.flags = (subject->container ? SUBJECT_CONTAINER : 0) |
			 (subject->job ? SUBJECT_JOB : 0) | (subject->pod ? SUBJECT_POD : 0) |
			 (subject->namespace ? SUBJECT_NAMESPACE : 0),
	};
	struct proto_placement placement;
	int result;

	memcpy(asked.group, given->group, subject->groups * sizeof(asked.group[0]));
	strcpy(asked.cgroup, given->cgroup);
	strcpy(asked.container, given->container);
	strcpy(asked.job, given->job);
	strcpy(asked.pod, given->pod);
	strcpy(asked.namespace, given->namespace);
	result = collector_ask(cli, MESSAGE_EXPLAIN_AS, &asked, &placement);
	if (result)
		return result;
	*ret_placement = placement.placement;
	proto_text(ret_placement->tenant);
	proto_text(ret_placement->pattern);
	proto_text(ret_placement->container);
	proto_text(ret_placement->job);
	proto_text(ret_placement->pod);
	proto_text(ret_placement->source);
	proto_text(ret_placement->text);
	return CLI_OK;
}

static int file_place(const struct cli *cli, const char *file, const struct policy_given *given,
		      struct placement *ret_placement)
{
	struct policy *policy = memory_need(policy_new());
	char problem[PROBLEM_SIZE] = "";
	int result = policy_read(policy, file, problem);

	if (result == 0)
		policy_place(policy, &given->subject, ret_placement);
	policy_free(policy);
	if (result == 0)
		return CLI_OK;
	return problem[0] ? cli_fail(cli, CLI_WRONG, "%s", problem) :
			    cli_fail(cli, CLI_WRONG, "%s: %s", file, strerror(-result));
}

int placement_explain(const struct cli *cli)
{
	const char *as = cli_value(&cli->options.as), *file = cli_value(&cli->options.policy);
	struct placement_view view = { .rule = "" };
	char problem[PROBLEM_SIZE];
	struct policy_given given;
	struct list limits;
	struct page page;
	int result = CLI_OK;

	if (cli->count)
		return cli_fail(cli, CLI_USAGE,
				"explain: a process and --as or --policy: expected PID, or --as "
				"CONDITIONS");
	if (!as || cli->options.as.count > 1)
		result = cli_fail(cli, CLI_USAGE,
				  "explain: expected --as CONDITIONS once, such as --as uid=1000");
	if (!result && policy_given_parse(as, &given, problem) < 0)
		result = cli_fail(cli, CLI_USAGE, "%s", problem);
	if (!result)
		result = file ? file_place(cli, file, &given, &view.given) :
				collector_place(cli, &given, &view.given);
	if (result)
		return result;
	if (view.given.source[0])
		snprintf(view.rule, sizeof(view.rule), "%s: match = %s", view.given.source,
			 view.given.text);
	limits = placement_limits(&view.given);
	cli_page_begin(&page, cli);
	page_record(&page, "placement", placement_columns, &view);
	page_table(&page, "limits", placement_limit_columns, &limits);
	free(limits.row);
	return page_end(&page);
}
