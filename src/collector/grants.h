/* SPDX-License-Identifier: MIT */
/*
 * How much may be granted. The rules, at every instruction and also when the collector
 * is killed at it: a cap is never above what the books say was granted; the sum of
 * grants is never above a limit, unless that was cut below what is held; and no process
 * is refused unless at one moment the objects held, or just being taken, left no room.
 */
#ifndef COLLECTOR_GRANTS_H
#define COLLECTOR_GRANTS_H

#include "collector/books.h"

/* One question: totals of up to COST_KINDS kinds on one lease. */
struct grants_need {
	unsigned lease;
	unsigned count;
	unsigned kind[COST_KINDS];
	uint64_t total[COST_KINDS];
	uint64_t wanted[COST_KINDS];
	uint64_t question; /* its number on the member's page; 0: it has none */
	bool exact;	   /* not a unit more; what is over comes back */
	bool bare;	   /* without credit, but what there is stays */
};

/* 0: granted, all of it. LEDGER_REFUSED: nothing was, and why. LEDGER_TOLERATED: granted, all of
 * it, although a limit is in the way, and which: one that its owner does not enforce. */
int grants_need(struct books *books, const struct grants_need *need,
		struct ledger_refusal *ret_refusal);

/* After limits changed: takes credit back wherever a sum is over its limit now, and
 * where that is not enough, lets nobody grow without asking. */
void grants_enforce(struct books *books);

/* The same for one kind and one tenant, in total (place 0) or on a device. */
void grants_enforce_tenant(struct books *books, unsigned tenant, unsigned place, unsigned kind);

/* How much more may be granted on a lease, as far as the limit of the host (place 0) or of the
 * lease's device goes: what is reserved for other tenants does not count. */
uint64_t grants_capacity_room(const struct books *books, unsigned lease, unsigned kind,
			      unsigned place);

/* Sets what is done at a tenant's limits. Everything that its members have made while limits
 * were tolerated is on the books when this returns, also what they got no answer for. */
void grants_mode(struct books *books, unsigned tenant, enum mode mode);

/* Whether members of the tenant make what they get no answer for. */
bool grants_tolerate_unanswered(const struct books *books, unsigned tenant);

/* The members' pages were looked at for the first time since the start. */
void grants_attached(struct books *books);

/* Puts on the books what members of a tenant, where limits are tolerated, have made without an
 * answer. True if there was any: then grants_enforce is due. */
bool grants_adopt(struct books *books, unsigned tenant);

/* Whether a limit above the lease is exceeded, so that the member can take nothing. */
bool grants_drain(const struct books *books, unsigned lease);

/* Puts a lease in order that a killed collector may have left between two steps. */
void grants_settle(struct books *books, unsigned lease);

/* What a member uses on a lease, as far as it was granted. */
uint64_t grants_used(const struct books *books, unsigned lease, unsigned kind);

/* What a process may hold in total: the policy's limit, or the one that it requested if that is
 * lower. */
uint64_t grants_member_limit(const struct books *books, unsigned member, unsigned kind);

/* Sums what is used now, for those who look: scope.used of the host and the tenants. */
void grants_measure(struct books *books);
/* A refusal tells of use that may be over before the next measurement. */
void grants_note_peak(struct books *books, const struct lease_view *view,
		      const struct ledger_refusal *refusal, bool tolerated);

/* Takes idle credit of a kind back everywhere (place 0), or on a device; from all or from one
 * tenant. */
void grants_sweep_all(struct books *books, unsigned kind);
void grants_sweep_place(struct books *books, unsigned place, unsigned kind);
void grants_sweep_tenant(struct books *books, unsigned tenant, unsigned place, unsigned kind);

#endif
