/* SPDX-License-Identifier: MIT */
/*
 * How many rows of the books a user and a tenant may have: the number of rows is bounded, and
 * some must always be left for the next process.
 */
#ifndef COLLECTOR_SHARES_H
#define COLLECTOR_SHARES_H

#include <sys/types.h>

#include "collector/books.h"

/* Why that user, or that tenant, gets no further row; NULL if it does. */
const char *share_refuse_member(const struct books *books, uid_t uid, unsigned tenant);
const char *share_refuse_lease(const struct books *books, uid_t uid, unsigned tenant);
/* Why that pattern makes no further tenant. */
const char *share_refuse_tenant(const struct books *books, const char *pattern);

#endif
