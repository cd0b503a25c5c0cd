/* SPDX-License-Identifier: MIT */
/*
 * The last ten minutes in memory, second by second, and the sums from which the archive writes
 * steps of 10 s and of a minute. A series is a resource of a tenant; a series without usage for
 * ten minutes is dropped. Only changes are kept: a tenant that stands still costs a few bytes.
 */
#ifndef DASHBOARD_RECENT_H
#define DASHBOARD_RECENT_H

#include "dashboard/text.h"
#include "history/history.h"

struct recent;
struct sample;

enum { RECENT_SECONDS = 600 };

struct recent *recent_make(void);

/* To be called with each sample. Where the collector did not answer there are no points. */
void recent_add(struct recent *recent, const struct sample *sample);

/* Writes the step of all series that ended before the sample's time, and begins the next one.
 * 0 or -errno: the first failure. */
int recent_write_step(struct recent *recent, struct history *history, int step, int64_t time);

/* Points second by second. A result of the function other than 0 ends the reading. */
int recent_read(struct recent *recent, const struct history_query *query, int64_t now,
		history_point_function *each, void *closure);

#endif
