/* SPDX-License-Identifier: MIT */
/*
 * Read usage and limits from the collector of rdma_intercept.
 *
 * Each call opens a connection, sends one request, reads the reply and closes the connection.
 * Calls are thread-safe, allocate no memory and raise no signal. Functions return 0 for success
 * and -errno for a failure.
 */
#ifndef RDMA_INTERCEPT_CLIENT_H
#define RDMA_INTERCEPT_CLIENT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- kinds of resource: qp, mr, mr_bytes and so on, numbered from 0 */

unsigned rdma_intercept_kinds(void);

/* The name, NULL for a number that is no kind; the number, -ENOENT for an unknown name. */
const char *rdma_intercept_kind_name(unsigned kind);
int rdma_intercept_kind_find(const char *name);

/* What the kind counts, in English; whether its unit is bytes. NULL and 0 for an unknown number. */
const char *rdma_intercept_kind_text(unsigned kind);
int rdma_intercept_kind_is_bytes(unsigned kind);

/* ---- rows: one owner of resources, on one device or in total */

struct rdma_intercept_row;

enum rdma_intercept_owner {
	RDMA_INTERCEPT_HOST,
	RDMA_INTERCEPT_TENANT,
	RDMA_INTERCEPT_PROCESS,
};

enum rdma_intercept_number {
	RDMA_INTERCEPT_USED,
	RDMA_INTERCEPT_LEASED,	      /* used, and reserved for the process without asking again */
	RDMA_INTERCEPT_PEAK,	      /* largest used since the collector started */
	RDMA_INTERCEPT_LIMIT,	      /* in force now */
	RDMA_INTERCEPT_PROCESS_LIMIT, /* of a tenant: for each of its processes */
	RDMA_INTERCEPT_REFUSED,	      /* refusals, and what the modes warn and audit tolerated */
	RDMA_INTERCEPT_KERNEL,	      /* what the kernel has, if rdma_monitor counts it */
};
#define RDMA_INTERCEPT_UNLIMITED UINT64_MAX /* LIMIT and PROCESS_LIMIT */
#define RDMA_INTERCEPT_UNKNOWN UINT64_MAX   /* KERNEL, and numbers that do not exist */

enum rdma_intercept_owner rdma_intercept_row_owner(const struct rdma_intercept_row *row);
/* "" where it does not apply: the device of a total, the tenant of the host, the command of a
 * tenant. */
const char *rdma_intercept_row_tenant(const struct rdma_intercept_row *row);
const char *rdma_intercept_row_device(const struct rdma_intercept_row *row);
const char *rdma_intercept_row_command(const struct rdma_intercept_row *row);
/* "enforce", "warn" or "audit"; "" for the host. */
const char *rdma_intercept_row_mode(const struct rdma_intercept_row *row);
int32_t rdma_intercept_row_pid(const struct rdma_intercept_row *row); /* 0: not a process */
uint64_t rdma_intercept_row_number(const struct rdma_intercept_row *row, unsigned kind,
				   enum rdma_intercept_number number);

/* Which rows: NULL and 0 mean all of them. */
struct rdma_intercept_filter {
	const char *tenant;
	const char *device;
	int32_t pid;
};

/* Called for each row, which is valid until the function returns. A result other than 0 ends the
 * reading and becomes the result of rdma_intercept_read. */
typedef int rdma_intercept_row_function(const struct rdma_intercept_row *row, void *closure);

enum { RDMA_INTERCEPT_PROBLEM = 640 };

/*
 * Reads the rows of the host, of tenants or of processes, each in total and on each device.
 * socket: the path of the collector's socket; NULL for $RDMA_COLLECTOR_SOCKET or the usual path.
 * filter: NULL for all. On failure -errno, with a sentence in problem: -ENOENT and -ECONNREFUSED
 * if no collector runs, -ETIMEDOUT if it does not answer, -EPERM if the socket belongs to another
 * user, -EPROTO if the collector is of another version.
 */
int rdma_intercept_read(const char *socket, enum rdma_intercept_owner owner,
			const struct rdma_intercept_filter *filter,
			rdma_intercept_row_function *each, void *closure,
			char problem[RDMA_INTERCEPT_PROBLEM]);

#ifdef __cplusplus
}
#endif

#endif
