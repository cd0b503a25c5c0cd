/* SPDX-License-Identifier: MIT */
/*
 * The fleet's layer of the policy: what rdma_fleet has written into the directory that the policy
 * names (fleet =). The collector follows that directory and knows nothing of the network. Limits
 * that have an end are dropped then, whatever has become of rdma_fleet.
 */
#ifndef COLLECTOR_FLEET_LAYER_H
#define COLLECTOR_FLEET_LAYER_H

#include <stdbool.h>
#include <systemd/sd-event.h>

#include "base/problem.h"
#include "policy/fleet.h"

struct collector;

struct fleet_layer {
	char directory[POLICY_PATH]; /* "": there is no fleet */
	struct policy_fleet policy;
	bool waits; /* for names of users and groups */
	char problem[PROBLEM_SIZE]; /* why the files have no effect; "" */
	sd_event_source *watch, *read_timer, *end_timer;
	struct {
		uint64_t device, inode; /* of the directory that is watched */
	} watched;
};

/* What of the layer counts now; NULL: nothing. */
const struct policy *fleet_layer_in_force(const struct collector *collector);

/* At the start: reads the directory that the policy files name. A fault is logged, and the host
 * has its own policy. */
void fleet_layer_start(struct collector *collector);

/* Follows the directory from now on. -errno. */
int fleet_layer_open(struct collector *collector);
void fleet_layer_close(struct collector *collector);

/* Names that the layer waits for are known. */
void fleet_layer_names_known(struct collector *collector);

#endif
