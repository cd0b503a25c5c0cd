/* SPDX-License-Identifier: MIT */
/* The wrappers that open, import and close contexts; rows SPECIAL or UNVERSIONED of verbs.def. */
#include <errno.h>

#include "base/maps.h"
#include "intercept/contexts.h"
#include "intercept/costs.h"
#include "intercept/devices.h"
#include "intercept/gate.h"
#include "intercept/prototypes.h"

/* Books a context that the real verb just made, and replaces its operations. */
static struct ibv_context *context_commit(struct creation *creation, uint64_t begun,
					  struct ibv_context *context)
{
	int result;

	call_count(creation->library, VERB_create_other, begun, !context);
	if (!context) {
		creation_fail(creation);
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

/* Whether a context on the device may be had. False, with errno EACCES for a device that is
 * forbidden, also where the collector does not answer. */
static bool context_begin(struct creation *creation, const char *verb, const char *device)
{
	bool forbidden = device_is_forbidden(creation->library, device);

	creation->handle.cost = COST1(ctx, 1);
	if (!creation_begin_on_device(creation, verb, device)) {
		if (forbidden)
			errno = EACCES;
		return false;
	}
	if (!forbidden)
		return true;
	call_count_refused(creation->library, VERB_create_other);
	return device_refuse(creation);
}

struct ibv_context *wrap_ibv_open_device(struct ibv_device *device)
{
	__typeof__(real_verbs.ibv_open_device) real = REAL(ibv_open_device);
	struct creation creation;
	uint64_t begun;

	if (!real)
		return NULL;
	if (!creation_start_library(&creation, OBJECT_ctx, NULL, CALLER))
		return real(device);
	if (!context_begin(&creation, "ibv_open_device", device->name))
		return NULL;
	begun = cycles_now();
	return context_commit(&creation, begun, UNCANCELLED(real(device)));
}

/* What providers' own openers come to. */
struct ibv_context *wrap_verbs_open_device(struct ibv_device *device, void *private_data)
{
	__typeof__(real_verbs.verbs_open_device) real = REAL(verbs_open_device);
	struct creation creation;
	uint64_t begun;

	if (!real)
		return NULL;
	if (!creation_start_library(&creation, OBJECT_ctx, NULL, CALLER))
		return real(device, private_data);
	if (!context_begin(&creation, "verbs_open_device", device->name))
		return NULL;
	begun = cycles_now();
	return context_commit(&creation, begun, UNCANCELLED(real(device, private_data)));
}

/* A context costs nothing when it is imported. The question is asked all the same on a forbidden
 * device, so that the collector knows of the refusal. */
static bool context_import_refused(struct library *library, const char *device)
{
	struct creation creation = { .library = library };

	if (!device_is_forbidden(library, device))
		return false;
	if (context_begin(&creation, "ibv_import_device", device))
		creation_abort(&creation);
	return true;
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
	if (context_import_refused(library, context->device->name))
		reason = EACCES;
	else if (!gate_device(library, "ibv_import_device", context->device->name, &device))
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
	uint64_t begun;
	int result, left;

	if (!real)
		return EOPNOTSUPP;
	/* Forget it first: its address is reused as soon as it is closed. */
	if (library && context_remove(library, context, &group, &device))
		maps_path_of(context->cmd_fd, path, sizeof(path));
	else
		library = NULL;
	begun = cycles_now();
	result = real(context);
	left = errno;
	if (library)
		call_count(library, VERB_destroy_other, begun, result != 0);
	if (library && !context_group_is_open(group)) { /* the context's own handle is among them */
		gate_release_group(library, group, device, path);
		inherited_close_group(group);
	}
	errno = left;
	return result;
}
