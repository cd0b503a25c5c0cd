/* SPDX-License-Identifier: MIT */
/*
 * The rows of the test of all verbs: for each row of verbs.def that makes an object a call that
 * makes one, a call that frees it, and what it costs.
 */
#include <infiniband/efadv.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <string.h>
#include <unistd.h>

#include "fakeverbs.h"
#include "table.h"

struct ibv_mr_init_attr;
struct ibv_buf;
struct hnsdv_qp_init_attr;
struct mlx4dv_qp_init_attr;
struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd, struct ibv_mr_init_attr *attr);
struct ibv_mr *ibv_reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buf, void *addr, size_t length,
			      int access);
struct ibv_context *verbs_open_device(struct ibv_device *device, void *private_data);
struct ibv_qp *hnsdv_create_qp(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
			       struct hnsdv_qp_init_attr *hns_attr);
struct ibv_qp *mlx4dv_create_qp(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
				struct mlx4dv_qp_init_attr *mlx4_attr);
struct ibv_pd *manadv_alloc_pd(struct ibv_context *context, uint32_t flags);
struct ibv_mr *mlx5dv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
				    uint64_t iova, int fd, int access, int mlx5_access);
/* In newer headers a macro of this name stands for the other one, in parentheses it does not. */
struct ibv_flow *(mlx5dv_create_flow)(struct mlx5dv_flow_matcher *matcher,
				      struct mlx5dv_flow_match_parameters *value, size_t actions,
				      struct mlx5dv_flow_action_attr attr[]);
struct ibv_flow *__mlx5dv_create_flow(struct mlx5dv_flow_matcher *matcher,
				      struct mlx5dv_flow_match_parameters *value, size_t actions,
				      struct mlx5dv_flow_action_attr attr[], size_t attr_length);

static char memory[2 * MR_LENGTH];

/* ---- one maker per row ---- */

#define MAKE(verb) static void *make_##verb(struct fixture *f)

MAKE(ibv_open_device) { return ibv_open_device(f->devices[0]); }
MAKE(verbs_open_device) { return verbs_open_device(f->devices[0], NULL); }
MAKE(ibv_alloc_pd) { return ibv_alloc_pd(f->context); }
MAKE(ibv_alloc_parent_domain)
{
	struct ibv_parent_domain_init_attr attr = { .pd = f->pd };

	return ibv_alloc_parent_domain(f->context, &attr);
}
MAKE(ibv_reg_mr) { return (ibv_reg_mr)(f->pd, memory, MR_LENGTH, IBV_ACCESS_LOCAL_WRITE); }
MAKE(ibv_reg_mr_iova) { return (ibv_reg_mr_iova)(f->pd, memory, MR_LENGTH, 0, 0); }
MAKE(ibv_reg_mr_iova2) { return ibv_reg_mr_iova2(f->pd, memory, MR_LENGTH, 0, 0); }
MAKE(ibv_reg_dmabuf_mr) { return ibv_reg_dmabuf_mr(f->pd, 0, MR_LENGTH, 0, 0, 0); }
MAKE(ibv_reg_mr_ex)
{
	struct {
		size_t length;
		int access;
		uint64_t comp_mask, iova;
		void *addr;
		uint64_t rest[4];
	} attr = { .length = MR_LENGTH, .comp_mask = 1 << 1, .addr = memory };

	return ibv_reg_mr_ex(f->pd, (struct ibv_mr_init_attr *)&attr);
}
MAKE(ibv_reg_buf_mr) { return ibv_reg_buf_mr(f->pd, NULL, memory, MR_LENGTH, 0); }
MAKE(ibv_alloc_null_mr) { return ibv_alloc_null_mr(f->pd); }
MAKE(ibv_reg_dm_mr) /* not of device memory that is itself charged: that has a row of its own */
{
	static struct ibv_dm *dm;
	struct ibv_alloc_dm_attr attr = { .length = 64 };

	if (!dm)
		dm = ibv_alloc_dm(f->context, &attr);
	return ibv_reg_dm_mr(f->pd, dm, 0, 64, 0);
}
MAKE(ibv_alloc_mw) { return ibv_alloc_mw(f->pd, IBV_MW_TYPE_1); }
MAKE(ibv_alloc_dm)
{
	struct ibv_alloc_dm_attr attr = { .length = 64 };

	return ibv_alloc_dm(f->context, &attr);
}
MAKE(ibv_create_comp_channel) { return ibv_create_comp_channel(f->context); }
MAKE(ibv_create_cq) { return ibv_create_cq(f->context, CQ_DEPTH, NULL, NULL, 0); }
MAKE(ibv_create_cq_ex)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = CQ_DEPTH };

	return ibv_create_cq_ex(f->context, &attr);
}
MAKE(ibv_create_srq)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = SRQ_DEPTH, .max_sge = 1 } };

	return ibv_create_srq(f->pd, &attr);
}
MAKE(ibv_create_srq_ex)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = SRQ_DEPTH, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_TM,
		.pd = f->pd,
	};

	return ibv_create_srq_ex(f->context, &attr);
}
MAKE(ibv_create_qp) { return qp_make(f, IBV_QPT_RC); }

static struct ibv_qp_init_attr_ex qp_ex(struct fixture *f)
{
	return (struct ibv_qp_init_attr_ex){
		.send_cq = f->cq,
		.recv_cq = f->cq,
		.qp_type = IBV_QPT_RC,
		.cap = { SEND_DEPTH, RECV_DEPTH, 1, 1, 0 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = f->pd,
	};
}

MAKE(ibv_create_qp_ex)
{
	struct ibv_qp_init_attr_ex attr = qp_ex(f);

	return ibv_create_qp_ex(f->context, &attr);
}
MAKE(ibv_open_qp)
{
	struct ibv_qp_open_attr attr = { .comp_mask = IBV_QP_OPEN_ATTR_NUM, .qp_num = 1,
					 .qp_type = IBV_QPT_XRC_RECV };

	return ibv_open_qp(f->context, &attr);
}
MAKE(ibv_create_wq)
{
	struct ibv_wq_init_attr attr = { .wq_type = IBV_WQT_RQ, .max_wr = RECV_DEPTH, .max_sge = 1,
					 .pd = f->pd, .cq = f->cq };

	return ibv_create_wq(f->context, &attr);
}
MAKE(ibv_create_rwq_ind_table)
{
	static struct ibv_wq *wq;
	struct ibv_rwq_ind_table_init_attr attr = { .ind_tbl = &wq };

	return ibv_create_rwq_ind_table(f->context, &attr);
}
MAKE(ibv_create_ah)
{
	struct ibv_ah_attr attr = { .port_num = 1, .is_global = 1 };

	return ibv_create_ah(f->pd, &attr);
}
MAKE(ibv_create_ah_from_wc)
{
	struct ibv_wc wc = { 0 };
	struct ibv_grh grh = { 0 };

	return ibv_create_ah_from_wc(f->pd, &wc, &grh, 1);
}
MAKE(ibv_open_xrcd)
{
	struct ibv_xrcd_init_attr attr = { .fd = -1 };

	return ibv_open_xrcd(f->context, &attr);
}
MAKE(ibv_create_flow)
{
	static struct ibv_qp *qp;
	struct ibv_flow_attr attr = { .size = sizeof(attr) };

	if (!qp)
		qp = qp_make(f, IBV_QPT_RAW_PACKET);
	return ibv_create_flow(qp, &attr);
}
MAKE(rdma_create_id)
{
	static struct rdma_event_channel *channel;
	struct rdma_cm_id *id;

	if (!channel)
		channel = rdma_create_event_channel();
	return rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) ? NULL : id;
}
MAKE(rdma_create_ep)
{
	struct rdma_addrinfo info = { .ai_port_space = RDMA_PS_TCP };
	struct rdma_cm_id *id;

	return rdma_create_ep(&id, &info, NULL, NULL) ? NULL : id;
}
MAKE(mlx5dv_create_qp)
{
	struct ibv_qp_init_attr_ex attr = qp_ex(f);

	return mlx5dv_create_qp(f->context, &attr, NULL);
}
MAKE(mlx5dv_create_cq)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = CQ_DEPTH };

	return mlx5dv_create_cq(f->context, &attr, NULL);
}
MAKE(mlx5dv_create_wq)
{
	struct ibv_wq_init_attr attr = { .wq_type = IBV_WQT_RQ, .max_wr = RECV_DEPTH, .max_sge = 1,
					 .pd = f->pd, .cq = f->cq };

	return mlx5dv_create_wq(f->context, &attr, NULL);
}
MAKE(mlx5dv_alloc_dm)
{
	struct ibv_alloc_dm_attr attr = { .length = 64 };

	return mlx5dv_alloc_dm(f->context, &attr, NULL);
}
MAKE(mlx5dv_devx_umem_reg) { return mlx5dv_devx_umem_reg(f->context, memory, MR_LENGTH, 0); }
MAKE(mlx5dv_devx_umem_reg_ex)
{
	struct mlx5dv_devx_umem_in in = { .addr = memory, .size = MR_LENGTH };

	return mlx5dv_devx_umem_reg_ex(f->context, &in);
}
MAKE(mlx5dv_devx_obj_create)
{
	const unsigned char create_qp[16] = { 0x05, 0x00 };
	unsigned char out[16];

	return mlx5dv_devx_obj_create(f->context, create_qp, sizeof(create_qp), out, sizeof(out));
}
MAKE(mlx5dv_reg_dmabuf_mr) { return mlx5dv_reg_dmabuf_mr(f->pd, 0, MR_LENGTH, 0, 0, 0, 0); }
MAKE(mlx5dv_create_mkey)
{
	struct mlx5dv_mkey_init_attr attr = { .pd = f->pd, .max_entries = 1 };

	return mlx5dv_create_mkey(&attr);
}
MAKE(mlx5dv_create_flow_matcher) { return mlx5dv_create_flow_matcher(f->context, NULL); }

static struct mlx5dv_flow_matcher *flow_matcher(struct fixture *f)
{
	static struct mlx5dv_flow_matcher *matcher;

	if (!matcher)
		matcher = mlx5dv_create_flow_matcher(f->context, NULL);
	return matcher;
}

MAKE(mlx5dv_create_flow) { return (mlx5dv_create_flow)(flow_matcher(f), NULL, 0, NULL); }
MAKE(__mlx5dv_create_flow) { return __mlx5dv_create_flow(flow_matcher(f), NULL, 0, NULL, 0); }
MAKE(mlx5dv_dr_domain_create)
{
	return mlx5dv_dr_domain_create(f->context, MLX5DV_DR_DOMAIN_TYPE_NIC_RX);
}

static struct mlx5dv_dr_domain *dr_domain(struct fixture *f)
{
	static struct mlx5dv_dr_domain *domain;

	if (!domain)
		domain = mlx5dv_dr_domain_create(f->context, MLX5DV_DR_DOMAIN_TYPE_NIC_RX);
	return domain;
}

MAKE(mlx5dv_dr_table_create) { return mlx5dv_dr_table_create(dr_domain(f), 0); }

static struct mlx5dv_dr_table *dr_root_table(struct fixture *f)
{
	static struct mlx5dv_dr_table *table;

	if (!table)
		table = mlx5dv_dr_table_create(dr_domain(f), 0);
	return table;
}

MAKE(mlx5dv_dr_matcher_create)
{
	return mlx5dv_dr_matcher_create(dr_root_table(f), 0, 0, NULL);
}
MAKE(mlx5dv_dr_rule_create)
{
	static struct mlx5dv_dr_matcher *matcher;

	if (!matcher)
		matcher = mlx5dv_dr_matcher_create(dr_root_table(f), 0, 0, NULL);
	return mlx5dv_dr_rule_create(matcher, NULL, 0, NULL);
}
MAKE(mlx4dv_create_qp)
{
	struct ibv_qp_init_attr_ex attr = qp_ex(f);

	return mlx4dv_create_qp(f->context, &attr, NULL);
}
MAKE(efadv_create_driver_qp)
{
	struct ibv_qp_init_attr attr = qp_attributes(f->cq, IBV_QPT_DRIVER);

	return efadv_create_driver_qp(f->pd, &attr, EFADV_QP_DRIVER_TYPE_SRD);
}
MAKE(efadv_create_qp_ex)
{
	struct ibv_qp_init_attr_ex attr = qp_ex(f);
	struct efadv_qp_init_attr efa = { 0 };

	return efadv_create_qp_ex(f->context, &attr, &efa, sizeof(efa));
}
MAKE(efadv_create_cq)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = CQ_DEPTH };
	struct efadv_cq_init_attr efa = { 0 };

	return efadv_create_cq(f->context, &attr, &efa, sizeof(efa));
}
MAKE(hnsdv_create_qp)
{
	struct ibv_qp_init_attr_ex attr = qp_ex(f);

	return hnsdv_create_qp(f->context, &attr, NULL);
}

MAKE(manadv_alloc_pd) { return manadv_alloc_pd(f->context, 0); }

/* ---- one unmaker per destroying row ---- */

#define UNMAKE(verb) static int unmake_##verb(void *object)

UNMAKE(ibv_close_device) { return ibv_close_device(object); }
UNMAKE(ibv_dealloc_pd) { return ibv_dealloc_pd(object); }
UNMAKE(ibv_dereg_mr) { return ibv_dereg_mr(object); }
UNMAKE(ibv_dealloc_mw) { return ibv_dealloc_mw(object); }
UNMAKE(ibv_free_dm) { return ibv_free_dm(object); }
UNMAKE(ibv_destroy_comp_channel) { return ibv_destroy_comp_channel(object); }
UNMAKE(ibv_destroy_cq) { return ibv_destroy_cq(object); }
UNMAKE(ibv_destroy_srq) { return ibv_destroy_srq(object); }
UNMAKE(ibv_destroy_qp) { return ibv_destroy_qp(object); }
UNMAKE(ibv_destroy_wq) { return ibv_destroy_wq(object); }
UNMAKE(ibv_destroy_rwq_ind_table) { return ibv_destroy_rwq_ind_table(object); }
UNMAKE(ibv_destroy_ah) { return ibv_destroy_ah(object); }
UNMAKE(ibv_close_xrcd) { return ibv_close_xrcd(object); }
UNMAKE(ibv_destroy_flow) { return ibv_destroy_flow(object); }
UNMAKE(rdma_destroy_id) { return rdma_destroy_id(object) ? errno : 0; }
UNMAKE(rdma_destroy_ep)
{
	rdma_destroy_ep(object);
	return 0;
}
UNMAKE(mlx5dv_devx_umem_dereg) { return mlx5dv_devx_umem_dereg(object); }
UNMAKE(mlx5dv_devx_obj_destroy) { return mlx5dv_devx_obj_destroy(object); }

UNMAKE(mlx5dv_destroy_mkey) { return mlx5dv_destroy_mkey(object); }
UNMAKE(mlx5dv_destroy_flow_matcher) { return mlx5dv_destroy_flow_matcher(object); }
UNMAKE(mlx5dv_dr_domain_destroy) { return mlx5dv_dr_domain_destroy(object); }
UNMAKE(mlx5dv_dr_table_destroy) { return mlx5dv_dr_table_destroy(object); }
UNMAKE(mlx5dv_dr_matcher_destroy) { return mlx5dv_dr_matcher_destroy(object); }
UNMAKE(mlx5dv_dr_rule_destroy) { return mlx5dv_dr_rule_destroy(object); }

/* ---- the table ---- */

#define QP_COST { { KIND_qp, 1 }, { KIND_send_wr, SEND_DEPTH }, { KIND_recv_wr, RECV_DEPTH } }
#define CQ_COST { { KIND_cq, 1 }, { KIND_cqe, CQ_DEPTH } }
#define MR_COST { { KIND_mr, 1 }, { KIND_mr_bytes, MR_LENGTH } }
#define ROW(verb, destroyer, ...) { #verb, #destroyer, make_##verb, unmake_##destroyer, __VA_ARGS__ }

const struct row table_rows[] = {
	ROW(ibv_open_device, ibv_close_device, { { KIND_ctx, 1 } }, NULL),
	ROW(verbs_open_device, ibv_close_device, { { KIND_ctx, 1 } }, NULL),
	ROW(ibv_alloc_pd, ibv_dealloc_pd, { { KIND_pd, 1 } }, NULL),
	ROW(ibv_alloc_parent_domain, ibv_dealloc_pd, { { 0 } }, NULL),
	ROW(ibv_reg_mr, ibv_dereg_mr, MR_COST, NULL),
	ROW(ibv_reg_mr_iova, ibv_dereg_mr, MR_COST, NULL),
	ROW(ibv_reg_mr_iova2, ibv_dereg_mr, MR_COST, NULL),
	ROW(ibv_reg_dmabuf_mr, ibv_dereg_mr, MR_COST, NULL),
	ROW(ibv_reg_mr_ex, ibv_dereg_mr, MR_COST, NULL),
	ROW(ibv_reg_buf_mr, ibv_dereg_mr, MR_COST, NULL),
	ROW(ibv_reg_dm_mr, ibv_dereg_mr, { { KIND_mr, 1 } }, NULL),
	ROW(ibv_alloc_null_mr, ibv_dereg_mr, { { 0 } }, NULL),
	ROW(ibv_alloc_mw, ibv_dealloc_mw, { { KIND_mw, 1 } }, NULL),
	ROW(ibv_alloc_dm, ibv_free_dm, { { KIND_dm_bytes, 64 } }, NULL),
	ROW(ibv_create_comp_channel, ibv_destroy_comp_channel, { { KIND_comp_channel, 1 } }, NULL),
	ROW(ibv_create_cq, ibv_destroy_cq, CQ_COST, "cqe"),
	ROW(ibv_create_cq_ex, ibv_destroy_cq, CQ_COST, "cqe"),
	ROW(ibv_create_srq, ibv_destroy_srq, { { KIND_srq, 1 }, { KIND_recv_wr, SRQ_DEPTH } }, "recv_wr"),
	ROW(ibv_create_srq_ex, ibv_destroy_srq, { { KIND_srq, 1 }, { KIND_recv_wr, SRQ_DEPTH } }, "recv_wr"),
	ROW(ibv_create_qp, ibv_destroy_qp, QP_COST, "send_wr"),
	ROW(ibv_create_qp_ex, ibv_destroy_qp, QP_COST, "send_wr"),
	ROW(ibv_open_qp, ibv_destroy_qp, { { KIND_qp, 1 } }, NULL),
	ROW(ibv_create_wq, ibv_destroy_wq, { { KIND_wq, 1 }, { KIND_recv_wr, RECV_DEPTH } }, "recv_wr"),
	ROW(ibv_create_rwq_ind_table, ibv_destroy_rwq_ind_table, { { KIND_rwq_table, 1 } }, NULL),
	ROW(ibv_create_ah, ibv_destroy_ah, { { KIND_ah, 1 } }, NULL),
	ROW(ibv_create_ah_from_wc, ibv_destroy_ah, { { KIND_ah, 1 } }, NULL),
	ROW(ibv_open_xrcd, ibv_close_xrcd, { { KIND_xrcd, 1 } }, NULL),
	ROW(ibv_create_flow, ibv_destroy_flow, { { KIND_flow, 1 } }, NULL),
	ROW(rdma_create_id, rdma_destroy_id, { { KIND_cm_id, 1 } }, NULL),
	ROW(rdma_create_ep, rdma_destroy_ep, { { KIND_cm_id, 1 } }, NULL),
	ROW(mlx5dv_create_qp, ibv_destroy_qp, QP_COST, "send_wr"),
	ROW(mlx5dv_create_cq, ibv_destroy_cq, CQ_COST, "cqe"),
	ROW(mlx5dv_create_wq, ibv_destroy_wq, { { KIND_wq, 1 }, { KIND_recv_wr, RECV_DEPTH } }, "recv_wr"),
	ROW(mlx5dv_alloc_dm, ibv_free_dm, { { KIND_dm_bytes, 64 } }, NULL),
	ROW(mlx5dv_devx_umem_reg, mlx5dv_devx_umem_dereg, { { KIND_mr_bytes, MR_LENGTH } }, NULL),
	ROW(mlx5dv_devx_umem_reg_ex, mlx5dv_devx_umem_dereg, { { KIND_mr_bytes, MR_LENGTH } }, NULL),
	ROW(mlx5dv_devx_obj_create, mlx5dv_devx_obj_destroy, { { KIND_qp, 1 } }, NULL),
	ROW(mlx5dv_reg_dmabuf_mr, ibv_dereg_mr, MR_COST, NULL),
	ROW(mlx5dv_create_mkey, mlx5dv_destroy_mkey, { { KIND_mr, 1 } }, NULL),
	ROW(mlx5dv_create_flow_matcher, mlx5dv_destroy_flow_matcher, { { 0 } }, NULL),
	ROW(mlx5dv_create_flow, ibv_destroy_flow, { { KIND_flow, 1 } }, NULL),
	ROW(__mlx5dv_create_flow, ibv_destroy_flow, { { KIND_flow, 1 } }, NULL),
	ROW(mlx5dv_dr_domain_create, mlx5dv_dr_domain_destroy, { { 0 } }, NULL),
	ROW(mlx5dv_dr_table_create, mlx5dv_dr_table_destroy, { { 0 } }, NULL),
	ROW(mlx5dv_dr_matcher_create, mlx5dv_dr_matcher_destroy, { { 0 } }, NULL),
	ROW(mlx5dv_dr_rule_create, mlx5dv_dr_rule_destroy, { { KIND_flow, 1 } }, NULL),
	ROW(mlx4dv_create_qp, ibv_destroy_qp, QP_COST, "send_wr"),
	ROW(efadv_create_driver_qp, ibv_destroy_qp, QP_COST, "send_wr"),
	ROW(efadv_create_qp_ex, ibv_destroy_qp, QP_COST, "send_wr"),
	ROW(efadv_create_cq, ibv_destroy_cq, CQ_COST, "cqe"),
	ROW(hnsdv_create_qp, ibv_destroy_qp, QP_COST, "send_wr"),
	ROW(manadv_alloc_pd, ibv_dealloc_pd, { { KIND_pd, 1 } }, NULL),
};

/* Rules below the root table lie in the device and are no flows of the kernel. */
void rules_below_root(const char *argument)
{
	struct fixture fixture = fixture_open();
	struct mlx5dv_dr_table *table = mlx5dv_dr_table_create(dr_domain(&fixture), 1);
	struct mlx5dv_dr_matcher *matcher = mlx5dv_dr_matcher_create(table, 0, 0, NULL);
	struct mlx5dv_dr_rule *rule[3];

	for (unsigned i = 0; i < 3; i++) {
		rule[i] = mlx5dv_dr_rule_create(matcher, NULL, 0, NULL);
		CHECK(rule[i] && used(KIND_flow) == 0);
	}
	for (unsigned i = 0; i < 3; i++)
		CHECK(mlx5dv_dr_rule_destroy(rule[i]) == 0 && used(KIND_flow) == 0);
	CHECK(mlx5dv_dr_matcher_destroy(matcher) == 0 && mlx5dv_dr_table_destroy(table) == 0);
}

const unsigned table_count = sizeof(table_rows) / sizeof(table_rows[0]);
