/* SPDX-License-Identifier: MIT */
/* The public client of the collector; see include/rdma_intercept/client.h. It only translates
 * between that interface, which stays, and the protocol, which changes between versions. */
#include "rdma_intercept/client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/client.h"

#define PUBLIC __attribute__((visibility("default")))

_Static_assert((int)RDMA_INTERCEPT_PROBLEM >= (int)PROBLEM_SIZE, "a problem fits");
_Static_assert((int)RDMA_INTERCEPT_HOST == ROW_HOST && (int)RDMA_INTERCEPT_TENANT == ROW_TENANT &&
		       (int)RDMA_INTERCEPT_PROCESS == ROW_PROCESS,
	       "owners have the protocol's numbers");

/* ---- kinds */

PUBLIC unsigned rdma_intercept_kinds(void)
{
	return KIND_COUNT;
}

PUBLIC const char *rdma_intercept_kind_name(unsigned kind)
{
	return kind < KIND_COUNT ? kind_rows[kind].name : NULL;
}

PUBLIC int rdma_intercept_kind_find(const char *name)
{
	int kind = kind_find(name, strlen(name));

	return kind < 0 ? -ENOENT : kind;
}

PUBLIC const char *rdma_intercept_kind_text(unsigned kind)
{
	return kind < KIND_COUNT ? kind_rows[kind].text : NULL;
}

PUBLIC int rdma_intercept_kind_is_bytes(unsigned kind)
{
	return kind < KIND_COUNT && kind_rows[kind].unit == UNIT_BYTES;
}

/* ---- rows */

struct rdma_intercept_row {
	struct proto_row row;
};

PUBLIC enum rdma_intercept_owner rdma_intercept_row_owner(const struct rdma_intercept_row *row)
{
	return (enum rdma_intercept_owner)row->row.scope;
}

PUBLIC const char *rdma_intercept_row_tenant(const struct rdma_intercept_row *row)
{
	return row->row.tenant;
}

PUBLIC const char *rdma_intercept_row_device(const struct rdma_intercept_row *row)
{
	return row->row.device;
}

PUBLIC const char *rdma_intercept_row_command(const struct rdma_intercept_row *row)
{
	return row->row.command;
}

PUBLIC const char *rdma_intercept_row_mode(const struct rdma_intercept_row *row)
{
	return row->row.scope == ROW_HOST || row->row.mode >= MODES ? "" :
								      mode_names[row->row.mode];
}

PUBLIC int32_t rdma_intercept_row_pid(const struct rdma_intercept_row *row)
{
	return row->row.scope == ROW_PROCESS ? row->row.pid : 0;
}

PUBLIC uint64_t rdma_intercept_row_number(const struct rdma_intercept_row *row, unsigned kind,
					  enum rdma_intercept_number number)
{
	const struct proto_row *numbers = &row->row;

	if (kind >= KIND_COUNT)
		return RDMA_INTERCEPT_UNKNOWN;
	switch (number) {
	case RDMA_INTERCEPT_USED:
		return numbers->used[kind];
	case RDMA_INTERCEPT_LEASED:
		return numbers->granted[kind];
	case RDMA_INTERCEPT_PEAK:
		return numbers->peak[kind];
	case RDMA_INTERCEPT_LIMIT:
		return numbers->limit[kind];
	case RDMA_INTERCEPT_PROCESS_LIMIT:
		return numbers->process_limit[kind];
	case RDMA_INTERCEPT_REFUSED:
		return numbers->refused[kind] + numbers->tolerated[kind];
	case RDMA_INTERCEPT_KERNEL:
		return numbers->flags & ROW_WATCHED ? numbers->kernel[kind] :
						      RDMA_INTERCEPT_UNKNOWN;
	}
	return RDMA_INTERCEPT_UNKNOWN;
}

/* ---- reading */

struct reading {
	rdma_intercept_row_function *each;
	void *closure;
};

static int row_hand_over(const void *received, void *closure)
{
	const struct reading *reading = closure;
	struct rdma_intercept_row row = { *(const struct proto_row *)received };

	proto_text(row.row.tenant);
	proto_text(row.row.device);
	proto_text(row.row.command);
	return reading->each(&row, reading->closure);
}

/* A name that does not fit into a message belongs to no row. */
static int filter_name(const char *name, char ret_name[NAME_SIZE], char *problem)
{
	if (!name)
		return 0;
	if (strlen(name) >= NAME_SIZE)
		return problem_set(-EINVAL, problem,
				   "%.80s...: too long: expected a name of less than %d characters",
				   name, NAME_SIZE);
	strcpy(ret_name, name);
	return 0;
}

PUBLIC int rdma_intercept_read(const char *socket, enum rdma_intercept_owner owner,
			       const struct rdma_intercept_filter *filter,
			       rdma_intercept_row_function *each, void *closure,
			       char problem[RDMA_INTERCEPT_PROBLEM])
{
	static const uint32_t flags[] = {
		[RDMA_INTERCEPT_HOST] = CHOOSE_HOST,
		[RDMA_INTERCEPT_TENANT] = CHOOSE_TENANTS,
		[RDMA_INTERCEPT_PROCESS] = CHOOSE_PROCESSES,
	};
	struct reading reading = { each, closure };
	struct proto_choose choose = { .pid = filter ? filter->pid : 0 };
	char path[PROTO_PATH];
	int result = 0;

	if ((unsigned)owner >= sizeof(flags) / sizeof(flags[0]))
		return problem_set(
			-EINVAL, problem,
			"owner %d: unknown: expected RDMA_INTERCEPT_HOST, _TENANT or _PROCESS",
			(int)owner);
	choose.flags = flags[owner];
	if (filter)
		result = filter_name(filter->tenant, choose.tenant, problem);
	if (filter && !result)
		result = filter_name(filter->device, choose.device, problem);
	if (result)
		return result;
	result = proto_socket_path(socket ? socket : getenv(PROTO_SOCKET_VARIABLE), path);
	if (result < 0)
		return problem_set(
			result, problem,
			"the collector's socket: path too long: expected less than %d characters",
			PROTO_PATH);
	return proto_rows(path, MESSAGE_GET_STATS, &choose, row_hand_over, &reading, 0, problem);
}
