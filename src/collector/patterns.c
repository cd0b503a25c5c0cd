/* SPDX-License-Identifier: MIT */
/* The life of tenants that patterns make; see patterns.h. */
#include "collector/patterns.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "collector/control.h"
#include "collector/grants.h"
#include "collector/rates.h"
#include "collector/settings.h"
#include "collector/shares.h"

bool patterns_made(const struct collector *collector, const char *name)
{
	int tenant = books_tenant_find(&collector->books, name);

	return tenant >= 0 && books_tenant_pattern(&collector->books, (unsigned)tenant)[0] &&
	       !control_names_tenant(collector, name);
}

static void patterns_report(struct collector *collector, enum proto_event_type type,
			    const char *tenant, const char *pattern)
{
	struct proto_event event = { .type = type };

	snprintf(event.tenant, sizeof(event.tenant), "%s", tenant);
	snprintf(event.text, sizeof(event.text), "by the pattern %s", pattern);
	collector_event(collector, &event);
}

/* ---- made */

static int patterns_adopt(struct collector *collector, unsigned tenant, struct policy_tenant *pattern,
			  const char **ret_reason)
{
	const char *name = collector->books.file->tenant[tenant].name;
	int result = policy_tenant_make(collector->effective, name, pattern);

	if (result < 0) {
		*ret_reason = strerror(-result);
		return result;
	}
	books_tenant_mark(&collector->books, tenant, pattern->name);
	control_tenant_apply(collector, tenant);
	rates_apply(collector);
	grants_enforce(&collector->books);
	patterns_report(collector, EVENT_TENANT_CREATED, name, pattern->name);
	return (int)tenant;
}

int patterns_tenant(struct collector *collector, struct policy_tenant *pattern, const char *name,
		    const char **ret_reason)
{
	struct books *books = &collector->books;
	int tenant = books_tenant_find(books, name);

	if (tenant >= 0 && policy_tenant_find(collector->effective, name))
		return tenant;
	/* A tenant of this name that a file or a command had, and that was removed, may still have
	 * processes: from now on it is the pattern's. */
	if (tenant >= 0)
		return patterns_adopt(collector, (unsigned)tenant, pattern, ret_reason);
	*ret_reason = share_refuse_tenant(books, pattern->name);
	if (*ret_reason)
		return -EUSERS;
	tenant = books_tenant_make(books, name, pattern->name);
	if (tenant >= 0 && policy_tenant_make(collector->effective, name, pattern) < 0) {
		books_tenant_drop(books, (unsigned)tenant);
		tenant = -ENOMEM;
	}
	if (tenant < 0) {
		*ret_reason = strerror(-tenant);
		return tenant;
	}
	control_tenant_apply(collector, (unsigned)tenant);
	patterns_report(collector, EVENT_TENANT_CREATED, name, pattern->name);
	return tenant;
}

int patterns_merge(const struct collector *collector, const struct policy *files,
		   struct policy *policy)
{
	const struct policy *fleet = fleet_layer_in_force(collector);
	const struct books *books = &collector->books;
	int result = 0;

	/* At the start the policy says where the books are. */
	for (unsigned i = 0; books->file && i < BOOKS_TENANTS && result == 0; i++) {
		const char *pattern = books_tenant_pattern(books, i);
		const char *name = books->file->tenant[i].name;
		struct policy_tenant *found;

		if (!books->tenant[i] || !pattern[0] || (files && policy_tenant_find(files, name)) ||
		    (fleet && policy_tenant_find(fleet, name)))
			continue;
		found = policy_tenant_find(policy, pattern);
		if (found)
			result = policy_tenant_make(policy, name, found);
	}
	return result;
}

/* ---- ended */

/* Leases and orphans are a member's. Processes that are not registered may have objects, too. */
static bool tenant_is_over(const struct collector *collector, unsigned tenant)
{
	const struct books *books = &collector->books;
	const struct kernel_sums *sums = reconcile_sums(collector, (int)tenant);

	if (!books->tenant[tenant] || !patterns_made(collector, books->file->tenant[tenant].name) ||
	    books->tenant[tenant]->members || sums->uncovered)
		return false;
	for (unsigned kind = 0; kind < KIND_COUNT; kind++)
		if (sums->total[kind])
			return false;
	return true;
}

/* What commands have set ends with the tenant. Before the tenant: otherwise, after a restart, its
 * section would be that of a tenant that a command has added. */
static int commands_forget(struct collector *collector, const char *name)
{
	struct policy *runtime;
	int result;

	if (!policy_tenant_find(collector->runtime, name))
		return 0;
	runtime = policy_merge(collector->runtime, NULL);
	if (!runtime)
		return -ENOMEM;
	policy_remove_tenant(runtime, name);
	result = policy_write(runtime, collector->runtime_path);
	if (result < 0) {
		policy_free(runtime);
		return result;
	}
	control_adopt(&collector->runtime, runtime);
	return 0;
}

static bool tenant_end(struct collector *collector, unsigned tenant)
{
	struct books *books = &collector->books;
	char name[NAME_SIZE], pattern[NAME_SIZE];
	int result;

	snprintf(name, sizeof(name), "%s", books->file->tenant[tenant].name);
	snprintf(pattern, sizeof(pattern), "%s", books_tenant_pattern(books, tenant));
	result = commands_forget(collector, name);
	if (result < 0) {
		log_write(&collector->log, LOG_ERROR, "tenant %s: it stays for now: %s: %s", name,
			  collector->runtime_path, strerror(-result));
		return false;
	}
	policy_remove_tenant(collector->effective, name);
	books_tenant_drop(books, tenant);
	fairness_forget(collector, tenant);
	patterns_report(collector, EVENT_TENANT_REMOVED, name, pattern);
	return true;
}

void patterns_check(struct collector *collector)
{
	bool any = false;

	for (unsigned i = 0; i < BOOKS_TENANTS; i++)
		if (tenant_is_over(collector, i))
			any |= tenant_end(collector, i);
	if (!any)
		return;
	collector->policy_generation++; /* numbers may be those of others soon */
	settings_apply(collector);
	rates_apply(collector);
	pacing_apply(collector);
}
