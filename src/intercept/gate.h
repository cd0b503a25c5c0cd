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

#include "intercept/handles.h"
#include "intercept/library.h"

/* Objects whose constructor or destructor this thread is in: what that one
 * calls in turn, by whatever name, is the same object. */
extern __thread uint32_t gate_inside __attribute__((tls_model("initial-exec")));

static inline bool gate_nested(enum object object)
{
	return gate_inside >> object & 1;
}

/* Whom an object belongs to. */
struct owner {
	uint32_t group; /* of contexts; 0 = none */
	unsigned device;
};

struct deal {
	struct library *library;
	const char *verb;
	struct ibv_context *context;
	struct owner owner;
	enum object object;
	int8_t qp_type; /* to be set before settling a QP */
	struct cost cost;
	int saved_errno;
};

/* Whether this call is ours to judge: not nested, not switched off. */
bool deal_wanted(struct deal *deal, enum object object, struct ibv_context *context);

/* False: refused, and errno says so. context may be NULL for what belongs to none. */
bool deal_open(struct deal *deal, const char *verb, enum object object,
	       struct ibv_context *context, struct cost cost);

/* The same for a new context, which belongs to the device of that name. */
bool deal_open_on_device(struct deal *deal, const char *verb, const char *device, struct cost cost);

/* After a real call that made nothing. errno stays as that call left it. */
void deal_abandon(struct deal *deal);

/* After a real call that made one. The object, or NULL with errno set when what
 * it really took is over a limit: it was destroyed again. */
void *deal_settle(struct deal *deal, void *object, struct cost settled);

struct release {
	struct library *library; /* NULL: the object is not ours to release */
	struct handle handle;
};

void release_open(struct release *release, enum object object, const void *key);

/* Returns result, which is 0 when the object is gone. */
int release_close(struct release *release, int result);

/* A change of one amount of a live object: take what it needs more, then
 * settle at what it really has. */
struct change {
	struct library *library; /* NULL: nothing is counted */
	const char *verb;
	const void *key;
	enum object object;
	unsigned device;
	enum kind kind;
	uint64_t before;
	uint64_t taken;
};

/* False: refused. The new value's surplus is taken; unknown objects pass. */
bool change_open(struct change *change, const char *verb, enum object object, const void *key,
		 enum kind kind, uint64_t after);
/* To what it has now. False when that is over a limit and nothing was booked. */
bool change_close(struct change *change, uint64_t after);
void change_force(struct change *change, uint64_t after);

/* Gives back everything that the group's objects held. */
void gate_release_group(struct library *library, uint32_t group);

/* Destroys an object by the real verb. In undo.c, made from objects.def. */
void object_undo(enum object object, struct ibv_context *context, void *pointer);

#endif
