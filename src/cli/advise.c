/* SPDX-License-Identifier: MIT */
/* advise: what to change on this host or for a tenant, with the figures and the command. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "advice/advice.h"
#include "advice/observation.h"
#include "base/translation.h"
#include "cli/collector.h"
#include "output/form.h"
#include "output/page.h"

/* Readings of the processes' regions: a second. */
enum { ADVISE_READINGS = 20 };

static bool tenant_is_known(const struct observation *observation, const char *tenant)
{
	for (size_t i = 0; i < observation->rows.count; i++) {
		const struct proto_row *row = list_at(&observation->rows, i);

		if (row->scope == ROW_TENANT && !strcmp(row->tenant, tenant))
			return true;
	}
	return false;
}

/* Lines for people: the sentence with its rule, and the command below it. */
static void advice_show(struct page *page, const struct list *advice)
{
	for (size_t i = 0; i < advice->count; i++) {
		const struct advice *one = list_at(advice, i);
		char *text = form_printable(one->text, NULL);
		char *command = form_printable(one->command, NULL);

		printf("%s[%s] %s\n    %s\n", i ? "\n" : "", one->rule, text, command);
		if (one->more)
			printf(_("    (%llu more like this)\n"), (unsigned long long)one->more);
		free(text);
		free(command);
	}
	if (!advice->count)
		page_sentence(page, NULL, "no advice: none of %u rules applies", advice_rules_count);
}

int command_advise(const struct cli *cli)
{
	struct list advice = { .size = sizeof(struct advice) };
	char path[PROTO_PATH], problem[PROBLEM_SIZE];
	const char *tenant = cli->count ? cli->operand[0] : NULL;
	struct observation observation;
	struct page page;
	int result = cli_operands(cli, 0, 1);

	if (!result)
		result = collector_path(cli, path);
	if (result)
		return result;
	result = observation_take(&observation, path, ADVISE_READINGS, problem);
	if (result < 0)
		return collector_fail(cli, path, result, problem);
	if (tenant && !tenant_is_known(&observation, tenant)) {
		result = collector_has_no_tenant(cli, tenant);
	} else {
		advice_collect(&observation, tenant, ADVICE_MOST, &advice);
		cli_page_begin(&page, cli);
		if (cli->options.json.count)
			page_table(&page, "advice", advice_columns, &advice);
		else
			advice_show(&page, &advice);
		result = page_end(&page);
	}
	free(advice.row);
	observation_free(&observation);
	return result;
}
