/* SPDX-License-Identifier: MIT */
/*
 * A library that is linked to libibverbs and librdmacm as applications are,
 * for tests that load it by dlopen: how many objects can be made each way
 * before the maker refuses?
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "../fixture.h"

enum { PLENTY = 100 };

int user_linked(void);
int user_inline_qp(void);
int user_inline_cq(void);
int user_cm(void);

/* The answer, or -1 when the refusal was not EDQUOT. */
static int answer(int made)
{
	return errno == EDQUOT ? made : -1;
}

int user_linked(void)
{
	struct fixture fixture = fixture_open();
	int made = 0;

	while (made < PLENTY && qp_make(&fixture, IBV_QPT_RC))
		made++;
	return answer(made);
}

int user_inline_qp(void)
{
	struct fixture fixture = fixture_open();
	int made = 0;

	for (; made < PLENTY; made++) {
		struct ibv_qp_init_attr_ex attr = {
			.send_cq = fixture.cq,
			.recv_cq = fixture.cq,
			.qp_type = IBV_QPT_RC,
			.cap = { SEND_DEPTH, RECV_DEPTH, 1, 1, 0 },
			.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
			.pd = fixture.pd,
		};

		/* Half of them by the shape that calls the exported verb. */
		if (made % 2)
			attr.comp_mask = IBV_QP_INIT_ATTR_PD;
		if (!ibv_create_qp_ex(fixture.context, &attr))
			break;
	}
	return answer(made);
}

int user_inline_cq(void)
{
	struct ibv_device **devices = ibv_get_device_list(NULL);
	struct ibv_context *context = ibv_open_device(devices[0]);
	int made = 0;

	for (; made < PLENTY; made++) {
		struct ibv_cq_init_attr_ex attr = { .cqe = CQ_DEPTH };

		if (!ibv_create_cq_ex(context, &attr))
			break;
	}
	return answer(made);
}

int user_cm(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	int made = 0;

	for (; made < PLENTY; made++) {
		struct ibv_qp_init_attr attr = qp_attributes(NULL, IBV_QPT_RC);
		struct rdma_cm_id *id;

		if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP))
			return -2;
		if (rdma_create_qp(id, NULL, &attr))
			break;
	}
	return answer(made);
}
