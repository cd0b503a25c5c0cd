/* SPDX-License-Identifier: MIT */
/* Shares of paces, and priorities; see pacing.h. */
#include "collector/pacing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "collector/answers.h"
#include "collector/pace_split.h"
#include "collector/collector.h"

enum {
	DIVIDE_US = 50000,  /* so often shares are divided, */
	LOOK_US = 10000,    /* and with priorities so often activity is looked for */
	PACING_ACCURACY_US = 1000,
};
_Static_assert((int)PACING_TENANTS == (int)BOOKS_TENANTS, "a priority for each tenant");
#define IDLE_NS 60000000u   /* a latency tenant that has not posted for so long is idle */
#define DIVIDE_NS 45000000u /* a timer may come a little early */
#define SHORTEST_NS 1000000u

static enum policy_priority pacing_priority(const struct collector *collector, unsigned tenant)
{
	return (enum policy_priority)collector->pacing.priority[tenant];
}

static const struct pace_settings *pacing_settings(const struct books *books, unsigned tenant)
{
	return &books->tenant[tenant]->table->settings.pace;
}

/* ---- what was posted */

bool pacing_lease_posted(const struct books *books, unsigned lease, struct posted *ret_posted)
{
	const struct book_lease *row = &books->file->lease[lease];
	const struct usage_page *usage = books->member[row->member].usage;
	const uint64_t *from;
	uint64_t *to = (uint64_t *)ret_posted;

	if (!usage || row->usage_row >= DEVICES_MAX)
		return false;
	from = (const uint64_t *)&usage->row[row->usage_row].gauges.posted;
	for (unsigned i = 0; i < sizeof(*ret_posted) / sizeof(*to); i++)
		to[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
	posted_fold(ret_posted);
	return true;
}

/* What is remembered of a lease; of a new one that it posted nothing before. */
static struct pacing_lease *pacing_of_lease(struct collector *collector, unsigned lease,
					    const struct posted *posted)
{
	const struct books *books = &collector->books;
	struct pacing_lease *known = &collector->pacing.lease[lease];
	uint64_t cookie = books->file->member[books->file->lease[lease].member].cookie;

	if (known->cookie != cookie)
		*known = (struct pacing_lease){
			.cookie = cookie,
			.bytes = posted->bytes,
			.operations = posted->operations,
			.delays = posted->delays,
		};
	return known;
}

static uint64_t per_second(uint64_t before, uint64_t after, uint64_t ns)
{
	return after > before ? books_clamp((wide)(after - before) * CLOCK_SECOND_NS / ns) : 0;
}

static void lease_measure(struct collector *collector, unsigned lease, uint64_t passed_ns)
{
	struct pacing_lease *known;
	struct posted posted;

	if (!pacing_lease_posted(&collector->books, lease, &posted))
		return;
	known = pacing_of_lease(collector, lease, &posted);
	known->byte_rate = per_second(known->bytes, posted.bytes, passed_ns);
	known->operation_rate = per_second(known->operations, posted.operations, passed_ns);
	known->hungry = posted.waiting || posted.delays != known->delays;
	known->bytes = posted.bytes;
	known->operations = posted.operations;
	known->delays = posted.delays;
}

/* ---- shares */

enum pace_measure { SHARE_BYTES, SHARE_OPERATIONS };

static uint64_t lease_demand(const struct collector *collector, unsigned lease, enum pace_measure share)
{
	const struct pacing_lease *known = &collector->pacing.lease[lease];
	uint64_t rate = share == SHARE_BYTES ? known->byte_rate : known->operation_rate;

	return known->hungry ? UINT64_MAX : books_clamp((wide)rate + rate / 2);
}

/* The shares that fall are written before those that rise, so that their sum is never above the
 * rate, wherever the collector is killed. */
enum share_pass { SHARES_FALL, SHARES_RISE, SHARE_PASSES };

static void lease_share_write(struct books *books, unsigned lease, enum pace_measure share,
			      uint64_t rate, enum share_pass pass)
{
	struct lease_share *to =
		&books->tenant[books->view[lease].tenant]->table->row[lease].share;
	uint64_t *word = share == SHARE_BYTES ? &to->bytes : &to->operations;

	if (!books->view[lease].cap) /* the member has no table */
		return;
	if (pass == SHARES_RISE || rate < __atomic_load_n(word, __ATOMIC_RELAXED))
		__atomic_store_n(word, rate, __ATOMIC_RELEASE);
}

/* What a member may post, divided over the devices that it uses. */
static void member_divide(struct collector *collector, unsigned member, enum pace_measure share,
			  uint64_t rate, enum share_pass pass)
{
	struct pace_part parts[DEVICES_MAX];
	struct books *books = &collector->books;
	unsigned count = 0;

	for (uint32_t lease = books->member[member].leases;
	     lease != BOOKS_NOBODY && count < DEVICES_MAX;
	     lease = books->view[lease].next_of_member)
		parts[count++] = (struct pace_part){
			.demand = lease_demand(collector, lease, share), .who = lease };
	pace_split(rate, parts, count);
	for (unsigned i = 0; i < count; i++)
		lease_share_write(books, parts[i].who, share, parts[i].share, pass);
}

static uint64_t member_demand(const struct collector *collector, unsigned member, enum pace_measure share)
{
	const struct books *books = &collector->books;
	wide demand = 0;

	for (uint32_t lease = books->member[member].leases; lease != BOOKS_NOBODY;
	     lease = books->view[lease].next_of_member)
		demand += lease_demand(collector, lease, share);
	return books_clamp(demand);
}

static struct pace_part divided[LEASES_MAX]; /* too large for a stack */

static void tenant_pace_divide(struct collector *collector, unsigned tenant, enum pace_measure share,
			  const struct pace_rate *all, const struct pace_rate *process)
{
	struct books *books = &collector->books;
	unsigned count = 0;

	if (!pace_rate_is_limit(all) && !pace_rate_is_limit(process))
		return;
	for (uint32_t lease = books->tenant[tenant]->leases; lease != BOOKS_NOBODY;
	     lease = books->view[lease].next_of_tenant) {
		unsigned member = books->view[lease].member;
		uint64_t demand;

		if (books->member[member].leases != lease) /* once for each member */
			continue;
		demand = member_demand(collector, member, share);
		if (pace_rate_is_limit(process) && demand > process->per_second)
			demand = process->per_second;
		divided[count++] = (struct pace_part){ .demand = demand, .who = member };
	}
	if (pace_rate_is_limit(all))
		pace_split(all->per_second, divided, count);
	for (unsigned i = 0; i < SHARE_PASSES * count; i++) {
		const struct pace_part *part = &divided[i % count];
		uint64_t rate = pace_rate_is_limit(all) ? part->share : process->per_second;

		if (pace_rate_is_limit(process) && rate > process->per_second)
			rate = process->per_second;
		member_divide(collector, part->who, share, rate, (enum share_pass)(i / count));
	}
}

/* The floor of a device that is held, over the leases there. */
static void tenant_floor_divide(struct collector *collector, unsigned tenant, unsigned device,
				uint64_t floor)
{
	struct books *books = &collector->books;
	unsigned count = 0;

	for (uint32_t lease = books->tenant[tenant]->leases; lease != BOOKS_NOBODY;
	     lease = books->view[lease].next_of_tenant)
		if (books->view[lease].device == device)
			divided[count++] = (struct pace_part){
				.demand = lease_demand(collector, lease, SHARE_BYTES),
				.who = lease };
	pace_split(floor, divided, count);
	for (unsigned i = 0; i < count; i++)
		if (books->view[divided[i].who].cap)
			__atomic_store_n(&books->tenant[tenant]->table->row[divided[i].who].share.floor,
					 divided[i].share, __ATOMIC_RELAXED);
}

static void tenant_paces_divide(struct collector *collector, unsigned tenant)
{
	const struct pace_settings *pace = pacing_settings(&collector->books, tenant);

	tenant_pace_divide(collector, tenant, SHARE_BYTES, &pace->bytes, &pace->process_bytes);
	tenant_pace_divide(collector, tenant, SHARE_OPERATIONS, &pace->operations,
			   &pace->process_operations);
}

void pacing_lease_added(struct collector *collector, unsigned lease)
{
	unsigned tenant = collector->books.view[lease].tenant;
	struct posted posted;

	if (!collector->pacing.lease || !pacing_settings(&collector->books, tenant)->is_counted)
		return;
	if (pacing_lease_posted(&collector->books, lease, &posted))
		pacing_of_lease(collector, lease, &posted);
	tenant_paces_divide(collector, tenant);
}

static void pacing_divide(struct collector *collector)
{
	struct books *books = &collector->books;
	uint64_t now = clock_now_ns(), passed = now - collector->pacing.divided_ns;

	collector->pacing.divided_ns = now;
	for (unsigned i = 0; i < BOOKS_TENANTS; i++) {
		const struct pace_settings *pace;

		if (!books->tenant[i] || !pacing_settings(books, i)->is_counted)
			continue;
		for (uint32_t lease = books->tenant[i]->leases; lease != BOOKS_NOBODY;
		     lease = books->view[lease].next_of_tenant) {
			rates_wake(collector, books->view[lease].member);
			if (passed > SHORTEST_NS)
				lease_measure(collector, lease, passed);
		}
		pace = pacing_settings(books, i);
		tenant_paces_divide(collector, i);
		if (pacing_priority(collector, i) != PRIORITY_BULK)
			continue;
		for (unsigned device = 1; device < DEVICES_MAX; device++)
			if (books_device_name(books, device))
				tenant_floor_divide(collector, i, device, pace->floor);
	}
}

/* ---- priorities */

/* Notes where tenants of the priority latency posted since the last look. */
static void pacing_notice(struct collector *collector, uint64_t now)
{
	struct books *books = &collector->books;

	for (unsigned i = 0; i < BOOKS_TENANTS; i++) {
		if (!books->tenant[i] || pacing_priority(collector, i) != PRIORITY_LATENCY)
			continue;
		for (uint32_t lease = books->tenant[i]->leases; lease != BOOKS_NOBODY;
		     lease = books->view[lease].next_of_tenant) {
			struct pacing_lease *known;
			struct posted posted;

			if (!pacing_lease_posted(books, lease, &posted))
				continue;
			known = pacing_of_lease(collector, lease, &posted);
			if (posted.operations != known->seen_operations)
				collector->pacing.active_ns[books->view[lease].device] = now;
			known->seen_operations = posted.operations;
		}
	}
}

/* The devices where a bulk tenant is held now. */
static void pacing_hold(const struct collector *collector, struct pace_settings *pace)
{
	const struct pacing *pacing = &collector->pacing;
	uint64_t now = clock_now_ns();
	size_t end = 0;

	memset(pace->held, 0, sizeof(pace->held));
	for (unsigned device = 1; device < DEVICES_MAX; device++) {
		const char *name = books_device_name(&collector->books, device);
		size_t length = name ? strlen(name) : 0;

		if (!name || !pacing->active_ns[device] || now - pacing->active_ns[device] > IDLE_NS)
			continue;
		if (end + length + 2 > sizeof(pace->held)) {
			strcpy(pace->held, "*");
			return;
		}
		if (end)
			pace->held[end++] = ' ';
		memcpy(pace->held + end, name, length + 1);
		end += length;
	}
}

void pacing_fill(const struct collector *collector, unsigned tenant, struct pace_settings *pace)
{
	enum policy_priority priority = pacing_priority(collector, tenant);
	bool matters = collector->pacing.prioritised && priority != PRIORITY_NORMAL;

	pace->is_counted = matters || pace_rate_is_limit(&pace->bytes) ||
			   pace_rate_is_limit(&pace->operations) ||
			   pace_rate_is_limit(&pace->process_bytes) ||
			   pace_rate_is_limit(&pace->process_operations) ||
			   pace_rate_is_limit(&pace->qp_bytes) ||
			   pace_rate_is_limit(&pace->qp_operations);
	if (matters && priority == PRIORITY_BULK)
		pacing_hold(collector, pace);
}

/* Writes only where something changes. */
static void pacing_hold_all(struct collector *collector)
{
	struct books *books = &collector->books;

	for (unsigned i = 0; i < BOOKS_TENANTS; i++) {
		struct tenant_settings settings;

		if (!books->tenant[i] || pacing_priority(collector, i) != PRIORITY_BULK)
			continue;
		settings = books->tenant[i]->table->settings;
		pacing_hold(collector, &settings.pace);
		settings_write(&books->tenant[i]->table->settings, &settings);
	}
}

void pacing_prepare(struct collector *collector)
{
	const struct policy *policy = collector->effective;
	bool found[PRIORITY_UNSET] = { false };

	for (unsigned i = 0; i < BOOKS_TENANTS; i++) {
		const char *name = collector->books.file->tenant[i].name;

		collector->pacing.priority[i] = PRIORITY_NORMAL;
		if (!collector->books.tenant[i])
			continue;
		collector->pacing.priority[i] =
			policy_tenant_priority(policy, policy_tenant_find(policy, name));
		found[collector->pacing.priority[i]] = true;
	}
	collector->pacing.prioritised = found[PRIORITY_LATENCY] && found[PRIORITY_BULK];
}

/* ---- the timer */

static int pacing_await(struct collector *collector)
{
	struct pacing *pacing = &collector->pacing;

	if (!pacing->timer)
		return 0;
	if (!pacing->counted)
		return sd_event_source_set_enabled(pacing->timer, SD_EVENT_OFF);
	sd_event_source_set_time_relative(pacing->timer,
					  pacing->prioritised ? LOOK_US : DIVIDE_US);
	return sd_event_source_set_enabled(pacing->timer, SD_EVENT_ONESHOT);
}

static int pacing_turn(sd_event_source *source, uint64_t time, void *closure)
{
	struct collector *collector = closure;
	uint64_t now = clock_now_ns();

	if (collector->pacing.prioritised) {
		pacing_notice(collector, now);
		pacing_hold_all(collector);
	}
	if (now - collector->pacing.divided_ns >= DIVIDE_NS)
		pacing_divide(collector);
	return pacing_await(collector);
}

void pacing_apply(struct collector *collector)
{
	struct books *books = &collector->books;

	collector->pacing.counted = false;
	for (unsigned i = 0; i < BOOKS_TENANTS; i++)
		if (books->tenant[i] && pacing_settings(books, i)->is_counted)
			collector->pacing.counted = true;
	if (!collector->pacing.lease)
		return;
	if (collector->pacing.counted)
		pacing_divide(collector);
	pacing_await(collector);
}

int pacing_open(struct collector *collector)
{
	struct pacing *pacing = &collector->pacing;
	int result;

	pacing->lease = calloc(LEASES_MAX, sizeof(*pacing->lease));
	if (!pacing->lease)
		return -ENOMEM;
	result = sd_event_add_time_relative(collector->event, &pacing->timer, CLOCK_MONOTONIC,
					    DIVIDE_US, PACING_ACCURACY_US, pacing_turn, collector);
	return result < 0 ? result : pacing_await(collector);
}

void pacing_close(struct collector *collector)
{
	sd_event_source_disable_unref(collector->pacing.timer);
	free(collector->pacing.lease);
}
