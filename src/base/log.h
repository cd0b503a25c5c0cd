/* SPDX-License-Identifier: MIT */
/*
 * The log: one line per call, to a file or to stderr. It keeps no descriptor
 * open (a guarded program may close or reuse any number), allocates nothing,
 * changes neither errno nor the caller's cancellation points, and never
 * follows what another user planted at its path.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum log_level { LOG_OFF, LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

enum { LOG_PATH_MAX = 1024 };

struct log {
	enum log_level level;
	bool to_stderr;
	const char *prefix; /* of lines on stderr; NULL: the library's */
	char path[LOG_PATH_MAX];
};

/* "0" off, "1" info, "2" debug, or a name; -EINVAL otherwise. */
int log_level_parse(const char *text, enum log_level *ret_level);

/*
 * Where the log goes. path NULL means fallback, or, where another user owns
 * that file, fallback.<uid>. 0, or -errno when the file cannot be written:
 * the log is then off.
 */
int log_open(struct log *log, enum log_level level, const char *path, const char *fallback);

static inline bool log_wants(const struct log *log, enum log_level level)
{
	return level <= log->level;
}

void log_write(const struct log *log, enum log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void log_vwrite(const struct log *log, enum log_level level, const char *format, va_list arguments);

/* A line that may come often: once in LOG_SELDOM_SECONDS, with the number of those left out. One
 * struct for each place that writes, zero at first; for programs of one thread. */
enum { LOG_SELDOM_SECONDS = 10 };
struct log_seldom {
	uint64_t next_s; /* CLOCK_MONOTONIC */
	uint64_t left_out;
};
void log_seldom(const struct log *log, struct log_seldom *seldom, enum log_level level,
		const char *format, ...) __attribute__((format(printf, 4, 5)));

/* One bare line on stderr, for the few that a user must see. */
void log_stderr(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
