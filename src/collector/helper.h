/* SPDX-License-Identifier: MIT */
/*
 * A child process for work that may hang, such as a question to a directory in the network. The
 * collector asks, goes on with its loop, and is called with the answer. A child that does not
 * answer is killed, and what it was asked fails. Knows nothing of the work.
 */
#ifndef COLLECTOR_HELPER_H
#define COLLECTOR_HELPER_H

#include <stdbool.h>
#include <stddef.h>
#include <systemd/sd-event.h>

enum {
	HELPER_QUESTION = 320, /* bytes, at most, */
	HELPER_ANSWER = 64,
};

struct helper_job {
	size_t question, answer; /* sizes */
	unsigned patience_ms;	 /* for one answer */
	bool rest_fails;	 /* after a question without an answer, as those that were asked with it */
	/* In the child. */
	void (*work)(const void *question, void *ret_answer);
	/* In the collector. 0, or -errno: -ETIMEDOUT, or -EIO if the child died of the question. */
	void (*done)(void *closure, const void *question, int result, const void *answer);
	/* Every question has its answer. May be NULL. */
	void (*idle)(void *closure);
};

struct helper;

int helper_new(struct helper **ret_helper, sd_event *event, const struct helper_job *job,
	       void *closure);
/* What was not answered is never answered. NULL: nothing happens. */
void helper_free(struct helper *helper);

/* Notes a question; helper_begin lets a child answer those that are noted. -ENOBUFS: there are too
 * many already. */
int helper_ask(struct helper *helper, const void *question);
void helper_begin(struct helper *helper);

/* Runs the loop until everything is answered: only where nobody else is to be served. */
void helper_wait(struct helper *helper);

#endif
