/* SPDX-License-Identifier: MIT */
/* Registration, and who is who; see members.h. */
#include "collector/members.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>
#include <string.h>

#include "base/clock.h"
#include "collector/grants.h"
#include "collector/heirs.h"
#include "collector/member_parts.h"
#include "collector/usage_page.h"
#include "ledger/identity.h"

enum { EVENTS = 64 };

/* So long a start may search before clients are served. */
#define ATTACH_NS 1000000000u

static uint32_t *members_bucket(struct books *books, pid_t pid)
{
	return &books->by_pid[(unsigned)pid % (sizeof(books->by_pid) / sizeof(books->by_pid[0]))];
}

static void members_link(struct books *books, unsigned member)
{
	uint32_t *bucket = members_bucket(books, books->file->member[member].pid);

	books->member[member].next_of_pid = *bucket;
	*bucket = member;
}

static void members_unlink(struct books *books, unsigned member)
{
	uint32_t *link = members_bucket(books, books->file->member[member].pid);

	while (*link != member)
		link = &books->member[*link].next_of_pid;
	*link = books->member[member].next_of_pid;
}

int members_of_pid(const struct members *members, pid_t pid)
{
	struct books *books = members->books;
	uint32_t member = *members_bucket(books, pid);

	/* An orphan has the number of a process that ended. */
	while (member != BOOKS_NOBODY &&
	       (books->file->member[member].pid != pid || books->member[member].orphan))
		member = books->member[member].next_of_pid;
	return member == BOOKS_NOBODY ? -1 : (int)member;
}

int members_of_identity(const struct members *members, pid_t pid, uint64_t start)
{
	struct books *books = members->books;
	uint32_t member = *members_bucket(books, pid);

	while (member != BOOKS_NOBODY && (books->file->member[member].pid != pid ||
					  books->file->member[member].start != start))
		member = books->member[member].next_of_pid;
	return member == BOOKS_NOBODY ? -1 : (int)member;
}

int members_find(const struct members *members, pid_t pid, uint64_t cookie)
{
	int member = members_of_pid(members, pid);

	if (member < 0 || members->books->file->member[member].cookie != cookie)
		return -ESTALE;
	return member;
}

/* ---- coming and going */

/* What we have of a member, other than its row. */
static void member_release(struct member *beside)
{
	if (beside->usage)
		munmap((void *)beside->usage, sizeof(*beside->usage));
	if (beside->pidfd >= 0)
		close(beside->pidfd);
	if (beside->lifeline >= 0) {
		shutdown(beside->lifeline, SHUT_RDWR); /* the server has it, too */
		close(beside->lifeline);
	}
	books_member_clear(beside);
}

void member_remove(struct members *members, unsigned member, enum member_end how)
{
	struct member *beside = &members->books->member[member];

	if (members->ended)
		members->ended(members->closure, member, how);
	members->orphans -= beside->orphan;
	heirs_drop(members->heirs, member);
	members_unlink(members->books, member);
	books_member_free(members->books, member);
	member_release(beside);
}

int member_watch(struct members *members, unsigned member, int fd, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.u32 = member };

	return epoll_ctl(members->epoll, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

/* What is known of the process; its row is not taken yet. */
static void member_row_write(struct book_member *row, const struct peer *peer, unsigned tenant,
			     const struct proto_hello *hello)
{
	BOOKS_STORE(row->pid, peer->pid);
	BOOKS_STORE(row->start, peer->start);
	BOOKS_STORE(row->uid, peer->uid);
	BOOKS_STORE(row->gid, peer->gid);
	BOOKS_STORE(row->flags, hello->flags & HELLO_NO_MEMORY ? MEMBER_ASKS : 0);
	BOOKS_STORE(row->tenant, tenant);
	BOOKS_STORE(row->refusals, 0);
	BOOKS_STORE(row->own_mode, hello->mode);
	memcpy(row->process_limit, hello->process_limit, sizeof(row->process_limit));
	memcpy(row->host_limit, hello->host_limit, sizeof(row->host_limit));
	BOOKS_STORE(row->process_defaults, hello->process_defaults);
	BOOKS_STORE(row->host_defaults, hello->host_defaults);
}

int members_join(struct members *members, const struct peer *peer, unsigned tenant,
		 const struct proto_hello *hello, int connection, int *ret_usage_fd)
{
	struct books *books = members->books;
	const struct usage_page *page = NULL;
	int before = members_of_pid(members, peer->pid), number, result, fd = -1;
	struct book_member *row;
	uint64_t inode = 0, cookie;

	if (before >= 0)
		member_end(members, (unsigned)before, clock_now_ns(), true);
	number = books_member_row(books);
	if (number < 0)
		return number;
	if (getrandom(&cookie, sizeof(cookie), 0) != sizeof(cookie))
		return -EIO;
	if (!(hello->flags & HELLO_NO_MEMORY)) {
		fd = usage_page_make(&page, &inode);
		if (fd < 0)
			return fd;
	}
	result = member_watch(members, (unsigned)number, peer->pidfd, EPOLLIN);
	if (result < 0) {
		if (page)
			munmap((void *)page, sizeof(*page));
		if (fd >= 0)
			close(fd);
		return result;
	}
	row = &books->file->member[number];
	member_row_write(row, peer, tenant, hello);
	BOOKS_STORE(row->cookie, cookie);
	BOOKS_STORE(row->usage_inode, inode);
	books->free_members_count--;
	books->member[number].usage = page;
	books->member[number].pidfd = peer->pidfd;
	books->member[number].lifeline = connection;
	/* Release: who finds the row taken finds it complete. */
	__atomic_store_n(&row->state, BOOK_TAKEN, __ATOMIC_RELEASE);
	books->tenant[tenant]->members++;
	books->members_count++;
	members_link(books, (unsigned)number);
	*ret_usage_fd = fd;
	return number;
}

static int members_dispatch_some(struct members *members)
{
	struct epoll_event event[EVENTS];
	int count = epoll_wait(members->epoll, event, EVENTS, 0);
	uint64_t since = clock_now_ns(); /* all of these were over then */

	for (int i = 0; i < count; i++) {
		unsigned member = event[i].data.u32;

		if (members->books->file->member[member].state != BOOK_TAKEN)
			continue;
		if (members->books->member[member].orphan)
			orphan_lifeline_ended(members, member, since);
		else if (peer_fd_has_event(members->books->member[member].pidfd, POLLIN))
			member_end(members, member, since, false);
	}
	return count;
}

void members_dispatch(struct members *members)
{
	while (members_dispatch_some(members) == EVENTS)
		;
}

/* ---- start and end */

/* If it is still the process that registered, it is watched from now on. */
static void member_reattach(struct members *members, unsigned member)
{
	struct books *books = members->books;
	const struct book_member *row = &books->file->member[member];
	int fd = row->flags & MEMBER_EXECUTED ? -1 : peer_pidfd_open(row->pid);

	if (fd < 0)
		return;
	if (identity_start(row->pid) != row->start || peer_fd_has_event(fd, POLLIN) ||
	    member_watch(members, member, fd, EPOLLIN) < 0) {
		close(fd);
		return;
	}
	books->member[member].pidfd = fd;
	members_seek_page(members, member);
}

void members_attach(struct members *members)
{
	struct books *books = members->books;
	uint64_t since;

	for (unsigned i = 0; i < books->file->members_high; i++) {
		if (books->file->member[i].state == BOOK_FREE)
			continue;
		members_link(books, i);
		if (books->file->member[i].state == BOOK_DYING)
			member_remove(members, i, MEMBER_DIED);
		else
			member_reattach(members, i);
	}
	/* After all of them, so that the kernel needs to be asked once. */
	since = clock_now_ns();
	for (unsigned i = 0; i < books->file->members_high; i++)
		if (books->file->member[i].state == BOOK_TAKEN && books->member[i].pidfd < 0)
			member_end(members, i, since, false);
	/* What takes longer is searched for while clients are served already. */
	since = clock_now_ns();
	while (members_are_sought(members) && clock_now_ns() - since < ATTACH_NS)
		members_search(members, since + ATTACH_NS);
	members_pages_searched(members);
}

int members_init(struct members *members, struct books *books)
{
	*members = (struct members){ .books = books, .epoll = epoll_create1(EPOLL_CLOEXEC) };
	if (members->epoll < 0)
		return -errno;
	return heirs_new(&members->heirs, BOOKS_MEMBERS, member_page_found, orphans_search_done,
			 members);
}

void members_close(struct members *members)
{
	struct books *books = members->books;

	for (unsigned i = 0; i < books->file->members_high; i++)
		if (books->file->member[i].state != BOOK_FREE)
			member_release(&books->member[i]);
	heirs_free(members->heirs);
	close(members->epoll);
}
