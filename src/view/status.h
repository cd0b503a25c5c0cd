/* SPDX-License-Identifier: MIT */
/* The collector itself, in the form in which it is shown. */
#ifndef VIEW_STATUS_H
#define VIEW_STATUS_H

#include "output/table.h"
#include "proto/client.h"

struct collector_view {
	char socket[PROTO_PATH];
	struct proto_status status;
};

extern const struct column collector_columns[]; /* of struct collector_view */

/* Ends the texts of a reply inside their arrays. */
void status_read(struct proto_status *status);

#endif
