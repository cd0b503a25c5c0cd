/* SPDX-License-Identifier: MIT */
/* The visitor over all numbers; see stats.h. */
#include "collector/stats.h"

#include <string.h>

#include "base/file.h"
#include "base/proc.h"
#include "collector/coverage.h"
#include "collector/drift.h"
#include "collector/grants.h"
#include "terms/verdict.h"

/* One visit, and what it is of. */
struct stats_visit {
	const struct collector *collector;
	const struct stats_filter *filter;
	stats_visitor *visitor;
	void *closure;
	bool ended;
	uint64_t observed; /* by the monitor */
	/* Kernel and books number devices each by themselves: the kernel's number of each that the
	 * books have (DEVICES_MAX: none), and those of the kernel that the books have not. */
	unsigned kernel_number[DEVICES_MAX];
	bool is_unbooked[DEVICES_MAX];
};

/* ---- rows */

static const char *visit_device_name(const struct stats_visit *visit, unsigned device)
{
	const char *name = visit->collector->books.file->device[device].name;

	return name[0] ? name : "-";
}

static bool visit_wants_device(const struct stats_visit *visit, const char *name)
{
	const char *chosen = visit->filter->device;

	return !chosen[0] || !strcmp(chosen, name);
}

static bool visit_wants_tenant(const struct stats_visit *visit, unsigned tenant)
{
	const char *chosen = visit->filter->tenant;

	return !chosen[0] || !strcmp(chosen, visit->collector->books.file->tenant[tenant].name);
}

/* Whether rows of that owner are wanted at all. */
static bool visit_wants(const struct stats_visit *visit, enum stats_owner owner)
{
	return !visit->ended && visit->filter->owners >> owner & 1;
}

static void visit_row(struct stats_visit *visit, const struct stats_row *row)
{
	if (!visit->ended && visit_wants_device(visit, row->device))
		visit->ended = !visit->visitor(visit->closure, row);
}

/* What the kernel has of whom a row is about (NULL: nothing), and how that differs (NULL: not). */
static void row_add_kernel(const struct stats_visit *visit, struct stats_row *row,
			   const uint64_t *kernel, const int64_t *drift)
{
	if (!kernel_is_watched(&visit->collector->kernel))
		return;
	row->flags |= STATS_WATCHED;
	row->observed = visit->observed;
	if (kernel)
		memcpy(row->kernel, kernel, sizeof(row->kernel));
	if (drift)
		memcpy(row->drift, drift, sizeof(row->drift));
}

/* Where limits are not enforced, what is over them does not drain. */
static void row_add_scope(struct stats_row *row, const struct scope *scope)
{
	bool enforced = row->owner != STATS_TENANT ||
			verdict_at_limit(LIMIT_OF_POLICY, row->mode, row->mode) == VERDICT_REFUSED;

	row->refusals = scope->refusals;
	for (unsigned kind = 0; kind < KINDS_COUNTED; kind++) {
		row->used[kind] = books_clamp(scope->used[kind]);
		row->granted[kind] = books_clamp(scope->granted[kind]);
		row->peak[kind] = books_clamp(scope->peak[kind]);
		row->peak_time[kind] = scope->peak_time[kind];
		row->limit[kind] = scope->limit[kind];
		row->configured[kind] = scope->configured[kind];
		if (enforced && scope->granted[kind] > scope->limit[kind])
			row->flags |= STATS_DRAINING;
	}
	for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
		row->guarantee[kind] = scope->guarantee[kind];
		row->reason[kind] = scope->reason[kind];
	}
}

/* The beginning of all rows of one owner. */
static struct stats_row row_begin_owner(enum stats_owner owner)
{
	struct stats_row row = { .owner = owner, .tenant = "", .device = "", .command = "" };

	for (unsigned kind = 0; kind < KINDS_COUNTED; kind++)
		row.limit[kind] = row.configured[kind] = row.process_limit[kind] = UNLIMITED;
	return row;
}

/* ---- host and tenants */

static bool counts_are_zero(const uint64_t counts[KIND_COUNT])
{
	for (unsigned kind = 0; kind < KIND_COUNT; kind++)
		if (counts[kind])
			return false;
	return true;
}

/* The limits of 0 on a forbidden device are no news. */
static bool scope_is_empty(const struct scope *scope, bool forbidden)
{
	for (unsigned kind = 0; kind < KINDS_COUNTED; kind++)
		if (scope->peak[kind] || (!forbidden && scope->limit[kind] != UNLIMITED) ||
		    (forbidden && (scope->refusals.refused[kind] || scope->refusals.tolerated[kind])))
			return false;
	return true;
}

/* The host (tenant NULL), or a tenant. */
static void visit_owner(struct stats_visit *visit, const struct stats_row *head,
			const struct owner *owner, const struct tenant *tenant,
			const struct kernel_sums *sums)
{
	struct stats_row row = *head;

	row.flags |= (sums->uncovered ? STATS_UNCOVERED : 0) | (sums->drifting ? STATS_DRIFT : 0);
	row_add_scope(&row, &owner->total);
	row_add_kernel(visit, &row, sums->total, sums->drift);
	if (tenant)
		memcpy(row.process_limit, tenant->process_limit.total, sizeof(row.process_limit));
	if (!visit->filter->device[0])
		visit_row(visit, &row);
	for (unsigned device = 0; device < DEVICES_MAX; device++) {
		unsigned number = visit->kernel_number[device];
		const uint64_t *kernel = number < DEVICES_MAX ? sums->device[number] : NULL;
		bool forbidden;

		if (books_device_is_free(&visit->collector->books, device))
			continue;
		forbidden = tenant && device &&
			    !settings_device_matches(tenant->table->settings.devices,
						     visit_device_name(visit, device));
		if (scope_is_empty(&owner->device[device], forbidden) &&
		    (!kernel || counts_are_zero(kernel)))
			continue;
		row = *head;
		row.flags |= forbidden ? STATS_FORBIDDEN : 0;
		row.device = visit_device_name(visit, device);
		row_add_scope(&row, &owner->device[device]);
		row_add_kernel(visit, &row, kernel, NULL);
		if (tenant)
			memcpy(row.process_limit, tenant->process_limit.device[device],
			       sizeof(row.process_limit));
		visit_row(visit, &row);
	}
	for (unsigned number = 0; number < DEVICES_MAX; number++) {
		if (!visit->is_unbooked[number] || counts_are_zero(sums->device[number]))
			continue;
		row = *head;
		row.device = visit->collector->kernel.device[number];
		row_add_kernel(visit, &row, sums->device[number], NULL);
		visit_row(visit, &row);
	}
}

static void visit_host(struct stats_visit *visit)
{
	const struct books *books = &visit->collector->books;
	struct stats_row head = row_begin_owner(STATS_HOST);

	head.processes = books->members_count;
	visit_owner(visit, &head, &books->host, NULL, reconcile_sums(visit->collector, -1));
}

static void visit_tenant(struct stats_visit *visit, unsigned number)
{
	const struct collector *collector = visit->collector;
	const struct tenant *tenant = collector->books.tenant[number];
	const char *name = collector->books.file->tenant[number].name;
	const struct policy_tenant *said = policy_tenant_find(collector->effective, name);
	struct stats_row head = row_begin_owner(STATS_TENANT);

	head.mode = tenant->table->mode;
	head.processes = tenant->members;
	head.tenant = name;
	head.weight = tenant->weight;
	if (said && said->pattern)
		head.flags |= STATS_PATTERN;
	else if (said && said->runtime && strcmp(name, COLLECTOR_TENANT) != 0)
		head.flags |= STATS_RUNTIME;
	if (!said && strcmp(name, COLLECTOR_TENANT))
		head.flags |= STATS_REMOVED;
	visit_owner(visit, &head, &tenant->all, tenant, reconcile_sums(collector, (int)number));
}

/* ---- processes */

static void command_read(pid_t pid, char *ret, size_t size)
{
	ssize_t length = proc_read(pid, "comm", ret, size);

	ret[length > 0 ? length - 1 : 0] = '\0'; /* without the line's end */
}

static unsigned member_flags(const struct books *books, unsigned member)
{
	const struct member *beside = &books->member[member];
	unsigned flags = beside->orphan ? STATS_ORPHAN : 0;

	if (books->file->member[member].flags & MEMBER_ASKS)
		flags |= STATS_SOCKET;
	else if (!beside->usage)
		flags |= STATS_UNATTACHED;
	for (uint32_t lease = beside->leases; lease != BOOKS_NOBODY;
	     lease = books->view[lease].next_of_member)
		if (grants_drain(books, lease))
			flags |= STATS_DRAINING;
	return flags;
}

/* What the kernel has of a process on each device, by the kernel's numbers. */
struct process_devices {
	uint32_t found; /* bit d: there is something to say of device d */
	uint64_t kernel[DEVICES_MAX][KIND_COUNT];
};

/* A process on a device that the books have, of whose leases there nothing is said. */
static struct stats_row process_row(const struct stats_visit *visit, const struct stats_row *head,
				    const struct tenant *tenant, unsigned device,
				    const uint64_t *kernel)
{
	struct stats_row row = *head;

	row.device = visit_device_name(visit, device);
	memcpy(row.limit, tenant->process_limit.device[device], sizeof(row.limit));
	row_add_kernel(visit, &row, kernel, NULL);
	return row;
}

/* The devices that only the kernel has something to say of. */
static void visit_kernel_devices(struct stats_visit *visit, const struct stats_row *head,
				 const struct tenant *tenant, const struct process_devices *devices)
{
	struct stats_row row;

	for (unsigned device = 0; device < DEVICES_MAX; device++) {
		unsigned number = visit->kernel_number[device];

		if (number == DEVICES_MAX || !(devices->found >> number & 1))
			continue;
		row = process_row(visit, head, tenant, device, devices->kernel[number]);
		visit_row(visit, &row);
	}
	for (unsigned number = 0; number < DEVICES_MAX; number++) {
		if (!visit->is_unbooked[number] || !(devices->found >> number & 1))
			continue;
		row = *head;
		row.device = visit->collector->kernel.device[number];
		row_add_kernel(visit, &row, devices->kernel[number], NULL);
		visit_row(visit, &row);
	}
}

/* The leases of a member, each on its device; what the kernel has there is said once. */
static void visit_leases(struct stats_visit *visit, const struct stats_row *head, unsigned member,
			 struct process_devices *devices)
{
	const struct books *books = &visit->collector->books;

	for (uint32_t lease = books->member[member].leases; lease != BOOKS_NOBODY;
	     lease = books->view[lease].next_of_member) {
		const struct lease_view *view = &books->view[lease];
		unsigned number = visit->kernel_number[view->device];
		bool found = number < DEVICES_MAX && devices->found >> number & 1;
		struct stats_row row = process_row(visit, head, books->tenant[view->tenant],
						   view->device,
						   found ? devices->kernel[number] : NULL);

		for (unsigned kind = 0; kind < KINDS_COUNTED; kind++) {
			row.used[kind] = row.peak[kind] = grants_used(books, lease, kind);
			row.granted[kind] = books->file->lease[lease].granted[kind];
		}
		visit_row(visit, &row);
		if (found)
			devices->found &= ~(1u << number);
	}
}

/* A member in total, and on each device that it has used. */
static void visit_member(struct stats_visit *visit, unsigned member)
{
	const struct collector *collector = visit->collector;
	const struct books *books = &collector->books;
	const struct book_member *registered = &books->file->member[member];
	const struct member *beside = &books->member[member];
	const struct kernel_process *found = reconcile_member(collector, member);
	const int64_t *drift = drift_of(collector, member);
	struct stats_row head = row_begin_owner(STATS_PROCESS), total;
	struct process_devices devices;
	char command[NAME_SIZE];

	command_read(registered->pid, command, sizeof(command));
	devices.found = found ? kernel_devices_of(&collector->kernel, found, devices.kernel) : 0;
	head.flags = member_flags(books, member);
	head.mode = books->tenant[registered->tenant]->table->mode;
	head.pid = registered->pid;
	head.uid = registered->uid;
	head.tenant = books->file->tenant[registered->tenant].name;
	head.command = command;
	total = head;
	total.refusals = beside->refusals;
	for (unsigned kind = 0; kind < KINDS_COUNTED; kind++) {
		total.used[kind] = beside->used[kind];
		total.peak[kind] = beside->peak[kind];
		total.granted[kind] = books_clamp(beside->granted[kind]);
		total.limit[kind] = grants_member_limit(books, member, kind);
	}
	total.flags |= drift ? STATS_DRIFT : 0;
	row_add_kernel(visit, &total, found ? found->kernel : NULL, drift);
	if (!visit->filter->device[0])
		visit_row(visit, &total);
	visit_leases(visit, &head, member, &devices);
	visit_kernel_devices(visit, &head, books->tenant[registered->tenant], &devices);
}

/* A process that is not registered, and has something in the kernel. */
static void visit_uncovered(struct stats_visit *visit, const struct kernel_process *process)
{
	const struct books *books = &visit->collector->books;
	const struct tenant *tenant = books->tenant[process->coverage.tenant];
	struct stats_row head = row_begin_owner(STATS_PROCESS), total;
	struct process_devices devices;

	devices.found = kernel_devices_of(&visit->collector->kernel, process, devices.kernel);
	head.flags = STATS_UNCOVERED | (process->coverage.library > 0 ? STATS_INACTIVE : 0);
	head.mode = tenant->table->mode;
	head.pid = process->pid;
	head.uid = process->uid;
	head.tenant = books->file->tenant[process->coverage.tenant].name;
	head.command = process->command;
	total = head;
	memcpy(total.limit, tenant->process_limit.total, sizeof(total.limit));
	row_add_kernel(visit, &total, process->kernel, NULL);
	if (!visit->filter->device[0])
		visit_row(visit, &total);
	visit_kernel_devices(visit, &head, tenant, &devices);
}

static bool visit_wants_process(const struct stats_visit *visit, pid_t pid, unsigned tenant)
{
	return (!visit->filter->pid || visit->filter->pid == pid) &&
	       visit_wants_tenant(visit, tenant);
}

static void visit_processes(struct stats_visit *visit)
{
	const struct book_file *file = visit->collector->books.file;
	const struct kernel_process *process;
	unsigned cursor = 0;

	for (unsigned i = 0; !visit->ended && i < file->members_high; i++)
		if (file->member[i].state == BOOK_TAKEN &&
		    visit_wants_process(visit, file->member[i].pid, file->member[i].tenant))
			visit_member(visit, i);
	while (!visit->ended && (process = coverage_next(&visit->collector->kernel, &cursor)))
		if (visit_wants_process(visit, process->pid, process->coverage.tenant))
			visit_uncovered(visit, process);
}

/* ---- all of it */

static void visit_match_devices(struct stats_visit *visit)
{
	const struct books *books = &visit->collector->books;
	const struct kernel_usage *kernel = &visit->collector->kernel;

	for (unsigned number = 0; number < DEVICES_MAX; number++)
		visit->is_unbooked[number] = kernel->device[number][0];
	for (unsigned i = 0; i < DEVICES_MAX; i++) {
		visit->kernel_number[i] = DEVICES_MAX;
		if (!books_device_is_free(books, i))
			visit->kernel_number[i] = kernel_device_find(kernel, books->file->device[i].name);
		if (visit->kernel_number[i] < DEVICES_MAX)
			visit->is_unbooked[visit->kernel_number[i]] = false;
	}
}

void stats_visit(struct collector *collector, const struct stats_filter *filter,
		 stats_visitor *visitor, void *closure)
{
	struct stats_visit visit = {
		.collector = collector, .filter = filter, .visitor = visitor, .closure = closure
	};

	grants_measure(&collector->books);
	reconcile_look(collector);
	visit.observed = kernel_observed(&collector->kernel);
	visit_match_devices(&visit);
	if (visit_wants(&visit, STATS_HOST))
		visit_host(&visit);
	for (unsigned i = 0; i < BOOKS_TENANTS; i++)
		if (visit_wants(&visit, STATS_TENANT) && collector->books.tenant[i] &&
		    visit_wants_tenant(&visit, i))
			visit_tenant(&visit, i);
	if (visit_wants(&visit, STATS_PROCESS))
		visit_processes(&visit);
}
