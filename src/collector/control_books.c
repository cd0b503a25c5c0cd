/* SPDX-License-Identifier: MIT */
/*
 * The policy on the books: every tenant that it names has a lease table and every device a
 * number, with their limits. What may fail is done before anything is changed.
 */
#include "collector/control.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "collector/grants.h"
#include "collector/limits.h"
#include "collector/patterns.h"
#include "collector/settings.h"

static bool policy_names_tenant(const struct policy *policy, const char *tenant)
{
	return !strcmp(tenant, COLLECTOR_TENANT) || policy_tenant_find(policy, tenant);
}

/* Every tenant that the policy names is on the books, and COLLECTOR_TENANT; others only while
 * they have members. Whether there is room for them all. */
static int tenants_fit(const struct collector *collector, const struct policy *policy,
		       char problem[PROBLEM_SIZE])
{
	const struct books *books = &collector->books;
	unsigned count = !policy_tenant_find(policy, COLLECTOR_TENANT);

	for (const struct policy_tenant *tenant = policy->tenants; tenant; tenant = tenant->next)
		count += !policy_name_is_pattern(tenant->name);
	for (unsigned i = 0; i < BOOKS_TENANTS; i++)
		count += books->tenant[i] && books->tenant[i]->members &&
			 !policy_names_tenant(policy, books->file->tenant[i].name);
	if (count <= BOOKS_TENANTS)
		return 0;
	return problem_set(-ENOSPC, problem,
			   "too many tenants: %u, with '" COLLECTOR_TENANT
			   "' and those that still have "
			   "processes: expected at most %u",
			   count, (unsigned)BOOKS_TENANTS);
}

/* Calls for each name of a tenant that a policy needs, until the result is not 0. */
static int tenants_each(struct books *books, const struct policy *policy,
			int (*call)(struct books *books, const char *name, void *closure),
			void *closure)
{
	int result = call(books, COLLECTOR_TENANT, closure);

	for (const struct policy_tenant *tenant = policy->tenants; tenant && result == 0;
	     tenant = tenant->next)
		if (!policy_name_is_pattern(tenant->name))
			result = call(books, tenant->name, closure);
	return result;
}

/* Where no row is free, that of a tenant nobody needs any more is renamed later, which cannot
 * fail. */
static int tenant_make(struct books *books, const char *name, void *closure)
{
	int result;

	if (books_tenant_find(books, name) >= 0 || books_tenants_are_full(books))
		return 0;
	result = books_tenant(books, name);
	if (result >= 0)
		return 0;
	snprintf(closure, PROBLEM_SIZE, "tenant '%s': its lease table cannot be made: %s", name,
		 strerror(-result));
	return result;
}

int control_prepare(struct collector *collector, const struct policy *policy,
		    char problem[PROBLEM_SIZE])
{
	int result = tenants_fit(collector, policy, problem);

	return result < 0 ? result : tenants_each(&collector->books, policy, tenant_make, problem);
}

/* A tenant without processes that no policy in force names, or -1. */
static int tenant_unneeded(const struct collector *collector)
{
	const struct books *books = &collector->books;

	for (unsigned i = 0; i < BOOKS_TENANTS; i++)
		if (books->tenant[i] && !books->tenant[i]->members &&
		    !policy_names_tenant(collector->effective, books->file->tenant[i].name))
			return (int)i;
	return -1;
}

void control_discard(struct collector *collector)
{
	int tenant;

	while ((tenant = tenant_unneeded(collector)) >= 0)
		books_tenant_drop(&collector->books, (unsigned)tenant);
}

static int tenant_take_over(struct books *books, const char *name, void *closure)
{
	int unneeded;

	if (books_tenant_find(books, name) >= 0)
		return 0;
	unneeded = tenant_unneeded(closure);
	if (unneeded >= 0)
		books_tenant_rename(books, (unsigned)unneeded, name);
	else
		books_tenant(books, name); /* at a start for which not all could be prepared */
	return 0;
}

/* Devices that somebody limits have their numbers before anybody uses them. */
static void devices_add(struct books *books, const struct policy_limits *limits)
{
	for (unsigned i = 0; i < limits->devices; i++)
		books_device(books, limits->device[i].name);
}

static void devices_name(struct collector *collector)
{
	const struct policy *policy = collector->effective;

	devices_add(&collector->books, &policy->host);
	devices_add(&collector->books, &policy->fallback.all);
	devices_add(&collector->books, &policy->fallback.process);
	devices_add(&collector->books, &policy->fallback.guarantee);
	for (const struct policy_tenant *tenant = policy->tenants; tenant; tenant = tenant->next) {
		devices_add(&collector->books, &tenant->all);
		devices_add(&collector->books, &tenant->process);
		devices_add(&collector->books, &tenant->guarantee);
	}
}

void control_apply(struct collector *collector)
{
	tenants_each(&collector->books, collector->effective, tenant_take_over, collector);
	control_discard(collector);
	collector->policy_generation++;
	devices_name(collector);
	limits_apply(collector);
	fairness_apply(collector);
	settings_apply(collector);
	rates_apply(collector);
	pacing_apply(collector);
	grants_enforce(&collector->books);
	guards_apply(collector);
}

/* ---- a tenant or a device that was not there */

void control_tenant_apply(struct collector *collector, unsigned tenant)
{
	limits_apply_tenant(collector, tenant);
	settings_apply(collector); /* of all: its priority may matter to others */
	pacing_apply(collector);
}

int control_tenant(struct collector *collector, const char *name)
{
	int tenant = books_tenant_find(&collector->books, name);

	if (tenant >= 0)
		return tenant;
	tenant = books_tenant(&collector->books, name);
	if (tenant >= 0)
		control_tenant_apply(collector, (unsigned)tenant);
	return tenant;
}

/* A name that nobody vouches for must not use up the numbers of real devices. */
static bool device_may_be_named(const struct collector *collector, const char *name, unsigned known)
{
	char path[sizeof("/sys/class/infiniband/") + NAME_SIZE];

	if (known < DEVICES_MAX / 2)
		return true;
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s", name);
	return !strchr(name, '/') && !access(path, F_OK);
}

unsigned control_device(struct collector *collector, const char *name)
{
	unsigned known = 1, device;

	while (known < DEVICES_MAX && books_device_name(&collector->books, known)) {
		if (!strcmp(books_device_name(&collector->books, known), name))
			return known;
		known++;
	}
	if (!name[0] || !device_may_be_named(collector, name, known))
		return LEDGER_NAMELESS;
	device = books_device(&collector->books, name);
	if (device != LEDGER_NAMELESS)
		limits_apply_device(collector, device);
	return device;
}
