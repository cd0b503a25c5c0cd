/* SPDX-License-Identifier: MIT */
/* A guarded program that posts all the time, for the tests of paces and priorities. */
#ifndef TESTS_DAEMON_POSTER_H
#define TESTS_DAEMON_POSTER_H

#include <dlfcn.h>
#include <string.h>

#include "collector.h"
#include "member.h"

enum { POST_BYTES = 4096 };

static inline void post_plain(struct ibv_qp *qp)
{
	struct ibv_sge sge = { .length = POST_BYTES };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	CHECK(ibv_post_send(qp, &wr, &bad) == 0);
}

static inline void post_extended(struct ibv_qp_ex *qp)
{
	ibv_wr_start(qp);
	ibv_wr_send(qp);
	ibv_wr_set_sge(qp, 1, 0, POST_BYTES);
	CHECK(ibv_wr_complete(qp) == 0);
}

/* Whether the functions of a context and of a queue pair are the library's. */
static inline bool function_is_ours(void *function)
{
	Dl_info info;

	return dladdr(function, &info) && strstr(info.dli_fname, "librdma_intercept");
}

static inline bool posts_are_ours(struct fixture *fixture, struct ibv_qp_ex *qp)
{
	return function_is_ours((void *)fixture->context->ops.post_send) &&
	       function_is_ours((void *)fixture->context->ops.poll_cq) &&
	       function_is_ours((void *)qp->wr_start) &&
	       function_is_ours((void *)qp->wr_complete) &&
	       function_is_ours((void *)qp->wr_set_sge);
}

static inline bool posts_are_the_providers(struct fixture *fixture, struct ibv_qp_ex *qp)
{
	return !function_is_ours((void *)fixture->context->ops.post_send) &&
	       !function_is_ours((void *)fixture->context->ops.poll_cq) &&
	       !function_is_ours((void *)qp->wr_start) && !function_is_ours((void *)qp->wr_send) &&
	       !function_is_ours((void *)qp->wr_complete) &&
	       !function_is_ours((void *)qp->wr_abort) && !function_is_ours((void *)qp->wr_set_sge);
}

/* The row of a tenant; zeros if there is none. */
static inline int pace_note(const void *row, void *closure)
{
	*(struct proto_pace *)closure = *(const struct proto_pace *)row;
	return 0;
}

static inline struct proto_pace pace_of(const char *tenant)
{
	struct proto_choose choose = { 0 };
	struct proto_pace pace = { .tenant = "" };
	char problem[PROBLEM_SIZE];

	strcpy(choose.tenant, tenant);
	CHECK(proto_rows(collector_socket(), MESSAGE_GET_PACES, &choose, pace_note, &pace,
			 COLLECTOR_PATIENCE_MS, problem) >= 0,
	      "%s", problem);
	return pace;
}

#endif
