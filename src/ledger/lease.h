/* SPDX-License-Identifier: MIT */
/*
 * What the files of the lease share; private to the room. A process lives with a collector in
 * one of two ways: by lease (lease.c), or, where memory cannot be shared, by a question at each
 * operation (socket.c). Both ask by grow_request.c and join by lease_join.c.
 */
#ifndef LEDGER_LEASE_H
#define LEDGER_LEASE_H

#include <assert.h>
#include <sys/stat.h>

#include "ledger/backing.h"
#include "ledger/leaselayout.h"
#include "proto/client.h"

enum {
	LEASE_PATIENCE_MS = 1000, /* for a collector that is being started again */
	LEASE_NEAR_ROWS = 256, /* of the table, which stay mapped: most processes need no other */
};

/* ---- lease.c */

/* The caps of a device on which there is no lease yet. */
extern const uint64_t lease_no_cap[KINDS_COUNTED];

extern const struct ledger_backing lease_backing, socket_backing;

/* What we hold of the kind i of a cost, with what we want. */
uint64_t lease_total(const struct ledger_lease *lease, unsigned device, const struct cost *cost,
		     unsigned i);

/* Without a look at the cap. */
void lease_add(struct ledger_lease *lease, unsigned device, const struct cost *cost);

static inline void lease_give_back(uint64_t *used, const struct cost *cost, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		uint64_t before = __atomic_fetch_sub(&used[cost->kind[i]], cost->amount[i],
						     __ATOMIC_SEQ_CST);

		assert(before >= cost->amount[i]);
		(void)before;
	}
}

/* What the two ways have in common. */
int lease_release_dead(struct ledger *ledger);
void lease_defer(struct ledger *ledger, unsigned device, const struct cost *cost);
uint64_t lease_used(struct ledger *ledger, enum kind kind);
const char *lease_tenant(const struct ledger *ledger);
enum mode lease_mode(const struct ledger *ledger);
void lease_close(struct ledger *ledger);

/* The two ways differ in how they charge and refund. */
#define LEASE_BACKING(way, charger, refunder)                                                      \
	{                                                                                          \
		.transport = way, .charge = charger, .refund = refunder,                           \
		.release_dead = lease_release_dead, .defer = lease_defer, .used = lease_used,      \
		.device = lease_device, .device_name = lease_device_name, .tenant = lease_tenant,  \
		.mode = lease_mode, .close = lease_close,                                          \
	}

/* ---- lease_devices.c */

int lease_device(struct ledger *ledger, const char *name);
const char *lease_device_name(const struct ledger *ledger, unsigned device);
unsigned lease_devices(void);

/* The environment's limits of a device. */
void lease_device_limits(const struct ledger *ledger, unsigned device, uint64_t *ret_limit);

/* ---- grow_request.c: one question to the collector, under the lock `asking` */

/* The number is on the page before anybody can answer, and what is given stays ours as long as
 * it is there: otherwise others could take it back before we have it, again and again. */
void grow_request_begin(struct ledger *ledger, unsigned device, const struct cost *cost,
			unsigned flags, struct proto_grow_request *ret);

/* The reply's status, or -errno. ret_obstacle: why the collector cannot be asked, or NULL. */
int grow_request_send(struct ledger *ledger, struct proto_grow_request *request,
		      struct proto_grow_reply *ret_reply, const char **ret_obstacle);

/* What was given is taken, or there was nothing: after the additions to `used`, since the
 * collector looks at this first. */
void grow_request_end(struct ledger *ledger);

/* Nobody answers for us: LEDGER_UNANSWERED, with what we hold and would like to. */
int grow_request_unanswered(const struct proto_grow_request *request, int error, const char *obstacle,
			    struct ledger_refusal *ret);

/* The limit in the way, of a reply with that status. */
void grow_reply_describe(const struct ledger *ledger, const struct proto_grow_reply *reply,
			 int status, struct ledger_refusal *ret);

/* ---- lease_join.c: descriptors that stay are known by what they lead to */

struct ledger_place descriptor_place(const struct stat *status);
bool descriptor_is_at(const struct ledger_place *place, const struct stat *status);

/* ---- past.c */

/* The process that joined last: this one and, in a child of it, its parent. */
void past_remember(struct usage_page *usage, int fd);

#endif
