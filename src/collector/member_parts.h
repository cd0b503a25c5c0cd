/* SPDX-License-Identifier: MIT */
/* What the parts of the members share (members.c, orphans.c, member_search.c), and nobody else. */
#ifndef COLLECTOR_MEMBER_PARTS_H
#define COLLECTOR_MEMBER_PARTS_H

#include "collector/heirs.h"
#include "collector/members.h"

/* ---- members.c */

/* Frees the member's row and all that belongs to it. */
void member_remove(struct members *members, unsigned member, enum member_end how);
/* members_dispatch is told of these events of epoll. */
int member_watch(struct members *members, unsigned member, int fd, uint32_t events);

/* ---- orphans.c */

/* The process is gone, and was at that time already; or it has called exec, which closed its
 * descriptors, but not those of a child that it forked before. The member is removed, or becomes
 * an orphan. */
void member_end(struct members *members, unsigned member, uint64_t since, bool executed);
/* Nobody has an orphan's life line any more. */
void orphan_lifeline_ended(struct members *members, unsigned member, uint64_t since);

/* For struct heirs. */
heirs_done orphans_search_done;

/* ---- member_search.c */

/* For its page if it lives, otherwise also for an heir. -ENOMEM. */
int member_search(struct members *members, unsigned member);
/* Nothing is sought any more: after a restart the pages of all members that live have been looked
 * for then. */
void members_pages_searched(struct members *members);

/* For struct heirs. */
heirs_page member_page_found;

#endif
