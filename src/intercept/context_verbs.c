/* SPDX-License-Identifier: MIT */
/* The wrappers that open, import and close contexts; rows SPECIAL or UNVERSIONED of verbs.def. */
#include <errno.h>

#include "base/maps.h"
#include "intercept/contexts.h"
#include "intercept/costs.h"
#include "intercept/gate.h"
#include "intercept/prototypes.h"

/* Books a context that the real verb just made, and replaces its operations. */
static struct ibv_context *context_commit(struct creation *creation, struct ibv_context *context)
{
	int result;

	if (!context) {
		creation_abort(creation);
		return NULL;
	}
	result = context_add(creation->library, context, creation->handle.device, false);
	if (result < 0) {
		object_undo(OBJECT_ctx, context, context);
		creation_abort(creation);
		errno = -result;
		return NULL;
	}
	creation->context = context;
	creation->handle.owner = context_find(context)->group;
	if (!creation_try_commit(creation, context)) {
		uint32_t group;
		unsigned device;

		context_remove(creation->library, context, &group, &device);
		object_undo(OBJECT_ctx, context, context);
		creation_abort(creation);
		errno = ENOMEM;
		return NULL;
	}
	return context;
}

struct ibv_context *wrap_ibv_open_device(struct ibv_device *device)
{
	__typeof__(real_verbs.ibv_open_device) real = REAL(ibv_open_device);
	struct creation creation;

	if (!real)
		return NULL;
	if (!creation_start_library(&creation, OBJECT_ctx, NULL, CALLER))
		return real(device);
	creation.handle.cost = COST1(ctx, 1);
	if (!creation_begin_on_device(&creation, "ibv_open_device", device->name))
		return NULL;
	return context_commit(&creation, UNCANCELLED(real(device)));
}

/* What providers' own openers come to. */
struct ibv_context *wrap_verbs_open_device(struct ibv_device *device, void *private_data)
{
	__typeof__(real_verbs.verbs_open_device) real = REAL(verbs_open_device);
	struct creation creation;

	if (!real)
		return NULL;
	if (!creation_start_library(&creation, OBJECT_ctx, NULL, CALLER))
		return real(device, private_data);
	creation.handle.cost = COST1(ctx, 1);
	if (!creation_begin_on_device(&creation, "verbs_open_device", device->name))
		return NULL;
	return context_commit(&creation, UNCANCELLED(real(device, private_data)));
}

/* Another handle on a context that exists: nothing is charged, but what is made
 * through it is. */
struct ibv_context *wrap_ibv_import_device(int cmd_fd)
{
	__typeof__(real_verbs.ibv_import_device) real = REAL(ibv_import_device);
	struct library *library = library_get();
	struct ibv_context *context;
	unsigned device;
	int saved = errno, reason = ENOMEM;

	if (!real)
		return NULL;
	if (library && library_refuses(library)) {
		errno = library->config.deny_errno;
		return NULL;
	}
	context = real(cmd_fd);
	if (!context || !library)
		return context;
	if (!gate_device(library, "ibv_import_device", context->device->name, &device))
		reason = errno;
	else if (context_add(library, context, device, true) == 0)
		reason = 0;
	if (reason) {
		object_undo(OBJECT_ctx, context, context);
		context = NULL;
	}
	errno = reason ? reason : saved;
	return context;
}

int wrap_ibv_close_device(struct ibv_context *context)
{
	__typeof__(real_verbs.ibv_close_device) real = REAL(ibv_close_device);
	struct library *library = gate_nested(OBJECT_ctx, CALLER) ? NULL : library_active();
	char path[64];
	uint32_t group;
	unsigned device;
	int result, left;

	if (!real)
		return EOPNOTSUPP;
	/* Forget it first: its address is reused as soon as it is closed. */
	if (library && context_remove(library, context, &group, &device))
		maps_path_of(context->cmd_fd, path, sizeof(path));
	else
		library = NULL;
	result = real(context);
	left = errno;
	if (library && !context_group_is_open(group)) { /* the context's own handle is among them */
		gate_release_group(library, group, device, path);
		inherited_close_group(group);
	}
	errno = left;
	return result;
}
