/* SPDX-License-Identifier: MIT */
/* The loop over operations and points; see points.h. */
#include "points.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

enum { VIOLATIONS_MAX = 5 }; /* of one operation: a lock that is stuck takes seconds each time */

static unsigned points_all, violations_all;
static unsigned early; /* victims that ended before their point, on a shorter way */
static double begin_all;

static unsigned samples_of(const struct operation *operation)
{
	const char *wish = getenv("RDMA_INTERCEPT_TEST_POINTS");

	if (!wish || !*wish)
		return operation->samples;
	return strcmp(wish, "every") ? (unsigned)atoi(wish) : UINT_MAX;
}

/* Brings a victim to its point and examines what is left. */
static bool point_try(const struct side *side, const struct operation *operation, unsigned point)
{
	struct victim victim = { 0 };
	bool arrived, good;

	if (!side->scene(operation))
		return false;
	arrived = victim_start(&victim, &operation->script) && victim_go(&victim, point);
	good = CHECK(arrived, "the victim ended by itself, with status %#x",
		     (unsigned)victim.status);
	early += arrived && victim_is_done() && point < trace_length();
	good &= side->examine(operation, &victim, point);
	victim_kill(&victim);
	if (!good)
		printf("%s: at point %u, before %#lx\n", operation->name, point,
		       (unsigned long)victim.at);
	return good;
}

static bool reference_run(const struct side *side, const struct operation *operation)
{
	return CHECK(side->scene(operation), "%s: no scene", operation->name) &&
	       CHECK(trace_record(&operation->script, side->changed), "%s cannot be traced",
		     operation->name) &&
	       (!side->reference ||
		CHECK(side->reference(operation), "%s: without a kill", operation->name));
}

static void operation_test(const struct side *side, const struct operation *operation)
{
	double before = seconds_now();
	unsigned points = 0, violations = 0;

	early = 0;
	if (!reference_run(side, operation)) {
		violations_all++;
		return;
	}
	trace_choose(samples_of(operation));
	for (unsigned point = 0; point <= trace_length() && violations < VIOLATIONS_MAX; point++) {
		if (!trace_is_chosen(point))
			continue;
		points++;
		violations += !point_try(side, operation, point);
	}
	printf("%s: %u kill points, %u of them notable, of %u instructions; %u violations%s; "
	       "%u victims ended early; %.1f s\n",
	       operation->name, points, trace_notable_count(), trace_length(), violations,
	       violations == VIOLATIONS_MAX ? ", given up" : "", early, seconds_now() - before);
	CHECK(violations == 0);
	points_all += points;
	violations_all += violations;
}

/* Tracer and victim never run at once: on one processor a stop is a mere switch. */
static void processor_pin(void)
{
	cpu_set_t set;
	int processor = sched_getcpu();

	if (processor < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET(processor, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void side_begin(const struct side *side)
{
	if (!begin_all) {
		begin_all = seconds_now();
		step_probe();
		processor_pin();
	}
	printf("---- %s\n", side->name);
	side->begin();
}

void points_run(const struct side *side)
{
	bool begun = false;

	for (unsigned i = 0; i < side->count; i++)
		CASE(side->operations[i].name)
		{
			if (!begun)
				side_begin(side);
			begun = true;
			operation_test(side, &side->operations[i]);
		}
	if (begun)
		side->end();
}

void points_print(void)
{
	if (points_all || violations_all)
		printf("%u kills, %u violations; %.0f s\n", points_all, violations_all,
		       seconds_now() - begin_all);
}
