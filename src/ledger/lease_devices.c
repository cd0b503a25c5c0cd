/* SPDX-License-Identifier: MIT */
/* The names of the devices on which a process with a collector has counts; see lease.h. */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "ledger/lease.h"

/* The devices that this process, or one that it was forked from, has named. Contexts
 * outlive fork and with them the numbers. Written under `asking`, name before count. */
static char lease_device_names[DEVICES_MAX][NAME_SIZE];
static unsigned lease_device_count = 1; /* the nameless one */

void lease_device_limits(const struct ledger *ledger, unsigned device, uint64_t *ret_limit)
{
	const struct ledger_limits *limits = ledger->limits;

	for (int kind = 0; kind < KINDS_COUNTED; kind++)
		ret_limit[kind] = UNLIMITED;
	for (unsigned i = 0; i < limits->devices; i++)
		if (!strcmp(limits->device[i].name, lease_device_names[device]))
			memcpy(ret_limit, limits->device[i].limit, sizeof(limits->device[i].limit));
}

int lease_device(struct ledger *ledger, const char *name)
{
	unsigned device = 1;

	lock_acquire(&ledger->lease.asking);
	while (device < lease_device_count &&
	       strncmp(lease_device_names[device], name, NAME_SIZE - 1))
		device++;
	if (device == lease_device_count && device < DEVICES_MAX) {
		strncpy(lease_device_names[device], name, NAME_SIZE - 1);
		__atomic_store_n(&lease_device_count, device + 1, __ATOMIC_RELEASE);
	}
	lock_release(&ledger->lease.asking);
	return device < DEVICES_MAX ? (int)device : -ENOSPC;
}

const char *lease_device_name(const struct ledger *ledger, unsigned device)
{
	return lease_device_names[device];
}

const struct lease_share *lease_share(const struct ledger *ledger, unsigned device)
{
	const uint64_t *cap = __atomic_load_n(&ledger->lease.cap[device], __ATOMIC_ACQUIRE);
	const char *row = (const char *)cap - offsetof(struct lease_row, cap);

	return cap == lease_no_cap ? NULL : &((const struct lease_row *)(const void *)row)->share;
}

unsigned lease_devices(void)
{
	return lease_device_count;
}
