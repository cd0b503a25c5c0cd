/* SPDX-License-Identifier: MIT */
/* GET_STATS and its like: rows of the host, of tenants and of processes. */
#include "collector/answers.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "collector/drift.h"
#include "collector/grants.h"

static const char *device_label(const struct collector *collector, unsigned device)
{
	const char *name = collector->books.file->device[device].name;

	return name[0] ? name : "-";
}

static bool device_is_chosen(const struct proto_choose *choose, const char *name)
{
	return !choose->device[0] || !strcmp(choose->device, name);
}

/* What the kernel has of whom a row is about (NULL: nothing), and how that differs (NULL: not). */
static void row_watch(const struct collector *collector, struct proto_row *row,
		      const uint64_t *kernel, const int64_t *drift)
{
	uint64_t observed = truth_observed(&collector->truth);

	if (!truth_is_watching(&collector->truth))
		return;
	row->flags |= ROW_WATCHED;
	for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
		row->kernel[kind] = !(observed >> kind & 1) ? PROTO_UNKNOWN :
				    kernel		    ? kernel[kind] :
							      0;
		row->drift[kind] = drift ? drift[kind] : 0;
	}
}

static void row_scope(struct proto_row *row, const struct scope *scope)
{
	for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
		row->used[kind] = books_clamp(scope->used[kind]);
		row->granted[kind] = books_clamp(scope->granted[kind]);
		row->peak[kind] = books_clamp(scope->peak[kind]);
		row->limit[kind] = scope->limit[kind];
		row->refused[kind] = scope->refused[kind];
		row->process_limit[kind] = PROTO_UNLIMITED;
		if (scope->granted[kind] > scope->limit[kind])
			row->flags |= ROW_DRAINING;
	}
}

static bool scope_says_something(const struct scope *scope)
{
	for (unsigned kind = 0; kind < KIND_COUNT; kind++)
		if (scope->peak[kind] || scope->kernel[kind] ||
		    scope->limit[kind] != SIZE_UNLIMITED)
			return true;
	return false;
}

/* An owner in total and on each device; process_limit NULL for the host. */
static void send_owner(struct collector *collector, const struct request *request,
		       const struct proto_row *head, const struct owner *owner,
		       const struct tenant *tenant, const struct proto_choose *choose)
{
	struct proto_row row = *head;

	row.flags |= (owner->uncovered ? ROW_UNCOVERED : 0) | (owner->drifting ? ROW_DRIFT : 0);
	row_scope(&row, &owner->total);
	row_watch(collector, &row, owner->total.kernel, owner->drift);
	if (tenant)
		memcpy(row.process_limit, tenant->process_limit.total, sizeof(row.process_limit));
	if (!choose->device[0])
		server_row(request, &row);
	for (unsigned device = 0; device < LEDGER_DEVICES; device++) {
		if (!scope_says_something(&owner->device[device]) ||
		    !device_is_chosen(choose, device_label(collector, device)))
			continue;
		row = *head;
		row_scope(&row, &owner->device[device]);
		row_watch(collector, &row, owner->device[device].kernel, NULL);
		if (tenant)
			memcpy(row.process_limit, tenant->process_limit.device[device],
			       sizeof(row.process_limit));
		snprintf(row.device, sizeof(row.device), "%s", device_label(collector, device));
		server_row(request, &row);
	}
}

static void send_host(struct collector *collector, const struct request *request,
		      const struct proto_choose *choose)
{
	struct proto_row head = { .scope = ROW_HOST, .processes = collector->books.members_count };

	send_owner(collector, request, &head, &collector->books.host, NULL, choose);
}

static void send_tenants(struct collector *collector, const struct request *request,
			 const struct proto_choose *choose)
{
	for (unsigned i = 0; i < BOOKS_TENANTS; i++) {
		const struct tenant *tenant = collector->books.tenant[i];
		const char *name = collector->books.file->tenant[i].name;
		const struct policy_tenant *said = policy_tenant_find(collector->effective, name);
		struct proto_row head = { .scope = ROW_TENANT };

		if (!tenant || (choose->tenant[0] && strcmp(choose->tenant, name)))
			continue;
		head.mode = tenant->table->mode;
		head.processes = tenant->members;
		head.flags = said			    ? said->runtime ? ROW_RUNTIME : 0 :
			     strcmp(name, COLLECTOR_TENANT) ? ROW_REMOVED :
							      0;
		snprintf(head.tenant, sizeof(head.tenant), "%s", name);
		send_owner(collector, request, &head, &tenant->all, tenant, choose);
	}
}

static void command_read(pid_t pid, char *ret, size_t size)
{
	char path[40];
	ssize_t length;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	length = fd < 0 ? 0 : read(fd, ret, size - 1);
	if (fd >= 0)
		close(fd);
	ret[length > 0 ? length - 1 : 0] = '\0'; /* without the line's end */
}

static uint32_t member_flags(const struct books *books, unsigned member)
{
	const struct member *beside = &books->member[member];
	uint32_t flags = beside->orphan ? ROW_ORPHAN : 0;

	if (books->file->member[member].flags & MEMBER_ASKS)
		flags |= ROW_SOCKET;
	else if (!beside->usage)
		flags |= ROW_UNATTACHED;
	for (uint32_t lease = beside->leases; lease != BOOKS_NOBODY;
	     lease = books->view[lease].next_of_member)
		if (grants_held(books, lease))
			flags |= ROW_DRAINING;
	return flags;
}

/* What the process is held to: the policy's limit, or its own if that is lower. */
static uint64_t member_limit(const struct books *books, unsigned member, unsigned kind)
{
	const struct book_member *row = &books->file->member[member];
	uint64_t policy = books->tenant[row->tenant]->process_limit.total[kind];

	if (row->process_defaults >> kind & 1 && policy != SIZE_UNLIMITED)
		return policy;
	return policy < row->process_limit[kind] ? policy : row->process_limit[kind];
}

/* A process on a device, of whose leases there nothing is said. */
static struct proto_row row_on_device(const struct collector *collector,
				      const struct proto_row *head, const struct tenant *tenant,
				      unsigned device, const uint64_t *kernel)
{
	struct proto_row row = *head;

	snprintf(row.device, sizeof(row.device), "%s", device_label(collector, device));
	for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
		row.limit[kind] = tenant->process_limit.device[device][kind];
		row.process_limit[kind] = PROTO_UNLIMITED;
	}
	row_watch(collector, &row, kernel, NULL);
	return row;
}

/* On the devices of the set, what the kernel has and the books know nothing of. */
static void send_unbooked(struct collector *collector, const struct request *request,
			  const struct proto_row *head, const struct tenant *tenant,
			  const struct proto_choose *choose, uint32_t devices,
			  uint64_t kernel[LEDGER_DEVICES][KIND_COUNT])
{
	for (unsigned device = 0; device < LEDGER_DEVICES; device++)
		if (devices >> device & 1 &&
		    device_is_chosen(choose, device_label(collector, device))) {
			struct proto_row row =
				row_on_device(collector, head, tenant, device, kernel[device]);

			server_row(request, &row);
		}
}

static void send_lease(struct collector *collector, const struct request *request,
		       const struct proto_row *head, unsigned lease, const uint64_t *kernel)
{
	const struct books *books = &collector->books;
	const struct lease_view *view = &books->view[lease];
	struct proto_row row =
		row_on_device(collector, head, books->tenant[view->tenant], view->device, kernel);

	for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
		row.used[kind] = row.peak[kind] = grants_used(books, lease, kind);
		row.granted[kind] = books->file->lease[lease].granted[kind];
	}
	server_row(request, &row);
}

/* A member in total, and on each device that it has used. */
static bool send_member(struct collector *collector, const struct request *request, unsigned member,
			const struct proto_choose *choose)
{
	const struct books *books = &collector->books;
	const struct book_member *person = &books->file->member[member];
	const struct member *beside = &books->member[member];
	const struct truth_process *found = truth_of_member(collector, member);
	const int64_t *drift = drift_of(collector, member);
	uint64_t kernel[LEDGER_DEVICES][KIND_COUNT];
	uint32_t devices = found ? truth_devices(&collector->truth, found, kernel) : 0;
	struct proto_row head = { .scope = ROW_PROCESS,
				  .flags = member_flags(books, member),
				  .mode = books->tenant[person->tenant]->table->mode,
				  .pid = person->pid,
				  .uid = person->uid };
	struct proto_row total;

	snprintf(head.tenant, sizeof(head.tenant), "%s", books->file->tenant[person->tenant].name);
	command_read(person->pid, head.command, sizeof(head.command));
	total = head;
	for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
		total.used[kind] = beside->used[kind];
		total.peak[kind] = beside->peak[kind];
		total.granted[kind] = books_clamp(beside->granted[kind]);
		total.refused[kind] = beside->refused[kind];
		total.limit[kind] = member_limit(books, member, kind);
		total.process_limit[kind] = PROTO_UNLIMITED;
	}
	total.flags |= drift ? ROW_DRIFT : 0;
	row_watch(collector, &total, found ? found->kernel : NULL, drift);
	if (!choose->device[0] && !server_row(request, &total))
		return false;
	for (uint32_t lease = beside->leases; lease != BOOKS_NOBODY;
	     lease = books->view[lease].next_of_member) {
		unsigned device = books->view[lease].device;
		bool there = devices >> device & 1;

		if (device_is_chosen(choose, device_label(collector, device)))
			send_lease(collector, request, &head, lease, there ? kernel[device] : NULL);
		devices &= ~(1u << device);
	}
	send_unbooked(collector, request, &head, books->tenant[person->tenant], choose, devices,
		      kernel);
	return true;
}

/* A process that is not registered, and has something in the kernel. */
static bool send_uncovered(struct collector *collector, const struct request *request,
			   const struct truth_process *process, const struct proto_choose *choose)
{
	const struct books *books = &collector->books;
	const struct tenant *tenant = books->tenant[process->tenant];
	uint64_t kernel[LEDGER_DEVICES][KIND_COUNT];
	uint32_t devices = truth_devices(&collector->truth, process, kernel);
	struct proto_row head = { .scope = ROW_PROCESS,
				  .flags = ROW_UNCOVERED | (process->library > 0 ? ROW_LIBRARY : 0),
				  .mode = tenant->table->mode,
				  .pid = process->pid,
				  .uid = process->uid };
	struct proto_row total;

	snprintf(head.tenant, sizeof(head.tenant), "%s", books->file->tenant[process->tenant].name);
	snprintf(head.command, sizeof(head.command), "%s", process->command);
	total = head;
	memcpy(total.limit, tenant->process_limit.total, sizeof(total.limit));
	for (unsigned kind = 0; kind < KIND_COUNT; kind++)
		total.process_limit[kind] = PROTO_UNLIMITED;
	row_watch(collector, &total, process->kernel, NULL);
	if (!choose->device[0] && !server_row(request, &total))
		return false;
	send_unbooked(collector, request, &head, tenant, choose, devices, kernel);
	return true;
}

static bool process_is_chosen(const struct collector *collector, const struct proto_choose *choose,
			      pid_t pid, unsigned tenant)
{
	return (!choose->pid || choose->pid == pid) &&
	       (!choose->tenant[0] ||
		!strcmp(choose->tenant, collector->books.file->tenant[tenant].name));
}

static bool send_members(struct collector *collector, const struct request *request,
			 const struct proto_choose *choose)
{
	const struct book_file *file = collector->books.file;

	for (unsigned i = 0; i < file->members_high; i++)
		if (file->member[i].state == BOOK_TAKEN &&
		    process_is_chosen(collector, choose, file->member[i].pid,
				      file->member[i].tenant) &&
		    !send_member(collector, request, i, choose))
			return false;
	return true;
}

static void send_strangers(struct collector *collector, const struct request *request,
			   const struct proto_choose *choose)
{
	const struct truth_process *process;
	unsigned cursor = 0;

	while ((process = truth_uncovered(&collector->truth, &cursor)))
		if (process_is_chosen(collector, choose, process->pid, process->tenant) &&
		    !send_uncovered(collector, request, process, choose))
			return;
}

/* What there is to be seen, as it is at this moment. */
static void stats_measure(struct collector *collector)
{
	grants_measure(&collector->books);
	truth_look(collector);
}

void answer_GET_STATS(struct collector *collector, const struct request *request)
{
	struct proto_choose choose = request_choice(request);

	stats_measure(collector);
	if (!choose.tenant[0])
		send_host(collector, request, &choose);
	send_tenants(collector, request, &choose);
	server_end(request);
}

void answer_GET_PROC_STATS(struct collector *collector, const struct request *request)
{
	struct proto_choose choose = request_choice(request);

	stats_measure(collector);
	if (send_members(collector, request, &choose))
		send_strangers(collector, request, &choose);
	server_end(request);
}

void answer_GET_DEVICE(struct collector *collector, const struct request *request)
{
	struct proto_choose choose = request_choice(request);

	stats_measure(collector);
	send_host(collector, request, &choose);
	send_tenants(collector, request, &choose);
	server_end(request);
}

void answer_TENANT_LIST(struct collector *collector, const struct request *request)
{
	struct proto_choose choose = request_choice(request);

	stats_measure(collector);
	send_tenants(collector, request, &choose);
	server_end(request);
}
