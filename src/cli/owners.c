/* SPDX-License-Identifier: MIT */
/* Asking for owners of resources; see owners.h. */
#include "cli/owners.h"

#include "cli/collector.h"
#include "cli/embedded.h"
#include "cli/users.h"

static const struct proto_choose everything;

static void owners_name_users(struct owners *owners)
{
	struct list *lists[] = { &owners->in_total[ROW_PROCESS], &owners->on_devices[ROW_PROCESS] };
	struct users users;

	users_begin(&users);
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		for (size_t row = 0; row < lists[i]->count; row++) {
			struct owner *owner = list_at(lists[i], row);

			users_name(&users, owner->row.uid, owner->user);
		}
	users_end(&users);
}

int owners_ask(const struct cli *cli, enum message type, const struct proto_choose *choose,
	       struct owners *ret_owners)
{
	int result;

	owners_clear(ret_owners);
	result = collector_rows(cli, type, choose ? choose : &everything, owners_take, ret_owners);
	owners_name_users(ret_owners);
	owners_sort(ret_owners);
	return result;
}

int owners_ask_anywhere(const struct cli *cli, enum message type,
			const struct proto_choose *choose, struct owners *ret_owners)
{
	char path[EMBEDDED_PATH];
	int result;

	if (!embedded_is_used(cli, path))
		return owners_ask(cli, type, choose, ret_owners);
	owners_clear(ret_owners);
	result = embedded_rows(cli, choose ? choose : &everything, owners_take, ret_owners);
	owners_name_users(ret_owners);
	owners_sort(ret_owners);
	return result;
}
