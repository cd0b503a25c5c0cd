/* SPDX-License-Identifier: MIT */
/*
 * JSON of the collector's rows, as the command prints it: by the columns of view/. Documents are
 * written row by row, since thousands of processes as one tree of values need much memory.
 */
#ifndef DASHBOARD_STATE_H
#define DASHBOARD_STATE_H

#include "dashboard/sample.h"
#include "dashboard/text.h"

struct answer;
struct dashboard;

/* The sample, if the collector answered; otherwise NULL, and the answer says why. */
struct sample *state_sample(struct dashboard *dashboard, struct answer *answer);

/* The row of a tenant in total; NULL: the collector knows none of this name. */
const struct proto_row *state_tenant(const struct sample *sample, const char *name);

/* False if the collector answers and knows no tenant of this name. */
bool state_may_have_tenant(struct dashboard *dashboard, const char *name);

/* Which rows: of a scope, in total or on devices. */
struct state_choice {
	enum proto_scope scope;
	bool on_devices;
	const char *tenant, *device; /* NULL: of all */
	const struct column *columns;
};

/* The chosen rows as an array. */
void state_write_owners(struct text *text, const struct list *rows,
			const struct state_choice *choice);

/* One row as JSON. */
void state_write_record(struct text *text, const struct column *columns, const void *row);
void state_write_owner(struct text *text, const struct column *columns,
		       const struct proto_row *row);
void state_write_event(struct text *text, const struct proto_event *event);
void state_write_collector(struct text *text, const struct sample *sample); /* or null */
void state_write_host(struct text *text, const struct sample *sample);	    /* or null */

/* "[", the elements with commas between, "]": state_next writes the comma where one is due. */
void state_next(struct text *text);

#endif
