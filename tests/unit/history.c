/* SPDX-License-Identifier: MIT */
/* The history with a clock of its own: what is kept in memory and on disk, for how long, how much. */
#include "history/history.h"

#include <string.h>
#include <sys/stat.h>

#include "dashboard/recent.h"
#include "dashboard/sample.h"
#include "harness.h"
#include "history/span.h"

static const int64_t beginning = 1800000000; /* a whole minute */

/* ---- samples */

static struct sample *sample_at(int64_t time, const char *tenant, uint64_t qps, uint64_t refused)
{
	struct sample *sample = sample_make("");

	sample->time_ns = (uint64_t)time * 1000000000;
	sample->up = true;
	for (int scope = ROW_HOST; scope <= ROW_TENANT; scope++) {
		struct proto_row row = { .scope = (uint32_t)scope, .processes = 1 };

		for (int kind = 0; kind < KIND_COUNT; kind++)
			row.limit[kind] = row.process_limit[kind] = UNLIMITED;
		row.used[KIND_qp] = qps;
		row.refused[KIND_qp] = refused;
		row.limit[KIND_qp] = 10;
		if (scope == ROW_TENANT)
			strcpy(row.tenant, tenant);
		sample_row_take(&row, &sample->rows);
	}
	return sample;
}

static void second_pass(struct recent *recent, int64_t time, uint64_t qps, uint64_t refused)
{
	struct sample *sample = sample_at(time, "a", qps, refused);

	recent_add(recent, sample);
	sample_release(sample);
}

struct found {
	unsigned count;
	struct history_point first, last;
	uint64_t most, refused;
};

static int point_find(const char *tenant, const char *resource, const struct history_point *point,
		      void *closure)
{
	struct found *found = closure;

	if (!found->count++)
		found->first = *point;
	found->last = *point;
	found->refused += point->refused;
	if (point->most > found->most)
		found->most = point->most;
	return 0;
}

static struct found recent_find(struct recent *recent, int64_t since, int64_t now)
{
	const struct history_query query = { .tenant = "a", .resource = "qp", .since = since };
	struct found found = { 0 };

	CHECK(recent_read(recent, &query, now, point_find, &found) == 0);
	return found;
}

/* ---- in memory */

static void seconds(void)
{
	struct recent *recent = recent_make();
	struct found found;

	for (int i = 0; i < 1000; i++)
		second_pass(recent, beginning + i, i < 700 ? 3 : 5, i < 800 ? 0 : 2);
	found = recent_find(recent, 0, beginning + 1000);
	CHECK(found.count == RECENT_SECONDS || found.count == RECENT_SECONDS - 1, "%u", found.count);
	CHECK(found.first.used == 3 && found.last.used == 5 && found.last.limit == 10);
	CHECK(found.refused == 2, "%u", (unsigned)found.refused);
	found = recent_find(recent, beginning + 990, beginning + 1000);
	CHECK(found.count == 10, "%u", found.count);
}

/* The time without a collector has no points, and what comes after it has. */
static void gap(void)
{
	struct recent *recent = recent_make();
	struct sample *down = sample_make("");
	struct found found;

	second_pass(recent, beginning, 3, 0);
	for (int i = 1; i < 10; i++) {
		down->time_ns = (uint64_t)(beginning + i) * 1000000000;
		recent_add(recent, down);
	}
	second_pass(recent, beginning + 10, 4, 0);
	found = recent_find(recent, 0, beginning + 10);
	CHECK(found.count == 2 && found.first.used == 3 && found.last.used == 4, "%u", found.count);
	sample_release(down);
}

/* ---- on disk */

static struct history *history_begun(const char *name)
{
	struct history *history = NULL;
	char problem[PROBLEM_SIZE] = "";
	bool damaged;

	if (!CHECK(history_open(harness_path(name), &history, &damaged, problem) == 0 && !damaged,
		   "%s", problem))
		stop_here();
	return history;
}

static struct found history_find(struct history *history, int64_t since, int64_t now, int step)
{
	const struct history_query query = {
		.tenant = "a", .resource = "qp", .since = since, .step = step
	};
	struct found found = { 0 };

	CHECK(history_read(history, &query, now, point_find, &found) == 0);
	return found;
}

/* Three hours as the program writes them: tens for two, minutes for all. */
static void steps(void)
{
	struct history *history = history_begun("steps.db");
	struct recent *recent = recent_make();
	int64_t end = beginning + 3 * 3600;
	struct found found;

	history_begin(history);
	for (int64_t now = beginning; now < end; now++) {
		if (now > beginning && now % 10 == 0)
			CHECK(recent_write_step(recent, history, HISTORY_TENS, now - 10) == 0);
		if (now > beginning && now % 60 == 0)
			CHECK(recent_write_step(recent, history, HISTORY_MINUTES, now - 60) == 0);
		second_pass(recent, now, now % 60 == 7 ? 9 : 3, 0);
	}
	CHECK(history_prune(history, end, 30, HISTORY_SIZE_MOST) == 0);
	history_commit(history);
	found = history_find(history, end - 7200, end, 0);
	CHECK(found.count == 719, "%u tens", found.count);
	CHECK(found.most == 9 && found.last.used == 3 && found.last.limit == 10);
	found = history_find(history, end - 86400, end, 0);
	CHECK(found.count == 179, "%u minutes", found.count);
	CHECK(found.first.most == 9 && found.first.used == 3);
	found = history_find(history, end - 86400, end, 3600);
	CHECK(found.count == 3, "%u hours", found.count);
	/* With all kinds at 0 but QPs, nothing else has rows but the processes. */
	history_close(history);
}

/* What is older than the days goes, and what is more than the size. */
static void bounds(void)
{
	struct history *history = history_begun("bounds.db");
	struct history_point point = { .used = 1, .most = 1, .limit = UNLIMITED };
	int64_t series, end = beginning + 40 * 86400;
	struct found found;
	struct stat status;

	CHECK(history_series(history, "a", "qp", &series) == 0);
	history_begin(history);
	for (point.time = beginning; point.time < end; point.time += 60)
		history_add(history, HISTORY_MINUTES, series, &point);
	history_commit(history);
	CHECK(history_prune(history, end, 30, HISTORY_SIZE_MOST) == 0);
	found = history_find(history, beginning, end, 0);
	CHECK(found.count == 30 * 1440 && found.first.time == end - 30 * 86400, "%u", found.count);
	CHECK(history_prune(history, end, 30, 512 << 10) == 0);
	found = history_find(history, beginning, end, 0);
	CHECK(found.count > 1440 && found.count < 30 * 1440, "%u", found.count);
	CHECK(found.last.time == end - 60, "the newest stays");
	history_close(history);
	CHECK(stat(harness_path("bounds.db"), &status) == 0 && status.st_size < 600 << 10,
	      "%lld bytes", (long long)status.st_size);
}

static void spans(void)
{
	static const struct {
		const char *text;
		int64_t moment; /* -1: none */
	} rows[] = {
		{ "10m", 999400 },   { "2h", 992800 },	 { "1d", 913600 },
		{ "30s", 999970 },   { "123", 123 },	 { "1970-01-02", 86400 },
		{ "", -1 },	     { "m", -1 },	 { "1w", -1 },
		{ "-1h", -1 },	     { "1970-13-01", -1 }, { "1970-01-02T01:00", 90000 },
		{ "1970-01-02T01:00:01Z", 90001 },	    { "1970-01-02T01:00:01.75Z", 90001 },
		{ "1970-01-02T03:00:01.5+02:00", 90001 }, { "1970-01-02 01:00:01", 90001 },
		{ "1970-01-02T01:00:01X", -1 },	    { "1970-01-02.5", -1 },
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int64_t moment = -1;

		span_parse(rows[i].text, 1000000, &moment);
		CHECK(moment == rows[i].moment, "'%s': %lld", rows[i].text, (long long)moment);
	}
}

static void driver(void)
{
	RUN(seconds);
	RUN(gap);
	RUN(steps);
	RUN(bounds);
	RUN(spans);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
