/* SPDX-License-Identifier: MIT */
/*
 * events: what happened, once or as it happens. A follower asks for all events first, and then
 * for new ones: so it knows which of them it has, also after the collector was started again.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/translation.h"
#include "cli/collector.h"
#include "cli/event_filter.h"
#include "cli/owners.h"
#include "cli/past_events.h"
#include "view/event.h"
#include "output/page.h"

enum { FOLLOW_RETRY_MS = 300 }; /* until the next look for a collector that has gone */

static int event_append(const void *row, void *list)
{
	event_read(list_add(list), row);
	return 0;
}

static struct proto_choose events_choice(const struct event_filter *filter, uint32_t flags)
{
	struct proto_choose choose = { .flags = flags };

	if (filter->tenant)
		snprintf(choose.tenant, sizeof(choose.tenant), "%s", filter->tenant);
	return choose;
}

/* The past from the history, then what the collector remembers, as far as they are chosen. */
static int events_collect(const struct cli *cli, const struct event_filter *filter,
			  const struct list *known, struct list *ret_events)
{
	struct list all = { .size = sizeof(struct event) };
	const struct event *first = known->count ? list_at(known, 0) : NULL;
	int result = CLI_OK;
	size_t skipped;

	if (filter->since_ns && (!first || first->given.time_ns > filter->since_ns))
		result = past_events_read(cli, filter->since_ns, known, &all);
	for (size_t i = 0; i < known->count; i++)
		*(struct event *)list_add(&all) = *(const struct event *)list_at(known, i);
	for (size_t i = 0; i < all.count; i++) {
		const struct event *event = list_at(&all, i);

		if (event_filter_takes(filter, event))
			*(struct event *)list_add(ret_events) = *event;
	}
	free(all.row);
	if (result || ret_events->count <= filter->most)
		return result;
	skipped = ret_events->count - filter->most;
	memmove(ret_events->row, list_at(ret_events, skipped), filter->most * ret_events->size);
	ret_events->count = filter->most;
	return result;
}

/* ---- as they happen */

struct follower {
	const struct cli *cli;
	const struct event_filter *filter;
	char path[PROTO_PATH];
	struct list known;  /* what the collector had when it was asked first: struct event */
	uint64_t newest_ns; /* of all that it has sent */
};

static int follower_print(const struct follower *follower, const struct event *event)
{
	const struct cli *cli = follower->cli;

	if (!event_filter_takes(follower->filter, event))
		return CLI_OK;
	if (cli->options.json.count)
		page_json_line(table_json_record(event_columns, event));
	else
		table_print_line(&cli->screen, event_columns, event);
	/* Nobody reads any more; main says so. */
	return fflush(stdout) ? CLI_WRONG : CLI_OK;
}

static bool follower_knows(const struct follower *follower, const struct event *event)
{
	for (size_t i = 0; i < follower->known.count; i++) {
		const struct event *known = list_at(&follower->known, i);

		if (known->given.sequence == event->given.sequence &&
		    known->given.time_ns == event->given.time_ns &&
		    known->given.count == event->given.count)
			return true;
	}
	return false;
}

static void follower_note(struct follower *follower, const struct event *event)
{
	if (event->given.time_ns > follower->newest_ns)
		follower->newest_ns = event->given.time_ns;
}

static int follower_take(const void *row, void *closure)
{
	struct follower *follower = closure;
	struct event event;

	event_read(&event, row);
	if (follower_knows(follower, &event))
		return CLI_OK;
	follower_note(follower, &event);
	return follower_print(follower, &event);
}

/* All that the collector remembers, into follower->known: 0, or -errno with a sentence. */
static int follower_ask(struct follower *follower, char problem[PROBLEM_SIZE])
{
	const struct proto_choose choose = events_choice(follower->filter, 0);

	follower->known.count = 0;
	return proto_rows(follower->path, MESSAGE_EVENTS, &choose, event_append, &follower->known,
			  0, problem);
}

/* Prints the past when it begins; later only what happened since the last event that was sent. Times
 * and not sequences tell that: another collector counts anew. */
static int follower_begin(struct follower *follower)
{
	struct list events = { .size = sizeof(struct event) };
	int result = events_collect(follower->cli, follower->filter, &follower->known, &events);

	for (size_t i = 0; !result && i < events.count; i++)
		result = follower_print(follower, list_at(&events, i));
	for (size_t i = 0; i < follower->known.count; i++)
		follower_note(follower, list_at(&follower->known, i));
	free(events.row);
	return result;
}

static int follower_resume(struct follower *follower)
{
	uint64_t newest_ns = follower->newest_ns;
	int result = CLI_OK;

	for (size_t i = 0; !result && i < follower->known.count; i++) {
		const struct event *event = list_at(&follower->known, i);

		if (event->given.time_ns <= newest_ns)
			continue;
		follower_note(follower, event);
		result = follower_print(follower, event);
	}
	return result;
}

/* Until a collector answers, or the reader of our output has gone: a positive exit status. Other
 * failures are -errno. */
static int follower_wait_collector(struct follower *follower, char problem[PROBLEM_SIZE])
{
	int result;

	fflush(stdout);
	fprintf(stderr, _("%s: %s; waiting for a collector\n"), CLI_NAME, problem);
	do {
		struct pollfd output = { .fd = STDOUT_FILENO };

		if (poll(&output, 1, FOLLOW_RETRY_MS) > 0 && output.revents & POLLERR)
			return CLI_WRONG;
		result = follower_ask(follower, problem);
	} while (result && collector_may_come(result));
	return result;
}

static int events_follow(const struct cli *cli, const struct event_filter *filter)
{
	const struct proto_choose choose = events_choice(filter, CHOOSE_FOLLOW);
	struct follower follower = { .cli = cli,
				     .filter = filter,
				     .known = { .size = sizeof(struct event) } };
	char problem[PROBLEM_SIZE];
	int result = collector_path(cli, follower.path);

	if (result)
		return result;
	/* A collector that never answered is not waited for. */
	result = follower_ask(&follower, problem);
	if (!result)
		result = follower_begin(&follower);
	while (!result) {
		result = proto_rows(follower.path, MESSAGE_EVENTS, &choose, follower_take,
				    &follower, 0, problem);
		if (collector_may_come(result))
			result = follower_wait_collector(&follower, problem);
		if (!result)
			result = follower_resume(&follower);
	}
	free(follower.known.row);
	return result < 0 ? collector_fail(cli, follower.path, result, problem) : result;
}

/* A name that no event and no tenant has is probably misspelt. */
static int tenant_check(const struct cli *cli, const struct event_filter *filter,
			const struct list *events, bool *ret_unknown)
{
	struct owners owners;
	int result;

	*ret_unknown = filter->tenant && !events->count;
	if (!*ret_unknown)
		return CLI_OK;
	result = owners_ask(cli, MESSAGE_GET_STATS, NULL, &owners);
	for (size_t i = 0; !result && i < owners.in_total[ROW_TENANT].count; i++) {
		const struct owner *owner = list_at(&owners.in_total[ROW_TENANT], i);

		if (!strcmp(owner->row.tenant, filter->tenant))
			*ret_unknown = false;
	}
	owners_free(&owners);
	return result;
}

static int events_list(const struct cli *cli, const struct event_filter *filter)
{
	const struct proto_choose choose = events_choice(filter, 0);
	struct list known = { .size = sizeof(struct event) };
	struct list events = { .size = sizeof(struct event) };
	bool unknown = false;
	struct page page;
	int result = collector_rows(cli, MESSAGE_EVENTS, &choose, event_append, &known);

	if (!result)
		result = events_collect(cli, filter, &known, &events);
	if (!result)
		result = tenant_check(cli, filter, events.count ? &events : &known, &unknown);
	if (!result && unknown)
		result = cli_fail(cli, CLI_WRONG,
				  "--tenant: there is no tenant '%s', and no event of one: '%s show "
				  "tenant' lists the tenants",
				  filter->tenant, CLI_NAME);
	if (!result) {
		cli_page_begin(&page, cli);
		page_table(&page, "events", event_columns, &events);
		result = page_end(&page);
	}
	free(known.row);
	free(events.row);
	return result;
}

int command_events(const struct cli *cli)
{
	struct event_filter filter;
	int result = cli_operands(cli, 0, 0);

	if (!result)
		result = event_filter_read(cli, &filter);
	if (result)
		return result;
	return cli->options.follow.count ? events_follow(cli, &filter) : events_list(cli, &filter);
}
