/* SPDX-License-Identifier: MIT */
/*
 * check and reload: policy files. check has to say of a file exactly what the
 * collector would, also where no collector runs; so it uses the same reader.
 */
#include <stdio.h>
#include <string.h>

#include "base/translation.h"
#include "cli/collector.h"
#include "output/form.h"
#include "output/page.h"
#include "policy/policy.h"

struct verdict {
	const char *file;
	uint32_t ok;
	uint32_t tenants;
	uint32_t rules;
	char problem[PROBLEM_SIZE];
};

static const struct column verdict_columns[] = {
	COLUMN(struct verdict, file, "file", NULL, form_string),
	COLUMN(struct verdict, ok, "ok", NULL, form_flag),
	COLUMN(struct verdict, tenants, "tenants", NULL, form_number),
	COLUMN(struct verdict, rules, "rules", NULL, form_number),
	COLUMN(struct verdict, problem, "problem", NULL, form_text),
	COLUMNS_END,
};

static struct verdict verdict_on(const char *file)
{
	struct policy *policy = memory_need(policy_new());
	struct verdict verdict = { .file = file };
	int result = policy_read(policy, file, verdict.problem);

	verdict.ok = result == 0 && !policy->cut[0];
	if (result < 0 && !verdict.problem[0])
		snprintf(verdict.problem, sizeof(verdict.problem), "%s: %s", file,
			 strerror(-result));
	else if (result == 0 && policy->cut[0])
		snprintf(verdict.problem, sizeof(verdict.problem),
			 _("%s: the last line has no newline at its end: the file may be cut"),
			 policy->cut);
	for (const struct policy_tenant *tenant = policy->tenants; tenant; tenant = tenant->next)
		verdict.tenants++;
	for (const struct policy_rule *rule = policy->rules; rule; rule = rule->next)
		verdict.rules++;
	policy_free(policy);
	return verdict;
}

/* What is wrong with the file is the answer and goes to standard output, in the way in
 * which compilers say it: editors can read that. */
int command_check(const struct cli *cli)
{
	struct verdict verdict;
	struct page page;
	int result = cli_operands(cli, 1, 1);

	if (result)
		return result;
	verdict = verdict_on(cli->operand[0]);
	cli_page_begin(&page, cli);
	if (verdict.ok)
		page_sentence(&page, NULL, "%s: ok, %u tenants, %u rules", verdict.file,
			      verdict.tenants, verdict.rules);
	else
		page_sentence(&page, NULL, "%s", verdict.problem);
	page_json(&page, "policy", table_json_record(verdict_columns, &verdict));
	result = page_end(&page);
	return verdict.ok ? result : CLI_WRONG;
}

int command_reload(const struct cli *cli)
{
	struct proto_status status;
	struct page page;
	int result = cli_operands(cli, 0, 0);

	if (!result)
		result = collector_ask(cli, cli->options.replace.count ? MESSAGE_REPLACE :
								 MESSAGE_RELOAD,
				       NULL, NULL);
	if (!result)
		result = collector_ask(cli, MESSAGE_STATUS, NULL, &status);
	if (result)
		return result;
	cli_page_begin(&page, cli);
	if (proto_text(status.policy)[0])
		page_sentence(&page, NULL, "%s: in force", status.policy);
	else
		page_sentence(&page, NULL, "no policy file is in force");
	page_json(&page, "policy", form_json_text(status.policy));
	return page_end(&page);
}
