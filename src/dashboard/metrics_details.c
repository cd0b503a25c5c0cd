/* SPDX-License-Identifier: MIT */
/* The metrics that come from what processes count: verbs, latencies, rates, posts, events and
 * queue pairs; see metrics_parts.h. */
#include <stdio.h>
#include <string.h>

#include "dashboard/metrics_parts.h"

/* Of the buckets of a histogram, a tenant's has every so many: 1,000 tenants have thousands. */
enum { TENANT_BUCKETS = 3 };

static const struct proto_details *details_at(const struct writer *writer, size_t index)
{
	return list_at(&writer->sample->details->rows, index);
}

static size_t details_count(const struct writer *writer)
{
	return writer->sample->details->rows.count;
}

static bool metric_is_in_nanoseconds(const struct metric *metric)
{
	return !strcmp(metric->unit, "seconds");
}

void metric_write_details(struct writer *writer, const struct metric *metric)
{
	struct family family = family_make(metric, "tenant_", metric->unit);

	for (size_t i = 0; i < details_count(writer); i++) {
		struct metric_place place = { .details = details_at(writer, i) };

		if (writer->details_labels[i].scope == TENANT && metric->known(&place))
			number_write(writer, &family, &writer->details_labels[i].text, NULL, NULL,
				     metric->value(&place), metric_is_in_nanoseconds(metric));
	}
	text_free(&family.name);
}

/* ---- classes of verbs */

uint64_t verb_calls(const struct verb_tally *verb)
{
	uint64_t calls = 0;

	for (unsigned i = 0; i < LATENCY_BUCKETS; i++)
		calls += verb->latency[i];
	return calls;
}

static bool rate_is_used(const struct proto_details *details, int class)
{
	for (unsigned i = 0; i < RATE_TALLIES; i++)
		if (details->tallies.rate[i][class])
			return true;
	return false;
}

static bool verb_is_used(const struct proto_details *details, int class)
{
	const struct verb_tally *verb = &details->tallies.verb[class];

	return verb->refused || verb_calls(verb);
}

/* A number of each tenant and class. */
static void classes_write(struct writer *writer, const struct metric *metric, int classes,
			  bool (*is_used)(const struct proto_details *details, int class),
			  const char *(*name)(int class))
{
	struct family family = family_make(metric, "tenant_", metric->unit);

	for (size_t i = 0; i < details_count(writer); i++) {
		struct metric_place place = { .details = details_at(writer, i) };

		if (writer->details_labels[i].scope != TENANT)
			continue;
		for (place.class = 0; place.class < classes; place.class++)
			if (is_used(place.details, place.class))
				number_write(writer, &family, &writer->details_labels[i].text,
					     "verb", name(place.class), metric->value(&place),
					     metric_is_in_nanoseconds(metric));
	}
	text_free(&family.name);
}

static const char *verb_class_name(int class)
{
	return verb_class_rows[class].name;
}

static const char *rate_class_name(int class)
{
	return rate_rows[class].name;
}

void metric_write_verbs(struct writer *writer, const struct metric *metric)
{
	classes_write(writer, metric, VERB_CLASSES, verb_is_used, verb_class_name);
}

void metric_write_rates(struct writer *writer, const struct metric *metric)
{
	classes_write(writer, metric, RATE_CLASSES, rate_is_used, rate_class_name);
}

/* ---- groups of rows */

void metric_write_group(struct writer *writer, const struct metric *metric)
{
	bool gauges = metric->scopes == OF_GAUGES;
	const struct tally_row *rows = gauges ? gauge_rows : tally_rows;
	unsigned count = gauges ? gauge_count : tally_count, first = 0, end;
	struct family family =
		family_make(metric, gauges ? "tenant_device_" : "tenant_", metric->unit);

	while (first < count && strcmp(rows[first].group, metric->group))
		first++;
	for (end = first; end < count && !strcmp(rows[end].group, metric->group); end++)
		;
	for (size_t i = 0; i < details_count(writer); i++) {
		const struct proto_details *details = details_at(writer, i);
		const void *structure = gauges ? (const void *)&details->gauges :
						 (const void *)&details->tallies;

		if (writer->details_labels[i].scope != (gauges ? TENANT_DEVICE : TENANT))
			continue;
		for (unsigned row = first; row < end; row++) {
			uint64_t value = tally_value(structure, &rows[row]);

			if (value || gauges)
				number_write(writer, &family, &writer->details_labels[i].text,
					     metric->label, rows[row].name, (int64_t)value, false);
		}
	}
	text_free(&family.name);
}

/* ---- latencies */

/* 'NAME_bucket{LABELSverb="CLASS",le="', once for all buckets. */
static struct text histogram_line(const struct family *family, const char *suffix,
				  const struct text *labels, int class)
{
	struct text line = { .data = NULL };

	text_append(&line, family->name.data, family->name.length);
	text_add(&line, suffix);
	text_append(&line, "{", 1);
	text_append(&line, labels->data, labels->length);
	text_print(&line, "verb=\"%s\"", verb_class_name(class));
	return line;
}

static void histogram_write(struct writer *writer, struct family *family,
			    const struct text *labels, int class, const struct verb_tally *verb,
			    unsigned each)
{
	struct text bucket = histogram_line(family, "_bucket", labels, class);
	struct text sum = histogram_line(family, "_sum", labels, class);
	struct text count = histogram_line(family, "_count", labels, class);
	struct text *out = &writer->out;
	uint64_t calls = 0;

	family_begin(writer, family);
	for (unsigned i = 0; i < LATENCY_BUCKETS; i++) {
		bool last = i == LATENCY_BUCKETS - 1;

		calls += verb->latency[i];
		if (!last && i % each)
			continue;
		text_append(out, bucket.data, bucket.length);
		text_add(out, ",le=\"");
		if (last)
			text_add(out, "+Inf");
		else
			number_add_seconds(out, 1ull << (LATENCY_LEAST + i));
		text_add(out, "\"} ");
		text_add_number(out, (int64_t)calls);
		text_append(out, "\n", 1);
	}
	text_append(out, sum.data, sum.length);
	text_add(out, "} ");
	number_add_seconds(out, verb->ns);
	text_append(out, "\n", 1);
	text_append(out, count.data, count.length);
	text_add(out, "} ");
	text_add_number(out, (int64_t)calls);
	text_append(out, "\n", 1);
	text_free(&bucket);
	text_free(&sum);
	text_free(&count);
}

void metric_write_histogram(struct writer *writer, const struct metric *metric)
{
	static const struct text no_labels;
	struct family host = family_make(metric, "host_", metric->unit);
	struct family tenant = family_make(metric, "tenant_", metric->unit);
	struct tallies sum = { 0 };

	for (size_t i = 0; i < details_count(writer); i++)
		if (writer->details_labels[i].scope == TENANT)
			tallies_add(&sum, &details_at(writer, i)->tallies);
	for (int class = 0; class < VERB_CLASSES; class++)
		if (verb_calls(&sum.verb[class]))
			histogram_write(writer, &host, &no_labels, class, &sum.verb[class], 1);
	for (size_t i = 0; i < details_count(writer); i++)
		for (int class = 0; class < VERB_CLASSES; class++) {
			const struct verb_tally *verb =
				&details_at(writer, i)->tallies.verb[class];

			if (writer->details_labels[i].scope == TENANT && verb_calls(verb))
				histogram_write(writer, &tenant, &writer->details_labels[i].text,
						class, verb, TENANT_BUCKETS);
		}
	text_free(&host.name);
	text_free(&tenant.name);
}
