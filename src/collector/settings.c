/* SPDX-License-Identifier: MIT */
/* The settings of tenants; see settings.h. */
#include "collector/settings.h"

#include <stdio.h>
#include <string.h>

#include "terms/verdict.h"

static void settings_apply_tenant(struct collector *collector, unsigned tenant)
{
	const struct policy *policy = collector->effective;
	const struct policy_tenant *said =
		policy_tenant_find(policy, collector->books.file->tenant[tenant].name);
	const char *devices = policy_tenant_devices(policy, said);
	struct tenant_settings settings = settings_none;

	settings.pace = policy_tenant_pace(policy, said);
	pacing_fill(collector, tenant, &settings.pace);
	if (strcmp(devices, "*"))
		snprintf(settings.devices, sizeof(settings.devices), "%s", devices);
	/* Who is only watched is not made to use another class. */
	if (verdict_at_limit(LIMIT_OF_POLICY, policy_tenant_mode(policy, said), MODE_ENFORCE) ==
	    VERDICT_REFUSED)
		settings.classes = policy_tenant_classes(policy, said);
	settings_write(&collector->books.tenant[tenant]->table->settings, &settings);
}

void settings_apply(struct collector *collector)
{
	pacing_prepare(collector);
	for (unsigned i = 0; i < BOOKS_TENANTS; i++)
		if (collector->books.tenant[i])
			settings_apply_tenant(collector, i);
}
