/* SPDX-License-Identifier: MIT */
/*
 * The sides of leases that killpoints.c goes through: the collector's (daemonpoints.c), and
 * its client's, where the client or its collector is killed (clientpoints.c).
 */
#ifndef TESTS_LEASE_SIDES_H
#define TESTS_LEASE_SIDES_H

#include "points.h"

extern const struct side daemon_side, client_side, outage_side;

#endif
