/* SPDX-License-Identifier: MIT */
/*
 * What we know of each live object, by its address. Sharded open addressing
 * in pages of our own: never malloc, whose neighbours may be registered
 * memory that a forked child cannot touch. A shard's first slots are part of the
 * table, since each mapping more makes the program's own ones dearer. All-zero memory
 * is a valid empty table. A forked child finds its parent's; see inherited.h.
 */
#ifndef INTERCEPT_HANDLES_H
#define INTERCEPT_HANDLES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "terms/kinds.h"

enum object {
#define OBJECT(name, reached, destroyer) OBJECT_##name,
#include "intercept/objects.def"
#undef OBJECT
	OBJECTS
};

struct handle {
	const void *key; /* the object's address; NULL = empty */
	uint32_t owner;	 /* group of the context that it dies with; 0 = none */
	uint8_t object;
	uint8_t device;
	int8_t qp_level; /* these five: QP_NONE unless it is a QP; class and level also unless a */
	int8_t qp_extended; /* class of the tenant was put in. The four below are set by one store. */
	int8_t qp_type;
	int8_t qp_state;
	int8_t qp_port;
	int8_t qp_class;
	struct cost cost; /* what is charged for it now */
};

enum { HANDLE_SHARDS = 16, HANDLE_FIRST_CAPACITY = 64 };

struct handle_shard {
	struct lock lock;
	struct handle *slots;
	uint32_t capacity; /* a power of two, or 0 */
	uint32_t count;
} __attribute__((aligned(64)));

struct handles {
	struct handle_shard shard[HANDLE_SHARDS];
	struct handle first[HANDLE_SHARDS][HANDLE_FIRST_CAPACITY];
};

/* -ENOMEM when the table cannot grow. HANDLES_REPLACED when an object that was there
 * at the same address must have gone without our seeing: its handle is returned. */
enum { HANDLES_REPLACED = 1 };
int handles_put(struct handles *handles, const struct handle *handle, struct handle *ret_replaced);

/* Removes; false when the address is unknown or belongs to another kind of object. */
bool handles_take(struct handles *handles, const void *key, enum object object,
		  struct handle *ret_handle);

/* A copy of the handle; false as above. */
bool handles_look(struct handles *handles, const void *key, enum object object,
		  struct handle *ret_handle);

/* Removes any one handle that matches; false when there is none. */
typedef bool handle_match(const struct handle *handle, const void *closure);
bool handles_take_any(struct handles *handles, handle_match *match, const void *closure,
		      struct handle *ret_handle);

/* Whether one matches. */
bool handles_have(struct handles *handles, handle_match *match, const void *closure);

/* Calls for each, with its shard locked. */
void handles_visit(struct handles *handles,
		   void (*call)(const struct handle *handle, void *closure), void *closure);

/* The handle in place, with its shard locked until handles_release; NULL, unlocked. */
struct handle *handles_hold(struct handles *handles, const void *key, enum object object);
void handles_release(struct handles *handles, const void *key);

/* In a forked child, where only this thread is: moves all objects to an all-zero table. A shard
 * that another thread was just changing cannot be read: its objects stay unknown. */
void handles_move(struct handles *from, struct handles *to);
/* The same for a table that stays where it is. */
void handles_drop_locked(struct handles *handles);

#endif
