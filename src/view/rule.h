/* SPDX-License-Identifier: MIT */
/* A when line of the policy and whether it is in force, in the form in which it is shown. */
#ifndef VIEW_RULE_H
#define VIEW_RULE_H

#include "output/table.h"
#include "proto/messages.h"

extern const struct column rule_columns[]; /* of struct proto_rule */

/* A proto_row_function: appends a row of GET_RULES to a list of struct proto_rule. */
int rule_take(const void *row, void *rules);

#endif
