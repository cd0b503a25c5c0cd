/* SPDX-License-Identifier: MIT */
/* Objects whose contexts were closed; see gate_release_group in gate.h. */
#include "base/maps.h"
#include "intercept/gate.h"

/*
 * When a context is closed the kernel frees its objects, unless something still
 * holds its file: a provider that maps queues from it (Soft-RoCE does) leaves the
 * mappings of queues that were not destroyed, and then everything stays, the
 * context too, until the process ends. Such objects linger: they stay charged, but
 * under a number instead of their address, which others may get.
 */
struct closed_group {
	uint32_t group;
	unsigned device;
};

static bool handle_lingers(const struct handle *handle)
{
	return (uintptr_t)handle->key & 1; /* no object has an odd address */
}

static bool handle_is_of_group(const struct handle *handle, const void *closure)
{
	return handle->owner == ((const struct closed_group *)closure)->group &&
	       !handle_lingers(handle);
}

static bool handle_is_queue_of_group(const struct handle *handle, const void *closure)
{
	return handle_is_of_group(handle, closure) &&
	       (handle->object == OBJECT_cq || handle->object == OBJECT_qp ||
		handle->object == OBJECT_srq || handle->object == OBJECT_wq);
}

static bool handle_lingers_on_device(const struct handle *handle, const void *closure)
{
	return handle->device == ((const struct closed_group *)closure)->device &&
	       handle_lingers(handle);
}

static void group_linger(struct library *library, const struct closed_group *closed)
{
	struct handle handle, none;

	while (handles_take_any(&library->handles, handle_is_of_group, closed, &handle)) {
		handle.key = (void *)(uintptr_t)(2 * __atomic_add_fetch(&library->lingering, 1,
									__ATOMIC_RELAXED) +
						 1);
		handles_put(&library->handles, &handle, &none);
	}
	log_write(&library->log, LOG_INFO,
		  "a context of %s was closed with queues in it; the kernel "
		  "keeps all of its objects, and they stay charged",
		  ledger_device_name(&library->ledger, closed->device));
}

static void group_release(struct library *library, handle_match *match,
			  const struct closed_group *closed)
{
	struct handle handle;

	while (handles_take_any(&library->handles, match, closed, &handle))
		gate_give_back(library, &handle);
}

void gate_release_group(struct library *library, uint32_t group, unsigned device, const char *path)
{
	struct closed_group closed = { group, device };

	if (handles_have(&library->handles, handle_is_queue_of_group, &closed) && maps_have(path)) {
		group_linger(library, &closed);
		return;
	}
	group_release(library, handle_is_of_group, &closed);
	if (__atomic_load_n(&library->lingering, __ATOMIC_RELAXED) && !maps_have(path))
		group_release(library, handle_lingers_on_device, &closed);
}
