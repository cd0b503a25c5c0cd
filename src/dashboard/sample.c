/* SPDX-License-Identifier: MIT */
/* Asking the collector; see sample.h. */
#include "dashboard/sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "output/memory.h"
#include "view/rule.h"

static struct sample_details *details_none(void)
{
	struct sample_details *details = memory_need(calloc(1, sizeof(*details)));

	details->references = 1;
	details->rows.size = sizeof(struct proto_details);
	return details;
}

static void details_release(struct sample_details *details)
{
	if (__atomic_sub_fetch(&details->references, 1, __ATOMIC_ACQ_REL))
		return;
	free(details->rows.row);
	free(details);
}

struct sample *sample_make(const char *socket)
{
	struct sample *sample = memory_need(calloc(1, sizeof(*sample)));

	sample->references = 1;
	sample->time_ns = clock_ns(CLOCK_REALTIME);
	sample->rows.size = sizeof(struct proto_row);
	sample->rules.size = sizeof(struct proto_rule);
	sample->guards.size = sizeof(struct proto_guard);
	sample->rates.size = sizeof(struct proto_rate);
	sample->paces.size = sizeof(struct proto_pace);
	sample->details = details_none();
	pthread_mutex_init(&sample->lock, NULL);
	snprintf(sample->collector.socket, sizeof(sample->collector.socket), "%s", socket);
	return sample;
}

int sample_row_take(const void *received, void *rows)
{
	struct proto_row *row = list_add(rows);

	*row = *(const struct proto_row *)received;
	proto_text(row->tenant);
	proto_text(row->device);
	proto_text(row->command);
	return 0;
}

static int guard_row_append(const void *received, void *guards)
{
	struct proto_guard *guard = list_add(guards);

	*guard = *(const struct proto_guard *)received;
	proto_text(guard->tenant);
	proto_text(guard->reason);
	return 0;
}

static int rate_row_append(const void *received, void *rates)
{
	struct proto_rate *rate = list_add(rates);

	*rate = *(const struct proto_rate *)received;
	proto_text(rate->tenant);
	return 0;
}

static int pace_row_append(const void *received, void *paces)
{
	struct proto_pace *pace = list_add(paces);

	*pace = *(const struct proto_pace *)received;
	proto_text(pace->tenant);
	proto_text(pace->held);
	return 0;
}

int sample_details_take(const void *received, void *rows)
{
	struct proto_details *row = list_add(rows);

	*row = *(const struct proto_details *)received;
	proto_text(row->tenant);
	proto_text(row->device);
	return 0;
}

static void list_copy(struct list *list, const struct list *from)
{
	list->row = from->count ? memory_need(malloc(from->count * from->size)) : NULL;
	list->count = from->count;
	if (from->count)
		memcpy(list->row, from->row, from->count * from->size);
}

struct sample *sample_take(const char *socket, const struct sample *before)
{
	static const struct proto_choose everything, tenants = { .flags = CHOOSE_TENANTS };
	struct sample *sample = sample_make(socket);
	struct {
		enum message type;
		proto_row_function *take;
		struct list *into;
		const struct list *from; /* NULL: always asked for */
	} const questions[] = {
		{ MESSAGE_GET_STATS, sample_row_take, &sample->rows, NULL },
		{ MESSAGE_GET_RULES, rule_take, &sample->rules, &before->rules },
		{ MESSAGE_GUARD, guard_row_append, &sample->guards, &before->guards },
		{ MESSAGE_GET_RATES, rate_row_append, &sample->rates, &before->rates },
		{ MESSAGE_GET_PACES, pace_row_append, &sample->paces, &before->paces },
	};
	uint64_t now = clock_now_ns();
	bool fresh = before->up &&
		     now - before->seldom_ns < (uint64_t)SAMPLE_SELDOM_S * CLOCK_SECOND_NS;
	bool details_fresh = before->up && now - before->details->asked_ns <
						   (uint64_t)SAMPLE_DETAILS_S * CLOCK_SECOND_NS;
	int result = proto_call(socket, MESSAGE_STATUS, NULL, &sample->collector.status, NULL, 0, 0,
				sample->problem);

	sample->seldom_ns = fresh ? before->seldom_ns : now;
	for (unsigned i = 0; result >= 0 && i < sizeof(questions) / sizeof(questions[0]); i++)
		if (fresh && questions[i].from)
			list_copy(questions[i].into, questions[i].from);
		else
			result = proto_rows(socket, questions[i].type, &everything,
					    questions[i].take, questions[i].into, 0,
					    sample->problem);
	if (result >= 0 && details_fresh) {
		details_release(sample->details);
		sample->details = before->details;
		__atomic_add_fetch(&before->details->references, 1, __ATOMIC_RELAXED);
	} else if (result >= 0) {
		sample->details->asked_ns = now;
		result = proto_rows(socket, MESSAGE_GET_DETAILS, &tenants, sample_details_take,
				    &sample->details->rows, 0, sample->problem);
	}
	if (result < 0) {
		/* An incomplete answer is not used. */
		sample->rows.count = sample->rules.count = sample->guards.count = 0;
		sample->rates.count = sample->paces.count = 0;
		details_release(sample->details);
		sample->details = details_none();
		return sample;
	}
	status_read(&sample->collector.status);
	sample->up = true;
	sample->problem[0] = '\0';
	return sample;
}

struct sample *sample_hold(struct sample *sample)
{
	__atomic_add_fetch(&sample->references, 1, __ATOMIC_RELAXED);
	return sample;
}

void sample_release(struct sample *sample)
{
	if (!sample || __atomic_sub_fetch(&sample->references, 1, __ATOMIC_ACQ_REL))
		return;
	for (int i = 0; i < METRICS_FORMATS; i++)
		body_release(sample->metrics[i]);
	pthread_mutex_destroy(&sample->lock);
	free(sample->rows.row);
	free(sample->rules.row);
	free(sample->guards.row);
	free(sample->rates.row);
	free(sample->paces.row);
	details_release(sample->details);
	free(sample);
}
