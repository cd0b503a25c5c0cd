/* SPDX-License-Identifier: MIT */
/*
 * The mappings of a process, read by a child (helper.h): a process can keep the lock on its mappings
 * for as long as it likes, for example in a file system of its own. See library_loaded.h.
 */
#include "collector/library_loaded.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "collector/collector.h"
#include "collector/coverage.h"
#include "collector/helper.h"
#include "ledger/identity.h"

#define LIBRARY "librdma_intercept"

enum {
	MAPS_MS = 1000,	     /* for one list of mappings to be read */
	MAPS_MOST = 4 << 20, /* bytes of one process's list of mappings that are looked at */
};

/* Whether the library is among a process's mappings: 1, 0, or -errno. */
static int library_in_mappings(pid_t pid)
{
	enum { TAIL = sizeof(LIBRARY) - 2 };
	static char text[65536];
	size_t kept = 0, seen = 0;
	char path[40];
	bool found = false;
	ssize_t length;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (!found && seen < MAPS_MOST &&
	       (length = read(fd, text + kept, sizeof(text) - kept)) > 0) {
		size_t size = kept + (size_t)length;

		found = memmem(text, size, LIBRARY, sizeof(LIBRARY) - 1);
		seen += (size_t)length;
		/* The name may have been cut in two. */
		kept = size < TAIL ? size : TAIL;
		memmove(text, text + size - kept, kept);
	}
	close(fd);
	return found;
}

struct look_question {
	pid_t pid;
	uint64_t start;
};

static void look_work(const void *question, void *ret_answer)
{
	const struct look_question *asked = question;
	int32_t *answer = ret_answer;

	*answer = library_in_mappings(asked->pid);
}

static void look_done(void *closure, const void *question, int result, const void *answer)
{
	const struct look_question *asked = question;

	if (result == 0)
		result = *(const int32_t *)answer;
	/* The number may be another process's by now. */
	if (identity_start(asked->pid) != asked->start)
		result = -ESRCH;
	coverage_library_seen(closure, asked->pid, asked->start, result);
}

static const struct helper_job looks_job = {
	.question = sizeof(struct look_question),
	.answer = sizeof(int32_t),
	.patience_ms = MAPS_MS,
	.work = look_work,
	.done = look_done,
};

int library_look(struct collector *collector, pid_t pid, uint64_t start)
{
	struct look_question question;
	int result;

	memset(&question, 0, sizeof(question));
	question.pid = pid;
	question.start = start;
	result = helper_ask(collector->looks, &question);
	helper_begin(collector->looks);
	return result;
}

int library_looks_open(struct collector *collector)
{
	return helper_new(&collector->looks, collector->event, &looks_job, collector);
}

void library_looks_close(struct collector *collector)
{
	helper_free(collector->looks);
	collector->looks = NULL;
}
