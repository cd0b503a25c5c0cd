/* SPDX-License-Identifier: MIT */
/* Asking for owners of resources; see owners.h. */
#include "cli/owners.h"

#include "cli/collector.h"
#include "cli/embedded.h"

static const struct proto_choose everything;

int owners_ask(const struct cli *cli, enum message type, const struct proto_choose *choose,
	       struct owners *ret_owners)
{
	owners_clear(ret_owners);
	return collector_rows(cli, type, choose ? choose : &everything, owners_take, ret_owners);
}

int owners_ask_anywhere(const struct cli *cli, enum message type,
			const struct proto_choose *choose, struct owners *ret_owners)
{
	char path[EMBEDDED_PATH];

	if (!embedded_is_used(cli, path))
		return owners_ask(cli, type, choose, ret_owners);
	owners_clear(ret_owners);
	return embedded_rows(cli, choose ? choose : &everything, owners_take, ret_owners);
}
