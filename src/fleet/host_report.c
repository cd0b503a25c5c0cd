/* SPDX-License-Identifier: MIT */
/* What this host tells the fleet: a summary, not single counters; see host.h. */
#include "fleet/host.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "output/memory.h"

enum {
	REPORT_LEAST_S = 1, /* between two reports, unless a share was confirmed */
	REPORT_MOST_S = 10,
	REPORT_TENANTS = 64,
	DEMAND_PART = 8, /* a demand that has moved by less is no reason to report */
};

static uint64_t the_larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Grows at once, and goes back slowly: a moment's idleness is no reason to give back. */
static void demand_follow(struct host_share *share, const struct proto_row *row)
{
	unsigned kind = share->quota.kind;
	uint64_t used = row->used[kind], refused = row->refused_here[kind] + row->tolerated_here[kind];
	uint64_t faded = share->demand - (share->demand + DEMAND_PART - 1) / DEMAND_PART;

	share->demand = the_larger(used, faded);
	if (refused > share->refused && share->refused != UINT64_MAX)
		share->demand = the_larger(share->demand, 2 * used + (refused - share->refused));
	share->refused = refused;
}

static void share_look(struct host_share *share, const struct proto_row *row, bool is_read)
{
	unsigned kind = share->quota.kind;

	demand_follow(share, row);
	/* Credit that processes hold can become objects without a question. */
	share->held = the_larger(row->used[kind], row->granted[kind]);
	share->overridden = row->limit[kind] > share->record.target;
	if (is_read && share->revision && !share->overridden)
		share->confirmed = share->revision;
}

void host_look(struct host *host)
{
	/* A collector that answers so long after the files were written has read them. */
	bool is_read = !host->has_changed &&
		       clock_now_ns() - host->written_ns >= HOST_READ_MS * 1000000ull;

	fleet_usage_read(&host->usage, host->socket);
	for (unsigned i = 0; i < host->shares && host->usage.answers; i++) {
		const struct proto_row *row =
			fleet_usage_find(&host->usage, host->share[i].quota.tenant);

		if (row)
			share_look(&host->share[i], row, is_read);
	}
}

/* ---- the document */

static json_t *report_shares(const struct host *host)
{
	json_t *shares = memory_need(json_object());

	for (unsigned i = 0; i < host->shares; i++) {
		const struct host_share *share = &host->share[i];
		char name[QUOTA_NAME];

		quota_name_print(&share->quota, name);
		json_object_set_new(
			shares, name,
			memory_need(json_pack("{s:I,s:I,s:I,s:b}", "revision",
					      (json_int_t)share->confirmed, "held",
					      (json_int_t)share->held, "demand",
					      (json_int_t)share->demand, "overridden",
					      share->overridden)));
	}
	return shares;
}

static json_t *report_tenants(const struct fleet_usage *usage)
{
	json_t *tenants = memory_need(json_object());

	for (unsigned i = 0; i < usage->tenants && i < REPORT_TENANTS; i++) {
		const struct proto_row *row = &usage->tenant[i];
		json_t *used = memory_need(json_object());

		for (unsigned kind = 0; kind < KIND_COUNT; kind++)
			if (row->used[kind])
				json_object_set_new(used, kind_rows[kind].name,
						    json_integer((json_int_t)row->used[kind]));
		json_object_set_new(tenants, row->tenant,
				    memory_need(json_pack("{s:i,s:o}", "processes",
							  (int)row->processes, "used", used)));
	}
	return tenants;
}

/* All but the time. */
static json_t *report_json(const struct host *host)
{
	const struct fleet_usage *usage = &host->usage;
	json_t *report = memory_need(json_pack(
		"{s:{s:I,s:I,s:s},s:{s:b,s:s,s:s,s:i,s:i},s:o,s:o}", "policy", "revision",
		(json_int_t)host->policy_revision, "in_force", (json_int_t)host->policy_in_force,
		"problem", host->policy_problem, "collector", "answers", usage->answers, "version",
		usage->version, "problem", usage->problem, "processes", (int)usage->processes,
		"uncovered", (int)usage->uncovered, "shares", report_shares(host), "tenants",
		report_tenants(usage)));

	return report;
}

/* ---- when it is told */

static bool number_has_moved(const json_t *before, const json_t *now, const char *name)
{
	uint64_t a = etcd_number(before, name), b = etcd_number(now, name);
	uint64_t change = a > b ? a - b : b - a;

	return change > the_larger(a, b) / DEMAND_PART;
}

/* 2: at once; 1: soon; 0: when it is time. */
static unsigned report_urgency(const json_t *before, const json_t *now)
{
	const json_t *shares = json_object_get(now, "shares"), *share;
	unsigned urgency = !json_equal(json_object_get(before, "policy"),
				       json_object_get(now, "policy"));
	const char *name;

	urgency *= 2;
	json_object_foreach((json_t *)shares, name, share) {
		const json_t *other = json_object_get(json_object_get(before, "shares"), name);

		if (etcd_number(other, "revision") != etcd_number(share, "revision"))
			return 2;
		if (number_has_moved(other, share, "demand") ||
		    number_has_moved(other, share, "held"))
			urgency = the_larger(urgency, 1);
	}
	return urgency;
}

int host_report(struct host *host, char problem[PROBLEM_SIZE])
{
	json_t *report = report_json(host), *before = NULL;
	uint64_t now_ns = clock_now_ns();
	struct etcd_change change;
	json_error_t error;
	char key[ETCD_KEY], *text;
	unsigned urgency;
	int result = 0;

	if (host->reported)
		before = json_loads(host->reported, 0, &error);
	urgency = before ? report_urgency(before, report) : 2;
	json_decref(before);
	/* report_at_ns is when a report is due in any case. */
	if (urgency < 2 && now_ns < host->report_at_ns -
					    (urgency ? (REPORT_MOST_S - REPORT_LEAST_S) *
							       (uint64_t)CLOCK_SECOND_NS :
						       0)) {
		json_decref(report);
		return 0;
	}
	json_object_set_new(report, "time", json_integer(time(NULL)));
	text = memory_need(json_dumps(report, JSON_COMPACT));
	json_decref(report);
	fleet_key_print(host->settings, key, "report/%s", host->settings->host);
	etcd_change_begin(&change);
	etcd_change_put(&change, key, text, 0);
	result = etcd_change_commit(host->etcd, &change, NULL, problem);
	if (result < 0) {
		free(text);
		return result;
	}
	free(host->reported);
	host->reported = text;
	host->report_at_ns = now_ns + REPORT_MOST_S * (uint64_t)CLOCK_SECOND_NS;
	return 0;
}
