/* SPDX-License-Identifier: MIT */
/*
 * Rates of control verbs: what the policy says reaches the processes here. The rate of a tenant is
 * leased to its processes, divided again several times a second by what they ask for (rate_split.h).
 * At any moment the rates and bursts in force in all of them add up to at most the tenant's: before
 * a process gets more, others have less, and what was in their buckets and not used goes with it.
 */
#ifndef COLLECTOR_RATES_H
#define COLLECTOR_RATES_H

#include <systemd/sd-event.h>

#include "collector/rate_split.h"
#include "terms/tallies.h"
#include "terms/terms.h"

struct collector;

/* A tenant's rates, and what is kept of them between two divisions. */
struct rate_tenant {
	char name[NAME_SIZE];
	bool any;	/* has a rate, */
	bool any_whole; /* and one of the tenant as a whole */
	bool waits;	/* a process of it has its lease, but its page is not found yet */
	uint64_t action;
	uint64_t max_delay_ns;
	struct rate total[RATE_OWNERS][RATE_CLASSES];
	struct {
		uint64_t parts;	 /* that no process has */
		uint64_t ns;	 /* when these were counted; */
		bool fills;	 /* more come in since: there is no process that could have them */
	} pool[RATE_CLASSES];
	uint32_t members; /* the first, chained; BOOKS_NOBODY */
};

/* What is known of a process. */
struct rate_member {
	uint64_t cookie; /* of its registration: another one is another process */
	uint32_t next;	 /* of its tenant */
	struct rate_set set;
	uint64_t asked[RATE_CLASSES], missed[RATE_CLASSES]; /* as they were last seen */
	uint64_t demand[RATE_CLASSES];
	uint64_t lacks_until[RATE_CLASSES];
	uint64_t told[RATE_TALLIES][RATE_CLASSES];
};

struct rates {
	struct rate_tenant *tenant; /* BOOKS_TENANTS of them; NULL until a rate is set */
	struct rate_member *member; /* BOOKS_MEMBERS of them */
	struct rate_claim *claim;   /* likewise: for one division */
	unsigned tenants_high;	    /* of the rows, those behind it are of no tenant */
	sd_event_source *timer;	    /* off while no process has a rate */
	uint64_t divided_ns;
	unsigned turn;
};

/* After the policy was put into force. */
void rates_apply(struct collector *collector);

/* A process has joined: it has its rates before it hears of that. */
void rates_join(struct collector *collector, unsigned member);

/* The member's verbs look at its settings from now on, although it may have no rate. */
void rates_wake(struct collector *collector, unsigned member);

/* Chains the processes that each tenant has now. */
void rates_chain(struct collector *collector);

void rates_close(struct collector *collector);

#endif
