/* SPDX-License-Identifier: MIT */
/* GROW: a process asks for more than its lease allows. */
#include "collector/answers.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "collector/control.h"
#include "collector/grants.h"
#include "collector/limits.h"
#include "collector/origins.h"
#include "collector/shares.h"

static bool need_is_sound(const struct proto_grow_request *need)
{
	if (!need->count || need->count > COST_KINDS || need->row >= DEVICES_MAX)
		return false;
	for (unsigned i = 0; i < need->count; i++) {
		if (need->kind[i] >= KINDS_COUNTED || need->total[i] > BOOKS_GRANT_MOST)
			return false;
		for (unsigned j = 0; j < i; j++)
			if (need->kind[i] == need->kind[j])
				return false;
	}
	return true;
}

/* The member's lease for the row it counts in; made if there is none. -errno, and *ret_why. */
static int need_lease(struct collector *collector, unsigned member, const struct proto_grow_request *need,
		      const char **ret_why)
{
	struct books *books = &collector->books;
	const struct book_member *row = &books->file->member[member];
	unsigned found = books_lease_of(books, member, need->row), device;
	int lease, result;

	if (found != BOOKS_NOBODY)
		return (int)found;
	*ret_why = share_refuse_lease(books, row->uid, row->tenant);
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
	pacing_lease_added(collector, (unsigned)lease);
	return lease;
}

static void refusal_count(struct refusal_counts *counts, unsigned kind, bool tolerated, bool here)
{
	(tolerated ? counts->tolerated : counts->refused)[kind]++;
	if (here)
		(tolerated ? counts->tolerated_here : counts->refused_here)[kind]++;
}

/* Of all that the lease belongs to; the limit is that of one of them, or of the program itself. */
static void need_count_refused(struct books *books, const struct lease_view *view, unsigned kind,
			       const struct ledger_refusal *refusal, bool tolerated)
{
	struct owner *tenant = &books->tenant[view->tenant]->all;
	const struct {
		struct refusal_counts *counts;
		enum limit_scope scope;
	} owners[] = {
		{ &books->member[view->member].refusals, SCOPE_PROCESS },
		{ &tenant->total.refusals, SCOPE_TENANT },
		{ &tenant->device[view->device].refusals, SCOPE_TENANT_DEVICE },
		{ &books->host.total.refusals, SCOPE_HOST },
		{ &books->host.device[view->device].refusals, SCOPE_DEVICE },
	};

	for (unsigned i = 0; i < sizeof(owners) / sizeof(owners[0]); i++)
		refusal_count(owners[i].counts, kind, tolerated,
			      !refusal->own && owners[i].scope == refusal->scope);
}

/* A limit is in the way; it may be one that is only told of. */
static void need_refuse(struct collector *collector, const struct request *request, unsigned lease,
			const struct ledger_refusal *refusal, bool tolerated,
			struct proto_grow_reply *give)
{
	struct books *books = &collector->books;
	const struct lease_view *view = &books->view[lease];
	struct book_member *row = &books->file->member[view->member];
	unsigned port = kind_port(refusal->kind);
	bool forbidden = refusal->scope == SCOPE_TENANT_DEVICE &&
			 limits_forbid_device(collector, view->tenant, view->device);
	struct proto_event event = {
		.type = tolerated ? EVENT_TOLERATED : EVENT_REFUSED,
		.pid = row->pid,
		.number = ++row->refusals,
		.kind = kind_plain(refusal->kind),
		.scope = refusal->scope,
		.own = refusal->own,
		.used = refusal->used,
		.wanted = refusal->wanted,
		.limit = refusal->limit,
		.forbidden = forbidden,
		.configured = refusal->configured,
	};

	snprintf(event.tenant, sizeof(event.tenant), "%s", books->file->tenant[view->tenant].name);
	/* "rxe0", or "rxe0/1" if it is a limit of the port. */
	snprintf(event.device, sizeof(event.device), "%s", books->file->device[view->device].name);
	origin_of_refusal(collector, &event, refusal->kind, event.device, event.origin);
	if (port)
		snprintf(event.device + strlen(event.device),
			 sizeof(event.device) - strlen(event.device), "/%u", port);
	need_count_refused(books, view, refusal->kind, refusal, tolerated);
	grants_note_peak(books, view, refusal, tolerated);
	if (port)
		need_count_refused(books, view, event.kind, refusal, tolerated);
	give->kind = refusal->kind;
	give->scope = refusal->scope;
	give->own = refusal->own;
	give->forbidden = forbidden;
	give->used = refusal->used;
	give->wanted = refusal->wanted;
	give->limit = refusal->limit;
	give->configured = refusal->configured;
	give->event = event.number;
	if (!event.own)
		origin_shorten(collector, event.origin, give->origin);
	server_reply(request, tolerated ? PROTO_TOLERATED : PROTO_REFUSED, give, NULL, 0);
	collector_event(collector, &event);
}

/*
 * Whether a search may still show that a refusal is wrong: of what members that have ended held,
 * or of credit that living ones do not use. What began to be sought later does not count, so that
 * a request is not kept for ever.
 */
static bool need_is_held(struct collector *collector, const struct request *request, unsigned lease,
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
		fairness_request(collector, need);
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

static bool lease_is_unused(const struct books *books, unsigned lease)
{
	for (unsigned kind = 0; kind < KINDS_COUNTED; kind++)
		if (books->file->lease[lease].granted[kind])
			return false;
	return true;
}

/* The member has a lease for it. True: it was new, and got nothing. */
static bool need_answer(struct collector *collector, const struct request *request,
			const struct proto_grow_request *asked, unsigned lease, bool is_new)
{
	struct books *books = &collector->books;
	const struct book_member *member = &books->file->member[books->view[lease].member];
	struct ledger_refusal refusal;
	struct proto_grow_reply give = { .lease = lease };
	struct grants_need need = { .lease = lease,
				    .count = asked->count,
				    .question = asked->question };
	int result;

	/* Who has caps has more than it asked for, and gives back without a word. */
	need.exact = asked->flags & GROW_EXACT && member->flags & MEMBER_ASKS;
	memcpy(need.kind, asked->kind, sizeof(need.kind));
	memcpy(need.total, asked->total, sizeof(need.total));
	memcpy(need.wanted, asked->wanted, sizeof(need.wanted));
	result = need_meet(collector, request, asked->cookie, &need, &refusal);
	if (result < 0) {
		server_fail(request, result, "process %d has ended", (int)request->pid);
		return false;
	}
	is_new = is_new && lease_is_unused(books, lease);
	give.mode = books->tenant[books->view[lease].tenant]->table->mode;
	if (is_new)
		give.lease = PROTO_NO_LEASE;
	if (result == 0)
		server_reply(request, 0, &give, NULL, 0);
	else if (result != LEDGER_REFUSED || !need_is_held(collector, request, lease, &refusal))
		need_refuse(collector, request, lease, &refusal, result == LEDGER_TOLERATED, &give);
	return is_new;
}

void answer_GROW(struct collector *collector, const struct request *request)
{
	struct proto_grow_request asked = *(const struct proto_grow_request *)request->body;
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
		server_fail(request, -EINVAL, "GROW with kinds or amounts that do not exist");
		return;
	}
	members_seek_page(&collector->members, (unsigned)member);
	/* With its page we know what it holds. */
	ticket = request->ticket ? request->ticket : members_sought(&collector->members);
	if (members_await_one(&collector->members, (unsigned)member, ticket) &&
	    server_hold(request, ticket)) {
		collector_search_await(collector);
		return;
	}
	lease = need_lease(collector, (unsigned)member, &asked, &why);
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
