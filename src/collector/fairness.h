/* SPDX-License-Identifier: MIT */
/*
 * Fair shares in force: for each kind that the host or a device has a limit of, what tenants
 * demand, whether there is pressure, and the shares that come of it. The computations are pure
 * functions (fair_shares.h, fair_demand.h, fair_pressure.h); limits.c puts shares into force. Where
 * there is no limit, nothing is kept and nothing is done. docs/fair-shares.md has the rule.
 */
#ifndef COLLECTOR_FAIRNESS_H
#define COLLECTOR_FAIRNESS_H

#include <stdbool.h>
#include <systemd/sd-event.h>

#include "collector/books.h"
#include "collector/fair_demand.h"
#include "collector/fair_pressure.h"
#include "collector/fair_shares.h"

struct collector;
struct grants_need;

/* One kind in one place: on the host (0), or on a device. */
struct fair_field {
	struct fair_pressure pressure;
	bool unmet;	     /* a request was not met since the last computation */
	uint64_t unmet_ns;   /* when that was last so; CLOCK_MONOTONIC, as all below */
	uint64_t active_ns;  /* when something was asked for, came or went, or moved */
	uint64_t computed_ns;
	uint64_t cost_ns;    /* of processor time, the last computation */
	uint64_t host_refused; /* by the guard, because of the host's limit: at the last look */
	struct fair_account {
		struct fair_demand demand;
		uint64_t taken;	  /* and */
		uint64_t refused; /* by the guard: at the last look */
		/* The last event said this. */
		uint64_t told_ns, told_limit;
		enum fair_reason told_reason;
	} account[BOOKS_TENANTS];
};

/* All zeros: there is no field. */
struct fairness {
	struct fair_field *field[DEVICES_MAX][KINDS_COUNTED];
	sd_event_source *timer; /* runs while there is pressure and something moves */
	/* Of tenants that the guard knows, as of the last look: their slots there (0: none), and
	 * whether it keeps their limits. */
	uint32_t slot[BOOKS_TENANTS];
	bool enforced[BOOKS_TENANTS];
};

/* After each change of the policy: limits.c has written what it says. */
void fairness_apply(struct collector *collector);

/* Adds the timer to the loop. */
int fairness_open(struct collector *collector);
void fairness_close(struct collector *collector);

/* Before the limits of guarded tenants are written into the kernel: the guard knows them now. */
void fairness_follow_guard(struct collector *collector);

/* A tenant is gone: the next one with its number has asked for nothing yet. */
void fairness_forget(struct collector *collector, unsigned tenant);

/* A process comes or goes: what that changes is computed at the next turn of the timer. */
void fairness_wake(struct collector *collector);

/* ---- fairness_requests.c */

/* Before a request is answered: notes what its tenant wants, and computes the shares if they, or
 * the limit of the host or the device, are in its way. */
void fairness_request(struct collector *collector, const struct grants_need *need);

/* ---- fairness_events.c */

/* Says in events which limits in force have changed, each at most once in a second. */
void fairness_report(struct collector *collector);

#endif
