/* SPDX-License-Identifier: MIT */
/* Which events the options of `events` choose: by moment, tenant, type and kind. */
#ifndef CLI_EVENT_FILTER_H
#define CLI_EVENT_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/cli.h"
#include "view/event.h"

struct event_filter {
	uint64_t since_ns; /* 0: from the first on */
	const char *tenant; /* NULL: of all tenants, and of none */
	uint64_t types;	    /* bits of enum proto_event_type; 0: all */
	uint64_t kinds;	    /* bits of enum kind; 0: all, also events without a kind */
	size_t most;	    /* of past events, the latest ones */
};

/* Reads the options. An exit status. */
int event_filter_read(const struct cli *cli, struct event_filter *ret_filter);

bool event_filter_takes(const struct event_filter *filter, const struct event *event);

#endif
