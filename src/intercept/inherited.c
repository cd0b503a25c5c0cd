/* SPDX-License-Identifier: MIT */
/* The objects of processes before this one; see inherited.h. */
#include "intercept/inherited.h"

#include <string.h>
#include <sys/mman.h>

#include "intercept/library.h"

struct inherited {
	struct inherited *older;
	struct handles handles;
	struct ledger_past past;
};

/* Survives fork, with everything before it. */
static struct inherited *newest;

static bool handle_is_any(const struct handle *handle, const void *closure)
{
	return true;
}

void inherited_take_over(struct handles *handles)
{
	struct inherited *made;

	for (struct inherited *one = newest; one; one = one->older)
		handles_drop_locked(&one->handles);
	handles_drop_locked(handles);
	if (!handles_have(handles, handle_is_any, NULL))
		return;
	made = mmap(NULL, sizeof(*made), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
	if (made == MAP_FAILED) {
		memset(handles, 0, sizeof(*handles));
		return;
	}
	handles_move(handles, &made->handles);
	made->past = ledger_past();
	made->older = newest;
	newest = made;
}

bool inherited_look(const void *key, enum object object, struct handle *ret_handle)
{
	for (struct inherited *one = newest; one; one = one->older)
		if (handles_look(&one->handles, key, object, ret_handle))
			return true;
	return false;
}

struct inherited *inherited_release(const void *key, enum object object, struct handle *ret_handle)
{
	struct inherited *one = newest;

	while (one && !handles_take(&one->handles, key, object, ret_handle))
		one = one->older;
	return one;
}

void inherited_close(struct library *library, struct inherited *from, const struct handle *handle,
		     int result)
{
	struct handle none;

	if (result) {
		handles_put(&from->handles, handle, &none);
		return;
	}
	/* A channel is a descriptor, which another child may have as well. */
	if (handle->object == OBJECT_comp_channel)
		return;
	if (ledger_past_is_over(&from->past)) {
		ledger_past_refund(&from->past, handle->device, &handle->cost);
		return;
	}
	/* Address handles may be each process's own, others only one can destroy. */
	if (from != newest || handle->object == OBJECT_ah)
		return;
	for (unsigned i = 0; i < handle->cost.count; i++)
		__atomic_fetch_add(&library->pending_refund[handle->device][handle->cost.kind[i]],
				   handle->cost.amount[i], __ATOMIC_RELAXED);
	__atomic_store_n(&library->has_pending_refund, true, __ATOMIC_RELEASE);
}

bool inherited_refund_pending(struct library *library)
{
	if (!__atomic_load_n(&library->has_pending_refund, __ATOMIC_ACQUIRE) ||
	    !ledger_past_is_over(&newest->past))
		return false;
	__atomic_store_n(&library->has_pending_refund, false, __ATOMIC_RELAXED);
	for (unsigned device = 0; device < DEVICES_MAX; device++)
		for (int kind = 0; kind < KINDS_COUNTED; kind++) {
			struct cost cost = {
				1,
				{ (uint8_t)kind },
				{ __atomic_exchange_n(&library->pending_refund[device][kind], 0,
						      __ATOMIC_RELAXED) }
			};

			if (cost.amount[0])
				ledger_past_refund(&newest->past, device, &cost);
		}
	return true;
}

static bool inherited_is_of_group(const struct handle *handle, const void *closure)
{
	return handle->owner == *(const uint32_t *)closure;
}

/* The collector finds out whether anybody else has the device's file: who has none of the
 * dead process's objects any more is not to be found as its heir. */
void inherited_close_group(uint32_t group)
{
	struct handle handle;

	for (struct inherited *one = newest; one; one = one->older) {
		bool had = false;

		while (handles_take_any(&one->handles, inherited_is_of_group, &group, &handle))
			had = true;
		if (had && !handles_have(&one->handles, handle_is_any, NULL))
			ledger_past_leave(&one->past);
	}
}
