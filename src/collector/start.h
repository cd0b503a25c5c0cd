/* SPDX-License-Identifier: MIT */
/* How a collector is started from its parts, and ended. */
#ifndef COLLECTOR_START_H
#define COLLECTOR_START_H

#include "base/problem.h"
#include "collector/collector.h"

/* What the command line or the environment names; NULL: nothing. */
struct start_options {
	const char *policy, *socket, *state;
};

/* The collector has a log and an event loop; after this it serves its socket. -errno, with a
 * sentence unless the text of the error says it all. */
int collector_start(struct collector *collector, const struct start_options *options,
		    char problem[PROBLEM_SIZE]);
/* Also after a start that failed. */
void collector_stop(struct collector *collector);

#endif
