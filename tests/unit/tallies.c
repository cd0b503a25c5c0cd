/* SPDX-License-Identifier: MIT */
/* Counters: buckets of latencies, the rows that name each number, sums, and the counter of cycles. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cycles.h"
#include "harness.h"
#include "terms/tallies.h"

static void buckets(void)
{
	CHECK(latency_bucket(0) == 0 && latency_bucket(1023) == 0);
	for (unsigned bucket = 1; bucket < LATENCY_BUCKETS; bucket++) {
		uint64_t from = 1ull << (LATENCY_LEAST + bucket - 1);

		CHECK(latency_bucket(from) == bucket, "%llu ns", (unsigned long long)from);
		CHECK(latency_bucket(from - 1) == bucket - 1, "just below");
	}
	CHECK(latency_bucket(UINT64_MAX) == LATENCY_BUCKETS - 1);
}

/* Every word of the structures but refused and tolerated, which have columns of their own, is in
 * one row; the latencies are also in the calls, which are their sum. */
static void rows_name_each_number(void)
{
	const size_t first = 2 * KIND_COUNT, words = sizeof(struct tallies) / sizeof(uint64_t);
	struct tallies tallies = { 0 };

	for (size_t word = first; word < words; word++) {
		unsigned plain = 0, latency = 0;

		((uint64_t *)&tallies)[word] = 7;
		for (unsigned i = 0; i < tally_count; i++)
			plain += tally_value(&tallies, &tally_rows[i]) == 7;
		for (unsigned i = 0; i < latency_count; i++)
			latency += tally_value(&tallies, &latency_rows[i]) == 7;
		/* The room for connection events to come has no names. */
		CHECK((plain == 1 && latency <= 1) ||
			      (word >= first + COUNTERS + 19 && word < first + COUNTERS + CM_EVENTS),
		      "word %zu: in %u rows, %u latencies", word, plain, latency);
		((uint64_t *)&tallies)[word] = 0;
	}
	for (unsigned i = 0; i < latency_count; i++) {
		const char *bound = latency_rows[i].name;
		unsigned bucket = i % LATENCY_BUCKETS;

		CHECK(bucket == LATENCY_BUCKETS - 1 ?
			      !strcmp(bound, "longer") :
			      strtoull(bound, NULL, 10) == 1ull << (LATENCY_LEAST + bucket),
		      "bucket %u is called %s", bucket, bound);
	}
}

static void sums(void)
{
	struct tallies sum = { .refused = { 1 }, .counter = { [COUNTER_CQ_GAP_MAX_NS] = 5 } };
	struct tallies one = { .refused = { 2 }, .counter = { [COUNTER_CQ_GAP_MAX_NS] = 3 } };
	struct gauges gauges = { .qp_state = { 1 }, .posted = { .bytes = 10 } };
	struct gauges more = { .qp_state = { 2 },
			       .posted = { .recent = (3ull << POSTED_SHIFT) + 5, .delays = 1 } };

	one.verb[VERB_create_qp].failed = UINT64_MAX;
	sum.verb[VERB_create_qp].failed = 1;
	tallies_add(&sum, &one);
	CHECK(sum.refused[0] == 3);
	CHECK(sum.counter[COUNTER_CQ_GAP_MAX_NS] == 5, "the longest, not the sum");
	CHECK(sum.verb[VERB_create_qp].failed == UINT64_MAX, "it does not wrap around");
	gauges_add(&gauges, &more);
	CHECK(gauges.qp_state[0] == 3 && gauges.posted.bytes == 15 &&
	      gauges.posted.operations == 3 && gauges.posted.delays == 1 && !gauges.posted.recent);
}

/* The scale of one time is right for another. */
static void cycles(void)
{
	struct cycles_mark from = cycles_mark(), to;
	uint64_t begun, ended, outer[2], inner[2], scale, ns;

	usleep(5000);
	to = cycles_mark();
	scale = cycles_scale(&from, &to);
	outer[0] = clock_now_ns();
	begun = cycles_now();
	inner[0] = clock_now_ns();
	usleep(20000);
	inner[1] = clock_now_ns();
	ended = cycles_now();
	outer[1] = clock_now_ns();
	ns = cycles_ns(ended - begun, scale);
	CHECK(ns * 1.02 >= inner[1] - inner[0] && ns * 0.98 <= outer[1] - outer[0],
	      "%llu ns by cycles, %llu to %llu by the clock", (unsigned long long)ns,
	      (unsigned long long)(inner[1] - inner[0]), (unsigned long long)(outer[1] - outer[0]));
	CHECK(cycles_ns((uint64_t)-5, scale) == 0, "time that goes back is none");
}

static void driver(void)
{
	RUN(buckets);
	RUN(rows_name_each_number);
	RUN(sums);
	RUN(cycles);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
