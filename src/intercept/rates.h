/* SPDX-License-Identifier: MIT */
/*
 * Rates of control verbs in the process: a call above a rate waits, or is refused with EAGAIN. The
 * buckets are in the process's own memory; how they fill, the collector leases (terms/rates.h) or
 * the environment says. Verbs come here only while a rate is in force: library_word() tells.
 */
#ifndef INTERCEPT_RATES_H
#define INTERCEPT_RATES_H

#include "intercept/handles.h"
#include "intercept/library.h"
#include "terms/rates.h"

/* Takes a call of the class: 0, possibly after a wait, or EAGAIN. A verb that frees always gets 0.
 * Leaves errno alone, holds no lock, is no cancellation point. */
int rates_take(struct library *library, enum rate_class class, const char *verb);

/* The class of the verbs that make, or free, such an object. */
enum rate_class rate_class_of_making(enum object object);
enum rate_class rate_class_of_freeing(enum object object);

/* The slow way of rates_pass. */
int rates_pass_slowly(enum rate_class class, const char *verb);

/* For verbs that neither make nor free: 0 to go on, or EAGAIN. */
static inline int rates_pass(enum rate_class class, const char *verb)
{
	return __builtin_expect(library_word() == PHASE_ACTIVE, 1) ? 0 :
								     rates_pass_slowly(class, verb);
}

#endif
