/* SPDX-License-Identifier: MIT */
/* The wrappers that change live objects: memory regions, depths of queues, states of QPs. */
#include <errno.h>

#include "intercept/costs.h"
#include "intercept/gate.h"
#include "intercept/prototypes.h"

int wrap_ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		      int access)
{
	__typeof__(real_verbs.ibv_rereg_mr) real = REAL(ibv_rereg_mr);
	struct change change;
	int result;

	if (!real)
		return IBV_REREG_MR_ERR_INPUT;
	if (!(flags & IBV_REREG_MR_CHANGE_TRANSLATION))
		return real(mr, flags, pd, addr, length, access);
	if (!change_begin(&change, "ibv_rereg_mr", OBJECT_mr, mr, KIND_mr_bytes, bytes(length)))
		return IBV_REREG_MR_ERR_INPUT;
	result = real(mr, flags, pd, addr, length, access);
	/* Only these two leave the new registration in force; after any other the
	 * old one counts until it is deregistered, usable or not. */
	if (result == 0 || result == IBV_REREG_MR_ERR_DO_FORK_OLD)
		change_force(&change, bytes(length));
	else
		change_force(&change, change.before);
	return result;
}

int wrap_ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	__typeof__(real_verbs.ibv_resize_cq) real = REAL(ibv_resize_cq);
	struct change change;
	int result;

	if (!real)
		return EOPNOTSUPP;
	if (!change_begin(&change, "ibv_resize_cq", OBJECT_cq, cq, KIND_cqe,
			  cqe > 0 ? (uint64_t)cqe : 0))
		return errno;
	result = real(cq, cqe);
	if (result) {
		change_force(&change, change.before);
		return result;
	}
	if (change_commit(&change, (uint64_t)cq->cqe))
		return 0;
	/* Rounded up beyond the limit: back to the old size, or keep what it is now. */
	result = real(cq, (int)change.before);
	change_force(&change, (uint64_t)cq->cqe);
	return result ? 0 : change.library->config.deny_errno;
}

static uint64_t srq_depth(struct ibv_srq *srq, uint64_t otherwise)
{
	static __typeof__(ibv_query_srq) *query;
	struct ibv_srq_attr now;

	if (!query)
		query = real_helper("libibverbs.so.1", "ibv_query_srq");
	return query && query(srq, &now) == 0 ? now.max_wr : otherwise;
}

int wrap_ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	__typeof__(real_verbs.ibv_modify_srq) real = REAL(ibv_modify_srq);
	struct change change;
	int result;

	if (!real)
		return EOPNOTSUPP;
	if (!(mask & IBV_SRQ_MAX_WR))
		return real(srq, attr, mask);
	if (!change_begin(&change, "ibv_modify_srq", OBJECT_srq, srq, KIND_recv_wr, attr->max_wr))
		return errno;
	result = real(srq, attr, mask);
	if (result) {
		change_force(&change, change.before);
	} else if (!change_commit(&change, srq_depth(srq, attr->max_wr))) {
		struct ibv_srq_attr old = { .max_wr = (uint32_t)change.before };

		result = real(srq, &old, IBV_SRQ_MAX_WR) ? 0 : change.library->config.deny_errno;
		change_force(&change, srq_depth(srq, change.before));
	}
	return result;
}

/* A QP in RESET is bound to no port; INIT binds it. */
int wrap_ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	__typeof__(real_verbs.ibv_modify_qp) real = REAL(ibv_modify_qp);
	struct library *library;
	struct handle *handle;
	int result, left, port, state;

	if (!real)
		return EOPNOTSUPP;
	result = real(qp, attr, mask);
	if (result || !(mask & (IBV_QP_STATE | IBV_QP_PORT)))
		return result;
	left = errno;
	library = library_active();
	handle = library ? handles_hold(&library->handles, qp, OBJECT_qp) : NULL;
	if (!handle)
		goto out;
	port = handle->qp_port;
	state = handle->qp_state;
	if (mask & IBV_QP_PORT)
		port = attr->port_num < QP_PORTS ? attr->port_num : QP_PORTS - 1;
	if (mask & IBV_QP_STATE && (int)attr->qp_state < QP_STATES) {
		state = (int)attr->qp_state;
		if (attr->qp_state == IBV_QPS_RESET)
			port = QP_NONE;
	}
	ledger_qp_moves(&library->ledger, handle->device, handle->qp_state, state, handle->qp_port,
			port);
	handle->qp_state = (int8_t)state;
	handle->qp_port = (int8_t)port;
	handles_release(&library->handles, qp);
out:
	errno = left;
	return result;
}
