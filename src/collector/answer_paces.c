/* SPDX-License-Identifier: MIT */
/* GET_PACES: paces and priorities of tenants, and what their processes have posted. */
#include "collector/answers.h"

#include <stdio.h>
#include <string.h>

/* Over the leases of the processes that run now. */
static struct posted tenant_posted(const struct books *books, unsigned tenant)
{
	struct posted sum = { 0 }, one;

	for (uint32_t lease = books->tenant[tenant]->leases; lease != BOOKS_NOBODY;
	     lease = books->view[lease].next_of_tenant) {
		uint64_t *to = (uint64_t *)&sum;
		const uint64_t *from = (const uint64_t *)&one;

		if (!pacing_lease_posted(books, lease, &one))
			continue;
		for (unsigned i = 0; i < sizeof(sum) / sizeof(*to); i++)
			to[i] += from[i];
	}
	return sum;
}

void answer_GET_PACES(struct collector *collector, const struct request *request)
{
	struct proto_choose choose = request_choice(request);
	const struct books *books = &collector->books;

	for (unsigned i = 0; i < BOOKS_TENANTS; i++) {
		const char *name = books->file->tenant[i].name;
		const struct pace_settings *pace;
		struct proto_pace row;

		if (!books->tenant[i] || (choose.tenant[0] && strcmp(choose.tenant, name) != 0))
			continue;
		pace = &books->tenant[i]->table->settings.pace;
		if (!pace->is_counted && collector->pacing.priority[i] == PRIORITY_NORMAL)
			continue;
		row = (struct proto_pace){
			.priority = collector->pacing.priority[i],
			.is_counted = (uint32_t)pace->is_counted,
			.bytes = pace->bytes,
			.operations = pace->operations,
			.process_bytes = pace->process_bytes,
			.process_operations = pace->process_operations,
			.qp_bytes = pace->qp_bytes,
			.qp_operations = pace->qp_operations,
			.floor = pace->floor,
			.max_delay_ns = pace->max_delay_ns,
			.posted = tenant_posted(books, i),
		};
		snprintf(row.tenant, sizeof(row.tenant), "%s", name);
		memcpy(row.held, pace->held, sizeof(row.held));
		server_row(request, &row);
	}
	server_end(request);
}
