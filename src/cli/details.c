/* SPDX-License-Identifier: MIT */
/* Counters and gauges on a page; see details.h. */
#include "cli/details.h"

#include <stdio.h>

#include "cli/collector.h"
#include "cli/embedded.h"
#include "output/memory.h"
#include "view/details.h"

/* The gauges of one process more. */
static int gauges_row_take(const void *received, void *closure)
{
	const struct proto_details *row = received;

	if (row->device[0])
		gauges_add(closure, &row->gauges);
	return 0;
}

static int details_ask(const struct cli *cli, const struct proto_choose *choose,
		       proto_row_function *take, void *closure)
{
	char path[EMBEDDED_PATH];

	return embedded_is_used(cli, path) ?
		       embedded_details(cli, choose, take, closure) :
		       collector_rows(cli, MESSAGE_GET_DETAILS, choose, take, closure);
}

int details_show_device(const struct cli *cli, struct page *page, const char *device)
{
	struct proto_choose choose = { .pid = 0 };
	struct details details = details_make();
	json_t *groups = memory_need(json_object());
	struct gauges sum = { 0 };
	int result;

	snprintf(choose.device, sizeof(choose.device), "%s", device);
	result = details_ask(cli, &choose, gauges_row_take, &sum);
	details_add_gauges(&details, groups, device, &sum);
	if (!result && details.shown.count)
		page_table(page, NULL, detail_columns, &details.shown);
	page_json(page, "queue_pairs", groups);
	details_free(&details);
	return result;
}

int details_show(const struct cli *cli, struct page *page, const struct proto_choose *choose)
{
	struct details details = details_make();
	int result = details_ask(cli, choose, details_take, &details);

	if (!result && details.shown.count)
		page_table(page, NULL, detail_columns, &details.shown);
	page_json(page, "counters", json_incref(details.counters));
	page_json(page, "queue_pairs", json_incref(details.devices));
	details_free(&details);
	return result;
}
