/* SPDX-License-Identifier: MIT */
/* Granting, sweeping and settling; see grants.h for the rules they keep. */
#include "collector/grants.h"

#include <string.h>

#define LOAD(word) __atomic_load_n(&(word), __ATOMIC_RELAXED)

/* Credit beyond what was asked for, so that the next questions are not asked: about as
 * much as there is already, but of what is left for others only a small part. */
enum { CHUNK_COUNT = 16, SHARE_OF_REST = 16, ROUNDS = 64 };
#define CHUNK_BYTES (16ull << 20)

/* One of the limits above a lease. */
struct level {
	enum ledger_scope scope;
	wide granted;
	uint64_t limit;
	bool own;    /* the limit is a wish of the process's environment */
	bool shared; /* with other processes */
};

static uint64_t min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* A wish may lower a limit. One that nobody uttered (a default) gives way to a limit. */
static void lower(struct level *level, uint64_t wish, bool is_default)
{
	if (wish >= level->limit || (is_default && level->limit != SIZE_UNLIMITED))
		return;
	level->limit = wish;
	level->own = true;
}

/* Two rows of a member may count one device, the nameless one. */
static wide member_on_device(const struct books *books, unsigned member, unsigned device,
			     unsigned kind)
{
	wide granted = 0;

	for (uint32_t lease = books->member[member].leases; lease != BOOKS_NOBODY;
	     lease = books->view[lease].next_of_member)
		if (books->view[lease].device == device)
			granted += books->file->lease[lease].granted[kind];
	return granted;
}

/* All limits above a lease, the narrowest scope first; with or without the wishes of the
 * process's environment, which may lower them. */
static void levels_of(const struct books *books, unsigned lease, unsigned kind, bool wishes,
		      struct level ret[LEDGER_SCOPES])
{
	const struct book_lease *row = &books->file->lease[lease];
	const struct book_member *member = &books->file->member[row->member];
	const struct tenant *tenant = books->tenant[books->view[lease].tenant];
	unsigned device = row->device;

	ret[SCOPE_PROCESS] = (struct level){ SCOPE_PROCESS,
					     books->member[row->member].granted[kind],
					     tenant->process_limit.total[kind], false, false };
	ret[SCOPE_PROCESS_DEVICE] =
		(struct level){ SCOPE_PROCESS_DEVICE,
				member_on_device(books, row->member, device, kind),
				tenant->process_limit.device[device][kind], false, false };
	ret[SCOPE_TENANT] = (struct level){ SCOPE_TENANT, tenant->all.total.granted[kind],
					    tenant->all.total.limit[kind], false, true };
	ret[SCOPE_TENANT_DEVICE] =
		(struct level){ SCOPE_TENANT_DEVICE, tenant->all.device[device].granted[kind],
				tenant->all.device[device].limit[kind], false, true };
	ret[SCOPE_DEVICE] = (struct level){ SCOPE_DEVICE, books->host.device[device].granted[kind],
					    books->host.device[device].limit[kind], false, true };
	ret[SCOPE_HOST] = (struct level){ SCOPE_HOST, books->host.total.granted[kind],
					  books->host.total.limit[kind], false, true };
	if (!wishes)
		return;
	lower(&ret[SCOPE_PROCESS], member->process_limit[kind],
	      member->process_defaults >> kind & 1);
	lower(&ret[SCOPE_DEVICE], row->device_limit[kind], false);
	lower(&ret[SCOPE_HOST], member->host_limit[kind], member->host_defaults >> kind & 1);
}

/* Whether more is granted on a lease than some limit of the policy above it allows; a wish
 * asks nothing of others. */
static bool is_draining(const struct books *books, unsigned lease, unsigned kind)
{
	struct level level[LEDGER_SCOPES];

	levels_of(books, lease, kind, false, level);
	for (int i = 0; i < LEDGER_SCOPES; i++)
		if (level[i].granted > level[i].limit)
			return true;
	return false;
}

static uint64_t room(const struct level *level)
{
	return level->limit > level->granted ? (uint64_t)(level->limit - level->granted) : 0;
}

/* ---- taking credit back */

/* Which leases a sweep goes through: those of a scope that have a usage page. */
struct range {
	enum ledger_scope scope;
	unsigned tenant, member, device;
};

static bool is_of_device(enum ledger_scope scope)
{
	return scope == SCOPE_PROCESS_DEVICE || scope == SCOPE_TENANT_DEVICE ||
	       scope == SCOPE_DEVICE;
}

static bool within(const struct range *range, const struct lease_view *view)
{
	if (view->member == BOOKS_NOBODY || !view->used)
		return false;
	if (is_of_device(range->scope) && view->device != range->device)
		return false;
	if (range->scope <= SCOPE_PROCESS_DEVICE)
		return view->member == range->member;
	if (range->scope <= SCOPE_TENANT_DEVICE)
		return view->tenant == range->tenant;
	return true;
}

uint64_t grants_used(const struct books *books, unsigned lease, unsigned kind)
{
	const struct lease_view *view = &books->view[lease];
	uint64_t granted = books->file->lease[lease].granted[kind];

	/* A member's word counts only up to what it was granted. */
	return view->used ? min(__atomic_load_n(&view->used[kind], __ATOMIC_SEQ_CST), granted) :
			    granted;
}

uint64_t grants_shown(const struct books *books, unsigned lease, unsigned kind)
{
	const struct lease_view *view = &books->view[lease];

	if (!view->used || books->tenant[view->tenant]->table->mode == MODE_ENFORCE)
		return grants_used(books, lease, kind);
	return LOAD(view->used[kind]);
}

/* First half of taking back: from now on nothing new is taken above what is used. */
static void cap_lower(struct books *books, unsigned lease, unsigned kind, bool hold)
{
	struct lease_view *view = &books->view[lease];
	uint64_t target = hold ? 0 : LOAD(view->used[kind]);

	/* In one order with the reading of `used` below, and with what the member does: it
	 * raises `used` and then reads this. One of the two sees the other. */
	if (LOAD(view->cap[kind]) > target)
		__atomic_store_n(&view->cap[kind], target, __ATOMIC_SEQ_CST);
}

/* Second half: what is used now, or could still be, stays granted. */
static void grant_settle(struct books *books, unsigned lease, unsigned kind)
{
	uint64_t granted = books->file->lease[lease].granted[kind];
	uint64_t cap = LOAD(books->view[lease].cap[kind]), used = grants_used(books, lease, kind);
	uint64_t stays = cap > used ? cap : used;

	if (stays < granted)
		books_grant(books, lease, kind, stays);
}

static void cap_raise(struct books *books, unsigned lease, unsigned kind)
{
	uint64_t granted = books->file->lease[lease].granted[kind];

	if (LOAD(books->view[lease].cap[kind]) == granted || is_draining(books, lease, kind))
		return;
	/* Release: the books were written first. */
	__atomic_store_n(&books->view[lease].cap[kind], granted, __ATOMIC_RELEASE);
}

/*
 * Takes idle credit of a kind back from all leases in the range. Returns whether there was
 * any. With hold, members are to ask before they take anything new, as long as a limit above them
 * is exceeded.
 */
static bool sweep(struct books *books, const struct range *range, unsigned kind, bool hold)
{
	wide before = books->host.total.granted[kind];
	unsigned high = books->file->leases_high;

	for (unsigned lease = 0; lease < high; lease++)
		if (within(range, &books->view[lease]))
			cap_lower(books, lease, kind, hold);
	for (unsigned lease = 0; lease < high; lease++)
		if (within(range, &books->view[lease]))
			grant_settle(books, lease, kind);
	for (unsigned lease = 0; lease < high; lease++)
		if (within(range, &books->view[lease]))
			cap_raise(books, lease, kind);
	return books->host.total.granted[kind] != before;
}

bool grants_sweep_all(struct books *books, unsigned kind)
{
	return sweep(books, &(struct range){ .scope = SCOPE_HOST }, kind, false);
}

void grants_settle(struct books *books, unsigned lease)
{
	for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
		struct lease_view *view = &books->view[lease];

		if (!view->used || LOAD(view->cap[kind]) == books->file->lease[lease].granted[kind])
			continue;
		grant_settle(books, lease, kind);
		cap_raise(books, lease, kind);
	}
}

static void scope_forget_used(struct scope *scope)
{
	memset(scope->used, 0, sizeof(scope->used));
}

static void scope_note_peak(struct scope *scope)
{
	for (unsigned kind = 0; kind < KIND_COUNT; kind++)
		if (scope->used[kind] > scope->peak[kind])
			scope->peak[kind] = scope->used[kind];
}

static void each_scope(struct owner *owner, void (*apply)(struct scope *scope))
{
	apply(&owner->total);
	for (unsigned device = 0; device < LEDGER_DEVICES; device++)
		apply(&owner->device[device]);
}

static void each_owner(struct books *books, void (*apply)(struct scope *scope))
{
	each_scope(&books->host, apply);
	for (unsigned i = 0; i < BOOKS_TENANTS; i++)
		if (books->tenant[i])
			each_scope(&books->tenant[i]->all, apply);
}

static void member_measure(struct books *books, unsigned number)
{
	struct member *member = &books->member[number];

	memset(member->used, 0, sizeof(member->used));
	for (uint32_t lease = member->leases; lease != BOOKS_NOBODY;
	     lease = books->view[lease].next_of_member)
		for (unsigned kind = 0; kind < KIND_COUNT; kind++)
			member->used[kind] += grants_shown(books, lease, kind);
	for (unsigned kind = 0; kind < KIND_COUNT; kind++)
		if (member->used[kind] > member->peak[kind])
			member->peak[kind] = member->used[kind];
}

void grants_measure(struct books *books)
{
	for (unsigned i = 0; i < books->file->members_high; i++)
		if (books->file->member[i].state == BOOK_TAKEN)
			member_measure(books, i);
	each_owner(books, scope_forget_used);
	for (unsigned lease = 0; lease < books->file->leases_high; lease++) {
		const struct lease_view *view = &books->view[lease];

		for (unsigned kind = 0; view->member != BOOKS_NOBODY && kind < KIND_COUNT; kind++) {
			struct owner *tenant = &books->tenant[view->tenant]->all;
			uint64_t used = grants_shown(books, lease, kind);

			books->host.total.used[kind] += used;
			books->host.device[view->device].used[kind] += used;
			tenant->total.used[kind] += used;
			tenant->device[view->device].used[kind] += used;
		}
	}
	each_owner(books, scope_note_peak);
}

/* ---- giving */

static uint64_t increase(const struct books *books, const struct grants_need *need, unsigned i)
{
	uint64_t granted = books->file->lease[need->lease].granted[need->kind[i]];

	return need->total[i] > granted ? need->total[i] - granted : 0;
}

/* The first kind of the need that a limit is in the way of, and that limit; its count if
 * there is none. */
static unsigned obstacle(const struct books *books, const struct grants_need *need, bool wishes,
			 struct level *ret_level)
{
	struct level level[LEDGER_SCOPES];

	for (unsigned i = 0; i < need->count; i++) {
		uint64_t more = increase(books, need, i);

		levels_of(books, need->lease, need->kind[i], wishes, level);
		for (int scope = 0; more && scope < LEDGER_SCOPES; scope++)
			if (more > room(&level[scope])) {
				*ret_level = level[scope];
				return i;
			}
	}
	return need->count;
}

/* How much more than asked for may be given: none near a limit. */
static uint64_t bonus(const struct books *books, const struct grants_need *need, unsigned i)
{
	unsigned kind = need->kind[i];
	uint64_t chunk = kind_rows[kind].unit == UNIT_BYTES ? CHUNK_BYTES : CHUNK_COUNT;
	uint64_t more = increase(books, need, i), extra = need->total[i];
	struct level level[LEDGER_SCOPES];

	if (need->exact || need->bare)
		return 0;
	if (extra < chunk)
		extra = chunk;
	extra = min(extra, BOOKS_GRANT_MOST - need->total[i]);
	levels_of(books, need->lease, kind, true, level);
	for (int scope = 0; scope < LEDGER_SCOPES; scope++) {
		uint64_t rest = room(&level[scope]) - more;

		extra = min(extra, level[scope].shared ? rest / SHARE_OF_REST : rest);
	}
	return extra;
}

static void grant(struct books *books, const struct grants_need *need, unsigned i)
{
	unsigned lease = need->lease, kind = need->kind[i];
	uint64_t granted = books->file->lease[lease].granted[kind];

	if (need->total[i] > granted)
		books_grant(books, lease, kind, need->total[i] + bonus(books, need, i));
	else if (need->exact && need->total[i] < granted)
		books_grant(books, lease, kind, need->total[i]);
	/* Not while a limit above is exceeded, though nothing more was granted: a thread of the
	 * member that was about to look at its cap would pass. */
	if (books->view[lease].cap)
		cap_raise(books, lease, kind);
}

/* A member that is made to ask has granted above its cap: only what it uses now counts,
 * or it could take again what it gave back while a limit is exceeded. */
static void held_settle(struct books *books, unsigned lease, unsigned kind)
{
	const struct lease_view *view = &books->view[lease];

	if (view->used && LOAD(view->cap[kind]) < books->file->lease[lease].granted[kind])
		grant_settle(books, lease, kind);
}

bool grants_held(const struct books *books, unsigned lease)
{
	const struct lease_view *view = &books->view[lease];

	for (unsigned kind = 0; view->used && kind < KIND_COUNT; kind++)
		if (LOAD(view->cap[kind]) < books->file->lease[lease].granted[kind])
			return true;
	return false;
}

/* Takes credit back until nothing is in the way of the need, or what is will not go away. */
static int make_room(struct books *books, const struct grants_need *need, bool wishes,
		     struct ledger_refusal *ret_refusal)
{
	const struct lease_view *view = &books->view[need->lease];
	struct range range = { 0, view->tenant, view->member, view->device };
	bool moved = true; /* credit, since the last look: it may have gone from a lease that was
			      not yet swept to one that was, so look again */
	struct level blocking;
	unsigned i;

	for (unsigned round = 0; (i = obstacle(books, need, wishes, &blocking)) < need->count;
	     round++) {
		if (!moved || round == ROUNDS) {
			*ret_refusal = (struct ledger_refusal){
				.scope = blocking.scope,
				.kind = need->kind[i],
				.used = books_clamp(blocking.granted),
				.wanted = need->wanted[i],
				.limit = blocking.limit,
				.own = blocking.own,
			};
			return LEDGER_REFUSED;
		}
		range.scope = blocking.scope;
		moved = sweep(books, &range, need->kind[i], false);
	}
	return 0;
}

int grants_need(struct books *books, const struct grants_need *asked,
		struct ledger_refusal *ret_refusal)
{
	const struct book_member *member = &books->file->member[books->view[asked->lease].member];
	struct grants_need need = *asked;
	int result;

	for (unsigned i = 0; i < need.count; i++)
		held_settle(books, need.lease, need.kind[i]);
	result = make_room(books, &need, true, ret_refusal);
	/* A process that only counts what is over its own limits takes it all the same: then it
	 * is granted, within the policy's, or it would count against nobody. */
	if (result == LEDGER_REFUSED && ret_refusal->own && member->own_mode != MODE_ENFORCE) {
		struct ledger_refusal of_policy;

		need.bare = true; /* the next one is to be told of, too */
		if (make_room(books, &need, false, &of_policy) == LEDGER_REFUSED) {
			*ret_refusal = of_policy;
			return LEDGER_REFUSED;
		}
	} else if (result == LEDGER_REFUSED) {
		return result;
	}
	for (unsigned i = 0; i < need.count; i++)
		grant(books, &need, i);
	return result;
}

/* ---- limits that changed */

static void enforce_owner(struct books *books, const struct owner *owner, struct range range,
			  enum ledger_scope total, enum ledger_scope on_one_device, unsigned kind)
{
	range.scope = total;
	if (owner->total.granted[kind] > owner->total.limit[kind])
		sweep(books, &range, kind, true);
	range.scope = on_one_device;
	for (range.device = 0; range.device < LEDGER_DEVICES; range.device++)
		if (owner->device[range.device].granted[kind] >
		    owner->device[range.device].limit[kind])
			sweep(books, &range, kind, true);
}

static void enforce_member(struct books *books, unsigned member, unsigned kind)
{
	const struct tenant *tenant = books->tenant[books->file->member[member].tenant];
	struct range range = { .member = member };

	range.scope = SCOPE_PROCESS;
	if (books->member[member].granted[kind] > tenant->process_limit.total[kind])
		sweep(books, &range, kind, true);
	range.scope = SCOPE_PROCESS_DEVICE;
	for (uint32_t lease = books->member[member].leases; lease != BOOKS_NOBODY;
	     lease = books->view[lease].next_of_member) {
		range.device = books->view[lease].device;
		if (member_on_device(books, member, range.device, kind) >
		    tenant->process_limit.device[range.device][kind])
			sweep(books, &range, kind, true);
	}
}

void grants_enforce(struct books *books)
{
	for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
		enforce_owner(books, &books->host, (struct range){ 0 }, SCOPE_HOST, SCOPE_DEVICE,
			      kind);
		for (unsigned i = 0; i < BOOKS_TENANTS; i++)
			if (books->tenant[i])
				enforce_owner(books, &books->tenant[i]->all,
					      (struct range){ .tenant = i }, SCOPE_TENANT,
					      SCOPE_TENANT_DEVICE, kind);
		for (unsigned i = 0; i < books->file->members_high; i++)
			if (books->file->member[i].state == BOOK_TAKEN)
				enforce_member(books, i, kind);
	}
}
