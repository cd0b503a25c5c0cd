/* SPDX-License-Identifier: MIT */
/* What a place for the ledger's numbers must be able to do; private to the room. */
#ifndef LEDGER_BACKING_H
#define LEDGER_BACKING_H

#include "ledger/ledger.h"

struct ledger_backing {
	/* As the functions of ledger.h; charge may refuse although dead processes
	 * still hold something, release_dead says how many it gave back. */
	int (*charge)(struct ledger *ledger, unsigned device, const struct cost *cost, bool forced,
		      struct ledger_refusal *ret_refusal);
	void (*refund)(struct ledger *ledger, unsigned device, const struct cost *cost);
	int (*release_dead)(struct ledger *ledger);
	uint64_t (*used)(struct ledger *ledger, enum kind kind);
	int (*device)(struct ledger *ledger, const char *name);
	void (*close)(struct ledger *ledger);
};

/* The shared file; fills ledger->backing. */
int embedded_open(struct ledger *ledger, const struct ledger_options *options,
		  char problem[LEDGER_PROBLEM]);

#endif
