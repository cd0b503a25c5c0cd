/* SPDX-License-Identifier: MIT */
/* Fair shares: when they are computed, and how they come into force; see fairness.h. */
#include "collector/fairness_parts.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "collector/grants.h"
#include "collector/guards.h"
#include "collector/limits.h"

enum { PASSES_MOST = 3 };
enum { INTERVAL_US = FAIR_INTERVAL_NS / 1000, INTERVAL_ACCURACY_US = 2000 };

/* ---- fields */

/* A kind in a place that has a limit is shared. */
static bool field_is_wanted(struct books *books, unsigned place, unsigned kind)
{
	return books_scope(&books->host, place)->configured[kind] != UNLIMITED &&
	       (!place || books_device_name(books, place));
}

static bool field_is_reserving(struct books *books, unsigned place, unsigned kind)
{
	for (unsigned i = 0; i < BOOKS_TENANTS; i++) {
		const struct scope *scope;

		if (!books->tenant[i])
			continue;
		scope = books_scope(&books->tenant[i]->all, place);
		if (scope->guarantee[kind] || scope->guarding[kind])
			return true;
	}
	return false;
}

static void field_drop(struct collector *collector, unsigned place, unsigned kind)
{
	struct fair_field **field = &collector->fairness.field[place][kind];
	const struct fair_share none = { .reason = FAIR_CONFIGURED };

	if (!*field)
		return;
	for (unsigned i = 0; i < BOOKS_TENANTS; i++)
		if (collector->books.tenant[i])
			limits_share(&collector->books, i, place, kind, &none);
	collector->books.reserving[place][kind] = false;
	free(*field);
	*field = NULL;
}

/* A field per kind and place with a limit; the others have none. */
static void fields_make(struct collector *collector)
{
	for (unsigned place = 0; place < DEVICES_MAX; place++)
		for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
			struct fair_field **field = &collector->fairness.field[place][kind];

			if (!field_is_wanted(&collector->books, place, kind))
				field_drop(collector, place, kind);
			else if (!*field && !(*field = calloc(1, sizeof(**field))))
				log_write(&collector->log, LOG_ERROR,
					  "out of memory for the shares of %s: its configured limits are in force",
					  kind_rows[kind].name);
		}
}

/* Calls for each field. */
static void fields_each(struct collector *collector,
			void (*call)(struct collector *collector, unsigned place, unsigned kind))
{
	for (unsigned place = 0; place < DEVICES_MAX; place++)
		for (unsigned kind = 0; kind < KIND_COUNT; kind++)
			if (collector->fairness.field[place][kind])
				call(collector, place, kind);
}

/* ---- one computation */

static uint64_t processor_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* The tenants that take part: those with processes, objects or a guarantee. */
struct fair_round {
	struct collector *collector;
	struct fair_field *field;
	unsigned place, kind;
	bool swept;
	bool host_refused; /* the guard refused somebody because of the host's limit */
	uint64_t now_ns;
	uint64_t used; /* by all */
	unsigned count;
	unsigned number[FAIR_TENANTS_MAX]; /* of the tenant, on the books */
	struct fair_tenant tenant[FAIR_TENANTS_MAX];
	struct fair_share share[FAIR_TENANTS_MAX];
	bool on; /* there is pressure, and somebody to share with */
};

_Static_assert((int)FAIR_TENANTS_MAX >= (int)BOOKS_TENANTS, "all tenants may take part");

static struct scope *round_scope(const struct fair_round *round, unsigned i)
{
	struct books *books = &round->collector->books;

	return books_scope(&books->tenant[round->number[i]]->all, round->place);
}

/* What the guard refused is a request that was not met, if the share or the host's limit was in the
 * way. */
static void round_note_guard(struct fair_round *round, unsigned tenant, const struct scope *scope,
			     uint64_t taken)
{
	struct fair_account *account = &round->field->account[tenant];
	uint64_t refused;

	if (round->place)
		return;
	refused = kernel_refusals(round->collector, tenant, round->kind);
	if (refused > account->refused &&
	    (round->host_refused || scope->limit[round->kind] < scope->configured[round->kind])) {
		fair_demand_note(&account->demand, round->now_ns, taken, 1, false);
		round->field->unmet = true;
		round->field->active_ns = round->now_ns;
	}
	account->refused = refused;
}

static void round_add(struct fair_round *round, unsigned number)
{
	struct tenant *tenant = round->collector->books.tenant[number];
	const struct scope *scope = books_scope(&tenant->all, round->place);
	struct fair_demand *demand = &round->field->account[number].demand;
	uint64_t taken = books_taken(scope, round->kind);

	if (!tenant->members && !taken)
		*demand = (struct fair_demand){ 0 };
	round_note_guard(round, number, scope, taken);
	if (!tenant->members && !taken && !demand->refused &&
	    !scope->guarantee[round->kind] && scope->reason[round->kind] == FAIR_CONFIGURED)
		return;
	if (taken != round->field->account[number].taken)
		round->field->active_ns = round->now_ns;
	round->field->account[number].taken = taken;
	if (round->swept)
		fair_demand_note(demand, round->now_ns, taken, 0, true);
	round->used = round->used + taken < taken ? UINT64_MAX : round->used + taken;
	round->number[round->count] = number;
	round->tenant[round->count++] = (struct fair_tenant){
		.guarantee = scope->forbidden ? 0 : scope->guarantee[round->kind],
		.limit = scope->forbidden ? 0 : scope->configured[round->kind],
		.used = taken,
		.demand = fair_demand_now(demand, round->now_ns, taken),
		.weight = tenant->weight,
	};
}

/* Who does not take part any more gets its configured limit back, and counts for nothing. */
static bool round_is_idle(const struct fair_round *round, unsigned i)
{
	return !round->collector->books.tenant[round->number[i]]->members &&
	       !round->tenant[i].used && !round->tenant[i].guarantee;
}

static void round_compute(struct fair_round *round)
{
	const struct scope *host = books_scope(&round->collector->books.host, round->place);
	struct fair_load load = {
		.now_ns = round->now_ns,
		.used = round->used,
		.capacity = host->limit[round->kind],
		.percent = policy_pressure(round->collector->effective),
		.unmet = round->field->unmet,
	};
	unsigned taking_part = 0;

	if (round->field->unmet)
		round->field->unmet_ns = round->now_ns;
	round->field->unmet = false;
	round->field->pressure = fair_pressure_next(round->field->pressure, &load);
	for (unsigned i = 0; i < round->count; i++)
		taking_part += !round_is_idle(round, i);
	round->on = round->field->pressure.on && taking_part > 1;
	fair_shares(round->tenant, round->count, load.capacity, round->on, round->share);
	for (unsigned i = 0; i < round->count; i++)
		if (round_is_idle(round, i))
			round->share[i] = (struct fair_share){ round->tenant[i].limit,
							       round->tenant[i].limit,
							       FAIR_CONFIGURED };
}

/* Puts a share into force, here and in the kernel. True: the kernel keeps it, too. */
static bool round_put(struct fair_round *round, unsigned i)
{
	struct collector *collector = round->collector;
	unsigned tenant = round->number[i];

	limits_share(&collector->books, tenant, round->place, round->kind, &round->share[i]);
	grants_enforce_tenant(&collector->books, tenant, round->place, round->kind);
	return !round->place && kernel_limit_write(collector, tenant, round->kind);
}

/* Limits that fall come first. True: one that the kernel keeps is among them. */
static bool round_lower(struct fair_round *round)
{
	bool in_kernel = false;

	for (unsigned i = 0; i < round->count; i++)
		if (round->share[i].effective < round_scope(round, i)->limit[round->kind]) {
			in_kernel |= round_put(round, i);
			round->field->active_ns = round->now_ns;
		}
	return in_kernel;
}

/* The others. True: one that the kernel keeps has changed. */
static bool round_raise(struct fair_round *round)
{
	bool in_kernel = false;

	for (unsigned i = 0; i < round->count; i++) {
		bool changed = round->share[i].effective != round_scope(round, i)->limit[round->kind];

		in_kernel |= round_put(round, i) && changed;
		if (changed)
			round->field->active_ns = round->now_ns;
	}
	return in_kernel;
}

static void round_begin(struct fair_round *round)
{
	struct books *books = &round->collector->books;

	if (!round->place)
		kernel_counts_read(round->collector, round->kind);
	books->reserving[round->place][round->kind] =
		field_is_reserving(books, round->place, round->kind);
	round->now_ns = clock_now_ns();
	round->used = 0;
	round->count = 0;
	for (unsigned i = 0; i < BOOKS_TENANTS; i++)
		if (books->tenant[i])
			round_add(round, i);
}

static void round_note_host(struct fair_round *round)
{
	uint64_t refused = round->place ? 0 : kernel_host_refusals(round->collector, round->kind);

	round->host_refused = refused > round->field->host_refused;
	round->field->host_refused = refused;
}

void field_compute(struct collector *collector, unsigned place, unsigned kind, bool swept)
{
	static struct fair_round round; /* too large for the stack */
	uint64_t begun = processor_ns();
	bool in_kernel = false, again;
	unsigned passes = 0;

	round.collector = collector;
	round.field = collector->fairness.field[place][kind];
	round.place = place;
	round.kind = kind;
	round.swept = swept;
	round_note_host(&round);
	/* Until a limit has fallen in the kernel, objects may have come: what is counted then is
	 * computed with. */
	do {
		round_begin(&round);
		round_compute(&round);
		again = round_lower(&round);
		in_kernel |= again;
	} while (again && ++passes < PASSES_MOST);
	in_kernel |= round_raise(&round);
	if (!place)
		kernel_room_give(collector, kind);
	if (in_kernel)
		guards_rdmacg_follow(collector);
	round.field->computed_ns = round.now_ns;
	round.field->cost_ns = processor_ns() - begun;
	if (round.field->pressure.on && round.now_ns - round.field->active_ns < FAIR_QUIET_NS)
		fairness_await(collector);
}

/* ---- when */

void fairness_await(struct collector *collector)
{
	sd_event_source *timer = collector->fairness.timer;

	if (!timer || sd_event_source_get_enabled(timer, NULL) > 0)
		return;
	sd_event_source_set_time_relative(timer, INTERVAL_US);
	sd_event_source_set_enabled(timer, SD_EVENT_ONESHOT);
}

/* Idle credit is looked for while somebody wants more than it has. */
static void field_turn(struct collector *collector, unsigned place, unsigned kind)
{
	struct fair_field *field = collector->fairness.field[place][kind];
	uint64_t now_ns = clock_now_ns(), begun = processor_ns();
	bool sweep = field->unmet_ns && now_ns - field->unmet_ns < FAIR_REFUSED_NS;

	if (!field->pressure.on)
		return;
	if (now_ns - field->computed_ns < FAIR_REST * field->cost_ns) {
		fairness_await(collector);
		return;
	}
	if (sweep)
		grants_sweep_place(&collector->books, place, kind);
	field_compute(collector, place, kind, sweep);
	field->cost_ns = processor_ns() - begun;
}

static int fairness_on_timer(sd_event_source *source, uint64_t now, void *closure)
{
	struct collector *collector = closure;

	fields_each(collector, field_turn);
	fairness_report(collector);
	return 0;
}

static void field_look(struct collector *collector, unsigned place, unsigned kind)
{
	field_compute(collector, place, kind, false);
}

void fairness_apply(struct collector *collector)
{
	fields_make(collector);
	fields_each(collector, field_look);
}

void fairness_follow_guard(struct collector *collector)
{
	for (unsigned kind = 0; kind < KIND_COUNT; kind++)
		if (collector->fairness.field[0][kind])
			field_compute(collector, 0, kind, false);
		else
			kernel_room_give(collector, kind);
}

void fairness_check(struct collector *collector)
{
	fields_each(collector, field_look);
	fairness_report(collector);
}

static void field_wake(struct collector *collector, unsigned place, unsigned kind)
{
	struct fair_field *field = collector->fairness.field[place][kind];

	field->active_ns = clock_now_ns();
	if (field->pressure.on)
		fairness_await(collector);
}

void fairness_wake(struct collector *collector)
{
	fields_each(collector, field_wake);
}

void fairness_forget(struct collector *collector, unsigned tenant)
{
	for (unsigned place = 0; place < DEVICES_MAX; place++)
		for (unsigned kind = 0; kind < KIND_COUNT; kind++)
			if (collector->fairness.field[place][kind])
				collector->fairness.field[place][kind]->account[tenant] =
					(struct fair_account){ .taken = 0 };
}

int fairness_open(struct collector *collector)
{
	return sd_event_add_time_relative(collector->event, &collector->fairness.timer,
					  CLOCK_MONOTONIC, INTERVAL_US, INTERVAL_ACCURACY_US,
					  fairness_on_timer, collector);
}

void fairness_close(struct collector *collector)
{
	sd_event_source_disable_unref(collector->fairness.timer);
	for (unsigned place = 0; place < DEVICES_MAX; place++)
		for (unsigned kind = 0; kind < KIND_COUNT; kind++)
			free(collector->fairness.field[place][kind]);
	memset(&collector->fairness, 0, sizeof(collector->fairness));
}
