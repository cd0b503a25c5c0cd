/* SPDX-License-Identifier: MIT */
/* What the collector of this host says: usage of tenants, and the limits in force. */
#ifndef FLEET_USAGE_H
#define FLEET_USAGE_H

#include <stdbool.h>

#include "base/problem.h"
#include "proto/client.h"

enum { USAGE_TENANTS = 256 };

struct fleet_usage {
	bool answers;
	char problem[PROBLEM_SIZE]; /* why the collector does not answer, or does not follow; "" */
	char version[NAME_SIZE];
	uint32_t processes, uncovered;
	unsigned tenants;
	struct proto_row tenant[USAGE_TENANTS];
};

/* Asks anew. A collector that does not answer is a fact, not a failure. */
void fleet_usage_read(struct fleet_usage *usage, const char *socket);

const struct proto_row *fleet_usage_find(const struct fleet_usage *usage, const char *tenant);

#endif
