/* SPDX-License-Identifier: MIT */
/* Amounts for each kind, in total and on single devices; see limits.h. */
#include "policy/limits.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void amounts_unset(uint64_t amount[KINDS_COUNTED])
{
	for (int kind = 0; kind < KINDS_COUNTED; kind++)
		amount[kind] = UNSET;
}

static bool amounts_are_unset(const uint64_t amount[KINDS_COUNTED])
{
	for (int kind = 0; kind < KINDS_COUNTED; kind++)
		if (amount[kind] != UNSET)
			return false;
	return true;
}

void policy_limits_init(struct policy_limits *limits)
{
	amounts_unset(limits->total);
	limits->devices = 0;
	limits->device = NULL;
}

void policy_limits_release(struct policy_limits *limits)
{
	free(limits->device);
}

static struct policy_device *limits_device_find(const struct policy_limits *limits,
						const char *name)
{
	for (unsigned i = 0; i < limits->devices; i++)
		if (!strcmp(limits->device[i].name, name))
			return &limits->device[i];
	return NULL;
}

static int limits_device_add(struct policy_limits *limits, const char *name,
			     struct policy_device **ret_device)
{
	struct policy_device *grown, *device;

	if (limits->devices == POLICY_DEVICES)
		return -E2BIG;
	grown = reallocarray(limits->device, limits->devices + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	limits->device = grown;
	device = &grown[limits->devices++];
	snprintf(device->name, sizeof(device->name), "%s", name);
	amounts_unset(device->limit);
	*ret_device = device;
	return 0;
}

const uint64_t *policy_limits_find(const struct policy_limits *limits, const char *device,
				   enum kind kind)
{
	const struct policy_device *row;

	if (!device)
		return &limits->total[kind];
	row = limits_device_find(limits, device);
	return row ? &row->limit[kind] : NULL;
}

int policy_limit_set(struct policy_limits *limits, const char *device, enum kind kind,
		     uint64_t value)
{
	struct policy_device *row;
	int result;

	if (!device) {
		limits->total[kind] = value;
		return 0;
	}
	row = limits_device_find(limits, device);
	if (!row) {
		if (value == UNSET)
			return 0;
		result = limits_device_add(limits, device, &row);
		if (result < 0)
			return result;
	}
	row->limit[kind] = value;
	if (amounts_are_unset(row->limit))
		*row = limits->device[--limits->devices];
	return 0;
}

uint64_t policy_limit(const struct policy_limits *limits, const char *device, enum kind kind)
{
	const uint64_t *limit = policy_limits_find(limits, device, kind);

	return !limit || *limit == UNSET ? UNLIMITED : *limit;
}
