/* SPDX-License-Identifier: MIT */
/* A match line of the policy, in the form in which it is shown. */
#ifndef VIEW_MATCH_H
#define VIEW_MATCH_H

#include "output/table.h"
#include "proto/messages.h"

extern const struct column match_columns[]; /* of struct proto_match */

/* A proto_row_function: appends a row of GET_MATCHES to a list of struct proto_match. */
int match_take(const void *row, void *matches);

#endif
