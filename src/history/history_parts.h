/* SPDX-License-Identifier: MIT */
/* What writing and reading the history share. */
#ifndef HISTORY_HISTORY_PARTS_H
#define HISTORY_HISTORY_PARTS_H

#include <sqlite3.h>

#include "history/history.h"

enum history_statement {
	STATEMENT_BEGIN,
	STATEMENT_COMMIT,
	STATEMENT_UNDO,
	STATEMENT_SERIES_ADD,
	STATEMENT_SERIES_FIND,
	STATEMENT_POINT_ADD,
	STATEMENT_EVENT_ADD,
	STATEMENT_NOTE,
	STATEMENT_NOTE_SET,
	STATEMENTS
};

struct history {
	sqlite3 *database;
	sqlite3_stmt *statement[STATEMENTS]; /* prepared when first used */
	uint64_t deadline_ns;		     /* of a reader; CLOCK_MONOTONIC */
};

/* A result of SQLite as -errno; 0 for success. */
int history_error(int result);

#endif
