/* SPDX-License-Identifier: MIT */
/* Reading the history; see history.h. */
#include <errno.h>
#include <stddef.h>

#include "base/clock.h"
#include "history/history_parts.h"

enum { READ_STEPS = 100000 };
#define READ_MOST_NS (5ull * CLOCK_SECOND_NS)

int history_step(const struct history_query *query, int64_t now)
{
	int finest = query->since >= now - HISTORY_TENS_KEPT_S && query->step < HISTORY_MINUTES ?
			     HISTORY_TENS :
			     HISTORY_MINUTES;
	int step = query->step > finest ? query->step : finest;

	return step - step % finest;
}

static int reader_is_late(void *closure)
{
	return clock_now_ns() > ((struct history *)closure)->deadline_ns;
}

static void text_or_null_bind(sqlite3_stmt *statement, int place, const char *text)
{
	if (text)
		sqlite3_bind_text(statement, place, text, -1, SQLITE_STATIC);
	else
		sqlite3_bind_null(statement, place);
}

static const char *column_text(sqlite3_stmt *statement, int column)
{
	const unsigned char *text = sqlite3_column_text(statement, column);

	return text ? (const char *)text : "";
}

/* Hands each row over until the function has enough. */
static int rows_visit(struct history *history, sqlite3_stmt *statement,
		      int (*hand_over)(sqlite3_stmt *statement, void *closure), void *closure)
{
	int result = SQLITE_OK, own = 0;

	history->deadline_ns = clock_now_ns() + READ_MOST_NS;
	sqlite3_progress_handler(history->database, READ_STEPS, reader_is_late, history);
	while (!own && (result = sqlite3_step(statement)) == SQLITE_ROW)
		own = hand_over(statement, closure);
	sqlite3_progress_handler(history->database, 0, NULL, NULL);
	sqlite3_finalize(statement);
	return own ? own : history_error(result);
}

struct point_reading {
	history_point_function *each;
	void *closure;
};

static int point_hand_over(sqlite3_stmt *statement, void *closure)
{
	const struct point_reading *reading = closure;
	const struct history_point point = {
		.time = sqlite3_column_int64(statement, 2),
		.used = (uint64_t)sqlite3_column_int64(statement, 3),
		.most = (uint64_t)sqlite3_column_int64(statement, 4),
		.limit = sqlite3_column_type(statement, 5) == SQLITE_NULL ?
				 UNLIMITED :
				 (uint64_t)sqlite3_column_int64(statement, 5),
		.refused = (uint64_t)sqlite3_column_int64(statement, 6),
	};

	return reading->each(column_text(statement, 0), column_text(statement, 1), &point,
			     reading->closure);
}

int history_read(struct history *history, const struct history_query *query, int64_t now,
		 history_point_function *each, void *closure)
{
	static const char sql[] =
		"SELECT tenant, resource, time / ?1 * ?1, CAST(avg(used) AS INTEGER), max(most),"
		" max(bound), sum(refused) FROM point CROSS JOIN series ON id = series"
		" WHERE step = ?2 AND time BETWEEN ?3 AND ?4 AND (?5 IS NULL OR tenant = ?5)"
		" AND (?6 IS NULL OR resource = ?6) GROUP BY 1, 2, 3 ORDER BY 1, 2, 3";
	struct point_reading reading = { each, closure };
	int step = history_step(query, now);
	sqlite3_stmt *statement;

	if (sqlite3_prepare_v2(history->database, sql, -1, &statement, NULL) != SQLITE_OK)
		return -EIO;
	sqlite3_bind_int(statement, 1, step);
	sqlite3_bind_int(statement, 2,
			 query->since >= now - HISTORY_TENS_KEPT_S && step < HISTORY_MINUTES ?
				 HISTORY_TENS :
				 HISTORY_MINUTES);
	sqlite3_bind_int64(statement, 3, query->since);
	sqlite3_bind_int64(statement, 4, query->until ? query->until : now);
	text_or_null_bind(statement, 5, query->tenant);
	text_or_null_bind(statement, 6, query->resource);
	return rows_visit(history, statement, point_hand_over, &reading);
}

struct event_reading {
	history_event_function *each;
	void *closure;
};

static int event_hand_over(sqlite3_stmt *statement, void *closure)
{
	const struct event_reading *reading = closure;

	return reading->each(column_text(statement, 0), reading->closure);
}

int history_read_events(struct history *history, const char *tenant, int64_t since, unsigned most,
			history_event_function *each, void *closure)
{
	static const char sql[] =
		"SELECT document FROM (SELECT document, time_ns, sequence FROM event"
		" WHERE time_ns >= ?1 AND (?2 IS NULL OR tenant = ?2)"
		" ORDER BY time_ns DESC, sequence DESC LIMIT ?3) ORDER BY time_ns, sequence";
	struct event_reading reading = { each, closure };
	sqlite3_stmt *statement;

	if (sqlite3_prepare_v2(history->database, sql, -1, &statement, NULL) != SQLITE_OK)
		return -EIO;
	sqlite3_bind_int64(statement, 1, since * 1000000000ll);
	text_or_null_bind(statement, 2, tenant);
	sqlite3_bind_int64(statement, 3, most);
	return rows_visit(history, statement, event_hand_over, &reading);
}
