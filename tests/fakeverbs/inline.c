/* SPDX-License-Identifier: MIT */
/*
 * The verbs that applications reach through the context: the header's static
 * inlines call these pointers, there is no symbol for them. One list names
 * every operation; it fills the context and serves FAKEVERBS_NO_OP.
 */
#include <stdlib.h>
#include <string.h>

#include "fake_internal.h"

/* ---- domains and memory ---- */

static struct ibv_pd *do_alloc_parent_domain(struct ibv_context *context,
					     struct ibv_parent_domain_init_attr *attr)
{
	ENTER_NEW(ibv_alloc_parent_domain);
	struct ibv_pd *pd = fake_object_new(context, FAKE_parent_domain, sizeof(*pd),
					    USES(attr->pd, attr->td));

	if (pd) {
		pd->context = context;
		pd->handle = attr->pd->handle; /* a name for that PD, no PD of the kernel's */
	}
	return pd;
}

static struct ibv_td *do_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
	ENTER_NEW(ibv_alloc_td);
	struct ibv_td *td = fake_object_new(context, FAKE_td, sizeof(*td), USES(NULL));

	if (td)
		td->context = context;
	return td;
}

static int do_dealloc_td(struct ibv_td *td)
{
	ENTER_ERRNO(ibv_dealloc_td);
	return fake_object_destroy(td, FAKE_td);
}

static struct ibv_mr *do_alloc_null_mr(struct ibv_pd *pd)
{
	ENTER_NEW(ibv_alloc_null_mr);
	return fake_mr_new(pd, NULL, NULL, SIZE_MAX);
}

static struct ibv_mr *do_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset,
				   size_t length, unsigned int access)
{
	ENTER_NEW(ibv_reg_dm_mr);
	return fake_mr_new(pd, dm, NULL, length);
}

static int do_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
			struct ibv_sge *sg_list, uint32_t num_sges)
{
	ENTER_ERRNO(ibv_advise_mr);
	return 0;
}

static struct ibv_dm *do_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
	ENTER_NEW(ibv_alloc_dm);
	return fake_dm_new(context, attr);
}

static int do_free_dm(struct ibv_dm *dm)
{
	ENTER_ERRNO(ibv_free_dm);
	return fake_object_destroy(dm, FAKE_dm);
}

static struct ibv_mw *do_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	ENTER_NEW(ibv_alloc_mw);
	struct ibv_mw *mw = fake_object_new(pd->context, FAKE_mw, sizeof(*mw), USES(pd));

	if (mw) {
		mw->context = pd->context;
		mw->pd = pd;
		mw->handle = fake_header(mw)->handle;
		mw->rkey = mw->handle << 8;
		mw->type = type;
	}
	return mw;
}

static int do_dealloc_mw(struct ibv_mw *mw)
{
	ENTER_ERRNO(ibv_dealloc_mw);
	return fake_object_destroy(mw, FAKE_mw);
}

static int do_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	ENTER_ERRNO(ibv_bind_mw);
	mw->rkey = ibv_inc_rkey(mw->rkey);
	return 0;
}

/* ---- queues ---- */

static struct ibv_cq_ex *do_create_cq_ex(struct ibv_context *context,
					 struct ibv_cq_init_attr_ex *attr)
{
	ENTER_NEW(ibv_create_cq_ex);
	struct fake_cq *fake = fake_cq_new(verdict, context, attr);

	return fake ? &fake->ex : NULL;
}

static int do_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
	ENTER_ERRNO(ibv_modify_cq);
	return 0;
}

static struct ibv_srq *do_create_srq_ex(struct ibv_context *context,
					struct ibv_srq_init_attr_ex *attr)
{
	ENTER_NEW(ibv_create_srq_ex);
	uint32_t mask = attr->comp_mask;

	return fake_srq_new(verdict, context, mask & IBV_SRQ_INIT_ATTR_PD ? attr->pd : NULL,
			    (struct ibv_srq_init_attr *)attr,
			    mask & IBV_SRQ_INIT_ATTR_XRCD ? attr->xrcd : NULL,
			    mask & IBV_SRQ_INIT_ATTR_CQ ? attr->cq : NULL);
}

static int do_get_srq_num(struct ibv_srq *srq, uint32_t *srq_num)
{
	ENTER_ERRNO(ibv_get_srq_num);
	*srq_num = srq->handle;
	return 0;
}

static struct ibv_qp *do_create_qp_ex(struct ibv_context *context,
				      struct ibv_qp_init_attr_ex *attr)
{
	ENTER_NEW(ibv_create_qp_ex);
	return fake_qp_new_ex(verdict, context, attr);
}

static struct ibv_qp *do_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *open)
{
	ENTER_NEW(ibv_open_qp);
	struct ibv_qp_init_attr_ex attr = {
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.qp_context = open->qp_context,
		.qp_type = open->qp_type,
		.xrcd = open->xrcd,
	};
	struct ibv_qp *qp = fake_qp_new_ex(verdict, context, &attr);

	if (qp)
		qp->qp_num = open->qp_num;
	return qp;
}

static struct ibv_wq *do_create_wq(struct ibv_context *context, struct ibv_wq_init_attr *attr)
{
	ENTER_NEW(ibv_create_wq);
	return fake_wq_new(verdict, context, attr);
}

static int do_modify_wq(struct ibv_wq *wq, struct ibv_wq_attr *attr)
{
	ENTER_ERRNO(ibv_modify_wq);
	if (attr->attr_mask & IBV_WQ_ATTR_STATE)
		wq->state = attr->wq_state;
	return 0;
}

static int do_destroy_wq(struct ibv_wq *wq)
{
	ENTER_ERRNO(ibv_destroy_wq);
	return fake_object_destroy(wq, FAKE_wq);
}

static struct ibv_rwq_ind_table *do_create_rwq_ind_table(struct ibv_context *context,
							 struct ibv_rwq_ind_table_init_attr *attr)
{
	ENTER_NEW(ibv_create_rwq_ind_table);
	struct ibv_rwq_ind_table *table =
		fake_object_new(context, FAKE_rwq_table, sizeof(*table), USES(NULL));

	if (table) {
		table->context = context;
		table->ind_tbl_handle = (int)fake_header(table)->handle;
		table->ind_tbl_num = table->ind_tbl_handle;
	}
	return table;
}

static int do_destroy_rwq_ind_table(struct ibv_rwq_ind_table *table)
{
	ENTER_ERRNO(ibv_destroy_rwq_ind_table);
	return fake_object_destroy(table, FAKE_rwq_table);
}

static struct ibv_xrcd *do_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr)
{
	ENTER_NEW(ibv_open_xrcd);
	struct ibv_xrcd *xrcd = fake_object_new(context, FAKE_xrcd, sizeof(*xrcd), USES(NULL));

	if (xrcd)
		xrcd->context = context;
	return xrcd;
}

static int do_close_xrcd(struct ibv_xrcd *xrcd)
{
	ENTER_ERRNO(ibv_close_xrcd);
	return fake_object_destroy(xrcd, FAKE_xrcd);
}

/* ---- flows and counters ---- */

static struct ibv_flow *do_ibv_create_flow(struct ibv_qp *qp, struct ibv_flow_attr *attr)
{
	ENTER_NEW(ibv_create_flow);
	struct ibv_flow *flow = fake_object_new(qp->context, FAKE_flow, sizeof(*flow), USES(qp));

	if (flow) {
		flow->context = qp->context;
		flow->handle = fake_header(flow)->handle;
	}
	return flow;
}

static int do_ibv_destroy_flow(struct ibv_flow *flow)
{
	ENTER_ERRNO(ibv_destroy_flow);
	return fake_object_destroy(flow, FAKE_flow);
}

static struct ibv_counters *do_create_counters(struct ibv_context *context,
					       struct ibv_counters_init_attr *attr)
{
	ENTER_NEW(ibv_create_counters);
	struct ibv_counters *counters =
		fake_object_new(context, FAKE_counters, sizeof(*counters), USES(NULL));

	if (counters)
		counters->context = context;
	return counters;
}

static int do_destroy_counters(struct ibv_counters *counters)
{
	ENTER_ERRNO(ibv_destroy_counters);
	return fake_object_destroy(counters, FAKE_counters);
}

/* ---- queries ---- */

static int do_query_device_ex(struct ibv_context *context,
			      const struct ibv_query_device_ex_input *input,
			      struct ibv_device_attr_ex *attr, size_t size)
{
	ENTER_ERRNO(ibv_query_device_ex);
	memset(attr, 0, size);
	fake_query_device(context, &attr->orig_attr);
	if (size == sizeof(*attr)) {
		attr->odp_caps.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
		attr->max_dm_size = 1 << 20;
		attr->phys_port_cnt_ex = attr->orig_attr.phys_port_cnt;
	}
	return 0;
}

static int do_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr,
			 size_t size)
{
	ENTER_ERRNO(ibv_query_port);
	return fake_query_port(port, attr, size);
}

/* ---- the data path: trivial, unless a test set a rule ---- */

#define RULED(verb) __builtin_expect(fake_rules[VERB_##verb], 0)

/* FAKE_FAIL_SILENT: as a provider that has no such operation, which names no bad request. */
static int do_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	if (RULED(ibv_post_send)) {
		ENTER_AS(ibv_post_send,
			 verdict.behaviour == FAKE_FAIL_SILENT ? EOPNOTSUPP :
								 (*bad_wr = wr, verdict.value));
	}
	return 0;
}

static int do_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	if (RULED(ibv_post_recv)) {
		ENTER_AS(ibv_post_recv, (*bad_wr = wr, verdict.value));
	}
	return 0;
}

static int do_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
			    struct ibv_recv_wr **bad_wr)
{
	if (RULED(ibv_post_srq_recv)) {
		ENTER_AS(ibv_post_srq_recv, (*bad_wr = wr, verdict.value));
	}
	return 0;
}

/* FAKE_CODE n: n successful completions, all zero. */
static int do_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc)
{
	if (RULED(ibv_poll_cq)) {
		const struct fake_verdict verdict = fake_enter(VERB_ibv_poll_cq);

		if (verdict.behaviour == FAKE_CODE && verdict.value > 0)
			memset(wc, 0, sizeof(*wc) * (size_t)verdict.value);
		return fake_refused(verdict) ? fake_refuse_call(verdict) : 0;
	}
	return 0;
}

static int do_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	if (RULED(ibv_req_notify_cq)) {
		ENTER_ERRNO(ibv_req_notify_cq);
	}
	return 0;
}

/* ---- the context ---- */

#define BASIC_OPS(X) \
	X(alloc_mw) X(bind_mw) X(dealloc_mw) X(poll_cq) X(req_notify_cq) X(post_srq_recv) \
	X(post_send) X(post_recv)

#define EXTENDED_OPS(X) \
	X(query_port) X(advise_mr) X(alloc_null_mr) X(create_counters) X(destroy_counters) \
	X(reg_dm_mr) X(alloc_dm) X(free_dm) X(alloc_parent_domain) X(dealloc_td) X(alloc_td) \
	X(modify_cq) X(destroy_rwq_ind_table) X(create_rwq_ind_table) X(destroy_wq) X(modify_wq) \
	X(create_wq) X(create_cq_ex) X(query_device_ex) X(ibv_destroy_flow) X(ibv_create_flow) \
	X(open_qp) X(create_qp_ex) X(get_srq_num) X(create_srq_ex) X(open_xrcd) X(close_xrcd)

static const struct {
	const char *name;
	size_t offset;
} ops[] = {
#define BASIC(op) { #op, offsetof(struct verbs_context, context.ops.op) },
#define EXTENDED(op) { #op, offsetof(struct verbs_context, op) },
	BASIC_OPS(BASIC) EXTENDED_OPS(EXTENDED)
#undef BASIC
#undef EXTENDED
};

static const struct verbs_context complete = {
#define SET(op) .op = do_##op,
	EXTENDED_OPS(SET) .context.ops = { BASIC_OPS(SET) },
#undef SET
	.sz = sizeof(struct verbs_context),
};

void fake_context_fill(struct verbs_context *verbs)
{
	const char *sz = getenv("FAKEVERBS_SZ");
	const char *missing = getenv("FAKEVERBS_NO_OP");

	*verbs = complete;
	if (sz)
		verbs->sz = strtoul(sz, NULL, 0);
	if (!missing)
		return;
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		if (!strcmp(ops[i].name, missing))
			memset((char *)verbs + ops[i].offset, 0, sizeof(void (*)(void)));
}
