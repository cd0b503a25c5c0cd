/* SPDX-License-Identifier: MIT */
/*
 * Shared receive queues, queue pairs, receive work queues and address
 * handles. Depths are granted as asked, unless the verdict says ROUND_UP.
 */
#include "fake_internal.h"

struct fake_qp {
	struct ibv_qp_ex ex; /* qp_base is what ibv_create_qp returns */
	struct ibv_qp_cap cap;
	bool extended;
	bool sq_sig_all;
};

static atomic_uint last_number = 0x10;

static uint32_t next_number(void)
{
	return atomic_fetch_add_explicit(&last_number, 1, memory_order_relaxed) + 1;
}

/* ---- shared receive queues ---- */

struct ibv_srq *fake_srq_new(struct fake_verdict verdict, struct ibv_context *context,
			     struct ibv_pd *pd, struct ibv_srq_init_attr *attr, void *xrcd,
			     void *cq)
{
	struct fake_srq *fake =
		fake_object_new(context, FAKE_srq, sizeof(*fake), USES(pd, xrcd, cq));

	if (!fake)
		return NULL;
	attr->attr.max_wr = fake_depth(verdict, attr->attr.max_wr);
	fake->attr = attr->attr;
	fake->srq.context = context;
	fake->srq.srq_context = attr->srq_context;
	fake->srq.pd = pd;
	fake->srq.handle = fake_header(fake)->handle;
	return &fake->srq;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	ENTER_NEW(ibv_create_srq);
	return fake_srq_new(verdict, pd->context, pd, attr, NULL, NULL);
}

int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	ENTER_ERRNO(ibv_modify_srq);
	struct fake_srq *fake = (struct fake_srq *)srq;

	fake_object_of(srq, FAKE_srq);
	if (mask & IBV_SRQ_MAX_WR)
		fake->attr.max_wr = attr->max_wr = fake_depth(verdict, attr->max_wr);
	if (mask & IBV_SRQ_LIMIT)
		fake->attr.srq_limit = attr->srq_limit;
	return 0;
}

int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	ENTER_ERRNO(ibv_query_srq);
	*attr = ((struct fake_srq *)srq)->attr;
	return 0;
}

int ibv_destroy_srq(struct ibv_srq *srq)
{
	ENTER_ERRNO(ibv_destroy_srq);
	return fake_object_destroy(srq, FAKE_srq);
}

/* ---- the ibv_wr_* interface: every request is swallowed ---- */

static void wr_nothing(struct ibv_qp_ex *qp)
{
}

static void wr_key(struct ibv_qp_ex *qp, uint32_t key)
{
}

static void wr_imm(struct ibv_qp_ex *qp, __be32 imm)
{
}

static void wr_remote(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr)
{
}

static void wr_remote_imm(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, __be32 imm)
{
}

static void wr_cmp_swp(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, uint64_t compare,
		       uint64_t swap)
{
}

static void wr_fetch_add(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, uint64_t add)
{
}

static void wr_atomic_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, const void *data)
{
}

static void wr_bind(struct ibv_qp_ex *qp, struct ibv_mw *mw, uint32_t rkey,
		    const struct ibv_mw_bind_info *info)
{
}

static void wr_tso(struct ibv_qp_ex *qp, void *hdr, uint16_t hdr_sz, uint16_t mss)
{
}

static void wr_ud_addr(struct ibv_qp_ex *qp, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
}

static void wr_inline(struct ibv_qp_ex *qp, void *addr, size_t length)
{
}

static void wr_inline_list(struct ibv_qp_ex *qp, size_t n, const struct ibv_data_buf *list)
{
}

static void wr_sge(struct ibv_qp_ex *qp, uint32_t lkey, uint64_t addr, uint32_t length)
{
}

static void wr_sge_list(struct ibv_qp_ex *qp, size_t n, const struct ibv_sge *list)
{
}

static int wr_complete(struct ibv_qp_ex *qp)
{
	return 0;
}

static void qp_extend(struct fake_qp *fake)
{
	struct ibv_qp_ex *ex = &fake->ex;

	fake->extended = true;
	ex->wr_atomic_cmp_swp = wr_cmp_swp;
	ex->wr_atomic_fetch_add = wr_fetch_add;
	ex->wr_atomic_write = wr_atomic_write;
	ex->wr_bind_mw = wr_bind;
	ex->wr_local_inv = wr_key;
	ex->wr_rdma_read = wr_remote;
	ex->wr_rdma_write = wr_remote;
	ex->wr_rdma_write_imm = wr_remote_imm;
	ex->wr_send = wr_nothing;
	ex->wr_send_imm = wr_imm;
	ex->wr_send_inv = wr_key;
	ex->wr_send_tso = wr_tso;
	ex->wr_set_ud_addr = wr_ud_addr;
	ex->wr_set_xrc_srqn = wr_key;
	ex->wr_set_inline_data = wr_inline;
	ex->wr_set_inline_data_list = wr_inline_list;
	ex->wr_set_sge = wr_sge;
	ex->wr_set_sge_list = wr_sge_list;
	ex->wr_start = wr_nothing;
	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_nothing;
}

/* ---- queue pairs ---- */

struct ibv_qp *fake_qp_new(struct fake_verdict verdict, struct ibv_context *context,
			   struct ibv_pd *pd, struct ibv_qp_init_attr *attr,
			   const struct ibv_qp_init_attr_ex *ex)
{
	uint32_t mask = ex ? ex->comp_mask : 0;
	struct ibv_xrcd *xrcd = mask & IBV_QP_INIT_ATTR_XRCD ? ex->xrcd : NULL;
	struct ibv_rwq_ind_table *table =
		mask & IBV_QP_INIT_ATTR_IND_TABLE ? ex->rwq_ind_tbl : NULL;
	struct fake_qp *fake =
		fake_object_new(context, FAKE_qp, sizeof(*fake),
				USES(pd, attr->send_cq, attr->recv_cq, attr->srq, xrcd, table));
	struct ibv_qp *qp;

	if (!fake)
		return NULL;
	attr->cap.max_send_wr = fake_depth(verdict, attr->cap.max_send_wr);
	attr->cap.max_recv_wr = fake_depth(verdict, attr->cap.max_recv_wr);
	fake->cap = attr->cap;
	fake->sq_sig_all = attr->sq_sig_all;
	qp = &fake->ex.qp_base;
	qp->context = context;
	qp->qp_context = attr->qp_context;
	qp->pd = pd;
	qp->send_cq = attr->send_cq;
	qp->recv_cq = attr->recv_cq;
	qp->srq = attr->srq;
	qp->handle = fake_header(fake)->handle;
	qp->qp_num = next_number();
	qp->qp_type = attr->qp_type;
	if (mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		qp_extend(fake);
	return qp;
}

struct ibv_qp *fake_qp_new_ex(struct fake_verdict verdict, struct ibv_context *context,
			      struct ibv_qp_init_attr_ex *ex)
{
	struct ibv_pd *pd = ex->comp_mask & IBV_QP_INIT_ATTR_PD ? ex->pd : NULL;

	return fake_qp_new(verdict, context, pd, (struct ibv_qp_init_attr *)ex, ex);
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	ENTER_NEW(ibv_create_qp);
	return fake_qp_new(verdict, pd->context, pd, attr, NULL);
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	ENTER_NEW(ibv_qp_to_qp_ex);
	struct fake_qp *fake = (struct fake_qp *)qp;

	return fake->extended ? &fake->ex : NULL;
}

static struct ibv_ah_attr addresses[2];

const struct ibv_ah_attr *fake_address(int alternate)
{
	return &addresses[alternate];
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	ENTER_ERRNO(ibv_modify_qp);
	struct fake_qp *fake = (struct fake_qp *)qp;

	if (mask & IBV_QP_AV)
		addresses[0] = attr->ah_attr;
	if (mask & IBV_QP_ALT_PATH)
		addresses[1] = attr->alt_ah_attr;

	fake_object_of(qp, FAKE_qp);
	if (mask & IBV_QP_CAP) {
		attr->cap.max_send_wr = fake_depth(verdict, attr->cap.max_send_wr);
		attr->cap.max_recv_wr = fake_depth(verdict, attr->cap.max_recv_wr);
		fake->cap = attr->cap;
	}
	if (mask & IBV_QP_STATE) {
		qp->state = attr->qp_state;
		/* as mlx5 does, which undoes what somebody hung in there */
		if (fake->extended && (qp->state == IBV_QPS_RESET || qp->state == IBV_QPS_RTS))
			fake->ex.wr_complete = wr_complete;
	}
	return 0;
}

int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		 struct ibv_qp_init_attr *init_attr)
{
	ENTER_ERRNO(ibv_query_qp);
	struct fake_qp *fake = (struct fake_qp *)qp;

	fake_object_of(qp, FAKE_qp);
	*attr = (struct ibv_qp_attr){
		.qp_state = qp->state,
		.cur_qp_state = qp->state,
		.path_mtu = IBV_MTU_1024,
		.cap = fake->cap,
		.port_num = 1,
	};
	*init_attr = (struct ibv_qp_init_attr){
		.qp_context = qp->qp_context,
		.send_cq = qp->send_cq,
		.recv_cq = qp->recv_cq,
		.srq = qp->srq,
		.cap = fake->cap,
		.qp_type = qp->qp_type,
		.sq_sig_all = fake->sq_sig_all,
	};
	return 0;
}

int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	ENTER_CALL(ibv_query_qp_data_in_order);
	return 0;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	ENTER_ERRNO(ibv_destroy_qp);
	return fake_object_destroy(qp, FAKE_qp);
}

int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	ENTER_ERRNO(ibv_attach_mcast);
	return 0;
}

int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	ENTER_ERRNO(ibv_detach_mcast);
	return 0;
}

int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece);
int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece);

int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	ENTER_ERRNO(ibv_set_ece);
	return 0;
}

int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	ENTER_ERRNO(ibv_query_ece);
	*ece = (struct ibv_ece){ 0 };
	return 0;
}

/* ---- receive work queues ---- */

static int wq_post_recv(struct ibv_wq *wq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	if (fake_rules[VERB_ibv_post_wq_recv]) {
		ENTER_AS(ibv_post_wq_recv, (*bad_wr = wr, verdict.value));
	}
	return 0;
}

struct ibv_wq *fake_wq_new(struct fake_verdict verdict, struct ibv_context *context,
			   struct ibv_wq_init_attr *attr)
{
	struct ibv_wq *wq =
		fake_object_new(context, FAKE_wq, sizeof(*wq), USES(attr->pd, attr->cq));

	if (wq) {
		attr->max_wr = fake_depth(verdict, attr->max_wr);
		wq->context = context;
		wq->wq_context = attr->wq_context;
		wq->pd = attr->pd;
		wq->cq = attr->cq;
		wq->wq_num = next_number();
		wq->handle = fake_header(wq)->handle;
		wq->wq_type = attr->wq_type;
		wq->post_recv = wq_post_recv;
	}
	return wq;
}

/* ---- address handles ---- */

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	ENTER_NEW(ibv_create_ah);
	struct ibv_ah *ah = fake_object_new(pd->context, FAKE_ah, sizeof(*ah), USES(pd));

	addresses[0] = *attr;
	if (ah) {
		ah->context = pd->context;
		ah->pd = pd;
		ah->handle = fake_header(ah)->handle;
	}
	return ah;
}

int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port, struct ibv_wc *wc,
			struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	ENTER_CALL(ibv_init_ah_from_wc);
	*attr = (struct ibv_ah_attr){ .dlid = wc->slid, .sl = wc->sl, .port_num = port };
	return 0;
}

struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh,
				     uint8_t port)
{
	ENTER_NEW(ibv_create_ah_from_wc);
	struct ibv_ah_attr attr;

	if (ibv_init_ah_from_wc(pd->context, port, wc, grh, &attr))
		return NULL;
	return ibv_create_ah(pd, &attr);
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
	ENTER_ERRNO(ibv_destroy_ah);
	return fake_object_destroy(ah, FAKE_ah);
}
