/* SPDX-License-Identifier: MIT */
/* States and ports of QPs; see qp_move.h. */
#include "intercept/qp_move.h"

#include <assert.h>
#include <errno.h>

#include "intercept/gate.h"

/* Where the QP of a handle is after a call that succeeds. */
struct qp_place {
	int state, port;
};

static struct qp_place qp_place_after(const struct handle *handle, const struct ibv_qp_attr *attr,
				      int mask)
{
	struct qp_place place = { handle->qp_state, handle->qp_port };

	if (mask & IBV_QP_PORT)
		place.port = attr->port_num < QP_PORTS ? attr->port_num : QP_PORTS - 1;
	if (mask & IBV_QP_STATE && (int)attr->qp_state < QP_STATES) {
		place.state = (int)attr->qp_state;
		if (attr->qp_state == IBV_QPS_RESET)
			place.port = QP_NONE;
	}
	return place;
}

static int qp_kind_on(int port)
{
	return port == QP_NONE ? -1 : kind_on_port(KIND_qp, (unsigned)port);
}

bool qp_move_begin(struct qp_move *move, struct ibv_qp *qp, const struct ibv_qp_attr *attr,
		   int mask)
{
	int entered = errno, to, refused;
	struct handle handle;

	move->library = library_active();
	move->taken = -1;
	if (move->library && !handles_look(&move->library->handles, qp, OBJECT_qp, &handle))
		move->library = NULL;
	errno = entered;
	if (!move->library)
		return true;
	move->device = handle.device;
	to = qp_kind_on(qp_place_after(&handle, attr, mask).port);
	if (to < 0 || to == qp_kind_on(handle.qp_port))
		return true;
	refused = gate_charge_one(move->library, "ibv_modify_qp", handle.device, (enum kind)to);
	if (refused) {
		errno = refused;
		return false;
	}
	move->taken = to;
	return true;
}

/* Puts one kind on a port in the place of another in what the QP is charged for; -1: none. */
static void qp_cost_move(struct cost *cost, int from, int to)
{
	unsigned i = 0;

	while (i < cost->count && cost->kind[i] != from)
		i++;
	if (i < cost->count && to < 0) {
		cost->count--;
		cost->kind[i] = cost->kind[cost->count];
		cost->amount[i] = cost->amount[cost->count];
		cost->amount[cost->count] = 0;
	} else if (to >= 0) {
		assert(i < COST_KINDS);
		cost->kind[i] = (uint8_t)to;
		cost->amount[i] = 1;
		cost->count += i == cost->count;
	}
}

/* A QP in RESET carries no class. */
static void qp_class_leave(struct library *library, struct handle *handle)
{
	ledger_qp_class_moves(&library->ledger, handle->device, handle->qp_class, QP_NONE,
			      handle->qp_level, QP_NONE);
	handle->qp_class = handle->qp_level = QP_NONE;
}

int qp_move_end(const struct qp_move *move, struct ibv_qp *qp, const struct ibv_qp_attr *attr,
		int mask, int result)
{
	struct library *library = move->library;
	int left = errno, from = -1, to = -1;
	struct handle *handle = NULL;

	if (!library)
		return result;
	if (result == 0)
		handle = handles_hold(&library->handles, qp, OBJECT_qp);
	/* Another thread may have moved it meanwhile: what counts is what its handle says now. */
	if (handle) {
		struct qp_place place = qp_place_after(handle, attr, mask);

		from = qp_kind_on(handle->qp_port);
		to = qp_kind_on(place.port);
		ledger_qp_moves(&library->ledger, handle->device, handle->qp_state, place.state,
				handle->qp_port, place.port);
		if (from != to)
			qp_cost_move(&handle->cost, from, to);
		handle->qp_state = (int8_t)place.state;
		handle->qp_port = (int8_t)place.port;
		if (place.state == IBV_QPS_RESET && handle->qp_class != QP_NONE)
			qp_class_leave(library, handle);
		handles_release(&library->handles, qp);
	}
	if (from == to)
		from = to = -1;
	if (to >= 0 && to != move->taken)
		gate_charge_one_forced(library, move->device, (enum kind)to);
	if (move->taken >= 0 && to != move->taken)
		gate_refund_one(library, move->device, (enum kind)move->taken);
	if (from >= 0)
		gate_refund_one(library, move->device, (enum kind)from);
	errno = left;
	return result;
}
