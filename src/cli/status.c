/* SPDX-License-Identifier: MIT */
/*
 * status: the collector, how the kernel is watched, what each tenant uses of what it may, and the
 * devices and ports of the host.
 */
#include <string.h>

#include "cli/collector.h"
#include "cli/embedded.h"
#include "cli/owners.h"
#include "cli/paces.h"
#include "cli/ports.h"
#include "cli/rates.h"
#include "cli/rules.h"
#include "view/status.h"

/* Without a collector: what processes of this user count in their shared file. */
struct embedded {
	char path[EMBEDDED_PATH];
	char socket[PROTO_PATH];
};

static const struct column embedded_columns[] = {
	COLUMN(struct embedded, path, "file", "shared file", form_text),
	COLUMN(struct embedded, socket, "no_collector_at", "no collector at", form_text),
	COLUMNS_END,
};

static int status_embedded(const struct cli *cli, struct embedded *embedded)
{
	struct owners owners;
	struct page page;
	int result = collector_path(cli, embedded->socket);

	if (result)
		return result;
	result = owners_ask_anywhere(cli, MESSAGE_GET_STATS, NULL, &owners);
	if (!result) {
		cli_page_begin(&page, cli);
		page_record(&page, "embedded", embedded_columns, embedded);
		owners_show(&page, "processes", process_columns, &owners.in_total[ROW_PROCESS]);
		owners_show(&page, NULL, host_columns, &owners.in_total[ROW_HOST]);
		if (owners.in_total[ROW_HOST].count)
			page_json(&page, "host",
				  table_json_record(host_columns, owners.in_total[ROW_HOST].row));
		result = page_end(&page);
	}
	owners_free(&owners);
	return result;
}

int command_status(const struct cli *cli)
{
	struct embedded embedded;
	const struct list *host;
	struct collector_view collector;
	struct owners owners;
	struct page page;
	int result = cli_operands(cli, 0, 0);

	if (!result && embedded_is_used(cli, embedded.path))
		return status_embedded(cli, &embedded);
	if (!result)
		result = collector_path(cli, collector.socket);
	if (!result)
		result = collector_ask(cli, MESSAGE_STATUS, NULL, &collector.status);
	if (result)
		return result;
	status_read(&collector.status);
	result = owners_ask(cli, MESSAGE_GET_STATS, NULL, &owners);
	if (!result) {
		host = &owners.in_total[ROW_HOST];
		cli_page_begin(&page, cli);
		page_record(&page, "collector", collector_columns, &collector);
		owners_show(&page, "tenants", tenant_columns, &owners.in_total[ROW_TENANT]);
		owners_show(&page, NULL, host_columns, host);
		if (host->count)
			page_json(&page, "host", table_json_record(host_columns, host->row));
		owners_show(&page, "devices", device_columns, &owners.on_devices[ROW_HOST]);
		ports_show(&page);
		owners_show_shares(&page, &owners);
		result = rules_show(cli, &page);
		if (!result)
			result = rates_show(cli, &page, &(struct proto_choose){ .pid = 0 });
		if (!result)
			result = paces_show(cli, &page, "");
		if (!result)
			result = page_end(&page);
	}
	owners_free(&owners);
	return result;
}
