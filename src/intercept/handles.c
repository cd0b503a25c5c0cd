/* SPDX-License-Identifier: MIT */
/* The table of live objects; see handles.h. */
#include "intercept/handles.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

static inline uint64_t key_mix(const void *key)
{
	return (uint64_t)(uintptr_t)key * 0x9e3779b97f4a7c15u;
}

static inline struct handle_shard *shard_of(struct handles *handles, const void *key)
{
	return &handles->shard[key_mix(key) >> 60 & (HANDLE_SHARDS - 1)];
}

static inline uint32_t shard_home(const struct handle_shard *shard, const void *key)
{
	return (uint32_t)(key_mix(key) >> 28) & (shard->capacity - 1);
}

/* The slot of the key, or the empty one where it would go. Needs capacity. */
static struct handle *shard_probe(const struct handle_shard *shard, const void *key)
{
	uint32_t at = shard_home(shard, key);

	while (shard->slots[at].key && shard->slots[at].key != key)
		at = (at + 1) & (shard->capacity - 1);
	return &shard->slots[at];
}

static __attribute__((noinline, cold)) int shard_grow(struct handles *handles,
						      struct handle_shard *shard)
{
	struct handle *first = handles->first[shard - handles->shard];
	struct handle_shard larger = *shard;
	size_t bytes;

	if (!shard->capacity) {
		shard->slots = first;
		shard->capacity = HANDLE_FIRST_CAPACITY;
		return 0;
	}
	larger.capacity = 2 * shard->capacity;
	bytes = larger.capacity * sizeof(struct handle);
	larger.slots =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (larger.slots == MAP_FAILED)
		return -ENOMEM;
	for (uint32_t i = 0; i < shard->capacity; i++)
		if (shard->slots[i].key)
			*shard_probe(&larger, shard->slots[i].key) = shard->slots[i];
	if (shard->slots != first)
		munmap(shard->slots, shard->capacity * sizeof(struct handle));
	shard->slots = larger.slots;
	shard->capacity = larger.capacity;
	return 0;
}

int handles_put(struct handles *handles, const struct handle *handle, struct handle *ret_replaced)
{
	struct handle_shard *shard = shard_of(handles, handle->key);
	struct handle *slot;
	int result = 0;

	lock_acquire(&shard->lock);
	if (4 * (shard->count + 1) > 3 * shard->capacity)
		result = shard_grow(handles, shard);
	if (__builtin_expect(result == 0, 1)) {
		assert(shard->count < shard->capacity); /* or the probe finds no end */
		slot = shard_probe(shard, handle->key);
		if (__builtin_expect(slot->key != NULL, 0)) {
			*ret_replaced = *slot;
			result = HANDLES_REPLACED;
		} else {
			shard->count++;
		}
		*slot = *handle;
	}
	lock_release(&shard->lock);
	return result;
}

/* Empties a slot and closes the gap, so that no tombstones gather. */
static void shard_erase(struct handle_shard *shard, struct handle *slot)
{
	uint32_t mask = shard->capacity - 1;
	uint32_t gap = (uint32_t)(slot - shard->slots);

	assert(slot->key && shard->count > 0);
	for (uint32_t at = (gap + 1) & mask; shard->slots[at].key; at = (at + 1) & mask) {
		uint32_t home = shard_home(shard, shard->slots[at].key);

		/* It may move into the gap unless its home lies after the gap. */
		if (((at - home) & mask) >= ((at - gap) & mask)) {
			shard->slots[gap] = shard->slots[at];
			gap = at;
		}
	}
	shard->slots[gap].key = NULL;
	shard->count--;
}

static struct handle *shard_find(const struct handle_shard *shard, const void *key,
				 enum object object)
{
	struct handle *slot = shard->capacity ? shard_probe(shard, key) : NULL;

	return slot && slot->key && slot->object == object ? slot : NULL;
}

__attribute__((flatten)) bool handles_take(struct handles *handles, const void *key,
					   enum object object, struct handle *ret_handle)
{
	struct handle_shard *shard = shard_of(handles, key);
	struct handle *slot;

	lock_acquire(&shard->lock);
	slot = shard_find(shard, key, object);
	if (slot) {
		*ret_handle = *slot;
		shard_erase(shard, slot);
	}
	lock_release(&shard->lock);
	return slot != NULL;
}

bool handles_look(struct handles *handles, const void *key, enum object object,
		  struct handle *ret_handle)
{
	struct handle *handle = handles_hold(handles, key, object);

	if (!handle)
		return false;
	*ret_handle = *handle;
	handles_release(handles, key);
	return true;
}

/* The first that matches, with its shard locked; NULL, unlocked. */
static struct handle *handles_search(struct handles *handles, handle_match *match,
				     const void *closure, struct handle_shard **ret_shard)
{
	for (unsigned s = 0; s < HANDLE_SHARDS; s++) {
		struct handle_shard *shard = &handles->shard[s];

		lock_acquire(&shard->lock);
		for (uint32_t i = 0; i < shard->capacity; i++)
			if (shard->slots[i].key && match(&shard->slots[i], closure)) {
				*ret_shard = shard;
				return &shard->slots[i];
			}
		lock_release(&shard->lock);
	}
	return NULL;
}

bool handles_take_any(struct handles *handles, handle_match *match, const void *closure,
		      struct handle *ret_handle)
{
	struct handle_shard *shard;
	struct handle *slot = handles_search(handles, match, closure, &shard);

	if (!slot)
		return false;
	*ret_handle = *slot;
	shard_erase(shard, slot);
	lock_release(&shard->lock);
	return true;
}

bool handles_have(struct handles *handles, handle_match *match, const void *closure)
{
	struct handle_shard *shard;

	if (!handles_search(handles, match, closure, &shard))
		return false;
	lock_release(&shard->lock);
	return true;
}

void handles_visit(struct handles *handles,
		   void (*call)(const struct handle *handle, void *closure), void *closure)
{
	for (unsigned s = 0; s < HANDLE_SHARDS; s++) {
		struct handle_shard *shard = &handles->shard[s];

		lock_acquire(&shard->lock);
		for (uint32_t i = 0; i < shard->capacity; i++)
			if (shard->slots[i].key)
				call(&shard->slots[i], closure);
		lock_release(&shard->lock);
	}
}

struct handle *handles_hold(struct handles *handles, const void *key, enum object object)
{
	struct handle_shard *shard = shard_of(handles, key);
	struct handle *slot;

	lock_acquire(&shard->lock);
	slot = shard_find(shard, key, object);
	if (!slot)
		lock_release(&shard->lock);
	return slot;
}

void handles_release(struct handles *handles, const void *key)
{
	lock_release(&shard_of(handles, key)->lock);
}

void handles_drop_locked(struct handles *handles)
{
	for (unsigned i = 0; i < HANDLE_SHARDS; i++)
		if (handles->shard[i].lock.word) {
			memset(&handles->shard[i], 0, sizeof(handles->shard[i]));
			memset(handles->first[i], 0, sizeof(handles->first[i]));
		}
}

void handles_move(struct handles *from, struct handles *to)
{
	handles_drop_locked(from);
	for (unsigned i = 0; i < HANDLE_SHARDS; i++) {
		if (!from->shard[i].capacity)
			continue;
		to->shard[i] = from->shard[i];
		if (from->shard[i].slots == from->first[i]) {
			memcpy(to->first[i], from->first[i], sizeof(to->first[i]));
			to->shard[i].slots = to->first[i];
		}
		memset(&from->shard[i], 0, sizeof(from->shard[i]));
		memset(from->first[i], 0, sizeof(from->first[i]));
	}
}
