/* SPDX-License-Identifier: MIT */
/* What this host tells the fleet: a summary, not single counters; see host.h. */
#include "fleet/host.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "output/memory.h"

enum {
	REPORT_SOON_S = 1,  /* between two reports, unless a share was confirmed */
	REPORT_LATER_S = 10, /* of small changes */
	REPORT_SAME_S = 60, /* if nothing has changed: the lease tells that the host is alive */
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
	bool is_read;

	fleet_usage_read(&host->usage, host->socket);
	/* A collector that answers so long after the files were written has read them, unless it says
	 * that it could not. */
	is_read = !host->has_changed &&
		  clock_now_ns() - host->written_ns >= HOST_READ_MS * 1000000ull &&
		  !strstr(host->usage.problem, host->settings->directory);
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

/* After how many seconds it is to be told what is now and was not before. */
static unsigned report_wait_s(const json_t *before, const json_t *now)
{
	const json_t *shares = json_object_get(now, "shares"), *share;
	unsigned wait_s = json_equal(before, now) ? REPORT_SAME_S : REPORT_LATER_S;
	const char *name;

	if (!before || !json_equal(json_object_get(before, "policy"), json_object_get(now, "policy")))
		return 0;
	json_object_foreach((json_t *)shares, name, share) {
		const json_t *other = json_object_get(json_object_get(before, "shares"), name);

		if (etcd_number(other, "revision") != etcd_number(share, "revision"))
			return 0;
		if (number_has_moved(other, share, "demand") ||
		    number_has_moved(other, share, "held"))
			wait_s = REPORT_SOON_S;
	}
	return wait_s;
}

int host_report(struct host *host, char problem[PROBLEM_SIZE])
{
	json_t *report = report_json(host), *dated;
	uint64_t now_ns = clock_now_ns();
	struct etcd_change change;
	char key[ETCD_KEY], *text;
	int result;

	if (now_ns - host->reported_ns <
	    report_wait_s(host->reported, report) * (uint64_t)CLOCK_SECOND_NS) {
		json_decref(report);
		return 0;
	}
	dated = memory_need(json_copy(report));
	json_object_set_new(dated, "time", json_integer(time(NULL)));
	text = memory_need(json_dumps(dated, JSON_COMPACT));
	json_decref(dated);
	fleet_key_print(host->settings, key, "report/%s", host->settings->host);
	etcd_change_begin(&change);
	etcd_change_put(&change, key, text, 0);
	free(text);
	result = etcd_change_commit(host->etcd, &change, NULL, problem);
	if (result < 0) {
		json_decref(report);
		return result;
	}
	json_decref(host->reported);
	host->reported = report;
	host->reported_ns = now_ns;
	return 0;
}
