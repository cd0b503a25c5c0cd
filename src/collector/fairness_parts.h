/* SPDX-License-Identifier: MIT */
/* What the parts of the owner of fair shares share (fairness.c and fairness_*.c), and nobody else. */
#ifndef COLLECTOR_FAIRNESS_PARTS_H
#define COLLECTOR_FAIRNESS_PARTS_H

#include "collector/collector.h"

/* Shares are computed so often while there is pressure. */
#define FAIR_INTERVAL_NS 50000000u
/* A computation that a request asks for, and that takes longer than this, is made only after so
 * many times as long. */
#define FAIR_CHEAP_NS 200000u
enum { FAIR_REST = 10 };
/* The timer stops when nothing has moved for so long; the second's task goes on. */
#define FAIR_QUIET_NS (FAIR_REFUSED_NS + 1000000000u)

/* ---- fairness.c */

/* Computes the shares of a field, and puts them into force. SWEPT: idle credit was just taken back
 * everywhere, so that what tenants hold is what they use, and not more than they want. */
void field_compute(struct collector *collector, unsigned place, unsigned kind, bool swept);

/* The timer runs, at once or when the interval has passed. */
void fairness_await(struct collector *collector);

/* ---- fairness_kernel.c: tenants whose limits the kernel keeps, too */

/* Reads what the guard has counted into the books. */
void kernel_counts_read(struct collector *collector, unsigned kind);
/* How often the guard has refused a tenant the kind, of which the counts were read last; 0 without
 * a guard. Likewise all tenants, because of the limit of the host. */
uint64_t kernel_refusals(const struct collector *collector, unsigned tenant, unsigned kind);
uint64_t kernel_host_refusals(const struct collector *collector, unsigned kind);
/* Writes the tenant's limit in force into the kernel, if that keeps it. True: it does. */
bool kernel_limit_write(struct collector *collector, unsigned tenant, unsigned kind);

/*
 * Of the limit of the host, the guard's tenants may have together what the others neither hold nor
 * are guaranteed. kernel_room_give lets them have all of that, kernel_room_claim takes some of it
 * back for another tenant: at least MORE, unless it is used or guaranteed.
 */
void kernel_room_give(struct collector *collector, unsigned kind);
void kernel_room_claim(struct collector *collector, unsigned kind, uint64_t more);

#endif
