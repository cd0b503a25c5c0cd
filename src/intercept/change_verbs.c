/* SPDX-License-Identifier: MIT */
/* The wrappers that change live objects: memory regions, depths of queues, states of QPs. */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "intercept/classes.h"
#include "intercept/costs.h"
#include "intercept/gate.h"
#include "intercept/prototypes.h"
#include "intercept/qp_move.h"

int wrap_ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		      int access)
{
	__typeof__(real_verbs.ibv_rereg_mr) real = REAL(ibv_rereg_mr);
	struct change change = { .library = NULL };
	uint64_t begun;
	int result;

	if (!real)
		return IBV_REREG_MR_ERR_INPUT;
	result = rates_pass(RATE_reg_mr, "ibv_rereg_mr");
	if (result) {
		call_count_refused_active(VERB_reg_mr);
		errno = result;
		return IBV_REREG_MR_ERR_INPUT;
	}
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION &&
	    !change_begin(&change, "ibv_rereg_mr", OBJECT_mr, mr, KIND_mr_bytes, bytes(length))) {
		call_count_refused_active(VERB_reg_mr);
		return IBV_REREG_MR_ERR_INPUT;
	}
	begun = cycles_now();
	result = real(mr, flags, pd, addr, length, access);
	call_count_active(VERB_reg_mr, begun, result != 0);
	/* Only these two leave the new registration in force; after any other the
	 * old one counts until it is deregistered, usable or not. */
	if (result == 0 || result == IBV_REREG_MR_ERR_DO_FORK_OLD) {
		change_force(&change, bytes(length));
	} else {
		change_fail(&change, mr->context, errno);
		change_force(&change, change.before);
	}
	return result;
}

int wrap_ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	__typeof__(real_verbs.ibv_resize_cq) real = REAL(ibv_resize_cq);
	struct change change;
	uint64_t begun;
	int result;

	if (!real)
		return EOPNOTSUPP;
	if (!change_begin(&change, "ibv_resize_cq", OBJECT_cq, cq, KIND_cqe,
			  cqe > 0 ? (uint64_t)cqe : 0)) {
		call_count_refused_active(VERB_resize);
		return errno;
	}
	begun = cycles_now();
	result = real(cq, cqe);
	call_count_active(VERB_resize, begun, result != 0);
	if (result) {
		change_fail(&change, cq->context, result);
		change_force(&change, change.before);
		return result;
	}
	if (change_commit(&change, (uint64_t)cq->cqe))
		return 0;
	/* Rounded up beyond the limit: back to the old size, or keep what it is now. */
	result = real(cq, (int)change.before);
	change_force(&change, (uint64_t)cq->cqe);
	if (result)
		return 0;
	call_count_refused(change.library, VERB_resize);
	return change.library->config.deny_errno;
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
	uint64_t begun;
	int result;

	if (!real)
		return EOPNOTSUPP;
	if (!(mask & IBV_SRQ_MAX_WR))
		return real(srq, attr, mask);
	if (!change_begin(&change, "ibv_modify_srq", OBJECT_srq, srq, KIND_recv_wr, attr->max_wr)) {
		call_count_refused_active(VERB_resize);
		return errno;
	}
	begun = cycles_now();
	result = real(srq, attr, mask);
	call_count_active(VERB_resize, begun, result != 0);
	if (result) {
		change_fail(&change, srq->context, result);
		change_force(&change, change.before);
	} else if (!change_commit(&change, srq_depth(srq, attr->max_wr))) {
		struct ibv_srq_attr old = { .max_wr = (uint32_t)change.before };

		result = real(srq, &old, IBV_SRQ_MAX_WR) ? 0 : change.library->config.deny_errno;
		change_force(&change, srq_depth(srq, change.before));
		if (result)
			call_count_refused(change.library, VERB_resize);
	}
	return result;
}

/* The call with the classes of the tenant in the addresses. */
static __attribute__((noinline, cold)) int qp_modify_classed(__typeof__(real_verbs.ibv_modify_qp) real, struct ibv_qp *qp,
			     struct ibv_qp_attr *attr, int mask, uint64_t classes)
{
	struct ibv_qp_attr copy;
	struct library *library;
	struct handle *handle;
	int result, left;

	/* Programs that were built long ago have no more than that. */
	memcpy(&copy, attr,
	       mask & IBV_QP_RATE_LIMIT ? sizeof(copy) : offsetof(struct ibv_qp_attr, rate_limit));
	if (mask & IBV_QP_AV)
		class_address_set(&copy.ah_attr, classes, "ibv_modify_qp");
	if (mask & IBV_QP_ALT_PATH)
		class_address_set(&copy.alt_ah_attr, classes, "ibv_modify_qp");
	result = real(qp, &copy, mask);
	if (mask & IBV_QP_CAP) /* the only part that comes back */
		attr->cap = copy.cap;
	if (result || !(mask & IBV_QP_AV))
		return result;
	left = errno;
	library = library_active();
	handle = library ? handles_hold(&library->handles, qp, OBJECT_qp) : NULL;
	if (handle) {
		int class = copy.ah_attr.is_global ? copy.ah_attr.grh.traffic_class >> 2 : 0;
		int level = copy.ah_attr.sl % QP_LEVELS;

		ledger_qp_class_moves(&library->ledger, handle->device, handle->qp_class, class,
				      handle->qp_level, level);
		handle->qp_class = (int8_t)class;
		handle->qp_level = (int8_t)level;
		handles_release(&library->handles, qp);
	}
	errno = left;
	return result;
}

static inline int qp_modify(__typeof__(real_verbs.ibv_modify_qp) real, struct ibv_qp *qp,
			    struct ibv_qp_attr *attr, int mask)
{
	uint64_t classes = mask & (IBV_QP_AV | IBV_QP_ALT_PATH) ? classes_in_force() : 0;
	uint64_t begun = cycles_now();
	int result = __builtin_expect(classes != 0, 0) ?
			     qp_modify_classed(real, qp, attr, mask, classes) :
			     real(qp, attr, mask);

	call_count_active(VERB_modify_qp, begun, result != 0);
	return result;
}

int wrap_ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	__typeof__(real_verbs.ibv_modify_qp) real = REAL(ibv_modify_qp);
	struct qp_move move;
	int result;

	if (!real)
		return EOPNOTSUPP;
	result = rates_pass(RATE_modify_qp, "ibv_modify_qp");
	if (result) {
		call_count_refused_active(VERB_modify_qp);
		return result;
	}
	if (!(mask & (IBV_QP_STATE | IBV_QP_PORT)))
		return qp_modify(real, qp, attr, mask);
	if (!qp_move_begin(&move, qp, attr, mask)) {
		call_count_refused_active(VERB_modify_qp);
		return errno;
	}
	return qp_move_end(&move, qp, attr, mask, qp_modify(real, qp, attr, mask));
}
