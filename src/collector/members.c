/* SPDX-License-Identifier: MIT */
/* Registration, death and reunion; see members.h. */
#include "collector/members.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "collector/grants.h"
#include "collector/heirs.h"
#include "ledger/identity.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5 */
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U /* Linux 6.3 */
#endif

enum {
	PAGE = 4096,
	EVENTS = 64,
	SEEKS_MOST = 4,	    /* for the page of a member that lives */
	NOTHING_ENOUGH = 2, /* looks at which the kernel has nothing of an orphan any more */
};

/* So long the kernel may take to clear up after a process that nobody inherits. */
#define CLEARING_NS 1000000000u
/* Searches for orphans begin once in so long, */
#define SEARCH_NS 900000000u
/* or after so many times what the last ones took. */
#define SEARCH_SHARE 20
/* So long a start may search before clients are served. */
#define ATTACH_NS 1000000000u

#define STORE(word, value) __atomic_store_n(&(word), (value), __ATOMIC_RELAXED)

static int pidfd_open(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	return fd < 0 ? -errno : fd;
}

static bool has_event(int fd, short events)
{
	struct pollfd poll_fd = { .fd = fd, .events = events };

	return poll(&poll_fd, 1, 0) > 0 && poll_fd.revents;
}

/* ---- who it is */

/* A pidfd of the peer. Older kernels give only its number, which may be another's by now:
 * it is the peer's if the same process had it before and after, and it has not ended. */
static int peer_pidfd(int connection, pid_t pid, uint64_t *ret_start)
{
	socklen_t size = sizeof(int);
	int fd = -1;

	*ret_start = identity_start(pid);
	if (getsockopt(connection, SOL_SOCKET, SO_PEERPIDFD, &fd, &size)) {
		/* Any other error: it has ended, and the number may be another's. */
		if (errno != ENOPROTOOPT)
			return -ESRCH;
		fd = pidfd_open(pid);
		if (fd < 0)
			return fd;
	}
	if (*ret_start && *ret_start == identity_start(pid) && !has_event(fd, POLLIN))
		return fd;
	close(fd);
	return -ESRCH;
}

int members_identify(int connection, uint64_t start, struct peer *ret_peer)
{
	struct ucred credentials;
	socklen_t size = sizeof(credentials);

	if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &credentials, &size))
		return -errno;
	if (credentials.pid <= 0)
		return -EXDEV;
	ret_peer->pid = credentials.pid;
	ret_peer->uid = credentials.uid;
	ret_peer->gid = credentials.gid;
	ret_peer->pidfd = peer_pidfd(connection, credentials.pid, &ret_peer->start);
	/* A connection may outlive the one who made it, and its number be another's now. */
	if (ret_peer->pidfd >= 0 && start && start != ret_peer->start) {
		close(ret_peer->pidfd);
		ret_peer->pidfd = -ESRCH;
	}
	return ret_peer->pidfd < 0 ? ret_peer->pidfd : 0;
}

static uint32_t *pid_bucket(struct books *books, pid_t pid)
{
	return &books->by_pid[(unsigned)pid % (sizeof(books->by_pid) / sizeof(books->by_pid[0]))];
}

static void pid_link(struct books *books, unsigned member)
{
	uint32_t *bucket = pid_bucket(books, books->file->member[member].pid);

	books->member[member].next_of_pid = *bucket;
	*bucket = member;
}

static void pid_unlink(struct books *books, unsigned member)
{
	uint32_t *link = pid_bucket(books, books->file->member[member].pid);

	while (*link != member)
		link = &books->member[*link].next_of_pid;
	*link = books->member[member].next_of_pid;
}

int members_of_pid(const struct members *members, pid_t pid)
{
	struct books *books = members->books;
	uint32_t member = *pid_bucket(books, pid);

	/* An orphan has the number of a process that ended. */
	while (member != BOOKS_NOBODY &&
	       (books->file->member[member].pid != pid || books->member[member].orphan))
		member = books->member[member].next_of_pid;
	return member == BOOKS_NOBODY ? -1 : (int)member;
}

int members_of_identity(const struct members *members, pid_t pid, uint64_t start)
{
	struct books *books = members->books;
	uint32_t member = *pid_bucket(books, pid);

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

/* ---- the usage page */

/* Nobody may shrink or grow it: a page that went away would be a SIGBUS for who looks. */
static int usage_make(const struct usage_page **ret_page, uint64_t *ret_inode)
{
	const struct lease_signature signature = { USAGE_MAGIC, LEASE_VERSION, LEDGER_DEVICES,
						   kinds_signature() };
	struct stat status;
	void *page;
	int result,
		fd = memfd_create(MEMBERS_PAGE_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(MEMBERS_PAGE_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	if (ftruncate(fd, sizeof(struct usage_page)) || fallocate(fd, 0, 0, PAGE) ||
	    pwrite(fd, &signature, sizeof(signature), 0) != sizeof(signature) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) || fstat(fd, &status))
		goto failed;
	page = mmap(NULL, sizeof(struct usage_page), PROT_READ, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		goto failed;
	*ret_page = page;
	*ret_inode = status.st_ino;
	return fd;
failed:
	result = errno ? -errno : -EIO;
	close(fd);
	return result;
}

/* Maps the page behind the descriptor, if there is one, and puts the leases in order. */
static void usage_attach(struct books *books, unsigned member, int fd)
{
	void *page = MAP_FAILED;

	if (fd >= 0) {
		page = mmap(NULL, sizeof(struct usage_page), PROT_READ, MAP_SHARED, fd, 0);
		close(fd);
	}
	if (page != MAP_FAILED)
		books->member[member].usage = page;
	for (uint32_t lease = books->member[member].leases; lease != BOOKS_NOBODY;
	     lease = books->view[lease].next_of_member) {
		books_lease_view(books, lease);
		grants_settle(books, lease);
	}
}

/* ---- orphans */

static bool holds_something(const struct books *books, unsigned member)
{
	for (uint32_t lease = books->member[member].leases; lease != BOOKS_NOBODY;
	     lease = books->view[lease].next_of_member)
		for (unsigned kind = 0; kind < KIND_COUNT; kind++)
			if (grants_used(books, lease, kind))
				return true;
	return false;
}

/* The life line ends with the last that has it: then nobody needs to be searched for. */
static bool lifeline_is_cut(const struct member *beside)
{
	return beside->lifeline >= 0 && has_event(beside->lifeline, POLLRDHUP);
}

static enum member_remains remains(const struct members *members, unsigned member, uint64_t since)
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
static enum fate fate_of(const struct members *members, unsigned member, uint64_t since)
{
	const struct books *books = members->books;

	if (!holds_something(books, member))
		return FATE_ENDED;
	switch (remains(members, member, since)) {
	case REMAINS_NOTHING:
		return FATE_ENDED;
	case REMAINS_SOMETHING:
		return FATE_ORPHANED;
	case REMAINS_UNKNOWN:
		break;
	}
	return lifeline_is_cut(&books->member[member]) ||
			       !books->file->member[member].usage_inode ?
		       FATE_ENDED :
		       FATE_SOUGHT;
}

/* For its page if it lives, otherwise also for an heir. -ENOMEM. */
static int seek(struct members *members, unsigned member)
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

/* ---- coming and going */

/* What we have of a member, other than its row. */
static void let_go(struct member *beside)
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

static void forget(struct members *members, unsigned member, enum member_end how)
{
	struct member *beside = &members->books->member[member];

	if (members->ended)
		members->ended(members->closure, member, how);
	members->orphans -= beside->orphan;
	heirs_drop(members->heirs, member);
	pid_unlink(members->books, member);
	books_member_free(members->books, member);
	let_go(beside);
}

static int watch(struct members *members, unsigned member, int fd, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.u32 = member };

	return epoll_ctl(members->epoll, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static void orphan_tell(struct members *members, unsigned member)
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

/* The process is gone, and was at that time already; or it has called exec, which closed its
 * descriptors, but not those of a child that it forked before. */
static void bury(struct members *members, unsigned member, uint64_t since, bool executed)
{
	struct member *beside = &members->books->member[member];
	bool held = holds_something(members->books, member);
	enum fate fate = fate_of(members, member, since);

	if (fate == FATE_ENDED) {
		forget(members, member, held && !executed ? MEMBER_DIED : MEMBER_LEFT);
		return;
	}
	heirs_drop(members->heirs, member); /* its page was sought as that of a living one */
	if (executed)
		STORE(members->books->file->member[member].flags,
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
	if (lifeline_is_cut(beside)) {
		lifeline_close(beside);
		return;
	}
	if (beside->lifeline >= 0)
		watch(members, member, beside->lifeline, EPOLLRDHUP);
	/* A search that there is no memory for counts as one that was too long. */
	if ((fate == FATE_SOUGHT || !beside->usage) && seek(members, member) == 0 &&
	    fate == FATE_SOUGHT)
		return;
	orphan_tell(members, member);
}

static void on_page(void *closure, unsigned member, int fd)
{
	struct members *members = closure;

	members->pages++;
	usage_attach(members->books, member, fd);
}

/* A search is over. What was too long to be searched costs the user who made it so, and the life
 * line will tell the end. */
static void on_sought(void *closure, unsigned member, enum heirs_result result)
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
	if (result == HEIRS_NONE && remains(members, member, clock_now_ns()) != REMAINS_SOMETHING)
		forget(members, member, MEMBER_DIED);
	else
		orphan_tell(members, member);
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
		bury(members, (unsigned)before, clock_now_ns(), true);
	number = books_member_row(books);
	if (number < 0)
		return number;
	if (getrandom(&cookie, sizeof(cookie), 0) != sizeof(cookie))
		return -EIO;
	if (!(hello->flags & HELLO_NO_MEMORY)) {
		fd = usage_make(&page, &inode);
		if (fd < 0)
			return fd;
	}
	result = watch(members, (unsigned)number, peer->pidfd, EPOLLIN);
	if (result < 0) {
		if (page)
			munmap((void *)page, sizeof(*page));
		if (fd >= 0)
			close(fd);
		return result;
	}
	row = &books->file->member[number];
	STORE(row->pid, peer->pid);
	STORE(row->start, peer->start);
	STORE(row->uid, peer->uid);
	STORE(row->gid, peer->gid);
	STORE(row->flags, hello->flags & HELLO_NO_MEMORY ? MEMBER_ASKS : 0);
	STORE(row->cookie, cookie);
	STORE(row->usage_inode, inode);
	STORE(row->tenant, tenant);
	STORE(row->refusals, 0);
	STORE(row->own_mode, hello->mode);
	memcpy(row->process_limit, hello->process_limit, sizeof(row->process_limit));
	memcpy(row->host_limit, hello->host_limit, sizeof(row->host_limit));
	STORE(row->process_defaults, hello->process_defaults);
	STORE(row->host_defaults, hello->host_defaults);
	books->free_members_count--;
	books->member[number].usage = page;
	books->member[number].pidfd = peer->pidfd;
	books->member[number].lifeline = connection;
	/* Release: who finds the row taken finds it complete. */
	__atomic_store_n(&row->state, BOOK_TAKEN, __ATOMIC_RELEASE);
	books->tenant[tenant]->members++;
	books->members_count++;
	pid_link(books, (unsigned)number);
	*ret_usage_fd = fd;
	return number;
}

/* Nobody has an orphan's life line any more. */
static void orphan_cut(struct members *members, unsigned member, uint64_t since)
{
	if (remains(members, member, since) == REMAINS_SOMETHING)
		lifeline_close(&members->books->member[member]);
	else
		forget(members, member, MEMBER_DIED);
}

static int dispatch_some(struct members *members)
{
	struct epoll_event event[EVENTS];
	int count = epoll_wait(members->epoll, event, EVENTS, 0);
	uint64_t since = clock_now_ns(); /* all of these were over then */

	for (int i = 0; i < count; i++) {
		unsigned member = event[i].data.u32;

		if (members->books->file->member[member].state != BOOK_TAKEN)
			continue;
		if (members->books->member[member].orphan)
			orphan_cut(members, member, since);
		else if (has_event(members->books->member[member].pidfd, POLLIN))
			bury(members, member, since, false);
	}
	return count;
}

void members_dispatch(struct members *members)
{
	while (dispatch_some(members) == EVENTS)
		;
}

/* All at once: one pass finds the heirs of them all. */
static void orphans_search(struct members *members, uint64_t since)
{
	for (unsigned i = 0; members->orphans && i < members->books->file->members_high; i++) {
		if (!members->books->member[i].orphan)
			continue;
		switch (fate_of(members, i, since)) {
		case FATE_ENDED:
			forget(members, i, MEMBER_DIED);
			break;
		case FATE_ORPHANED:
			orphan_tell(members, i);
			break;
		case FATE_SOUGHT:
			seek(members, i);
			break;
		}
	}
}

/* By the kernel's word, of which one is little evidence. True: look again soon. */
static bool orphan_check(struct members *members, unsigned member, uint64_t now, bool *ret_unknown)
{
	struct member *beside = &members->books->member[member];
	enum member_remains found = remains(members, member, now);

	*ret_unknown |= found == REMAINS_UNKNOWN;
	beside->nothing = found == REMAINS_NOTHING ? beside->nothing + 1 : 0;
	if (beside->nothing == NOTHING_ENOUGH) {
		forget(members, member, MEMBER_DIED);
		return false;
	}
	if (found == REMAINS_NOTHING ||
	    (found == REMAINS_SOMETHING && now - beside->ended_ns < CLEARING_NS))
		return true;
	if (found == REMAINS_SOMETHING)
		orphan_tell(members, member);
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

void members_seek_page(struct members *members, unsigned member)
{
	struct member *beside = &members->books->member[member];

	if (members->books->file->member[member].flags & MEMBER_ASKS || beside->usage ||
	    beside->seeks == SEEKS_MOST)
		return;
	beside->seeks++;
	seek(members, member);
}

/* ---- the search */

/* After a restart the pages of all members that live have been looked for. */
static void attached(struct members *members)
{
	if (!members->books->attached && !heirs_sought(members->heirs))
		grants_attached(members->books);
}

bool members_search(struct members *members, uint64_t until)
{
	bool passed = heirs_step(members->heirs, until);

	attached(members);
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

/* If it is still the process that registered, it is watched from now on. */
static void reunite(struct members *members, unsigned member)
{
	struct books *books = members->books;
	const struct book_member *row = &books->file->member[member];
	int fd = row->flags & MEMBER_EXECUTED ? -1 : pidfd_open(row->pid);

	if (fd < 0)
		return;
	if (identity_start(row->pid) != row->start || has_event(fd, POLLIN) ||
	    watch(members, member, fd, EPOLLIN) < 0) {
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
		pid_link(books, i);
		if (books->file->member[i].state == BOOK_DYING)
			forget(members, i, MEMBER_DIED);
		else
			reunite(members, i);
	}
	/* After all of them, so that the kernel needs to be asked once. */
	since = clock_now_ns();
	for (unsigned i = 0; i < books->file->members_high; i++)
		if (books->file->member[i].state == BOOK_TAKEN && books->member[i].pidfd < 0)
			bury(members, i, since, false);
	/* What takes longer is searched for while clients are served already. */
	since = clock_now_ns();
	while (members_are_sought(members) && clock_now_ns() - since < ATTACH_NS)
		members_search(members, since + ATTACH_NS);
	attached(members);
}

int members_init(struct members *members, struct books *books)
{
	*members = (struct members){ .books = books, .epoll = epoll_create1(EPOLL_CLOEXEC) };
	if (members->epoll < 0)
		return -errno;
	return heirs_new(&members->heirs, BOOKS_MEMBERS, on_page, on_sought, members);
}

void members_close(struct members *members)
{
	struct books *books = members->books;

	for (unsigned i = 0; i < books->file->members_high; i++)
		if (books->file->member[i].state != BOOK_FREE)
			let_go(&books->member[i]);
	heirs_free(members->heirs);
	close(members->epoll);
}
