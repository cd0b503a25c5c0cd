/* SPDX-License-Identifier: MIT */
/* An open device with what most objects need, for scenarios. */
#ifndef TESTS_FIXTURE_H
#define TESTS_FIXTURE_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEND_DEPTH = 8, RECV_DEPTH = 4, CQ_DEPTH = 16, SRQ_DEPTH = 32, MR_LENGTH = 4096 };

struct fixture {
	struct ibv_device **devices;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
};

static inline struct ibv_qp_init_attr qp_attributes(struct ibv_cq *cq, enum ibv_qp_type type)
{
	return (struct ibv_qp_init_attr){
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = type,
		.cap = { SEND_DEPTH, RECV_DEPTH, 1, 1, 0 },
	};
}

static inline struct ibv_qp *qp_make(struct fixture *fixture, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr attr = qp_attributes(fixture->cq, type);

	return ibv_create_qp(fixture->pd, &attr);
}

static inline void *fixture_part(void *part, const char *what)
{
	if (!part) {
		fprintf(stderr, "fixture: %s: %s\n", what, strerror(errno));
		abort();
	}
	return part;
}

/* One whose posts go by the functions of struct ibv_qp_ex. */
static inline struct ibv_qp_ex *qp_extended_make(struct fixture *fixture)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = fixture->cq,
		.recv_cq = fixture->cq,
		.qp_type = IBV_QPT_RC,
		.cap = { SEND_DEPTH, RECV_DEPTH, 1, 1, 0 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = fixture->pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(fixture->context, &attr);

	return fixture_part(qp ? ibv_qp_to_qp_ex(qp) : NULL, "an extended queue pair");
}

static inline struct fixture fixture_open_device(unsigned device)
{
	struct fixture fixture = { .devices = ibv_get_device_list(NULL) };

	fixture_part(fixture.devices, "ibv_get_device_list");
	fixture_part(fixture.devices[device], "a device");
	fixture.context = fixture_part(ibv_open_device(fixture.devices[device]), "ibv_open_device");
	fixture.pd = fixture_part(ibv_alloc_pd(fixture.context), "ibv_alloc_pd");
	fixture.cq = fixture_part(ibv_create_cq(fixture.context, CQ_DEPTH, NULL, NULL, 0),
				  "ibv_create_cq");
	return fixture;
}

static inline struct fixture fixture_open(void)
{
	return fixture_open_device(0);
}

static inline void fixture_close(struct fixture *fixture)
{
	ibv_destroy_cq(fixture->cq);
	ibv_dealloc_pd(fixture->pd);
	ibv_close_device(fixture->context);
	ibv_free_device_list(fixture->devices);
}

#endif
