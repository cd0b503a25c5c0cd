/* SPDX-License-Identifier: MIT */
/* Counters and gauges of a process; see details.h. Their names come from terms/tallies.h. */
#include "cli/details.h"

#include <stdlib.h>
#include <string.h>

#include "cli/collector.h"
#include "cli/embedded.h"
#include "output/form.h"
#include "output/memory.h"

/* One number that is not 0. */
struct detail {
	char device[NAME_SIZE];
	const char *group, *name;
	uint64_t value;
};

static const struct form form_device = { .show = form_text_show, .nothing = "" };

static const struct column detail_columns[] = {
	COLUMN(struct detail, device, NULL, "device", form_device),
	COLUMN(struct detail, group, NULL, "counter", form_string),
	COLUMN(struct detail, name, NULL, "of", form_string),
	COLUMN(struct detail, value, NULL, "count", form_count),
	COLUMNS_END,
};

struct details {
	struct list shown; /* struct detail */
	json_t *counters;  /* of the process */
	json_t *devices;   /* gauges, a member for each device */
};

/* {"GROUP": {"NAME": value, ...}, ...} of the rows, and those that are not 0 for people. */
static void details_add(struct details *details, json_t *groups, const char *device,
		     const struct tally_row *rows, unsigned count, const void *structure)
{
	for (unsigned i = 0; i < count; i++) {
		uint64_t value = tally_value(structure, &rows[i]);
		json_t *group = json_object_get(groups, rows[i].group);
		struct detail *detail;

		if (!group) {
			group = memory_need(json_object());
			json_object_set_new(groups, rows[i].group, group);
		}
		json_object_set_new(group, rows[i].name, form_json_number(value));
		if (!value)
			continue;
		detail = list_add(&details->shown);
		strcpy(detail->device, device);
		detail->group = rows[i].group;
		detail->name = rows[i].name;
		detail->value = value;
	}
}

static int details_row_take(const void *received, void *closure)
{
	struct proto_details row = *(const struct proto_details *)received;
	struct details *details = closure;
	json_t *gauges;

	if (!proto_text(row.device)[0]) {
		details_add(details, details->counters, "", tally_rows, tally_count, &row.tallies);
		return 0;
	}
	gauges = memory_need(json_object());
	json_object_set_new(gauges, "device", form_json_text(row.device));
	details_add(details, gauges, row.device, gauge_rows, gauge_count, &row.gauges);
	json_array_append_new(details->devices, gauges);
	return 0;
}

int details_show(const struct cli *cli, struct page *page, int32_t pid)
{
	struct proto_choose choose = { .pid = pid };
	struct details details = {
		.shown = { .size = sizeof(struct detail) },
		.counters = memory_need(json_object()),
		.devices = memory_need(json_array()),
	};
	char path[EMBEDDED_PATH];
	int result = embedded_is_used(cli, path) ?
			     embedded_details(cli, &choose, details_row_take, &details) :
			     collector_rows(cli, MESSAGE_GET_DETAILS, &choose, details_row_take,
					    &details);

	if (!result && details.shown.count)
		page_table(page, NULL, detail_columns, &details.shown);
	page_json(page, "counters", details.counters);
	page_json(page, "queue_pairs", details.devices);
	free(details.shown.row);
	return result;
}
