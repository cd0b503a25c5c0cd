/* SPDX-License-Identifier: MIT */
/* The limits in force; see limits.h. */
#include "collector/limits.h"

#include "collector/grants.h"
#include "terms/settings.h"

/* From what the policy says to what is in force: the one place where the limit is computed from the
 * configured one and the share. */
static void scope_put_into_force(struct scope *scope, unsigned kind)
{
	bool shared = scope->reason[kind] != FAIR_CONFIGURED &&
		      scope->share[kind] < scope->configured[kind];

	scope->limit[kind] = scope->forbidden ? 0 :
			     shared	     ? scope->share[kind] :
					       scope->configured[kind];
}

void limits_share(struct books *books, unsigned tenant, unsigned place, unsigned kind,
		  const struct fair_share *share)
{
	struct scope *scope = books_scope(&books->tenant[tenant]->all, place);

	scope->share[kind] = share->effective;
	scope->reason[kind] = (uint8_t)share->reason;
	scope_put_into_force(scope, kind);
}

/* On a device, or in total (NULL). */
static void scope_set_host(const struct collector *collector, const char *device,
			   struct scope *scope)
{
	for (unsigned kind = 0; kind < KINDS_COUNTED; kind++) {
		scope->configured[kind] = policy_limit(&collector->effective->host, device, kind);
		scope_put_into_force(scope, kind);
	}
}

static void scope_set_tenant(const struct collector *collector, const struct policy_tenant *said,
			     const char *device, struct scope *scope, uint64_t process[KINDS_COUNTED])
{
	const struct policy *policy = collector->effective;

	for (unsigned kind = 0; kind < KINDS_COUNTED; kind++) {
		scope->configured[kind] = policy_tenant_limit(policy, said, false, device, kind);
		scope->guarantee[kind] = policy_tenant_guarantee(policy, said, device, kind);
		process[kind] = policy_tenant_limit(policy, said, true, device, kind);
		scope_put_into_force(scope, kind);
	}
}

static const struct policy_tenant *limits_tenant_said(const struct collector *collector,
						      unsigned number)
{
	return policy_tenant_find(collector->effective, collector->books.file->tenant[number].name);
}

bool limits_forbid_device(const struct collector *collector, unsigned tenant, unsigned device)
{
	const char *name = books_device_name(&collector->books, device);

	return name && !settings_device_matches(
			       policy_tenant_devices(collector->effective,
						     limits_tenant_said(collector, tenant)),
			       name);
}

/* A tenant on a device, or in total (0). */
static void limits_set_tenant(struct collector *collector, unsigned number, unsigned device)
{
	struct tenant *tenant = collector->books.tenant[number];
	const struct policy_tenant *said = limits_tenant_said(collector, number);

	if (device) {
		tenant->all.device[device].forbidden =
			limits_forbid_device(collector, number, device);
		scope_set_tenant(collector, said, books_device_name(&collector->books, device),
				 &tenant->all.device[device], tenant->process_limit.device[device]);
	} else {
		scope_set_tenant(collector, said, NULL, &tenant->all.total,
				 tenant->process_limit.total);
	}
	tenant->weight = policy_tenant_weight(collector->effective, said);
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

bool limits_of_ports(const struct collector *collector, const char *name)
{
	const struct books *books = &collector->books;
	int number = books_tenant_find(books, name);
	const struct tenant *tenant = number < 0 ? NULL : books->tenant[number];

	for (unsigned device = 1; tenant && device < DEVICES_MAX; device++)
		for (unsigned kind = KIND_COUNT; kind < KINDS_COUNTED; kind++)
			if (tenant->all.device[device].limit[kind] != UNLIMITED ||
			    tenant->process_limit.device[device][kind] != UNLIMITED ||
			    books->host.device[device].limit[kind] != UNLIMITED)
				return true;
	return false;
}
