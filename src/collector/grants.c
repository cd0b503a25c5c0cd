/* SPDX-License-Identifier: MIT */
/* What is granted to a question, and what happens when limits change; see grants.h. */
#include "collector/grant_parts.h"

#include <string.h>

/* Credit beyond what was asked for, so that the next questions are not asked: about as
 * much as there is already, but of what is left for others only a small part. */
enum { CHUNK_COUNT = 16, SHARE_OF_REST = 16 };
#define CHUNK_BYTES (16ull << 20)

/* Whether it is a limit of many processes. */
static bool scope_is_shared(enum limit_scope scope)
{
	return scope >= SCOPE_TENANT;
}

static uint64_t need_increase(const struct books *books, const struct grants_need *need, unsigned i)
{
	uint64_t granted = books->file->lease[need->lease].granted[need->kind[i]];

	return need->total[i] > granted ? need->total[i] - granted : 0;
}

/* The first kind of the need that a limit is in the way of, and that limit; its count if
 * there is none. */
static unsigned need_obstacle(const struct books *books, const struct grants_need *need,
			      struct level_filter filter, struct level *ret_level)
{
	struct level level[SCOPES];

	for (unsigned i = 0; i < need->count; i++) {
		uint64_t more = need_increase(books, need, i);

		levels_above(books, need->lease, need->kind[i], filter, level);
		if (filter.policy)
			levels_reserve(books, need->lease, need->kind[i], level);
		for (int scope = 0; more && scope < SCOPES; scope++)
			if (more > level_room(&level[scope])) {
				*ret_level = level[scope];
				return i;
			}
	}
	return need->count;
}

/* How much more than asked for may be given: none near a limit. */
static uint64_t need_bonus(const struct books *books, const struct grants_need *need, unsigned i)
{
	unsigned kind = need->kind[i];
	uint64_t chunk = kind_rows[kind].unit == UNIT_BYTES ? CHUNK_BYTES : CHUNK_COUNT;
	uint64_t more = need_increase(books, need, i), extra = need->total[i];
	struct level level[SCOPES];

	if (need->exact || need->bare)
		return 0;
	if (extra < chunk)
		extra = chunk;
	extra = smaller(extra, BOOKS_GRANT_MOST - need->total[i]);
	levels_above(books, need->lease, kind, level_filter_all, level);
	levels_reserve(books, need->lease, kind, level);
	for (int scope = 0; scope < SCOPES; scope++) {
		uint64_t rest = level_room(&level[scope]) - more;

		extra = smaller(extra,
				scope_is_shared(level[scope].scope) ? rest / SHARE_OF_REST : rest);
	}
	return extra;
}

/* Where a tolerated grant takes a sum over its limit, nobody grows any more without asking. */
static void exceeded_close(struct books *books, unsigned lease, unsigned kind, uint64_t more)
{
	const struct lease_view *view = &books->view[lease];
	struct sweep range = { 0, view->tenant, view->member, view->device };
	struct level level[SCOPES];

	levels_above(books, lease, kind, level_filter_policy, level);
	for (int i = 0; i < SCOPES; i++)
		if (level[i].granted > level[i].limit &&
		    level[i].granted - more <= level[i].limit) {
			range.scope = level[i].scope;
			sweep_range(books, &range, kind, true);
		}
}

static bool lease_is_unlimited(const struct books *books, unsigned lease, unsigned kind)
{
	struct level level[SCOPES];

	levels_above(books, lease, kind, level_filter_all, level);
	for (int i = 0; i < SCOPES; i++)
		if (level[i].limit != UNLIMITED)
			return false;
	return true;
}

/* On a port without limits as much is granted as of the kind itself. A process has no more there,
 * so that it never asks for a port of which no policy speaks. */
static void ports_follow(struct books *books, unsigned lease, unsigned kind)
{
	uint64_t granted = books->file->lease[lease].granted[kind];

	for (unsigned port = 1; books->view[lease].cap && port <= PORTS_COUNTED; port++) {
		int on_port = kind_on_port((enum kind)kind, port);

		if (on_port < 0 || books->file->lease[lease].granted[on_port] >= granted ||
		    !lease_is_unlimited(books, lease, (unsigned)on_port))
			continue;
		books_grant(books, lease, (unsigned)on_port, granted);
		lease_cap_raise(books, lease, (unsigned)on_port);
	}
}

static void need_grant(struct books *books, const struct grants_need *need, unsigned i)
{
	unsigned lease = need->lease, kind = need->kind[i];
	uint64_t granted = books->file->lease[lease].granted[kind];

	if (need->total[i] > granted) {
		books_grant(books, lease, kind, need->total[i] + need_bonus(books, need, i));
		exceeded_close(books, lease, kind, need->total[i] - granted);
	} else if (need->exact && need->total[i] < granted) {
		books_grant(books, lease, kind, need->total[i]);
	}
	/* Not while a limit above is exceeded, though nothing more was granted: a thread of the
	 * member that was about to look at its cap would pass. */
	if (books->view[lease].cap)
		lease_cap_raise(books, lease, kind);
	if (kind < KIND_COUNT)
		ports_follow(books, lease, kind);
}

/* A member that is made to ask has granted above its cap: only what it uses now counts,
 * or it could take again what it gave back while a limit is exceeded. */
static void lease_settle_held(struct books *books, unsigned lease, unsigned kind)
{
	const struct lease_view *view = &books->view[lease];

	if (view->used && LOAD(view->cap[kind]) < books->file->lease[lease].granted[kind])
		lease_grant_settle(books, lease, kind);
}

bool grants_drain(const struct books *books, unsigned lease)
{
	const struct lease_view *view = &books->view[lease];
	struct level_filter enforced = level_filter_enforced(books, lease);
	struct level level[SCOPES];

	for (unsigned kind = 0; view->used && kind < KINDS_COUNTED; kind++) {
		if (LOAD(view->cap[kind]) >= books->file->lease[lease].granted[kind])
			continue;
		levels_above(books, lease, kind, enforced, level);
		for (int scope = 0; scope < SCOPES; scope++)
			if (level[scope].granted > level[scope].limit)
				return true;
	}
	return false;
}

/* Takes credit back until nothing is in the way of the need, or what is will not go away: the
 * sum of a scope that was swept for it is exact. */
static int need_make_room(struct books *books, const struct grants_need *need,
			  struct level_filter filter, struct ledger_refusal *ret_refusal)
{
	const struct lease_view *view = &books->view[need->lease];
	struct sweep range = { 0, view->tenant, view->member, view->device };
	unsigned swept[COST_KINDS] = { 0 }; /* bit: scope */
	struct level blocking;
	unsigned i;

	while ((i = need_obstacle(books, need, filter, &blocking)) < need->count) {
		if (swept[i] >> blocking.scope & 1) {
			*ret_refusal = (struct ledger_refusal){
				.scope = blocking.scope,
				.kind = need->kind[i],
				.used = books_clamp(blocking.granted),
				.wanted = need->wanted[i],
				.limit = blocking.limit,
				.own = blocking.own,
				.configured = blocking.configured,
			};
			return LEDGER_REFUSED;
		}
		swept[i] |= 1u << blocking.scope;
		range.scope = blocking.scope;
		sweep_range(books, &range, need->kind[i], false);
	}
	return 0;
}

/* From now on the member is about to take it. */
static void need_promise(struct books *books, const struct grants_need *need)
{
	struct promise *ret = &books->member[books->view[need->lease].member].promise;

	*ret = (struct promise){ need->question, need->lease, need->count, { 0 }, { 0 } };
	memcpy(ret->kind, need->kind, sizeof(ret->kind));
	memcpy(ret->total, need->total, sizeof(ret->total));
}

int grants_need(struct books *books, const struct grants_need *asked,
		struct ledger_refusal *ret_refusal)
{
	struct level_filter enforced = level_filter_enforced(books, asked->lease);
	struct grants_need need = *asked;
	struct ledger_refusal other;
	int result;

	for (unsigned i = 0; i < need.count; i++)
		lease_settle_held(books, need.lease, need.kind[i]);
	result = need_make_room(books, &need, level_filter_all, ret_refusal);
	if (result == LEDGER_REFUSED) {
		if (enforced.policy && enforced.requested)
			return result;
		if (need_make_room(books, &need, enforced, &other) == LEDGER_REFUSED) {
			*ret_refusal = other;
			return LEDGER_REFUSED;
		}
		/* It takes it all the same: so it is granted, or it would count against nobody.
		 * The administrator's limit is told of rather than the process's own. */
		if (ret_refusal->own &&
		    need_make_room(books, &need, level_filter_policy, &other) == LEDGER_REFUSED)
			*ret_refusal = other;
		need.bare = true; /* the next one is to be told of, too */
		result = LEDGER_TOLERATED;
	}
	need_promise(books, &need);
	for (unsigned i = 0; i < need.count; i++)
		need_grant(books, &need, i);
	return result;
}

/* ---- limits that changed */

static void enforce_owner(struct books *books, const struct owner *owner, struct sweep range,
			  enum limit_scope total, enum limit_scope on_one_device, unsigned kind)
{
	range.scope = total;
	if (owner->total.granted[kind] > owner->total.limit[kind])
		sweep_range(books, &range, kind, true);
	range.scope = on_one_device;
	for (range.device = 0; range.device < DEVICES_MAX; range.device++)
		if (owner->device[range.device].granted[kind] >
		    owner->device[range.device].limit[kind])
			sweep_range(books, &range, kind, true);
}

void grants_enforce_tenant(struct books *books, unsigned tenant, unsigned place, unsigned kind)
{
	const struct scope *scope = books_scope(&books->tenant[tenant]->all, place);
	struct sweep range = { place ? SCOPE_TENANT_DEVICE : SCOPE_TENANT, tenant, 0, place };

	if (scope->granted[kind] > scope->limit[kind])
		sweep_range(books, &range, kind, true);
}

static void enforce_member(struct books *books, unsigned member, unsigned kind)
{
	const struct tenant *tenant = books->tenant[books->file->member[member].tenant];
	struct sweep range = { .member = member };

	range.scope = SCOPE_PROCESS;
	if (books->member[member].granted[kind] > tenant->process_limit.total[kind])
		sweep_range(books, &range, kind, true);
	range.scope = SCOPE_PROCESS_DEVICE;
	for (uint32_t lease = books->member[member].leases; lease != BOOKS_NOBODY;
	     lease = books->view[lease].next_of_member) {
		range.device = books->view[lease].device;
		if (levels_member_on_device(books, member, range.device, kind) >
		    tenant->process_limit.device[range.device][kind])
			sweep_range(books, &range, kind, true);
	}
}

void grants_enforce(struct books *books)
{
	for (unsigned kind = 0; kind < KINDS_COUNTED; kind++) {
		enforce_owner(books, &books->host, (struct sweep){ 0 }, SCOPE_HOST, SCOPE_DEVICE,
			      kind);
		for (unsigned i = 0; i < BOOKS_TENANTS; i++)
			if (books->tenant[i])
				enforce_owner(books, &books->tenant[i]->all,
					      (struct sweep){ .tenant = i }, SCOPE_TENANT,
					      SCOPE_TENANT_DEVICE, kind);
		for (unsigned i = 0; i < books->file->members_high; i++)
			if (books->file->member[i].state == BOOK_TAKEN)
				enforce_member(books, i, kind);
	}
}
