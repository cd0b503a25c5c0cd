/* SPDX-License-Identifier: MIT */
/* Events from before those that the collector remembers, from the files of rdma_dashboard. */
#ifndef CLI_PAST_EVENTS_H
#define CLI_PAST_EVENTS_H

#include <limits.h>
#include <stdbool.h>

#include "cli/cli.h"
#include "output/table.h"

struct history;

/* Opens the history that rdma_dashboard writes. If it does not exist, *ret_history is NULL; if it is
 * needed, that is an error. Returns an exit status. */
int past_open(const struct cli *cli, bool is_needed, char ret_path[PATH_MAX],
	      struct history **ret_history);

/* What --since says, in ns since 1970; 0 without it. An exit status. */
int past_events_since(const struct cli *cli, uint64_t *ret_ns);

/* The events since then, without those in `known`, which the collector has sent; a list of struct
 * event, the oldest first; an empty list if no history exists. Returns an exit status. */
int past_events_read(const struct cli *cli, uint64_t since_ns, const struct list *known,
		     struct list *events);

#endif
