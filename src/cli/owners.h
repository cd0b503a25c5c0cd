/* SPDX-License-Identifier: MIT */
/* Asking the collector, or the embedded ledger, for owners of resources. */
#ifndef CLI_OWNERS_H
#define CLI_OWNERS_H

#include "cli/cli.h"
#include "view/owner.h"

/* All of them if choose is NULL. An exit status; whatever it is, owners_free gives back what
 * was taken. */
int owners_ask(const struct cli *cli, enum message type, const struct proto_choose *choose,
	       struct owners *ret_owners);
/* The same, or from the embedded ledger if no collector runs; that has no tenants. */
int owners_ask_anywhere(const struct cli *cli, enum message type,
			const struct proto_choose *choose, struct owners *ret_owners);

#endif
