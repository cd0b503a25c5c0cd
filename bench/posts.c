/* SPDX-License-Identifier: MIT */
/*
 * Nanoseconds of a post on the stand-in, by both interfaces: the least of many rounds, which other
 * work on the machine disturbs least. For pacing.sh. Usage: posts
 */
#include <stdio.h>
#include <time.h>

#include "process/fixture.h"

enum { ROUNDS = 400, POSTS = 20000, LENGTH = 64 };

static struct ibv_qp *plain;
static struct ibv_qp_ex *extended;

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void post_plain(void)
{
	struct ibv_sge sge = { .length = LENGTH };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	ibv_post_send(plain, &wr, &bad);
}

static void post_extended(void)
{
	ibv_wr_start(extended);
	ibv_wr_send(extended);
	ibv_wr_set_sge(extended, 1, 0, LENGTH);
	ibv_wr_complete(extended);
}

static double least_ns(void (*post)(void))
{
	double least = 1e18;

	for (int round = 0; round < ROUNDS; round++) {
		double begun = now_ns(), took;

		for (int i = 0; i < POSTS; i++)
			post();
		took = (now_ns() - begun) / POSTS;
		least = took < least ? took : least;
	}
	return least;
}

int main(void)
{
	struct fixture fixture = fixture_open();
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = fixture.cq,
		.recv_cq = fixture.cq,
		.qp_type = IBV_QPT_RC,
		.cap = { SEND_DEPTH, RECV_DEPTH, 1, 1, 0 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = fixture.pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(fixture.context, &attr);

	plain = qp_make(&fixture, IBV_QPT_RC);
	extended = qp ? ibv_qp_to_qp_ex(qp) : NULL;
	if (!plain || !extended)
		return 1;
	printf("%.2f %.2f\n", least_ns(post_plain), least_ns(post_extended));
	return 0;
}
