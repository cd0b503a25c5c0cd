/* SPDX-License-Identifier: MIT */
/* What happens at a limit, for every mode of tenant and program and every owner of the limit. */
#include "terms/verdict.h"

#include "harness.h"
#include "terms/terms.h"

/* Written out, so that it does not follow the function: rows are the tenant's modes and columns the
 * program's, each in the order enforce, warn, audit and a number that is no mode. */
#define R VERDICT_REFUSED
#define T VERDICT_TOLD
#define S VERDICT_SILENT
static const enum verdict expected[LIMIT_OWNERS][MODES + 1][MODES + 1] = {
	[LIMIT_OF_POLICY] = { { R, R, R, R }, { T, T, T, T }, { S, S, S, S }, { R, R, R, R } },
	[LIMIT_OF_PROGRAM] = { { R, T, S, R }, { R, T, S, R }, { R, T, S, R }, { R, T, S, R } },
	[LIMIT_UNKNOWN] = { { R, R, R, R }, { T, T, T, T }, { S, S, S, S }, { R, R, R, R } },
};

static void every_combination(void)
{
	static const uint32_t modes[] = { MODE_ENFORCE, MODE_WARN, MODE_AUDIT, UINT32_MAX };

	for (enum limit_owner owner = 0; owner < LIMIT_OWNERS; owner++)
		for (unsigned tenant = 0; tenant <= MODES; tenant++)
			for (unsigned program = 0; program <= MODES; program++) {
				enum verdict found =
					verdict_at_limit(owner, modes[tenant], modes[program]);

				CHECK(found == expected[owner][tenant][program],
				      "owner %d, tenant %u, program %u: %d", (int)owner, tenant,
				      program, (int)found);
			}
}

/* The table above has a row for each mode. */
_Static_assert(MODES == 3, "another mode needs its verdicts here");

static void driver(void)
{
	RUN(every_combination);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
