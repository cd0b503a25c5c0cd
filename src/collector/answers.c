/* SPDX-License-Identifier: MIT */
/* What the collector answers: a function for each row of messages.def. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "collector/collector.h"
#include "collector/drift.h"
#include "collector/grants.h"
#include "collector/subject.h"

enum {
	RESERVE_OF_TABLE = 64, /* one in so many rows is for root */
	ORPHAN_US = 1000000, /* how often orphans are looked for, */
	SOON_US = 20000,     /* and while the kernel may be clearing up after them */
	SEARCH_NS = 500000,  /* of searching, before others are served */
};

/* Whether an event is among those that a client chose. */
static bool event_is_chosen(const void *request_body, const void *body)
{
	struct proto_choose choose = *(const struct proto_choose *)request_body;
	const struct proto_event *event = body;

	return (!choose.pid || event->pid == choose.pid) &&
	       (!choose.tenant[0] || !strcmp(proto_text(choose.tenant), event->tenant));
}

const struct proto_event *collector_event(struct collector *collector,
					  const struct proto_event *event)
{
	const struct proto_event *kept = events_add(&collector->events, event);

	if (collector->server)
		server_publish(collector->server, MESSAGE_EVENTS, kept, event_is_chosen);
	return kept;
}

/* ---- PING */

static void answer_PING(struct collector *collector, const struct request *request)
{
	struct timespec now;
	struct proto_pong pong = {
		.pid = getpid(),
		.uid = geteuid(),
		.processes = collector->books.members_count,
		.leases = collector->books.leases_count,
		.reloads = collector->reloads,
		.searches = members_passes(&collector->members),
		.version = COLLECTOR_VERSION,
	};

	clock_gettime(CLOCK_MONOTONIC, &now);
	pong.uptime_seconds = (uint64_t)now.tv_sec - collector->started;
	for (unsigned i = 0; i < BOOKS_TENANTS; i++)
		pong.tenants += collector->books.tenant[i] != NULL;
	snprintf(pong.policy, sizeof(pong.policy), "%s", collector->effective->file);
	snprintf(pong.problem, sizeof(pong.problem), "%.500s", collector->problem);
	truth_look(collector);
	truth_describe(collector, &pong);
	server_reply(request, 0, &pong, NULL, 0);
}

/* ---- HELLO */

/* How many rows of a table others than root may still take. */
static unsigned rows_left(unsigned most, unsigned taken)
{
	unsigned open = most - most / RESERVE_OF_TABLE;

	return taken < open ? open - taken : 0;
}

/* A user, and a tenant, gets a further row only while it has fewer than are left: so there is
 * always something left for who comes next, whoever came before. */
static const char *share_of_members(const struct books *books, uid_t uid, unsigned tenant)
{
	unsigned left = rows_left(BOOKS_MEMBERS, books->members_count), of_user = 0;

	if (uid == 0 || left > books->members_count)
		return NULL;
	for (unsigned i = 0; i < books->file->members_high; i++)
		of_user += books->file->member[i].state != BOOK_FREE &&
			   books->file->member[i].uid == uid;
	return of_user >= left			       ? "its user has its share of all places" :
	       books->tenant[tenant]->members >= left ? "its tenant has its share of all places" :
							 NULL;
}

static const char *share_of_leases(const struct books *books, uid_t uid, unsigned tenant)
{
	unsigned left = rows_left(LEASES_MAX, books->leases_count), of_user = 0, of_tenant = 0;

	if (uid == 0 || left > books->leases_count)
		return NULL;
	for (unsigned i = 0; i < books->file->leases_high; i++) {
		const struct lease_view *view = &books->view[i];

		if (view->member == BOOKS_NOBODY)
			continue;
		of_user += books->file->member[view->member].uid == uid;
		of_tenant += view->tenant == tenant;
	}
	return of_user >= left	 ? "its user has its share of all leases" :
	       of_tenant >= left ? "its tenant has its share of all leases" :
				   NULL;
}

const char *collector_tenant_name(const struct collector *collector, const struct subject *subject)
{
	const struct policy_rule *rule = policy_match(collector->effective, &subject->policy);

	return rule ? rule->tenant->name : COLLECTOR_TENANT;
}

static void member_event(struct collector *collector, unsigned member, enum proto_event_type type)
{
	const struct book_member *row = &collector->books.file->member[member];
	struct proto_event event = { .type = type, .pid = row->pid };

	snprintf(event.tenant, sizeof(event.tenant), "%s",
		 collector->books.file->tenant[row->tenant].name);
	collector_event(collector, &event);
}

void collector_member_ended(void *closure, unsigned member, enum member_end how)
{
	static const enum proto_event_type types[] = {
		[MEMBER_LEFT] = EVENT_LEFT,
		[MEMBER_DIED] = EVENT_DIED,
		[MEMBER_ORPHANED] = EVENT_ORPHANED,
	};

	member_event(closure, member, types[how]);
}

static void orphans_await(struct collector *collector, bool soon)
{
	sd_event_source_set_time_relative(collector->orphan_timer, soon ? SOON_US : ORPHAN_US);
	sd_event_source_set_enabled(collector->orphan_timer, SD_EVENT_ONESHOT);
}

/* In how many microseconds orphans are looked at anyway. */
static uint64_t orphans_due(const struct collector *collector)
{
	uint64_t now, due;
	int enabled;

	if (sd_event_source_get_enabled(collector->orphan_timer, &enabled) < 0 ||
	    enabled == SD_EVENT_OFF ||
	    sd_event_source_get_time(collector->orphan_timer, &due) < 0 ||
	    sd_event_now(collector->event, CLOCK_MONOTONIC, &now) < 0)
		return UINT64_MAX;
	return due > now ? due - now : 0;
}

/* As the turns of requests: the two alternate. */
static void search_await(struct collector *collector)
{
	if (!members_are_sought(&collector->members) ||
	    sd_event_source_get_enabled(collector->search_turn, NULL) > 0)
		return;
	sd_event_source_set_time_relative(collector->search_turn, 0);
	sd_event_source_set_enabled(collector->search_turn, SD_EVENT_ONESHOT);
}

void collector_search(struct collector *collector)
{
	unsigned pages = collector->members.pages;
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (members_search(&collector->members, (uint64_t)now.tv_sec * 1000000000u +
							(uint64_t)now.tv_nsec + SEARCH_NS))
		server_resume(collector->server);
	/* What a member holds is known again, and with it what can be taken back. */
	if (collector->members.pages != pages)
		grants_enforce(&collector->books);
	search_await(collector);
}

void collector_dispatch(struct collector *collector)
{
	unsigned before = collector->members.orphaned;
	bool soon;

	members_dispatch(&collector->members);
	soon = collector->members.orphaned != before && truth_is_watching(&collector->truth);
	/* Who comes and goes must not put off the next look. */
	if (collector->members.orphans && orphans_due(collector) > (soon ? SOON_US : ORPHAN_US))
		orphans_await(collector, soon);
	search_await(collector);
}

void collector_orphans(struct collector *collector)
{
	bool soon = members_check_orphans(&collector->members);

	if (collector->members.orphans)
		orphans_await(collector, soon);
	search_await(collector);
}

static void answer_HELLO(struct collector *collector, const struct request *request)
{
	const struct proto_hello *hello = request->body;
	struct books *books = &collector->books;
	struct proto_welcome welcome = { 0 };
	struct subject subject;
	struct peer peer;
	const char *share;
	int tenant, member, fds[2], result = members_identify(request->fd, request->start, &peer);

	if (result < 0) {
		server_fail(request, result, "process %d cannot be identified: %s",
			    (int)request->pid,
			    result == -EXDEV ?
				    "it is in a pid namespace that the collector does not see" :
				    strerror(-result));
		return;
	}
	subject_of_peer(&subject, request->fd, peer.pid, peer.uid, peer.gid);
	snprintf(welcome.tenant, sizeof(welcome.tenant), "%s",
		 collector_tenant_name(collector, &subject));
	tenant = books_tenant(books, welcome.tenant);
	share = tenant < 0 ? NULL : share_of_members(books, peer.uid, (unsigned)tenant);
	if (!share && tenant >= 0)
		share = share_of_leases(books, peer.uid, (unsigned)tenant);
	if (tenant < 0)
		member = tenant;
	else if (share)
		member = -EUSERS;
	else
		member = members_join(&collector->members, &peer, (unsigned)tenant, hello, -1,
				      &fds[0]);
	if (member < 0) {
		close(peer.pidfd);
		server_fail(request, member, "process %d of uid %u cannot be registered: %s",
			    (int)peer.pid, (unsigned)peer.uid,
			    share ? share : strerror(-member));
		return;
	}
	welcome.cookie = books->file->member[member].cookie;
	welcome.mode = books->tenant[tenant]->table->mode;
	welcome.flags = WELCOME_STAYS;
	fds[1] = books->tenant[tenant]->table_read_fd;
	server_reply(request, 0, &welcome, fds, fds[0] < 0 ? 0 : 2);
	if (fds[0] >= 0)
		close(fds[0]);
	books->member[member].lifeline = server_keep(request);
	member_event(collector, (unsigned)member, EVENT_JOINED);
	collector_dispatch(collector); /* before exec it may have left an orphan, to be looked at */
}

/* ---- NEED */

static bool need_is_sound(const struct proto_need *need)
{
	if (!need->count || need->count > COST_KINDS || need->row >= LEDGER_DEVICES)
		return false;
	for (unsigned i = 0; i < need->count; i++) {
		if (need->kind[i] >= KIND_COUNT || need->total[i] > BOOKS_GRANT_MOST)
			return false;
		for (unsigned j = 0; j < i; j++)
			if (need->kind[i] == need->kind[j])
				return false;
	}
	return true;
}

/* The member's lease for the row it counts in; made if there is none. -errno, and *ret_why. */
static int lease_for(struct collector *collector, unsigned member, const struct proto_need *need,
		     const char **ret_why)
{
	struct books *books = &collector->books;
	const struct book_member *row = &books->file->member[member];
	unsigned found = books_lease_of(books, member, need->row), device;
	int lease, result;

	if (found != BOOKS_NOBODY)
		return (int)found;
	*ret_why = share_of_leases(books, row->uid, row->tenant);
	if (*ret_why)
		return -EUSERS;
	*ret_why = "all leases are taken";
	device = control_device(collector, need->device);
	lease = books_lease_row(books);
	if (lease < 0)
		return lease;
	*ret_why = "there is no memory for its row of the lease table";
	result = books_lease_take(books, (unsigned)lease, member, device, need->row);
	if (result < 0)
		return result;
	memcpy(books->file->lease[lease].device_limit, need->device_limit,
	       sizeof(need->device_limit));
	return lease;
}

/* A limit is in the way; it may be one that is only told of. */
static void refused(struct collector *collector, const struct request *request, unsigned lease,
		    const struct ledger_refusal *refusal, bool tolerated, struct proto_give *give)
{
	struct books *books = &collector->books;
	const struct lease_view *view = &books->view[lease];
	struct book_member *row = &books->file->member[view->member];
	struct tenant *tenant = books->tenant[view->tenant];
	struct proto_event event = {
		.type = tolerated ? EVENT_TOLERATED : EVENT_REFUSED,
		.pid = row->pid,
		.number = ++row->refusals,
		.kind = refusal->kind,
		.scope = refusal->scope,
		.own = refusal->own,
		.used = refusal->used,
		.wanted = refusal->wanted,
		.limit = refusal->limit,
	};

	snprintf(event.tenant, sizeof(event.tenant), "%s", books->file->tenant[view->tenant].name);
	snprintf(event.device, sizeof(event.device), "%s", books->file->device[view->device].name);
	books->member[view->member].refused[refusal->kind]++;
	tenant->all.total.refused[refusal->kind]++;
	tenant->all.device[view->device].refused[refusal->kind]++;
	books->host.total.refused[refusal->kind]++;
	books->host.device[view->device].refused[refusal->kind]++;
	give->kind = refusal->kind;
	give->scope = refusal->scope;
	give->own = refusal->own;
	give->used = refusal->used;
	give->wanted = refusal->wanted;
	give->limit = refusal->limit;
	give->event = event.number;
	server_reply(request, tolerated ? PROTO_TOLERATED : PROTO_REFUSED, give, NULL, 0);
	collector_event(collector, &event);
}

/*
 * Whether a search may still show that a refusal is wrong: of what members that have ended held,
 * or of credit that living ones do not use. What began to be sought later does not count, so that
 * a request is not kept for ever.
 */
static bool is_kept(struct collector *collector, const struct request *request, unsigned lease,
		    const struct ledger_refusal *refusal)
{
	uint64_t ticket = request->ticket ? request->ticket : members_sought(&collector->members);
	int tenant = (int)collector->books.view[lease].tenant;

	if (refusal->scope == SCOPE_HOST || refusal->scope == SCOPE_DEVICE)
		tenant = -1;
	return members_await(&collector->members, tenant, ticket) && server_hold(request, ticket);
}

/* Asks again if somebody has ended meanwhile: what it held may have been in the way. */
static int need_meet(struct collector *collector, const struct request *request, uint64_t cookie,
		     const struct grants_need *need, struct ledger_refusal *ret_refusal)
{
	unsigned members;
	int result;

	do {
		result = grants_need(&collector->books, need, ret_refusal);
		members = collector->books.members_count;
		if (result == LEDGER_REFUSED)
			collector_dispatch(collector);
		/* The process may be the one that has ended. */
		if (members_find(&collector->members, request->pid, cookie) < 0)
			return -ESTALE;
	} while (result == LEDGER_REFUSED && collector->books.members_count != members);
	return result;
}

static bool lease_is_empty(const struct books *books, unsigned lease)
{
	for (unsigned kind = 0; kind < KIND_COUNT; kind++)
		if (books->file->lease[lease].granted[kind])
			return false;
	return true;
}

/* The member has a lease for it. True: it was new, and got nothing. */
static bool need_answer(struct collector *collector, const struct request *request,
			const struct proto_need *asked, unsigned lease, bool is_new)
{
	struct books *books = &collector->books;
	const struct book_member *member = &books->file->member[books->view[lease].member];
	struct ledger_refusal refusal;
	struct proto_give give = { .lease = lease };
	struct grants_need need = { .lease = lease, .count = asked->count,
				    .question = asked->question };
	int result;

	/* Who has caps has more than it asked for, and gives back without a word. */
	need.exact = asked->flags & NEED_EXACT && member->flags & MEMBER_ASKS;
	memcpy(need.kind, asked->kind, sizeof(need.kind));
	memcpy(need.total, asked->total, sizeof(need.total));
	memcpy(need.wanted, asked->wanted, sizeof(need.wanted));
	result = need_meet(collector, request, asked->cookie, &need, &refusal);
	if (result < 0) {
		server_fail(request, result, "process %d has ended", (int)request->pid);
		return false;
	}
	is_new = is_new && lease_is_empty(books, lease);
	give.mode = books->tenant[books->view[lease].tenant]->table->mode;
	if (is_new)
		give.lease = PROTO_NO_LEASE;
	if (result == 0)
		server_reply(request, 0, &give, NULL, 0);
	else if (result != LEDGER_REFUSED || !is_kept(collector, request, lease, &refusal))
		refused(collector, request, lease, &refusal, result == LEDGER_TOLERATED, &give);
	return is_new;
}

static void answer_NEED(struct collector *collector, const struct request *request)
{
	struct proto_need asked = *(const struct proto_need *)request->body;
	int member = members_find(&collector->members, request->pid, asked.cookie), lease;
	unsigned leases = collector->books.leases_count;
	const char *why = "";
	uint64_t ticket;

	if (member < 0) {
		server_fail(request, member,
			    "process %d is not registered: the collector's books were replaced",
			    (int)request->pid);
		return;
	}
	proto_text(asked.device);
	if (!need_is_sound(&asked)) {
		server_fail(request, -EINVAL, "NEED with kinds or amounts that do not exist");
		return;
	}
	members_seek_page(&collector->members, (unsigned)member);
	/* With its page we know what it holds. */
	ticket = request->ticket ? request->ticket : members_sought(&collector->members);
	if (members_await_one(&collector->members, (unsigned)member, ticket) &&
	    server_hold(request, ticket)) {
		search_await(collector);
		return;
	}
	lease = lease_for(collector, (unsigned)member, &asked, &why);
	if (lease < 0) {
		server_fail(request, lease, "no lease for process %d on device '%s': %s",
			    (int)request->pid, asked.device, why);
		return;
	}
	/* A row that nothing was granted on would be one less for others. */
	if (need_answer(collector, request, &asked, (unsigned)lease,
			collector->books.leases_count != leases))
		books_lease_drop(&collector->books, (unsigned)lease);
}

/* ---- rows */

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
static void measure(struct collector *collector)
{
	grants_measure(&collector->books);
	truth_look(collector);
}

static struct proto_choose choice(const struct request *request)
{
	struct proto_choose choose = *(const struct proto_choose *)request->body;

	proto_text(choose.tenant);
	proto_text(choose.device);
	return choose;
}

static void answer_GET_STATS(struct collector *collector, const struct request *request)
{
	struct proto_choose choose = choice(request);

	measure(collector);
	if (!choose.tenant[0])
		send_host(collector, request, &choose);
	send_tenants(collector, request, &choose);
	server_end(request);
}

static void answer_GET_PROC_STATS(struct collector *collector, const struct request *request)
{
	struct proto_choose choose = choice(request);

	measure(collector);
	if (send_members(collector, request, &choose))
		send_strangers(collector, request, &choose);
	server_end(request);
}

static void answer_GET_DEVICE(struct collector *collector, const struct request *request)
{
	struct proto_choose choose = choice(request);

	measure(collector);
	send_host(collector, request, &choose);
	send_tenants(collector, request, &choose);
	server_end(request);
}

static void answer_TENANT_LIST(struct collector *collector, const struct request *request)
{
	struct proto_choose choose = choice(request);

	measure(collector);
	send_tenants(collector, request, &choose);
	server_end(request);
}

/* ---- changes */

static struct proto_change change_of(const struct request *request)
{
	struct proto_change change = *(const struct proto_change *)request->body;

	proto_text(change.section);
	proto_text(change.text);
	return change;
}

static const char *tenant_of_section(const char *section)
{
	static const char prefix[] = "tenant ";

	return strncmp(section, prefix, sizeof(prefix) - 1) ? NULL : section + sizeof(prefix) - 1;
}

/* Done, or not and why. */
static void reply_done(const struct request *request, int result, const char *problem)
{
	if (result < 0)
		server_fail(request, result, "%s", problem);
	else
		server_reply(request, 0, NULL, NULL, 0);
}

static void change(struct collector *collector, const struct request *request,
		   const struct proto_change *asked)
{
	char problem[POLICY_PROBLEM];
	int result = control_change(collector, asked->section, asked->text, problem);

	reply_done(request, result, problem);
}

static void answer_SET_LIMIT(struct collector *collector, const struct request *request)
{
	struct proto_change asked = change_of(request);
	const char *tenant = tenant_of_section(asked.section);

	if (tenant && strcmp(tenant, COLLECTOR_TENANT) &&
	    !policy_tenant_find(collector->effective, tenant))
		server_fail(request, -ENOENT, "there is no tenant '%s'", tenant);
	else
		change(collector, request, &asked);
}

static void answer_TENANT_ADD(struct collector *collector, const struct request *request)
{
	struct proto_change asked = change_of(request);
	const char *tenant = tenant_of_section(asked.section);

	if (!tenant)
		server_fail(request, -EINVAL, "'%s' is no tenant", asked.section);
	else if (policy_tenant_find(collector->effective, tenant))
		server_fail(request, -EEXIST, "there is a tenant '%s' already", tenant);
	else
		change(collector, request, &asked);
}

static void answer_TENANT_REMOVE(struct collector *collector, const struct request *request)
{
	struct proto_change asked = change_of(request);
	const char *tenant = tenant_of_section(asked.section);
	char problem[POLICY_PROBLEM];
	int result;

	if (!tenant) {
		server_fail(request, -EINVAL, "'%s' is no tenant", asked.section);
		return;
	}
	result = control_tenant_remove(collector, tenant, problem);
	reply_done(request, result, problem);
}

static void answer_RELOAD(struct collector *collector, const struct request *request)
{
	int result = control_reload(collector, RELOAD_WHOLE);

	reply_done(request, result, collector->problem);
}

static void answer_REPLACE(struct collector *collector, const struct request *request)
{
	int result = control_reload(collector, RELOAD_LESS);

	reply_done(request, result, collector->problem);
}

/* ---- events and explanations */

static void answer_EVENTS(struct collector *collector, const struct request *request)
{
	struct proto_choose choose = choice(request);
	const struct proto_event *event;

	guards_listen(collector);
	event = events_first(&collector->events);
	for (; event; event = events_next(&collector->events, event))
		if (event_is_chosen(&choose, event))
			server_row(request, event);
	if (choose.flags & CHOOSE_FOLLOW)
		server_subscribe(request);
	else
		server_end(request);
}

static bool is_admin(const struct collector *collector, const struct request *request)
{
	const struct policy *policy = collector->effective;

	return server_is_admin(request, policy->admin_group.name[0] ? &policy->admin_group.gid : NULL);
}

static void answer_EXPLAIN(struct collector *collector, const struct request *request)
{
	const struct proto_ask *ask = request->body;
	pid_t pid = ask->pid ? ask->pid : request->pid;
	int member = members_of_pid(&collector->members, pid);
	struct proto_explanation explanation = { 0 };
	const struct proto_event *event = NULL;
	const struct policy_rule *rule;
	struct subject subject;
	int result = subject_of_process(&subject, pid);
	bool foreign = (result < 0 || subject.policy.uid != request->uid) &&
		       !is_admin(collector, request);

	/* Who it is, where it runs, and even that it exists is its user's affair. Events are
	 * everybody's. */
	if (foreign)
		result = -EPERM;
	guards_listen(collector);
	if (ask->number)
		event = events_numbered(&collector->events, pid, ask->number);
	if (ask->number && !event) {
		server_fail(request, -ENOENT, "no event %d-%llu is kept", (int)pid,
			    (unsigned long long)ask->number);
		return;
	}
	if (result < 0 && !event) {
		server_fail(request, result,
			    foreign ? "process %d: only its user, root and administrators may ask" :
				      "there is no process %d",
			    (int)pid);
		return;
	}
	if (event) {
		explanation.has_event = 1;
		explanation.event = *event;
		snprintf(explanation.tenant, sizeof(explanation.tenant), "%s", event->tenant);
	}
	if (result == 0) {
		explanation.alive = 1;
		explanation.registered = member >= 0;
		rule = policy_match(collector->effective, &subject.policy);
		explanation.uid = subject.policy.uid;
		explanation.gid = subject.policy.gid;
		snprintf(explanation.container, sizeof(explanation.container), "%s",
			 subject.container);
		snprintf(explanation.job, sizeof(explanation.job), "%s", subject.job);
		snprintf(explanation.cgroup, sizeof(explanation.cgroup), "%.255s", subject.cgroup);
		snprintf(explanation.rule, sizeof(explanation.rule), "%s",
			 rule ? rule->source : "");
		if (member >= 0)
			snprintf(explanation.tenant, sizeof(explanation.tenant), "%s",
				 collector->books.file
					 ->tenant[collector->books.file->member[member].tenant]
					 .name);
		else if (!event)
			snprintf(explanation.tenant, sizeof(explanation.tenant), "%s",
				 rule ? rule->tenant->name : COLLECTOR_TENANT);
	}
	server_reply(request, 0, &explanation, NULL, 0);
}

/* ---- the guard */

static void answer_GUARD(struct collector *collector, const struct request *request)
{
	struct proto_choose choose = choice(request);
	struct proto_guard row;

	guards_look(collector);
	guards_listen(collector);
	guards_describe_host(collector, &row);
	server_row(request, &row);
	for (unsigned i = 0; i < BOOKS_TENANTS; i++) {
		const char *name = collector->books.file->tenant[i].name;

		if (!collector->books.tenant[i] ||
		    (choose.tenant[0] && strcmp(choose.tenant, name)))
			continue;
		guards_describe_tenant(collector, name, &row);
		server_row(request, &row);
	}
	server_end(request);
}

/* ---- */

void answer(void *closure, const struct request *request)
{
	struct collector *collector = closure;

	/* Who has just ended must not count any more for those that ask now. */
	collector_dispatch(collector);
	if (request->message->access == ACCESS_ADMIN &&
	    !is_admin(collector, request)) {
		server_fail(
			request, -EPERM,
			"%s is for root, the collector's own user and members of its admin group",
			request->message->name);
		return;
	}
	switch ((enum message)request->message->type) {
#define MESSAGE(name, number, request_body, reply_body, who, how)                                  \
	case MESSAGE_##name:                                                                       \
		answer_##name(collector, request);                                                 \
		break;
#include "proto/messages.def"
#undef MESSAGE
	}
}
