/* SPDX-License-Identifier: MIT */
/* Metrics of rates and paces that the policy sets; see metrics.def. */
#include "dashboard/metrics_parts.h"

#include "dashboard/sample.h"
#include "terms/rates.h"

void metric_write_rate_limits(struct writer *writer, const struct metric *metric)
{
	struct family family = family_make(metric, "", "");

	for (size_t i = 0; i < writer->sample->rates.count; i++) {
		struct metric_place place = { .rate = list_at(&writer->sample->rates, i) };
		const struct proto_rate *rate = place.rate;
		struct text labels = { .data = NULL };

		if (rate->class >= RATE_CLASSES || rate->owner >= RATE_OWNERS)
			continue;
		label_append(&labels, "tenant", rate->tenant);
		label_append(&labels, "of", rate_owner_names[rate->owner]);
		number_write(writer, &family, &labels, "verb", rate_rows[rate->class].name,
			     metric->value(&place), false);
		text_free(&labels);
	}
	text_free(&family.name);
}

void metric_write_paces(struct writer *writer, const struct metric *metric)
{
	struct family family = family_make(metric, "", "");

	for (size_t i = 0; i < writer->sample->paces.count; i++) {
		struct metric_place place = { .pace = list_at(&writer->sample->paces, i) };
		struct text labels = { .data = NULL };

		if (!metric->value(&place))
			continue;
		label_append(&labels, "tenant", place.pace->tenant);
		number_write(writer, &family, &labels, NULL, NULL, metric->value(&place), false);
		text_free(&labels);
	}
	text_free(&family.name);
}
