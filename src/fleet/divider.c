/* SPDX-License-Identifier: MIT */
/* The divider; see divider.h. */
#include "fleet/divider.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/records.h"
#include "output/memory.h"

/* What a round reads; revisions of single keys are compared when something is written. */
struct divider_view {
	struct etcd_pairs quotas, ledgers, shares, alive, reports;
};

static void view_free(struct divider_view *view)
{
	etcd_pairs_free(&view->quotas);
	etcd_pairs_free(&view->ledgers);
	etcd_pairs_free(&view->shares);
	etcd_pairs_free(&view->alive);
	etcd_pairs_free(&view->reports);
}

/* Who is alive is read last: a host whose key is there had a lease when its record was read. */
static int view_read(struct etcd *etcd, const struct fleet_settings *settings,
		     struct divider_view *view, char problem[PROBLEM_SIZE])
{
	struct {
		const char *under;
		struct etcd_pairs *pairs;
	} parts[] = {
		{ "all/quota/", &view->quotas }, { "ledger/", &view->ledgers },
		{ "share/", &view->shares },	 { "report/", &view->reports },
		{ "alive/", &view->alive },
	};
	char key[ETCD_KEY];
	int result = 0;

	for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]) && result == 0; i++) {
		fleet_key_print(settings, key, "%s", parts[i].under);
		result = etcd_read(etcd, key, false, parts[i].pairs, problem);
	}
	return result;
}

/* 1: this host is the divider. */
static int divider_elect(struct etcd *etcd, const struct fleet_settings *settings,
			 const struct log *log, uint64_t lease, char problem[PROBLEM_SIZE])
{
	struct etcd_change change;
	struct etcd_pairs pairs;
	char key[ETCD_KEY];
	int result;

	fleet_key_print(settings, key, "divider");
	result = etcd_read(etcd, key, true, &pairs, problem);
	if (result < 0)
		return result;
	if (pairs.count) {
		result = !strcmp(pairs.pair[0].value, settings->host);
		etcd_pairs_free(&pairs);
		return result;
	}
	etcd_pairs_free(&pairs);
	etcd_change_begin(&change);
	etcd_change_if(&change, key, 0);
	etcd_change_put(&change, key, settings->host, lease);
	result = etcd_change_commit(etcd, &change, NULL, problem);
	if (result == 0)
		log_write(log, LOG_INFO, "this host divides the fleet's quotas now");
	return result < 0 ? result : result == 0;
}

/* ---- one quota */

struct quota_work {
	struct etcd *etcd;
	const struct fleet_settings *settings;
	const struct fleet_quota *quota;
	struct division division;
	struct division_host *hosts;
	struct quota_row {
		char host[256];
		char key[ETCD_KEY];
		uint64_t modified; /* 0: there is no record yet */
		struct fleet_record before;
	} *rows;
	size_t count;
	char ledger[ETCD_KEY];
	uint64_t ledger_modified;
	int64_t free; /* as it is in etcd */
};

static void report_read(const struct etcd_pairs *reports, const char *key, const char *name,
			struct division_host *host, uint64_t modified)
{
	const struct etcd_pair *pair = etcd_pair_find(reports, key);
	json_error_t error;
	json_t *report = pair ? json_loads(pair->value, 0, &error) : NULL;
	const json_t *share = json_object_get(json_object_get(report, "shares"), name);

	host->confirmed = modified && etcd_number(share, "revision") == modified;
	host->held = etcd_number(share, "held");
	host->demand = etcd_number(share, "demand");
	json_decref(report);
}

/* A host that has a lease, or a record. */
static void row_add(struct quota_work *work, const struct divider_view *view, const char *host,
		    size_t length)
{
	struct quota_row *row = &work->rows[work->count];
	struct division_host *part = &work->hosts[work->count];
	char name[QUOTA_NAME], key[ETCD_KEY];
	const struct etcd_pair *pair;

	quota_name_print(work->quota, name);
	snprintf(row->host, sizeof(row->host), "%.*s", (int)length, host);
	fleet_key_print(work->settings, row->key, "share/%s/%s", row->host, name);
	pair = etcd_pair_find(&view->shares, row->key);
	*part = (struct division_host){ .alive = false };
	row->modified = pair && fleet_record_read(pair->value, &part->record) ? pair->modified : 0;
	row->before = part->record;
	fleet_key_print(work->settings, key, "alive/%s", row->host);
	part->alive = etcd_pair_find(&view->alive, key) != NULL;
	fleet_key_print(work->settings, key, "report/%s", row->host);
	report_read(&view->reports, key, name, part, row->modified);
	if (pair && !row->modified)
		return; /* it cannot be read: left to people */
	work->count++;
}

static void rows_collect(struct quota_work *work, const struct divider_view *view)
{
	size_t most = view->alive.count + view->shares.count;
	char name[QUOTA_NAME];

	quota_name_print(work->quota, name);
	work->rows = memory_need(calloc(most + 1, sizeof(*work->rows)));
	work->hosts = memory_need(calloc(most + 1, sizeof(*work->hosts)));
	for (size_t i = 0; i < view->alive.count; i++) {
		const char *host = fleet_key_rest(work->settings, view->alive.pair[i].key, "alive/");

		row_add(work, view, host, strlen(host));
	}
	for (size_t i = 0; i < view->shares.count; i++) {
		const char *host = fleet_key_rest(work->settings, view->shares.pair[i].key, "share/");
		const char *rest = strchr(host, '/');
		char key[ETCD_KEY];

		if (!rest || strcmp(rest + 1, name))
			continue;
		fleet_key_print(work->settings, key, "alive/%.*s", (int)(rest - host), host);
		if (!etcd_pair_find(&view->alive, key))
			row_add(work, view, host, (size_t)(rest - host));
	}
}

static bool ledger_find(struct quota_work *work, const struct divider_view *view)
{
	const struct etcd_pair *pair;
	char name[QUOTA_NAME];
	uint64_t quota = 0;

	quota_name_print(work->quota, name);
	fleet_key_print(work->settings, work->ledger, "ledger/%s", name);
	pair = etcd_pair_find(&view->ledgers, work->ledger);
	work->division = (struct division){ .quota = work->quota->amount,
					    .guarantee = work->quota->guarantee,
					    .keeps_lost = work->settings->keeps_lost };
	if (pair && !fleet_ledger_read(pair->value, &quota, &work->free))
		return false;
	work->ledger_modified = pair ? pair->modified : 0;
	/* A ledger that is new counts the records of an earlier one, too. */
	if (!pair) {
		for (size_t i = 0; i < work->count; i++)
			work->free -= (int64_t)work->rows[i].before.share;
		quota = 0;
	}
	work->free += (int64_t)(work->quota->amount - quota);
	work->division.free = work->free;
	return true;
}

static bool row_has_changed(const struct quota_work *work, size_t row)
{
	return memcmp(&work->rows[row].before, &work->hosts[row].record,
		      sizeof(work->rows[row].before)) != 0;
}

static void row_write(struct quota_work *work, struct etcd_change *change, size_t number)
{
	const struct quota_row *row = &work->rows[number];
	const struct fleet_record *record = &work->hosts[number].record;
	char key[ETCD_KEY], *text = fleet_record_write(record);

	etcd_change_if(change, row->key, row->modified);
	/* The lease must have ended before its share is taken back, and still have when it is. */
	if (!work->hosts[number].alive) {
		fleet_key_print(work->settings, key, "alive/%s", row->host);
		etcd_change_if(change, key, 0);
	}
	etcd_change_put(change, row->key, text, 0);
	work->free += (int64_t)(row->before.share - record->share);
	free(text);
}

/* Some of the rows and the ledger in one transaction. 1: something else has changed them. */
static int part_commit(struct quota_work *work, struct etcd_change *change,
		       char problem[PROBLEM_SIZE])
{
	char *text = fleet_ledger_write(work->quota->amount, work->free);
	int result;

	etcd_change_if(change, work->ledger, work->ledger_modified);
	etcd_change_put(change, work->ledger, text, 0);
	free(text);
	result = etcd_change_commit(work->etcd, change, &work->ledger_modified, problem);
	return result;
}

static int rows_commit(struct quota_work *work, bool giving_back, char problem[PROBLEM_SIZE])
{
	enum { PART = ETCD_OPERATIONS / 2 - 1 };
	struct etcd_change change;
	unsigned inside = 0;
	int result = 0;

	for (size_t i = 0; i < work->count && result == 0; i++) {
		if (!row_has_changed(work, i) ||
		    division_gives_back(&work->rows[i].before, &work->hosts[i].record) != giving_back)
			continue;
		if (!inside)
			etcd_change_begin(&change);
		row_write(work, &change, i);
		if (++inside < PART)
			continue;
		inside = 0;
		result = part_commit(work, &change, problem);
	}
	return inside && result == 0 ? part_commit(work, &change, problem) : result;
}

static int quota_divide(struct quota_work *work, const struct divider_view *view,
			char problem[PROBLEM_SIZE])
{
	struct etcd_change change;
	int result = 0;

	rows_collect(work, view);
	if (!ledger_find(work, view))
		return problem_set(-EPROTO, problem, "%s: not a ledger", work->ledger);
	division_round(&work->division, work->hosts, work->count);
	if (!work->ledger_modified) {
		/* The ledger first: without it nothing is given. */
		etcd_change_begin(&change);
		result = part_commit(work, &change, problem);
	}
	if (result == 0)
		result = rows_commit(work, true, problem);
	if (result == 0)
		result = rows_commit(work, false, problem);
	return result;
}

/* Records and ledgers of quotas that were removed. */
static int leftovers_delete(struct etcd *etcd, const struct fleet_settings *settings,
			    const struct etcd_pairs *pairs, const char *under,
			    const struct divider_view *view, char problem[PROBLEM_SIZE])
{
	struct etcd_change change;
	char key[ETCD_KEY];
	int result = 0;

	for (size_t i = 0; i < pairs->count && result >= 0; i++) {
		const char *name = fleet_key_rest(settings, pairs->pair[i].key, under);

		if (name && !strcmp(under, "share/"))
			name = strchr(name, '/') ? strchr(name, '/') + 1 : NULL;
		if (!name)
			continue;
		fleet_key_print(settings, key, "all/quota/%s", name);
		if (etcd_pair_find(&view->quotas, key))
			continue;
		etcd_change_begin(&change);
		etcd_change_if(&change, key, 0);
		etcd_change_if(&change, pairs->pair[i].key, pairs->pair[i].modified);
		etcd_change_delete(&change, pairs->pair[i].key);
		result = etcd_change_commit(etcd, &change, NULL, problem);
	}
	return result < 0 ? result : 0;
}

int divider_round(struct etcd *etcd, const struct fleet_settings *settings, const struct log *log,
		  uint64_t lease, char problem[PROBLEM_SIZE])
{
	struct divider_view view = { .quotas = { .pair = NULL } };
	int result = divider_elect(etcd, settings, log, lease, problem);

	if (result != 1)
		return result;
	result = view_read(etcd, settings, &view, problem);
	for (size_t i = 0; i < view.quotas.count && result == 0; i++) {
		const struct etcd_pair *pair = &view.quotas.pair[i];
		struct fleet_quota quota;
		struct quota_work work = { .etcd = etcd, .settings = settings, .quota = &quota };

		if (!fleet_quota_read(fleet_key_rest(settings, pair->key, "all/quota/"),
				      pair->value, &quota))
			continue;
		/* 1: another divider was faster; the next round sees what it did. */
		result = quota_divide(&work, &view, problem);
		result = result == 1 ? 0 : result;
		free(work.rows);
		free(work.hosts);
	}
	if (result == 0)
		result = leftovers_delete(etcd, settings, &view.shares, "share/", &view, problem);
	if (result == 0)
		result = leftovers_delete(etcd, settings, &view.ledgers, "ledger/", &view, problem);
	view_free(&view);
	return result;
}
