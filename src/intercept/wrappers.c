/* SPDX-License-Identifier: MIT */
/*
 * The wrappers that all look alike, made from the rows of verbs.def. Those that
 * need thought are in the files *_verbs.c; exports.S exports both.
 */
#include <errno.h>

#include "intercept/calls.h"
#include "intercept/classes.h"
#include "intercept/contexts.h"
#include "intercept/costs.h"
#include "intercept/gate.h"
#include "intercept/prototypes.h"

/* What only a QP has besides its cost. */
#define NOTE_qp(creation, object)                                                                  \
	(creation).handle.qp_type = qp_type_of((object)->qp_type);                                 \
	(creation).handle.qp_state = QP_RESET;                                                     \
	(creation).handle.qp_extended = QP_ATTRIBUTES_EXTENDED(attr);
#define NOTE_pd(creation, object)
#define NOTE_mr(creation, object)
#define NOTE_mw(creation, object)
#define NOTE_cq(creation, object)
#define NOTE_srq(creation, object)
#define NOTE_ah(creation, object)
#define NOTE_xrcd(creation, object)
#define NOTE_wq(creation, object)
#define NOTE_rwq_table(creation, object)
#define NOTE_flow(creation, object)                                                                \
	(creation).context = (object)->context; /* to destroy it, if need be */
#define NOTE_dm(creation, object)
#define NOTE_comp_channel(creation, object)
#define NOTE_umem(creation, object)
#define NOTE_devx_obj(creation, object)
#define NOTE_mkey(creation, object)
#define NOTE_flow_matcher(creation, object)
#define NOTE_dr_domain(creation, object)
#define NOTE_dr_table(creation, object)
#define NOTE_dr_matcher(creation, object)
#define NOTE_dr_rule(creation, object)

/* The last column of a row: SAME, or what the finished object costs. */
#define COMMIT(settled) COMMIT_EXPANDED(settled)
#define COMMIT_EXPANDED(settled) COMMIT_##settled
#define COMMIT_SAME return creation_commit(&creation, object);
#define COMMIT_AT(taken)                                                                           \
	{                                                                                          \
		struct cost now;                                                                   \
                                                                                                   \
		if (__builtin_expect(creation_costs(&creation, taken), 1))                         \
			return creation_commit(&creation, object);                                 \
		now = taken;                                                                       \
		return creation_adjust(&creation, object, &now);                                   \
	}

/* Without an object nothing was created. */
#define CREATE_REAL(noun, arguments)                                                               \
	begun = cycles_now();                                                                      \
	object = real arguments;                                                                   \
	call_count(creation.library, call_class_of_making(OBJECT_##noun), begun, !object);         \
	if (!object) {                                                                             \
		creation_fail(&creation);                                                          \
		return NULL;                                                                       \
	}

/* `real` is the real function: an exported verb's, or an operation's as the provider set it. */
#define CREATE_BODY(noun, verb, type, arguments, context, cost_, settled)                          \
	struct creation creation;                                                                  \
	uint64_t begun;                                                                            \
	type *object;                                                                              \
                                                                                                   \
	if (!real)                                                                                 \
		return NULL;                                                                       \
	if (!creation_start_library(&creation, OBJECT_##noun, context, CALLER))                    \
		return real arguments;                                                             \
	creation.handle.cost = cost_;                                                              \
	if (!creation_begin(&creation, #verb, OBJECT_##noun, context))                             \
		return NULL;                                                                       \
	CREATE_REAL(noun, arguments)                                                               \
	NOTE_##noun(creation, object) COMMIT(settled)

#define CHILD(lib, node, verb, noun, type, parameters, arguments, parent, pointer, when, cost_)    \
	type *wrap_##verb parameters                                                               \
	{                                                                                          \
		__typeof__(real_verbs.verb) real = REAL(verb);                                     \
		struct handle above;                                                               \
		struct creation creation;                                                          \
		uint64_t begun;                                                                    \
		type *object;                                                                      \
		bool known;                                                                        \
                                                                                                   \
		if (!real)                                                                         \
			return NULL;                                                               \
		if (!creation_start_library(&creation, OBJECT_##noun, NULL, CALLER))               \
			return real arguments;                                                     \
		known = handles_look(&creation.library->handles, pointer, OBJECT_##parent,         \
				     &above) ||                                                    \
			inherited_look(pointer, OBJECT_##parent, &above);                          \
		if (!(when))                                                                       \
			return real arguments;                                                     \
		creation.handle.cost = cost_;                                                      \
		if (!creation_begin_under(&creation, #verb, OBJECT_##noun, known ? &above : NULL)) \
			return NULL;                                                               \
		CREATE_REAL(noun, arguments)                                                       \
		NOTE_##noun(creation, object) return creation_commit(&creation, object);           \
	}

#define DESTROY_BODY(noun)                                                                         \
	struct release release;                                                                    \
                                                                                                   \
	if (!real)                                                                                 \
		return EOPNOTSUPP;                                                                 \
	release_begin(&release, OBJECT_##noun, object);                                            \
	return release_end(&release, OBJECT_##noun, real(object));

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
