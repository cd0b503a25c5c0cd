/* SPDX-License-Identifier: MIT */
/* The options that choose events; see event_filter.h. */
#include "cli/event_filter.h"

#include <stdio.h>
#include <string.h>

#include "cli/past_events.h"
#include "terms/kinds.h"
#include "terms/size.h"

_Static_assert(EVENT_TYPES <= 64 && KIND_COUNT <= 64, "each has a bit");

static int filter_types_read(const struct cli *cli, uint64_t *ret_types)
{
	const struct given *given = &cli->options.type;

	*ret_types = 0;
	for (unsigned i = 0; i < given->count; i++) {
		uint32_t type = event_type_find(given->value[i]);
		char names[256];

		if (type == EVENT_TYPES)
			return cli_fail(cli, CLI_USAGE,
					"--type: unknown type of event '%s': expected one of: %s",
					given->value[i], event_type_names(names, sizeof(names)));
		*ret_types |= 1ull << type;
	}
	return CLI_OK;
}

static int filter_kinds_read(const struct cli *cli, uint64_t *ret_kinds)
{
	const struct given *given = &cli->options.kind;

	*ret_kinds = 0;
	for (unsigned i = 0; i < given->count; i++) {
		const char *name = given->value[i];
		int kind = kind_find(name, strlen(name));

		/* "Kind" has one meaning in this program; others are likely to try this. */
		if (kind < 0 && event_type_find(name) < EVENT_TYPES)
			return cli_fail(cli, CLI_USAGE,
					"--kind: '%s' is a type of event, not a kind of resource: "
					"use --type %s",
					name, name);
		if (kind < 0)
			return cli_fail(cli, CLI_USAGE,
					"--kind: unknown kind '%s': %s show kind lists them", name,
					CLI_NAME);
		*ret_kinds |= 1ull << kind;
	}
	return CLI_OK;
}

static int filter_most_read(const struct cli *cli, size_t *ret_most)
{
	const char *text = cli_value(&cli->options.number);
	uint64_t number = SIZE_MAX;

	if (text && size_parse(text, strlen(text), 1, false, &number) < 0)
		return cli_fail(cli, CLI_USAGE,
				"--number: invalid value '%s': expected a number of events", text);
	*ret_most = number;
	return CLI_OK;
}

int event_filter_read(const struct cli *cli, struct event_filter *ret_filter)
{
	struct event_filter filter = { .tenant = cli_value(&cli->options.tenant) };
	int result = past_events_since(cli, &filter.since_ns);

	if (!result)
		result = filter_types_read(cli, &filter.types);
	if (!result)
		result = filter_kinds_read(cli, &filter.kinds);
	if (!result)
		result = filter_most_read(cli, &filter.most);
	if (!result && filter.tenant && (!*filter.tenant || strlen(filter.tenant) >= NAME_SIZE))
		result = cli_fail(cli, CLI_USAGE,
				  "--tenant: invalid value '%s': expected a name of 1 to %d bytes",
				  filter.tenant, NAME_SIZE - 1);
	if (!result)
		*ret_filter = filter;
	return result;
}

bool event_filter_takes(const struct event_filter *filter, const struct event *event)
{
	const struct proto_event *given = &event->given;

	return given->time_ns >= filter->since_ns &&
	       (!filter->tenant || !strcmp(filter->tenant, given->tenant)) &&
	       (!filter->types ||
		(given->type < EVENT_TYPES && filter->types & 1ull << given->type)) &&
	       (!filter->kinds || (event->kind && filter->kinds & 1ull << given->kind));
}
