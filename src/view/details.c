/* SPDX-License-Identifier: MIT */
/* Counters and gauges; see details.h. */
#include "view/details.h"

#include <stdlib.h>
#include <string.h>

#include "output/form.h"
#include "output/memory.h"

static const struct form form_device = { .show = form_text_show, .nothing = "" };

const struct column detail_columns[] = {
	COLUMN(struct detail, device, NULL, "device", form_device),
	COLUMN(struct detail, group, NULL, "counter", form_string),
	COLUMN(struct detail, name, NULL, "of", form_string),
	COLUMN(struct detail, value, NULL, "count", form_count),
	COLUMNS_END,
};

struct details details_make(void)
{
	return (struct details){
		.shown = { .size = sizeof(struct detail) },
		.counters = memory_need(json_object()),
		.devices = memory_need(json_array()),
	};
}

void details_free(struct details *details)
{
	free(details->shown.row);
	json_decref(details->counters);
	json_decref(details->devices);
}

static void detail_show(struct details *details, const char *device, const struct tally_row *row,
			uint64_t value)
{
	struct detail *detail = list_add(&details->shown);

	strcpy(detail->device, device);
	detail->group = row->group;
	detail->name = row->name;
	detail->value = value;
}

/* What is done with numbers: of many rows with few numbers (sparse) only those are told that are
 * not 0. */
enum { DETAILS_SPARSE = 1, DETAILS_UNSHOWN = 2 };

static void details_add(struct details *details, json_t *groups, const char *device, unsigned how,
			const struct tally_row *rows, unsigned count, const void *structure)
{
	for (unsigned i = 0; i < count; i++) {
		uint64_t value = tally_value(structure, &rows[i]);
		json_t *group = json_object_get(groups, rows[i].group);

		if (!group) {
			group = memory_need(json_object());
			json_object_set_new(groups, rows[i].group, group);
		}
		if (value || !(how & DETAILS_SPARSE))
			json_object_set_new(group, rows[i].name, form_json_number(value));
		if (value && !(how & DETAILS_UNSHOWN))
			detail_show(details, device, &rows[i], value);
	}
}

void details_add_gauges(struct details *details, json_t *groups, const char *device,
			const struct gauges *gauges)
{
	details_add(details, groups, device, 0, gauge_rows, gauge_count, gauges);
}

int details_take(const void *received, void *closure)
{
	struct proto_details row = *(const struct proto_details *)received;
	struct details *details = closure;
	json_t *gauges;

	if (!proto_text(row.device)[0]) {
		details_add(details, details->counters, "", 0, tally_rows, tally_count,
			    &row.tallies);
		details_add(details, details->counters, "", DETAILS_SPARSE | DETAILS_UNSHOWN,
			    latency_rows, latency_count, &row.tallies);
		return 0;
	}
	gauges = memory_need(json_object());
	json_object_set_new(gauges, "device", form_json_text(row.device));
	details_add_gauges(details, gauges, row.device, &row.gauges);
	details_add(details, gauges, row.device, DETAILS_SPARSE, class_rows, class_count,
		    &row.classes);
	json_array_append_new(details->devices, gauges);
	return 0;
}
