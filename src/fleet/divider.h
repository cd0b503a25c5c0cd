/* SPDX-License-Identifier: MIT */
/*
 * The divider: one host of the fleet divides all quotas. It is elected by a key under its lease;
 * that saves work, and nothing depends on it. What keeps two dividers from giving out the same part
 * of a quota is that each transaction compares the revisions of the ledger and of every record that
 * it writes.
 */
#ifndef FLEET_DIVIDER_H
#define FLEET_DIVIDER_H

#include "fleet/etcd.h"

/* Elects this host if the fleet has no divider; the divider then divides each quota once. A round of a
 * large fleet takes longer than a lease may wait: see etcd_pause_set(). 0, or -errno with a problem. */
int divider_round(struct etcd *etcd, const struct fleet_settings *settings, const struct log *log,
		  uint64_t lease, char problem[PROBLEM_SIZE]);

/* How long after a round that took so long the next one begins at the latest: a large fleet is divided
 * less often, so that etcd and this host have time for others. */
uint64_t divider_rest_ns(uint64_t lasted_ns);

#endif
