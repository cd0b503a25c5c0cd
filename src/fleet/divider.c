/* SPDX-License-Identifier: MIT */
/* The divider; see divider.h. */
#include "fleet/divider.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/records.h"
#include "output/memory.h"

enum {
	REPORT_BYTES_MOST = 1 << 16, /* larger ones are not ours */
	REST_LEAST_MS = 2000,
	REST_MOST_MS = 10000,
	REST_PART = 3, /* of the time that a round took */
};

uint64_t divider_rest_ns(uint64_t lasted_ns)
{
	uint64_t rest_ns = REST_PART * lasted_ns, least_ns = REST_LEAST_MS * 1000000ull;
	uint64_t most_ns = REST_MOST_MS * 1000000ull;

	return rest_ns < least_ns ? least_ns : rest_ns > most_ns ? most_ns : rest_ns;
}

/* What a round reads, all of it as it was in one revision. */
struct divider_view {
	struct etcd_pairs quotas, ledgers, shares, alive, reports;
	json_t **report; /* as JSON documents, beside their pairs */
	struct view_record {
		const char *quota; /* "TENANT/KIND" */
		const char *host;
		size_t length; /* of the host's name */
		const struct etcd_pair *pair;
	} *record; /* of the shares, by quota */
	size_t records;
};

static void view_free(struct divider_view *view)
{
	for (size_t i = 0; view->report && i < view->reports.count; i++)
		json_decref(view->report[i]);
	free(view->report);
	free(view->record);
	etcd_pairs_free(&view->quotas);
	etcd_pairs_free(&view->ledgers);
	etcd_pairs_free(&view->shares);
	etcd_pairs_free(&view->alive);
	etcd_pairs_free(&view->reports);
}

static int record_compare(const void *left, const void *right)
{
	const struct view_record *a = left, *b = right;

	return strcmp(a->quota, b->quota);
}

static void view_index(struct divider_view *view, const struct fleet_settings *settings)
{
	view->record = memory_need(calloc(view->shares.count + 1, sizeof(*view->record)));
	for (size_t i = 0; i < view->shares.count; i++) {
		const char *host = fleet_key_rest(settings, view->shares.pair[i].key, "share/");
		const char *slash = strchr(host, '/');

		if (slash && fleet_host_is_valid(host, (size_t)(slash - host)))
			view->record[view->records++] =
				(struct view_record){ slash + 1, host, (size_t)(slash - host),
						      &view->shares.pair[i] };
	}
	qsort(view->record, view->records, sizeof(*view->record), record_compare);
	view->report = memory_need(calloc(view->reports.count + 1, sizeof(json_t *)));
	for (size_t i = 0; i < view->reports.count; i++) {
		json_error_t error;

		if (view->reports.pair[i].length <= REPORT_BYTES_MOST)
			view->report[i] = json_loads(view->reports.pair[i].value, 0, &error);
	}
}

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
	uint64_t revision = 0;
	int result = 0;

	for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]) && result == 0; i++) {
		/* Without quotas, ledgers and records are deleted, and nothing else is of use. */
		if (i > 2 && !view->quotas.count)
			break;
		fleet_key_print(settings, key, "%s", parts[i].under);
		result = etcd_read_at(etcd, key, false, revision, parts[i].pairs, problem);
		revision = parts[i].pairs->revision;
	}
	if (result == 0)
		view_index(view, settings);
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
		char host[FLEET_HOST];
		uint64_t modified; /* 0: there is no record yet */
		struct fleet_record before;
	} *rows;
	size_t count;
	bool has_unreadable; /* records, which are left to people */
	uint64_t shared; /* sum of the shares */
	char name[QUOTA_NAME];
	char ledger[ETCD_KEY];
	uint64_t ledger_modified;
	int64_t free; /* as it is in etcd */
};

static void report_use(const struct quota_work *work, const struct divider_view *view,
		       const char *key, struct division_host *host, uint64_t modified)
{
	const struct etcd_pair *pair = etcd_pair_find(&view->reports, key);
	const json_t *report = pair ? view->report[pair - view->reports.pair] : NULL;
	const json_t *share = json_object_get(json_object_get(report, "shares"), work->name);

	host->confirmed = modified && etcd_number(share, "revision") == modified;
	host->held = etcd_number(share, "held");
	host->demand = etcd_number(share, "demand");
}

static void row_key_print(const struct quota_work *work, const char *host, char ret_key[ETCD_KEY])
{
	fleet_key_print(work->settings, ret_key, "share/%s/%s", host, work->name);
}

/* A host that has a lease, or a record. */
static void row_add(struct quota_work *work, const struct divider_view *view, const char *host,
		    size_t length)
{
	struct quota_row *row = &work->rows[work->count];
	struct division_host *part = &work->hosts[work->count];
	char key[ETCD_KEY];
	const struct etcd_pair *pair;

	*row = (struct quota_row){ .modified = 0 };
	*part = (struct division_host){ .alive = false };
	snprintf(row->host, sizeof(row->host), "%.*s", (int)length, host);
	row_key_print(work, row->host, key);
	pair = etcd_pair_find(&view->shares, key);
	if (pair && !fleet_record_read(pair->value, &part->record)) {
		work->has_unreadable = true;
		return;
	}
	row->modified = pair ? pair->modified : 0;
	row->before = part->record;
	fleet_key_print(work->settings, key, "alive/%s", row->host);
	part->alive = etcd_pair_find(&view->alive, key) != NULL;
	fleet_key_print(work->settings, key, "report/%s", row->host);
	report_use(work, view, key, part, row->modified);
	if (__builtin_add_overflow(work->shared, part->record.share, &work->shared))
		work->shared = UINT64_MAX;
	work->count++;
}

/* The first record of the quota, in the order of view_index(). */
static size_t record_first(const struct divider_view *view, const char *name)
{
	size_t low = 0, high = view->records;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (strcmp(view->record[middle].quota, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void rows_collect(struct quota_work *work, const struct divider_view *view)
{
	size_t first = record_first(view, work->name), end = first;

	while (end < view->records && !strcmp(view->record[end].quota, work->name))
		end++;
	work->rows = memory_need(calloc(view->alive.count + end - first + 1, sizeof(*work->rows)));
	work->hosts = memory_need(calloc(view->alive.count + end - first + 1, sizeof(*work->hosts)));
	for (size_t i = 0; i < view->alive.count; i++) {
		const char *host = fleet_key_rest(work->settings, view->alive.pair[i].key, "alive/");

		if (fleet_host_is_valid(host, strlen(host)))
			row_add(work, view, host, strlen(host));
	}
	for (size_t i = first; i < end; i++) {
		const struct view_record *record = &view->record[i];
		char key[ETCD_KEY];

		fleet_key_print(work->settings, key, "alive/%.*s", (int)record->length, record->host);
		if (!etcd_pair_find(&view->alive, key))
			row_add(work, view, record->host, record->length);
	}
}

/*
 * What is free is computed from the records, which are all of one revision; a transaction compares
 * that the ledger is still of it. So a ledger that is wrong or was deleted is right again after a
 * round. With a record that cannot be read, the ledger knows better.
 */
static int ledger_find(struct quota_work *work, const struct divider_view *view,
		       char problem[PROBLEM_SIZE])
{
	const struct etcd_pair *pair;
	uint64_t quota = 0, most = INT64_MAX;
	int64_t told = 0;
	bool is_readable;

	fleet_key_print(work->settings, work->ledger, "ledger/%s", work->name);
	pair = etcd_pair_find(&view->ledgers, work->ledger);
	is_readable = pair && fleet_ledger_read(pair->value, &quota, &told);
	work->ledger_modified = pair ? pair->modified : 0;
	work->division = (struct division){ .quota = work->quota->amount,
					    .guarantee = work->quota->guarantee,
					    .keeps_lost = work->settings->keeps_lost };
	if (work->shared > most)
		return problem_set(-EPROTO, problem, "%.200s: the shares of hosts are too large",
				   work->name);
	work->free = (int64_t)(work->quota->amount - work->shared);
	if (work->has_unreadable) {
		int64_t change = (int64_t)(work->quota->amount - quota);

		if (!is_readable || told > (int64_t)quota)
			return problem_set(-EPROTO, problem,
					   "%.200s: neither its ledger nor all records of hosts can be read",
					   work->name);
		if (__builtin_add_overflow(told, change, &told))
			told = INT64_MIN; /* only a change downwards is so large */
		work->free = told < work->free ? told : work->free;
	}
	work->division.free = work->free;
	return 0;
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
	char key[ETCD_KEY], place[ETCD_KEY], *text = fleet_record_write(record);

	row_key_print(work, row->host, place);
	etcd_change_if(change, place, row->modified);
	/* The lease must have ended before its share is taken back, and still have when it is. */
	if (!work->hosts[number].alive) {
		fleet_key_print(work->settings, key, "alive/%s", row->host);
		etcd_change_if(change, key, 0);
	}
	etcd_change_put(change, place, text, 0);
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
	etcd_pause(work->etcd);
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
	int result;

	quota_name_print(work->quota, work->name);
	rows_collect(work, view);
	result = ledger_find(work, view, problem);
	if (result < 0)
		return result;
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

/* Records and ledgers of quotas that were removed; what one round leaves the next one finds. */
static int leftovers_delete(struct etcd *etcd, const struct fleet_settings *settings,
			    const struct etcd_pairs *pairs, const char *under,
			    const struct divider_view *view, char problem[PROBLEM_SIZE])
{
	struct etcd_change change;
	char key[ETCD_KEY];
	unsigned inside = 0;

	for (size_t i = 0; i < pairs->count && inside < ETCD_OPERATIONS / 2; i++) {
		const char *name = fleet_key_rest(settings, pairs->pair[i].key, under);

		if (name && !strcmp(under, "share/"))
			name = strchr(name, '/') ? strchr(name, '/') + 1 : NULL;
		if (!name)
			continue;
		fleet_key_print(settings, key, "all/quota/%s", name);
		if (etcd_pair_find(&view->quotas, key))
			continue;
		if (!inside++)
			etcd_change_begin(&change);
		etcd_change_if(&change, key, 0);
		etcd_change_if(&change, pairs->pair[i].key, pairs->pair[i].modified);
		etcd_change_delete(&change, pairs->pair[i].key);
	}
	return inside ? etcd_change_commit(etcd, &change, NULL, problem) : 0;
}

/* 1: another divider was faster; the next round sees what it did. */
static int view_divide(struct etcd *etcd, const struct fleet_settings *settings,
		       const struct log *log, const struct divider_view *view,
		       char problem[PROBLEM_SIZE])
{
	int result = 0;

	for (size_t i = 0; i < view->quotas.count && result >= 0; i++) {
		const struct etcd_pair *pair = &view->quotas.pair[i];
		struct fleet_quota quota;
		struct quota_work work = {
			.etcd = etcd, .settings = settings, .quota = &quota
		};

		if (!fleet_quota_read(fleet_key_rest(settings, pair->key, "all/quota/"),
				      pair->value, &quota))
			continue;
		result = quota_divide(&work, view, problem);
		/* Something that cannot be read stops its own quota only. */
		if (result == -EPROTO) {
			log_write(log, LOG_ERROR, "%s", problem);
			result = 0;
		}
		free(work.rows);
		free(work.hosts);
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
	etcd_pause(etcd);
	if (result == 0)
		result = view_divide(etcd, settings, log, &view, problem);
	if (result == 0)
		result = leftovers_delete(etcd, settings, &view.shares, "share/", &view, problem);
	if (result >= 0)
		result = leftovers_delete(etcd, settings, &view.ledgers, "ledger/", &view, problem);
	view_free(&view);
	return result < 0 ? result : 0;
}
