/* SPDX-License-Identifier: MIT */
/* Writing the history; see history.h. */
#include "history/history_parts.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { SCHEMA = 1, BUSY_MS = 2000, PRUNE_PARTS = 10, PRUNE_ROUNDS = 20 };

/* Points are in the order in which they are written, since a minute of thousands of series is then
 * written to few pages; a reader passes over other tenants' points. */
static const char schema[] =
	"PRAGMA auto_vacuum = INCREMENTAL;"
	"PRAGMA journal_mode = WAL;"
	"PRAGMA synchronous = NORMAL;"
	"PRAGMA journal_size_limit = 8388608;"
	"BEGIN IMMEDIATE;"
	"CREATE TABLE IF NOT EXISTS series (id INTEGER PRIMARY KEY, tenant TEXT NOT NULL,"
	" resource TEXT NOT NULL, UNIQUE (tenant, resource));"
	"CREATE TABLE IF NOT EXISTS point (step INTEGER NOT NULL, time INTEGER NOT NULL,"
	" series INTEGER NOT NULL, used INTEGER NOT NULL, most INTEGER NOT NULL, bound INTEGER,"
	" refused INTEGER NOT NULL, PRIMARY KEY (step, time, series)) WITHOUT ROWID;"
	"CREATE TABLE IF NOT EXISTS event (collector INTEGER NOT NULL, sequence INTEGER NOT NULL,"
	" time_ns INTEGER NOT NULL, tenant TEXT NOT NULL, document TEXT NOT NULL,"
	" PRIMARY KEY (collector, sequence)) WITHOUT ROWID;"
	"CREATE INDEX IF NOT EXISTS event_time ON event (time_ns);"
	"CREATE TABLE IF NOT EXISTS note (name TEXT PRIMARY KEY, value INTEGER) WITHOUT ROWID;"
	/* A writer that was killed had a minute in memory of which the tens are here. */
	"INSERT OR IGNORE INTO point SELECT 60, time / 60 * 60, series,"
	" CAST(avg(used) AS INTEGER), max(most), max(bound), sum(refused) FROM point"
	" WHERE step = 10 AND time >= coalesce((SELECT max(time) + 60 FROM point WHERE step = 60), 0)"
	" GROUP BY time / 60, series;"
	"PRAGMA user_version = 1;"
	"COMMIT;";

static const char *const statements[STATEMENTS] = {
	[STATEMENT_BEGIN] = "BEGIN IMMEDIATE",
	[STATEMENT_COMMIT] = "COMMIT",
	[STATEMENT_UNDO] = "ROLLBACK",
	[STATEMENT_SERIES_ADD] = "INSERT OR IGNORE INTO series (tenant, resource) VALUES (?1, ?2)",
	[STATEMENT_SERIES_FIND] = "SELECT id FROM series WHERE tenant = ?1 AND resource = ?2",
	[STATEMENT_POINT_ADD] =
		"INSERT INTO point VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"
		" ON CONFLICT DO UPDATE SET used = max(used, excluded.used),"
		" most = max(most, excluded.most), bound = excluded.bound,"
		" refused = refused + excluded.refused",
	[STATEMENT_EVENT_ADD] = "INSERT OR REPLACE INTO event VALUES (?1, ?2, ?3, ?4, ?5)",
	[STATEMENT_NOTE] = "SELECT value FROM note WHERE name = ?1",
	[STATEMENT_NOTE_SET] = "INSERT OR REPLACE INTO note VALUES (?1, ?2)",
};

int history_error(int result)
{
	switch (result & 0xff) {
	case SQLITE_OK:
	case SQLITE_DONE:
	case SQLITE_ROW:
		return 0;
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return -EBUSY;
	case SQLITE_CANTOPEN:
		return -ENOENT;
	case SQLITE_READONLY:
	case SQLITE_PERM:
		return -EACCES;
	case SQLITE_INTERRUPT:
		return -ETIMEDOUT;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return -EUCLEAN;
	}
	return -EIO;
}

const char *history_problem(struct history *history)
{
	return sqlite3_errmsg(history->database);
}

/* Closes what could not be opened. */
static int history_fail(struct history *history, int result, const char *path,
			char problem[PROBLEM_SIZE])
{
	int error = history_error(result);

	problem_set(error, problem, "%.300s: the history cannot be opened: %s", path,
		    history->database ? sqlite3_errmsg(history->database) : strerror(ENOMEM));
	history_close(history);
	return error;
}

static int history_open_with(const char *path, int flags, const char *sql,
			     struct history **ret_history, char problem[PROBLEM_SIZE])
{
	struct history *history = calloc(1, sizeof(*history));
	int result;

	if (!history)
		return problem_set(-ENOMEM, problem, "no memory for the history");
	result = sqlite3_open_v2(path, &history->database, flags | SQLITE_OPEN_FULLMUTEX, NULL);
	if (result == SQLITE_OK) {
		sqlite3_busy_timeout(history->database, BUSY_MS);
		result = sqlite3_exec(history->database, sql, NULL, NULL, NULL);
	}
	if (result != SQLITE_OK)
		return history_fail(history, result, path, problem);
	*ret_history = history;
	return 0;
}

static int history_open_file(const char *path, struct history **ret_history,
			     char problem[PROBLEM_SIZE])
{
	mode_t before = umask(0077);
	int result = history_open_with(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, schema,
				       ret_history, problem);

	umask(before);
	return result;
}

int history_open(const char *path, struct history **ret_history, bool *ret_damaged,
		 char problem[PROBLEM_SIZE])
{
	static const char *const parts[] = { "", "-wal", "-shm" };
	int result = history_open_file(path, ret_history, problem);

	*ret_damaged = false;
	if (result != -EUCLEAN)
		return result;
	for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		char from[PATH_MAX], to[PATH_MAX + 16];

		snprintf(from, sizeof(from), "%s%s", path, parts[i]);
		snprintf(to, sizeof(to), "%s.damaged%s", path, parts[i]);
		rename(from, to);
	}
	*ret_damaged = true;
	return history_open_file(path, ret_history, problem);
}

int history_open_reader(const char *path, struct history **ret_history, char problem[PROBLEM_SIZE])
{
	return history_open_with(path, SQLITE_OPEN_READONLY, "SELECT count(*) FROM note", ret_history,
				 problem);
}

void history_close(struct history *history)
{
	if (!history)
		return;
	for (int i = 0; i < STATEMENTS; i++)
		sqlite3_finalize(history->statement[i]);
	sqlite3_close(history->database);
	free(history);
}

/* ---- statements */

/* The statement, ready for its values; NULL when it cannot be prepared. */
static sqlite3_stmt *statement_of(struct history *history, enum history_statement which)
{
	sqlite3_stmt **statement = &history->statement[which];

	if (!*statement)
		sqlite3_prepare_v3(history->database, statements[which], -1,
				   SQLITE_PREPARE_PERSISTENT, statement, NULL);
	return *statement;
}

/* Carries it out; *ret_value (unless NULL) gets the number of the row that it finds. */
static int statement_run(sqlite3_stmt *statement, int64_t *ret_value)
{
	int result;

	if (!statement)
		return -EIO;
	result = sqlite3_step(statement);
	if (result == SQLITE_ROW && ret_value)
		*ret_value = sqlite3_column_int64(statement, 0);
	sqlite3_reset(statement);
	if (result == SQLITE_DONE && ret_value)
		return -ENOENT;
	return history_error(result);
}

int history_begin(struct history *history)
{
	return statement_run(statement_of(history, STATEMENT_BEGIN), NULL);
}

int history_commit(struct history *history)
{
	return statement_run(statement_of(history, STATEMENT_COMMIT), NULL);
}

void history_undo(struct history *history)
{
	statement_run(statement_of(history, STATEMENT_UNDO), NULL);
}

int history_series(struct history *history, const char *tenant, const char *resource,
		   int64_t *ret_series)
{
	static const enum history_statement steps[] = { STATEMENT_SERIES_ADD,
							STATEMENT_SERIES_FIND };
	int result = 0;

	for (unsigned i = 0; !result && i < 2; i++) {
		sqlite3_stmt *statement = statement_of(history, steps[i]);

		sqlite3_bind_text(statement, 1, tenant, -1, SQLITE_STATIC);
		sqlite3_bind_text(statement, 2, resource, -1, SQLITE_STATIC);
		result = statement_run(statement, i ? ret_series : NULL);
	}
	return result;
}

int history_add(struct history *history, int step, int64_t series, const struct history_point *point)
{
	sqlite3_stmt *statement = statement_of(history, STATEMENT_POINT_ADD);

	sqlite3_bind_int(statement, 1, step);
	sqlite3_bind_int64(statement, 2, point->time);
	sqlite3_bind_int64(statement, 3, series);
	sqlite3_bind_int64(statement, 4, (sqlite3_int64)point->used);
	sqlite3_bind_int64(statement, 5, (sqlite3_int64)point->most);
	if (point->limit == UNLIMITED)
		sqlite3_bind_null(statement, 6);
	else
		sqlite3_bind_int64(statement, 6, (sqlite3_int64)point->limit);
	sqlite3_bind_int64(statement, 7, (sqlite3_int64)point->refused);
	return statement_run(statement, NULL);
}

int history_add_event(struct history *history, uint64_t collector, uint64_t sequence,
		      uint64_t time_ns, const char *tenant, const char *document)
{
	sqlite3_stmt *statement = statement_of(history, STATEMENT_EVENT_ADD);

	sqlite3_bind_int64(statement, 1, (sqlite3_int64)collector);
	sqlite3_bind_int64(statement, 2, (sqlite3_int64)sequence);
	sqlite3_bind_int64(statement, 3, (sqlite3_int64)time_ns);
	sqlite3_bind_text(statement, 4, tenant, -1, SQLITE_STATIC);
	sqlite3_bind_text(statement, 5, document, -1, SQLITE_STATIC);
	return statement_run(statement, NULL);
}

int64_t history_note(struct history *history, const char *name)
{
	sqlite3_stmt *statement = statement_of(history, STATEMENT_NOTE);
	int64_t value = 0;

	sqlite3_bind_text(statement, 1, name, -1, SQLITE_STATIC);
	return statement_run(statement, &value) < 0 ? 0 : value;
}

int history_set_note(struct history *history, const char *name, int64_t value)
{
	sqlite3_stmt *statement = statement_of(history, STATEMENT_NOTE_SET);

	sqlite3_bind_text(statement, 1, name, -1, SQLITE_STATIC);
	sqlite3_bind_int64(statement, 2, value);
	return statement_run(statement, NULL);
}

/* ---- pruning */

/* A question with one number for an answer; 0 if the query returns no row. */
static int64_t history_number(struct history *history, const char *sql)
{
	sqlite3_stmt *statement = NULL;
	int64_t value = 0;

	if (sqlite3_prepare_v2(history->database, sql, -1, &statement, NULL) == SQLITE_OK)
		statement_run(statement, &value);
	sqlite3_finalize(statement);
	return value;
}

static uint64_t history_size(struct history *history)
{
	return (uint64_t)(history_number(history, "PRAGMA page_count") -
			  history_number(history, "PRAGMA freelist_count")) *
	       (uint64_t)history_number(history, "PRAGMA page_size");
}

/* Removes points and events from before these moments. */
static int history_remove(struct history *history, int64_t tens, int64_t minutes)
{
	char sql[512];

	snprintf(sql, sizeof(sql),
		 "DELETE FROM point WHERE step = 10 AND time < %lld;"
		 "DELETE FROM point WHERE step = 60 AND time < %lld;"
		 "DELETE FROM event WHERE time_ns < %lld;",
		 (long long)tens, (long long)minutes, (long long)minutes * 1000000000ll);
	return history_error(sqlite3_exec(history->database, sql, NULL, NULL, NULL));
}

int history_prune(struct history *history, int64_t now, unsigned days, uint64_t size_most)
{
	int64_t tens = now - HISTORY_TENS_KEPT_S, minutes = now - (int64_t)days * 86400;
	int result = history_remove(history, tens, minutes);

	/* A tenth of the time that is kept at a time, until it is little enough. */
	for (int i = 0; !result && i < PRUNE_ROUNDS && history_size(history) > size_most; i++) {
		int64_t oldest = history_number(
			history, "SELECT min(coalesce((SELECT min(time) FROM point WHERE step = 60), "
				 "9e18), coalesce((SELECT min(time_ns) / 1000000000 FROM event), 9e18))");

		if (oldest <= 0 || oldest >= now)
			break;
		minutes = oldest + (now - oldest) / PRUNE_PARTS + 1;
		result = history_remove(history, minutes > tens ? minutes : tens, minutes);
	}
	if (!result)
		result = history_error(sqlite3_exec(history->database, "PRAGMA incremental_vacuum",
						    NULL, NULL, NULL));
	return result;
}
