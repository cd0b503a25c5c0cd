/* SPDX-License-Identifier: MIT */
/*
 * Asking the collector on behalf of a subcommand. Failures are told to the user
 * here and come back as exit statuses, so that a subcommand only passes them on.
 */
#ifndef CLI_COLLECTOR_H
#define CLI_COLLECTOR_H

#include "cli/cli.h"
#include "proto/client.h"

/* The socket that options and environment name. */
int collector_path(const struct cli *cli, char ret_path[PROTO_PATH]);

/* One reply; *ret_body is of the type that messages.def has. */
int collector_ask(const struct cli *cli, enum message type, const void *body, void *ret_body);

/* Replies in rows. What the function returns is the result, unless the collector fails. */
int collector_rows(const struct cli *cli, enum message type, const struct proto_choose *choose,
		   proto_row_function *each, void *closure);

/* Prints why a request at the path failed (-errno and its sentence), and for two versions which
 * they are. */
int collector_fail(const struct cli *cli, const char *path, int error, const char *problem);
/* The same of a change. Several commands send the same message, so that the collector cannot name
 * the command. */
int collector_fail_change(const struct cli *cli, const char *path, int error, const char *problem);

/* Fails since there is no such tenant, and says where all of them are listed. */
int collector_has_no_tenant(const struct cli *cli, const char *tenant);

/* Whether a failure (-errno) is one that ends when a collector is started. */
bool collector_may_come(int error);

#endif
