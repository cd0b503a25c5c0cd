/* SPDX-License-Identifier: MIT */
/* Rows become lines, and lines become rates; see view.h. */
#include "monitor/tool/view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

const char *const view_by_names[VIEW_BYS] = { "process", "cgroup", "device" };

struct view *view_new(enum view_by by, const struct monitor_filter *filter)
{
	struct view *view = calloc(1, sizeof(*view));

	if (view) {
		view->by = by;
		view->filter = *filter;
	}
	return view;
}

void view_free(struct view *view)
{
	if (!view)
		return;
	free(view->line);
	free(view->before);
	free(view);
}

static bool line_is_of(enum view_by by, const struct monitor_row *a, const struct monitor_row *b)
{
	switch (by) {
	case VIEW_CGROUP:
		return a->cgroup == b->cgroup;
	case VIEW_DEVICE:
		return a->device == b->device;
	default:
		return a->pid == b->pid && a->start_ns == b->start_ns && a->device == b->device &&
		       a->cgroup == b->cgroup;
	}
}

static struct view_line *line_for(struct view *view, const struct monitor_row *row)
{
	struct view_line *line;

	for (size_t i = view->count; i-- > 0;)
		if (line_is_of(view->by, &view->line[i].sum, row))
			return &view->line[i];
	if (view->count == view->room) {
		size_t room = view->room ? 2 * view->room : 64;
		struct view_line *grown = realloc(view->line, room * sizeof(*grown));

		if (!grown)
			return NULL;
		view->line = grown;
		view->room = room;
	}
	line = &view->line[view->count++];
	*line = (struct view_line){ .sum = *row };
	memset(line->sum.made, 0, sizeof(line->sum.made));
	memset(line->sum.gone, 0, sizeof(line->sum.gone));
	line->sum.live = 0;
	return line;
}

static bool counter_is_of_objects(unsigned counter)
{
	switch (counter) {
	case KIND_mr_bytes:
	case KIND_dm_bytes:
	case KIND_cqe:
	case KIND_send_wr:
	case KIND_recv_wr:
		return false;
	}
	return true;
}

static void line_add(struct view_line *line, const struct monitor_row *row)
{
	line->sum.live += row->live;
	for (unsigned i = 0; i < MONITOR_COUNTERS; i++) {
		line->sum.made[i] += row->made[i];
		line->sum.gone[i] += row->gone[i];
		if (counter_is_of_objects(i)) {
			line->made += row->made[i];
			line->gone += row->gone[i];
		}
	}
}

static int line_compare(const void *a, const void *b)
{
	const struct view_line *first = a, *second = b;

	if (first->sum.live != second->sum.live)
		return first->sum.live < second->sum.live ? 1 : -1;
	return (first->sum.pid > second->sum.pid) - (first->sum.pid < second->sum.pid);
}

static double view_seconds(void)
{
	return (double)clock_now_ns() / 1e9;
}

static void view_rates(struct view *view)
{
	double span = view->time - view->before_time;

	for (size_t i = 0; i < view->count; i++) {
		struct view_line *line = &view->line[i];
		__u64 made = 0, gone = 0;

		if (!view->before_time || span <= 0)
			continue;
		for (size_t j = 0; j < view->before_count; j++)
			if (line_is_of(view->by, &view->before[j].sum, &line->sum)) {
				made = view->before[j].made;
				gone = view->before[j].gone;
				break;
			}
		/* Of a cgroup or device, a process may have left with its past. */
		line->made_rate = line->made > made ? (double)(line->made - made) / span : 0;
		line->gone_rate = line->gone > gone ? (double)(line->gone - gone) / span : 0;
	}
}

int view_refresh(struct view *view, const struct monitor_reader *reader)
{
	struct view_line *line = view->before;
	size_t room = view->before_room;
	struct monitor_row row;
	unsigned cursor = 0;

	view->before = view->line;
	view->before_count = view->count;
	view->before_room = view->room;
	view->before_time = view->time;
	view->line = line;
	view->room = room;
	view->count = 0;
	view->time = view_seconds();
	while (monitor_reader_next(reader, &cursor, &row)) {
		struct view_line *sum;

		if (!row.pid && !row.live) /* nobody's row, empty as it should be */
			continue;
		if (!filter_takes_row(&view->filter, &row))
			continue;
		sum = line_for(view, &row);
		if (!sum)
			return -ENOMEM;
		line_add(sum, &row);
	}
	view_rates(view);
	if (view->count)
		qsort(view->line, view->count, sizeof(*view->line), line_compare);
	return 0;
}
