/* SPDX-License-Identifier: MIT */
/* The sentence of a refusal, in the log and, at most once a second, on the standard error. */
#ifndef INTERCEPT_REFUSALS_H
#define INTERCEPT_REFUSALS_H

struct ledger_refusal;
struct library;

void refusal_report(struct library *library, const char *verb, unsigned device,
		    const struct ledger_refusal *refusal);

#endif
