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

int etcd_pair_read(const json_t *kv, struct etcd_pair *ret_pair)
{
	const char *key = json_string_value(json_object_get(kv, "key"));
	const char *value = json_string_value(json_object_get(kv, "value"));
	struct etcd_pair pair = { .modified = etcd_number(kv, "mod_revision") };
	size_t length = 0;
	char *text = key ? base64_decode(key, &length) : NULL;

	if (!text)
		return -EPROTO;
	if (length >= ETCD_KEY || strlen(text) != length) {
		free(text);
		return 1;
	}
	snprintf(pair.key, sizeof(pair.key), "%s", text);
	free(text);
	pair.value = base64_decode(value ? value : "", &pair.length);
	if (!pair.value)
		return -EPROTO;
	*ret_pair = pair;
	return 0;
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

/* Where a reading is. */
struct pages {
	struct etcd *etcd;
	const char *prefix;
	bool whole;
	unsigned limit;	 /* keys of the next page */
	size_t bytes;	 /* of values so far */
	char *next;	 /* the last key that came, as base64; NULL: none */
	struct etcd_pairs pairs;
};

static json_t *page_request(const struct pages *pages)
{
	json_t *body = memory_need(json_object());
	size_t length;
	char *key;

	if (pages->next) {
		/* Behind the last one: its NUL counts. */
		key = memory_need(base64_decode(pages->next, &length));
		key_set(body, "key", key, length + 1);
		free(key);
	} else {
		etcd_key_set(body, "key", pages->prefix);
	}
	if (!pages->whole)
		etcd_range_end_set(body, pages->prefix);
	number_set(body, "limit", pages->limit);
	if (pages->pairs.revision)
		number_set(body, "revision", pages->pairs.revision);
	return body;
}

static int page_take(struct pages *pages, const json_t *kvs, char problem[PROBLEM_SIZE])
{
	struct etcd_pairs *pairs = &pages->pairs;
	const json_t *kv;
	size_t index;

	if (pairs->count + json_array_size(kvs) > ETCD_KEYS_MOST)
		return problem_set(-E2BIG, problem, "%.200s: too many keys: expected at most %d",
				   pages->prefix, ETCD_KEYS_MOST);
	pairs->pair = memory_need(realloc(pairs->pair, (pairs->count + json_array_size(kvs) + 1) *
							       sizeof(*pairs->pair)));
	json_array_foreach((json_t *)kvs, index, kv) {
		const char *key = json_string_value(json_object_get(kv, "key"));
		int result = etcd_pair_read(kv, &pairs->pair[pairs->count]);

		if (result < 0 || !key)
			return problem_set(-EPROTO, problem, "the server sent an invalid key");
		free(pages->next);
		pages->next = memory_need(strdup(key));
		if (result == 1)
			continue;
		pages->bytes += pairs->pair[pairs->count++].length;
		if (pages->bytes > ETCD_BYTES_MOST)
			return problem_set(-E2BIG, problem,
					   "%.200s: values too large: expected at most %d bytes together",
					   pages->prefix, ETCD_BYTES_MOST);
	}
	return 0;
}

/* The next page. 1 if there are more; -errno. */
static int page_read(struct pages *pages, char problem[PROBLEM_SIZE])
{
	json_t *answer;
	const json_t *kvs;
	int result = etcd_call(pages->etcd, "/v3/kv/range", page_request(pages), &answer, problem);

	/* Values may be so large that a page of them is more than one answer may have. */
	if (result == -EFBIG && pages->limit > 1) {
		pages->limit /= 8;
		pages->limit += !pages->limit;
		return 1;
	}
	if (result < 0)
		return result;
	if (!pages->pairs.revision)
		pages->pairs.revision = etcd_number(json_object_get(answer, "header"), "revision");
	kvs = json_object_get(answer, "kvs");
	result = page_take(pages, kvs, problem);
	if (result == 0 && !pages->pairs.revision)
		result = problem_set(-EPROTO, problem, "the server sent no revision");
	if (result == 0)
		result = json_is_true(json_object_get(answer, "more")) && json_array_size(kvs);
	json_decref(answer);
	return result;
}

int etcd_read_at(struct etcd *etcd, const char *prefix, bool whole, uint64_t revision,
		 struct etcd_pairs *ret_pairs, char problem[PROBLEM_SIZE])
{
	struct pages pages = { .etcd = etcd, .prefix = prefix, .whole = whole, .limit = ETCD_PAGE };
	int result;

	pages.pairs.revision = revision;
	while ((result = page_read(&pages, problem)) == 1)
		etcd_pause(etcd);
	free(pages.next);
	if (result < 0)
		etcd_pairs_free(&pages.pairs);
	else
		*ret_pairs = pages.pairs;
	return result;
}

int etcd_read(struct etcd *etcd, const char *prefix, bool whole, struct etcd_pairs *ret_pairs,
	      char problem[PROBLEM_SIZE])
{
	return etcd_read_at(etcd, prefix, whole, 0, ret_pairs, problem);
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
