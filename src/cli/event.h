/* SPDX-License-Identifier: MIT */
/* An event of the collector, in the form in which it is shown. */
#ifndef CLI_EVENT_H
#define CLI_EVENT_H

#include "cli/amount.h"
#include "output/form.h"
#include "output/table.h"
#include "proto/messages.h"

struct event {
	struct proto_event given;
	char id[32]; /* PID-NUMBER of a refusal or the like; "" for other events */
	/* Of what happened at a limit; NULL for others, and no amounts: */
	const char *kind;
	const char *scope;
	const char *ring;
	struct amount used, wanted, limit;
};

extern const struct column event_columns[];

void event_read(struct event *event, const struct proto_event *given);

#endif
