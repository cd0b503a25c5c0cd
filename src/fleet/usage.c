/* SPDX-License-Identifier: MIT */
/* Questions to the collector; see usage.h. */
#include "fleet/usage.h"

#include <string.h>

static int usage_row_take(const void *row, void *closure)
{
	const struct proto_row *one = row;
	struct fleet_usage *usage = closure;

	if (one->scope != ROW_TENANT || one->device[0] || usage->tenants == USAGE_TENANTS)
		return 0;
	usage->tenant[usage->tenants] = *one;
	proto_text(usage->tenant[usage->tenants].tenant);
	usage->tenants++;
	return 0;
}

void fleet_usage_read(struct fleet_usage *usage, const char *socket)
{
	const struct proto_choose choose = { .flags = CHOOSE_TENANTS };
	struct proto_status status;
	int result;

	usage->tenants = 0;
	usage->problem[0] = '\0';
	result = proto_call(socket, MESSAGE_STATUS, NULL, &status, NULL, 0, 0, usage->problem);
	if (result >= 0)
		result = proto_rows(socket, MESSAGE_GET_STATS, &choose, usage_row_take, usage, 0,
				    usage->problem);
	usage->answers = result >= 0;
	if (!usage->answers)
		return;
	usage->processes = status.processes;
	usage->uncovered = status.uncovered;
	memcpy(usage->version, proto_text(status.version), sizeof(usage->version));
	memcpy(usage->problem, proto_text(status.problem), sizeof(usage->problem));
}

const struct proto_row *fleet_usage_find(const struct fleet_usage *usage, const char *tenant)
{
	for (unsigned i = 0; i < usage->tenants; i++)
		if (!strcmp(usage->tenant[i].tenant, tenant))
			return &usage->tenant[i];
	return NULL;
}
