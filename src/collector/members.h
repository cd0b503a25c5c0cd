/* SPDX-License-Identifier: MIT */
/*
 * Processes that register and end. A member is a registered process: known by what the kernel
 * says of the other end of its connection (peer.h), never by its own word; watched by a pidfd;
 * and looked up again after the collector was started anew. When it ends, everything on its
 * leases is given back, unless a forked child lives on with its descriptors and so with its
 * objects: then the member stays on the books as an orphan.
 */
#ifndef COLLECTOR_MEMBERS_H
#define COLLECTOR_MEMBERS_H

#include "base/log.h"
#include "collector/books.h"
#include "collector/peer.h"
#include "proto/messages.h"

struct heirs;

enum member_end { MEMBER_LEFT, MEMBER_DIED, MEMBER_ORPHANED };

/* What the kernel still has of a process that has ended. */
enum member_remains { REMAINS_UNKNOWN, REMAINS_NOTHING, REMAINS_SOMETHING };

struct members {
	struct books *books;
	int epoll; /* readable when members_dispatch has something to do */
	struct heirs *heirs;
	unsigned orphans;
	unsigned orphaned;  /* ever */
	unsigned pages;	    /* that were found again */
	uint64_t search_ns; /* when heirs of orphans are to be searched for again */
	uint64_t spent_ns;  /* of searching, when that was decided */
	struct log_seldom unfound;
	/* Called before a member's row is freed, or when it becomes an orphan. */
	void (*ended)(void *closure, unsigned member, enum member_end how);
	/* Asked of a member that has ended; NULL: nobody can tell. What it says must have been
	 * so at that time or later (CLOCK_MONOTONIC, ns). */
	enum member_remains (*remains)(void *closure, unsigned member, uint64_t since);
	void *closure;
};

int members_init(struct members *members, struct books *books);
void members_close(struct members *members);

/* After books_open: ends what ended meanwhile, and finds the pages of those that live. */
void members_attach(struct members *members);

/*
 * Registers; a process that was registered before has called exec, and starts anew. Takes
 * over peer->pidfd and the connection, as the life line. Returns the member and, unless it
 * asks at each operation, its usage page; or -errno, and then takes over nothing.
 */
int members_join(struct members *members, const struct peer *peer, unsigned tenant,
		 const struct proto_hello *hello, int connection, int *ret_usage_fd);

/* The member with that number and cookie; -ESTALE. */
int members_find(const struct members *members, pid_t pid, uint64_t cookie);
/* The same without a cookie: to look at. -1. */
int members_of_pid(const struct members *members, pid_t pid);
/* The one that is or, as an orphan, was that very process. -1. */
int members_of_identity(const struct members *members, pid_t pid, uint64_t start);

/* For a member that lives but whose usage page was not found at the start: it may have been
 * on its way to it. */
void members_seek_page(struct members *members, unsigned member);

/*
 * The search for heirs and pages goes on until that time (CLOCK_MONOTONIC, ns); true when
 * something was decided. A member that has ended and is sought counts as an orphan meanwhile.
 */
bool members_search(struct members *members, uint64_t until);
bool members_are_sought(const struct members *members);
/* Passes over /proc so far. */
uint64_t members_passes(const struct members *members);

/* A number for what is sought by now, and whether some of that is still sought, of a tenant or of
 * any (-1): then what is granted may turn out to be less. */
uint64_t members_sought(const struct members *members);
bool members_await(const struct members *members, int tenant, uint64_t since);
/* The same of one member. */
bool members_await_one(const struct members *members, unsigned member, uint64_t since);

void members_dispatch(struct members *members);

/* Gives back the orphans that nobody has any more; to be called now and then while there
 * are any. True: soon again, since the kernel may be at it just now. */
bool members_check_orphans(struct members *members);

#endif
