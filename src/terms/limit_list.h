/* SPDX-License-Identifier: MIT */
/*
 * Limits as RDMA_INTERCEPT_LIMITS and the command write them:
 *	process:qp=10,mr=5;host:mr_bytes=1G;device:mlx5_0:qp=3;port:mlx5_0/1:qp=2
 * that is, parts of one scope each, separated by ';', with limits separated by ','.
 */
#ifndef TERMS_LIMIT_LIST_H
#define TERMS_LIMIT_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "terms/kinds.h"
#include "terms/terms.h"

/* Which part of a limit is wrong. */
enum limit_mistake {
	LIMIT_SCOPE,   /* not a scope, or one without the name of a device or a port */
	LIMIT_PORT,    /* a port that no device has, or not a number */
	LIMIT_FORM,    /* not KIND=VALUE */
	LIMIT_KIND,    /* no kind of this name */
	LIMIT_ON_PORT, /* a kind that ports do not count */
	LIMIT_VALUE,   /* not a value of the kind */
};

/* A list while it is read; starts with `at` (and `typed`), the rest zero. */
struct limit_list {
	const char *at; /* after a failure: the limit that is wrong, up to ',' or ';' */
	bool typed;	/* by a person: a part without a scope is of the process, and parts
			 * between others may be empty */
	bool inside;	/* at is in a part, behind its scope */
	enum limit_scope scope;
	const char *device;
	size_t device_length;
	unsigned port; /* of the device; 0: all of it */
	enum limit_mistake mistake; /* after a failure */
};

struct limit_item {
	enum limit_scope scope; /* SCOPE_PROCESS, SCOPE_HOST or SCOPE_DEVICE */
	const char *device;	/* of SCOPE_DEVICE; not ended by a NUL */
	size_t device_length;
	unsigned port; /* likewise; 0: all of the device */
	bool first; /* of its part */
	enum kind kind; /* on the port, if there is one */
	uint64_t amount;
	const char *text; /* "KIND=AMOUNT", not ended by a NUL */
	size_t length;
};

/* Takes the next limit: 1, 0 at the end, or -EINVAL. */
int limit_list_next(struct limit_list *list, struct limit_item *ret_item);

#endif
