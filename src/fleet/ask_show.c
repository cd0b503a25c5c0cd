/* SPDX-License-Identifier: MIT */
/* status and tenants: what hosts have reported, and the state of quotas; see ask.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/translation.h"
#include "fleet/ask.h"
#include "fleet/edit.h"
#include "fleet/records.h"
#include "output/form.h"
#include "output/memory.h"
#include "output/page.h"

struct shown_host {
	char host[256];
	uint32_t alive;
	char policy[24]; /* "current", "behind" or "refused" */
	uint64_t in_force;
	char collector[NAME_SIZE];
	uint32_t processes, uncovered;
	uint64_t time_ns;
	char problem[PROBLEM_SIZE];
};

static const struct column host_columns[] = {
	COLUMN(struct shown_host, host, "host", N_("HOST"), form_text),
	COLUMN(struct shown_host, alive, "alive", N_("ALIVE"), form_flag),
	COLUMN(struct shown_host, policy, "policy", N_("POLICY"), form_text),
	COLUMN(struct shown_host, in_force, "revision", NULL, form_count),
	COLUMN(struct shown_host, collector, "collector", N_("COLLECTOR"), form_text),
	COLUMN(struct shown_host, processes, "processes", N_("PROCS"), form_number),
	COLUMN(struct shown_host, uncovered, "uncovered", N_("UNCOVERED"), form_number),
	COLUMN(struct shown_host, time_ns, "reported", N_("REPORTED"), form_time),
	COLUMN(struct shown_host, problem, "problem", N_("PROBLEM"), form_text_or_blank,
	       .flows = true),
	COLUMNS_END,
};

struct shown_quota {
	char tenant[NAME_SIZE];
	const char *kind;
	uint64_t quota, shared, free, held, guarantee;
	uint32_t hosts;
	char author[256];
};

static const struct column quota_columns[] = {
	COLUMN(struct shown_quota, tenant, "tenant", N_("TENANT"), form_text),
	COLUMN(struct shown_quota, kind, "kind", N_("KIND"), form_string),
	COLUMN(struct shown_quota, quota, "quota", N_("QUOTA"), form_count),
	COLUMN(struct shown_quota, shared, "shared", N_("HANDED OUT"), form_count),
	COLUMN(struct shown_quota, held, "held", N_("HELD"), form_count),
	COLUMN(struct shown_quota, guarantee, "guarantee", N_("EACH HOST"), form_count),
	COLUMN(struct shown_quota, hosts, "hosts", N_("HOSTS"), form_number),
	COLUMN(struct shown_quota, author, "author", N_("CHANGED BY"), form_text),
	COLUMNS_END,
};

struct shown_tenant {
	char tenant[NAME_SIZE];
	uint32_t hosts, processes;
	uint64_t used[KIND_COUNT];
	char usage[256];
};

static const struct column tenant_columns[] = {
	COLUMN(struct shown_tenant, tenant, "tenant", N_("TENANT"), form_text),
	COLUMN(struct shown_tenant, hosts, "hosts", N_("HOSTS"), form_number),
	COLUMN(struct shown_tenant, processes, "processes", N_("PROCS"), form_number),
	COLUMN(struct shown_tenant, usage, "used", N_("USED"), form_text, .flows = true),
	COLUMNS_END,
};

/* ---- reading */

struct fleet_view {
	struct etcd_pairs reports, alive, all, shares, divider;
};

static void fleet_view_free(struct fleet_view *view)
{
	etcd_pairs_free(&view->reports);
	etcd_pairs_free(&view->alive);
	etcd_pairs_free(&view->all);
	etcd_pairs_free(&view->shares);
	etcd_pairs_free(&view->divider);
}

static int fleet_view_read(struct ask *ask, struct fleet_view *view)
{
	struct {
		const char *under;
		bool whole;
		struct etcd_pairs *pairs;
	} parts[] = {
		{ "report/", false, &view->reports }, { "alive/", false, &view->alive },
		{ "all/", false, &view->all },	      { "share/", false, &view->shares },
		{ "divider", true, &view->divider },
	};
	char key[ETCD_KEY], problem[PROBLEM_SIZE];

	for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		int result;

		fleet_key_print(ask->settings, key, "%s", parts[i].under);
		result = etcd_read(ask->etcd, key, parts[i].whole, parts[i].pairs, problem);
		if (result < 0) {
			fleet_view_free(view);
			return ask_fail_etcd(ask, result, problem);
		}
	}
	return 0;
}

static const struct etcd_pair *policy_pair(const struct ask *ask, const struct fleet_view *view)
{
	char key[ETCD_KEY];

	fleet_key_print(ask->settings, key, "all/policy");
	return etcd_pair_find(&view->all, key);
}

/* ---- status */

static const char *text_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

static void host_show(struct shown_host *shown, const json_t *report, uint64_t policy)
{
	const json_t *collector = json_object_get(report, "collector");
	const json_t *told = json_object_get(report, "policy");
	uint64_t revision = etcd_number(told, "revision");
	const json_t *share;
	const char *name;

	shown->in_force = etcd_number(told, "in_force");
	strcpy(shown->policy, *text_of(told, "problem") ? "refused" :
			      revision == policy	? "current" :
							  "behind");
	snprintf(shown->collector, sizeof(shown->collector), "%s",
		 json_is_true(json_object_get(collector, "answers")) ? text_of(collector, "version") :
								       "");
	shown->processes = (uint32_t)etcd_number(collector, "processes");
	shown->uncovered = (uint32_t)etcd_number(collector, "uncovered");
	shown->time_ns = etcd_number(report, "time") * 1000000000u;
	snprintf(shown->problem, sizeof(shown->problem), "%s",
		 *text_of(told, "problem") ? text_of(told, "problem") : text_of(collector, "problem"));
	json_object_foreach(json_object_get(report, "shares"), name, share)
		if (!shown->problem[0] && json_is_true(json_object_get(share, "overridden")))
			snprintf(shown->problem, sizeof(shown->problem),
				 "%s: the limit on this host is higher than its share", name);
}

static struct list hosts_collect(const struct ask *ask, const struct fleet_view *view)
{
	struct list hosts = { .size = sizeof(struct shown_host) };
	const struct etcd_pair *policy = policy_pair(ask, view);

	for (size_t i = 0; i < view->reports.count; i++) {
		const struct etcd_pair *pair = &view->reports.pair[i];
		const char *name = fleet_key_rest(ask->settings, pair->key, "report/");
		struct shown_host *shown = list_add(&hosts);
		json_error_t error;
		json_t *report = json_loads(pair->value, 0, &error);
		char key[ETCD_KEY];

		snprintf(shown->host, sizeof(shown->host), "%s", name);
		fleet_key_print(ask->settings, key, "alive/%s", name);
		shown->alive = etcd_pair_find(&view->alive, key) != NULL;
		host_show(shown, report, policy ? policy->modified : 0);
		json_decref(report);
	}
	return hosts;
}

static uint64_t held_by(const struct ask *ask, const struct fleet_view *view, const char *host,
			const char *quota)
{
	char key[ETCD_KEY];
	const struct etcd_pair *pair;
	json_error_t error;
	json_t *report;
	uint64_t held;

	fleet_key_print(ask->settings, key, "report/%s", host);
	pair = etcd_pair_find(&view->reports, key);
	report = pair ? json_loads(pair->value, 0, &error) : NULL;
	held = etcd_number(json_object_get(json_object_get(report, "shares"), quota), "held");
	json_decref(report);
	return held;
}

static void quota_show(const struct ask *ask, const struct fleet_view *view, const char *name,
		       struct shown_quota *shown)
{
	for (size_t i = 0; i < view->shares.count; i++) {
		const struct etcd_pair *pair = &view->shares.pair[i];
		char host[256];
		const char *rest = fleet_key_rest(ask->settings, pair->key, "share/");
		const char *slash = strchr(rest, '/');
		struct fleet_record record;

		if (!slash || strcmp(slash + 1, name) || !fleet_record_read(pair->value, &record))
			continue;
		snprintf(host, sizeof(host), "%.*s", (int)(slash - rest), rest);
		shown->hosts++;
		shown->shared += record.share;
		shown->held += held_by(ask, view, host, name);
	}
	shown->free = shown->quota > shown->shared ? shown->quota - shown->shared : 0;
}

static struct list quotas_collect(const struct ask *ask, const struct fleet_view *view)
{
	struct list quotas = { .size = sizeof(struct shown_quota) };

	for (size_t i = 0; i < view->all.count; i++) {
		const struct etcd_pair *pair = &view->all.pair[i];
		const char *name = fleet_key_rest(ask->settings, pair->key, "all/quota/");
		struct fleet_quota quota;
		struct shown_quota *shown;
		json_error_t error;
		json_t *document;

		if (!name || !fleet_quota_read(name, pair->value, &quota))
			continue;
		shown = list_add(&quotas);
		snprintf(shown->tenant, sizeof(shown->tenant), "%s", quota.tenant);
		shown->kind = kind_rows[quota.kind].name;
		shown->quota = quota.amount;
		shown->guarantee = quota.guarantee;
		document = json_loads(pair->value, 0, &error);
		snprintf(shown->author, sizeof(shown->author), "%s", text_of(document, "author"));
		json_decref(document);
		quota_show(ask, view, name, shown);
	}
	return quotas;
}

static void ask_page_begin(struct page *page, const struct ask *ask)
{
	static const struct screen screen = { .width = 0 };

	page_open(page, &screen, ask->json);
}

int ask_status(struct ask *ask)
{
	struct fleet_view view = { .all = { .pair = NULL } };
	const struct etcd_pair *policy;
	struct list hosts, quotas;
	struct page page;
	char signature[256] = "";
	int result = fleet_view_read(ask, &view);

	if (result)
		return result;
	policy = policy_pair(ask, &view);
	if (policy)
		fleet_text_signature(policy->value, signature);
	hosts = hosts_collect(ask, &view);
	quotas = quotas_collect(ask, &view);
	ask_page_begin(&page, ask);
	if (!policy)
		page_sentence(&page, NULL, "the fleet has no policy");
	else if (signature[0])
		page_sentence(&page, NULL, "policy of revision %" PRIu64 ", changed by %s",
			      policy->modified, signature);
	else
		page_sentence(&page, NULL, "policy of revision %" PRIu64, policy->modified);
	if (view.divider.count)
		page_sentence(&page, NULL, "quotas are divided by %s", view.divider.pair[0].value);
	page_json(&page, "revision", form_json_number(policy ? policy->modified : 0));
	page_json(&page, "changed_by", form_json_text(signature));
	page_json(&page, "divider",
		  form_json_text(view.divider.count ? view.divider.pair[0].value : ""));
	page_table(&page, "hosts", host_columns, &hosts);
	page_table(&page, "quotas", quota_columns, &quotas);
	free(hosts.row);
	free(quotas.row);
	fleet_view_free(&view);
	return page_end(&page);
}

/* ---- tenants */

static struct shown_tenant *shown_tenant_find(struct list *tenants, const char *name)
{
	struct shown_tenant *shown;

	for (size_t i = 0; i < tenants->count; i++) {
		shown = list_at(tenants, i);
		if (!strcmp(shown->tenant, name))
			return shown;
	}
	shown = list_add(tenants);
	snprintf(shown->tenant, sizeof(shown->tenant), "%s", name);
	return shown;
}

static void tenants_add(struct list *tenants, const json_t *report)
{
	json_t *of_host = json_object_get(report, "tenants"), *one;
	const char *name;

	json_object_foreach(of_host, name, one) {
		struct shown_tenant *shown = shown_tenant_find(tenants, name);
		const json_t *used = json_object_get(one, "used");

		shown->hosts++;
		shown->processes += (uint32_t)etcd_number(one, "processes");
		for (unsigned kind = 0; kind < KIND_COUNT; kind++)
			shown->used[kind] += etcd_number(used, kind_rows[kind].name);
	}
}

static void usage_print(struct shown_tenant *shown)
{
	size_t length = 0;

	for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
		const struct kind_row *row = &kind_rows[kind];
		char text[BYTES_TEXT];

		if (!shown->used[kind] || length >= sizeof(shown->usage))
			continue;
		if (row->unit == UNIT_BYTES)
			bytes_text(shown->used[kind], text);
		else
			snprintf(text, sizeof(text), "%" PRIu64, shown->used[kind]);
		length += (size_t)snprintf(shown->usage + length, sizeof(shown->usage) - length,
					   "%s%s=%s", length ? " " : "", row->name, text);
	}
}

int ask_tenants(struct ask *ask)
{
	struct list tenants = { .size = sizeof(struct shown_tenant) }, quotas;
	struct fleet_view view = { .all = { .pair = NULL } };
	struct page page;
	int result = fleet_view_read(ask, &view);

	if (result)
		return result;
	for (size_t i = 0; i < view.reports.count; i++) {
		json_error_t error;
		json_t *report = json_loads(view.reports.pair[i].value, 0, &error);

		tenants_add(&tenants, report);
		json_decref(report);
	}
	for (size_t i = 0; i < tenants.count; i++)
		usage_print(list_at(&tenants, i));
	quotas = quotas_collect(ask, &view);
	ask_page_begin(&page, ask);
	page_table(&page, "tenants", tenant_columns, &tenants);
	page_table(&page, "quotas", quota_columns, &quotas);
	free(tenants.row);
	free(quotas.row);
	fleet_view_free(&view);
	return page_end(&page);
}
