/* SPDX-License-Identifier: MIT */
/*
 * What happens to a request that meets a limit: it is refused, or it is tolerated. This is the
 * only place that derives it from modes.
 *
 *   whose limit               whose mode decides   enforce   warn              audit
 *   of the policy             the tenant's         refused   tolerated, told   tolerated
 *   of the program itself     the program's        refused   tolerated, told   tolerated
 *   unknown: no collector
 *   answers                   the tenant's         refused   tolerated, told   tolerated
 *
 * The limits of the program itself are those of its environment; without a collector there are no
 * others. A number that is no mode refuses. The scope of a limit does not matter.
 */
#ifndef TERMS_VERDICT_H
#define TERMS_VERDICT_H

#include <stdint.h>

enum limit_owner { LIMIT_OF_POLICY, LIMIT_OF_PROGRAM, LIMIT_UNKNOWN, LIMIT_OWNERS };

enum verdict {
	VERDICT_REFUSED,
	VERDICT_TOLD,	/* tolerated; the library writes a line */
	VERDICT_SILENT, /* tolerated; only counters and events say so */
};

/* The modes are enum mode, as they are found in shared memory, books and messages. */
enum verdict verdict_at_limit(enum limit_owner owner, uint32_t tenant_mode, uint32_t program_mode);

#endif
