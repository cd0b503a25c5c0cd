/* SPDX-License-Identifier: MIT */
/*
 * The steering wheel of the stand-in libibverbs: which verb fails and how,
 * what is alive, what was called. The stand-in exists for speed and fault
 * injection; it proves nothing about a kernel.
 */
#ifndef FAKEVERBS_H
#define FAKEVERBS_H

struct ibv_ah_attr;
struct ibv_cq;
struct rdma_cm_id;
struct rdma_event_channel;

/* What the next matching call does instead of its ordinary work. */
enum fake_behaviour {
	FAKE_WORK,	  /* ordinary success */
	FAKE_FAIL,	  /* fails with the errno given, by the verb's own convention */
	FAKE_FAIL_SILENT, /* a constructor returns NULL and leaves errno alone */
	FAKE_ROUND_UP,	  /* succeeds with depths rounded up to the next power of two, then doubled */
	FAKE_CODE,	  /* returns the number given as it is (for ibv_rereg_mr: -1 … -5) */
	FAKE_RAISE,	  /* raises the signal given in the calling thread, then works */
};

/*
 * From the (skip+1)th call of verb on, the next `times` calls behave so.
 * Verbs are named as applications name them: "ibv_create_qp", "ibv_create_qp_ex"
 * (also for inline verbs), "rdma_create_id", "mlx5dv_create_qp".
 * value: the errno for FAKE_FAIL, the return value for FAKE_CODE,
 * the signal for FAKE_RAISE.
 * A failing constructor makes no object; a failing destructor keeps it.
 */
void fake_set(const char *verb, enum fake_behaviour behaviour, int value, unsigned skip, unsigned times);

/* Calls of the verb that reached the stand-in, also those that failed. The
 * old twins count as "ibv_create_qp@IBVERBS_1.0". */
unsigned long fake_calls(const char *verb);

/* Live objects by noun: ctx pd cq qp srq mr mw ah xrcd wq rwq_table flow dm
 * comp_channel cm_id umem devx_obj; "all" for their sum. */
long fake_live(const char *noun);

/* Highest value that fake_live(noun) ever had since the last reset. */
long fake_peak(const char *noun);

/* Forget behaviours, call counts and peaks; live objects stay. */
void fake_reset(void);

/* The last address that reached the stand-in by ibv_modify_qp or ibv_create_ah; the alternate one
 * by ibv_modify_qp alone. */
const struct ibv_ah_attr *fake_address(int alternate);

/* Makes one completion event for the CQ appear on its channel. */
int fake_cq_event(struct ibv_cq *cq);

/* Queues a connection-manager event (an rdma_cm_event_type number) for id on
 * its channel. For RDMA_CM_EVENT_CONNECT_REQUEST, id is the listener and the
 * event that rdma_get_cm_event returns carries a new id. */
int fake_cm_event(struct rdma_cm_id *id, int event);

#endif
