/* SPDX-License-Identifier: MIT */
/* The sentence of a refusal, in the log and, at most once a second, on the standard error. */
#ifndef INTERCEPT_REFUSALS_H
#define INTERCEPT_REFUSALS_H

#include <stdbool.h>
#include <stdint.h>

#include "terms/rates.h"

/* How often lines of one sort are written. */
struct report_pace {
	uint64_t last_second; /* of CLOCK_MONOTONIC, and 1; 0: never */
	uint64_t unshown;     /* since then */
};

/* Whether a line may be written: at most one a second. The next one tells how many were not. */
bool report_may_be_shown(struct report_pace *pace, uint64_t *ret_unshown);

struct ledger_refusal;
struct library;

void refusal_report(struct library *library, const char *verb, unsigned device,
		    const struct ledger_refusal *refusal);

/* The same of a call that is above a rate. verb NULL: nothing is said. */
void refusal_report_rate(struct library *library, const char *verb, enum rate_class class,
			 enum rate_owner owner, const struct rate *rate, bool tolerated);

#endif
