/* SPDX-License-Identifier: MIT */
/* events: what happened, once or as it happens. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/collector.h"
#include "cli/past_events.h"
#include "view/event.h"
#include "output/page.h"

static int event_append(const void *row, void *list)
{
	event_read(list_add(list), row);
	return 0;
}

/* Who goes on with new events. */
struct follower {
	const struct cli *cli;
	uint64_t since_ns;
};

static int event_print_line(const void *row, void *closure)
{
	const struct follower *follower = closure;
	const struct cli *cli = follower->cli;
	struct event event;

	event_read(&event, row);
	if (event.given.time_ns < follower->since_ns)
		return CLI_OK;
	if (cli->options.json.count)
		page_json_line(table_json_record(event_columns, &event));
	else
		table_print_line(&cli->screen, event_columns, &event);
	/* Nobody reads any more; main says so. */
	return fflush(stdout) ? CLI_WRONG : CLI_OK;
}

/* The past from the history, then what the collector remembers, from the moment on. */
static int events_collect(const struct cli *cli, uint64_t since_ns, struct list *ret_events)
{
	const struct proto_choose choose = { .flags = 0 };
	struct list known = { .size = sizeof(struct event) };
	int result = collector_rows(cli, MESSAGE_EVENTS, &choose, event_append, &known);
	const struct event *first = known.count ? list_at(&known, 0) : NULL;

	if (!result && since_ns && (!first || first->given.time_ns > since_ns))
		result = past_events_read(cli, since_ns, &known, ret_events);
	for (size_t i = 0; i < known.count; i++) {
		const struct event *event = list_at(&known, i);

		if (event->given.time_ns >= since_ns)
			*(struct event *)list_add(ret_events) = *event;
	}
	free(known.row);
	return result;
}

static int events_follow(const struct cli *cli, uint64_t since_ns)
{
	const struct proto_choose choose = { .flags = CHOOSE_FOLLOW };
	struct follower follower = { cli, since_ns };

	return collector_rows(cli, MESSAGE_EVENTS, &choose, event_print_line, &follower);
}

int command_events(const struct cli *cli)
{
	struct list events = { .size = sizeof(struct event) };
	uint64_t since_ns;
	struct page page;
	int result = cli_operands(cli, 0, 0);

	if (!result)
		result = past_events_since(cli, &since_ns);
	if (result)
		return result;
	if (cli->options.follow.count)
		return events_follow(cli, since_ns);
	result = events_collect(cli, since_ns, &events);
	if (!result) {
		cli_page_begin(&page, cli);
		page_table(&page, "events", event_columns, &events);
		result = page_end(&page);
	}
	free(events.row);
	return result;
}
