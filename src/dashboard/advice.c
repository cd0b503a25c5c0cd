/* SPDX-License-Identifier: MIT */
/* /api/advice: what to change, by the rules of advice/, as `rdma_intercept advise` has it. */
#include "advice/advice.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "dashboard/answers.h"
#include "dashboard/dashboard.h"
#include "dashboard/state.h"
#include "output/memory.h"

/* It is made anew after this time: all processes are asked for. */
#define ADVICE_FRESH_NS (10ull * CLOCK_SECOND_NS)

enum { ADVICE_KEPT = 200 }; /* findings of each rule, for answers about single tenants */

/* Brings the advice up to date, under its lock. 0, or -errno with a sentence. */
static int advice_refresh(struct dashboard *dashboard, char problem[PROBLEM_SIZE])
{
	struct observation observation;
	int result;

	if (dashboard->advice && clock_now_ns() - dashboard->advice_ns < ADVICE_FRESH_NS)
		return 0;
	/* No further readings: other requests would wait for them. */
	result = observation_take(&observation, dashboard->socket, 0, problem);
	if (result < 0)
		return result;
	if (!dashboard->advice) {
		dashboard->advice = memory_need(calloc(1, sizeof(*dashboard->advice)));
		dashboard->advice->size = sizeof(struct advice);
	}
	dashboard->advice->count = 0;
	free(dashboard->advice->row);
	dashboard->advice->row = NULL;
	advice_collect(&observation, NULL, ADVICE_KEPT, dashboard->advice);
	observation_free(&observation);
	dashboard->advice_ns = clock_now_ns();
	return 0;
}

void answer_advice(struct dashboard *dashboard, const struct request *request,
		   struct answer *answer)
{
	struct list chosen = { .size = sizeof(struct advice) };
	struct text text = { .data = NULL };
	char problem[PROBLEM_SIZE];
	int result;

	pthread_mutex_lock(&dashboard->advice_lock);
	result = advice_refresh(dashboard, problem);
	if (result >= 0)
		advice_select(dashboard->advice, request->tenant, ADVICE_MOST, &chosen);
	pthread_mutex_unlock(&dashboard->advice_lock);
	if (result < 0) {
		answer_fail(answer, 503, "%s", problem);
		return;
	}
	if (request->tenant && !state_may_have_tenant(dashboard, request->tenant)) {
		free(chosen.row);
		answer_fail(answer, 404, "tenant: the collector has no tenant '%.100s'",
			    request->tenant);
		return;
	}
	text_add(&text, "{\"advice\":[");
	for (size_t i = 0; i < chosen.count; i++) {
		state_next(&text);
		state_write_record(&text, advice_columns, list_at(&chosen, i));
	}
	free(chosen.row);
	text_add(&text, "]}\n");
	answer_json(answer, 200, &text);
}
