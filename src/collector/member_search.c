/* SPDX-License-Identifier: MIT */
/*
 * The search for processes that have a member's usage page, as members need it: for which of them it
 * goes on, and who waits for it. How /proc is searched is in heirs.c.
 */
#include "collector/member_parts.h"

#include "collector/grants.h"
#include "collector/usage_page.h"

enum { SEEKS_MOST = 4 }; /* for the page of a member that lives */

int member_search(struct members *members, unsigned member)
{
	const struct book_member *row = &members->books->file->member[member];
	const struct member *beside = &members->books->member[member];
	struct heirs_goal goal = {
		.pid = beside->orphan ? 0 : row->pid,
		.uid = row->uid,
		.inode = row->usage_inode,
		.wants_page = !beside->usage,
	};

	return heirs_seek(members->heirs, member, &goal);
}

void member_page_found(void *closure, unsigned member, int fd)
{
	struct members *members = closure;

	members->pages++;
	usage_page_attach(members->books, member, fd);
}

void members_seek_page(struct members *members, unsigned member)
{
	struct member *beside = &members->books->member[member];

	if (members->books->file->member[member].flags & MEMBER_ASKS || beside->usage ||
	    beside->seeks == SEEKS_MOST)
		return;
	beside->seeks++;
	member_search(members, member);
}

void members_pages_searched(struct members *members)
{
	if (!members->books->attached && !heirs_sought(members->heirs))
		grants_attached(members->books);
}

bool members_search(struct members *members, uint64_t until)
{
	bool passed = heirs_step(members->heirs, until);

	members_pages_searched(members);
	return passed;
}

bool members_are_sought(const struct members *members)
{
	return heirs_sought(members->heirs);
}

uint64_t members_sought(const struct members *members)
{
	return heirs_now(members->heirs);
}

bool members_await(const struct members *members, int tenant, uint64_t since)
{
	const struct books *books = members->books;

	if (!heirs_sought(members->heirs))
		return false;
	for (unsigned i = 0; i < books->file->members_high; i++) {
		uint64_t sought = heirs_since(members->heirs, i);

		if (sought && sought <= since &&
		    (tenant < 0 || books->file->member[i].tenant == (unsigned)tenant))
			return true;
	}
	return false;
}

bool members_await_one(const struct members *members, unsigned member, uint64_t since)
{
	uint64_t sought = heirs_since(members->heirs, member);

	return sought && sought <= since;
}

uint64_t members_passes(const struct members *members)
{
	return heirs_passes(members->heirs);
}
