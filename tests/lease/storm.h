/* SPDX-License-Identifier: MIT */
/*
 * The storm of kills (storm.c) and its clients (stormclients.c): the limits and rates that the policy
 * sets, and what the clients hold and call by the count of the test, beside the ledger.
 */
#ifndef TESTS_LEASE_STORM_H
#define TESTS_LEASE_STORM_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/client.h"
#include "terms/kinds.h"
#include "terms/rates.h"

enum {
	CLIENTS = 24,
	TENANTS = 2,
	FIRST_UID = 61000, /* of the tenants, where we are root; otherwise there is one tenant */
	DEVICES = 2,
};

enum scope_number {
	HOST,
	ON_DEVICE,
	OF_TENANT = ON_DEVICE + DEVICES,
	LIMITED_SCOPES = OF_TENANT + TENANTS
};

extern uint64_t storm_limit[LIMITED_SCOPES][KIND_COUNT];
extern struct rate storm_rate[TENANTS]; /* of RATE_create_qp; per_second 0: the tenant has none */
extern unsigned storm_tenants;
extern const char *const storm_devices[DEVICES];
extern char storm_socket[PROTO_PATH];

/* Shared by all processes. */
extern struct tally {
	/* Counted after a charge and before a refund, so never too much. */
	int64_t held[LIMITED_SCOPES][KIND_COUNT];
	struct {
		int64_t share[DEVICES][KIND_COUNT];
	} client[CLIENTS];
	uint64_t calls[TENANTS]; /* of the rate, counted after they were allowed */
	uint64_t joins, charges, refusals, refunds, unanswered, throttled, excesses, faults;
	unsigned latest; /* the client that called the ledger last: likely to be inside it */
} * storm_tally;

void storm_count(uint64_t *word);

/* A client's life, which ends by a kill. */
void storm_client_live(unsigned client);

/* What a client holds that stands still for good is not counted any more. */
void storm_share_drop(unsigned client);

/* Whether a tenant never made more calls than its rate and burst allow since that time. */
bool storm_rate_holds(unsigned tenant, double since);

#endif
