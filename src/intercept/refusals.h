/* SPDX-License-Identifier: MIT */
/* The sentence of a refusal, in the log and, at most once a second, on the standard error. */
#ifndef INTERCEPT_REFUSALS_H
#define INTERCEPT_REFUSALS_H

#include <stdbool.h>

struct ledger_refusal;
struct library;

/* result is that of the charge. tolerated: the object is made all the same. */
void refusal_report(struct library *library, const char *verb, unsigned device,
		    const struct ledger_refusal *refusal, int result, bool tolerated);

#endif
