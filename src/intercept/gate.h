/* SPDX-License-Identifier: MIT */
/*
 * The gate between a verb and the ledger. The creation of an object: begin
 * (limits asked, cost taken), the real call, then commit (the object is known),
 * adjust and commit (it cost something else), or abort (everything given back). A
 * release: begin (the object is forgotten, since its address may be reused the
 * instant it is gone), the real call, then end (cost given back, or object
 * remembered again). No lock is held across the real call.
 */
#ifndef INTERCEPT_GATE_H
#define INTERCEPT_GATE_H

#include <infiniband/verbs.h>
#include <stdbool.h>

#include "intercept/calls.h"
#include "intercept/contexts.h"
#include "intercept/dl.h"
#include "intercept/handles.h"
#include "intercept/inherited.h"
#include "intercept/library.h"
#include "intercept/rates.h"

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

struct creation {
	struct library *library;
	const char *verb;
	struct ibv_context *context;
	bool unusual; /* a rate may be in force, everything be refused, or every call be logged */
	struct handle handle; /* of the object to be: its cost is set before creation_begin */
};

/* Whether this call is ours to count: not nested, not switched off. The first call of a process
 * starts the library: it reads the environment and joins the ledger, which may ask the
 * collector. */
static inline bool creation_start_library(struct creation *creation, enum object object,
					  const struct ibv_context *context, const void *caller)
{
	if (gate_nested(object, caller))
		return false;
	creation->unusual = __builtin_expect(library_word() != PHASE_ACTIVE, 0);
	creation->library = creation->unusual ? library_start() : &library_state;
	/* This verb alone has one symbol for both ABIs: an unknown context is of the old one. */
	if (object == OBJECT_comp_channel && !context_find(context))
		return false;
	return creation->library != NULL;
}

/* False: refused, and errno says so. context is NULL for what belongs to none. */
bool creation_begin_usually(struct creation *creation, const char *verb, enum object object,
			    struct ibv_context *context);
bool creation_begin_unusually(struct creation *creation, const char *verb, enum object object,
			      struct ibv_context *context);

static inline bool creation_begin(struct creation *creation, const char *verb, enum object object,
				  struct ibv_context *context)
{
	return __builtin_expect(creation->unusual, 0) ?
		       creation_begin_unusually(creation, verb, object, context) :
		       creation_begin_usually(creation, verb, object, context);
}

/* The same for a new context, which belongs to the device of that name. */
bool creation_begin_on_device(struct creation *creation, const char *verb, const char *name);

/* The same for what is made from another object; NULL: from one that we do not know. */
bool creation_begin_under(struct creation *creation, const char *verb, enum object object,
			  const struct handle *parent);

/* After a real call that made nothing: tells why, if it was for want of something. errno stays as
 * that call left it. */
void creation_fail(struct creation *creation);

/* The same without a word. */
void creation_abort(struct creation *creation);

/* After a real call that made one: the object, or NULL with errno set when it
 * cannot be kept. It was destroyed again then. */
void *creation_commit(struct creation *creation, void *object);

/* The same for who destroys it himself; false when it cannot be kept: then the caller aborts. */
bool creation_try_commit(struct creation *creation, void *object);

/* The same after what it took turned out to differ from what was asked for. */
void *creation_adjust(struct creation *creation, void *object, const struct cost *settled);

/* By value: the cost is then never written to memory. */
static inline bool creation_costs(const struct creation *creation, struct cost settled)
{
	uint64_t difference = 0;

	for (unsigned i = 0; i < COST_MADE; i++)
		difference |= creation->handle.cost.amount[i] ^ settled.amount[i];
	return difference == 0;
}

/* The device's number in the ledger; false, with errno set, when the ledger is out
 * of order and that means no. */
bool gate_device(struct library *library, const char *verb, const char *name, unsigned *ret_device);

struct release {
	struct library *library; /* NULL: the object is not ours to release */
	struct inherited *from;	 /* then: whose it was, or NULL */
	uint64_t begun;		 /* cycles_now(), before the real verb */
	struct handle handle;
};

void gate_give_back(struct library *library, const struct handle *handle);

/* The state where it counts, after the wait that a rate may ask for. */
struct library *release_enter(enum object object);

static inline void release_begin(struct release *release, enum object object, const void *key)
{
	struct library *library = __builtin_expect(library_word() == PHASE_ACTIVE, 1) ?
					  &library_state :
					  release_enter(object);

	if (__builtin_expect(!library, 0)) {
		release->from = NULL;
	} else if (__builtin_expect(!handles_take(&library->handles, key, object, &release->handle),
				    0)) {
		release->from = inherited_release(key, object, &release->handle);
		library = NULL;
	}
	release->library = library;
	release->begun = cycles_now();
}

/* Returns result, which is 0 when the object is gone. */
static inline int release_end(struct release *release, enum object object, int result)
{
	struct handle none;

	if (__builtin_expect(!release->library, 0)) {
		if (release->from)
			inherited_close(&library_state, release->from, &release->handle, result);
		return result;
	}
	call_count(release->library, call_class_of_freeing(object), release->begun, result != 0);
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

/* After a real call that changed nothing: tells why, if it was for want of something. */
void change_fail(const struct change *change, struct ibv_context *context, int error);

/* False: refused. The new value's surplus is taken; unknown objects pass. */
bool change_begin(struct change *change, const char *verb, enum object object, const void *key,
		  enum kind kind, uint64_t after);
/* To what it has now. False when that is over a limit and nothing was booked. */
bool change_commit(struct change *change, uint64_t after);
void change_force(struct change *change, uint64_t after);

/* One of a kind, without an object of its own: 0, or the errno of the refusal. */
int gate_charge_one(struct library *library, const char *verb, unsigned device, enum kind kind);
/* The same whatever the limits say. */
void gate_charge_one_forced(struct library *library, unsigned device, enum kind kind);
void gate_refund_one(struct library *library, unsigned device, enum kind kind);

/* After the last context of a group was closed: gives back what its objects held,
 * now or when the kernel lets go of them. path is the device's node. */
void gate_release_group(struct library *library, uint32_t group, unsigned device, const char *path);

/* Destroys an object by the real verb. In undo.c, made from objects.def. */
void object_undo(enum object object, struct ibv_context *context, void *pointer);

#endif
