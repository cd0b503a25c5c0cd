/* SPDX-License-Identifier: MIT */
/* The kernel's guard, of the host and of tenants, in the form in which it is shown. */
#ifndef VIEW_GUARD_H
#define VIEW_GUARD_H

#include "output/table.h"
#include "proto/messages.h"
#include "view/amount.h"

/* What a tenant has of one kind in the kernel. */
struct hold {
	const char *kind;
	uint32_t guarded;
	struct amount used, limit;
	uint64_t refused, overrun;
};

struct guard {
	struct proto_guard given;
	struct hold hold[KIND_COUNT];
};

extern const struct column guard_host_columns[];   /* of struct guard */
extern const struct column guard_tenant_columns[]; /* likewise */
extern const struct column guarantee_columns[];	   /* likewise: what a tenant can count on */
extern const struct column hold_columns[];	   /* of struct hold */

void guard_read(struct guard *guard, const struct proto_guard *row);

/* A proto_row_function: appends a row of GUARD to a list of struct guard. */
int guard_take(const void *row, void *guards);

#endif
