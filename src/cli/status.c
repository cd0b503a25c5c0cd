/* SPDX-License-Identifier: MIT */
/* status: the collector, and what each tenant uses of what it may. */
#include "cli/collector.h"
#include "cli/owner.h"

struct collector {
	char socket[PROTO_PATH];
	struct proto_pong pong;
};

static void problem_show(const struct form *form, const void *field, struct cell *ret_cell)
{
	cell_print(ret_cell, COLOUR_BAD, "%s", (const char *)field);
}

static const struct form form_problem = { .show = problem_show, .json = form_text_json };

static const struct column collector_columns[] = {
	COLUMN(struct collector, pong.pid, "pid", "pid", form_pid),
	COLUMN(struct collector, pong.uid, "uid", "uid", form_number),
	COLUMN(struct collector, pong.version, "version", "version", form_text),
	COLUMN(struct collector, pong.uptime_seconds, "uptime_seconds", "up", form_seconds),
	COLUMN(struct collector, socket, "socket", "socket", form_text),
	COLUMN(struct collector, pong.policy, "policy", "policy", form_text),
	COLUMN(struct collector, pong.reloads, "reloads", "reloads", form_number),
	COLUMN(struct collector, pong.problem, "problem", "problem", form_problem),
	COLUMN(struct collector, pong.processes, "processes", NULL, form_number),
	COLUMN(struct collector, pong.tenants, "tenants", NULL, form_number),
	COLUMN(struct collector, pong.leases, "leases", "leases", form_number),
	COLUMNS_END,
};

int command_status(const struct cli *cli)
{
	const struct list *host;
	struct collector collector;
	struct owners owners;
	struct page page;
	int result = cli_operands(cli, 0, 0);

	if (!result)
		result = collector_path(cli, collector.socket);
	if (!result)
		result = collector_ask(cli, MESSAGE_PING, NULL, &collector.pong);
	if (result)
		return result;
	proto_text(collector.pong.version);
	proto_text(collector.pong.policy);
	proto_text(collector.pong.problem);
	result = owners_ask(cli, MESSAGE_GET_STATS, NULL, &owners);
	if (!result) {
		host = &owners.in_total[ROW_HOST];
		page_begin(&page, cli);
		page_record(&page, "collector", collector_columns, &collector);
		owners_show(&page, "tenants", tenant_columns, &owners.in_total[ROW_TENANT]);
		owners_show(&page, NULL, host_columns, host);
		if (host->count)
			page_json(&page, "host", table_json_record(host_columns, host->row));
		result = page_end(&page);
	}
	owners_free(&owners);
	return result;
}
