/* SPDX-License-Identifier: MIT */
/*
 * The rows, added up by process, cgroup or device, and how fast they change. Knows nothing of how
 * the rows came about, or of how they are printed (print.h).
 */
#ifndef MONITOR_TOOL_VIEW_H
#define MONITOR_TOOL_VIEW_H

#include <stddef.h>

#include "monitor/tool/filter.h"

enum view_by { VIEW_PROCESS, VIEW_CGROUP, VIEW_DEVICE, VIEW_BYS };
extern const char *const view_by_names[VIEW_BYS];

/* One line: rows that are the same by what is asked for. */
struct view_line {
	struct monitor_row sum;	     /* of the fields that they have in common, the first's */
	__u64 made, gone;	     /* objects ever */
	double made_rate, gone_rate; /* a second */
};

struct view {
	enum view_by by;
	struct monitor_filter filter;
	struct view_line *line, *before;
	size_t count, before_count, room, before_room;
	double time, before_time;
};

struct view *view_new(enum view_by by, const struct monitor_filter *filter);
void view_free(struct view *view);

/* Reads the rows. What was made and went since the last time becomes a rate. */
int view_refresh(struct view *view, const struct monitor_reader *reader);

#endif
