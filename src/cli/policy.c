/* SPDX-License-Identifier: MIT */
/*
 * check and reload: policy files. check has to say of a file exactly what the
 * collector would, also where no collector runs; so it uses the same reader.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/translation.h"
#include "cli/collector.h"
#include "output/form.h"
#include "output/page.h"
#include "policy/check.h"

#define DEVICES "/sys/class/infiniband"

struct verdict {
	const char *file;
	uint32_t ok;
	uint32_t errors, warnings;
	uint32_t tenants;
	uint32_t rules;
	char problem[PROBLEM_SIZE];
};

static const struct column verdict_columns[] = {
	COLUMN(struct verdict, file, "file", NULL, form_string),
	COLUMN(struct verdict, ok, "ok", NULL, form_flag),
	COLUMN(struct verdict, errors, "errors", NULL, form_number),
	COLUMN(struct verdict, warnings, "warnings", NULL, form_number),
	COLUMN(struct verdict, tenants, "tenants", NULL, form_number),
	COLUMN(struct verdict, rules, "rules", NULL, form_number),
	COLUMN(struct verdict, problem, "problem", NULL, form_text),
	COLUMNS_END,
};

/* A finding as it is shown. */
struct finding {
	const char *file;
	uint32_t line;
	const char *level;
	const char *rule;
	char text[PROBLEM_SIZE];
};

static const struct column finding_columns[] = {
	COLUMN(struct finding, file, "file", NULL, form_string),
	COLUMN(struct finding, line, "line", NULL, form_number),
	COLUMN(struct finding, level, "level", NULL, form_string),
	COLUMN(struct finding, rule, "rule", NULL, form_string),
	COLUMN(struct finding, text, "text", NULL, form_text),
	COLUMNS_END,
};

static struct list findings_of(const struct policy_report *report)
{
	struct list findings = { .size = sizeof(struct finding) };

	for (unsigned i = 0; i < report->count; i++) {
		const struct policy_finding *found = &report->finding[i];
		struct finding *finding = list_add(&findings);

		finding->file = found->file;
		finding->line = found->line;
		finding->level = policy_check_is_error(found->check) ? N_("error") : N_("warning");
		finding->rule = policy_checks[found->check].name;
		strcpy(finding->text, found->text);
	}
	return findings;
}

static void finding_print(const struct finding *finding, char ret_text[2 * PROBLEM_SIZE],
			  const char *level)
{
	char line[16] = "";

	if (finding->line)
		snprintf(line, sizeof(line), "%u:", finding->line);
	snprintf(ret_text, 2 * PROBLEM_SIZE, "%.600s:%s %s%s", finding->file, line, level,
		 finding->text);
}

static struct verdict verdict_on(const char *file, const struct policy *policy,
				 const struct list *findings)
{
	struct verdict verdict = { .file = file,
				   .errors = policy->report->errors,
				   .warnings = policy->report->warnings };
	char text[2 * PROBLEM_SIZE];

	verdict.ok = !verdict.errors;
	for (size_t i = 0; i < findings->count && !verdict.problem[0]; i++) {
		const struct finding *finding = list_at(findings, i);

		if (strcmp(finding->level, "error"))
			continue;
		finding_print(finding, text, "");
		snprintf(verdict.problem, sizeof(verdict.problem), "%.639s", text);
	}
	for (const struct policy_tenant *tenant = policy->tenants; tenant; tenant = tenant->next)
		verdict.tenants++;
	for (const struct policy_rule *rule = policy->rules; rule; rule = rule->next)
		verdict.rules++;
	return verdict;
}

/* Findings are the answer and go to standard output, in the way in which compilers say it: editors
 * can read that. The verdict goes to standard error. */
static void findings_print(const struct verdict *verdict, const struct list *findings,
			   unsigned left_out)
{
	char text[2 * PROBLEM_SIZE], level[32], *printable;

	for (size_t i = 0; i < findings->count; i++) {
		const struct finding *finding = list_at(findings, i);

		snprintf(level, sizeof(level), "%s: ", _(finding->level));
		finding_print(finding, text, level);
		printable = form_printable(text, NULL);
		puts(printable);
		free(printable);
	}
	fflush(stdout);
	printable = form_printable(verdict->file, NULL);
	fprintf(stderr, "%s: ", printable);
	if (verdict->errors || verdict->warnings) {
		fprintf(stderr, verdict->errors == 1 ? _("%u error, ") : _("%u errors, "),
			verdict->errors);
		fprintf(stderr, verdict->warnings == 1 ? _("%u warning") : _("%u warnings"),
			verdict->warnings);
	} else {
		fprintf(stderr, verdict->tenants == 1 ? _("ok, %u tenant, ") : _("ok, %u tenants, "),
			verdict->tenants);
		fprintf(stderr, verdict->rules == 1 ? _("%u match line") : _("%u match lines"),
			verdict->rules);
	}
	fputc('\n', stderr);
	if (left_out)
		fprintf(stderr, _("%s: %u findings were left out: correct the others first\n"),
			printable, left_out);
	free(printable);
}

/* The file that is named, or the one that the collector reads: it says which; without a collector,
 * the one that it would read. */
static const char *policy_file(const struct cli *cli, struct proto_status *status)
{
	const char *variable = getenv("RDMA_INTERCEPT_POLICY");
	char path[PROTO_PATH], problem[PROBLEM_SIZE];

	if (cli->count)
		return cli->operand[0];
	if (!collector_path(cli, path) &&
	    proto_call(path, MESSAGE_STATUS, NULL, status, NULL, 0, 0, problem) >= 0 &&
	    *proto_text(status->policy) == '/' && strlen(status->policy) < sizeof(status->policy) - 1)
		return status->policy;
	return variable && *variable ? variable : POLICY_DEFAULT_FILE;
}

int command_check(const struct cli *cli)
{
	const char *devices = getenv("RDMA_COLLECTOR_DEVICES"); /* for tests, as in the collector */
	struct policy_report report = { .count = 0 };
	struct policy *policy = memory_need(policy_new());
	struct proto_status status;
	struct verdict verdict;
	struct list findings;
	struct page page;
	const char *file;
	int result = cli_operands(cli, 0, 1);

	if (result) {
		policy_free(policy);
		return result;
	}
	policy->report = &report;
	file = policy_file(cli, &status);
	if (policy_check(policy, file, devices ? devices : DEVICES) < 0)
		memory_need(NULL);
	findings = findings_of(&report);
	verdict = verdict_on(file, policy, &findings);
	cli_page_begin(&page, cli);
	if (cli->options.json.count) {
		page_json(&page, "policy", table_json_record(verdict_columns, &verdict));
		page_table(&page, "findings", finding_columns, &findings);
	} else {
		findings_print(&verdict, &findings, report.left_out);
	}
	page_end(&page);
	free(findings.row);
	policy_free(policy);
	policy_report_free(&report);
	return verdict.errors || (cli->options.strict.count && verdict.warnings) ? CLI_WRONG :
										   CLI_OK;
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
	if (status.overrides == 1)
		page_sentence(&page, NULL,
			      "commands override 1 key: '" CLI_NAME
			      " limit get' shows it, '" CLI_NAME " limit reset' drops it");
	else if (status.overrides)
		page_sentence(&page, NULL,
			      "commands override %u keys: '" CLI_NAME
			      " limit get' shows them, '" CLI_NAME " limit reset' drops them",
			      status.overrides);
	page_json(&page, "overrides", form_json_number(status.overrides));
	page_json(&page, "policy", form_json_text(status.policy));
	return page_end(&page);
}
