/* SPDX-License-Identifier: MIT */
/*
 * Repeats one operation, so that its cost can be read off the difference
 * between two numbers of repetitions. Usage: pairs OPERATION COUNT
 * BENCH_BETWEEN is a command that is run before the repetitions, and takes a pace off: then
 * post_send must have been another function before.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "process/fixture.h"

static struct fixture fixture;
static struct ibv_qp *qp;
static char memory[4096];

static void do_pd(void)
{
	ibv_dealloc_pd(ibv_alloc_pd(fixture.context));
}

static void do_cq(void)
{
	ibv_destroy_cq(ibv_create_cq(fixture.context, 16, NULL, NULL, 0));
}

static void do_qp(void)
{
	ibv_destroy_qp(qp_make(&fixture, IBV_QPT_RC));
}

static void do_ah(void)
{
	struct ibv_ah_attr attr = { .port_num = 1 };

	ibv_destroy_ah(ibv_create_ah(fixture.pd, &attr));
}

static void do_mr(void)
{
	ibv_dereg_mr((ibv_reg_mr)(fixture.pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE));
}

static void do_mw(void)
{
	ibv_dealloc_mw(ibv_alloc_mw(fixture.pd, IBV_MW_TYPE_1));
}

static void do_post_send(void)
{
	struct ibv_send_wr wr = { 0 }, *bad;

	ibv_post_send(qp, &wr, &bad);
}

static void do_post_recv(void)
{
	struct ibv_recv_wr wr = { 0 }, *bad;

	ibv_post_recv(qp, &wr, &bad);
}

static void do_poll_cq(void)
{
	struct ibv_wc wc;

	ibv_poll_cq(fixture.cq, 1, &wc);
}

static void do_query_device(void)
{
	struct ibv_device_attr attr;

	ibv_query_device(fixture.context, &attr);
}

static const struct {
	const char *name;
	void (*run)(void);
} operations[] = {
	{ "pd", do_pd },	       { "cq", do_cq },
	{ "qp", do_qp },	       { "ah", do_ah },
	{ "mw", do_mw },	       { "mr", do_mr },
	{ "post_send", do_post_send }, { "post_recv", do_post_recv },
	{ "poll_cq", do_poll_cq },     { "query_device", do_query_device },
};

/* The library follows at the next verb that makes something. */
static void pace_take_off(const char *command)
{
	const void *before = (const void *)fixture.context->ops.post_send;

	if (system(command) || !(qp = qp_make(&fixture, IBV_QPT_RC)) ||
	    (const void *)fixture.context->ops.post_send == before) {
		fprintf(stderr, "%s: post_send is the function that it was before\n", command);
		exit(3);
	}
}

int main(int argc, char **argv)
{
	long count = argc == 3 ? atol(argv[2]) : 0;

	for (unsigned i = 0; i < sizeof(operations) / sizeof(operations[0]) && count > 0; i++) {
		if (strcmp(argv[1], operations[i].name))
			continue;
		fixture = fixture_open();
		qp = qp_make(&fixture, IBV_QPT_RC);
		if (getenv("BENCH_BETWEEN"))
			pace_take_off(getenv("BENCH_BETWEEN"));
		while (count--)
			operations[i].run();
		return 0;
	}
	fprintf(stderr, "usage: pairs OPERATION COUNT\n");
	return 2;
}
