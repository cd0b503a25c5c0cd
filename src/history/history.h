/* SPDX-License-Identifier: MIT */
/*
 * The history on disk: what tenants held, in steps of 10 s for two hours and of a minute for 30
 * days, and events. One program writes; any number read meanwhile. A writer that is killed loses
 * what it had not committed, and nothing else: the database is in WAL mode.
 *
 * A resource is the name of a kind, or "processes". The tenant "" is the host. A step in which a
 * tenant held nothing, and nothing was refused, may have no row; the host's "processes" has one
 * for each step in which the collector answered.
 */
#ifndef HISTORY_HISTORY_H
#define HISTORY_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/problem.h"
#include "terms/terms.h"

enum { HISTORY_TENS = 10, HISTORY_MINUTES = 60 };

#define HISTORY_TENS_KEPT_S (2 * 3600)
#define HISTORY_KEPT_DAYS 30
#define HISTORY_SIZE_MOST (256ull << 20)

/* One step of a resource. */
struct history_point {
	int64_t time;	  /* when the step began, in seconds since 1970 */
	uint64_t used;	  /* on average */
	uint64_t most;	  /* at the highest */
	uint64_t limit;	  /* UNLIMITED: no limit was set */
	uint64_t refused; /* how often a limit was hit */
};

struct history;

/* Opens the database for writing, and makes it unless it exists. One that is damaged is moved
 * aside (*ret_damaged). 0, or -errno with a sentence. */
int history_open(const char *path, struct history **ret_history, bool *ret_damaged,
		 char problem[PROBLEM_SIZE]);
/* The same for reading only: -ENOENT if there is no database. */
int history_open_reader(const char *path, struct history **ret_history,
			char problem[PROBLEM_SIZE]);
void history_close(struct history *history); /* NULL is allowed */

/* ---- writing. What is between begin and commit is written whole or not at all. 0 or -errno. */

int history_begin(struct history *history);
int history_commit(struct history *history);
void history_undo(struct history *history);

/* The number of a series, for history_add. */
int history_series(struct history *history, const char *tenant, const char *resource,
		   int64_t *ret_series);
/* A second point for the same step adds to the first. */
int history_add(struct history *history, int step, int64_t series,
		const struct history_point *point);
/* One with the same collector and sequence is replaced. */
int history_add_event(struct history *history, uint64_t collector, uint64_t sequence,
		      uint64_t time_ns, const char *tenant, const char *document);

/* A number about the history itself; 0 where it was never set. */
int64_t history_note(struct history *history, const char *name);
int history_set_note(struct history *history, const char *name, int64_t value);

/* Removes what is too old, and the oldest of what is too much. 0 or -errno. */
int history_prune(struct history *history, int64_t now, unsigned days, uint64_t size_most);

/* What the last failed call was about. */
const char *history_problem(struct history *history);

/* ---- reading */

struct history_query {
	const char *tenant, *resource; /* NULL: all */
	int64_t since;
	int64_t until; /* 0: now */
	int step;      /* 0: the finest there is for the time; otherwise points are put together */
};

typedef int history_point_function(const char *tenant, const char *resource,
				   const struct history_point *point, void *closure);
typedef int history_event_function(const char *document, void *closure);

/* The step that a query gets, in seconds. */
int history_step(const struct history_query *query, int64_t now);

/* Points by tenant, resource and time. A result of the function other than 0 ends the reading and
 * is returned. -ETIMEDOUT when it takes longer than a few seconds. */
int history_read(struct history *history, const struct history_query *query, int64_t now,
		 history_point_function *each, void *closure);
/* Documents of events, the oldest first; the latest `most` of them. */
int history_read_events(struct history *history, const char *tenant, int64_t since, unsigned most,
			history_event_function *each, void *closure);

#endif
