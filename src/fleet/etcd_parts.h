/* SPDX-License-Identifier: MIT */
/* What the files of etcd.h share. */
#ifndef FLEET_ETCD_PARTS_H
#define FLEET_ETCD_PARTS_H

#include <curl/curl.h>

#include "fleet/etcd.h"

struct etcd_text {
	char *text;
	size_t length;
	bool is_full;
};

struct etcd {
	const struct fleet_settings *settings;
	const struct log *log;
	CURLM *multi;
	unsigned endpoint; /* that has answered last */
	unsigned watched;  /* the endpoint of the stream */
	char token[FLEET_VALUE + sizeof("Authorization: ")];
	void (*pause)(void *closure);
	void *pause_closure;
	CURL *call; /* kept, so that connections are */
	CURL *watch;
	struct curl_slist *watch_headers;
	char *watch_body;
	struct etcd_text stream;
	CURLcode watch_result;
	bool watch_ended;
	char error[CURL_ERROR_SIZE], watch_error[CURL_ERROR_SIZE];
};

/* Adds what has come; for CURLOPT_WRITEFUNCTION. */
size_t etcd_text_add(char *data, size_t size, size_t count, void *closure);

/* What all requests have in common; the headers must be freed behind it. */
struct curl_slist *etcd_request_prepare(struct etcd *etcd, CURL *curl, unsigned endpoint,
					const char *path, const char *body);

/* Carries on what is under way. */
void etcd_step(struct etcd *etcd);

/* A key of a JSON object in base64. */
void etcd_key_set(json_t *object, const char *name, const char *key);
/* The end of the keys that begin with a prefix. */
void etcd_range_end_set(json_t *object, const char *prefix);
/* One pair of an answer, whose value is new memory. 1: a key that no key of ours can be, by its length
 * or a NUL; -EPROTO. */
int etcd_pair_read(const json_t *kv, struct etcd_pair *ret_pair);

#endif
