/* SPDX-License-Identifier: MIT */
/*
 * Counters of a process or a tenant and gauges of its queue pairs, as JSON and as numbers for
 * people. Their names come from the rows of terms/tallies.h.
 */
#ifndef VIEW_DETAILS_H
#define VIEW_DETAILS_H

#include "output/json.h"
#include "output/table.h"
#include "proto/messages.h"

/* One number that is not 0. */
struct detail {
	char device[NAME_SIZE];
	const char *group, *name;
	uint64_t value;
};
extern const struct column detail_columns[];

/* What one question (GET_DETAILS) brought. */
struct details {
	struct list shown; /* struct detail; latencies are for documents only */
	json_t *counters;  /* {"GROUP": {"NAME": value, ...}, ...} */
	json_t *devices;   /* gauges, a member for each device */
};

struct details details_make(void);
void details_free(struct details *details);

/* A proto_row_function: one row into struct details. */
int details_take(const void *row, void *details);

/* The gauges in `groups`, named as the rows say; those that are not 0 also in `shown`. */
void details_add_gauges(struct details *details, json_t *groups, const char *device,
			const struct gauges *gauges);

#endif
