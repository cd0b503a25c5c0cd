/* SPDX-License-Identifier: MIT */
/*
 * Counting calls of control verbs, by class: how many reached the provider and how long each was
 * there, how many failed there, how many were refused before. The data path does not come here.
 */
#ifndef INTERCEPT_CALLS_H
#define INTERCEPT_CALLS_H

#include <stdbool.h>

#include "base/cycles.h"
#include "intercept/handles.h"
#include "intercept/library.h"
#include "terms/tallies.h"

/* The class of the verbs that make such an object. */
static inline enum verb_class call_class_of_making(enum object object)
{
	switch (object) {
	case OBJECT_qp:
		return VERB_create_qp;
	case OBJECT_cq:
		return VERB_create_cq;
	case OBJECT_mr:
	case OBJECT_mkey:
	case OBJECT_umem:
		return VERB_reg_mr;
	case OBJECT_ah:
		return VERB_create_ah;
	default:
		return VERB_create_other;
	}
}

/* The same for those that free one. */
static inline enum verb_class call_class_of_freeing(enum object object)
{
	switch (object) {
	case OBJECT_qp:
		return VERB_destroy_qp;
	case OBJECT_cq:
		return VERB_destroy_cq;
	case OBJECT_mr:
	case OBJECT_mkey:
	case OBJECT_umem:
		return VERB_dereg_mr;
	default:
		return VERB_destroy_other;
	}
}

/* After the real verb; `begun` is cycles_now() before it. Leaves errno alone. */
void call_count(struct library *library, enum verb_class class, uint64_t begun, bool failed);

/* The same where the library may be switched off. */
static inline void call_count_active(enum verb_class class, uint64_t begun, bool failed)
{
	struct library *library = library_active();

	if (library)
		call_count(library, class, begun, failed);
}

/* A call that never came to the real verb. */
void call_count_refused(struct library *library, enum verb_class class);
void call_count_refused_active(enum verb_class class);

#endif
