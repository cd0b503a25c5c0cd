/* SPDX-License-Identifier: MIT */
/* The limits in force; see limits.h. */
#include "collector/limits.h"

#include <string.h>

#include "collector/grants.h"

/* From what the policy says to what is in force: the one place where a limit could be computed
 * from the configured one and from other things. */
static void scope_put_into_force(struct scope *scope)
{
	memcpy(scope->limit, scope->configured, sizeof(scope->limit));
}

/* On a device, or in total (NULL). */
static void scope_set_host(const struct collector *collector, const char *device,
			   struct scope *scope)
{
	for (unsigned kind = 0; kind < KIND_COUNT; kind++)
		scope->configured[kind] = policy_limit(&collector->effective->host, device, kind);
	scope_put_into_force(scope);
}

static void scope_set_tenant(const struct collector *collector, const struct policy_tenant *said,
			     const char *device, struct scope *scope, uint64_t process[KIND_COUNT])
{
	const struct policy *policy = collector->effective;

	for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
		scope->configured[kind] = policy_tenant_limit(policy, said, false, device, kind);
		process[kind] = policy_tenant_limit(policy, said, true, device, kind);
	}
	scope_put_into_force(scope);
}

static const struct policy_tenant *limits_tenant_said(const struct collector *collector,
						      unsigned number)
{
	return policy_tenant_find(collector->effective, collector->books.file->tenant[number].name);
}

/* A tenant on a device, or in total (0). */
static void limits_set_tenant(struct collector *collector, unsigned number, unsigned device)
{
	struct tenant *tenant = collector->books.tenant[number];
	const struct policy_tenant *said = limits_tenant_said(collector, number);

	if (device)
		scope_set_tenant(collector, said, books_device_name(&collector->books, device),
				 &tenant->all.device[device], tenant->process_limit.device[device]);
	else
		scope_set_tenant(collector, said, NULL, &tenant->all.total,
				 tenant->process_limit.total);
}

static void limits_set_mode(struct collector *collector, unsigned number)
{
	/* The same numbers. */
	grants_mode(&collector->books, number,
		    (enum mode)policy_tenant_mode(collector->effective,
							 limits_tenant_said(collector, number)));
}

void limits_apply_device(struct collector *collector, unsigned device)
{
	struct books *books = &collector->books;
	const char *name = books_device_name(books, device);

	if (!name)
		return;
	scope_set_host(collector, name, &books->host.device[device]);
	for (unsigned i = 0; i < BOOKS_TENANTS; i++)
		if (books->tenant[i])
			limits_set_tenant(collector, i, device);
}

void limits_apply_tenant(struct collector *collector, unsigned tenant)
{
	limits_set_tenant(collector, tenant, 0);
	for (unsigned device = 1; device < DEVICES_MAX; device++)
		if (books_device_name(&collector->books, device))
			limits_set_tenant(collector, tenant, device);
	limits_set_mode(collector, tenant);
}

void limits_apply(struct collector *collector)
{
	struct books *books = &collector->books;

	scope_set_host(collector, NULL, &books->host.total);
	for (unsigned i = 0; i < BOOKS_TENANTS; i++)
		if (books->tenant[i])
			limits_set_tenant(collector, i, 0);
	for (unsigned device = 1; device < DEVICES_MAX; device++)
		limits_apply_device(collector, device);
	/* What a mode tolerated is booked under the limits above. */
	for (unsigned i = 0; i < BOOKS_TENANTS; i++)
		if (books->tenant[i])
			limits_set_mode(collector, i);
}

const struct scope *limits_of_tenant(const struct collector *collector, const char *name,
				     enum mode *ret_mode)
{
	const struct books *books = &collector->books;
	int number = books_tenant_find(books, name);

	if (number < 0)
		return NULL;
	*ret_mode = (enum mode)books->tenant[number]->table->mode;
	return &books->tenant[number]->all.total;
}
