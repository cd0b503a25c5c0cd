/* SPDX-License-Identifier: MIT */
/*
 * The wrappers that all look alike, made from the rows of verbs.def, and the
 * export of every wrapper under the version node of the real verb. Those that
 * need thought are in specials.c.
 */
#include <errno.h>

#include "intercept/contexts.h"
#include "intercept/costs.h"
#include "intercept/gate.h"
#include "intercept/prototypes.h"

/* What only a QP has besides its cost. */
#define NOTE_qp(deal, object)                                                                      \
	(deal).handle.qp_type = qp_type_of((object)->qp_type);                                     \
	(deal).handle.qp_state = QP_RESET;
#define NOTE_pd(deal, object)
#define NOTE_mr(deal, object)
#define NOTE_mw(deal, object)
#define NOTE_cq(deal, object)
#define NOTE_srq(deal, object)
#define NOTE_ah(deal, object)
#define NOTE_xrcd(deal, object)
#define NOTE_wq(deal, object)
#define NOTE_rwq_table(deal, object)
#define NOTE_flow(deal, object) (deal).context = (object)->context; /* to destroy it, if need be */
#define NOTE_dm(deal, object)
#define NOTE_comp_channel(deal, object)
#define NOTE_umem(deal, object)
#define NOTE_devx_obj(deal, object)
#define NOTE_mkey(deal, object)
#define NOTE_flow_matcher(deal, object)
#define NOTE_dr_domain(deal, object)
#define NOTE_dr_table(deal, object)
#define NOTE_dr_matcher(deal, object)
#define NOTE_dr_rule(deal, object)

/* The last column of a row: SAME, or what the finished object costs. */
#define SETTLE(settled) SETTLE_(settled)
#define SETTLE_(settled) SETTLE_##settled
#define SETTLE_SAME return deal_settle(&deal, object);
#define SETTLE_AT(taken)                                                                           \
	{                                                                                          \
		struct cost now = taken;                                                           \
                                                                                                   \
		return deal_settle_at(&deal, object, &now);                                        \
	}

/* `real` is the real function: an exported verb's, or an operation's as the provider set it. */
#define CREATE_BODY(noun, verb, type, arguments, context, cost_, settled)                          \
	struct deal deal;                                                                          \
	type *object;                                                                              \
                                                                                                   \
	if (!real)                                                                                 \
		return NULL;                                                                       \
	if (!deal_wanted(&deal, OBJECT_##noun, context, CALLER))                                           \
		return real arguments;                                                             \
	deal.handle.cost = cost_;                                                                  \
	if (!deal_open(&deal, #verb, OBJECT_##noun, context))                                      \
		return NULL;                                                                       \
	object = real arguments;                                                                   \
	if (!object) {                                                                             \
		deal_abandon(&deal);                                                               \
		return NULL;                                                                       \
	}                                                                                          \
	NOTE_##noun(deal, object) SETTLE(settled)

#define CHILD(lib, node, verb, noun, type, parameters, arguments, parent, pointer, when,       \
	      cost_)                                                                               \
	type *wrap_##verb parameters                                                               \
	{                                                                                          \
		__typeof__(real_verbs.verb) real = REAL(verb);                                     \
		struct handle above;                                                               \
		struct deal deal;                                                                  \
		type *object;                                                                      \
		bool known;                                                                        \
                                                                                                   \
		if (!real)                                                                         \
			return NULL;                                                               \
		if (!deal_wanted(&deal, OBJECT_##noun, NULL, CALLER))                                      \
			return real arguments;                                                     \
		known = handles_look(&deal.library->handles, pointer, OBJECT_##parent, &above) ||  \
			heritage_look(pointer, OBJECT_##parent, &above);                           \
		if (!(when))                                                                       \
			return real arguments;                                                     \
		deal.handle.cost = cost_;                                                          \
		if (!deal_open_under(&deal, #verb, OBJECT_##noun, known ? &above : NULL))          \
			return NULL;                                                               \
		object = real arguments;                                                           \
		if (!object) {                                                                     \
			deal_abandon(&deal);                                                       \
			return NULL;                                                               \
		}                                                                                  \
		NOTE_##noun(deal, object) return deal_settle(&deal, object);                       \
	}

#define DESTROY_BODY(noun)                                                                         \
	struct release release;                                                                    \
                                                                                                   \
	if (!real)                                                                                 \
		return EOPNOTSUPP;                                                                 \
	release_open(&release, OBJECT_##noun, object);                                             \
	return release_close(&release, real(object));

#define CREATE(library, node, verb, noun, type, parameters, arguments, context, cost, settled)     \
	type *wrap_##verb parameters                                                               \
	{                                                                                          \
		__typeof__(real_verbs.verb) real = REAL(verb);                                     \
		CREATE_BODY(noun, verb, type, arguments, context, cost, settled)                   \
	}
#define DESTROY(library, node, verb, noun, type)                                                   \
	int wrap_##verb(type *object)                                                              \
	{                                                                                          \
		__typeof__(real_verbs.verb) real = REAL(verb);                                     \
		DESTROY_BODY(noun)                                                                 \
	}

/* An operation that we replaced leads back to what the provider had set. */
#define OP_REAL(handle, op)                                                                        \
	const struct context *entry = context_find(handle);                                        \
	__typeof__(entry->ops.op) real = entry ? entry->ops.op : NULL;

#define OP_CREATE(place, op, verb, noun, type, parameters, arguments, context, cost, settled)      \
	type *wrap_op_##verb parameters                                                            \
	{                                                                                          \
		OP_REAL(context, op)                                                               \
		CREATE_BODY(noun, verb, type, arguments, context, cost, settled)                   \
	}
#define OP_DESTROY(place, op, verb, noun, type)                                                    \
	int wrap_op_##verb(type *object)                                                           \
	{                                                                                          \
		OP_REAL(object->context, op)                                                       \
		DESTROY_BODY(noun)                                                                 \
	}
#include "intercept/verbs.def"
