/* SPDX-License-Identifier: MIT */
/*
 * Every row of the verbs table, one after the other: charged once, refunded
 * once, right after each failure, refused at its limit in the verb's own way,
 * and nothing leaked. A row of verbs.def without a line in table_rows.c fails the test.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "fakeverbs.h"
#include "table.h"

/* Rows that make and free nothing have tests of their own, named here. */
static const char *const elsewhere[] = {
	"ibv_get_device_list",	/* daemon/devices.c */
	"ibv_free_device_list",	/* daemon/devices.c */
	"ibv_import_device",	/* rules.c: imports */
	"ibv_rereg_mr",		/* rules.c: rereg */
	"ibv_resize_cq",	/* rules.c: resize */
	"ibv_modify_srq",	/* rules.c: srq_depth */
	"ibv_modify_qp",	/* rules.c: qp_gauges */
	"ibv_get_cq_event",	/* rules.c: cq_events */
	"ibv_ack_cq_events",	/* rules.c: cq_events */
	"rdma_get_cm_event",	/* rules.c: cm_events */
	"rdma_connect",		/* rates.c */
	"rdma_accept",		/* rates.c */
};

static bool is_destroyer(const char *verb)
{
	for (unsigned i = 0; i < table_count; i++)
		if (!strcmp(table_rows[i].destroyer, verb))
			return true;
	return false;
}

static bool is_covered(const char *verb)
{
	for (unsigned i = 0; i < table_count; i++)
		if (!strcmp(table_rows[i].verb, verb))
			return true;
	for (unsigned i = 0; i < sizeof(elsewhere) / sizeof(elsewhere[0]); i++)
		if (!strcmp(elsewhere[i], verb))
			return true;
	return is_destroyer(verb);
}

static void every_row_is_covered(void)
{
	static const char *const verbs[] = {
#define CREATE(library, node, verb, ...) #verb,
#define DESTROY(library, node, verb, ...) #verb,
#define SPECIAL(library, node, verb, ...) #verb,
#define UNVERSIONED(library, verb, ...) #verb,
#define OP_CREATE(place, op, verb, ...) #verb,
#define OP_DESTROY(place, op, verb, ...) #verb,
#include "intercept/verbs.def"
	};

	for (unsigned i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		CHECK(is_covered(verbs[i]), "%s is in verbs.def and in no row here", verbs[i]);
}

/* ---- scenarios: one row each ---- */

struct snapshot {
	uint64_t used[KIND_COUNT];
	long live;
};

static struct snapshot look(void)
{
	struct snapshot now = { .live = fake_live("all") };

	for (int kind = 0; kind < KIND_COUNT; kind++)
		now.used[kind] = used((enum kind)kind);
	return now;
}

static uint64_t cost_of(const struct row *row, int kind)
{
	for (unsigned i = 0; i < COST_KINDS; i++)
		if (row->cost[i].amount && row->cost[i].kind == (enum kind)kind)
			return row->cost[i].amount;
	return 0;
}

/* `times` objects of the row more than before, and nothing else. */
static void expect(const struct row *row, const struct snapshot *before, unsigned times,
		   const char *when)
{
	struct snapshot now = look();

	for (int kind = 0; kind < KIND_COUNT; kind++)
		CHECK(now.used[kind] == before->used[kind] + times * cost_of(row, kind),
		      "%s %s: %s is %llu, before it was %llu", row->verb, when,
		      kind_rows[kind].name, (unsigned long long)now.used[kind],
		      (unsigned long long)before->used[kind]);
	if (!strcmp(row->verb, "ibv_alloc_parent_domain")) /* lives in the provider only */
		times = 0;
	CHECK(now.live == before->live + (long)times, "%s %s: %ld objects in the stand-in, before %ld",
	      row->verb, when, now.live, before->live);
}

static const struct row *row_of(const char *verb)
{
	for (unsigned i = 0; i < table_count; i++)
		if (!strcmp(table_rows[i].verb, verb))
			return &table_rows[i];
	abort();
}

/* Some makers need a companion at first: made and kept, it is part of "before". */
static struct snapshot warm_up(const struct row *row, struct fixture *fixture)
{
	void *object = row->make(fixture);

	if (!CHECK(object != NULL, "%s: errno %d", row->verb, errno))
		exit(1);
	CHECK(row->unmake(object) == 0);
	return look();
}

static void life(const char *verb)
{
	const struct row *row = row_of(verb);
	struct fixture fixture = fixture_open();
	struct snapshot before = warm_up(row, &fixture);
	unsigned long calls = fake_calls(verb);
	void *object;

	errno = 1234;
	object = row->make(&fixture);
	CHECK(object && errno == 1234, "%s: errno after success %d", verb, errno);
	CHECK(fake_calls(verb) == calls + 1);
	expect(row, &before, 1, "after it was made");
	CHECK(row->unmake(object) == 0);
	expect(row, &before, 0, "after it was freed");

	fake_set(verb, FAKE_FAIL, ENOSPC, 0, 1);
	errno = 0;
	CHECK(!row->make(&fixture) && errno == ENOSPC, "%s: errno %d", verb, errno);
	expect(row, &before, 0, "after its maker failed");

	fake_set(verb, FAKE_FAIL_SILENT, 0, 0, 1);
	errno = 1234;
	CHECK(!row->make(&fixture) && errno == 1234, "%s: errno %d", verb, errno);
	expect(row, &before, 0, "after its maker failed without errno");

	object = row->make(&fixture);
	if (strcmp(row->destroyer, "ibv_close_device") && strcmp(row->destroyer, "rdma_destroy_ep")) {
		fake_set(row->destroyer, FAKE_FAIL, EBUSY, 0, 1);
		CHECK(row->unmake(object) == EBUSY);
		expect(row, &before, 1, "after EBUSY");
		fake_set(row->destroyer, FAKE_FAIL, EIO, 0, 1);
		CHECK(row->unmake(object) == EIO);
		expect(row, &before, 1, "after EIO");
	}
	CHECK(row->unmake(object) == 0);
	expect(row, &before, 0, "after it was freed at last");
}

/* The environment allows this kind twice the row's cost beyond the companions. */
static void limit(const char *argument)
{
	char verb[64];
	struct fixture fixture = fixture_open();
	const struct row *row;
	struct snapshot before;
	unsigned long calls;
	void *first, *second;

	snprintf(verb, sizeof(verb), "%.*s", (int)strcspn(argument, "/"), argument);
	row = row_of(verb);
	before = warm_up(row, &fixture);
	first = row->make(&fixture);
	second = row->make(&fixture);
	CHECK(first && second, "%s within its limit", argument);
	expect(row, &before, 2, "at its limit");
	calls = fake_calls(verb);
	errno = 0;
	CHECK(!row->make(&fixture) && errno == EDQUOT, "%s over its limit: errno %d", argument, errno);
	CHECK(fake_calls(verb) == calls, "%s: the real verb was called", argument);
	expect(row, &before, 2, "after a refusal");
	CHECK(row->unmake(first) == 0);
	first = row->make(&fixture);
	CHECK(first != NULL, "%s: a place that was given back is free", argument);
	CHECK(row->unmake(first) == 0 && row->unmake(second) == 0);
	expect(row, &before, 0, "at the end");
}

/* Depths come back rounded up: charged as they are, refused if that is over. */
static void rounding(const char *verb)
{
	const struct row *row = row_of(verb);
	struct fixture fixture = fixture_open();
	struct snapshot before = warm_up(row, &fixture);
	int kind = kind_find(row->rounded, strlen(row->rounded));
	uint64_t asked = cost_of(row, kind), got;
	void *object;

	fake_set(verb, FAKE_ROUND_UP, 0, 0, 1);
	object = row->make(&fixture);
	CHECK(object != NULL);
	got = used((enum kind)kind) - before.used[kind];
	CHECK(got == 2 * asked, "%s: %llu charged for %llu asked", verb, (unsigned long long)got,
	      (unsigned long long)asked);
	CHECK(row->unmake(object) == 0);
	expect(row, &before, 0, "after a rounded one was freed");
}

static void rounding_over(const char *verb)
{
	const struct row *row = row_of(verb);
	struct fixture fixture = fixture_open();
	struct snapshot before = warm_up(row, &fixture);

	fake_set(verb, FAKE_ROUND_UP, 0, 0, 1);
	errno = 0;
	CHECK(!row->make(&fixture) && errno == EDQUOT, "%s: errno %d", verb, errno);
	expect(row, &before, 0, "after it was rounded up beyond the limit");
}

/* What a maker's companions and the fixture hold of a kind. */
static void measure(const char *argument)
{
	struct fixture fixture = fixture_open();
	struct snapshot before = warm_up(row_of(argument), &fixture);

	for (int kind = 0; kind < KIND_COUNT; kind++)
		shared_word(0)[kind] = before.used[kind];
}

static const struct scenario scenarios[] = {
	{ "life", life },
	{ "limit", limit },
	{ "rounding", rounding },
	{ "rounding_over", rounding_over },
	{ "measure", measure },
	{ "rules_below_root", rules_below_root },
	{ 0 },
};

static void limits_of(const struct row *row)
{
	char scenario[96], settings[96];

	snprintf(scenario, sizeof(scenario), "measure:%s", row->verb);
	if (spawn(scenario, ""))
		return;
	for (unsigned i = 0; i < COST_KINDS && row->cost[i].amount; i++) {
		static const char *const scopes[] = { "process", "host", "device:rxe0" };
		bool nameless = row->cost[i].kind == KIND_cm_id;

		for (unsigned scope = 0; scope < (nameless ? 2 : 3); scope++) {
			snprintf(scenario, sizeof(scenario), "limit:%s/%s", row->verb,
				 scopes[scope]);
			snprintf(settings, sizeof(settings), "LIMITS=%s:%s=%llu", scopes[scope],
				 kind_rows[row->cost[i].kind].name,
				 (unsigned long long)(shared_word(0)[row->cost[i].kind] +
						      2 * row->cost[i].amount));
			shm_remove();
			spawn(scenario, settings);
		}
	}
	if (row->rounded) {
		int kind = kind_find(row->rounded, strlen(row->rounded));

		snprintf(scenario, sizeof(scenario), "rounding:%s", row->verb);
		shm_remove();
		spawn(scenario, "");
		snprintf(scenario, sizeof(scenario), "rounding_over:%s", row->verb);
		snprintf(settings, sizeof(settings), "LIMITS=process:%s=%llu", row->rounded,
			 (unsigned long long)(shared_word(0)[kind] + 2 * cost_of(row, kind) - 1));
		spawn(scenario, settings);
	}
}

static void driver(void)
{
	char scenario[96];

	RUN(every_row_is_covered);
	CASE("rules_below_root")
		spawn("rules_below_root", "LIMITS=process:flow=1");
	for (unsigned i = 0; i < table_count; i++)
		CASE(table_rows[i].verb) {
			shm_remove();
			snprintf(scenario, sizeof(scenario), "life:%s", table_rows[i].verb);
			spawn(scenario, "");
			limits_of(&table_rows[i]);
		}
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, scenarios, driver);
}
