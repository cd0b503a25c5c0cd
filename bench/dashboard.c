/* SPDX-License-Identifier: MIT */
/*
 * What the dashboard needs for 1,000 tenants with 4,000 processes: the text of /metrics, a second
 * of history, and the documents of processes. Figures for docs/benchmarks.md; exits with 1 when
 * /metrics takes 100 ms or more.
 */
#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "dashboard/feed.h"
#include "dashboard/metrics.h"
#include "dashboard/recent.h"
#include "dashboard/state.h"
#include "view/owner.h"

enum { TENANTS = 1000, PROCESSES = 4000, ROUNDS = 5, METRICS_MOST_MS = 100 };

/* The kinds that a program with queue pairs uses. */
static const enum kind used[] = { KIND_ctx, KIND_pd, KIND_cq, KIND_qp, KIND_mr, KIND_mr_bytes,
				  KIND_cqe, KIND_send_wr, KIND_recv_wr };

static struct proto_row row_make(enum proto_scope scope, unsigned number, const char *device)
{
	struct proto_row row = { .scope = scope, .processes = 4, .pid = (int32_t)number + 1 };

	if (scope != ROW_HOST)
		snprintf(row.tenant, sizeof(row.tenant), "tenant-%u", number % TENANTS);
	strcpy(row.device, device);
	for (int kind = 0; kind < KIND_COUNT; kind++)
		row.limit[kind] = row.configured[kind] = row.process_limit[kind] = UNLIMITED;
	for (unsigned i = 0; i < sizeof(used) / sizeof(used[0]); i++) {
		row.used[used[i]] = row.granted[used[i]] = row.peak[used[i]] = 1000 + number;
		row.peak_time[used[i]] = scope == ROW_PROCESS ? 0 : 1800000000;
		row.limit[used[i]] = row.configured[used[i]] = 100000;
	}
	return row;
}

/* The classes of verbs that such a program calls. */
static const enum verb_class called[] = { VERB_create_qp,    VERB_destroy_qp,	 VERB_modify_qp,
					  VERB_create_cq,    VERB_destroy_cq,	 VERB_reg_mr,
					  VERB_dereg_mr,     VERB_create_other, VERB_destroy_other };

static struct proto_details details_of(unsigned tenant, const char *device)
{
	struct proto_details details = { .pid = 0 };

	snprintf(details.tenant, sizeof(details.tenant), "tenant-%u", tenant % TENANTS);
	strcpy(details.device, device);
	for (unsigned i = 0; !*device && i < sizeof(called) / sizeof(called[0]); i++) {
		struct verb_tally *verb = &details.tallies.verb[called[i]];

		verb->ns = 123456789ull * (tenant + 1);
		for (unsigned bucket = 2; bucket < 12; bucket++)
			verb->latency[bucket] = 1000 * bucket + tenant;
	}
	return details;
}

static struct sample *sample_large(uint64_t second)
{
	struct sample *sample = sample_make("");

	sample->up = true;
	sample->time_ns += second * CLOCK_SECOND_NS;
	for (unsigned tenant = 0; tenant <= TENANTS; tenant++)
		for (int on_device = 0; on_device < 2; on_device++) {
			struct proto_row row = row_make(tenant ? ROW_TENANT : ROW_HOST, tenant,
							on_device ? "mlx5_0" : "");

			row.used[KIND_qp] += second;
			sample_row_take(&row, &sample->rows);
			if (tenant) {
				struct proto_details details = details_of(tenant, row.device);

				sample_details_take(&details, &sample->details->rows);
			}
		}
	return sample;
}

/* Processor time: other programs do not count. */
static uint64_t worked_ns(void)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

static double ms_since(uint64_t begun)
{
	return (double)(worked_ns() - begun) / 1e6;
}

int main(void)
{
	struct feed *feed = feed_make("", NULL, NULL);
	struct recent *recent = recent_make();
	double slowest = 0;
	uint64_t begun;

	printf("%d tenants, %d processes, one device, %zu kinds in use\n", TENANTS, PROCESSES,
	       sizeof(used) / sizeof(used[0]));
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct sample *sample = sample_large(i);
		struct body *body;
		double ms;

		begun = worked_ns();
		body = metrics_of(sample, feed, i % 2 ? METRICS_OPENMETRICS : METRICS_PROMETHEUS);
		ms = ms_since(begun);
		slowest = ms > slowest ? ms : slowest;
		printf("/metrics: %.1f ms, %.1f MB\n", ms, (double)body->text.length / 1e6);
		body_release(body);
		begun = worked_ns();
		recent_add(recent, sample);
		printf("a second of history: %.1f ms\n", ms_since(begun));
		sample_release(sample);
	}
	for (unsigned i = 0; i < 2; i++) {
		struct text text = { .data = NULL };

		begun = worked_ns();
		for (unsigned number = 0; number < PROCESSES; number++) {
			struct proto_row row = row_make(ROW_PROCESS, number, "");

			state_next(&text);
			state_write_owner(&text, process_columns, &row);
		}
		printf("processes of /api/state: %.0f ms, %.1f MB\n", ms_since(begun),
		       (double)text.length / 1e6);
		text_free(&text);
	}
#if __GLIBC_PREREQ(2, 33)
	printf("memory in use: %.0f MB\n", (double)mallinfo2().uordblks / 1e6);
#endif
	if (slowest < METRICS_MOST_MS)
		return 0;
	printf("missed: /metrics takes %d ms or more\n", METRICS_MOST_MS);
	return 1;
}
