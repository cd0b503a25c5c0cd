/* SPDX-License-Identifier: MIT */
/*
 * The wrappers of the list of devices: a tenant does not see those that its policy does not allow
 * it. Nothing is allocated: the array of libibverbs is put in another order and put back before
 * it is freed. See devices.h.
 */
#include "intercept/devices.h"

#include <errno.h>

#include "intercept/prototypes.h"
#include "intercept/refusals.h"

/*
 * An array of n devices has n + 1 places. Where some are hidden, it becomes: the visible ones, NULL,
 * the hidden ones. The last of these is marked in its lowest bit, since no NULL follows it.
 * libibverbs holds a reference to each device of a list and gives back those up to NULL, so the
 * hidden ones have to be there again when it frees the list. The lists that are in this order
 * stand in a table, which a forked child has, too. One that finds no place in the table is freed
 * as it is: libibverbs then keeps the memory of the hidden devices.
 */
enum { SHORTENED = 64 };
static struct ibv_device **shortened[SHORTENED];

static struct ibv_device *device_mark(struct ibv_device *device, uintptr_t mark)
{
	return (struct ibv_device *)(((uintptr_t)device & ~(uintptr_t)1) | mark);
}

bool device_is_forbidden(const struct library *library, const char *name)
{
	struct tenant_settings settings;

	return library->phase == PHASE_ACTIVE && ledger_enforces(&library->ledger) &&
	       settings_read(ledger_settings(&library->ledger), &settings) &&
	       !settings_device_matches(settings.devices, name);
}

bool device_refuse(struct creation *creation)
{
	creation_abort(creation);
	refusal_report(creation->library, creation->verb, creation->handle.device,
		       &(struct ledger_refusal){ .forbidden = true, .unanswered = true });
	errno = EACCES;
	return false;
}

/* Moves those that the settings hide to the end, in the order that they have; how many there are. */
static unsigned list_shorten(struct ibv_device **list, const struct tenant_settings *settings)
{
	unsigned count = 0, visible = 0, end;

	while (list[count])
		count++;
	end = count;
	for (unsigned i = 0; i < end;) {
		struct ibv_device *device = list[i];

		if (settings_device_matches(settings->devices, device->name)) {
			visible = ++i;
			continue;
		}
		for (unsigned j = i + 1; j < count; j++)
			list[j - 1] = list[j];
		list[count - 1] = device;
		end--;
	}
	if (visible == count)
		return 0;
	for (unsigned i = count; i > visible; i--)
		list[i] = list[i - 1];
	list[visible] = NULL;
	list[count] = device_mark(list[count], 1);
	return count - visible;
}

static void list_restore(struct ibv_device **list)
{
	bool last = false;

	while (*list)
		list++;
	for (; !last; list++) {
		last = (uintptr_t)list[1] & 1;
		list[0] = device_mark(list[1], 0);
	}
	*list = NULL;
}

static void list_note(struct ibv_device **list)
{
	for (unsigned i = 0; i < SHORTENED; i++) {
		struct ibv_device **none = NULL;

		if (__atomic_compare_exchange_n(&shortened[i], &none, list, false, __ATOMIC_RELEASE,
						__ATOMIC_RELAXED))
			return;
	}
}

static bool list_take(struct ibv_device **list)
{
	for (unsigned i = 0; list && i < SHORTENED; i++) {
		struct ibv_device **noted = list;

		if (__atomic_compare_exchange_n(&shortened[i], &noted, NULL, false,
						__ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return true;
	}
	return false;
}

struct ibv_device **wrap_ibv_get_device_list(int *num_devices)
{
	__typeof__(real_verbs.ibv_get_device_list) real = REAL(ibv_get_device_list);
	struct library *library = library_active();
	struct tenant_settings settings;
	struct ibv_device **list;
	unsigned hidden;

	if (!real)
		return NULL;
	list = real(num_devices);
	list_take(list); /* of an earlier list that the program freed by itself */
	if (!list || !library || !ledger_enforces(&library->ledger) ||
	    !settings_read(ledger_settings(&library->ledger), &settings) || !settings.devices[0])
		return list;
	hidden = list_shorten(list, &settings);
	if (!hidden)
		return list;
	list_note(list);
	if (num_devices)
		*num_devices -= (int)hidden;
	return list;
}

void wrap_ibv_free_device_list(struct ibv_device **list)
{
	__typeof__(real_verbs.ibv_free_device_list) real = REAL(ibv_free_device_list);

	if (list_take(list))
		list_restore(list);
	if (real)
		real(list);
}
