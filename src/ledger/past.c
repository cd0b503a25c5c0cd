/* SPDX-License-Identifier: MIT */
/*
 * The process before this one, of which it was forked. A child is a process of its own, whose
 * counts are others; but it has its parent's objects and, mapped, its parent's usage page.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ledger/identity.h"
#include "ledger/lease.h"

/* The process that was the last to join: the parent, in a child. */
static struct ledger_past past_self;

void past_remember(struct usage_page *usage, int fd)
{
	struct identity who = identity_self();
	struct stat status = { 0 };

	fstat(fd, &status);
	past_self = (struct ledger_past){ usage, fd, status.st_ino, who.pid, who.start, who.view };
}

struct ledger_past ledger_past(void)
{
	struct ledger_past past = past_self;

	past_self = (struct ledger_past){ 0 };
	return past;
}

bool ledger_past_is_over(const struct ledger_past *past)
{
	struct identity who = { past->pid, past->start, past->view };
	int saved = errno;
	bool over = past->usage && identity_is_dead(&who, past_self.view);

	errno = saved;
	return over;
}

/* Several children may have inherited one page: what was given back already is not again. */
void ledger_past_refund(const struct ledger_past *past, unsigned device, const struct cost *cost)
{
	for (unsigned i = 0; i < cost->count; i++) {
		uint64_t *used = &past->usage->row[device].used[cost->kind[i]];
		uint64_t there = __atomic_load_n(used, __ATOMIC_RELAXED), given;

		do {
			given = cost->amount[i] < there ? cost->amount[i] : there;
		} while (!__atomic_compare_exchange_n(used, &there, there - given, true,
						      __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
	}
}

/* The number may be of another file by now. */
void ledger_past_leave(struct ledger_past *past)
{
	struct stat status;
	int saved = errno;

	if (past->usage && !fstat(past->fd, &status) && status.st_ino == past->inode &&
	    status.st_size == sizeof(struct usage_page))
		syscall(SYS_close, past->fd);
	past->usage = NULL;
	errno = saved;
}
