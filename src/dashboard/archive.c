/* SPDX-License-Identifier: MIT */
/* Writing to the history; see archive.h. */
#include "dashboard/archive.h"

#include <stdlib.h>

#include "dashboard/dashboard.h"
#include "dashboard/feed.h"
#include "dashboard/recent.h"
#include "dashboard/state.h"
#include "output/memory.h"

enum { OPEN_AGAIN_S = 60 };

struct archive {
	struct dashboard *dashboard;
	struct history *history; /* NULL: it could not be opened */
	unsigned days;
	uint64_t size_most;
	int64_t tried;	       /* to open it */
	int64_t tens, minutes; /* the steps that are being added up; 0: none */
	struct log_seldom complaint;
	int result; /* of the present second */
};

static void archive_open(struct archive *archive, int64_t now)
{
	struct dashboard *dashboard = archive->dashboard;
	char problem[PROBLEM_SIZE];
	bool damaged;

	if (!dashboard->history_path[0] || archive->history ||
	    (archive->tried && now < archive->tried + OPEN_AGAIN_S))
		return;
	archive->tried = now;
	if (history_open(dashboard->history_path, &archive->history, &damaged, problem) < 0) {
		archive->history = NULL;
		log_write(&dashboard->log, LOG_ERROR, "%s; no history is kept", problem);
		return;
	}
	if (damaged)
		log_write(&dashboard->log, LOG_ERROR,
			  "%s: the history was damaged: it is kept as %s.damaged, and a new one begins",
			  dashboard->history_path, dashboard->history_path);
}

struct archive *archive_make(struct dashboard *dashboard, unsigned days, uint64_t size_most)
{
	struct archive *archive = memory_need(calloc(1, sizeof(*archive)));

	*archive = (struct archive){ .dashboard = dashboard, .days = days, .size_most = size_most };
	archive_open(archive, 1);
	archive->tried = 0;
	if (archive->history)
		feed_remember(dashboard->feed,
			      (uint64_t)history_note(archive->history, "collector_start"),
			      (int32_t)history_note(archive->history, "collector_pid"));
	return archive;
}

/* The first failure counts; after it nothing is tried. */
static void archive_check(struct archive *archive, int result)
{
	if (!archive->result)
		archive->result = result;
}

static void event_save(const struct feed_event *event, void *closure)
{
	struct archive *archive = closure;
	struct text text = { .data = NULL };

	if (archive->result)
		return;
	state_write_event(&text, &event->event);
	text_append(&text, "", 1);
	archive_check(archive, history_add_event(archive->history, event->collector,
						 event->event.sequence, event->event.time_ns,
						 event->event.tenant, text.data));
	if (event->collector) {
		archive_check(archive, history_set_note(archive->history, "collector_start",
							(int64_t)event->collector));
		archive_check(archive, history_set_note(archive->history, "collector_pid",
							feed_collector_pid(archive->dashboard->feed)));
	}
	text_free(&text);
}

/* Writes the step that has ended, if it has. */
static void step_end(struct archive *archive, int step, int64_t *present, int64_t now)
{
	int64_t begun = now - now % step;

	if (*present && begun != *present)
		archive_check(archive, recent_write_step(archive->dashboard->recent,
							 archive->history, step, *present));
	*present = begun;
}

void archive_write(struct archive *archive, int64_t now)
{
	bool minute = archive->minutes && now - now % HISTORY_MINUTES != archive->minutes;

	archive_open(archive, now);
	if (!archive->history)
		return;
	archive->result = history_begin(archive->history);
	if (!archive->result) {
		feed_visit_unsaved(archive->dashboard->feed, event_save, archive);
		step_end(archive, HISTORY_TENS, &archive->tens, now);
		step_end(archive, HISTORY_MINUTES, &archive->minutes, now);
		if (minute)
			archive_check(archive, history_prune(archive->history, now, archive->days,
							     archive->size_most));
		archive_check(archive, archive->result ? 0 : history_commit(archive->history));
	}
	if (!archive->result)
		return;
	log_seldom(&archive->dashboard->log, &archive->complaint, LOG_ERROR,
		   "%s: the history cannot be written: %s", archive->dashboard->history_path,
		   history_problem(archive->history));
	history_undo(archive->history);
	history_close(archive->history);
	archive->history = NULL;
}

void archive_end(struct archive *archive, int64_t now)
{
	/* As if both steps had ended. */
	archive_write(archive, now + HISTORY_MINUTES);
	history_close(archive->history);
}
