/* SPDX-License-Identifier: MIT */
/*
 * The limits above a lease: those of the policy in six scopes, and those that the process's
 * environment requested, which may lower them. Grants nothing.
 */
#include "collector/grant_parts.h"

const struct level_filter level_filter_all = { true, true };
const struct level_filter level_filter_policy = { true, false };

struct level_filter level_filter_enforced(const struct books *books, unsigned lease)
{
	const struct lease_view *view = &books->view[lease];
	uint32_t tenant = books->tenant[view->tenant]->table->mode;
	uint32_t program = books->file->member[view->member].own_mode;

	return (struct level_filter){
		.policy = verdict_at_limit(LIMIT_OF_POLICY, tenant, program) == VERDICT_REFUSED,
		.requested = verdict_at_limit(LIMIT_OF_PROGRAM, tenant, program) == VERDICT_REFUSED,
	};
}

/* A requested limit may lower the policy's. One that the library assumed by default gives way to
 * a limit of the policy. */
static struct level level_make(enum limit_scope scope, wide granted, uint64_t policy,
			       uint64_t requested, bool is_default, struct level_filter filter)
{
	struct level level = { scope, granted, filter.policy ? policy : UNLIMITED, false, 0 };

	if (filter.requested && requested < level.limit &&
	    !(is_default && policy != UNLIMITED)) {
		level.limit = requested;
		level.own = true;
	}
	return level;
}

wide levels_member_on_device(const struct books *books, unsigned member, unsigned device,
			     unsigned kind)
{
	wide granted = 0;

	for (uint32_t lease = books->member[member].leases; lease != BOOKS_NOBODY;
	     lease = books->view[lease].next_of_member)
		if (books->view[lease].device == device)
			granted += books->file->lease[lease].granted[kind];
	return granted;
}

static struct level level_of_process(const struct books *books, unsigned member, unsigned kind,
				     struct level_filter filter)
{
	const struct book_member *row = &books->file->member[member];

	return level_make(SCOPE_PROCESS, books->member[member].granted[kind],
			  books->tenant[row->tenant]->process_limit.total[kind],
			  row->process_limit[kind], row->process_defaults >> kind & 1, filter);
}

uint64_t grants_member_limit(const struct books *books, unsigned member, unsigned kind)
{
	return level_of_process(books, member, kind, level_filter_all).limit;
}

void levels_above(const struct books *books, unsigned lease, unsigned kind,
		  struct level_filter filter, struct level ret[SCOPES])
{
	const struct book_lease *row = &books->file->lease[lease];
	const struct book_member *member = &books->file->member[row->member];
	const struct tenant *tenant = books->tenant[books->view[lease].tenant];
	const struct owner *host = &books->host;
	unsigned device = row->device;

	ret[SCOPE_PROCESS] = level_of_process(books, row->member, kind, filter);
	ret[SCOPE_PROCESS_DEVICE] = level_make(
		SCOPE_PROCESS_DEVICE, levels_member_on_device(books, row->member, device, kind),
		tenant->process_limit.device[device][kind], UNLIMITED, false, filter);
	ret[SCOPE_TENANT] = level_make(SCOPE_TENANT, tenant->all.total.granted[kind],
				       tenant->all.total.limit[kind], UNLIMITED, false,
				       filter);
	ret[SCOPE_TENANT_DEVICE] =
		level_make(SCOPE_TENANT_DEVICE, tenant->all.device[device].granted[kind],
			   tenant->all.device[device].limit[kind], UNLIMITED, false, filter);
	if (tenant->all.total.configured[kind] > ret[SCOPE_TENANT].limit)
		ret[SCOPE_TENANT].configured = tenant->all.total.configured[kind];
	if (tenant->all.device[device].configured[kind] > ret[SCOPE_TENANT_DEVICE].limit)
		ret[SCOPE_TENANT_DEVICE].configured = tenant->all.device[device].configured[kind];
	ret[SCOPE_DEVICE] = level_make(SCOPE_DEVICE, host->device[device].granted[kind],
				       host->device[device].limit[kind], row->device_limit[kind],
				       false, filter);
	ret[SCOPE_HOST] = level_make(SCOPE_HOST, host->total.granted[kind], host->total.limit[kind],
				     member->host_limit[kind], member->host_defaults >> kind & 1,
				     filter);
}

bool levels_exceeded(const struct books *books, unsigned lease, unsigned kind)
{
	struct level level[SCOPES];

	levels_above(books, lease, kind, level_filter_policy, level);
	for (int i = 0; i < SCOPES; i++)
		if (level[i].granted > level[i].limit)
			return true;
	return false;
}

/*
 * What the tenant may still have of the host's limit, or of a device's: not what is reserved for
 * others, but at least what is reserved for itself, as far as there is any left. The guard lets its
 * tenants have their part of the host's limit without a question: to all others, all of that is
 * taken.
 */
static uint64_t reserve_room(const struct books *books, unsigned tenant, unsigned place,
			     unsigned kind, uint64_t limit)
{
	bool held = books_scope(&books->tenant[tenant]->all, place)->guarding[kind] == GUARDING_HOLDS;
	wide taken = 0, reserved = 0, in_kernel = 0;
	uint64_t own = 0, room, left;

	for (unsigned i = 0; i < BOOKS_TENANTS; i++) {
		const struct scope *scope;
		uint64_t unused;

		if (!books->tenant[i])
			continue;
		scope = books_scope(&books->tenant[i]->all, place);
		unused = books_unused_guarantee(scope, kind);
		taken += books_outside_guard(scope, kind);
		in_kernel += books_inside_guard(scope, kind);
		if (i == tenant)
			own = unused;
		else if (scope->guarding[kind] == GUARDING_HOLDS && !held)
			in_kernel += unused;
		else
			reserved += unused;
	}
	if (!place && !held && in_kernel < books->guard_room[kind])
		in_kernel = books->guard_room[kind];
	taken += in_kernel;
	left = taken < limit ? limit - (uint64_t)taken : 0;
	room = reserved < left ? left - (uint64_t)reserved : 0;
	return larger(room, smaller(own, left));
}

static void level_reserve(const struct books *books, unsigned tenant, unsigned place, unsigned kind,
			  const struct scope *host, struct level *level)
{
	uint64_t limit;

	if (!books->reserving[place][kind] || host->limit[kind] == UNLIMITED)
		return;
	limit = books_clamp(level->granted +
			    reserve_room(books, tenant, place, kind, host->limit[kind]));
	if (limit >= level->limit)
		return;
	level->configured = host->limit[kind];
	level->limit = limit;
	level->own = false;
}

void levels_reserve(const struct books *books, unsigned lease, unsigned kind,
		    struct level level[SCOPES])
{
	const struct lease_view *view = &books->view[lease];

	level_reserve(books, view->tenant, 0, kind, &books->host.total, &level[SCOPE_HOST]);
	if (view->device)
		level_reserve(books, view->tenant, view->device, kind,
			      &books->host.device[view->device], &level[SCOPE_DEVICE]);
}

uint64_t grants_capacity_room(const struct books *books, unsigned lease, unsigned kind,
			      unsigned place)
{
	struct level level[SCOPES];

	levels_above(books, lease, kind, level_filter_policy, level);
	levels_reserve(books, lease, kind, level);
	return level_room(&level[place ? SCOPE_DEVICE : SCOPE_HOST]);
}

uint64_t level_room(const struct level *level)
{
	return level->limit > level->granted ? (uint64_t)(level->limit - level->granted) : 0;
}
