/* SPDX-License-Identifier: MIT */
/* Rules about policy, limits and tenants. */
#include <inttypes.h>
#include <string.h>

#include "advice/rules.h"
#include "base/translation.h"
#include "terms/fair.h"
#include "terms/verdict.h"
#include "view/host.h"

enum {
	OBSERVED_SECONDS = 3600, /* a shorter time says nothing of what is never used */
	REFUSED_OFTEN = 10,
};

#define EACH_KIND(kind) for (int kind = 0; kind < KIND_COUNT; kind++)

static bool limits_are_enforced(const struct proto_row *tenant)
{
	return verdict_at_limit(LIMIT_OF_POLICY, tenant->mode, tenant->mode) == VERDICT_REFUSED;
}

static bool is_limited(const struct proto_row *row, int kind)
{
	return row->limit[kind] != UNLIMITED;
}

static unsigned hours_observed(const struct observation *observation)
{
	return (unsigned)(observation->status.uptime_seconds / 3600);
}

static bool observed_long(const struct observation *observation)
{
	return observation->status.uptime_seconds >= OBSERVED_SECONDS;
}

/* A quarter more, and at least one. */
static uint64_t with_reserve(uint64_t amount)
{
	return amount + amount / 4 + 1;
}

void advise_policy_not_loaded(const struct observation *observation, struct list *advice)
{
	const struct proto_status *status = &observation->status;
	/* What the files lack is accepted only if somebody says so. The collector speaks English. */
	bool replaces = strstr(status->problem, "reload --replace") ||
			strstr(status->problem, "No such file or directory");
	struct advice *one;

	if (!*status->problem)
		return;
	one = rule_add(advice, "", 0);
	rule_say(one, "the last reload of the policy failed, and the one before is in force: %s",
		 status->problem);
	if (replaces)
		rule_command(one, "rdma_intercept reload --replace");
	else
		rule_command(one, "rdma_intercept check %s && rdma_intercept reload",
			     rule_quoted(status->policy));
}

void advise_guard_not_armed(const struct observation *observation, struct list *advice)
{
	for (size_t i = 0; i < observation->guards.count; i++) {
		const struct proto_guard *guard = list_at(&observation->guards, i);
		const struct proto_row *tenant;
		struct advice *one;

		if (guard->scope != ROW_TENANT || !guard->on || guard->pending ||
		    guard->guarantee == GUARANTEE_KERNEL || guard->guarantee == GUARANTEE_PARTLY)
			continue;
		one = rule_add(advice, guard->tenant, 0);
		rule_say(one,
			 "guard is on for tenant %s, and the kernel keeps %s: %s", guard->tenant,
			 guard->guarantee == GUARANTEE_FLOOR ? _("only rdma.max of its cgroups") :
							       _("none of its limits"),
			 *guard->reason ? guard->reason : _("the reason is not known"));
		tenant = rule_tenant(observation, guard->tenant);
		if (tenant && !limits_are_enforced(tenant))
			rule_command(one, "rdma_intercept limit set tenant %s mode=enforce",
				     rule_quoted(guard->tenant));
		else
			rule_command(one, "%s", strcmp(observation->status.monitor, "none") ?
							"rdma_intercept doctor" :
							host_start(HOST_MONITOR));
	}
}

void advise_monitor_tables_full(const struct observation *observation, struct list *advice)
{
	const struct proto_status *status = &observation->status;
	struct advice *one;

	if (!status->lost_objects && !status->lost_rows)
		return;
	one = rule_add(advice, "", 0);
	rule_say(one,
		 "rdma_monitor did not count %" PRIu64 " objects, and does not know the owners of "
		 "%" PRIu64 " more, since its tables were full",
		 status->lost_objects, status->lost_rows);
	rule_command(one, "rdma_monitor --unload && %s", host_restart(HOST_MONITOR));
}

void advise_no_monitor(const struct observation *observation, struct list *advice)
{
	const struct proto_status *status = &observation->status;
	struct advice *one;

	if (strcmp(status->monitor, "none"))
		return;
	one = rule_add(advice, "", 0);
	rule_say(one,
		 "rdma_monitor does not run: programs without the library are not seen (registered "
		 "processes: %u)%s%s",
		 status->processes, *status->monitor_problem ? "; " : "", status->monitor_problem);
	rule_command(one, "%s", host_start(HOST_MONITOR));
}

/* ---- limits */

/* What tenants may still claim must be free. */
void advise_guarantee_unmet(const struct observation *observation, struct list *advice)
{
	const struct proto_row *host = rule_host(observation), *tenant;

	if (!host)
		return;
	EACH_KIND(kind) {
		uint64_t owed = 0, free = 0;

		if (!is_limited(host, kind))
			continue;
		RULE_EACH_ROW(tenant, observation, ROW_TENANT, false)
			if (tenant->guarantee[kind] > tenant->used[kind])
				owed += tenant->guarantee[kind] - tenant->used[kind];
		if (host->limit[kind] > host->used[kind])
			free = host->limit[kind] - host->used[kind];
		if (owed <= free)
			continue;
		RULE_EACH_ROW(tenant, observation, ROW_TENANT, false) {
			struct advice *one;

			if (tenant->guarantee[kind] <= tenant->used[kind])
				continue;
			one = rule_add(advice, tenant->tenant, 0);
			rule_say(one,
				 "tenant %s has %s of the %s %s that are guaranteed to it; all tenants "
				 "together may still claim %s, and %s of the host's %s are free",
				 tenant->tenant, rule_amount(kind, tenant->used[kind]),
				 rule_amount(kind, tenant->guarantee[kind]), kind_rows[kind].name,
				 rule_amount(kind, owed), rule_amount(kind, free),
				 rule_amount(kind, host->limit[kind]));
			rule_command(one, "rdma_intercept limit set host %s=%s", kind_rows[kind].name,
				     rule_value(kind, host->used[kind] + owed));
		}
	}
}

void advise_limit_always_hit(const struct observation *observation, struct list *advice)
{
	const struct proto_row *tenant;

	RULE_EACH_ROW(tenant, observation, ROW_TENANT, false)
		EACH_KIND(kind) {
			struct advice *one;

			if (!limits_are_enforced(tenant) || !is_limited(tenant, kind) ||
			    tenant->refused_here[kind] < REFUSED_OFTEN ||
			    tenant->peak[kind] < tenant->limit[kind])
				continue;
			one = rule_add(advice, tenant->tenant, 0);
			if (tenant->reason[kind] > FAIR_LIMIT) {
				rule_say(one,
					 "tenant %s was refused %s %" PRIu64 " times at its share: %s of "
					 "%s are in force, since tenants divide what the host has",
					 tenant->tenant, kind_rows[kind].name, tenant->refused_here[kind],
					 rule_amount(kind, tenant->limit[kind]),
					 rule_amount(kind, tenant->configured[kind]));
				rule_command(one, "rdma_intercept limit set tenant %s weight=%" PRIu64,
					     rule_quoted(tenant->tenant), tenant->weight + 1);
				continue;
			}
			rule_say(one,
				 "tenant %s was refused %s %" PRIu64 " times and uses %s of %s: the limit "
				 "is too low, or the tenant leaks",
				 tenant->tenant, kind_rows[kind].name, tenant->refused_here[kind],
				 rule_amount(kind, tenant->used[kind]),
				 rule_amount(kind, tenant->limit[kind]));
			rule_command(one, "rdma_intercept limit set tenant %s %s=%s",
				     rule_quoted(tenant->tenant), kind_rows[kind].name,
				     rule_value(kind, with_reserve(tenant->limit[kind])));
		}
}

/* The sum of what devices allow; UNLIMITED if one of them has no limit, or none is known. */
static uint64_t devices_allow(const struct observation *observation, int kind)
{
	const struct proto_row *device;
	uint64_t sum = 0;
	bool any = false;

	RULE_EACH_ROW(device, observation, ROW_HOST, true) {
		if (!strcmp(device->device, "-"))
			continue;
		if (!is_limited(device, kind))
			return UNLIMITED;
		sum += device->limit[kind];
		any = true;
	}
	return any ? sum : UNLIMITED;
}

void advise_limit_out_of_reach(const struct observation *observation, struct list *advice)
{
	const struct proto_row *host = rule_host(observation), *tenant;

	RULE_EACH_ROW(tenant, observation, ROW_TENANT, false)
		EACH_KIND(kind) {
			uint64_t devices = devices_allow(observation, kind), limit;
			uint64_t in_total = host ? host->limit[kind] : UNLIMITED;
			struct advice *one;

			limit = devices < in_total ? devices : in_total;
			if (tenant->configured[kind] == UNLIMITED || limit >= tenant->configured[kind])
				continue;
			one = rule_add(advice, tenant->tenant, 0);
			rule_say(one,
				 limit == in_total ? N_("tenant %s may have %s %s, and the host allows %s "
							"in all: its limit cannot be reached") :
						     N_("tenant %s may have %s %s, and the devices allow "
							"%s in all: its limit cannot be reached"),
				 tenant->tenant, rule_amount(kind, tenant->configured[kind]),
				 kind_rows[kind].name, rule_amount(kind, limit));
			rule_command(one, "rdma_intercept limit set tenant %s %s=%s",
				     rule_quoted(tenant->tenant), kind_rows[kind].name,
				     rule_value(kind, limit));
		}
}

void advise_audit_would_refuse(const struct observation *observation, struct list *advice)
{
	const struct proto_row *tenant;

	RULE_EACH_ROW(tenant, observation, ROW_TENANT, false)
		EACH_KIND(kind) {
			struct advice *one;

			if (limits_are_enforced(tenant) || !is_limited(tenant, kind) ||
			    !tenant->tolerated_here[kind])
				continue;
			one = rule_add(advice, tenant->tenant, 0);
			rule_say(one,
				 "the limits of tenant %s are not enforced: %s would have been refused "
				 "%" PRIu64 " times; it used up to %s, and its limit is %s",
				 tenant->tenant, kind_rows[kind].name, tenant->tolerated_here[kind],
				 rule_amount(kind, tenant->peak[kind]),
				 rule_amount(kind, tenant->limit[kind]));
			rule_command(one, "rdma_intercept limit set tenant %s %s=%s mode=enforce",
				     rule_quoted(tenant->tenant), kind_rows[kind].name,
				     rule_value(kind, with_reserve(tenant->peak[kind])));
		}
}

void advise_audit_can_enforce(const struct observation *observation, struct list *advice)
{
	const struct proto_row *tenant;

	RULE_EACH_ROW(tenant, observation, ROW_TENANT, false) {
		unsigned limits = 0, nearest = 0;
		uint64_t refused = 0;
		struct advice *one;

		EACH_KIND(kind) {
			unsigned percent = rule_percent(tenant->peak[kind], tenant->limit[kind]);

			refused += tenant->refused[kind] + tenant->tolerated[kind];
			if (!is_limited(tenant, kind))
				continue;
			limits++;
			nearest = percent > nearest ? percent : nearest;
		}
		if (limits_are_enforced(tenant) || !limits || refused || !nearest ||
		    !observed_long(observation))
			continue;
		one = rule_add(advice, tenant->tenant, 0);
		rule_say(one,
			 "tenant %s used at most %u %% of each of its %u limits in %u hours: they can be "
			 "enforced",
			 tenant->tenant, nearest, limits, hours_observed(observation));
		rule_command(one, "rdma_intercept limit set tenant %s mode=enforce",
			     rule_quoted(tenant->tenant));
	}
}

void advise_limit_never_approached(const struct observation *observation, struct list *advice)
{
	const struct proto_row *tenant;

	RULE_EACH_ROW(tenant, observation, ROW_TENANT, false)
		EACH_KIND(kind) {
			struct advice *one;

			if (!observed_long(observation) || !is_limited(tenant, kind) ||
			    !tenant->peak[kind] || tenant->peak[kind] >= tenant->limit[kind] / 10)
				continue;
			one = rule_add(advice, tenant->tenant, 0);
			rule_say(one,
				 "tenant %s used at most %s of %s %s (%u %%) in %u hours",
				 tenant->tenant, rule_amount(kind, tenant->peak[kind]),
				 rule_amount(kind, tenant->limit[kind]), kind_rows[kind].name,
				 rule_percent(tenant->peak[kind], tenant->limit[kind]),
				 hours_observed(observation));
			rule_command(one, "rdma_intercept limit set tenant %s %s=%s",
				     rule_quoted(tenant->tenant), kind_rows[kind].name,
				     rule_value(kind, with_reserve(2 * tenant->peak[kind])));
		}
}

/* ---- tenants */

#define TENANT_OF_OTHERS "default"

void advise_tenant_without_processes(const struct observation *observation, struct list *advice)
{
	const struct proto_row *tenant;

	RULE_EACH_ROW(tenant, observation, ROW_TENANT, false) {
		uint64_t peak = tenant->processes;
		struct advice *one;

		EACH_KIND(kind)
			peak += tenant->peak[kind] + tenant->refused[kind] + tenant->tolerated[kind];
		if (peak || !observed_long(observation) ||
		    !strcmp(tenant->tenant, TENANT_OF_OTHERS) || tenant->flags & ROW_UNCOVERED)
			continue;
		one = rule_add(advice, tenant->tenant, 0);
		rule_say(one,
			 "no process of tenant %s used anything in %u hours: if it should, no match line "
			 "of the policy names its processes",
			 tenant->tenant, hours_observed(observation));
		rule_command(one, "rdma_intercept explain PID");
	}
}

void advise_unmatched_processes(const struct observation *observation, struct list *advice)
{
	const struct proto_row *others = rule_tenant(observation, TENANT_OF_OTHERS), *tenant;
	unsigned tenants = 0;
	struct advice *one;

	if (!others || !others->processes)
		return;
	EACH_KIND(kind)
		if (is_limited(others, kind) || others->process_limit[kind] != UNLIMITED)
			return;
	RULE_EACH_ROW(tenant, observation, ROW_TENANT, false)
		tenants++;
	if (tenants < 2)
		return;
	one = rule_add(advice, TENANT_OF_OTHERS, 0);
	if (others->processes == 1)
		rule_say(one,
			 "1 process matches no rule of the policy's %u other tenants; it belongs to "
			 "tenant %s, which has no limit",
			 tenants - 1, TENANT_OF_OTHERS);
	else
		rule_say(one,
			 "%u processes match no rule of the policy's %u other tenants; they belong to "
			 "tenant %s, which has no limit",
			 others->processes, tenants - 1, TENANT_OF_OTHERS);
	rule_command(one, "rdma_intercept limit set default process.qp=1000");
}
