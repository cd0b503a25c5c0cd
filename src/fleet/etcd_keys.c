/* SPDX-License-Identifier: MIT */
/* Keys, transactions and leases of etcd; see etcd.h. */
#include "fleet/etcd_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/base64.h"
#include "output/memory.h"

static void key_set(json_t *object, const char *name, const char *key, size_t length)
{
	char *text = base64_encode(key, length);

	json_object_set_new(object, name, memory_need(json_string(text)));
	free(text);
}

void etcd_key_set(json_t *object, const char *name, const char *key)
{
	key_set(object, name, key, strlen(key));
}

/* The last byte is a character of a name or a slash: the one behind it exists. */
void etcd_range_end_set(json_t *object, const char *prefix)
{
	char end[ETCD_KEY];

	snprintf(end, sizeof(end), "%s", prefix);
	end[strlen(end) - 1]++;
	etcd_key_set(object, "range_end", end);
}

static void number_set(json_t *object, const char *name, uint64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
	json_object_set_new(object, name, memory_need(json_string(text)));
}

bool etcd_pair_read(const json_t *kv, struct etcd_pair *ret_pair)
{
	const char *key = json_string_value(json_object_get(kv, "key"));
	const char *value = json_string_value(json_object_get(kv, "value"));
	size_t length = 0;
	char *text = key ? base64_decode(key, &length) : NULL;

	if (!text || length >= ETCD_KEY || strlen(text) != length) {
		free(text);
		return false;
	}
	snprintf(ret_pair->key, sizeof(ret_pair->key), "%s", text);
	free(text);
	ret_pair->value = base64_decode(value ? value : "", &ret_pair->length);
	ret_pair->modified = etcd_number(kv, "mod_revision");
	return ret_pair->value != NULL;
}

void etcd_pairs_free(struct etcd_pairs *pairs)
{
	for (size_t i = 0; i < pairs->count; i++)
		free(pairs->pair[i].value);
	free(pairs->pair);
	*pairs = (struct etcd_pairs){ .pair = NULL };
}

const struct etcd_pair *etcd_pair_find(const struct etcd_pairs *pairs, const char *key)
{
	size_t low = 0, high = pairs->count;

	while (low < high) {
		size_t middle = (low + high) / 2;
		int order = strcmp(key, pairs->pair[middle].key);

		if (order == 0)
			return &pairs->pair[middle];
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

/* The next page. 1 if there are more; -errno. */
static int page_read(struct etcd *etcd, const char *prefix, bool whole, struct etcd_pairs *pairs,
		     char problem[PROBLEM_SIZE])
{
	json_t *body = memory_need(json_object()), *answer, *kvs, *kv;
	size_t index;
	int result;

	if (pairs->count) /* behind the last one: its NUL counts */
		key_set(body, "key", pairs->pair[pairs->count - 1].key,
			strlen(pairs->pair[pairs->count - 1].key) + 1);
	else
		etcd_key_set(body, "key", prefix);
	if (!whole)
		etcd_range_end_set(body, prefix);
	number_set(body, "limit", ETCD_PAGE);
	if (pairs->revision)
		number_set(body, "revision", pairs->revision);
	result = etcd_call(etcd, "/v3/kv/range", body, &answer, problem);
	if (result < 0)
		return result;
	if (!pairs->revision)
		pairs->revision = etcd_number(json_object_get(answer, "header"), "revision");
	kvs = json_object_get(answer, "kvs");
	result = json_is_true(json_object_get(answer, "more")) && json_array_size(kvs);
	pairs->pair = memory_need(realloc(pairs->pair, (pairs->count + json_array_size(kvs) + 1) *
							       sizeof(*pairs->pair)));
	json_array_foreach(kvs, index, kv)
		if (etcd_pair_read(kv, &pairs->pair[pairs->count]))
			pairs->count++;
		else
			result = problem_set(-EPROTO, problem, "the server sent an invalid key");
	if (result >= 0 && !pairs->revision)
		result = problem_set(-EPROTO, problem, "the server sent no revision");
	json_decref(answer);
	return result;
}

int etcd_read(struct etcd *etcd, const char *prefix, bool whole, struct etcd_pairs *ret_pairs,
	      char problem[PROBLEM_SIZE])
{
	struct etcd_pairs pairs = { .pair = NULL };
	int result;

	while ((result = page_read(etcd, prefix, whole, &pairs, problem)) == 1)
		;
	if (result < 0)
		etcd_pairs_free(&pairs);
	else
		*ret_pairs = pairs;
	return result;
}

/* ---- transactions */

void etcd_change_begin(struct etcd_change *change)
{
	change->compare = memory_need(json_array());
	change->success = memory_need(json_array());
}

void etcd_change_if(struct etcd_change *change, const char *key, uint64_t modified)
{
	json_t *one = memory_need(json_pack("{s:s,s:s}", "result", "EQUAL", "target",
					    modified ? "MOD" : "CREATE"));

	etcd_key_set(one, "key", key);
	number_set(one, modified ? "mod_revision" : "create_revision", modified);
	json_array_append_new(change->compare, one);
}

void etcd_change_put(struct etcd_change *change, const char *key, const char *value, uint64_t lease)
{
	json_t *one = memory_need(json_object());

	etcd_key_set(one, "key", key);
	etcd_key_set(one, "value", value);
	if (lease)
		number_set(one, "lease", lease);
	json_array_append_new(change->success,
			      memory_need(json_pack("{s:o}", "request_put", one)));
}

void etcd_change_delete(struct etcd_change *change, const char *key)
{
	json_t *one = memory_need(json_object());

	etcd_key_set(one, "key", key);
	json_array_append_new(change->success,
			      memory_need(json_pack("{s:o}", "request_delete_range", one)));
}

int etcd_change_commit(struct etcd *etcd, struct etcd_change *change, uint64_t *ret_revision,
		       char problem[PROBLEM_SIZE])
{
	json_t *body = memory_need(json_pack("{s:o,s:o}", "compare", change->compare, "success",
					     change->success));
	json_t *answer;
	int result = etcd_call(etcd, "/v3/kv/txn", body, &answer, problem);

	*change = (struct etcd_change){ .compare = NULL };
	if (result < 0)
		return result;
	result = !json_is_true(json_object_get(answer, "succeeded"));
	if (result == 0 && ret_revision)
		*ret_revision = etcd_number(json_object_get(answer, "header"), "revision");
	json_decref(answer);
	return result;
}

/* ---- leases */

int etcd_lease_grant(struct etcd *etcd, uint64_t seconds, uint64_t *ret_lease, uint64_t *ret_seconds,
		     char problem[PROBLEM_SIZE])
{
	json_t *body = memory_need(json_object()), *answer;
	int result;

	number_set(body, "TTL", seconds);
	result = etcd_call(etcd, "/v3/lease/grant", body, &answer, problem);
	if (result < 0)
		return result;
	*ret_lease = etcd_number(answer, "ID");
	*ret_seconds = etcd_number(answer, "TTL");
	json_decref(answer);
	return *ret_lease && *ret_seconds ?
		       0 :
		       problem_set(-EPROTO, problem, "the server granted no lease");
}

int etcd_lease_keep(struct etcd *etcd, uint64_t lease, uint64_t *ret_seconds,
		    char problem[PROBLEM_SIZE])
{
	json_t *body = memory_need(json_object()), *answer;
	int result;

	number_set(body, "ID", lease);
	result = etcd_call(etcd, "/v3/lease/keepalive", body, &answer, problem);
	if (result < 0)
		return result;
	*ret_seconds = etcd_number(json_object_get(answer, "result"), "TTL");
	json_decref(answer);
	return *ret_seconds ? 0 : problem_set(-ESTALE, problem, "the lease has ended");
}

void etcd_lease_revoke(struct etcd *etcd, uint64_t lease)
{
	json_t *body = memory_need(json_object()), *answer;
	char problem[PROBLEM_SIZE];

	number_set(body, "ID", lease);
	if (etcd_call(etcd, "/v3/lease/revoke", body, &answer, problem) == 0)
		json_decref(answer);
}
