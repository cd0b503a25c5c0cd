/* SPDX-License-Identifier: MIT */
/*
 * The functions behind the rows of verbs.def: our wrappers, and pointers to
 * the real ones, found when they are first needed.
 */
#ifndef INTERCEPT_PROTOTYPES_H
#define INTERCEPT_PROTOTYPES_H

#include <infiniband/efadv.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>

/* Newer than the oldest headers that we build with. */
struct ibv_mr_init_attr; /* begins with size_t length */
struct ibv_buf;
struct hnsdv_qp_init_attr;
struct mlx4dv_qp_init_attr; /* whose header cannot be included beside mlx5's */

#define CREATE(library, node, verb, object, type, parameters, arguments, context, cost, settled)   \
	type *wrap_##verb parameters;
#define DESTROY(library, node, verb, object, type) int wrap_##verb(type *object);
#define SPECIAL(library, node, verb, type, parameters) type wrap_##verb parameters;
#define UNVERSIONED(library, verb, type, parameters) type wrap_##verb parameters;
#define OP_CREATE(place, op, verb, object, type, parameters, arguments, context, cost, settled)    \
	type *wrap_op_##verb parameters;
#define OP_DESTROY(place, op, verb, object, type) int wrap_op_##verb(type *object);
#include "intercept/verbs.def"

struct real_verbs {
#define CREATE(library, node, verb, object, type, parameters, arguments, context, cost, settled)   \
	type *(*verb)parameters;
#define DESTROY(library, node, verb, object, type) int (*verb)(type * object);
#define SPECIAL(library, node, verb, type, parameters) type(*verb) parameters;
#define UNVERSIONED(library, verb, type, parameters) type(*verb) parameters;
#include "intercept/verbs.def"
};

extern struct real_verbs real_verbs;

enum verb {
#define CREATE(library, node, verb, ...) VERB_##verb,
#define DESTROY(library, node, verb, ...) VERB_##verb,
#define SPECIAL(library, node, verb, ...) VERB_##verb,
#define UNVERSIONED(library, verb, ...) VERB_##verb,
#include "intercept/verbs.def"
	VERBS
};

/* Finds the real function; NULL, with errno EOPNOTSUPP, where the installed library has none. */
void *real_find(enum verb verb);

/* A function of a library that we do not stand in for, or NULL. */
void *real_helper(const char *soname, const char *name);

/* The real function of a verb, with its type; may be NULL. */
#define REAL(verb)                                                                                 \
	({                                                                                         \
		__typeof__(real_verbs.verb) known =                                                \
			__atomic_load_n(&real_verbs.verb, __ATOMIC_ACQUIRE);                       \
		known ? known : (__typeof__(known))real_find(VERB_##verb);                         \
	})

/* Providers and the connection manager open files, where a thread can be cancelled: then nobody
 * could tell what was made. So these verbs are left before or after, and not in the middle. */
#define UNCANCELLED(call)                                                                          \
	({                                                                                         \
		__typeof__(call) result_;                                                          \
		int state_;                                                                        \
                                                                                                   \
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state_);                           \
		result_ = call;                                                                    \
		pthread_setcancelstate(state_, NULL);                                              \
		result_;                                                                           \
	})

#endif
