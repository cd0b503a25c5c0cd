/* SPDX-License-Identifier: MIT */
/* status: the collector, how the kernel is watched, and what each tenant uses of what it may. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/collector.h"
#include "cli/embedded.h"
#include "cli/owner.h"
#include "cli/rules.h"

struct collector {
	char socket[PROTO_PATH];
	struct proto_status status;
};

static void problem_show(const struct form *form, const void *field, struct cell *ret_cell)
{
	cell_print(ret_cell, COLOUR_BAD, "%s", (const char *)field);
}

static const struct form form_problem = { .show = problem_show, .json = form_text_json };

/* ---- the monitor: fields of the reply to STATUS */

static json_t *observed_json(const struct form *form, const void *field)
{
	uint64_t observed = *(const uint64_t *)field;
	json_t *kinds = memory_need(json_array());

	for (int kind = 0; kind < KIND_COUNT; kind++)
		if (observed >> kind & 1)
			json_array_append_new(kinds, form_json_text(kind_rows[kind].name));
	return kinds;
}

static const struct form form_observed = { .json = observed_json };

static const struct column monitor_columns[] = {
	COLUMN(struct proto_status, monitor, "mode", NULL, form_text),
	COLUMN(struct proto_status, monitor_problem, "problem", NULL, form_text),
	COLUMN(struct proto_status, uncovered, "uncovered", NULL, form_number),
	COLUMN(struct proto_status, drifting, "drifting", NULL, form_number),
	COLUMN(struct proto_status, lost_objects, "lost_objects", NULL, form_count),
	COLUMN(struct proto_status, lost_rows, "lost_rows", NULL, form_count),
	COLUMN(struct proto_status, observed, "observed", NULL, form_observed),
	COLUMNS_END,
};

/* All of it in a line. */
static void monitor_show(const struct form *form, const void *field, struct cell *ret_cell)
{
	const struct proto_status *status = field;
	const struct {
		uint64_t count;
		const char *what;
	} findings[] = {
		{ status->uncovered, "uncovered" },
		{ status->drifting, "drifting" },
		{ status->lost_objects, "objects lost" },
		{ status->lost_rows, "objects of unknown owners" },
	};
	char text[512];
	bool any = false;

	snprintf(text, sizeof(text), "%s%s%s", status->monitor, status->monitor_problem[0] ? "; " : "",
		 status->monitor_problem);
	for (unsigned i = 0; i < sizeof(findings) / sizeof(findings[0]); i++) {
		size_t length = strlen(text);

		if (findings[i].count)
			snprintf(text + length, sizeof(text) - length, ", %" PRIu64 " %s",
				 findings[i].count, findings[i].what);
		any = any || findings[i].count;
	}
	cell_print(ret_cell, any ? COLOUR_BAD : NULL, "%s", text);
}

static json_t *monitor_json(const struct form *form, const void *field)
{
	return table_json_record(monitor_columns, field);
}

static const struct form form_monitor = { .show = monitor_show, .json = monitor_json };

/* ---- */

static const struct column collector_columns[] = {
	COLUMN(struct collector, status.pid, "pid", "pid", form_pid),
	COLUMN(struct collector, status.uid, "uid", "uid", form_number),
	COLUMN(struct collector, status.version, "version", "version", form_text),
	COLUMN(struct collector, status.uptime_seconds, "uptime_seconds", "up", form_seconds),
	COLUMN(struct collector, socket, "socket", "socket", form_text),
	COLUMN(struct collector, status.policy, "policy", "policy", form_text),
	COLUMN(struct collector, status.reloads, "reloads", "reloads", form_number),
	COLUMN(struct collector, status.problem, "problem", "problem", form_problem),
	COLUMN(struct collector, status.processes, "processes", NULL, form_number),
	COLUMN(struct collector, status.tenants, "tenants", NULL, form_number),
	COLUMN(struct collector, status.leases, "leases", "leases", form_number),
	COLUMN(struct collector, status, "monitor", "monitor", form_monitor),
	COLUMNS_END,
};

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
	struct collector collector;
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
	proto_text(collector.status.version);
	proto_text(collector.status.policy);
	proto_text(collector.status.problem);
	proto_text(collector.status.monitor);
	proto_text(collector.status.monitor_problem);
	result = owners_ask(cli, MESSAGE_GET_STATS, NULL, &owners);
	if (!result) {
		host = &owners.in_total[ROW_HOST];
		cli_page_begin(&page, cli);
		page_record(&page, "collector", collector_columns, &collector);
		owners_show(&page, "tenants", tenant_columns, &owners.in_total[ROW_TENANT]);
		owners_show(&page, NULL, host_columns, host);
		if (host->count)
			page_json(&page, "host", table_json_record(host_columns, host->row));
		result = rules_show(cli, &page);
		if (!result)
			result = page_end(&page);
	}
	owners_free(&owners);
	return result;
}
