/* SPDX-License-Identifier: MIT */
/*
 * The functions through which data is posted: operations of the context (post_send, poll_cq) and
 * those of each extended queue pair (ibv_wr_*). They are the provider's own until posts are to be
 * counted (pace.h); then ours stand there, and call the provider's.
 */
#ifndef INTERCEPT_POSTS_H
#define INTERCEPT_POSTS_H

#include <infiniband/verbs.h>
#include <stdbool.h>

struct context;
struct handle;
struct library;

/* The operations of a context as the provider set them; kept as long as the context is open, since
 * a thread may be in one of ours when the provider's are put back. */
struct posts_ops {
	int (*post_send)(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
	int (*poll_cq)(struct ibv_cq *cq, int count, struct ibv_wc *wc);
};

/* All contexts and extended queue pairs of the process. */
void posts_switch(struct library *library, bool on);

/* One context, and one queue pair that was just made on a device: replaced if posts are counted. */
void posts_add_context(struct library *library, struct context *context);
void posts_add_qp(struct library *library, const struct handle *qp);

/* The provider's own operations again; before it closes the context. */
void posts_restore_context(struct context *context, struct ibv_context *handle);

#endif
