/* SPDX-License-Identifier: MIT */
/*
 * limit, quota, policy and forget: changes of what the fleet has in etcd. Each reads a key, changes its
 * text and writes it only if nobody has changed the key meanwhile; otherwise it begins again. So of
 * two changes at once none is lost.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "fleet/ask.h"
#include "fleet/directory.h"
#include "fleet/edit.h"
#include "fleet/records.h"
#include "output/form.h"
#include "output/memory.h"
#include "output/page.h"
#include "policy/keys.h"
#include "policy/policy.h"

enum { TRIES_MOST = 100 };

static int change_page_end(const struct ask *ask, const char *key, uint64_t revision)
{
	static const struct screen screen = { .width = 0 };
	struct page page;

	page_open(&page, &screen, ask->json);
	page_sentence(&page, NULL, "%s: changed, revision %llu", key, (unsigned long long)revision);
	page_json(&page, "key", form_json_text(key));
	page_json(&page, "revision", form_json_number(revision));
	return page_end(&page);
}

/* The same text with the change in it, as new memory; NULL with an exit status. */
typedef char *text_change_function(struct ask *ask, const char *text, int *ret_status);

/* Compare and swap. */
static int key_change(struct ask *ask, const char *key, text_change_function *change)
{
	char problem[PROBLEM_SIZE];
	int result = 1;

	for (unsigned i = 0; i < TRIES_MOST && result == 1; i++) {
		struct etcd_change swap;
		struct etcd_pairs pairs;
		uint64_t revision;
		int status = ASK_WRONG;
		char *text;

		result = etcd_read(ask->etcd, key, true, &pairs, problem);
		if (result < 0)
			break;
		text = change(ask, pairs.count ? pairs.pair[0].value : "", &status);
		if (!text) {
			etcd_pairs_free(&pairs);
			return status;
		}
		etcd_change_begin(&swap);
		etcd_change_if(&swap, key, pairs.count ? pairs.pair[0].modified : 0);
		if (*text)
			etcd_change_put(&swap, key, text, 0);
		else
			etcd_change_delete(&swap, key);
		result = etcd_change_commit(ask->etcd, &swap, &revision, problem);
		free(text);
		etcd_pairs_free(&pairs);
		if (result == 0)
			return change_page_end(ask, key, revision);
	}
	if (result == 1)
		return ask_fail(ask, ASK_WRONG, "%s: others change it all the time: try again", key);
	return ask_fail_etcd(ask, result, problem);
}

/* ---- limit, policy */

static char *operands_join(const struct ask *ask)
{
	char *text = NULL;
	size_t size;
	FILE *file = memory_need(open_memstream(&text, &size));

	for (unsigned i = 0; i < ask->count; i++)
		fprintf(file, "%s%s", i ? " " : "", ask->operand[i]);
	fclose(file);
	return memory_need(text);
}

/* Signs and checks a text, which it takes over. */
static char *policy_finish(struct ask *ask, char *text, const char *what, int *ret_status)
{
	char author[PROBLEM_SIZE], problem[PROBLEM_SIZE], directory[] = "/tmp/rdma_fleet.XXXXXX";
	char *signed_text;
	int result;

	fleet_author_print(author);
	signed_text = fleet_text_sign(text, author, what);
	free(text);
	if (!mkdtemp(directory)) {
		*ret_status = ask_fail(ask, ASK_WRONG, "%s: %s", directory, strerror(errno));
		free(signed_text);
		return NULL;
	}
	result = fleet_policy_check(directory, signed_text, strlen(signed_text), problem);
	rmdir(directory);
	if (result == 0)
		return signed_text;
	*ret_status = ask_fail(ask, ASK_WRONG, "%s", problem);
	free(signed_text);
	return NULL;
}

/* "tenant ml qp=100 mr=unset" */
static char *limit_edit(struct ask *ask, const char *text, int *ret_status)
{
	bool of_tenant = !strcmp(ask->operand[0], "tenant");
	char section[2 * NAME_SIZE], *what = operands_join(ask), *edited, *next;
	unsigned first = of_tenant ? 2 : 1;

	snprintf(section, sizeof(section), of_tenant ? "tenant %.*s" : "%.*s", NAME_SIZE,
		 ask->operand[of_tenant]);
	edited = memory_need(strdup(text));
	for (unsigned i = first; i < ask->count; i++) {
		char *key = memory_need(strdup(ask->operand[i])), *value = key + strcspn(key, "=");

		if (*value)
			*value++ = '\0';
		next = fleet_text_set(edited, section, key, strcmp(value, "unset") ? value : NULL);
		free(edited);
		free(key);
		edited = next;
	}
	edited = policy_finish(ask, edited, what, ret_status);
	free(what);
	return edited;
}

static int policy_print_fleet(struct ask *ask, const char *key)
{
	static const struct screen screen = { .width = 0 };
	struct etcd_pairs pairs;
	char problem[PROBLEM_SIZE];
	struct page page;
	int result = etcd_read(ask->etcd, key, true, &pairs, problem);

	if (result < 0)
		return ask_fail_etcd(ask, result, problem);
	if (!pairs.count)
		return ask_fail(ask, ASK_WRONG, "the fleet has no policy");
	if (!ask->json) {
		fputs(pairs.pair[0].value, stdout);
		etcd_pairs_free(&pairs);
		return ASK_OK;
	}
	page_open(&page, &screen, true);
	page_json(&page, "revision", form_json_number(pairs.pair[0].modified));
	page_json(&page, "policy", form_json_text(pairs.pair[0].value));
	etcd_pairs_free(&pairs);
	return page_end(&page);
}

int ask_limit(struct ask *ask)
{
	char key[ETCD_KEY];
	bool of_tenant = ask->count && !strcmp(ask->operand[0], "tenant");

	fleet_key_print(ask->settings, key, "all/policy");
	if (!ask->count)
		return policy_print_fleet(ask, key);
	if (!of_tenant && strcmp(ask->operand[0], "host") && strcmp(ask->operand[0], "default"))
		return ask_fail(ask, ASK_USAGE,
				"limit: unknown section '%.64s': expected host, default or tenant NAME",
				ask->operand[0]);
	if (ask->count < (of_tenant ? 3 : 2))
		return ask_fail(ask, ASK_USAGE, "limit: missing argument: expected KEY=VALUE");
	for (unsigned i = of_tenant ? 2 : 1; i < ask->count; i++)
		if (!strchr(ask->operand[i], '=') || strchr(ask->operand[i], '\n'))
			return ask_fail(ask, ASK_USAGE,
					"limit: invalid argument '%.64s': expected KEY=VALUE",
					ask->operand[i]);
	return key_change(ask, key, limit_edit);
}

static char *policy_take_file(struct ask *ask, const char *text, int *ret_status)
{
	char *file = memory_need(malloc(POLICY_FILE_MOST + 1));
	ssize_t length = file_read_small(ask->operand[0], file, POLICY_FILE_MOST + 1);

	if (length < 0) {
		*ret_status = ask_fail(ask, ASK_WRONG, "%.300s: %s", ask->operand[0],
				       strerror((int)-length));
		free(file);
		return NULL;
	}
	return policy_finish(ask, file, ask->operand[0], ret_status);
}

int ask_policy(struct ask *ask)
{
	char key[ETCD_KEY];

	fleet_key_print(ask->settings, key, "all/policy");
	return ask->count ? key_change(ask, key, policy_take_file) : policy_print_fleet(ask, key);
}

/* ---- quota: "ml qp=10000 guarantee.qp=4", one key after the other */

struct quota_wish {
	unsigned kind;
	bool has_amount, has_guarantee, is_unset;
	uint64_t amount, guarantee;
};

/* What the present change sets; quota_edit has no other way to know. */
static struct quota_wish quota_wished;

static char *quota_edit(struct ask *ask, const char *text, int *ret_status)
{
	struct fleet_quota quota = { .kind = quota_wished.kind };
	char name[QUOTA_NAME], author[PROBLEM_SIZE];

	snprintf(quota.tenant, sizeof(quota.tenant), "%s", ask->operand[0]);
	quota_name_print(&quota, name);
	if (quota_wished.is_unset)
		return memory_need(strdup(""));
	if (!fleet_quota_read(name, text, &quota) && !quota_wished.has_amount) {
		*ret_status = ask_fail(ask, ASK_WRONG, "%s: there is no quota: expected %s=AMOUNT", name,
				       kind_rows[quota.kind].name);
		return NULL;
	}
	if (quota_wished.has_amount)
		quota.amount = quota_wished.amount;
	if (quota_wished.has_guarantee)
		quota.guarantee = quota_wished.guarantee;
	fleet_author_print(author);
	return fleet_quota_write(&quota, author);
}

static int quota_wish_read(struct ask *ask, const char *text, struct quota_wish *wish)
{
	static const char guarantee[] = "guarantee.";
	bool is_guarantee = !strncmp(text, guarantee, sizeof(guarantee) - 1);
	const char *name = is_guarantee ? text + sizeof(guarantee) - 1 : text;
	const char *equal = strchr(name, '=');
	int kind = equal ? kind_find(name, (size_t)(equal - name)) : -1;
	uint64_t amount = 0;

	if (kind < 0 || kind >= KIND_COUNT)
		return ask_fail(ask, ASK_USAGE,
				"quota: invalid argument '%.64s': expected KIND=AMOUNT or "
				"guarantee.KIND=AMOUNT",
				text);
	wish[kind].kind = (unsigned)kind;
	if (!is_guarantee && !strcmp(equal + 1, "unset")) {
		wish[kind].is_unset = true;
		return 0;
	}
	if (kind_amount_parse(kind, equal + 1, strlen(equal + 1), &amount) < 0 || amount > INT64_MAX)
		return ask_fail(ask, ASK_USAGE, "quota: invalid amount '%.64s': expected a number",
				equal + 1);
	if (is_guarantee) {
		wish[kind].has_guarantee = true;
		wish[kind].guarantee = amount;
	} else {
		wish[kind].has_amount = true;
		wish[kind].amount = amount;
	}
	return 0;
}

int ask_quota(struct ask *ask)
{
	struct quota_wish wish[KIND_COUNT] = { { .kind = 0 } };
	char key[ETCD_KEY];
	int result = 0;

	if (ask->count < 2)
		return ask->count ? ask_fail(ask, ASK_USAGE,
					     "quota: missing argument: expected TENANT KIND=AMOUNT") :
				    ask_tenants(ask);
	if (!policy_name_is_valid(ask->operand[0]))
		return ask_fail(ask, ASK_USAGE,
				"quota: invalid name of a tenant '%.64s': expected 1 to 63 of the "
				"characters A-Z a-z 0-9 _ . -",
				ask->operand[0]);
	for (unsigned i = 1; i < ask->count && !result; i++)
		result = quota_wish_read(ask, ask->operand[i], wish);
	for (unsigned kind = 0; kind < KIND_COUNT && !result; kind++) {
		quota_wished = wish[kind];
		if (!wish[kind].has_amount && !wish[kind].has_guarantee && !wish[kind].is_unset)
			continue;
		fleet_key_print(ask->settings, key, "all/quota/%s/%s", ask->operand[0],
				kind_rows[kind].name);
		result = key_change(ask, key, quota_edit);
	}
	return result;
}

/* ---- forget: the operator says that a host is gone for good */

/* Gives one share back to the ledger. 1: try again. */
static int record_forget(struct ask *ask, const struct etcd_pair *pair, const char *name,
			 char problem[PROBLEM_SIZE])
{
	struct etcd_pairs ledgers;
	struct etcd_change change;
	struct fleet_record record;
	char key[ETCD_KEY], *text;
	uint64_t quota = 0;
	int64_t free_part = 0;
	int result;

	fleet_key_print(ask->settings, key, "ledger/%s", name);
	result = etcd_read(ask->etcd, key, true, &ledgers, problem);
	if (result < 0)
		return result;
	etcd_change_begin(&change);
	etcd_change_if(&change, pair->key, pair->modified);
	etcd_change_delete(&change, pair->key);
	if (ledgers.count && fleet_ledger_read(ledgers.pair[0].value, &quota, &free_part) &&
	    fleet_record_read(pair->value, &record)) {
		etcd_change_if(&change, key, ledgers.pair[0].modified);
		text = fleet_ledger_write(quota, free_part + (int64_t)record.share);
		etcd_change_put(&change, key, text, 0);
		free(text);
	}
	etcd_pairs_free(&ledgers);
	fleet_key_print(ask->settings, key, "alive/%s", ask->operand[0]);
	etcd_change_if(&change, key, 0);
	return etcd_change_commit(ask->etcd, &change, NULL, problem);
}

/* All of its shares, and then its report. 1: something has changed meanwhile. */
static int host_forget(struct ask *ask, uint64_t *ret_revision, char problem[PROBLEM_SIZE])
{
	char key[ETCD_KEY], under[ETCD_KEY];
	struct etcd_change change;
	struct etcd_pairs pairs;
	int result;

	snprintf(under, sizeof(under), "share/%.255s/", ask->operand[0]);
	fleet_key_print(ask->settings, key, "%s", under);
	result = etcd_read(ask->etcd, key, false, &pairs, problem);
	if (result < 0)
		return result;
	for (size_t i = 0; i < pairs.count && result == 0; i++)
		result = record_forget(ask, &pairs.pair[i],
				       fleet_key_rest(ask->settings, pairs.pair[i].key, under),
				       problem);
	etcd_pairs_free(&pairs);
	if (result)
		return result;
	etcd_change_begin(&change);
	fleet_key_print(ask->settings, key, "alive/%s", ask->operand[0]);
	etcd_change_if(&change, key, 0);
	fleet_key_print(ask->settings, key, "report/%s", ask->operand[0]);
	etcd_change_delete(&change, key);
	return etcd_change_commit(ask->etcd, &change, ret_revision, problem);
}

int ask_forget(struct ask *ask)
{
	char key[ETCD_KEY], problem[PROBLEM_SIZE];
	uint64_t revision = 0;
	int result = 1;

	if (!ask->count)
		return ask_fail(ask, ASK_USAGE, "forget: missing argument: expected HOST");
	if (!fleet_host_is_valid(ask->operand[0], strlen(ask->operand[0])))
		return ask_fail(ask, ASK_USAGE, "forget: invalid name of a host '%.64s'",
				ask->operand[0]);
	for (unsigned i = 0; i < TRIES_MOST && result == 1; i++)
		result = host_forget(ask, &revision, problem);
	if (result == 1)
		return ask_fail(ask, ASK_WRONG,
				"host %s has a lease: stop its rdma_fleet, and wait until the lease has ended",
				ask->operand[0]);
	fleet_key_print(ask->settings, key, "report/%s", ask->operand[0]);
	return result < 0 ? ask_fail_etcd(ask, result, problem) : change_page_end(ask, key, revision);
}
