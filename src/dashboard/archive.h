/* SPDX-License-Identifier: MIT */
/* When what goes to the history on disk. A disk that fails costs the history, nothing else. */
#ifndef DASHBOARD_ARCHIVE_H
#define DASHBOARD_ARCHIVE_H

#include <stdbool.h>
#include <stdint.h>

struct archive;
struct dashboard;

/* Opens dashboard->history_path, now or later: it says in the log when that fails. */
struct archive *archive_make(struct dashboard *dashboard, unsigned days, uint64_t size_most);

/* To be called each second, after recent_add. */
void archive_write(struct archive *archive, int64_t now);

/* Writes what is unfinished, and closes. */
void archive_end(struct archive *archive, int64_t now);

#endif
