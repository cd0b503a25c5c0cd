/* SPDX-License-Identifier: MIT */
/*
 * The paces of tenants while their processes post: each tenant's rates are divided over its leases
 * by what they posted lately, and bulk tenants are held to their floor on devices where a latency
 * tenant posts. The processes do the waiting (intercept/pace.h).
 */
#ifndef COLLECTOR_PACING_H
#define COLLECTOR_PACING_H

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "terms/terms.h"

enum { PACING_TENANTS = 1024 }; /* as many as the books have */

struct books;
struct collector;
struct posted;
struct pace_settings;

/* What a lease had posted at the last looks. */
struct pacing_lease {
	uint64_t cookie; /* of its member: another one may have got its row since */
	uint64_t bytes, operations, delays; /* when shares were divided */
	uint64_t seen_operations;	    /* when activity was looked for */
	uint64_t byte_rate, operation_rate; /* posted a second between the last two */
	bool hungry;			    /* something waited between them */
};

struct pacing {
	struct pacing_lease *lease; /* LEASES_MAX of them */
	sd_event_source *timer;
	uint64_t divided_ns; /* CLOCK_MONOTONIC: when shares were divided last */
	uint64_t active_ns[DEVICES_MAX]; /* likewise: a latency tenant posted there */
	uint8_t priority[PACING_TENANTS];		 /* of tenants on the books: enum policy_priority */
	bool counted;	  /* posts of some tenant are counted */
	bool prioritised; /* there are latency and bulk tenants */
};

/* What was posted on a lease; false while the member's page is not known. */
bool pacing_lease_posted(const struct books *books, unsigned lease, struct posted *ret_posted);

int pacing_open(struct collector *collector);
void pacing_close(struct collector *collector);

/* Which priorities the tenants on the books have: before the settings of each are written. */
void pacing_prepare(struct collector *collector);
/* What the processes of a tenant follow, but for the rates. */
void pacing_fill(const struct collector *collector, unsigned tenant, struct pace_settings *pace);
/* A process has a further lease: it gets its share of its tenant's paces before it hears of that. */
void pacing_lease_added(struct collector *collector, unsigned lease);
/* After the settings were written. */
void pacing_apply(struct collector *collector);

#endif
