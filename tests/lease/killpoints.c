/* SPDX-License-Identifier: MIT */
/*
 * SIGKILL after every instruction of what a collector and its clients do to leases. A
 * victim is stopped after N instructions, for each N, and there it is killed, or the
 * other side is; what is left must be exact. Short operations are tried at every single
 * instruction; of long ones every instruction that changes the books, every system
 * call (of those in a loop the first few), and a sample of the rest, where a kill leaves
 * the same behind as at the one before.
 */
#include "killpoints.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

enum { VIOLATIONS_MAX = 5 }; /* of one operation */

static const struct side *const sides[] = { &daemon_side, &client_side, &outage_side };

static const char *only;     /* operation to be tried; NULL: all */
static unsigned points_most; /* of each operation; 0: as its row says */
static unsigned points_all, violations_all;
static unsigned early; /* victims that were done before their point, on a shorter way */

static unsigned stride_of(const struct operation *operation)
{
	unsigned most = points_most ? points_most : operation->points;

	return 1 + trace_length() / most;
}

static bool point_is_wanted(unsigned point, unsigned stride)
{
	return trace_is_notable(point) || point % stride == 0;
}

/* A victim at its point, and the examination there. */
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
	if (!good)
		printf("%s: at point %u, before %#lx\n", operation->name, point,
		       (unsigned long)victim.at);
	return good;
}

static void operation_test(const struct side *side, const struct operation *operation)
{
	double before = seconds_now();
	unsigned points = 0, violations = 0, stride;

	if (!side->scene(operation) || !CHECK(trace_record(&operation->script, side->fingerprint),
					      "%s cannot be traced", operation->name)) {
		violations_all++;
		return;
	}
	stride = stride_of(operation);
	early = 0;
	for (unsigned point = 0; point <= trace_length() && violations < VIOLATIONS_MAX; point++) {
		if (!point_is_wanted(point, stride))
			continue;
		points++;
		violations += !point_try(side, operation, point);
	}
	printf("%s: %u kill points, %u violations%s\n", operation->name, points, violations,
	       violations == VIOLATIONS_MAX ? ", given up" : "");
	printf("  1 in %u of %u instructions, and the notable ones; %u victims were done early; "
	       "%.1f s\n",
	       stride, trace_length(), early, seconds_now() - before);
	points_all += points;
	violations_all += violations;
}

static void side_test(const struct side *side)
{
	bool begun = false;

	for (unsigned i = 0; i < side->count; i++) {
		if (only && strcmp(only, side->operations[i].name) && strcmp(only, side->name))
			continue;
		if (!begun) {
			printf("---- %s\n", side->name);
			side->begin();
			begun = true;
		}
		operation_test(side, &side->operations[i]);
	}
	if (begun)
		side->end();
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

static void drive(void)
{
	double before = seconds_now();

	step_probe();
	processor_pin();
	for (unsigned i = 0; i < sizeof(sides) / sizeof(sides[0]); i++)
		side_test(sides[i]);
	CHECK(points_all > 0, "no operation of that name");
	CHECK(violations_all == 0);
	printf("%u kills, %u violations; %.0f s\n", points_all, violations_all,
	       seconds_now() - before);
}

/* killpoints [operation|side|all [points]]: one only, and how many points of a long one. */
int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "all"))
		only = argv[1];
	if (argc > 2)
		points_most = (unsigned)atoi(argv[2]);
	return harness_main(1, argv, NULL, drive);
}
