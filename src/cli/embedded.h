/* SPDX-License-Identifier: MIT */
/*
 * The numbers of processes that count without a collector: the shared file of this user, as the
 * rows and details that a collector would send. It has a host and processes, and no tenants.
 */
#ifndef CLI_EMBEDDED_H
#define CLI_EMBEDDED_H

#include "cli/cli.h"
#include "proto/client.h"

/* Whether the file is read, and its path: no collector runs, --socket names none, and there is
 * the file of $RDMA_INTERCEPT_SHM_NAME or of this user. */
enum { EMBEDDED_PATH = 300 };
bool embedded_is_used(const struct cli *cli, char ret_path[EMBEDDED_PATH]);

/* As collector_rows with rows of the host and of processes, and with GET_DETAILS. */
int embedded_rows(const struct cli *cli, const struct proto_choose *choose,
		  proto_row_function *each, void *closure);
int embedded_details(const struct cli *cli, const struct proto_choose *choose,
		     proto_row_function *each, void *closure);

#endif
