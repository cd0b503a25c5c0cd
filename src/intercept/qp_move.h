/* SPDX-License-Identifier: MIT */
/*
 * A QP changes its state or its port: begin (the new port's limits asked, its place there
 * taken), the real call, then end (the old place given back, or the new one after a failure). A
 * QP in RESET is on no port; the modify to INIT that names a port puts it there. An alternate path
 * does not count. No lock is held across the real call.
 */
#ifndef INTERCEPT_QP_MOVE_H
#define INTERCEPT_QP_MOVE_H

#include <infiniband/verbs.h>
#include <stdbool.h>

struct library;

struct qp_move {
	struct library *library; /* NULL: the QP is not ours to count */
	unsigned device;
	int taken; /* the kind on a port of which one was taken; -1: none */
};

/* False: refused, and errno says so. */
bool qp_move_begin(struct qp_move *move, struct ibv_qp *qp, const struct ibv_qp_attr *attr,
		   int mask);

/* Returns result, which is 0 when the QP has changed. errno stays as the real call left it. */
int qp_move_end(const struct qp_move *move, struct ibv_qp *qp, const struct ibv_qp_attr *attr,
		int mask, int result);

#endif
