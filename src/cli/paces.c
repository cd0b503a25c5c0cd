/* SPDX-License-Identifier: MIT */
/* Paces and priorities; see paces.h. */
#include "cli/paces.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/collector.h"
#include "output/form.h"
#include "output/memory.h"
#include "policy/policy.h"

static void pace_rate_show(const struct form *form, const void *field, struct cell *ret_cell)
{
	const struct pace_rate *rate = field;
	char text[PACE_RATE_TEXT] = "-";

	if (pace_rate_is_limit(rate))
		pace_rate_print(rate, text);
	cell_print(ret_cell, NULL, "%s", text);
}

/* Of bytes, as people write sizes: "10M/s burst 64K". */
static void pace_bytes_show(const struct form *form, const void *field, struct cell *ret_cell)
{
	const struct pace_rate *rate = field;
	char second[BYTES_TEXT], burst[BYTES_TEXT];

	if (!pace_rate_is_limit(rate))
		cell_print(ret_cell, NULL, "-");
	else if (!rate->burst)
		cell_print(ret_cell, NULL, "%s/s", bytes_text(rate->per_second, second));
	else
		cell_print(ret_cell, NULL, "%s/s burst %s", bytes_text(rate->per_second, second),
			   bytes_text(rate->burst, burst));
}

static void posted_bytes_show(const struct form *form, const void *field, struct cell *ret_cell)
{
	char text[BYTES_TEXT];

	cell_print(ret_cell, NULL, "%s", bytes_text(*(const uint64_t *)field, text));
}

static json_t *posted_bytes_json(const struct form *form, const void *field)
{
	return form_json_number(*(const uint64_t *)field);
}

/* null, or {"per_second": ..., "burst": null or ...} */
static json_t *pace_rate_json(const struct form *form, const void *field)
{
	const struct pace_rate *rate = field;
	json_t *object;

	if (!pace_rate_is_limit(rate))
		return memory_need(json_null());
	object = memory_need(json_object());
	json_object_set_new(object, "per_second", form_json_number(rate->per_second));
	json_object_set_new(object, "burst",
			    rate->burst ? form_json_number(rate->burst) : memory_need(json_null()));
	return object;
}

static const struct form form_pace_rate = { .show = pace_rate_show, .json = pace_rate_json };
static const struct form form_pace_bytes = { .show = pace_bytes_show, .json = pace_rate_json };
static const struct form form_posted_bytes = {
	.show = posted_bytes_show, .json = posted_bytes_json, .right = true
};

static const struct form form_priority = {
	.show = form_name_show,
	.json = form_name_json,
	.names = policy_priority_names,
	.count = PRIORITY_UNSET,
};

static const struct column pace_columns[] = {
	COLUMN(struct proto_pace, tenant, "tenant", "tenant", form_text),
	COLUMN(struct proto_pace, priority, "priority", "priority", form_priority),
	COLUMN(struct proto_pace, bytes, "bytes", "bytes", form_pace_bytes),
	COLUMN(struct proto_pace, operations, "operations", "operations", form_pace_rate),
	COLUMN(struct proto_pace, process_bytes, "process_bytes", "bytes/process", form_pace_bytes),
	COLUMN(struct proto_pace, process_operations, "process_operations", "operations/process",
	       form_pace_rate),
	COLUMN(struct proto_pace, qp_bytes, "qp_bytes", "bytes/QP", form_pace_bytes),
	COLUMN(struct proto_pace, qp_operations, "qp_operations", "operations/QP", form_pace_rate),
	COLUMN(struct proto_pace, floor, "bulk_floor", NULL, form_count),
	COLUMN(struct proto_pace, max_delay_ns, "max_delay_ns", NULL, form_count),
	COLUMN(struct proto_pace, held, "held", "held on", form_text),
	COLUMN(struct proto_pace, posted.bytes, "posted_bytes", "posted", form_posted_bytes),
	COLUMN(struct proto_pace, posted.operations, "posted_operations", "posts", form_count),
	COLUMN(struct proto_pace, posted.errors, "errors", "errors", form_count),
	COLUMN(struct proto_pace, posted.delays, "delays", "delays", form_count),
	COLUMN(struct proto_pace, posted.delayed_ns, "delayed_ns", NULL, form_count),
	COLUMN(struct proto_pace, posted.waiting, "waiting", "waiting", form_count),
	COLUMNS_END,
};

static int pace_take(const void *row, void *paces)
{
	struct proto_pace *pace = list_add(paces);

	*pace = *(const struct proto_pace *)row;
	proto_text(pace->tenant);
	proto_text(pace->held);
	return 0;
}

int paces_show(const struct cli *cli, struct page *page, const char *tenant)
{
	struct list paces = { .size = sizeof(struct proto_pace) };
	struct proto_choose choose = { .pid = 0 };
	int result;

	snprintf(choose.tenant, sizeof(choose.tenant), "%s", tenant);
	result = collector_rows(cli, MESSAGE_GET_PACES, &choose, pace_take, &paces);
	if (!result && (paces.count || page->document))
		page_table(page, "paces", pace_columns, &paces);
	free(paces.row);
	return result;
}
