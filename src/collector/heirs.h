/* SPDX-License-Identifier: MIT */
/*
 * The search through /proc for processes that have a member's usage page: heirs of members that
 * have ended, and after a restart the living members themselves. One pass over the processes of a
 * user serves all of the user's members that are sought at that time. It goes on in steps, between
 * which others are served, and users take turns: who makes a search long waits for it alone. What
 * follows from a search is known to members.c.
 */
#ifndef COLLECTOR_HEIRS_H
#define COLLECTOR_HEIRS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum heirs_result {
	HEIRS_NONE,
	HEIRS_FOUND,
	HEIRS_UNKNOWN, /* the user has more descriptors than one search looks at */
};

/* Of a living process the page is sought, in its own descriptors; of one that has ended a process
 * that has the page and an RDMA device. */
struct heirs_goal {
	pid_t pid; /* 0: it has ended */
	uid_t uid;
	uint64_t inode; /* of the page */
	bool wants_page; /* it is not mapped yet */
};

struct heirs;

/* Called with a descriptor of the page, to be closed, if it is wanted; before heirs_done. */
typedef void heirs_page(void *closure, unsigned member, int fd);
typedef void heirs_done(void *closure, unsigned member, enum heirs_result result);

int heirs_new(struct heirs **ret_heirs, unsigned members, heirs_page *page, heirs_done *done,
	      void *closure);
void heirs_free(struct heirs *heirs);

/* Seeks for a member, unless that is going on. -ENOMEM. */
int heirs_seek(struct heirs *heirs, unsigned member, const struct heirs_goal *goal);
/* Does not any more, without a word. */
void heirs_drop(struct heirs *heirs, unsigned member);
/* When it began, as a number that grows; 0: the member is not sought. */
uint64_t heirs_since(const struct heirs *heirs, unsigned member);
/* The number of the last that began. */
uint64_t heirs_now(const struct heirs *heirs);

/* How many are sought. */
unsigned heirs_sought(const struct heirs *heirs);

/* Goes on until that time (CLOCK_MONOTONIC, ns). True: a pass has ended. */
bool heirs_step(struct heirs *heirs, uint64_t until);

/* Passes over /proc so far, and the nanoseconds that they took. */
uint64_t heirs_passes(const struct heirs *heirs);
uint64_t heirs_spent_ns(const struct heirs *heirs);

#endif
