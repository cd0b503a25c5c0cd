/* SPDX-License-Identifier: MIT */
/*
 * A change of the policy in force: a section and lines for it, put together from
 * words of the command line. What the lines mean is the collector's affair; here
 * it is only made sure that each word stays one line.
 */
#ifndef CLI_CHANGE_H
#define CLI_CHANGE_H

#include "cli/cli.h"
#include "proto/messages.h"

/* Takes "host", "default" or "tenant NAME" from the operands; how many words these were is
 * in *ret_words. An exit status, as everything below. */
int change_section(const struct cli *cli, struct proto_change *ret_change, unsigned *ret_words);

/* Only the section of a tenant. */
int change_tenant(const struct cli *cli, const char *name, struct proto_change *ret_change);

int change_line(const struct cli *cli, struct proto_change *change, const char *key,
		const char *value);

/* A word KEY=VALUE. */
int change_assignment(const struct cli *cli, struct proto_change *change, const char *word);

/* Has the collector do it; says why not, in the user's language where that is possible. */
int change_ask(const struct cli *cli, enum message type, const struct proto_change *change);

/* The same, and answers the user. */
int change_send(const struct cli *cli, enum message type, const struct proto_change *change);

#endif
