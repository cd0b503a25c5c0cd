/* SPDX-License-Identifier: MIT */
/*
 * A writer of the history is killed again and again, at any moment of its work: the database
 * opens, and has everything that was committed. The writer's clock runs fast: it writes ten
 * seconds in some hundred microseconds.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "history/history.h"

enum { KILLS = 200, SERIES = 12, COMMITS_MOST = 25 };

static const int64_t beginning = 1800000000; /* a whole minute */

static char *resource_of(int series, char name[16])
{
	snprintf(name, 16, "r%d", series);
	return name;
}

/* Writes step after step, and tells the time of each that is committed. */
static void writer_run(const char *path, int report, int64_t now)
{
	char problem[PROBLEM_SIZE], name[16];
	struct history *history;
	bool damaged;

	if (history_open(path, &history, &damaged, problem) < 0 || damaged) {
		fprintf(stderr, "%s\n", damaged ? "damaged" : problem);
		_exit(1);
	}
	for (;; now += HISTORY_TENS) {
		struct history_point point = { .used = 1, .most = 2, .limit = UNLIMITED };
		int result = history_begin(history);

		for (int i = 0; !result && i < SERIES; i++) {
			int64_t series;

			result = history_series(history, "a", resource_of(i, name), &series);
			point.time = now;
			if (!result)
				result = history_add(history, HISTORY_TENS, series, &point);
			point.time = now - HISTORY_MINUTES;
			if (!result && now % HISTORY_MINUTES == 0)
				result = history_add(history, HISTORY_MINUTES, series, &point);
		}
		if (!result)
			result = history_add_event(history, 1, (uint64_t)now, (uint64_t)now * 1000000000,
						   "a", "{\"text\":\"something that happened\"}");
		if (!result && now % HISTORY_MINUTES == 0)
			result = history_prune(history, now, 1, HISTORY_SIZE_MOST);
		if (!result)
			result = history_commit(history);
		if (result < 0) {
			fprintf(stderr, "%s\n", history_problem(history));
			_exit(2);
		}
		if (write(report, &now, sizeof(now)) != sizeof(now))
			_exit(3);
	}
}

struct counts {
	unsigned points;
	unsigned events;
};

static int point_count(const char *tenant, const char *resource, const struct history_point *point,
		       void *counts)
{
	((struct counts *)counts)->points += !strcmp(tenant, "a") && point->most == 2;
	return 0;
}

static int event_count(const char *document, void *counts)
{
	((struct counts *)counts)->events++;
	return 0;
}

/* Everything up to the last report, and at most one step more: committed, but not reported. */
static void history_check(const char *path, int64_t first, int64_t last)
{
	struct history_query query = { .tenant = "a", .since = first };
	char problem[PROBLEM_SIZE] = "";
	struct counts found = { 0 };
	struct history *history;
	unsigned steps = (unsigned)((last - first) / HISTORY_TENS) + 1;

	if (!CHECK(history_open_reader(path, &history, problem) == 0, "%s", problem))
		return;
	CHECK(history_read(history, &query, last + HISTORY_TENS, point_count, &found) == 0);
	CHECK(history_read_events(history, "a", first, 100000, event_count, &found) == 0);
	CHECK(found.points == steps * SERIES || found.points == (steps + 1) * SERIES,
	      "%u points for %u steps", found.points, steps);
	CHECK(found.events == steps || found.events == steps + 1, "%u events for %u steps",
	      found.events, steps);
	history_close(history);
}

static void killed_at_any_moment(void)
{
	const char *path = harness_path("history.db");
	int64_t now = beginning;

	for (unsigned i = 0; i < KILLS * test_factor(); i++) {
		unsigned commits = 1 + (unsigned)rand() % COMMITS_MOST;
		int64_t first = now, last = 0;
		int report[2], status;
		pid_t writer;

		if (!CHECK(pipe(report) == 0))
			return;
		writer = fork_child();
		if (writer == 0) {
			close(report[0]);
			writer_run(path, report[1], now);
		}
		close(report[1]);
		while (commits-- && read(report[0], &last, sizeof(last)) == sizeof(last))
			;
		for (volatile int spin = rand() % 100000; spin; spin--)
			;
		kill(writer, SIGKILL);
		waitpid(writer, &status, 0);
		CHECK(WIFSIGNALED(status), "the writer ended by itself: %x", (unsigned)status);
		while (read(report[0], &last, sizeof(last)) == sizeof(last))
			;
		close(report[0]);
		if (!CHECK(last >= first, "nothing was committed"))
			return;
		history_check(path, first, last);
		now = last + 2 * HISTORY_TENS;
	}
}

/* The minute that a killed writer had in memory is made from its tens. */
static void minute_is_completed(void)
{
	const char *path = harness_path("minute.db");
	struct history_point point = { .used = 4, .most = 6, .limit = 9, .refused = 2 };
	struct history_query query = { .tenant = "a", .since = beginning - 86400 };
	char problem[PROBLEM_SIZE];
	struct counts found = { 0 };
	struct history *history;
	int64_t series;
	bool damaged;

	CHECK(history_open(path, &history, &damaged, problem) == 0, "%s", problem);
	CHECK(history_series(history, "a", "qp", &series) == 0);
	for (point.time = beginning; point.time < beginning + 50; point.time += HISTORY_TENS) {
		point.most = point.time == beginning + 20 ? 2 : 1;
		CHECK(history_add(history, HISTORY_TENS, series, &point) == 0);
	}
	history_close(history); /* no minute was written */
	CHECK(history_open(path, &history, &damaged, problem) == 0, "%s", problem);
	CHECK(history_read(history, &query, beginning + 60, point_count, &found) == 0);
	CHECK(found.points == 1, "%u minutes", found.points);
	history_close(history);
}

static void driver(void)
{
	RUN(killed_at_any_moment);
	RUN(minute_is_completed);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
