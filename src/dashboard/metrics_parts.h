/* SPDX-License-Identifier: MIT */
/* What the files that write metrics share; see metrics.h. */
#ifndef DASHBOARD_METRICS_PARTS_H
#define DASHBOARD_METRICS_PARTS_H

#include <stdbool.h>

#include "dashboard/metrics.h"
#include "dashboard/text.h"

struct feed_tally;

enum metric_type { GAUGE, COUNTER, HISTOGRAM_OF };

enum metric_sort {
	SORT_ONE,
	SORT_TENANT,
	SORT_AMOUNT,
	SORT_GUARD,
	SORT_REFUSAL,
	SORT_DETAIL,
	SORT_VERB,
	SORT_RATE,
	SORT_RATE_LIMIT,
	SORT_PACE,
	SORT_GROUP,
	SORT_HISTOGRAM,
	SORTS
};

/* Of SORT_GROUP: whose numbers they are. */
enum metric_source { OF_TALLIES, OF_GAUGES };

/* Where a number is read. */
struct metric_place {
	const struct sample *sample;
	const struct proto_row *row;
	const struct proto_guard *guard;
	const struct feed_tally *tally;
	const struct proto_details *details;
	const struct proto_rate *rate;
	const struct proto_pace *pace;
	int kind, class;
};

struct metric {
	enum metric_sort sort;
	const char *name;
	enum metric_type type;
	unsigned scopes; /* of SORT_GROUP: enum metric_source */
	const char *unit;
	const char *help;
	int64_t (*value)(const struct metric_place *place);
	bool (*known)(const struct metric_place *place);
	const char *group, *label; /* of SORT_GROUP */
};

/* An owner's labels, written once for all its numbers. */
struct labels {
	struct text text; /* 'tenant="a",device="b",', or less */
	unsigned scope;
};

struct writer {
	struct text out;
	enum metrics_format format;
	const struct sample *sample;
	struct feed *feed;
	struct labels *labels;	       /* of each of the sample's rows, */
	struct labels *details_labels; /* and of its details; the scope is TENANT or TENANT_DEVICE */
};

/* Owners of amounts. */
enum { HOST = 1, DEVICE = 2, TENANT = 4, TENANT_DEVICE = 8 };

/* The metric that is being written. Its head comes with its first number. */
struct family {
	struct text name; /* without _total */
	const struct metric *metric;
	const char *unit;
	bool begun;
};

struct family family_make(const struct metric *metric, const char *scope, const char *unit);
void family_begin(struct writer *writer, struct family *family);

/* One number. The labels end with a comma, or are empty, as is the label that follows them. A
 * number in nanoseconds is written in seconds. */
void number_write(struct writer *writer, struct family *family, const struct text *labels,
		  const char *label, const char *label_value, int64_t value, bool nanoseconds);
/* Adds 'name="value",' with what a label may not have as such escaped. */
void label_append(struct text *text, const char *name, const char *value);
void number_add_seconds(struct text *text, uint64_t ns);

/* The sorts that come from the details of tenants. */
void metric_write_details(struct writer *writer, const struct metric *metric);
void metric_write_verbs(struct writer *writer, const struct metric *metric);
void metric_write_rates(struct writer *writer, const struct metric *metric);
void metric_write_group(struct writer *writer, const struct metric *metric);
void metric_write_histogram(struct writer *writer, const struct metric *metric);

/* The sorts that come from what the policy sets besides limits. */
void metric_write_rate_limits(struct writer *writer, const struct metric *metric);
void metric_write_paces(struct writer *writer, const struct metric *metric);

/* Calls of a class that reached the provider. */
uint64_t verb_calls(const struct verb_tally *verb);

#endif
