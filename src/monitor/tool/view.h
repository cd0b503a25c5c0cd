/* SPDX-License-Identifier: MIT */
/*
 * What people see of the rows: gathered by process, cgroup or device, as a table or as
 * JSON. Knows nothing of how the rows came about.
 */
#ifndef MONITOR_TOOL_VIEW_H
#define MONITOR_TOOL_VIEW_H

#include <stdbool.h>
#include <stdio.h>

#include "monitor/reader/reader.h"

enum view_by { VIEW_PROCESS, VIEW_CGROUP, VIEW_DEVICE, VIEW_BYS };
extern const char *const view_by_names[VIEW_BYS];

struct view;

struct view *view_new(enum view_by by);
void view_free(struct view *view);

/* Reads the rows. What was made and went since the last time becomes a rate. */
int view_refresh(struct view *view, const struct monitor_reader *reader);

void view_print(const struct view *view, const struct monitor_reader *reader, FILE *out);
void view_print_json(const struct view *view, const struct monitor_reader *reader, FILE *out);

/* One event, or one object. */
void view_print_event(const struct monitor_event *event, bool json, FILE *out);
void view_print_object(const struct monitor_object *object, const struct monitor_row *row,
		       bool json, FILE *out);

#endif
