/* SPDX-License-Identifier: MIT */
/* Rates of control verbs; see rates.h. */
#include "collector/rates.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "collector/collector.h"

enum {
	DIVIDE_US = 40000,   /* so often */
	ACCURACY_US = 1000,
	LACKS_NS = 250000000, /* so long a process that lacked something wants all it can get */
	RATES_NOT_QUIET = 1,
};

/* What a process and the collector share of rates. */
static struct rate_leases *member_leases(struct collector *collector, unsigned member)
{
	return (struct rate_leases *)&collector->books.member[member].usage->rate_leases;
}

static const struct rate_uses *member_uses(struct collector *collector, unsigned member)
{
	return &collector->books.member[member].usage->rate_uses;
}

static uint64_t uses_read(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

static struct rate_tenant *member_tenant(struct collector *collector, unsigned member)
{
	return &collector->rates.tenant[collector->books.file->member[member].tenant];
}

static void member_publish(struct collector *collector, unsigned member)
{
	const struct rate_set *set = &collector->rates.member[member].set;
	struct rate_leases *leases = member_leases(collector, member);
	const struct books *books = &collector->books;
	unsigned tenant = books->file->member[member].tenant;
	bool quiet = !set->in_force[RATE_OF_TENANT] && !set->in_force[RATE_OF_PROCESS] &&
		     !books->tenant[tenant]->table->settings.pace.is_counted;

	rate_leases_write(leases, set);
	__atomic_store_n(&leases->quiet, quiet ? (uint32_t)RATES_QUIET : (uint32_t)RATES_NOT_QUIET,
			 __ATOMIC_RELEASE);
}

void rates_wake(struct collector *collector, unsigned member)
{
	struct rate_leases *leases;

	if (!collector->books.member[member].usage)
		return;
	leases = member_leases(collector, member);
	if (__atomic_load_n(&leases->quiet, __ATOMIC_RELAXED) == RATES_QUIET)
		__atomic_store_n(&leases->quiet, (uint32_t)RATES_NOT_QUIET, __ATOMIC_RELEASE);
}

/* ---- which processes there are */

/* One that was not known: after a restart of the collector it has its lease already. */
static void member_adopt(struct collector *collector, unsigned member)
{
	struct rate_member *known = &collector->rates.member[member];
	struct rate_tenant *tenant = member_tenant(collector, member);
	const struct rate_uses *uses = member_uses(collector, member);

	*known = (struct rate_member){ .cookie = collector->books.file->member[member].cookie };
	rate_leases_read(member_leases(collector, member), &known->set);
	for (unsigned class = 0; class < RATE_CLASSES; class ++) {
		known->asked[class] = uses_read(&uses->asked[class]);
		known->missed[class] = uses_read(&uses->missed[class]);
		if (known->set.in_force[RATE_OF_TENANT] >> class & 1) {
			tenant->pool[class].parts = 0; /* it went on without us */
			tenant->pool[class].fills = false;
		}
	}
}

static unsigned tenants_high(const struct books *books)
{
	unsigned high = BOOKS_TENANTS;

	while (high && !books->tenant[high - 1])
		high--;
	return high;
}

void rates_chain(struct collector *collector)
{
	const struct books *books = &collector->books;
	struct rates *rates = &collector->rates;

	if (!rates->claim)
		return;
	rates->tenants_high = tenants_high(books);
	for (unsigned i = 0; i < rates->tenants_high; i++) {
		rates->tenant[i].members = BOOKS_NOBODY;
		rates->tenant[i].waits = false;
	}
	for (unsigned i = 0; i < books->file->members_high; i++) {
		const struct book_member *row = &books->file->member[i];
		struct rate_tenant *tenant = &rates->tenant[row->tenant];

		if (row->state != BOOK_TAKEN || row->flags & MEMBER_ASKS || books->member[i].orphan)
			continue;
		if (!books->member[i].usage) {
			/* Before members_attach it is sought, too. */
			tenant->waits |= !collector->members.heirs ||
					 members_are_sought(&collector->members);
			continue;
		}
		if (rates->member[i].cookie != row->cookie) {
			if (!tenant->any && rate_leases_changes(member_leases(collector, i)) == 0)
				continue;
			member_adopt(collector, i);
		}
		rates->member[i].next = tenant->members;
		tenant->members = i;
	}
}

/* ---- what the policy says */

/* What each process has for itself, and which classes have a rate at all. */
static void member_refresh(struct collector *collector, unsigned member, uint64_t now)
{
	const struct rate_tenant *tenant = member_tenant(collector, member);
	const struct rate_uses *uses = member_uses(collector, member);
	struct rate_set *set = &collector->rates.member[member].set, before = *set;

	set->action = tenant->action;
	set->max_delay_ns = tenant->max_delay_ns;
	for (unsigned i = 0; i < RATE_OWNERS * RATE_CLASSES; i++) {
		unsigned owner = i / RATE_CLASSES, class = i % RATE_CLASSES;
		const struct rate *rate = &tenant->total[owner][class];
		struct bucket_flow *flow = &set->flow[owner][class];
		bool had = set->in_force[owner] >> class & 1;
		uint64_t burst = rate->burst * RATE_PART;

		if (!rate->per_second) {
			set->in_force[owner] &= ~(1ull << class);
			*flow = (struct bucket_flow){ 0 };
		} else if (!had) {
			uint64_t taken = uses_read(&uses->taken[owner][class]);

			/* The bucket of a process is full; the tenant's is divided later. */
			*flow = (struct bucket_flow){ .since_ns = now, .filled = taken, .floor = taken };
			if (owner == RATE_OF_PROCESS) {
				bucket_add(flow, burst);
				flow->rate = rate->per_second * RATE_PART;
				flow->burst = burst;
			}
			set->in_force[owner] |= 1ull << class;
		} else if (owner == RATE_OF_PROCESS &&
			   memcmp(&set->total[owner][class], rate, sizeof(*rate))) {
			bucket_change(flow, now, rate->per_second * RATE_PART, burst);
		}
		set->total[owner][class] = *rate;
	}
	if (memcmp(&before, set, sizeof(before)))
		member_publish(collector, member);
}

/* ---- the division of a tenant's rate */

/* What a process asks for of a class, from what it has done since the last division. */
static void member_claim(struct collector *collector, unsigned member, enum rate_class class,
			 uint64_t now, uint64_t passed_ns, struct rate_claim *claim)
{
	struct rate_member *known = &collector->rates.member[member];
	const struct rate_uses *uses = member_uses(collector, member);
	const struct rate_tenant *tenant = member_tenant(collector, member);
	uint64_t whole = tenant->total[RATE_OF_TENANT][class].per_second * RATE_PART;
	uint64_t asked = uses_read(&uses->asked[class]), missed = uses_read(&uses->missed[class]);
	uint64_t taken = uses_read(&uses->taken[RATE_OF_TENANT][class]);
	unsigned __int128 lately = (unsigned __int128)(asked - known->asked[class]) * RATE_PART *
				   CLOCK_SECOND_NS / (passed_ns ? passed_ns : 1);

	if (missed != known->missed[class])
		known->lacks_until[class] = now + LACKS_NS;
	known->demand[class] -= known->demand[class] / 4;
	if (known->demand[class] < RATE_PART)
		known->demand[class] = 0;
	if (lately > known->demand[class])
		known->demand[class] = lately > whole ? whole : (uint64_t)lately;
	known->asked[class] = asked;
	known->missed[class] = missed;
	*claim = (struct rate_claim){ .demand = known->demand[class] };
	if (now < known->lacks_until[class])
		claim->demand = whole;
	claim->active = claim->demand != 0;
	/* One that is idle gets a little until it could make a call at once. */
	if (!claim->active &&
	    bucket_available(&known->set.flow[RATE_OF_TENANT][class], now, taken) < RATE_PART)
		claim->demand = whole / 16;
}

static uint64_t least_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* A process gets less, at once: what does not fit into its bucket any more and was not used. */
static uint64_t member_cut(struct collector *collector, unsigned member, enum rate_class class,
			   uint64_t now, const struct rate_claim *claim)
{
	struct bucket_flow *flow =
		&collector->rates.member[member].set.flow[RATE_OF_TENANT][class];
	struct bucket_flow before = *flow;
	uint64_t taken;

	if (claim->rate >= before.rate && claim->burst >= before.burst)
		return 0;
	bucket_change(flow, now, least_of(claim->rate, before.rate),
		      least_of(claim->burst, before.burst));
	member_publish(collector, member);
	/* After the change: see rates.h of terms. */
	taken = uses_read(&member_uses(collector, member)->taken[RATE_OF_TENANT][class]);
	return bucket_available(&before, now, taken) - bucket_available(flow, now, taken);
}

/* A process gets more, and its part of what others did not use. */
static uint64_t member_raise(struct collector *collector, unsigned member, enum rate_class class,
			     uint64_t now, const struct rate_claim *claim, uint64_t pool)
{
	struct bucket_flow *flow =
		&collector->rates.member[member].set.flow[RATE_OF_TENANT][class];
	uint64_t taken = uses_read(&member_uses(collector, member)->taken[RATE_OF_TENANT][class]);
	uint64_t there, gift;

	there = bucket_available(flow, now, taken);
	gift = least_of(pool, claim->burst > there ? claim->burst - there : 0);
	if (!gift && claim->rate == flow->rate && claim->burst == flow->burst)
		return 0;
	bucket_change(flow, now, claim->rate, claim->burst);
	bucket_add(flow, gift);
	member_publish(collector, member);
	return gift;
}

static void pool_fill(struct rate_tenant *tenant, enum rate_class class, uint64_t now, bool members)
{
	uint64_t burst = tenant->total[RATE_OF_TENANT][class].burst * RATE_PART;
	struct bucket_flow flow = { .since_ns = tenant->pool[class].ns,
				    .filled = tenant->pool[class].parts,
				    .rate = tenant->total[RATE_OF_TENANT][class].per_second *
					    RATE_PART };

	if (tenant->pool[class].fills)
		tenant->pool[class].parts = bucket_filled(&flow, now);
	tenant->pool[class].parts = least_of(tenant->pool[class].parts, burst);
	tenant->pool[class].ns = now;
	tenant->pool[class].fills = !members;
}

static void tenant_divide(struct collector *collector, struct rate_tenant *tenant,
			  enum rate_class class, uint64_t now, uint64_t passed_ns)
{
	const struct rate *rate = &tenant->total[RATE_OF_TENANT][class];
	struct rates *rates = &collector->rates;
	unsigned count = 0, i = 0;
	uint32_t member;

	pool_fill(tenant, class, now, tenant->members != BOOKS_NOBODY);
	for (member = tenant->members; member != BOOKS_NOBODY; member = rates->member[member].next)
		member_claim(collector, member, class, now, passed_ns, &rates->claim[count++]);
	rate_split(rates->claim, count, rate->per_second * RATE_PART, rate->burst * RATE_PART,
		   rates->turn);
	for (member = tenant->members; member != BOOKS_NOBODY; member = rates->member[member].next)
		tenant->pool[class].parts +=
			member_cut(collector, member, class, now, &rates->claim[i++]);
	/* No more than a burst: what a process says that it has not used is not believed. */
	tenant->pool[class].parts = least_of(tenant->pool[class].parts, rate->burst * RATE_PART);
	i = 0;
	for (member = tenant->members; member != BOOKS_NOBODY; member = rates->member[member].next)
		tenant->pool[class].parts -= member_raise(collector, member, class, now,
							  &rates->claim[i++],
							  tenant->pool[class].parts);
}

static void tenant_divide_all(struct collector *collector, struct rate_tenant *tenant, uint64_t now,
			      uint64_t passed_ns)
{
	for (unsigned class = 0; class < RATE_CLASSES && tenant->waits; class ++)
		tenant->pool[class].ns = now; /* somebody has what comes in */
	for (unsigned class = 0; class < RATE_CLASSES && !tenant->waits; class ++)
		if (tenant->total[RATE_OF_TENANT][class].per_second)
			tenant_divide(collector, tenant, (enum rate_class)class, now, passed_ns);
}

/* Whether shares can move until a process joins or the policy changes. */
static bool tenant_moves(const struct rate_tenant *tenant)
{
	return tenant->any && (tenant->waits || tenant->members != BOOKS_NOBODY);
}

static void rates_divide(struct collector *collector)
{
	struct rates *rates = &collector->rates;
	uint64_t now = clock_now_ns(), passed_ns = now - rates->divided_ns;
	bool again = false;

	rates_chain(collector);
	for (unsigned i = 0; i < rates->tenants_high; i++) {
		struct rate_tenant *tenant = &rates->tenant[i];

		for (uint32_t member = tenant->members; member != BOOKS_NOBODY;
		     member = rates->member[member].next)
			member_refresh(collector, member, now);
		if (tenant->any_whole)
			tenant_divide_all(collector, tenant, now, passed_ns);
		again |= tenant_moves(tenant);
	}
	rates->divided_ns = now;
	rates->turn++;
	/* Without a process that has a rate the collector sleeps. */
	if (rates->timer) {
		sd_event_source_set_time_relative(rates->timer, DIVIDE_US);
		sd_event_source_set_enabled(rates->timer, again ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
	}
}

static int rates_on_timer(sd_event_source *source, uint64_t now, void *closure)
{
	rates_divide(closure);
	return 0;
}

/* ---- from outside */

static void tenant_rates_read(struct collector *collector, unsigned number)
{
	const char *name = collector->books.file->tenant[number].name;
	const struct policy *policy = collector->effective;
	const struct policy_tenant *said = policy_tenant_find(policy, name);
	struct rate_tenant *tenant = &collector->rates.tenant[number], before;
	/* Processes of an earlier collector's time may have emptied the buckets. */
	bool restarts = !collector->server && collector->books.file->members_high;
	uint64_t now = clock_now_ns();

	if (!collector->books.tenant[number] || strcmp(tenant->name, name))
		memset(tenant, 0, sizeof(*tenant));
	before = *tenant; /* of the same tenant, or nothing */
	tenant->any = tenant->any_whole = false;
	tenant->members = BOOKS_NOBODY;
	if (!collector->books.tenant[number])
		return;
	snprintf(tenant->name, sizeof(tenant->name), "%s", name);
	tenant->action = policy_tenant_rate_action(policy, said);
	tenant->max_delay_ns = policy_tenant_max_delay(policy, said);
	for (unsigned i = 0; i < RATE_OWNERS * RATE_CLASSES; i++) {
		unsigned owner = i / RATE_CLASSES, class = i % RATE_CLASSES;
		struct rate *rate = &tenant->total[owner][class];

		*rate = policy_tenant_rate(policy, said, (enum rate_owner)owner,
					   (enum rate_class)class);
		tenant->any |= rate->per_second != 0;
		tenant->any_whole |= owner == RATE_OF_TENANT && rate->per_second;
		/* A rate that is new begins with a full bucket. */
		if (owner == RATE_OF_TENANT && rate->per_second &&
		    !before.total[owner][class].per_second) {
			tenant->pool[class].parts = restarts ? 0 : rate->burst * RATE_PART;
			tenant->pool[class].ns = now;
			tenant->pool[class].fills = restarts;
		}
	}
}

static bool policy_has_rates(const struct policy *policy, const struct policy_tenant *tenant)
{
	for (unsigned i = 0; i < RATE_OWNERS * RATE_CLASSES; i++)
		if (policy_tenant_rate(policy, tenant, (enum rate_owner)(i / RATE_CLASSES),
				       (enum rate_class)(i % RATE_CLASSES))
			    .per_second)
			return true;
	return false;
}

/* Whether there is memory for rates: made when the first one is set, or a process has one from an
 * earlier collector. */
static bool rates_need(struct collector *collector)
{
	struct rates *rates = &collector->rates;
	bool any = policy_has_rates(collector->effective, NULL);

	if (rates->claim)
		return true;
	for (const struct policy_tenant *tenant = collector->effective->tenants; tenant && !any;
	     tenant = tenant->next)
		any = policy_has_rates(collector->effective, tenant);
	for (unsigned i = 0; i < collector->books.file->members_high && !any; i++)
		any = collector->books.file->member[i].state == BOOK_TAKEN &&
		      collector->books.member[i].usage &&
		      member_leases(collector, i)->quiet != RATES_QUIET;
	if (!any)
		return false;
	if (!rates->tenant)
		rates->tenant = calloc(BOOKS_TENANTS, sizeof(*rates->tenant));
	if (!rates->member)
		rates->member = calloc(BOOKS_MEMBERS, sizeof(*rates->member));
	if (rates->tenant && rates->member)
		rates->claim = calloc(BOOKS_MEMBERS, sizeof(*rates->claim));
	if (!rates->claim)
		log_write(&collector->log, LOG_ERROR, "no memory for rates: no rate is in force");
	return rates->claim != NULL;
}

void rates_apply(struct collector *collector)
{
	struct rates *rates = &collector->rates;

	if (!rates_need(collector))
		return;
	if (!rates->timer && sd_event_add_time_relative(collector->event, &rates->timer,
							CLOCK_MONOTONIC, DIVIDE_US, ACCURACY_US,
							rates_on_timer, collector) < 0)
		log_write(&collector->log, LOG_ERROR,
			  "no timer for rates: they are not divided again");
	for (unsigned i = 0; i < BOOKS_TENANTS; i++)
		tenant_rates_read(collector, i);
	rates_divide(collector);
}

void rates_join(struct collector *collector, unsigned member)
{
	struct rate_tenant *tenant;

	if (!collector->rates.claim || !collector->books.member[member].usage)
		return;
	tenant = member_tenant(collector, member);
	if (strcmp(tenant->name, collector->books.file->tenant[tenant - collector->rates.tenant].name))
		tenant_rates_read(collector, (unsigned)(tenant - collector->rates.tenant));
	if (tenant->any)
		rates_divide(collector);
}

void rates_close(struct collector *collector)
{
	sd_event_source_disable_unref(collector->rates.timer);
	free(collector->rates.tenant);
	free(collector->rates.member);
	free(collector->rates.claim);
}
