/* SPDX-License-Identifier: MIT */
/* The sentence of a refusal, in the log and, at most once a second, on the standard error. */
#ifndef INTERCEPT_REFUSALS_H
#define INTERCEPT_REFUSALS_H

#include <stdbool.h>

#include "terms/rates.h"

struct ledger_refusal;
struct library;

void refusal_report(struct library *library, const char *verb, unsigned device,
		    const struct ledger_refusal *refusal);

/* The same of a call that is above a rate. verb NULL: nothing is said. */
void refusal_report_rate(struct library *library, const char *verb, enum rate_class class,
			 enum rate_owner owner, const struct rate *rate, bool tolerated);

#endif
