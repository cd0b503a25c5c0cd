/* SPDX-License-Identifier: MIT */
/* What the objects of the verbs table take, from what their makers are given. */
#ifndef INTERCEPT_COSTS_H
#define INTERCEPT_COSTS_H

#include <infiniband/verbs.h>

#include "terms/kinds.h"
#include "ledger/ledger.h"

/* Parent domains and null MRs exist in the provider only: the kernel has no such
 * object. They are known, so that freeing them gives nothing back. */
#define NOTHING ((struct cost){ 0 })

/* No memory is so large: the real verb will say so. */
static inline uint64_t bytes(size_t length)
{
	return length < COST_MOST ? length : COST_MOST;
}

/* Implicit on-demand paging "registers" all of the address space and pins nothing. */
static inline struct cost mr_cost(size_t length)
{
	return COST2(mr, 1, mr_bytes, length == SIZE_MAX ? 0 : bytes(length));
}

static inline struct cost cq_cost(int64_t cqe)
{
	return COST2(cq, 1, cqe, cqe > 0 ? (uint64_t)cqe : 0);
}

static inline struct cost srq_cost(const struct ibv_srq_attr *attr)
{
	return COST2(srq, 1, recv_wr, attr->max_wr);
}

static inline struct cost wq_cost(const struct ibv_wq_init_attr *attr)
{
	return COST2(wq, 1, recv_wr, attr->max_wr);
}

/* On its port, too, where that is counted. */
static inline struct cost ah_cost(unsigned port)
{
	struct cost cost = COST1(ah, 1);
	int on_port = kind_on_port(KIND_ah, port);

	if (on_port >= 0) {
		cost.kind[1] = (uint8_t)on_port;
		cost.amount[1] = 1;
		cost.count = 2;
	}
	return cost;
}

/* A QP that receives from a shared queue has no receive queue of its own. */
static inline struct cost qp_cost(const struct ibv_qp_init_attr *attr)
{
	bool sends = attr->qp_type != IBV_QPT_XRC_RECV;
	bool receives = !attr->srq && attr->qp_type != IBV_QPT_XRC_RECV &&
			attr->qp_type != IBV_QPT_XRC_SEND;

	return COST3(qp, 1, send_wr, sends ? attr->cap.max_send_wr : 0, recv_wr,
		     receives ? attr->cap.max_recv_wr : 0);
}

/* The extended attributes begin with the plain ones, as verbs.h itself relies on. */
static inline struct cost qp_ex_cost(const struct ibv_qp_init_attr_ex *attr)
{
	return qp_cost((const struct ibv_qp_init_attr *)attr);
}

/* Whether a queue pair has functions of its own (ibv_wr_*). Only who asked for them may be converted
 * by ibv_qp_to_qp_ex: some providers' queue pairs have no room for the mark that it reads. */
static inline int8_t qp_ex_has_functions(const void *attributes)
{
	const struct ibv_qp_init_attr_ex *attr = attributes;

	return (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0;
}

static inline int8_t qp_has_no_functions(const void *attributes)
{
	return 0;
}

#define QP_ATTRIBUTES_EXTENDED(attr)                                                               \
	_Generic((attr), struct ibv_qp_init_attr_ex *: qp_ex_has_functions,                        \
		 default: qp_has_no_functions)(attr)

static inline int8_t qp_type_of(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_RC:
		return QP_RC;
	case IBV_QPT_UC:
		return QP_UC;
	case IBV_QPT_UD:
		return QP_UD;
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
		return QP_XRC;
	case IBV_QPT_RAW_PACKET:
		return QP_RAW;
	default:
		return QP_DRIVER;
	}
}

/* DevX passes the device's own commands: a 16-bit big-endian opcode comes first. */
static inline struct cost devx_cost(const void *in, size_t length)
{
	const unsigned char *command = in;

	switch (length < 2 ? 0 : command[0] << 8 | command[1]) {
	case 0x200: /* CREATE_MKEY */
		return COST1(mr, 1);
	case 0x400: /* CREATE_CQ */
		return COST1(cq, 1);
	case 0x500: /* CREATE_QP */
	case 0x710: /* CREATE_DCT */
		return COST1(qp, 1);
	case 0x700: /* CREATE_SRQ */
	case 0x705: /* CREATE_XRC_SRQ */
	case 0x70c: /* CREATE_RMP */
		return COST1(srq, 1);
	case 0x908: /* CREATE_RQ */
		return COST1(wq, 1);
	default:
		return NOTHING;
	}
}

#endif
