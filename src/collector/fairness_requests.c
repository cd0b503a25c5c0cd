/* SPDX-License-Identifier: MIT */
/* Fair shares and requests: what a tenant asks for is demand, met or not; see fairness.h. */
#include "collector/fairness_parts.h"

#include "base/clock.h"
#include "collector/grants.h"

/* One kind of a request, in one place. */
struct fair_request {
	struct collector *collector;
	unsigned lease;
	unsigned place, kind;
	uint64_t more; /* than is granted on the lease */
};

static struct fair_field *request_field(const struct fair_request *request)
{
	return request->collector->fairness.field[request->place][request->kind];
}

static const struct scope *request_scope(const struct fair_request *request)
{
	struct books *books = &request->collector->books;

	return books_scope(&books->tenant[books->view[request->lease].tenant]->all, request->place);
}

static bool request_exceeds(const struct fair_request *request, wide granted, uint64_t limit)
{
	return granted + request->more > limit;
}

/* A limit of the policy that has nothing to do with other tenants is in the way. */
static bool request_is_hopeless(const struct fair_request *request)
{
	const struct books *books = &request->collector->books;
	const struct scope *scope = request_scope(request);
	unsigned member = books->view[request->lease].member, kind = request->kind;

	return request_exceeds(request, scope->granted[kind], scope->configured[kind]) ||
	       request_exceeds(request, books->member[member].granted[kind],
			       grants_member_limit(books, member, kind));
}

/* The tenant's share, or the limit of the host or the device, is in the way. */
static bool request_is_blocked(const struct fair_request *request)
{
	const struct scope *scope = request_scope(request);

	return request_exceeds(request, scope->granted[request->kind],
			       scope->limit[request->kind]) ||
	       request->more > grants_capacity_room(&request->collector->books, request->lease,
						    request->kind, request->place);
}

static void request_note(const struct fair_request *request, bool met)
{
	struct fair_field *field = request_field(request);
	unsigned tenant = request->collector->books.view[request->lease].tenant;
	uint64_t now_ns = clock_now_ns();

	/* What is held counts when shares are computed. Here it may be credit. */
	fair_demand_note(&field->account[tenant].demand, now_ns,
			 met ? 0 : books_taken(request_scope(request), request->kind),
			 request->more, met);
	field->unmet |= !met;
	field->active_ns = now_ns;
}

/* With this request more is used than pressure begins at. What the guard counts was read at the
 * last look; it is read again when shares are computed. */
static bool request_makes_pressure(const struct fair_request *request)
{
	struct books *books = &request->collector->books;
	const struct scope *host = books_scope(&books->host, request->place);
	wide used = host->granted[request->kind];

	for (unsigned i = 0; !request->place && books->guard_room[request->kind] && i < BOOKS_TENANTS;
	     i++)
		if (books->tenant[i])
			used += books_taken(&books->tenant[i]->all.total, request->kind) -
				books_clamp(books->tenant[i]->all.total.granted[request->kind]);
	return (used + request->more) * 100 >=
	       (wide)host->limit[request->kind] *
		       policy_pressure(request->collector->effective);
}

/* Whether so much time has passed that a computation may be made for a request. */
static bool request_may_compute(const struct fair_request *request)
{
	const struct fair_field *field = request_field(request);
	uint64_t passed_ns = clock_now_ns() - field->computed_ns;

	return field->cost_ns < FAIR_CHEAP_NS || passed_ns >= FAIR_INTERVAL_NS ||
	       passed_ns >= FAIR_REST * field->cost_ns;
}

/* What the guard's tenants do not use of the host's limit is there for the others, at once. */
static void request_claim(const struct fair_request *request)
{
	struct books *books = &request->collector->books;
	uint64_t room;

	if (request->place || !books->guard_room[request->kind] ||
	    request_scope(request)->guarding[request->kind] == GUARDING_HOLDS)
		return;
	room = grants_capacity_room(books, request->lease, request->kind, request->place);
	if (request->more > room)
		kernel_room_claim(request->collector, request->kind, request->more - room);
}

static void request_look(const struct fair_request *request)
{
	struct collector *collector = request->collector;
	bool on = request_field(request)->pressure.on;

	request_claim(request);

	if (!request_is_blocked(request)) {
		request_note(request, true);
		if (!on && request_makes_pressure(request)) {
			field_compute(collector, request->place, request->kind, false);
			request_claim(request);
		}
		return;
	}
	if (!request_may_compute(request)) {
		request_field(request)->unmet = true;
		request_field(request)->active_ns = clock_now_ns();
		fairness_await(collector);
		return;
	}
	/* Idle credit must not cause a refusal. Take the tenant's own back first. */
	grants_sweep_tenant(&collector->books, collector->books.view[request->lease].tenant,
			    request->place, request->kind);
	if (request_is_hopeless(request))
		return;
	if (request_is_blocked(request))
		grants_sweep_place(&collector->books, request->place, request->kind);
	request_note(request, !request_is_blocked(request));
	if (request_field(request)->unmet) {
		field_compute(collector, request->place, request->kind, true);
		request_claim(request);
	}
}

void fairness_request(struct collector *collector, const struct grants_need *need)
{
	const struct books *books = &collector->books;
	const unsigned places[] = { 0, books->view[need->lease].device };

	for (unsigned i = 0; i < need->count; i++)
		for (unsigned j = 0; j < 2; j++) {
			struct fair_request request = { collector, need->lease, places[j],
							need->kind[i], 0 };
			uint64_t granted;

			/* The nameless device has no limit. */
			if (!collector->fairness.field[places[j]][need->kind[i]] ||
			    (j && !places[j]))
				continue;
			granted = books->file->lease[need->lease].granted[need->kind[i]];
			if (need->total[i] <= granted)
				continue;
			request.more = need->total[i] - granted;
			request_look(&request);
		}
}
