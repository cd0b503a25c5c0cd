/* SPDX-License-Identifier: MIT */
/* The limits in force; see limits.h. */
#include "collector/limits.h"

#include "collector/grants.h"

/* On a device, or in total (NULL). */
static void host_scope(const struct collector *collector, const char *device, struct scope *scope)
{
	for (unsigned kind = 0; kind < KIND_COUNT; kind++)
		scope->limit[kind] = policy_limit(&collector->effective->host, device, kind);
}

static void tenant_scope(const struct collector *collector, const struct policy_tenant *said,
			 const char *device, struct scope *scope, uint64_t process[KIND_COUNT])
{
	for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
		scope->limit[kind] =
			policy_tenant_limit(collector->effective, said, false, device, kind);
		process[kind] = policy_tenant_limit(collector->effective, said, true, device, kind);
	}
}

static const struct policy_tenant *tenant_said(const struct collector *collector, unsigned number)
{
	return policy_tenant_find(collector->effective, collector->books.file->tenant[number].name);
}

void limits_apply_device(struct collector *collector, unsigned device)
{
	struct books *books = &collector->books;
	const char *name = books_device_name(books, device);

	if (!name)
		return;
	host_scope(collector, name, &books->host.device[device]);
	for (unsigned i = 0; i < BOOKS_TENANTS; i++)
		if (books->tenant[i])
			tenant_scope(collector, tenant_said(collector, i), name,
				     &books->tenant[i]->all.device[device],
				     books->tenant[i]->process_limit.device[device]);
}

void limits_apply(struct collector *collector)
{
	struct books *books = &collector->books;

	host_scope(collector, NULL, &books->host.total);
	for (unsigned i = 0; i < BOOKS_TENANTS; i++) {
		struct tenant *tenant = books->tenant[i];
		const struct policy_tenant *said;

		if (!tenant)
			continue;
		said = tenant_said(collector, i);
		tenant_scope(collector, said, NULL, &tenant->all.total,
			     tenant->process_limit.total);
	}
	for (unsigned device = 1; device < LEDGER_DEVICES; device++)
		limits_apply_device(collector, device);
	/* What a mode tolerated is booked under the limits above. */
	for (unsigned i = 0; i < BOOKS_TENANTS; i++)
		if (books->tenant[i])
			grants_mode(books, i,
				    (enum ledger_mode)policy_tenant_mode(
					    collector->effective,
					    tenant_said(collector, i))); /* the same numbers */
}

const struct scope *limits_of_tenant(const struct collector *collector, const char *name,
				     enum ledger_mode *ret_mode)
{
	const struct books *books = &collector->books;
	int number = books_tenant_find(books, name);

	if (number < 0)
		return NULL;
	*ret_mode = (enum ledger_mode)books->tenant[number]->table->mode;
	return &books->tenant[number]->all.total;
}
