/* SPDX-License-Identifier: MIT */
/* limit get, set, unset and reset: the limits of the host, of tenants and of their processes. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "cli/change.h"
#include "cli/collector.h"
#include "cli/limits.h"
#include "cli/paces.h"
#include "cli/rates.h"
#include "output/form.h"

/* ---- get */

/* Rates and paces of a tenant, or ("") of all of them, with what they did. */
static int settings_append(const struct cli *cli, struct page *page, const char *section)
{
	struct proto_choose choose = { .flags = 0 };
	int result;

	if (*section)
		snprintf(choose.tenant, sizeof(choose.tenant), "%.*s", NAME_SIZE - 1,
			 section + strlen("tenant "));
	result = rates_show(cli, page, &choose);
	return result ? result : paces_show(cli, page, choose.tenant);
}

int command_limit_get(const struct cli *cli)
{
	struct proto_change wanted = { .section = "" };
	struct page page;
	unsigned words = 0;
	bool found = false;
	int result = cli->count ? change_section(cli, &wanted, &words) : CLI_OK;

	if (!result)
		result = cli_operands(cli, 0, words);
	if (result)
		return result;
	cli_page_begin(&page, cli);
	result = limits_show(cli, &page, wanted.section, false, &found);
	if (!result && !found)
		result = cli_fail(cli, CLI_WRONG, "the collector has no %s: '" CLI_NAME " show tenants' lists the tenants",
				  wanted.section);
	if (!result && (!*wanted.section || !strncmp(wanted.section, "tenant ", 7)))
		result = settings_append(cli, &page, wanted.section);
	return result ? result : page_end(&page);
}

/* ---- set and unset */

/* The words after the section, each made a line of the change. */
static int send_lines(const struct cli *cli,
		      int (*line)(const struct cli *cli, struct proto_change *change,
				  const char *word))
{
	struct proto_change change;
	unsigned words;
	int result = change_section(cli, &change, &words);

	if (!result)
		result = cli_operands(cli, words + 1, UINT_MAX);
	for (unsigned i = words; !result && i < cli->count; i++)
		result = line(cli, &change, cli->operand[i]);
	return result ? result : change_send(cli, MESSAGE_CHANGE_POLICY, &change);
}

static int line_unset(const struct cli *cli, struct proto_change *change, const char *key)
{
	if (strchr(key, '='))
		return cli_fail(cli, CLI_USAGE, "%s: '%s': expected a key without a value, such as qp",
				cli->command->name, key);
	return change_line(cli, change, key, "unset");
}

int command_limit_set(const struct cli *cli)
{
	return send_lines(cli, change_assignment);
}

int command_limit_unset(const struct cli *cli)
{
	return send_lines(cli, line_unset);
}

/* ---- reset */

int command_limit_reset(const struct cli *cli)
{
	struct proto_change change = { .section = "" };
	struct proto_reset dropped;
	struct page page;
	unsigned words = 0;
	int result = cli->count ? change_section(cli, &change, &words) : CLI_OK;

	if (!result)
		result = cli_operands(cli, 0, words);
	if (!result)
		result = collector_ask(cli, MESSAGE_RESET_POLICY, &change, &dropped);
	if (result)
		return result;
	cli_page_begin(&page, cli);
	if (!dropped.keys)
		page_sentence(&page, NULL, "commands have set no key: nothing is dropped");
	else if (dropped.keys == 1)
		page_sentence(&page, NULL, "1 key that a command had set is dropped");
	else
		page_sentence(&page, NULL, "%u keys that commands had set are dropped", dropped.keys);
	page_json(&page, "section", form_json_text(change.section));
	page_json(&page, "keys", form_json_number(dropped.keys));
	return page_end(&page);
}
