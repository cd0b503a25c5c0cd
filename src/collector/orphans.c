/* SPDX-License-Identifier: MIT */
/*
 * Members that have ended: whether what they held has ended with them, by the kernel's word if it
 * is watched, otherwise by a search for processes that inherited it.
 */
#include "collector/member_parts.h"

#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "collector/grants.h"
#include "collector/peer.h"

enum { NOTHING_ENOUGH = 2 }; /* looks at which the kernel has nothing of an orphan any more */

/* So long the kernel may take to clear up after a process that nobody inherits. */
#define CLEARING_NS 1000000000u
/* Searches for orphans begin once in so long, */
#define SEARCH_NS 900000000u
/* or after so many times what the last ones took. */
#define SEARCH_SHARE 20

static bool member_holds_something(const struct books *books, unsigned member)
{
	for (uint32_t lease = books->member[member].leases; lease != BOOKS_NOBODY;
	     lease = books->view[lease].next_of_member)
		for (unsigned kind = 0; kind < KINDS_COUNTED; kind++)
			if (grants_used(books, lease, kind))
				return true;
	return false;
}

/* The life line ends with the last that has it: then nobody needs to be searched for. */
static bool lifeline_has_ended(const struct member *beside)
{
	return beside->lifeline >= 0 && peer_fd_has_event(beside->lifeline, POLLRDHUP);
}

static enum member_remains member_remains(const struct members *members, unsigned member,
					  uint64_t since)
{
	return members->remains ? members->remains(members->closure, member, since) :
				  REMAINS_UNKNOWN;
}

/* Whether what a member held may outlive it. */
enum fate {
	FATE_ENDED,
	FATE_ORPHANED,
	FATE_SOUGHT, /* those who may have inherited it are to be searched for */
};

/* The kernel knows best, if it is watched: it also has what nobody holds, such as a descriptor on
 * its way through a socket. */
static enum fate member_fate(const struct members *members, unsigned member, uint64_t since)
{
	const struct books *books = members->books;

	if (!member_holds_something(books, member))
		return FATE_ENDED;
	switch (member_remains(members, member, since)) {
	case REMAINS_NOTHING:
		return FATE_ENDED;
	case REMAINS_SOMETHING:
		return FATE_ORPHANED;
	case REMAINS_UNKNOWN:
		break;
	}
	return lifeline_has_ended(&books->member[member]) ||
			       !books->file->member[member].usage_inode ?
		       FATE_ENDED :
		       FATE_SOUGHT;
}

static void orphan_report(struct members *members, unsigned member)
{
	struct member *beside = &members->books->member[member];

	if (members->ended && !beside->orphan_told)
		members->ended(members->closure, member, MEMBER_ORPHANED);
	beside->orphan_told = true;
}

static void lifeline_close(struct member *beside)
{
	if (beside->lifeline >= 0)
		close(beside->lifeline);
	beside->lifeline = -1;
}

void member_end(struct members *members, unsigned member, uint64_t since, bool executed)
{
	struct member *beside = &members->books->member[member];
	bool held = member_holds_something(members->books, member);
	enum fate fate = member_fate(members, member, since);

	if (fate == FATE_ENDED) {
		member_remove(members, member, held && !executed ? MEMBER_DIED : MEMBER_LEFT);
		return;
	}
	heirs_drop(members->heirs, member); /* its page was sought as that of a living one */
	if (executed)
		BOOKS_STORE(members->books->file->member[member].flags,
			    members->books->file->member[member].flags | MEMBER_EXECUTED);
	beside->orphan = true;
	beside->ended_ns = since;
	members->orphans++;
	members->orphaned++;
	if (beside->pidfd >= 0)
		close(beside->pidfd);
	beside->pidfd = -1;
	/* Nobody has it, so the kernel is most likely about to clear up: that takes a while
	 * where it is much, and is no news. */
	if (lifeline_has_ended(beside)) {
		lifeline_close(beside);
		return;
	}
	if (beside->lifeline >= 0)
		member_watch(members, member, beside->lifeline, EPOLLRDHUP);
	/* A search that there is no memory for counts as one that was too long. */
	if ((fate == FATE_SOUGHT || !beside->usage) && member_search(members, member) == 0 &&
	    fate == FATE_SOUGHT)
		return;
	orphan_report(members, member);
}

/* A search is over. What was too long to be searched costs the user who made it so, and the life
 * line will tell the end. */
void orphans_search_done(void *closure, unsigned member, enum heirs_result result)
{
	struct members *members = closure;
	const struct member *beside = &members->books->member[member];

	if (!beside->orphan) {
		if (!beside->usage)
			log_seldom(members->books->log, &members->unfound, LOG_WARN,
				   "process %d: its usage page was not found again; what it was "
				   "granted counts as used until it ends",
				   (int)members->books->file->member[member].pid);
		return;
	}
	if (result == HEIRS_NONE &&
	    member_remains(members, member, clock_now_ns()) != REMAINS_SOMETHING)
		member_remove(members, member, MEMBER_DIED);
	else
		orphan_report(members, member);
}

void orphan_lifeline_ended(struct members *members, unsigned member, uint64_t since)
{
	if (member_remains(members, member, since) == REMAINS_SOMETHING)
		lifeline_close(&members->books->member[member]);
	else
		member_remove(members, member, MEMBER_DIED);
}

/* All at once: one pass finds the heirs of them all. */
static void orphans_search(struct members *members, uint64_t since)
{
	for (unsigned i = 0; members->orphans && i < members->books->file->members_high; i++) {
		if (!members->books->member[i].orphan)
			continue;
		switch (member_fate(members, i, since)) {
		case FATE_ENDED:
			member_remove(members, i, MEMBER_DIED);
			break;
		case FATE_ORPHANED:
			orphan_report(members, i);
			break;
		case FATE_SOUGHT:
			member_search(members, i);
			break;
		}
	}
}

/* By the kernel's word, of which one is little evidence. True: look again soon. */
static bool orphan_check(struct members *members, unsigned member, uint64_t now, bool *ret_unknown)
{
	struct member *beside = &members->books->member[member];
	enum member_remains found = member_remains(members, member, now);

	*ret_unknown |= found == REMAINS_UNKNOWN;
	beside->nothing = found == REMAINS_NOTHING ? beside->nothing + 1 : 0;
	if (beside->nothing == NOTHING_ENOUGH) {
		member_remove(members, member, MEMBER_DIED);
		return false;
	}
	if (found == REMAINS_NOTHING ||
	    (found == REMAINS_SOMETHING && now - beside->ended_ns < CLEARING_NS))
		return true;
	if (found == REMAINS_SOMETHING)
		orphan_report(members, member);
	return false;
}

bool members_check_orphans(struct members *members)
{
	unsigned high = members->books->file->members_high;
	bool soon = false, unknown = false;
	uint64_t now = clock_now_ns(), spent;

	for (unsigned member = 0; members->orphans && member < high; member++)
		if (members->books->member[member].orphan)
			soon |= orphan_check(members, member, now, &unknown);
	if (unknown && !heirs_sought(members->heirs) && now >= members->search_ns) {
		orphans_search(members, now);
		spent = heirs_spent_ns(members->heirs) - members->spent_ns;
		members->spent_ns += spent;
		members->search_ns =
			now + (spent * SEARCH_SHARE > SEARCH_NS ? spent * SEARCH_SHARE : SEARCH_NS);
	}
	return soon;
}
