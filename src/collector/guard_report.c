/* SPDX-License-Identifier: MIT */
/* What the guard guarantees to each tenant, and why not more; also as rows. */
#include "collector/guard_parts.h"

#include <stdio.h>
#include <string.h>

#include "collector/limits.h"
#include "collector/patterns.h"

static const char untended[] = "no rdma_monitor is running: start it with rdma_monitor --keep";

_Static_assert((int)WAY_IOCTL == GUARD_IOCTL && (int)WAY_COMPAT == GUARD_COMPAT &&
		       (int)WAY_WRITE == GUARD_WRITE,
	       "ways travel as they are");

/* ---- what comes of it */

static void guard_tenants_count(struct guards *guards)
{
	for (struct guards_cgroup *cgroup = guards->cgroups; cgroup; cgroup = cgroup->next) {
		struct guards_tenant *owner = cgroup->owner;

		if (!owner)
			continue;
		owner->cgroups++;
		owner->mapped += owner->slot && cgroup->slot == owner->slot;
		owner->with_rdmacg += cgroup->rdmacg_in_force;
	}
}

static void guard_head_problem(const struct guard_head *head, char ret_problem[GUARDS_REASON])
{
	snprintf(ret_problem, GUARDS_REASON, "%.*s", GUARDS_REASON - 1, head->problem);
}

/* Names the ways into the kernel that the guard does not check; false if it checks all. */
static bool guard_ways_lack(const struct guard_head *head, char ret_reason[GUARDS_REASON])
{
	__u32 ways = __atomic_load_n(&head->ways, __ATOMIC_RELAXED);
	__u32 wanted = __atomic_load_n(&head->wanted, __ATOMIC_RELAXED);
	char problem[GUARDS_REASON];

	if ((ways & GUARD_WRITE) && !(wanted & ~ways))
		return false;
	guard_head_problem(head, problem);
	if (!(wanted & ~ways))
		snprintf(problem, sizeof(problem), "[host] has guard_writes = off");
	else if (!problem[0])
		snprintf(problem, sizeof(problem), "rdma_monitor has not attached the program for it yet");
	snprintf(ret_reason, GUARDS_REASON, "%s not guarded: %.200s",
		 ways & GUARD_WRITE ? "32-bit programs are" : "write() is", problem);
	return true;
}

/* What is not as it should be for a tenant that is guarded; false: nothing. */
static bool guard_has_exception(const struct guards *guards, const struct guards_tenant *tenant,
				char ret_reason[GUARDS_REASON])
{
	static const char *const tables[GUARD_TABLES] = {
		[GUARD_OBJECTS] = "objects", [GUARD_RUNNING] = "threads"
	};
	const struct guard_head *head = guards->guard.head;

	if (__atomic_load_n(&head->counted, __ATOMIC_ACQUIRE) < tenant->since) {
		snprintf(ret_reason, GUARDS_REASON, "%s",
			 monitor_guard_is_tended(&guards->guard) ?
				 "rdma_monitor has not counted yet what the tenant holds already" :
				 untended);
		return true;
	}
	if (__atomic_load_n(&head->incomplete, __ATOMIC_RELAXED)) {
		snprintf(
			ret_reason, GUARDS_REASON,
			"rdma_monitor has no room to list all objects: objects that are older than "
			"the guard may be missing in its counts");
		return true;
	}
	if (tenant->late) {
		snprintf(ret_reason, GUARDS_REASON,
			 "the kernel cannot decide by one of its match lines (%s): new cgroups "
			 "are guarded only after the collector has seen them, within a second",
			 strerror(-tenant->late));
		return true;
	}
	for (unsigned table = 0; table < GUARD_TABLES; table++) {
		if (!tenant->slot || monitor_guard_room(&guards->guard, tenant->slot, table) > 0)
			continue;
		snprintf(ret_reason, GUARDS_REASON,
			 "its share of the guard's table of %s is full (the tenant %" PRId64
			 ", all %" PRId64 " of %" PRIu64 "): more is refused, whatever the limits",
			 tables[table], (int64_t)guards->guard.counts[tenant->slot].taken[table],
			 (int64_t)head->taken[table], (uint64_t)head->most[table]);
		return true;
	}
	return false;
}

/* What it does for a tenant; if not, or not all, why. */
static enum proto_guarantee kernel_guarantee(const struct collector *collector,
					     const struct guards_tenant *tenant,
					     char ret_reason[GUARDS_REASON])
{
	const struct guards *guards = &collector->guards;
	const struct guard_head *head = guards->guard.head;

	ret_reason[0] = '\0';
	if (!tenant->enforced)
		snprintf(ret_reason, GUARDS_REASON, "its mode is %s, and only enforce refuses",
			 mode_names[tenant->mode]); /* the same numbers */
	else if (patterns_made(collector, tenant->name))
		snprintf(ret_reason, GUARDS_REASON,
			 "the pattern %s has made it, and the guard knows no tenants of patterns: the "
			 "tenant needs a section of its own with a match line that contains only "
			 "cgroup=...",
			 books_tenant_pattern(&collector->books, (unsigned)tenant->number));
	else if (!tenant->rules)
		snprintf(ret_reason, GUARDS_REASON,
			 "the tenant needs a match line that contains only cgroup=...");
	else if (!tenant->cgroups && tenant->found)
		snprintf(ret_reason, GUARDS_REASON,
			 "an earlier match line gives its cgroups to another tenant");
	else if (!tenant->cgroups && (!head || tenant->late))
		snprintf(ret_reason, GUARDS_REASON, "none of its cgroups exists");
	else if (!head)
		snprintf(ret_reason, GUARDS_REASON, "%.*s", GUARDS_REASON - 1, guards->problem);
	else if (tenant->error)
		snprintf(ret_reason, GUARDS_REASON, "the guard has no room for its cgroups: %s",
			 strerror(-tenant->error));
	if (ret_reason[0])
		return GUARANTEE_NONE;
	if (!__atomic_load_n(&head->armed, __ATOMIC_ACQUIRE)) {
		guard_head_problem(head, ret_reason);
		if (!ret_reason[0])
			snprintf(ret_reason, GUARDS_REASON, "%s",
				 monitor_guard_is_tended(&guards->guard) ?
					 "rdma_monitor has not attached it yet" :
					 untended);
		return GUARANTEE_NONE;
	}
	if (guard_has_exception(guards, tenant, ret_reason) || guard_ways_lack(head, ret_reason))
		return GUARANTEE_PARTLY;
	if (tenant->other)
		snprintf(ret_reason, GUARDS_REASON,
			 "only its cgroups are guarded; match lines with more than a cgroup: %u",
			 tenant->other);
	return GUARANTEE_KERNEL;
}

static void guard_tenant_report(const struct collector *collector,
				const struct guards_tenant *tenant)
{
	static const char *const words[GUARANTEES] = {
		[GUARANTEE_OFF] = "is off",
		[GUARANTEE_KERNEL] = "is on, in the kernel",
		[GUARANTEE_FLOOR] = "is on, by rdma.max only",
		[GUARANTEE_NONE] = "is on, and nothing is guarded",
		[GUARANTEE_PARTLY] = "is on, partly",
	};

	log_write(&collector->log, tenant->guarantee > GUARANTEE_KERNEL ? LOG_WARN : LOG_INFO,
		  "tenant %s: the guard %s%s%s", tenant->name, words[tenant->guarantee],
		  tenant->reason[0] ? ": " : "", tenant->reason);
}

/* What is wanted and can be had is not there yet, and there is no word of why. */
static bool guard_is_pending(const struct guards *guards, const struct guards_tenant *tenant)
{
	const struct guard_head *head = guards->guard.head;

	if (!tenant->on || !tenant->slot || !tenant->enforced || !head ||
	    !monitor_guard_is_tended(&guards->guard))
		return false;
	if (!__atomic_load_n(&head->armed, __ATOMIC_ACQUIRE) ||
	    __atomic_load_n(&head->wanted, __ATOMIC_RELAXED) &
		    ~__atomic_load_n(&head->ways, __ATOMIC_RELAXED))
		return !head->problem[0];
	return __atomic_load_n(&head->counted, __ATOMIC_ACQUIRE) < tenant->since;
}

static void guard_tenant_conclude(struct collector *collector, struct guards_tenant *tenant)
{
	char reason[GUARDS_REASON] = "";
	enum proto_guarantee guarantee = GUARANTEE_OFF;

	tenant->pending = guard_is_pending(&collector->guards, tenant);
	if (tenant->on)
		guarantee = kernel_guarantee(collector, tenant, reason);
	if (guarantee == GUARANTEE_NONE && tenant->with_rdmacg)
		guarantee = GUARANTEE_FLOOR;
	if (guarantee == tenant->guarantee && !strcmp(reason, tenant->reason))
		return;
	tenant->guarantee = guarantee;
	memcpy(tenant->reason, reason, sizeof(reason));
	guard_tenant_report(collector, tenant);
}

void guards_conclude(struct collector *collector)
{
	struct guards *guards = &collector->guards;

	guard_tenants_count(guards);
	for (struct guards_tenant *tenant = guards->tenants; tenant; tenant = tenant->next)
		guard_tenant_conclude(collector, tenant);
}

/* ---- describing */

static void guard_row_count(const struct guards *guards, __u32 slot, struct proto_guard *row)
{
	struct guard_counts counts;

	monitor_guard_counts(&guards->guard, slot, &counts);
	for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
		row->used[kind] += counts.used[kind] > 0 ? (uint64_t)counts.used[kind] : 0;
		row->refused[kind] += counts.refused[kind];
		row->overrun[kind] += counts.overrun[kind];
	}
	row->killed += counts.killed;
}

static struct proto_guard guard_row_begin(const struct guards *guards, uint32_t scope)
{
	const struct guard_head *head = guards->guard.head;
	struct proto_guard row = { .scope = scope };

	for (unsigned kind = 0; kind < KIND_COUNT; kind++)
		row.limit[kind] = UNLIMITED;
	if (!head)
		return row;
	row.armed = __atomic_load_n(&head->armed, __ATOMIC_ACQUIRE) != 0;
	row.ways = row.armed ? __atomic_load_n(&head->ways, __ATOMIC_RELAXED) : 0;
	row.wanted = __atomic_load_n(&head->wanted, __ATOMIC_RELAXED);
	row.guarded = head->guarded & ((1ull << KIND_COUNT) - 1);
	return row;
}

void guards_describe_host(const struct collector *collector, struct proto_guard *ret_row)
{
	const struct guards *guards = &collector->guards;

	*ret_row = guard_row_begin(guards, ROW_HOST);
	snprintf(ret_row->reason, sizeof(ret_row->reason), "%.*s", (int)sizeof(ret_row->reason) - 1,
		 guards->problem);
	for (const struct guards_tenant *tenant = guards->tenants; tenant; tenant = tenant->next)
		ret_row->on += tenant->on;
	for (const struct guards_cgroup *cgroup = guards->cgroups; cgroup; cgroup = cgroup->next) {
		ret_row->cgroups += cgroup->slot != 0;
		ret_row->floor += cgroup->rdmacg_in_force;
	}
	if (!guards->guard.head)
		return;
	guard_head_problem(guards->guard.head, ret_row->reason);
	if (!ret_row->reason[0] && !monitor_guard_is_tended(&guards->guard))
		snprintf(ret_row->reason, sizeof(ret_row->reason), "%s", untended);
	for (__u32 slot = 1; slot < GUARD_TENANTS; slot++)
		guard_row_count(guards, slot, ret_row);
}

void guards_describe_tenant(const struct collector *collector, const char *name,
			    struct proto_guard *ret_row)
{
	const struct guards *guards = &collector->guards;
	const struct guards_tenant *tenant = guards_tenant_find(guards, name);

	*ret_row = guard_row_begin(guards, ROW_TENANT);
	snprintf(ret_row->tenant, sizeof(ret_row->tenant), "%s", name);
	if (!tenant)
		return;
	ret_row->on = tenant->on;
	ret_row->guarantee = tenant->guarantee;
	ret_row->pending = tenant->pending;
	ret_row->port_limits = limits_of_ports(collector, name);
	ret_row->cgroups = guards->guard.head ? tenant->mapped : tenant->cgroups;
	ret_row->floor = tenant->with_rdmacg;
	snprintf(ret_row->reason, sizeof(ret_row->reason), "%s", tenant->reason);
	if (!tenant->slot)
		return;
	guard_row_count(guards, tenant->slot, ret_row);
	memcpy(ret_row->limit, guards->guard.limits[tenant->slot].limit, sizeof(ret_row->limit));
}
