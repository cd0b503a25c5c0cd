/* SPDX-License-Identifier: MIT */
/* Granting, sweeping and settling; see grants.h for the rules they keep. */
#include "collector/grants.h"

#include <string.h>

#define LOAD(word) __atomic_load_n(&(word), __ATOMIC_RELAXED)

/* Credit beyond what was asked for, so that the next questions are not asked: about as
 * much as there is already, but of what is left for others only a small part. */
enum { CHUNK_COUNT = 16, SHARE_OF_REST = 16 };
#define CHUNK_BYTES (16ull << 20)

/* One of the limits above a lease. */
struct level {
	enum ledger_scope scope;
	wide granted;
	uint64_t limit;
	bool own; /* the limit is a wish of the process's environment */
};

/* Whose limits count. */
struct heed {
	bool policy;
	bool wishes; /* of the process's environment, which may lower the policy's */
};

static const struct heed heed_all = { true, true };
static const struct heed heed_policy = { true, false };

static uint64_t min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* The limits that refuse; the others are told of, and passed. */
static struct heed heed_enforced(const struct books *books, unsigned lease)
{
	const struct lease_view *view = &books->view[lease];

	return (struct heed){
		.policy = books->tenant[view->tenant]->table->mode == MODE_ENFORCE,
		.wishes = books->file->member[view->member].own_mode == MODE_ENFORCE,
	};
}

/* Whether it is a limit of many processes. */
static bool is_shared(enum ledger_scope scope)
{
	return scope >= SCOPE_TENANT;
}

/* A wish may lower a limit. One that nobody uttered (a default) gives way to a limit. */
static struct level level_of(enum ledger_scope scope, wide granted, uint64_t policy, uint64_t wish,
			     bool is_default, struct heed heed)
{
	struct level level = { scope, granted, heed.policy ? policy : SIZE_UNLIMITED, false };

	if (heed.wishes && wish < level.limit && !(is_default && policy != SIZE_UNLIMITED)) {
		level.limit = wish;
		level.own = true;
	}
	return level;
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

/* All limits above a lease, the narrowest scope first. */
static void levels_of(const struct books *books, unsigned lease, unsigned kind, struct heed heed,
		      struct level ret[LEDGER_SCOPES])
{
	const struct book_lease *row = &books->file->lease[lease];
	const struct book_member *member = &books->file->member[row->member];
	const struct tenant *tenant = books->tenant[books->view[lease].tenant];
	const struct owner *host = &books->host;
	unsigned device = row->device;

	ret[SCOPE_PROCESS] = level_of(SCOPE_PROCESS, books->member[row->member].granted[kind],
				      tenant->process_limit.total[kind],
				      member->process_limit[kind],
				      member->process_defaults >> kind & 1, heed);
	ret[SCOPE_PROCESS_DEVICE] =
		level_of(SCOPE_PROCESS_DEVICE, member_on_device(books, row->member, device, kind),
			 tenant->process_limit.device[device][kind], SIZE_UNLIMITED, false, heed);
	ret[SCOPE_TENANT] = level_of(SCOPE_TENANT, tenant->all.total.granted[kind],
				     tenant->all.total.limit[kind], SIZE_UNLIMITED, false, heed);
	ret[SCOPE_TENANT_DEVICE] =
		level_of(SCOPE_TENANT_DEVICE, tenant->all.device[device].granted[kind],
			 tenant->all.device[device].limit[kind], SIZE_UNLIMITED, false, heed);
	ret[SCOPE_DEVICE] =
		level_of(SCOPE_DEVICE, host->device[device].granted[kind],
			 host->device[device].limit[kind], row->device_limit[kind], false, heed);
	ret[SCOPE_HOST] = level_of(SCOPE_HOST, host->total.granted[kind], host->total.limit[kind],
				   member->host_limit[kind], member->host_defaults >> kind & 1,
				   heed);
}

/* Whether more is granted on a lease than some limit of the policy above it allows; a wish
 * asks nothing of others. */
static bool is_draining(const struct books *books, unsigned lease, unsigned kind)
{
	struct level level[LEDGER_SCOPES];

	levels_of(books, lease, kind, heed_policy, level);
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

/* The next lease of the scope's owner, or its first after BOOKS_NOBODY: how many leases others
 * have must not make a sweep longer. */
static uint32_t owner_next(const struct books *books, const struct range *range, uint32_t lease)
{
	bool first = lease == BOOKS_NOBODY;

	if (range->scope <= SCOPE_PROCESS_DEVICE)
		return first ? books->member[range->member].leases :
			       books->view[lease].next_of_member;
	if (range->scope <= SCOPE_TENANT_DEVICE)
		return first ? books->tenant[range->tenant]->leases :
			       books->view[lease].next_of_tenant;
	lease = first ? 0 : lease + 1;
	return lease < books->file->leases_high ? lease : BOOKS_NOBODY;
}

static bool within(const struct range *range, const struct lease_view *view)
{
	return view->member != BOOKS_NOBODY && view->used &&
	       (!is_of_device(range->scope) || view->device == range->device);
}

static uint32_t range_next(const struct books *books, const struct range *range, uint32_t lease)
{
	do
		lease = owner_next(books, range, lease);
	while (lease != BOOKS_NOBODY && !within(range, &books->view[lease]));
	return lease;
}

#define EACH_IN_RANGE(books, range, lease)                                                         \
	for (uint32_t lease = range_next(books, range, BOOKS_NOBODY); lease != BOOKS_NOBODY;       \
	     lease = range_next(books, range, lease))

uint64_t grants_used(const struct books *books, unsigned lease, unsigned kind)
{
	const struct lease_view *view = &books->view[lease];
	uint64_t granted = books->file->lease[lease].granted[kind];

	/* A member's word counts only up to what it was granted. */
	return view->used ? min(__atomic_load_n(&view->used[kind], __ATOMIC_SEQ_CST), granted) :
			    granted;
}

/* What the member was given in answer to a question and is about to take: it is as good as
 * used. Its next question has another number. */
static uint64_t promised(const struct books *books, unsigned lease, unsigned kind)
{
	const struct member *member = &books->member[books->view[lease].member];
	const struct promise *promise = &member->promise;

	if (!promise->question || promise->lease != lease ||
	    __atomic_load_n(&member->usage->question, __ATOMIC_SEQ_CST) != promise->question)
		return 0;
	for (unsigned i = 0; i < promise->count; i++)
		if (promise->kind[i] == kind)
			return promise->total[i];
	return 0;
}

/* First half of taking back: from now on nothing new is taken but what was promised; with hold
 * not even that. */
static void cap_close(struct books *books, unsigned lease, unsigned kind, bool hold)
{
	struct lease_view *view = &books->view[lease];
	uint64_t cap = LOAD(view->cap[kind]);
	uint64_t target = cap && !hold ? min(cap, promised(books, lease, kind)) : 0;

	/* In one order with the reading of `used` below, and with what the member does: it
	 * raises `used` and then reads this. One of the two sees the other. */
	if (cap != target)
		__atomic_store_n(&view->cap[kind], target, __ATOMIC_SEQ_CST);
}

/* Whether a cap was left open for a promise that is over now: the member may have taken, given
 * back and taken again. What is over stays so, whatever the member writes. */
static bool promise_is_over(struct books *books, unsigned lease, unsigned kind)
{
	if (!LOAD(books->view[lease].cap[kind]) || promised(books, lease, kind))
		return false;
	books->member[books->view[lease].member].promise.question = 0;
	return true;
}

/* Second half: what is used now, or could still be, stays granted. What was promised is looked
 * at before `used`: the member adds to that before it says that it has what it was given. */
static void grant_settle(struct books *books, unsigned lease, unsigned kind)
{
	uint64_t granted = books->file->lease[lease].granted[kind];
	uint64_t cap = LOAD(books->view[lease].cap[kind]);
	uint64_t stays = max(cap, min(promised(books, lease, kind), granted));

	stays = max(stays, grants_used(books, lease, kind));
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
 * Takes idle credit of a kind back from all leases in the range. From the end of the first loop
 * until the caps are raised, nobody takes anything without asking, and asking is waiting for
 * us; or it is what was promised, and counts as taken. So what is read in the second loop was
 * held, or was just being taken, at the one moment between them: a unit that goes from one to
 * another is not seen twice. If a promise was over meanwhile, there was no such moment: again,
 * which happens once for each promise at most. While a limit above is exceeded the caps stay
 * closed; the sweep that closes them holds, that is, it keeps nothing open for a promise.
 */
static void sweep(struct books *books, const struct range *range, unsigned kind, bool hold)
{
	bool again;

	do {
		EACH_IN_RANGE(books, range, lease)
			cap_close(books, lease, kind, hold);
		again = false;
		EACH_IN_RANGE(books, range, lease) {
			again |= promise_is_over(books, lease, kind);
			grant_settle(books, lease, kind);
		}
	} while (again);
	EACH_IN_RANGE(books, range, lease)
		cap_raise(books, lease, kind);
}

void grants_sweep_all(struct books *books, unsigned kind)
{
	sweep(books, &(struct range){ .scope = SCOPE_HOST }, kind, false);
}

/*
 * Where limits are tolerated, members also make what no answer was had for: it is on their pages
 * and not on the books. There is only their word for it, but they could as well have asked and
 * been given it. Returns whether there was any.
 */
static bool lease_adopt(struct books *books, unsigned lease)
{
	const struct lease_view *view = &books->view[lease];
	bool any = false;

	for (unsigned kind = 0; view->used && kind < KIND_COUNT; kind++) {
		uint64_t used = min(__atomic_load_n(&view->used[kind], __ATOMIC_SEQ_CST),
				    BOOKS_GRANT_MOST);

		if (used <= books->file->lease[lease].granted[kind])
			continue;
		books_grant(books, lease, kind, used);
		any = true;
	}
	return any;
}

bool grants_adopt(struct books *books, unsigned tenant)
{
	bool any = false;

	for (uint32_t lease = books->tenant[tenant]->leases; lease != BOOKS_NOBODY;
	     lease = books->view[lease].next_of_tenant)
		any |= lease_adopt(books, lease);
	return any;
}

void grants_mode(struct books *books, unsigned tenant, enum ledger_mode mode)
{
	struct lease_table *table = books->tenant[tenant]->table;
	uint32_t *tolerant = &books->file->tolerant[tenant];

	if (mode != MODE_ENFORCE)
		__atomic_store_n(tolerant, 1, __ATOMIC_RELEASE);
	/* In one order with what the members do that got no answer: they add to `used` and look
	 * at the mode again. */
	__atomic_store_n(&table->mode, mode, __ATOMIC_SEQ_CST);
	if (*tolerant)
		grants_adopt(books, tenant);
	/* Last, so that a collector that is started again does the rest. */
	if (mode == MODE_ENFORCE && books->attached)
		__atomic_store_n(tolerant, 0, __ATOMIC_RELEASE);
}

void grants_attached(struct books *books)
{
	books->attached = true;
	for (unsigned i = 0; i < BOOKS_TENANTS; i++)
		if (books->tenant[i])
			grants_mode(books, i, books->tenant[i]->table->mode);
}

void grants_settle(struct books *books, unsigned lease)
{
	if (books->file->tolerant[books->view[lease].tenant] && !books->attached)
		lease_adopt(books, lease);
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
			member->used[kind] += grants_used(books, lease, kind);
	for (unsigned kind = 0; kind < KIND_COUNT; kind++)
		if (member->used[kind] > member->peak[kind])
			member->peak[kind] = member->used[kind];
}

void grants_measure(struct books *books)
{
	bool adopted = false;

	for (unsigned i = 0; i < BOOKS_TENANTS; i++)
		if (books->tenant[i] && books->tenant[i]->table->mode != MODE_ENFORCE)
			adopted |= grants_adopt(books, i);
	if (adopted)
		grants_enforce(books);
	for (unsigned i = 0; i < books->file->members_high; i++)
		if (books->file->member[i].state == BOOK_TAKEN)
			member_measure(books, i);
	each_owner(books, scope_forget_used);
	for (unsigned lease = 0; lease < books->file->leases_high; lease++) {
		const struct lease_view *view = &books->view[lease];

		for (unsigned kind = 0; view->member != BOOKS_NOBODY && kind < KIND_COUNT; kind++) {
			struct owner *tenant = &books->tenant[view->tenant]->all;
			uint64_t used = grants_used(books, lease, kind);

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
static unsigned obstacle(const struct books *books, const struct grants_need *need,
			 struct heed heed, struct level *ret_level)
{
	struct level level[LEDGER_SCOPES];

	for (unsigned i = 0; i < need->count; i++) {
		uint64_t more = increase(books, need, i);

		levels_of(books, need->lease, need->kind[i], heed, level);
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
	levels_of(books, need->lease, kind, heed_all, level);
	for (int scope = 0; scope < LEDGER_SCOPES; scope++) {
		uint64_t rest = room(&level[scope]) - more;

		extra = min(extra, is_shared(level[scope].scope) ? rest / SHARE_OF_REST : rest);
	}
	return extra;
}

/* Where a tolerated grant takes a sum over its limit, nobody grows any more without asking. */
static void exceeded_close(struct books *books, unsigned lease, unsigned kind, uint64_t more)
{
	const struct lease_view *view = &books->view[lease];
	struct range range = { 0, view->tenant, view->member, view->device };
	struct level level[LEDGER_SCOPES];

	levels_of(books, lease, kind, heed_policy, level);
	for (int i = 0; i < LEDGER_SCOPES; i++)
		if (level[i].granted > level[i].limit && level[i].granted - more <= level[i].limit) {
			range.scope = level[i].scope;
			sweep(books, &range, kind, true);
		}
}

static void grant(struct books *books, const struct grants_need *need, unsigned i)
{
	unsigned lease = need->lease, kind = need->kind[i];
	uint64_t granted = books->file->lease[lease].granted[kind];

	if (need->total[i] > granted) {
		books_grant(books, lease, kind, need->total[i] + bonus(books, need, i));
		exceeded_close(books, lease, kind, need->total[i] - granted);
	} else if (need->exact && need->total[i] < granted) {
		books_grant(books, lease, kind, need->total[i]);
	}
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

/* Takes credit back until nothing is in the way of the need, or what is will not go away: the
 * sum of a scope that was swept for it is exact. */
static int make_room(struct books *books, const struct grants_need *need, struct heed heed,
		     struct ledger_refusal *ret_refusal)
{
	const struct lease_view *view = &books->view[need->lease];
	struct range range = { 0, view->tenant, view->member, view->device };
	unsigned swept[COST_KINDS] = { 0 }; /* bit: scope */
	struct level blocking;
	unsigned i;

	while ((i = obstacle(books, need, heed, &blocking)) < need->count) {
		if (swept[i] >> blocking.scope & 1) {
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
		swept[i] |= 1u << blocking.scope;
		range.scope = blocking.scope;
		sweep(books, &range, need->kind[i], false);
	}
	return 0;
}

/* From now on the member is about to take it. */
static void promise(struct books *books, const struct grants_need *need)
{
	struct promise *ret = &books->member[books->view[need->lease].member].promise;

	*ret = (struct promise){ need->question, need->lease, need->count, { 0 }, { 0 } };
	memcpy(ret->kind, need->kind, sizeof(ret->kind));
	memcpy(ret->total, need->total, sizeof(ret->total));
}

int grants_need(struct books *books, const struct grants_need *asked,
		struct ledger_refusal *ret_refusal)
{
	struct heed enforced = heed_enforced(books, asked->lease);
	struct grants_need need = *asked;
	struct ledger_refusal other;
	int result;

	for (unsigned i = 0; i < need.count; i++)
		held_settle(books, need.lease, need.kind[i]);
	result = make_room(books, &need, heed_all, ret_refusal);
	if (result == LEDGER_REFUSED) {
		if (enforced.policy && enforced.wishes)
			return result;
		if (make_room(books, &need, enforced, &other) == LEDGER_REFUSED) {
			*ret_refusal = other;
			return LEDGER_REFUSED;
		}
		/* It takes it all the same: so it is granted, or it would count against nobody.
		 * The administrator's limit is told of rather than the process's own. */
		if (ret_refusal->own &&
		    make_room(books, &need, heed_policy, &other) == LEDGER_REFUSED)
			*ret_refusal = other;
		need.bare = true; /* the next one is to be told of, too */
		result = LEDGER_TOLERATED;
	}
	promise(books, &need);
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
