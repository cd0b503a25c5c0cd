/* SPDX-License-Identifier: MIT */
/* GET_RATES: the rates in force, and what became of calls above them; and the events of these. */
#include "collector/answers.h"

#include <stdio.h>
#include <string.h>

#include "collector/rates.h"

static uint64_t member_tally(const struct collector *collector, unsigned member,
			     enum rate_tally tally, unsigned class)
{
	return __atomic_load_n(&collector->books.member[member].usage->tallies.rate[tally][class],
			       __ATOMIC_RELAXED);
}

static void row_add_member(const struct collector *collector, unsigned member,
			   struct proto_rate *row)
{
	const struct rate_set *set = &collector->rates.member[member].set;
	uint64_t leased = set->flow[row->owner][row->class].rate;

	row->leased += leased * 1000 / RATE_PART;
	row->throttled += member_tally(collector, member, RATE_THROTTLED, row->class);
	row->throttled_ns += member_tally(collector, member, RATE_THROTTLED_NS, row->class);
	row->refused += member_tally(collector, member, RATE_REFUSED, row->class);
	row->tolerated += member_tally(collector, member, RATE_TOLERATED, row->class);
}

/* A process, or with BOOKS_NOBODY the tenant as a whole. */
static void rate_row_send(const struct collector *collector, const struct request *request,
			  const struct rate_tenant *tenant, unsigned owner, unsigned class,
			  uint32_t one)
{
	const struct rate *rate = &tenant->total[owner][class];
	struct proto_rate row = {
		.owner = owner,
		.class = class,
		.action = (uint32_t)tenant->action,
		.per_second = rate->per_second,
		.burst = rate->burst,
		.max_delay_ns = tenant->max_delay_ns,
	};

	snprintf(row.tenant, sizeof(row.tenant), "%s", tenant->name);
	if (one != BOOKS_NOBODY) {
		row.pid = collector->books.file->member[one].pid;
		row_add_member(collector, one, &row);
	} else {
		const struct tallies *ended =
			&collector->books.tenant[tenant - collector->rates.tenant]->ended;

		row.throttled = ended->rate[RATE_THROTTLED][class];
		row.throttled_ns = ended->rate[RATE_THROTTLED_NS][class];
		row.refused = ended->rate[RATE_REFUSED][class];
		row.tolerated = ended->rate[RATE_TOLERATED][class];
		for (uint32_t member = tenant->members; member != BOOKS_NOBODY;
		     member = collector->rates.member[member].next)
			row_add_member(collector, member, &row);
	}
	server_row(request, &row);
}

static void tenant_rates_send(const struct collector *collector, const struct request *request,
			      const struct rate_tenant *tenant, const struct proto_choose *choose)
{
	for (unsigned i = 0; i < RATE_OWNERS * RATE_CLASSES; i++) {
		unsigned owner = i / RATE_CLASSES, class = i % RATE_CLASSES;

		if (!tenant->total[owner][class].per_second)
			continue;
		if (!(choose->flags & CHOOSE_PROCESSES)) {
			rate_row_send(collector, request, tenant, owner, class, BOOKS_NOBODY);
			continue;
		}
		for (uint32_t member = tenant->members; member != BOOKS_NOBODY;
		     member = collector->rates.member[member].next)
			if (!choose->pid ||
			    collector->books.file->member[member].pid == choose->pid)
				rate_row_send(collector, request, tenant, owner, class, member);
	}
}

void answer_GET_RATES(struct collector *collector, const struct request *request)
{
	struct proto_choose choose = request_choice(request);

	rates_chain(collector);
	for (unsigned i = 0; i < collector->rates.tenants_high; i++) {
		const struct rate_tenant *tenant = &collector->rates.tenant[i];

		if (tenant->any && collector->books.tenant[i] && (!choose.tenant[0] || !strcmp(choose.tenant, tenant->name)))
			tenant_rates_send(collector, request, tenant, &choose);
	}
	server_end(request);
}

/* ---- events */

static void member_rates_report(struct collector *collector, unsigned member,
				const struct rate_tenant *tenant)
{
	static const enum rate_tally tallies[] = { RATE_REFUSED, RATE_TOLERATED };
	struct rate_member *known = &collector->rates.member[member];

	for (unsigned i = 0; i < 2 * RATE_CLASSES; i++) {
		enum rate_tally tally = tallies[i / RATE_CLASSES];
		unsigned class = i % RATE_CLASSES;
		uint64_t count = member_tally(collector, member, tally, class);
		struct proto_event event = { .type = EVENT_RATE,
					     .pid = collector->books.file->member[member].pid };

		if (count == known->told[tally][class])
			continue;
		known->told[tally][class] = count;
		snprintf(event.tenant, sizeof(event.tenant), "%s", tenant->name);
		/* Always the same words, so that repeats are one event. */
		snprintf(event.text, sizeof(event.text), "calls of %s above their rate were %s",
			 rate_rows[class].name, tally == RATE_REFUSED ? "refused" : "tolerated");
		collector_event(collector, &event);
	}
}

void rates_report(struct collector *collector)
{
	rates_chain(collector);
	for (unsigned i = 0; i < collector->rates.tenants_high; i++) {
		const struct rate_tenant *tenant = &collector->rates.tenant[i];

		for (uint32_t member = tenant->members; tenant->any && member != BOOKS_NOBODY;
		     member = collector->rates.member[member].next)
			member_rates_report(collector, member, tenant);
	}
}
