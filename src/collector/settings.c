/* SPDX-License-Identifier: MIT */
/* The settings of tenants; see settings.h. */
#include "collector/settings.h"

#include <stdio.h>
#include <string.h>

void settings_apply_tenant(struct collector *collector, unsigned tenant)
{
	const struct policy *policy = collector->effective;
	const struct policy_tenant *said =
		policy_tenant_find(policy, collector->books.file->tenant[tenant].name);
	const char *devices = policy_tenant_devices(policy, said);
	struct tenant_settings settings = settings_none;

	if (strcmp(devices, "*"))
		snprintf(settings.devices, sizeof(settings.devices), "%s", devices);
	settings_write(&collector->books.tenant[tenant]->table->settings, &settings);
}

void settings_apply(struct collector *collector)
{
	for (unsigned i = 0; i < BOOKS_TENANTS; i++)
		if (collector->books.tenant[i])
			settings_apply_tenant(collector, i);
}
