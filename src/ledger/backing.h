/* SPDX-License-Identifier: MIT */
/* What a place for the ledger's numbers must be able to do; private to the room. */
#ifndef LEDGER_BACKING_H
#define LEDGER_BACKING_H

#include "base/problem.h"
#include "ledger/ledger.h"

struct ledger_backing {
	enum transport transport;
	/* As the functions of ledger.h; charge may refuse although dead processes
	 * still hold something, release_dead says how many it gave back. */
	int (*charge)(struct ledger *ledger, unsigned device, const struct cost *cost, bool forced,
		      struct ledger_refusal *ret_refusal);
	void (*refund)(struct ledger *ledger, unsigned device, const struct cost *cost);
	int (*release_dead)(struct ledger *ledger);
	/* For the next time that the ledger can be written. */
	void (*defer)(struct ledger *ledger, unsigned device, const struct cost *cost);
	uint64_t (*used)(struct ledger *ledger, enum kind kind);
	int (*device)(struct ledger *ledger, const char *name);
	const char *(*device_name)(const struct ledger *ledger, unsigned device);
	const char *(*tenant)(const struct ledger *ledger);
	enum mode (*mode)(const struct ledger *ledger);
	void (*close)(struct ledger *ledger);
};

/* The shared file; fills ledger->backing. */
int embedded_open(struct ledger *ledger, const struct ledger_options *options,
		  char problem[PROBLEM_SIZE]);

/* With the collector: by leases, or asking at each operation. */
int lease_open(struct ledger *ledger, const struct ledger_options *options,
	       enum transport transport, char problem[PROBLEM_SIZE]);

/* The share of a lease; NULL while the process has no lease on the device. */
const struct lease_share *lease_share(const struct ledger *ledger, unsigned device);

#endif
