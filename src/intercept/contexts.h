/* SPDX-License-Identifier: MIT */
/*
 * The device contexts that are open in this process: the operations that we
 * replaced in each, which device it is, and which contexts share one kernel
 * file (an imported context is another handle on it).
 */
#ifndef INTERCEPT_CONTEXTS_H
#define INTERCEPT_CONTEXTS_H

#include <infiniband/verbs.h>
#include <stdbool.h>

#include "intercept/posts.h"
#include "intercept/prototypes.h"

struct library;

/* The operations as the provider set them; NULL where we replaced nothing. */
struct context_ops {
#define OP_CREATE(place, op, verb, object, type, parameters, arguments, context, cost, settled)    \
	type *(*op)parameters;
#define OP_DESTROY(place, op, verb, object, type) int (*op)(type * object);
#include "intercept/verbs.def"
};

struct context {
	struct ibv_context *handle; /* NULL = this entry is free */
	struct context *next;	    /* in its bucket, for ever */
	uint32_t group;		    /* of contexts on the same kernel file; never 0 */
	uint32_t device;	    /* number in the ledger */
	struct context_ops ops;
	struct posts_ops posts;
};

/* The entry of an open context, or NULL. Needs no lock, also not in a forked child. */
struct context *context_find(const struct ibv_context *handle);

/* Books an opened (or imported) context and replaces its operations. -ENOMEM. */
int context_add(struct library *library, struct ibv_context *handle, unsigned device,
		bool imported);

/* Puts the operations back and forgets the context; its group and device are returned. */
bool context_remove(struct library *library, struct ibv_context *handle, uint32_t *ret_group,
		    unsigned *ret_device);

bool context_group_is_open(uint32_t group);

/* Calls for each open context, while none can be opened or closed. */
void contexts_visit(struct library *library, void (*call)(struct context *context, void *closure),
		    void *closure);

#endif
