/* SPDX-License-Identifier: MIT */
/* events: what happened, once or as it happens. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/collector.h"
#include "cli/event.h"
#include "output/page.h"

static int event_append(const void *row, void *list)
{
	event_read(list_add(list), row);
	return 0;
}

static int event_print_line(const void *row, void *closure)
{
	const struct cli *cli = closure;
	struct event event;

	event_read(&event, row);
	if (cli->options.json.count)
		page_json_line(table_json_record(event_columns, &event));
	else
		table_print_line(&cli->screen, event_columns, &event);
	/* Nobody reads any more; main says so. */
	return fflush(stdout) ? CLI_WRONG : CLI_OK;
}

int command_events(const struct cli *cli)
{
	bool follow = cli->options.follow.count;
	const struct proto_choose choose = { .flags = follow ? CHOOSE_FOLLOW : 0 };
	struct list events = { .size = sizeof(struct event) };
	struct page page;
	int result = cli_operands(cli, 0, 0);

	if (result)
		return result;
	if (follow)
		return collector_rows(cli, MESSAGE_EVENTS, &choose, event_print_line, (void *)cli);
	result = collector_rows(cli, MESSAGE_EVENTS, &choose, event_append, &events);
	if (!result) {
		cli_page_begin(&page, cli);
		page_table(&page, "events", event_columns, &events);
		result = page_end(&page);
	}
	free(events.row);
	return result;
}
