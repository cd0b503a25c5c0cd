/* SPDX-License-Identifier: MIT */
/*
 * Usage pages: memory that a member writes and the collector reads, in which the member counts
 * what it holds; the collector writes only the rates that it leases. They are found again in /proc by their name and inode.
 */
#ifndef COLLECTOR_USAGE_PAGE_H
#define COLLECTOR_USAGE_PAGE_H

#include "collector/books.h"

#define USAGE_PAGE_NAME "rdma_intercept_usage" /* of all of them, in /proc/PID/fd */

/* A new page, mapped; returns a descriptor of it to be handed over, or -errno. */
int usage_page_make(const struct usage_page **ret_page, uint64_t *ret_inode);

/* Maps the page behind the descriptor, which is closed; -1: there is none. Puts the member's
 * leases in order. */
void usage_page_attach(struct books *books, unsigned member, int fd);

#endif
