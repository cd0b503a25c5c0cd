/* SPDX-License-Identifier: MIT */
/*
 * Writing metrics; see metrics.h. The rows of metrics.def become functions that read a number and
 * entries of one table; the loops below know which labels each sort of row has, and no metric.
 */
#include "dashboard/metrics_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "dashboard/feed.h"
#include "output/form.h"
#include "output/memory.h"
#include "terms/fair.h"

const char *const metrics_types[METRICS_FORMATS] = {
	[METRICS_PROMETHEUS] = "text/plain; version=0.0.4; charset=utf-8",
	[METRICS_OPENMETRICS] = "application/openmetrics-text; version=1.0.0; charset=utf-8",
};

/* ---- the table */

enum {
	BOTH_TENANT = TENANT | TENANT_DEVICE,
	TOTALS = HOST | TENANT,
	ALL = HOST | DEVICE | TENANT | TENANT_DEVICE,
};

static const struct proto_guard *guard_host(const struct sample *sample)
{
	return list_at(&sample->guards, 0);
}

static unsigned rules_in_force(const struct sample *sample)
{
	unsigned count = 0;

	for (size_t i = 0; i < sample->rules.count; i++)
		count += ((const struct proto_rule *)list_at(&sample->rules, i))->in_force != 0;
	return count;
}

/* 0: there is no such pace. */
static uint64_t pace_limit(const struct pace_rate *rate)
{
	return pace_rate_is_limit(rate) ? rate->per_second : 0;
}

#define VALUE(name, variable, expression)                                                          \
	static int64_t value_##name(const struct metric_place *place)                              \
	{                                                                                          \
		variable;                                                                          \
		return (int64_t)(expression);                                                      \
	}
#define KIND_AT const int kind = place->kind
#define ONE(name, type, unit, help, value)                                                         \
	VALUE(name, const struct sample *sample = place->sample, value)
#define TENANT(name, type, help, value) VALUE(name, const struct proto_row *row = place->row, value)
#define AMOUNT(name, type, scopes, help, value, known)                                             \
	VALUE(name, const struct proto_row *row = place->row; KIND_AT, value)                      \
	static bool known_##name(const struct metric_place *place)                                 \
	{                                                                                          \
		const struct proto_row *row = place->row;                                          \
		KIND_AT;                                                                           \
                                                                                                   \
		(void)row, (void)kind;                                                             \
		return known;                                                                      \
	}
#define MOMENT(name, scopes, help, value, known) AMOUNT(name, GAUGE, scopes, help, value, known)
#define GUARD(name, type, help, value)                                                             \
	VALUE(name, const struct proto_guard *guard = place->guard; KIND_AT, value)
#define REFUSAL(name, type, help, value)                                                           \
	VALUE(name, const struct feed_tally *tally = place->tally, value)
#define DETAILS_AT                                                                                 \
	const struct tallies *tallies = &place->details->tallies;                                  \
	const struct posted *posted = &place->details->gauges.posted;                              \
                                                                                                   \
	(void)tallies;                                                                             \
	(void)posted
#define DETAIL(name, type, unit, help, value, known)                                               \
	VALUE(name, DETAILS_AT, value)                                                             \
	static bool known_##name(const struct metric_place *place)                                 \
	{                                                                                          \
		DETAILS_AT;                                                                        \
		return known;                                                                      \
	}
#define VERB(name, type, help, value)                                                              \
	VALUE(name, const struct verb_tally *verb = &place->details->tallies.verb[place->class],    \
	      value)
#define RATE(name, type, unit, help, tally)                                                        \
	VALUE(name, (void)0, place->details->tallies.rate[tally][place->class])
#define RATE_LIMIT(name, help, value)                                                              \
	VALUE(name, const struct proto_rate *rate = place->rate, value)
#define PACE(name, help, value) VALUE(name, const struct proto_pace *pace = place->pace, value)
#define GROUP(name, type, source, group, label, help)
#define HISTOGRAM(name, unit, help)
#include "dashboard/metrics.def"

static const struct metric metrics[] = {
#define ONE(name, type, unit, help, value)                                                         \
	{ SORT_ONE, #name, type, 0, unit, help, value_##name, NULL, NULL, NULL },
#define TENANT(name, type, help, value)                                                            \
	{ SORT_TENANT, #name, type, 0, "", help, value_##name, NULL, NULL, NULL },
#define AMOUNT(name, type, scopes, help, value, known)                                             \
	{ SORT_AMOUNT, #name, type, scopes, "", help, value_##name, known_##name, NULL, NULL },
#define MOMENT(name, scopes, help, value, known)                                                   \
	{ SORT_AMOUNT, #name, GAUGE, scopes, "seconds", help, value_##name, known_##name, NULL, NULL },
#define GUARD(name, type, help, value)                                                             \
	{ SORT_GUARD, #name, type, 0, "", help, value_##name, NULL, NULL, NULL },
#define REFUSAL(name, type, help, value)                                                           \
	{ SORT_REFUSAL, #name, type, 0, "", help, value_##name, NULL, NULL, NULL },
#define DETAIL(name, type, unit, help, value, known)                                               \
	{ SORT_DETAIL, #name, type, 0, unit, help, value_##name, known_##name, NULL, NULL },
#define VERB(name, type, help, value)                                                              \
	{ SORT_VERB, #name, type, 0, "", help, value_##name, NULL, NULL, NULL },
#define RATE(name, type, unit, help, tally)                                                        \
	{ SORT_RATE, #name, type, 0, unit, help, value_##name, NULL, NULL, NULL },
#define RATE_LIMIT(name, help, value)                                                              \
	{ SORT_RATE_LIMIT, #name, GAUGE, 0, "", help, value_##name, NULL, NULL, NULL },
#define PACE(name, help, value)                                                                    \
	{ SORT_PACE, #name, GAUGE, 0, "", help, value_##name, NULL, NULL, NULL },
#define GROUP(name, type, source, group, label, help)                                              \
	{ SORT_GROUP, #name, type, source, "", help, NULL, NULL, group, label },
#define HISTOGRAM(name, unit, help)                                                                \
	{ SORT_HISTOGRAM, #name, HISTOGRAM_OF, 0, unit, help, NULL, NULL, NULL, NULL },
#include "dashboard/metrics.def"
};

/* ---- writing */

void label_append(struct text *text, const char *name, const char *value)
{
	/* What is not UTF-8 is not a label either. */
	json_t *valid = form_json_text(value);

	text_print(text, "%s=\"", name);
	for (const char *at = json_is_string(valid) ? json_string_value(valid) : ""; *at; at++)
		switch (*at) {
		case '\n':
			text_add(text, "\\n");
			break;
		case '\\':
		case '"':
			text_append(text, "\\", 1);
			/* fall through */
		default:
			text_append(text, at, 1);
		}
	text_add(text, "\",");
	json_decref(valid);
}

struct family family_make(const struct metric *metric, const char *scope, const char *unit)
{
	struct family family = { .metric = metric, .unit = unit };

	text_print(&family.name, "rdma_intercept_%s%s%s%s", scope, metric->name, *unit ? "_" : "",
		   unit);
	return family;
}

static void family_name_add(struct writer *writer, const struct family *family, bool total)
{
	text_append(&writer->out, family->name.data, family->name.length);
	if (total && family->metric->type == COUNTER)
		text_add(&writer->out, "_total");
}

void family_begin(struct writer *writer, struct family *family)
{
	static const char *const types[] = { [GAUGE] = " gauge\n",
					     [COUNTER] = " counter\n",
					     [HISTOGRAM_OF] = " histogram\n" };
	bool total = writer->format == METRICS_PROMETHEUS;

	if (family->begun)
		return;
	family->begun = true;
	text_add(&writer->out, "# HELP ");
	family_name_add(writer, family, total);
	text_print(&writer->out, " %s\n# TYPE ", family->metric->help);
	family_name_add(writer, family, total);
	text_add(&writer->out, types[family->metric->type]);
	if (!total && *family->unit) {
		text_add(&writer->out, "# UNIT ");
		family_name_add(writer, family, false);
		text_print(&writer->out, " %s\n", family->unit);
	}
}

void number_add_seconds(struct text *text, uint64_t ns)
{
	char digits[16];

	text_add_number(text, (int64_t)(ns / CLOCK_SECOND_NS));
	ns %= CLOCK_SECOND_NS;
	if (!ns)
		return;
	digits[0] = '.';
	for (int i = 9; i > 0; i--, ns /= 10)
		digits[i] = (char)('0' + ns % 10);
	text_append(text, digits, 10);
}

void number_write(struct writer *writer, struct family *family, const struct text *labels,
		  const char *label, const char *label_value, int64_t value, bool nanoseconds)
{
	family_begin(writer, family);
	family_name_add(writer, family, true);
	if (labels->length || label) {
		text_append(&writer->out, "{", 1);
		text_append(&writer->out, labels->data, labels->length);
		if (label) {
			text_add(&writer->out, label);
			text_append(&writer->out, "=\"", 2);
			text_add(&writer->out, label_value);
			text_append(&writer->out, "\"", 1);
		} else {
			writer->out.length--; /* the comma */
		}
		text_append(&writer->out, "}", 1);
	}
	text_append(&writer->out, " ", 1);
	if (nanoseconds)
		number_add_seconds(&writer->out, (uint64_t)value);
	else
		text_add_number(&writer->out, value);
	text_append(&writer->out, "\n", 1);
}

/* The same of a kind (-1: of none). */
static void amount_write(struct writer *writer, struct family *family, const struct text *labels,
			 int kind, int64_t value)
{
	number_write(writer, family, labels, kind < 0 ? NULL : "resource",
		     kind < 0 ? NULL : kind_rows[kind].name, value, false);
}

static const struct text no_labels;

/* ---- sorts of metrics */

static void metric_write_one(struct writer *writer, const struct metric *metric)
{
	struct family family = family_make(metric, "", metric->unit);
	struct metric_place place = { .sample = writer->sample };

	amount_write(writer, &family, &no_labels, -1, metric->value(&place));
	text_free(&family.name);
}

static void metric_write_tenants(struct writer *writer, const struct metric *metric)
{
	struct family family = family_make(metric, "", "");

	for (size_t i = 0; i < writer->sample->rows.count; i++) {
		struct metric_place place = { .row = list_at(&writer->sample->rows, i) };

		if (writer->labels[i].scope == TENANT)
			amount_write(writer, &family, &writer->labels[i].text, -1,
				     metric->value(&place));
	}
	text_free(&family.name);
}

/* Once used, a kind stays: a number that vanishes when it becomes 0 cannot be added up. */
static bool kind_matters(const struct proto_row *row, int kind)
{
	return row->peak[kind] || row->used[kind] || row->granted[kind] || row->refused[kind] ||
	       row->tolerated[kind] ||
	       row->drift[kind] || row->limit[kind] != UNLIMITED ||
	       row->process_limit[kind] != UNLIMITED ||
	       (row->flags & ROW_WATCHED && row->kernel[kind] &&
		row->kernel[kind] != PROTO_UNKNOWN);
}

/* Of the kinds with this unit; or of all, if the metric has a unit of its own. */
static void amounts_write(struct writer *writer, const struct metric *metric, unsigned scope,
			  const char *prefix, enum kind_unit unit)
{
	struct family family = family_make(metric, prefix,
					   *metric->unit	? metric->unit :
					   unit == UNIT_BYTES ? "bytes" :
								"");

	for (size_t i = 0; i < writer->sample->rows.count; i++) {
		struct metric_place place = { .row = list_at(&writer->sample->rows, i) };

		if (writer->labels[i].scope != scope)
			continue;
		for (place.kind = 0; place.kind < KIND_COUNT; place.kind++)
			if ((kind_rows[place.kind].unit == unit || *metric->unit) &&
			    kind_matters(place.row, place.kind) && metric->known(&place))
				amount_write(writer, &family, &writer->labels[i].text, place.kind,
					     metric->value(&place));
	}
	text_free(&family.name);
}

static void metric_write_amounts(struct writer *writer, const struct metric *metric)
{
	static const struct {
		unsigned scope;
		const char *prefix;
	} scopes[] = {
		{ HOST, "host_" },
		{ DEVICE, "device_" },
		{ TENANT, "tenant_" },
		{ TENANT_DEVICE, "tenant_device_" },
	};

	for (unsigned i = 0; i < sizeof(scopes) / sizeof(scopes[0]); i++) {
		if (!(metric->scopes & scopes[i].scope))
			continue;
		amounts_write(writer, metric, scopes[i].scope, scopes[i].prefix, UNIT_COUNT);
		if (!*metric->unit)
			amounts_write(writer, metric, scopes[i].scope, scopes[i].prefix, UNIT_BYTES);
	}
}

static void metric_write_guards(struct writer *writer, const struct metric *metric)
{
	struct family family = family_make(metric, "", "");

	for (size_t i = 1; i < writer->sample->guards.count; i++) {
		struct metric_place place = { .guard = list_at(&writer->sample->guards, i) };
		struct text labels = { .data = NULL };

		if (!place.guard->on)
			continue;
		label_append(&labels, "tenant", place.guard->tenant);
		for (place.kind = 0; place.kind < KIND_COUNT; place.kind++)
			if (place.guard->guarded >> place.kind & 1)
				amount_write(writer, &family, &labels, place.kind,
					     metric->value(&place));
		text_free(&labels);
	}
	text_free(&family.name);
}

struct refusal_writing {
	struct writer *writer;
	struct family family;
};

static void refusals_metric_write(const struct feed_tally *tally, void *closure)
{
	struct refusal_writing *writing = closure;
	struct metric_place place = { .tally = tally };
	struct text labels = { .data = NULL };

	label_append(&labels, "tenant", tally->tenant);
	label_append(&labels, "device", tally->device);
	amount_write(writing->writer, &writing->family, &labels, (int)tally->kind,
		     writing->family.metric->value(&place));
	text_free(&labels);
}

static void metric_write_refusals(struct writer *writer, const struct metric *metric)
{
	struct refusal_writing writing = { writer, family_make(metric, "", "") };

	if (writer->feed)
		feed_visit_tallies(writer->feed, refusals_metric_write, &writing);
	text_free(&writing.family.name);
}

/* ---- all of them */

static struct labels *labels_make(const struct sample *sample)
{
	struct labels *labels = memory_need(calloc(sample->rows.count + 1, sizeof(*labels)));

	for (size_t i = 0; i < sample->rows.count; i++) {
		const struct proto_row *row = list_at(&sample->rows, i);
		bool tenant = row->scope == ROW_TENANT;

		if (row->scope > ROW_TENANT)
			continue; /* of no scope: left out */
		if (tenant)
			label_append(&labels[i].text, "tenant", row->tenant);
		if (row->device[0])
			label_append(&labels[i].text, "device", row->device);
		labels[i].scope = row->device[0] ? (tenant ? TENANT_DEVICE : DEVICE) :
						   (tenant ? TENANT : HOST);
	}
	return labels;
}

static struct labels *details_labels_make(const struct list *details)
{
	struct labels *labels = memory_need(calloc(details->count + 1, sizeof(*labels)));

	for (size_t i = 0; i < details->count; i++) {
		const struct proto_details *row = list_at(details, i);

		label_append(&labels[i].text, "tenant", row->tenant);
		if (row->device[0])
			label_append(&labels[i].text, "device", row->device);
		labels[i].scope = row->device[0] ? TENANT_DEVICE : TENANT;
	}
	return labels;
}

static void labels_free(struct labels *labels, size_t count)
{
	for (size_t i = 0; i < count; i++)
		text_free(&labels[i].text);
	free(labels);
}

static struct body *metrics_write(const struct sample *sample, struct feed *feed,
				  enum metrics_format format)
{
	static void (*const write[SORTS])(struct writer *writer, const struct metric *metric) = {
		[SORT_ONE] = metric_write_one,
		[SORT_TENANT] = metric_write_tenants,
		[SORT_AMOUNT] = metric_write_amounts,
		[SORT_GUARD] = metric_write_guards,
		[SORT_REFUSAL] = metric_write_refusals,
		[SORT_DETAIL] = metric_write_details,
		[SORT_VERB] = metric_write_verbs,
		[SORT_RATE] = metric_write_rates,
		[SORT_RATE_LIMIT] = metric_write_rate_limits,
		[SORT_PACE] = metric_write_paces,
		[SORT_GROUP] = metric_write_group,
		[SORT_HISTOGRAM] = metric_write_histogram,
	};
	static const struct metric build = { .name = "build_info",
					     .type = GAUGE,
					     .help = "The versions of this program and of the "
						     "collector; always 1." };
	struct writer writer = { .format = format, .sample = sample, .feed = feed };
	struct family family = family_make(&build, "", "");
	struct text versions = { .data = NULL };

	writer.labels = labels_make(sample);
	writer.details_labels = details_labels_make(&sample->details->rows);
	label_append(&versions, "version", DASHBOARD_VERSION);
	label_append(&versions, "collector", sample->up ? sample->collector.status.version : "");
	amount_write(&writer, &family, &versions, -1, 1);
	text_free(&versions);
	text_free(&family.name);
	for (unsigned i = 0; i < sizeof(metrics) / sizeof(metrics[0]); i++)
		if (sample->up || i == 0 || metrics[i].sort == SORT_REFUSAL)
			write[metrics[i].sort](&writer, &metrics[i]);
	if (format == METRICS_OPENMETRICS)
		text_add(&writer.out, "# EOF\n");
	labels_free(writer.labels, sample->rows.count);
	labels_free(writer.details_labels, sample->details->rows.count);
	return body_make(&writer.out);
}

struct body *metrics_of(struct sample *sample, struct feed *feed, enum metrics_format format)
{
	struct body *body;

	pthread_mutex_lock(&sample->lock);
	if (!sample->metrics[format])
		sample->metrics[format] = metrics_write(sample, feed, format);
	body = body_hold(sample->metrics[format]);
	pthread_mutex_unlock(&sample->lock);
	return body;
}

enum metrics_format metrics_negotiate(const char *accept)
{
	return accept && strcasestr(accept, "application/openmetrics-text") ? METRICS_OPENMETRICS :
									       METRICS_PROMETHEUS;
}
