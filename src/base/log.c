/* SPDX-License-Identifier: MIT */
/*
 * Writing of log lines; see log.h. Every system call here is a raw one: the
 * libc wrappers of open and write are cancellation points, and a verb that is
 * not a cancellation point must not become one because it is logged.
 */
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/output.h"

static const struct {
	const char *name;
	enum log_level level;
} level_names[] = {
	{ "0", LOG_OFF },     { "1", LOG_INFO },      { "2", LOG_DEBUG },   { "OFF", LOG_OFF },
	{ "NONE", LOG_OFF },  { "ERROR", LOG_ERROR }, { "WARN", LOG_WARN }, { "WARNING", LOG_WARN },
	{ "INFO", LOG_INFO }, { "DEBUG", LOG_DEBUG },
};

static const char *const level_tags[] = { "OFF", "ERROR", "WARN", "INFO", "DEBUG" };

int log_level_parse(const char *text, enum log_level *ret_level)
{
	for (size_t i = 0; i < sizeof(level_names) / sizeof(level_names[0]); i++) {
		if (!strcasecmp(text, level_names[i].name)) {
			*ret_level = level_names[i].level;
			return 0;
		}
	}
	return -EINVAL;
}

/* An open descriptor of a regular file of our own, or -errno. */
static int open_own(const char *path, struct stat *ret_status)
{
	int fd = (int)syscall(SYS_openat, AT_FDCWD, path,
			      O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK |
				      O_NOCTTY,
			      0600);

	if (fd >= 0 && fd <= STDERR_FILENO) {
		/* The program closed it, and may still write to it. */
		int other = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

		syscall(SYS_close, fd);
		fd = other;
	}
	if (fd < 0)
		return -errno;
	if (fstat(fd, ret_status) || !S_ISREG(ret_status->st_mode) ||
	    ret_status->st_uid != geteuid() || ret_status->st_nlink != 1) {
		syscall(SYS_close, fd);
		return -EPERM;
	}
	return fd;
}

/* Makes way for a new file at the path. Who has the lock of the old one, and finds it still
 * there, is the only one to move it. False: it has to stay there. */
static __attribute__((noinline, cold)) bool move_away(const char *path, const struct stat *old)
{
	char moved[LOG_PATH_MAX + 2];
	struct stat there;

	if (lstat(path, &there) || there.st_ino != old->st_ino || there.st_dev != old->st_dev)
		return true; /* somebody did */
	snprintf(moved, sizeof(moved), "%s.1", path);
	return !rename(path, moved);
}

/* The same for a line: a file that has its full size is moved away first. */
static int open_bounded(const char *path)
{
	for (;;) {
		struct stat status;
		int fd = open_own(path, &status);
		bool moved;

		/* While another process moves it, a line more does no harm. */
		if (fd < 0 || status.st_size < LOG_FILE_MOST || flock(fd, LOCK_EX | LOCK_NB))
			return fd;
		moved = move_away(path, &status);
		syscall(SYS_close, fd);
		if (!moved)
			return -EFBIG;
	}
}

int log_open(struct log *log, enum log_level level, const char *path, const char *fallback)
{
	struct stat status;
	int fd;

	log->level = level;
	log->to_stderr = path && !strcmp(path, "stderr");
	if (level == LOG_OFF || log->to_stderr)
		return 0;
	if (snprintf(log->path, sizeof(log->path), "%s", path ? path : fallback) >=
	    (int)sizeof(log->path)) {
		log->level = LOG_OFF;
		return -ENAMETOOLONG;
	}
	fd = open_own(log->path, &status);
	if (fd < 0 && !path) {
		snprintf(log->path, sizeof(log->path), "%s.%u", fallback, (unsigned)geteuid());
		fd = open_own(log->path, &status);
	}
	if (fd < 0) {
		log->level = LOG_OFF;
		return fd;
	}
	syscall(SYS_close, fd);
	return 0;
}

/* Days since 1970-01-01 to a date, without libc's time zone machinery, which
 * allocates and locks. */
static void date_of(int64_t days, int *ret_year, int *ret_month, int *ret_day)
{
	int64_t shifted = days + 719468; /* since 0000-03-01 */
	int64_t era = shifted / 146097;
	int64_t day_of_era = shifted % 146097;
	int64_t year_of_era =
		(day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
	int64_t day_of_year =
		day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
	int64_t month = (5 * day_of_year + 2) / 153; /* 0 is March */

	*ret_day = (int)(day_of_year - (153 * month + 2) / 5 + 1);
	*ret_month = (int)(month < 10 ? month + 3 : month - 9);
	*ret_year = (int)(year_of_era + era * 400 + (*ret_month <= 2));
}

static int stamp(char *line, size_t size, enum log_level level)
{
	struct timespec now;
	int year, month, day, seconds;

	clock_gettime(CLOCK_REALTIME, &now);
	date_of(now.tv_sec / 86400, &year, &month, &day);
	seconds = (int)(now.tv_sec % 86400);
	return snprintf(line, size, "%04d-%02d-%02dT%02d:%02d:%02d.%03ldZ [%d] %s ", year, month,
			day, seconds / 3600, seconds / 60 % 60, seconds % 60, now.tv_nsec / 1000000,
			(int)getpid(), level_tags[level]);
}

/* Formats after the first `used` characters, ends the line, returns its length. */
static size_t finish(char *line, size_t size, size_t used, const char *format, va_list arguments)
{
	int added = vsnprintf(line + used, size - used - 1, format, arguments);

	if (added > 0)
		used += (size_t)added < size - used - 1 ? (size_t)added : size - used - 2;
	line[used++] = '\n';
	return used;
}

void log_vwrite(const struct log *log, enum log_level level, const char *format, va_list arguments)
{
	char line[1200];
	size_t used = 0;
	int saved = errno;
	int fd;

	if (!log_wants(log, level))
		return;
	if (log->to_stderr)
		used = (size_t)snprintf(line, sizeof(line), "%s",
					log->prefix ? log->prefix : "[RDMA_HOOKS] ");
	else
		used = (size_t)stamp(line, sizeof(line), level);
	used = finish(line, sizeof(line), used, format, arguments);
	if (log->to_stderr) {
		output_stderr(line, used);
	} else if ((fd = open_bounded(log->path)) >= 0) {
		output_write(fd, line, used);
		syscall(SYS_close, fd);
	}
	errno = saved;
}

void log_write(const struct log *log, enum log_level level, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	log_vwrite(log, level, format, arguments);
	va_end(arguments);
}

void log_seldom(const struct log *log, struct log_seldom *seldom, enum log_level level,
		const char *format, ...)
{
	uint64_t now_s = clock_now_seconds();
	va_list arguments;

	if (now_s < seldom->next_s) {
		seldom->left_out++;
		return;
	}
	if (seldom->left_out)
		log_write(log, level, "%llu more lines such as the next were left out",
			  (unsigned long long)seldom->left_out);
	*seldom = (struct log_seldom){ .next_s = now_s + LOG_SELDOM_SECONDS };
	va_start(arguments, format);
	log_vwrite(log, level, format, arguments);
	va_end(arguments);
}

void log_stderr(const char *format, ...)
{
	char line[1200];
	va_list arguments;
	int saved = errno;

	va_start(arguments, format);
	output_stderr(line, finish(line, sizeof(line), 0, format, arguments));
	va_end(arguments);
	errno = saved;
}
