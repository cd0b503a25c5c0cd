/* SPDX-License-Identifier: MIT */
/* tenant list, add and remove. */
#include <limits.h>

#include "cli/change.h"
#include "cli/owners.h"

int command_tenant_list(const struct cli *cli)
{
	struct owners owners;
	struct page page;
	int result = cli_operands(cli, 0, 0);

	if (result)
		return result;
	result = owners_ask(cli, MESSAGE_GET_STATS, NULL, &owners);
	if (!result) {
		cli_page_begin(&page, cli);
		page_table(&page, "tenants", tenant_columns, &owners.in_total[ROW_TENANT]);
		result = page_end(&page);
	}
	owners_free(&owners);
	return result;
}

static int lines_of_option(const struct cli *cli, struct proto_change *change, const char *key,
			   const struct given *option)
{
	int result = CLI_OK;

	for (unsigned i = 0; !result && i < option->count; i++)
		result = change_line(cli, change, key, option->value[i]);
	return result;
}

int command_tenant_add(const struct cli *cli)
{
	struct proto_change change;
	int result = cli_operands(cli, 1, UINT_MAX);

	if (!result)
		result = change_tenant(cli, cli->operand[0], &change);
	if (!result)
		result = lines_of_option(cli, &change, "mode", &cli->options.mode);
	if (!result)
		result = lines_of_option(cli, &change, "match", &cli->options.match);
	for (unsigned i = 1; !result && i < cli->count; i++)
		result = change_assignment(cli, &change, cli->operand[i]);
	return result ? result : change_send(cli, MESSAGE_TENANT_ADD, &change);
}

int command_tenant_remove(const struct cli *cli)
{
	struct proto_change change;
	int result = cli_operands(cli, 1, 1);

	if (!result)
		result = change_tenant(cli, cli->operand[0], &change);
	return result ? result : change_send(cli, MESSAGE_TENANT_REMOVE, &change);
}
