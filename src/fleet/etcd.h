/* SPDX-License-Identifier: MIT */
/*
 * etcd, by the JSON gateway of its v3 interface: one call after the other, and beside them one stream
 * of changes (watch). Knows HTTP, endpoints and tokens, but nothing of policies. This and its
 * parts are the only code of the project that opens a network connection to etcd.
 *
 * What a server sends is bounded before it is understood: a call has a time limit, an answer and a
 * message of the stream at most ETCD_ANSWER_MOST bytes.
 */
#ifndef FLEET_ETCD_H
#define FLEET_ETCD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "fleet/settings.h"
#include "output/json.h"

enum {
	ETCD_ANSWER_MOST = 8 << 20,
	ETCD_KEY = 512,
	ETCD_CONNECT_MS = 1000,
	ETCD_CALL_MS = 3000,
	ETCD_PAGE = 500, /* keys of one answer */
	ETCD_KEYS_MOST = 200000, /* that one reading takes, */
	ETCD_BYTES_MOST = 64 << 20, /* and bytes of their values */
	ETCD_OPERATIONS = 100, /* of one transaction: etcd allows 128 */
};

struct etcd;

struct etcd *etcd_open(const struct fleet_settings *settings, const struct log *log);
void etcd_close(struct etcd *etcd);

/* One call, at each endpoint in turn until one answers. Takes the body's reference. 0, or -errno
 * with a sentence: -ENOTCONN: no endpoint has answered; -EPROTO: an answer that is not etcd's;
 * -EREMOTEIO: etcd has refused the call. */
int etcd_call(struct etcd *etcd, const char *path, json_t *body, json_t **ret_answer,
	      char problem[PROBLEM_SIZE]);

/* A function that is called between the pages of a reading, and by etcd_pause() between transactions:
 * a lease may have to be kept meanwhile. It may make calls, but no readings. */
void etcd_pause_set(struct etcd *etcd, void (*pause)(void *closure), void *closure);
void etcd_pause(struct etcd *etcd);

/* Numbers come as texts, and zeros not at all. */
uint64_t etcd_number(const json_t *object, const char *name);

/* ---- keys */

struct etcd_pair {
	char key[ETCD_KEY];
	char *value; /* with a NUL behind it */
	size_t length;
	uint64_t modified; /* revision */
};

struct etcd_pairs {
	struct etcd_pair *pair;
	size_t count;
	uint64_t revision; /* of which all of them are */
};

/* All keys that begin with PREFIX; with `whole`, only the key of that name. Keys that are too long for
 * us are left out. -E2BIG: there are too many. */
int etcd_read(struct etcd *etcd, const char *prefix, bool whole, struct etcd_pairs *ret_pairs,
	      char problem[PROBLEM_SIZE]);
/* As they were in a revision; 0: the present one. */
int etcd_read_at(struct etcd *etcd, const char *prefix, bool whole, uint64_t revision,
		 struct etcd_pairs *ret_pairs, char problem[PROBLEM_SIZE]);
void etcd_pairs_free(struct etcd_pairs *pairs);
const struct etcd_pair *etcd_pair_find(const struct etcd_pairs *pairs, const char *key);

/* A transaction: all of it if all comparisons hold. */
struct etcd_change {
	json_t *compare, *success;
};
void etcd_change_begin(struct etcd_change *change);
/* The key was last changed in that revision; 0: there is no such key. */
void etcd_change_if(struct etcd_change *change, const char *key, uint64_t modified);
/* lease 0: none */
void etcd_change_put(struct etcd_change *change, const char *key, const char *value, uint64_t lease);
void etcd_change_delete(struct etcd_change *change, const char *key);
/* 0 and the new revision; 1 if a comparison failed; -errno. Ends the change in any case. */
int etcd_change_commit(struct etcd *etcd, struct etcd_change *change, uint64_t *ret_revision,
		       char problem[PROBLEM_SIZE]);

/* ---- leases */

/* 0; -ESTALE if etcd does not know the lease any more. */
int etcd_lease_grant(struct etcd *etcd, uint64_t seconds, uint64_t *ret_lease, uint64_t *ret_seconds,
		     char problem[PROBLEM_SIZE]);
int etcd_lease_keep(struct etcd *etcd, uint64_t lease, uint64_t *ret_seconds,
		    char problem[PROBLEM_SIZE]);
void etcd_lease_revoke(struct etcd *etcd, uint64_t lease);

/* ---- the stream of changes */

typedef void etcd_watch_function(void *closure, const struct etcd_pair *pair, bool deleted);

/* Follows the keys that begin with these prefixes from a revision on. */
void etcd_watch(struct etcd *etcd, const char *const *prefixes, unsigned count, uint64_t revision);
void etcd_watch_end(struct etcd *etcd);

/*
 * Hands over changes that have come. 0; -errno with a sentence if the stream has ended: then the
 * keys must be read again. -ESTALE: etcd has forgotten (compacted) the revision.
 */
int etcd_watch_take(struct etcd *etcd, etcd_watch_function *each, void *closure,
		    char problem[PROBLEM_SIZE]);

/* Waits until something comes, at most so long. */
void etcd_wait(struct etcd *etcd, int milliseconds);

#endif
