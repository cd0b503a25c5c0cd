/* SPDX-License-Identifier: MIT */
/* Observing a collector and its processes; see observation.h. */
#include "advice/observation.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/proc.h"
#include "proto/client.h"
#include "view/status.h"

void observation_begin(struct observation *observation)
{
	*observation = (struct observation){
		.rows = { .size = sizeof(struct proto_row) },
		.details = { .size = sizeof(struct proto_details) },
		.guards = { .size = sizeof(struct proto_guard) },
		.rates = { .size = sizeof(struct proto_rate) },
		.churns = { .size = sizeof(struct churn) },
		.memlocks = { .size = sizeof(struct memlock) },
	};
}

void observation_free(struct observation *observation)
{
	free(observation->rows.row);
	free(observation->details.row);
	free(observation->guards.row);
	free(observation->rates.row);
	free(observation->churns.row);
	free(observation->memlocks.row);
	observation_begin(observation);
}

int observation_take_row(const void *received, void *closure)
{
	struct proto_row *row = list_add(&((struct observation *)closure)->rows);

	*row = *(const struct proto_row *)received;
	proto_text(row->tenant);
	proto_text(row->device);
	proto_text(row->command);
	return 0;
}

int observation_take_details(const void *received, void *closure)
{
	struct proto_details *details = list_add(&((struct observation *)closure)->details);

	*details = *(const struct proto_details *)received;
	proto_text(details->device);
	return 0;
}

int observation_take_guard(const void *received, void *closure)
{
	struct proto_guard *guard = list_add(&((struct observation *)closure)->guards);

	*guard = *(const struct proto_guard *)received;
	proto_text(guard->tenant);
	proto_text(guard->reason);
	return 0;
}

int observation_take_rate(const void *received, void *closure)
{
	struct proto_rate *rate = list_add(&((struct observation *)closure)->rates);

	*rate = *(const struct proto_rate *)received;
	proto_text(rate->tenant);
	return 0;
}

/* ---- processes */

static bool memlock_read(int32_t pid, uint64_t *ret_bytes)
{
	char text[4096];
	const char *line;

	if (proc_read(pid, "limits", text, sizeof(text)) <= 0)
		return false;
	line = strstr(text, "\nMax locked memory");
	if (!line)
		return false;
	line += strlen("\nMax locked memory");
	line += strspn(line, " ");
	*ret_bytes = strncmp(line, "unlimited", 9) ? strtoull(line, NULL, 10) : UNLIMITED;
	return true;
}

static bool row_is_process(const struct proto_row *row)
{
	return row->scope == ROW_PROCESS && !row->device[0];
}

/* What to compare later readings with. */
static void processes_begin(struct observation *observation)
{
	for (size_t i = 0; i < observation->rows.count; i++) {
		const struct proto_row *row = list_at(&observation->rows, i);
		struct memlock *memlock;
		struct churn *churn;
		uint64_t bytes;

		if (!row_is_process(row))
			continue;
		churn = list_add(&observation->churns);
		churn->pid = row->pid;
		memcpy(churn->tenant, row->tenant, sizeof(churn->tenant));
		churn->last = row->used[KIND_mr];
		if (!memlock_read(row->pid, &bytes))
			continue;
		memlock = list_add(&observation->memlocks);
		*memlock = (struct memlock){ row->pid, bytes };
	}
}

static int churn_order(const void *one, const void *other)
{
	const struct churn *a = one, *b = other;

	return (a->pid > b->pid) - (a->pid < b->pid);
}

static int churn_take(const void *received, void *closure)
{
	const struct proto_row *row = received;
	const struct churn key = { .pid = row->pid };
	struct list *churns = closure;
	struct churn *churn;

	if (!row_is_process(row) || !churns->count)
		return 0;
	churn = bsearch(&key, churns->row, churns->count, churns->size, churn_order);
	if (!churn)
		return 0;
	churn->falls += row->used[KIND_mr] < churn->last;
	churn->last = row->used[KIND_mr];
	return 0;
}

static int churns_read(struct observation *observation, const char *path, unsigned readings,
		       char problem[PROBLEM_SIZE])
{
	const struct proto_choose choose = { .flags = CHOOSE_PROCESSES };
	const struct timespec pause = { 0, 50000000 };
	uint64_t begun = clock_now_ns();
	int result = 0;

	if (observation->churns.count)
		qsort(observation->churns.row, observation->churns.count, observation->churns.size,
		      churn_order);
	for (unsigned i = 0; result >= 0 && observation->churns.count && i < readings; i++) {
		nanosleep(&pause, NULL);
		result = proto_rows(path, MESSAGE_GET_PROC_STATS, &choose, churn_take,
				    &observation->churns, 0, problem);
		observation->readings++;
	}
	observation->seconds = (double)(clock_now_ns() - begun) / 1e9;
	return result;
}

int observation_take(struct observation *observation, const char *path, unsigned readings,
		     char problem[PROBLEM_SIZE])
{
	static const struct {
		enum message type;
		proto_row_function *take;
	} questions[] = {
		{ MESSAGE_GET_STATS, observation_take_row },
		{ MESSAGE_GET_PROC_STATS, observation_take_row },
		{ MESSAGE_GET_DETAILS, observation_take_details },
		{ MESSAGE_GUARD, observation_take_guard },
		{ MESSAGE_GET_RATES, observation_take_rate },
	};
	static const struct proto_choose everything;
	int result;

	observation_begin(observation);
	result = proto_call(path, MESSAGE_STATUS, NULL, &observation->status, NULL, 0, 0, problem);
	for (unsigned i = 0; result >= 0 && i < sizeof(questions) / sizeof(questions[0]); i++)
		result = proto_rows(path, questions[i].type, &everything, questions[i].take,
				    observation, 0, problem);
	if (result >= 0) {
		status_read(&observation->status);
		processes_begin(observation);
		result = churns_read(observation, path, readings, problem);
	}
	if (result < 0)
		observation_free(observation);
	return result < 0 ? result : 0;
}
