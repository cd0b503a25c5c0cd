/* SPDX-License-Identifier: MIT */
/* Many objects at once, and many one after the other: exact, and without growth. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fakeverbs.h"
#include "fixture.h"
#include "harness.h"

enum { MANY = 10000, ROUNDS = 100000 };

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { GROWTH_ALLOWED = 1 << 20 }; /* in kB: sanitizers keep what was freed */
#else
enum { GROWTH_ALLOWED = 16 };
#endif

static char memory[4096];

static struct ibv_mr *mr_make(struct fixture *fixture)
{
	return ibv_reg_mr(fixture->pd, memory, sizeof(memory), 0);
}

/* Memory of its own, in kilobytes; pages of files come and go as the kernel likes. */
static long own_memory(void)
{
	char line[128];
	long kilobytes = -1;
	FILE *file = fopen("/proc/self/status", "re");

	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "RssAnon: %ld", &kilobytes) == 1)
			break;
	fclose(file);
	return kilobytes;
}

/* "COUNT", which must be the limit; 10000 if none is given. */
static void many(const char *argument)
{
	struct fixture fixture = fixture_open();
	unsigned count = argument[0] ? (unsigned)atoi(argument) : MANY;
	struct ibv_mr **mrs = calloc(count, sizeof(*mrs));

	for (unsigned i = 0; i < count; i++)
		mrs[i] = mr_make(&fixture);
	CHECK(used(KIND_mr) == count && used(KIND_mr_bytes) == (uint64_t)count * sizeof(memory));
	CHECK(mr_make(&fixture) == NULL, "the limit is %u", count);
	for (unsigned i = 0; i < count; i += 2) /* not in the order in which they came */
		CHECK(ibv_dereg_mr(mrs[i]) == 0);
	CHECK(used(KIND_mr) == count / 2);
	for (unsigned i = count; i-- > 0;)
		if (i % 2)
			CHECK(ibv_dereg_mr(mrs[i]) == 0);
	CHECK(used(KIND_mr) == 0 && used(KIND_mr_bytes) == 0);
	free(mrs);
	fixture_close(&fixture);
}

static void rounds(const char *argument)
{
	struct fixture fixture = fixture_open();
	unsigned count = argument[0] ? (unsigned)atoi(argument) : ROUNDS;
	long before = 0;

	for (unsigned i = 0; i < count; i++) {
		struct ibv_qp *qp = qp_make(&fixture, IBV_QPT_RC);
		struct ibv_mr *mr = mr_make(&fixture);

		if (!CHECK(qp && mr && !ibv_destroy_qp(qp) && !ibv_dereg_mr(mr)))
			break;
		if (i == count / 10)
			before = own_memory();
	}
	CHECK(fake_calls("ibv_create_qp") == count && fake_calls("ibv_dereg_mr") == count);
	if (!argument[0]) /* a short run is one under a tool that has memory of its own */
		CHECK(before > 0 && own_memory() <= before + GROWTH_ALLOWED, "from %ld to %ld kB",
		      before, own_memory());
	for (unsigned i = 0; i < 200; i++) { /* contexts as well */
		struct ibv_context *context = ibv_open_device(fixture.devices[i % 2]);

		CHECK(context && !ibv_close_device(context));
	}
	CHECK(used(KIND_qp) == 0 && used(KIND_mr) == 0 && used(KIND_ctx) == 1);
	fixture_close(&fixture);
}

static const struct scenario scenarios[] = { { "many", many }, { "rounds", rounds }, { 0 } };

static void driver(void)
{
	CASE("many_at_once")
		spawn("many", "LIMITS=process:mr=10000\nQUIET=1");
	CASE("many_in_turn") {
		shm_remove();
		spawn("rounds", "");
		CHECK(used(KIND_mr) == 0);
	}
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, scenarios, driver);
}
