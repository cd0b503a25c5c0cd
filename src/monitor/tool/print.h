/* SPDX-License-Identifier: MIT */
/* What people and programs see of the monitor: tables, events and objects, by the columns of
 * output/. docs/json.md is the reference of the JSON. */
#ifndef MONITOR_TOOL_PRINT_H
#define MONITOR_TOOL_PRINT_H

#include <stdbool.h>

#include "monitor/tool/view.h"

void print_view(const struct view *view, const struct monitor_reader *reader, bool json);

/* One event, or one object. */
void print_event(const struct monitor_event *event, bool json);
void print_object(const struct monitor_object *object, const struct monitor_row *row, bool json);

#endif
