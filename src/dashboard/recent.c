/* SPDX-License-Identifier: MIT */
/* The last ten minutes; see recent.h. */
#include "dashboard/recent.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "dashboard/sample.h"
#include "output/memory.h"

enum {
	PROCESSES = KIND_COUNT, /* a resource beside the kinds */
	RESOURCES,
	BUCKETS = 4096,
};

/* What a series had from a moment on. */
struct change {
	int64_t time;
	uint64_t used, limit;
	uint32_t refused; /* in that second */
	bool known;	  /* otherwise the collector did not answer */
};

/* What happened in the present step of the archive. */
struct step {
	uint64_t sum, count; /* of used, second by second */
	uint64_t most, refused;
	bool quiet; /* the last step was written, and had nothing */
};

struct series {
	struct series *next; /* in its bucket */
	char tenant[NAME_SIZE];
	int resource;
	int64_t number; /* in the history; 0: not known yet */
	uint64_t refused; /* as the collector counts, in total */
	int64_t seen, active;
	struct change *changes; /* the oldest first */
	unsigned count, room;
	struct step tens, minutes;
};

struct recent {
	pthread_mutex_t lock;
	struct series *bucket[BUCKETS];
	int64_t last; /* time of the last sample */
};

struct recent *recent_make(void)
{
	struct recent *recent = memory_need(calloc(1, sizeof(*recent)));

	pthread_mutex_init(&recent->lock, NULL);
	return recent;
}

static const char *resource_name(int resource)
{
	return resource == PROCESSES ? "processes" : kind_rows[resource].name;
}

static struct series **series_find(struct recent *recent, const char *tenant, int resource)
{
	uint32_t hash = 2166136261u * (uint32_t)(resource + 1);
	struct series **at;

	for (const char *letter = tenant; *letter; letter++)
		hash = (hash ^ (unsigned char)*letter) * 16777619u;
	for (at = &recent->bucket[hash % BUCKETS]; *at; at = &(*at)->next)
		if ((*at)->resource == resource && !strcmp((*at)->tenant, tenant))
			break;
	return at;
}

static void change_add(struct series *series, const struct change *change)
{
	const struct change *last = series->count ? &series->changes[series->count - 1] : NULL;
	unsigned old = 0;

	if (last && last->used == change->used && last->limit == change->limit &&
	    last->known == change->known && !last->refused && !change->refused)
		return;
	/* The last one before the ten minutes says how they began. */
	while (old + 1 < series->count &&
	       series->changes[old + 1].time <= change->time - RECENT_SECONDS)
		old++;
	if (old) {
		series->count -= old;
		memmove(series->changes, series->changes + old,
			series->count * sizeof(*series->changes));
	}
	if (series->count == series->room) {
		series->room = series->room ? 2 * series->room : 4;
		series->changes = memory_need(reallocarray(series->changes, series->room,
							   sizeof(*series->changes)));
	}
	series->changes[series->count++] = *change;
}

static void step_add(struct step *step, const struct change *change)
{
	step->sum += change->used;
	step->count++;
	step->refused += change->refused;
	if (change->used > step->most)
		step->most = change->used;
}

/* A number that begins again from 0 when the collector does. */
static uint32_t refused_since(struct series *series, uint64_t now, bool first)
{
	uint64_t more = first ? 0 : now < series->refused ? now : now - series->refused;

	series->refused = now;
	return more > UINT32_MAX ? UINT32_MAX : (uint32_t)more;
}

static void series_add(struct recent *recent, const char *tenant, int resource, int64_t time,
		       uint64_t used, uint64_t limit, uint64_t refused)
{
	struct series **at = series_find(recent, tenant, resource), *series = *at;
	struct change change = { .time = time, .used = used, .limit = limit, .known = true };
	bool first = !series;

	/* The host's processes are always there: they tell an idle time from an unknown one. */
	if (first && !used && !refused && limit == UNLIMITED && (resource != PROCESSES || *tenant))
		return;
	if (first) {
		series = *at = memory_need(calloc(1, sizeof(*series)));
		strcpy(series->tenant, tenant);
		series->resource = resource;
		series->tens.quiet = series->minutes.quiet = true;
	}
	change.refused = refused_since(series, refused, first);
	series->seen = time;
	if (used || change.refused || limit != UNLIMITED || first)
		series->active = time;
	change_add(series, &change);
	step_add(&series->tens, &change);
	step_add(&series->minutes, &change);
}

/* Series whose tenant is gone hold nothing; those idle for long are forgotten. */
static void series_age(struct recent *recent, int64_t time)
{
	for (unsigned i = 0; i < BUCKETS; i++)
		for (struct series **at = &recent->bucket[i]; *at;) {
			struct series *series = *at;

			if (series->seen != time)
				change_add(series, &(struct change){ .time = time,
								     .limit = UNLIMITED,
								     .known = true });
			if (series->active < time - RECENT_SECONDS &&
			    (series->resource != PROCESSES || *series->tenant)) {
				*at = series->next;
				free(series->changes);
				free(series);
			} else {
				at = &series->next;
			}
		}
}

/* From now on nothing is known. */
static void series_break(struct recent *recent, int64_t time)
{
	for (unsigned i = 0; i < BUCKETS; i++)
		for (struct series *series = recent->bucket[i]; series; series = series->next)
			change_add(series, &(struct change){ .time = time, .limit = UNLIMITED });
}

void recent_add(struct recent *recent, const struct sample *sample)
{
	int64_t time = (int64_t)(sample->time_ns / CLOCK_SECOND_NS);

	pthread_mutex_lock(&recent->lock);
	if (!sample->up)
		series_break(recent, time);
	for (size_t i = 0; i < sample->rows.count; i++) {
		const struct proto_row *row = list_at(&sample->rows, i);

		if (row->device[0] || row->scope > ROW_TENANT)
			continue;
		for (int kind = 0; kind < KIND_COUNT; kind++)
			series_add(recent, row->tenant, kind, time, row->used[kind],
				   row->limit[kind], row->refused[kind] + row->tolerated[kind]);
		series_add(recent, row->tenant, PROCESSES, time, row->processes, UNLIMITED, 0);
	}
	if (sample->up)
		series_age(recent, time);
	recent->last = time;
	pthread_mutex_unlock(&recent->lock);
}

static int series_write(struct series *series, struct history *history, int step, int64_t time)
{
	struct step *sums = step == HISTORY_TENS ? &series->tens : &series->minutes;
	const struct history_point point = {
		.time = time,
		.used = sums->count ? sums->sum / sums->count : 0,
		.most = sums->most,
		.limit = series->count ? series->changes[series->count - 1].limit : UNLIMITED,
		.refused = sums->refused,
	};
	bool alive = series->resource == PROCESSES && !*series->tenant && sums->count;
	bool quiet = !point.most && !point.refused && !alive;
	int result = 0;

	/* The first quiet step is written, so that a line in a chart comes down to 0. */
	if (!quiet || !sums->quiet) {
		if (!series->number)
			result = history_series(history, series->tenant,
						resource_name(series->resource), &series->number);
		if (!result)
			result = history_add(history, step, series->number, &point);
	}
	*sums = (struct step){ .quiet = quiet };
	return result;
}

int recent_write_step(struct recent *recent, struct history *history, int step, int64_t time)
{
	int result = 0;

	pthread_mutex_lock(&recent->lock);
	for (unsigned i = 0; i < BUCKETS; i++)
		for (struct series *series = recent->bucket[i]; series; series = series->next) {
			int written = series_write(series, history, step, time);

			result = result ? result : written;
		}
	pthread_mutex_unlock(&recent->lock);
	return result;
}

/* Each second of the time that is asked for, from the changes. */
static int series_read(const struct series *series, int64_t since, int64_t until,
		       history_point_function *each, void *closure)
{
	unsigned at = 0;
	int result = 0;

	if (!series->count)
		return 0;
	if (since < series->changes[0].time)
		since = series->changes[0].time;
	for (int64_t time = since; !result && time <= until; time++) {
		const struct change *change;

		while (at + 1 < series->count && series->changes[at + 1].time <= time)
			at++;
		change = &series->changes[at];
		if (!change->known)
			continue;
		result = each(series->tenant, resource_name(series->resource),
			      &(struct history_point){
				      .time = time,
				      .used = change->used,
				      .most = change->used,
				      .limit = change->limit,
				      .refused = change->time == time ? change->refused : 0 },
			      closure);
	}
	return result;
}

int recent_read(struct recent *recent, const struct history_query *query, int64_t now,
		history_point_function *each, void *closure)
{
	int64_t since = query->since > now - RECENT_SECONDS ? query->since : now - RECENT_SECONDS;
	int result = 0;

	pthread_mutex_lock(&recent->lock);
	for (unsigned i = 0; !result && i < BUCKETS; i++)
		for (const struct series *series = recent->bucket[i]; !result && series;
		     series = series->next)
			if ((!query->tenant || !strcmp(query->tenant, series->tenant)) &&
			    (!query->resource ||
			     !strcmp(query->resource, resource_name(series->resource))))
				result = series_read(series, since, recent->last, each, closure);
	pthread_mutex_unlock(&recent->lock);
	return result;
}
