/* SPDX-License-Identifier: MIT */
/*
 * The gate between a verb and the ledger. A constructor makes a deal: open
 * (limits asked, cost taken), the real call, then settle (the object is known)
 * or abandon (everything given back). A destructor makes a release: open (the
 * object is forgotten, since its address may be reused the instant it is
 * gone), the real call, then close (cost given back, or object remembered
 * again). No lock is held across the real call.
 */
#ifndef INTERCEPT_GATE_H
#define INTERCEPT_GATE_H

#include <infiniband/verbs.h>
#include <stdbool.h>

#include "intercept/contexts.h"
#include "intercept/dl.h"
#include "intercept/handles.h"
#include "intercept/heritage.h"
#include "intercept/library.h"

/* Objects whose constructor this thread is in: what that one calls in turn, by
 * whatever name, makes the same object. (Destructors need no such mark: the object
 * is forgotten before the real one is called, and so unknown to a nested one.)
 * A bit may be stale, since a constructor can be left by siglongjmp, and a handler of
 * a signal may call a verb in the middle of another. So a bit is believed only where
 * the caller is an RDMA library. */
extern __thread uint32_t gate_inside __attribute__((tls_model("initial-exec")));

/* Those inside whose making one of this sort is the same object, or a part of it that the
 * kernel counts once. */
static inline uint32_t gate_makers(enum object object)
{
	uint32_t makers = 1u << object;

	if (object == OBJECT_devx_obj)
		makers |= 1u << OBJECT_mkey;
	if (object == OBJECT_flow)
		makers |= 1u << OBJECT_dr_rule;
	return makers;
}

/* caller: where the verb returns to. */
static inline bool gate_nested(enum object object, const void *caller)
{
	return __builtin_expect(gate_inside & gate_makers(object), 0) && dl_is_verbs(caller);
}

#define CALLER __builtin_return_address(0)

struct deal {
	struct library *library;
	const char *verb;
	struct ibv_context *context;
	struct handle handle; /* of the object to be: its cost is set before the deal is opened */
};

/* Whether this call is ours to judge: not nested, not switched off. */
static inline bool deal_wanted(struct deal *deal, enum object object,
			       const struct ibv_context *context, const void *caller)
{
	if (gate_nested(object, caller))
		return false;
	deal->library = library_get();
	/* This verb alone has one symbol for both ABIs: an unknown context is of the old one. */
	if (object == OBJECT_comp_channel && !context_find(context))
		return false;
	return deal->library != NULL;
}

/* False: refused, and errno says so. context is NULL for what belongs to none. */
bool deal_open(struct deal *deal, const char *verb, enum object object,
	       struct ibv_context *context);

/* The same for a new context, which belongs to the device of that name. */
bool deal_open_on_device(struct deal *deal, const char *verb, const char *name);

/* The same for what is made from another object; NULL: from one that we do not know. */
bool deal_open_under(struct deal *deal, const char *verb, enum object object,
		     const struct handle *parent);

/* After a real call that made nothing. errno stays as that call left it. */
void deal_abandon(struct deal *deal);

/* After a real call that made one: the object, or NULL with errno set when it
 * cannot be kept. It was destroyed again then. */
void *deal_settle(struct deal *deal, void *object);

/* The same for who destroys it himself; false when it cannot be kept, and the deal is open. */
bool deal_keep(struct deal *deal, void *object);

/* The same after what it took turned out to differ from what was asked for. */
void *deal_resettle(struct deal *deal, void *object, const struct cost *settled);

static inline void *deal_settle_at(struct deal *deal, void *object, const struct cost *settled)
{
	uint64_t difference = 0;

	for (unsigned i = 0; i < COST_KINDS; i++)
		difference |= deal->handle.cost.amount[i] ^ settled->amount[i];
	if (__builtin_expect(difference != 0, 0))
		return deal_resettle(deal, object, settled);
	return deal_settle(deal, object);
}

/* The device's number in the ledger; false, with errno set, when the ledger is out
 * of order and that means no. */
bool gate_device(struct library *library, const char *verb, const char *name, unsigned *ret_device);

struct release {
	struct library *library; /* NULL: the object is not ours to release */
	struct heritage *from;	 /* then: whose it was, or NULL */
	struct handle handle;
};

void gate_give_back(struct library *library, const struct handle *handle);

static inline void release_open(struct release *release, enum object object, const void *key)
{
	struct library *library = library_active();

	if (__builtin_expect(!library, 0)) {
		release->from = NULL;
	} else if (__builtin_expect(!handles_take(&library->handles, key, object, &release->handle),
				    0)) {
		release->from = heritage_release(key, object, &release->handle);
		library = NULL;
	}
	release->library = library;
}

/* Returns result, which is 0 when the object is gone. */
static inline int release_close(struct release *release, int result)
{
	struct handle none;

	if (__builtin_expect(!release->library, 0)) {
		if (release->from)
			heritage_close(&library_state, release->from, &release->handle, result);
		return result;
	}
	if (__builtin_expect(result == 0, 1))
		gate_give_back(release->library, &release->handle);
	else /* its place in the table has just become free */
		handles_put(&release->library->handles, &release->handle, &none);
	return result;
}

/* A change of one amount of a live object: take what it needs more, then
 * settle at what it really has. */
struct change {
	struct library *library; /* NULL: nothing is counted */
	const char *verb;
	const void *key;
	enum object object;
	unsigned device;
	enum kind kind;
	uint64_t before; /* what its handle said */
	uint64_t taken;	 /* beyond that */
};

/* False: refused. The new value's surplus is taken; unknown objects pass. */
bool change_open(struct change *change, const char *verb, enum object object, const void *key,
		 enum kind kind, uint64_t after);
/* To what it has now. False when that is over a limit and nothing was booked. */
bool change_close(struct change *change, uint64_t after);
void change_force(struct change *change, uint64_t after);

/* After the last context of a group was closed: gives back what its objects held,
 * now or when the kernel lets go of them. path is the device's node. */
void gate_release_group(struct library *library, uint32_t group, unsigned device, const char *path);

/* Destroys an object by the real verb. In undo.c, made from objects.def. */
void object_undo(enum object object, struct ibv_context *context, void *pointer);

#endif
