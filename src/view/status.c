/* SPDX-License-Identifier: MIT */
/* The collector, and how the kernel is watched, in the form in which they are shown; see status.h. */
#include "view/status.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/translation.h"
#include "output/form.h"
#include "output/memory.h"
#include "view/host.h"

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
		{ status->uncovered, N_("uncovered") },
		{ status->drifting, N_("drifting") },
		{ status->lost_objects, N_("objects lost") },
		{ status->lost_rows, N_("objects of unknown owners") },
	};
	char text[512];
	bool any = false;

	snprintf(text, sizeof(text), "%s%s%s", status->monitor, status->monitor_problem[0] ? "; " : "",
		 status->monitor_problem);
	for (unsigned i = 0; i < sizeof(findings) / sizeof(findings[0]); i++) {
		size_t length = strlen(text);

		if (findings[i].count)
			snprintf(text + length, sizeof(text) - length, ", %" PRIu64 " %s",
				 findings[i].count, _(findings[i].what));
		any = any || findings[i].count;
	}
	cell_print(ret_cell, any ? COLOUR_BAD : NULL, "%s", text);
}

/* What processes are in the books, of those that use RDMA. */
static void coverage_show(const struct form *form, const void *field, struct cell *ret_cell)
{
	const struct proto_status *status = field;

	if (!strcmp(status->monitor, "none") && status->processes == 1)
		cell_print(ret_cell, COLOUR_WARNING,
			   _("1 process registered; others are not seen without rdma_monitor: %s"),
			   host_start(HOST_MONITOR));
	else if (!strcmp(status->monitor, "none"))
		cell_print(ret_cell, COLOUR_WARNING,
			   _("%u processes registered; others are not seen without rdma_monitor: %s"),
			   status->processes, host_start(HOST_MONITOR));
	else if (status->processes == 1)
		cell_print(ret_cell, status->uncovered ? COLOUR_BAD : NULL,
			   _("1 process covered, %u uncovered"), status->uncovered);
	else
		cell_print(ret_cell, status->uncovered ? COLOUR_BAD : NULL,
			   _("%u processes covered, %u uncovered"), status->processes,
			   status->uncovered);
}

static const struct form form_coverage = { .show = coverage_show };

static json_t *monitor_json(const struct form *form, const void *field)
{
	return table_json_record(monitor_columns, field);
}

static const struct form form_monitor = { .show = monitor_show, .json = monitor_json };

static void overrides_show(const struct form *form, const void *field, struct cell *ret_cell)
{
	uint32_t count = *(const uint32_t *)field;

	if (count == 1)
		cell_print(ret_cell, NULL, _("1 key of the policy, by a command (see limit reset)"));
	else if (count)
		cell_print(ret_cell, NULL, _("%u keys of the policy, by commands (see limit reset)"),
			   count);
	else
		cell_print(ret_cell, NULL, "0");
}

static json_t *overrides_json(const struct form *form, const void *field)
{
	return form_json_number(*(const uint32_t *)field);
}

static const struct form form_overrides = { .show = overrides_show, .json = overrides_json };

const struct column collector_columns[] = {
	COLUMN(struct collector_view, status.pid, "pid", "pid", form_pid),
	COLUMN(struct collector_view, status.uid, "uid", "uid", form_number),
	COLUMN(struct collector_view, status.version, "version", "version", form_text),
	COLUMN(struct collector_view, status.uptime_seconds, "uptime_seconds", "up", form_seconds),
	COLUMN(struct collector_view, socket, "socket", "socket", form_text),
	COLUMN(struct collector_view, status.policy, "policy", "policy", form_text),
	COLUMN(struct collector_view, status.overrides, "overrides", "overrides", form_overrides),
	COLUMN(struct collector_view, status.reloads, "reloads", "reloads", form_number),
	COLUMN(struct collector_view, status.problem, "problem", "problem", form_problem),
	COLUMN(struct collector_view, status.processes, "processes", NULL, form_number),
	COLUMN(struct collector_view, status.tenants, "tenants", NULL, form_number),
	COLUMN(struct collector_view, status.leases, "leases", "leases", form_number),
	COLUMN(struct collector_view, status, "monitor", "monitor", form_monitor),
	COLUMN(struct collector_view, status, NULL, "coverage", form_coverage),
	COLUMNS_END,
};

void status_read(struct proto_status *status)
{
	proto_text(status->version);
	proto_text(status->policy);
	proto_text(status->problem);
	proto_text(status->monitor);
	proto_text(status->monitor_problem);
}
