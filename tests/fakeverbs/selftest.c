/* SPDX-License-Identifier: MIT */
/*
 * Checks the stand-ins themselves, so that a failing test of the wrapper means
 * the wrapper. It plays the preloaded library for a few symbols, to prove that
 * the stand-ins call themselves through their PLT.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/efadv.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fakeverbs.h"

static int failures;

#define CHECK(condition)                                                             \
	do {                                                                         \
		if (!(condition)) {                                                  \
			fprintf(stderr, "%s:%d: %s\n", __func__, __LINE__, #condition); \
			failures++;                                                  \
		}                                                                    \
	} while (0)

/* ---- what a preloaded wrapper would see ---- */

struct ibv_mr_init_attr;
struct ibv_context *verbs_open_device(struct ibv_device *device, void *private_data);
struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd, struct ibv_mr_init_attr *attr);
struct ibv_buf;
struct ibv_mr *ibv_reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buf, void *addr, size_t length,
			      int access);

#define INTERPOSE(type, name, params, args)                            \
	static atomic_uint seen_##name;                                \
	__attribute__((visibility("default"))) type name params        \
	{                                                              \
		type(*real) params = dlsym(RTLD_NEXT, #name);          \
		seen_##name++;                                         \
		return real args;                                      \
	}

INTERPOSE(struct ibv_context *, verbs_open_device, (struct ibv_device * device, void *data),
	  (device, data))
INTERPOSE(struct ibv_mr *, ibv_reg_mr_iova2,
	  (struct ibv_pd * pd, void *addr, size_t length, uint64_t iova, unsigned int access),
	  (pd, addr, length, iova, access))
INTERPOSE(struct ibv_mr *, ibv_reg_mr_ex, (struct ibv_pd * pd, struct ibv_mr_init_attr *attr),
	  (pd, attr))
INTERPOSE(struct ibv_ah *, ibv_create_ah, (struct ibv_pd * pd, struct ibv_ah_attr *attr),
	  (pd, attr))
INTERPOSE(struct ibv_qp *, ibv_create_qp, (struct ibv_pd * pd, struct ibv_qp_init_attr *attr),
	  (pd, attr))
INTERPOSE(int, rdma_create_id,
	  (struct rdma_event_channel * channel, struct rdma_cm_id **id, void *context,
	   enum rdma_port_space ps),
	  (channel, id, context, ps))
INTERPOSE(int, rdma_destroy_id, (struct rdma_cm_id * id), (id))
INTERPOSE(int, rdma_get_cm_event,
	  (struct rdma_event_channel * channel, struct rdma_cm_event **event), (channel, event))

/* ---- helpers ---- */

static struct ibv_context *open_first(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;

	ibv_free_device_list(list);
	if (!context) {
		perror("no device");
		exit(1);
	}
	return context;
}

static struct ibv_qp *make_qp(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 10, .max_recv_wr = 16, .max_send_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};

	return ibv_create_qp(pd, &attr);
}

static char page[4096];

/* ---- checks ---- */

static void version_nodes(void)
{
	static const struct {
		const char *library, *symbol, *node;
		int present;
	} rows[] = {
		{ "libibverbs.so.1", "ibv_create_qp", "IBVERBS_1.1", 1 },
		{ "libibverbs.so.1", "ibv_create_qp", "IBVERBS_1.0", 1 },
		{ "libibverbs.so.1", "ibv_get_device_list", "IBVERBS_1.0", 1 },
		{ "libibverbs.so.1", "ibv_rereg_mr", "IBVERBS_1.1", 1 },
		{ "libibverbs.so.1", "ibv_rereg_mr", "IBVERBS_1.0", 0 },
		{ "libibverbs.so.1", "ibv_create_comp_channel", "IBVERBS_1.0", 1 },
		{ "libibverbs.so.1", "ibv_create_comp_channel", "IBVERBS_1.1", 0 },
		{ "libibverbs.so.1", "ibv_reg_mr_iova2", "IBVERBS_1.8", 1 },
		{ "libibverbs.so.1", "ibv_reg_dmabuf_mr", "IBVERBS_1.12", 1 },
		{ "libibverbs.so.1", "ibv_reg_mr_ex", "IBVERBS_1.15", 1 },
		{ "libibverbs.so.1", "ibv_reg_buf_mr", "IBVERBS_1.17", 1 },
		{ "libibverbs.so.1", "verbs_open_device", "IBVERBS_PRIVATE_34", 1 },
		{ "libibverbs.so.1", "fake_set", "FAKEVERBS", 1 },
		{ "librdmacm.so.1", "rdma_create_id", "RDMACM_1.0", 1 },
		{ "librdmacm.so.1", "rdma_establish", "RDMACM_1.2", 1 },
		{ "libmlx5.so.1", "mlx5dv_create_qp", "MLX5_1.3", 1 },
		{ "libmlx5.so.1", "mlx5dv_devx_umem_reg_ex", "MLX5_1.19", 1 },
		{ "libefa.so.1", "efadv_create_qp_ex", "EFA_1.1", 1 },
		{ OLD_IBVERBS, "ibv_create_qp", "IBVERBS_1.1", 1 },
		{ OLD_IBVERBS, "ibv_import_device", "IBVERBS_1.10", 1 },
		{ OLD_IBVERBS, "ibv_reg_dmabuf_mr", "IBVERBS_1.12", 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		void *library = dlopen(rows[i].library, RTLD_NOW | RTLD_LOCAL);
		void *found = library ? dlvsym(library, rows[i].symbol, rows[i].node) : NULL;

		CHECK(library);
		if (!found != !rows[i].present) {
			fprintf(stderr, "%s@%s in %s\n", rows[i].symbol, rows[i].node,
				rows[i].library);
			failures++;
		}
		if (library && strcmp(rows[i].library, OLD_IBVERBS) == 0)
			CHECK(!dlsym(library, "ibv_reg_dmabuf_mr") &&
			      !dlsym(library, "ibv_reg_mr_ex"));
		if (library)
			dlclose(library);
	}
}

static void twins(void)
{
	void *library = dlopen("libibverbs.so.1", RTLD_NOW);
	void *(*old)(void) = dlvsym(library, "ibv_create_qp", "IBVERBS_1.0");

	fake_reset();
	CHECK(old() == NULL);
	CHECK(fake_calls("ibv_create_qp@IBVERBS_1.0") == 1);
	CHECK(fake_calls("ibv_create_qp") == 0);
	dlclose(library);
}

static void devices(void)
{
	struct ibv_context *context;
	struct ibv_device_attr_ex device;
	struct ibv_port_attr port;
	struct ibv_gid_entry entries[8];
	union ibv_gid gid;
	int n;
	struct ibv_device **list = ibv_get_device_list(&n);

	CHECK(n == 2 && !strcmp(ibv_get_device_name(list[1]), "rxe1") && !list[2]);
	ibv_free_device_list(list);
	setenv("FAKEVERBS_DEVICES", "5", 1);
	ibv_free_device_list(ibv_get_device_list(&n));
	CHECK(n == 5);
	unsetenv("FAKEVERBS_DEVICES");
	context = open_first();
	CHECK(ibv_query_device_ex(context, NULL, &device) == 0 &&
	      device.orig_attr.phys_port_cnt == 2);
	CHECK(ibv_query_port(context, 2, &port) == 0 && port.state == IBV_PORT_ACTIVE);
	CHECK(ibv_query_port(context, 3, &port) == EINVAL);
	CHECK(ibv_query_gid(context, 1, 0, &gid) == 0 && gid.raw[0] == 0xfe);
	CHECK(ibv_query_gid_table(context, entries, 8, 0) == 4);
	CHECK(!strcmp(ibv_port_state_str(IBV_PORT_ACTIVE), "PORT_ACTIVE"));
	CHECK(ibv_rate_to_mult(mbps_to_ibv_rate(10000)) == 4);
	ibv_close_device(context);
}

static void behaviours(void)
{
	struct ibv_context *context = open_first();
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_cq *cq = ibv_create_cq(context, 7, NULL, NULL, 0);
	struct ibv_qp_init_attr attr = { .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC };
	struct ibv_send_wr wr = { 0 }, *bad = NULL;
	struct ibv_qp_attr state = { .qp_state = IBV_QPS_INIT };
	struct ibv_wc wc[2];
	struct ibv_mr *mr;
	struct ibv_qp *qp;

	fake_reset();
	CHECK(cq->cqe == 7);
	fake_set("ibv_create_qp", FAKE_FAIL, ENOMEM, 1, 2);
	for (int i = 0; i < 4; i++) {
		errno = 0;
		qp = make_qp(pd, cq);
		CHECK(i == 1 || i == 2 ? !qp && errno == ENOMEM : qp && !errno);
		if (qp)
			CHECK(ibv_destroy_qp(qp) == 0);
	}
	CHECK(fake_calls("ibv_create_qp") == 4 && fake_peak("qp") == 1 && fake_live("qp") == 0);

	fake_set("ibv_create_qp", FAKE_FAIL_SILENT, 0, 0, 1);
	errno = 77;
	CHECK(!make_qp(pd, cq) && errno == 77);

	fake_set("ibv_create_qp", FAKE_ROUND_UP, 0, 0, 1);
	attr.cap = (struct ibv_qp_cap){ .max_send_wr = 10, .max_recv_wr = 16 };
	qp = ibv_create_qp(pd, &attr);
	CHECK(attr.cap.max_send_wr == 32 && attr.cap.max_recv_wr == 32);
	CHECK(ibv_modify_qp(qp, &state, IBV_QP_STATE) == 0 && qp->state == IBV_QPS_INIT);

	fake_set("ibv_destroy_qp", FAKE_FAIL, EIO, 0, 1);
	CHECK(ibv_destroy_qp(qp) == EIO && fake_live("qp") == 1);

	CHECK(ibv_post_send(qp, &wr, &bad) == 0 && fake_calls("ibv_post_send") == 0);
	fake_set("ibv_post_send", FAKE_FAIL, ENOMEM, 0, 1);
	CHECK(ibv_post_send(qp, &wr, &bad) == ENOMEM && bad == &wr);
	fake_set("ibv_poll_cq", FAKE_CODE, 2, 0, 1);
	CHECK(ibv_poll_cq(cq, 2, wc) == 2 && wc[1].status == IBV_WC_SUCCESS);
	CHECK(ibv_poll_cq(cq, 2, wc) == 0);
	CHECK(ibv_destroy_qp(qp) == 0);

	CHECK(ibv_resize_cq(cq, 100) == 0 && cq->cqe == 100);
	fake_set("ibv_resize_cq", FAKE_ROUND_UP, 0, 0, 1);
	CHECK(ibv_resize_cq(cq, 100) == 0 && cq->cqe == 256);

	mr = ibv_reg_mr(pd, page, 100, IBV_ACCESS_LOCAL_WRITE);
	for (int code = -1; code >= -5; code--) {
		mr->length = 100;
		fake_set("ibv_rereg_mr", FAKE_CODE, code, 0, 1);
		CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, page, 200, 0) ==
		      code);
		CHECK(mr->length == (code == -3 ? 200 : 100));
	}
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, page, 300, 0) == 0);
	CHECK(mr->length == 300 && ibv_dereg_mr(mr) == 0);
	mr = ibv_alloc_null_mr(pd);
	CHECK(mr->length == SIZE_MAX && ibv_dereg_mr(mr) == 0);

	ibv_close_device(context);
	CHECK(fake_live("all") == 0 && fake_peak("all") > 0);
	fake_reset();
	CHECK(fake_calls("ibv_create_qp") == 0 && fake_peak("all") == 0);
}

static void who_pins_whom(void)
{
	struct ibv_context *context = open_first();
	struct ibv_pd *pd = ibv_alloc_pd(context), *parent;
	struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
	struct ibv_cq *cq = ibv_create_cq(context, 16, NULL, channel, 0);
	struct ibv_srq_init_attr srq_attr = { .attr = { .max_wr = 8, .max_sge = 1 } };
	struct ibv_parent_domain_init_attr parent_attr = { .pd = pd };
	struct ibv_ah_attr ah_attr = { .port_num = 1 };
	struct ibv_flow_attr flow_attr = { .num_of_specs = 0 };
	struct ibv_flow *flow;
	struct ibv_srq *srq = ibv_create_srq(pd, &srq_attr);
	struct ibv_mr *mr = ibv_reg_mr(pd, page, sizeof(page), 0);
	struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
	struct ibv_ah *ah = ibv_create_ah(pd, &ah_attr);
	struct ibv_qp *qp = make_qp(pd, cq);

	CHECK(ibv_destroy_comp_channel(channel) == EBUSY);
	CHECK(ibv_destroy_cq(cq) == EBUSY);
	flow = ibv_create_flow(qp, &flow_attr);
	CHECK(ibv_destroy_qp(qp) == EBUSY && ibv_destroy_flow(flow) == 0);
	CHECK(ibv_dealloc_pd(pd) == EBUSY && ibv_destroy_qp(qp) == 0);
	CHECK(ibv_dealloc_pd(pd) == EBUSY && ibv_destroy_ah(ah) == 0);
	CHECK(ibv_dealloc_pd(pd) == EBUSY && ibv_dealloc_mw(mw) == 0);
	CHECK(ibv_dealloc_pd(pd) == EBUSY && ibv_dereg_mr(mr) == 0);
	CHECK(ibv_dealloc_pd(pd) == EBUSY && ibv_destroy_srq(srq) == 0);
	parent = ibv_alloc_parent_domain(context, &parent_attr);
	CHECK(fake_live("pd") == 1 && ibv_dealloc_pd(pd) == EBUSY);
	CHECK(ibv_dealloc_pd(parent) == 0 && ibv_dealloc_pd(pd) == 0);
	CHECK(ibv_destroy_cq(cq) == 0 && ibv_destroy_comp_channel(channel) == 0);
	CHECK(fake_live("all") == 1 && fake_live("ctx") == 1);
	CHECK(ibv_close_device(context) == 0 && fake_live("all") == 0);
}

static void imports(void)
{
	struct ibv_context *context = open_first();
	struct ibv_pd *pd = ibv_alloc_pd(context), *pd2;
	struct ibv_mr *mr = ibv_reg_mr(pd, page, 4096, 0), *mr2;
	struct ibv_alloc_dm_attr dm_attr = { .length = 64 };
	struct ibv_dm *dm = ibv_alloc_dm(context, &dm_attr), *dm2;
	struct ibv_context *second = ibv_import_device(dup(context->cmd_fd));

	CHECK(second && fake_live("ctx") == 1 && fake_live("all") == 4);
	CHECK(!ibv_import_device(STDIN_FILENO));
	pd2 = ibv_import_pd(second, pd->handle);
	mr2 = ibv_import_mr(pd2, mr->handle);
	dm2 = ibv_import_dm(second, dm->handle);
	CHECK(mr2->length == 4096 && mr2->lkey == mr->lkey && mr2->pd == pd2);
	CHECK(!ibv_import_pd(second, mr->handle) && errno == ENOENT);
	CHECK(fake_live("all") == 4);
	ibv_unimport_dm(dm2);
	ibv_unimport_mr(mr2);
	CHECK(fake_live("all") == 4 && ibv_dereg_mr(mr) == 0);
	mr = ibv_reg_mr(pd2, page, 4096, 0);
	CHECK(ibv_dealloc_pd(pd) == EBUSY && ibv_dereg_mr(mr) == 0);
	CHECK(ibv_dealloc_pd(pd2) == 0 && fake_live("pd") == 0);
	CHECK(ibv_dealloc_pd(pd) == ENOENT);
	ibv_unimport_pd(pd);
	pd = ibv_alloc_pd(context);
	CHECK(ibv_close_device(context) == 0 && fake_live("pd") == 1 && fake_live("ctx") == 1);
	CHECK(ibv_close_device(second) == 0 && fake_live("all") == 0);
}

static void *ack_later(void *cq)
{
	usleep(50000);
	ibv_ack_cq_events(cq, 2);
	return NULL;
}

static void *event_later(void *cq)
{
	usleep(50000);
	fake_cq_event(cq);
	return NULL;
}

static void events(void)
{
	struct ibv_context *context = open_first();
	struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
	struct ibv_cq *cq = ibv_create_cq(context, 16, page, channel, 0), *got = NULL;
	struct ibv_cq *other = ibv_create_cq(context, 16, NULL, channel, 1);
	struct ibv_cq *deaf = ibv_create_cq(context, 16, NULL, NULL, 1);
	void *cq_context = NULL;
	pthread_t thread;

	CHECK(fake_cq_event(deaf) == -1 && fake_cq_event(other) == 0);
	CHECK(ibv_destroy_cq(other) == 0 && ibv_destroy_cq(deaf) == 0);
	pthread_create(&thread, NULL, event_later, cq);
	CHECK(ibv_get_cq_event(channel, &got, &cq_context) == 0 && got == cq && cq_context == page);
	pthread_join(thread, NULL);
	CHECK(fake_cq_event(cq) == 0 && ibv_get_cq_event(channel, &got, &cq_context) == 0);
	fcntl(channel->fd, F_SETFL, O_NONBLOCK);
	CHECK(ibv_get_cq_event(channel, &got, &cq_context) == -1 && errno == EAGAIN);
	pthread_create(&thread, NULL, ack_later, cq);
	fake_reset();
	CHECK(ibv_destroy_cq(cq) == 0 && fake_calls("ibv_ack_cq_events") == 1);
	pthread_join(thread, NULL);
	CHECK(ibv_destroy_comp_channel(channel) == 0);
	ibv_close_device(context);
	CHECK(fake_live("all") == 0);
}

static void self_calls(void)
{
	struct ibv_context *context = open_first();
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_wc wc = { 0 };
	unsigned before = seen_ibv_reg_mr_iova2;

	CHECK(seen_verbs_open_device > 0);
	ibv_reg_mr(pd, page, 1, 0);
	ibv_reg_mr_iova(pd, page, 1, 0, 0);
	CHECK(seen_ibv_reg_mr_iova2 == before + 2);
	before = seen_ibv_reg_mr_ex;
	CHECK(ibv_reg_buf_mr(pd, NULL, page, 1, 0) && seen_ibv_reg_mr_ex == before + 1);
	before = seen_ibv_create_ah;
	CHECK(ibv_create_ah_from_wc(pd, &wc, NULL, 1) && seen_ibv_create_ah == before + 1);
	ibv_close_device(context);
	CHECK(fake_live("all") == 0);
}

static void inline_verbs(void)
{
	struct ibv_context *context = open_first();
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_cq_init_attr_ex cq_attr = { .cqe = 9 };
	struct ibv_cq_ex *cq = ibv_create_cq_ex(context, &cq_attr);
	struct ibv_xrcd_init_attr xrcd_attr = { 0 };
	struct ibv_xrcd *xrcd = ibv_open_xrcd(context, &xrcd_attr);
	struct ibv_wq_init_attr wq_attr = { .max_wr = 8, .pd = pd, .cq = ibv_cq_ex_to_cq(cq) };
	struct ibv_wq *wq = ibv_create_wq(context, &wq_attr);
	struct ibv_rwq_ind_table_init_attr table_attr = { .ind_tbl = &wq };
	struct ibv_rwq_ind_table *table = ibv_create_rwq_ind_table(context, &table_attr);
	struct ibv_srq_init_attr_ex srq_attr = {
		.attr = { .max_wr = 8 },
		.comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD,
		.srq_type = IBV_SRQT_XRC,
		.pd = pd,
		.xrcd = xrcd,
	};
	struct ibv_srq *srq = ibv_create_srq_ex(context, &srq_attr);
	struct ibv_qp_init_attr_ex qp_attr = {
		.send_cq = ibv_cq_ex_to_cq(cq),
		.recv_cq = ibv_cq_ex_to_cq(cq),
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	struct ibv_poll_cq_attr poll_attr = { 0 };
	struct ibv_qp *qp;

	CHECK(cq->cqe == 9 && ibv_start_poll(cq, &poll_attr) == ENOENT);
	CHECK(ibv_close_xrcd(xrcd) == EBUSY && ibv_destroy_srq(srq) == 0);
	CHECK(ibv_close_xrcd(xrcd) == 0);
	CHECK(fake_live("rwq_table") == 1 && ibv_destroy_rwq_ind_table(table) == 0);
	CHECK(fake_live("wq") == 1 && ibv_destroy_wq(wq) == 0);
	fake_set("ibv_create_qp_ex", FAKE_FAIL, EPERM, 0, 1);
	CHECK(!ibv_create_qp_ex(context, &qp_attr) && errno == EPERM);
	qp = ibv_create_qp_ex(context, &qp_attr);
	CHECK(ibv_qp_to_qp_ex(qp) && ibv_wr_complete(ibv_qp_to_qp_ex(qp)) == 0);
	CHECK(ibv_destroy_qp(qp) == 0 && ibv_destroy_cq(ibv_cq_ex_to_cq(cq)) == 0);
	ibv_close_device(context);

	setenv("FAKEVERBS_NO_OP", "create_qp_ex", 1);
	context = open_first();
	CHECK(!ibv_create_qp_ex(context, &qp_attr) && errno == EOPNOTSUPP);
	ibv_close_device(context);
	setenv("FAKEVERBS_NO_OP", "alloc_mw", 1);
	context = open_first();
	CHECK(!context->ops.alloc_mw && context->ops.dealloc_mw);
	ibv_close_device(context);
	unsetenv("FAKEVERBS_NO_OP");
	setenv("FAKEVERBS_SZ", "600", 1);
	context = open_first();
	CHECK(verbs_get_ctx(context)->sz == 600 && !verbs_get_ctx_op(context, query_port));
	ibv_close_device(context);
	unsetenv("FAKEVERBS_SZ");
	CHECK(fake_live("all") == 0 && fake_live("parent_domain") == 0);
}

static void direct_verbs(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	unsigned before = seen_verbs_open_device;
	struct ibv_context *context = mlx5dv_open_device(list[0], NULL);
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_cq_init_attr_ex cq_attr = { .cqe = 9 };
	struct ibv_cq_ex *cq = mlx5dv_create_cq(context, &cq_attr, NULL);
	struct ibv_cq_ex *efa_cq = efadv_create_cq(context, &cq_attr, NULL, 0);
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = ibv_cq_ex_to_cq(cq),
		.recv_cq = ibv_cq_ex_to_cq(efa_cq),
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};
	struct mlx5dv_devx_umem *umem = mlx5dv_devx_umem_reg(context, page, sizeof(page), 0);
	char out[16];
	struct mlx5dv_devx_obj *obj = mlx5dv_devx_obj_create(context, page, 16, out, sizeof(out));
	struct ibv_qp *qp = mlx5dv_create_qp(context, &attr, NULL);
	struct ibv_qp *efa_qp = efadv_create_driver_qp(pd, (struct ibv_qp_init_attr *)&attr, 0);

	ibv_free_device_list(list);
	CHECK(seen_verbs_open_device == before + 1);
	CHECK(fake_live("qp") == 2 && fake_live("cq") == 2);
	CHECK(fake_live("umem") == 1 && fake_live("devx_obj") == 1);
	CHECK(mlx5dv_devx_umem_dereg(umem) == 0 && mlx5dv_devx_obj_destroy(obj) == 0);
	CHECK(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)) == EBUSY);
	CHECK(ibv_destroy_qp(qp) == 0 && ibv_destroy_qp(efa_qp) == 0);
	CHECK(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)) == 0);
	ibv_close_device(context);
	CHECK(fake_live("all") == 0);
}

static void *cm_ack_later(void *event)
{
	usleep(50000);
	rdma_ack_cm_event(event);
	return NULL;
}

static void connection_manager(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id, *listener, *request;
	struct rdma_cm_event *event;
	struct rdma_addrinfo res = { .ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP };
	struct ibv_qp_init_attr attr = { .cap = { 4, 4, 1, 1, 0 }, .qp_type = IBV_QPT_RC };
	unsigned before;
	pthread_t thread;

	CHECK(rdma_create_id(channel, &id, page, RDMA_PS_TCP) == 0 && id->context == page);
	fake_set("rdma_create_id", FAKE_FAIL, ENODEV, 0, 1);
	CHECK(rdma_create_id(channel, &listener, page, RDMA_PS_TCP) == -1 && errno == ENODEV);
	CHECK(rdma_create_id(channel, &listener, page, RDMA_PS_TCP) == 0);
	CHECK(rdma_listen(listener, 1) == 0 && fake_live("cm_id") == 2);
	CHECK(fake_cm_event(id, RDMA_CM_EVENT_ESTABLISHED) == 0 && rdma_destroy_id(id) == 0);
	CHECK(fake_cm_event(listener, RDMA_CM_EVENT_CONNECT_REQUEST) == 0);
	CHECK(rdma_get_cm_event(channel, &event) == 0);
	CHECK(event->event == RDMA_CM_EVENT_CONNECT_REQUEST && event->listen_id == listener);
	request = event->id;
	CHECK(request != listener && fake_live("cm_id") == 2);
	pthread_create(&thread, NULL, cm_ack_later, event);
	CHECK(rdma_destroy_id(listener) == 0);
	pthread_join(thread, NULL);
	fcntl(channel->fd, F_SETFL, O_NONBLOCK);
	CHECK(rdma_get_cm_event(channel, &event) == -1 && errno == EAGAIN);
	CHECK(rdma_reject(request, NULL, 0) == 0 && rdma_destroy_id(request) == 0);
	CHECK(fake_live("all") == 0);

	before = seen_rdma_create_id;
	CHECK(rdma_create_ep(&listener, &res, NULL, &attr) == 0 && !listener->qp);
	CHECK(seen_rdma_create_id == before && fake_live("cm_id") == 1);
	CHECK(fake_cm_event(listener, RDMA_CM_EVENT_CONNECT_REQUEST) == 0);
	before = seen_rdma_get_cm_event;
	CHECK(rdma_get_request(listener, &request) == 0 && seen_rdma_get_cm_event == before + 1);
	CHECK(request->qp && request->verbs && fake_live("qp") == 1 && fake_live("cq") == 2);
	before = seen_rdma_destroy_id;
	rdma_destroy_ep(request);
	rdma_destroy_ep(listener);
	CHECK(seen_rdma_destroy_id == before + 2 && fake_live("qp") == 0);

	fake_set("ibv_create_qp", FAKE_FAIL, ENOMEM, 0, 1);
	CHECK(rdma_create_ep(&id, NULL, NULL, &attr) == -1 && errno == ENOMEM);
	before = seen_ibv_create_qp;
	CHECK(rdma_create_ep(&id, NULL, NULL, &attr) == 0 && id->qp);
	CHECK(seen_ibv_create_qp == before + 1);
	CHECK(rdma_migrate_id(id, channel) == 0 && id->channel == channel);
	rdma_destroy_ep(id);
	rdma_destroy_event_channel(channel);
	CHECK(fake_live("all") == 2 && fake_live("ctx") == 1 && fake_live("pd") == 1);
}

static void *churn(void *arg)
{
	struct ibv_context *context = arg;

	for (int i = 0; i < 500; i++) {
		struct ibv_pd *pd = ibv_alloc_pd(context);
		struct ibv_cq *cq = ibv_create_cq(context, 4, NULL, NULL, 0);
		struct ibv_mr *mr = ibv_reg_mr(pd, page, 8, 0);
		struct ibv_qp *qp = make_qp(pd, cq);

		if (qp)
			ibv_destroy_qp(qp);
		if (ibv_dereg_mr(mr) || ibv_destroy_cq(cq) || ibv_dealloc_pd(pd))
			abort();
	}
	return NULL;
}

static void threads(void)
{
	struct ibv_context *context = open_first();
	pthread_t thread[4];
	long before = fake_live("all");

	fake_reset();
	fake_set("ibv_create_qp", FAKE_FAIL, EAGAIN, 100, 50);
	for (int i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, churn, context);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	CHECK(fake_live("all") == before && fake_calls("ibv_create_qp") == 2000);
	CHECK(fake_peak("mr") >= 1 && fake_peak("mr") <= 4);
	ibv_close_device(context);
}

static void double_destroy(void)
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		struct ibv_pd *pd = ibv_alloc_pd(open_first());

		close(STDERR_FILENO);
		ibv_dealloc_pd(pd);
		ibv_dealloc_pd(pd);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	CHECK(status != 0);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "double_destroy", double_destroy },
	{ "version_nodes", version_nodes },
	{ "twins", twins },
	{ "devices", devices },
	{ "behaviours", behaviours },
	{ "who_pins_whom", who_pins_whom },
	{ "imports", imports },
	{ "events", events },
	{ "self_calls", self_calls },
	{ "inline_verbs", inline_verbs },
	{ "direct_verbs", direct_verbs },
	{ "connection_manager", connection_manager },
	{ "threads", threads },
};

/* With "--list" prints the names of the cases, with "--only NAME" runs one. */
int main(int argc, char **argv)
{
	const char *only = argc == 3 && !strcmp(argv[1], "--only") ? argv[2] : NULL;
	int passed = 0, failed = 0;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int before = failures;

		if (argc == 2 && !strcmp(argv[1], "--list")) {
			puts(cases[i].name);
			continue;
		}
		if (only && strcmp(only, cases[i].name))
			continue;
		cases[i].run();
		printf("%s  %s\n", failures == before ? "ok  " : "FAIL", cases[i].name);
		*(failures == before ? &passed : &failed) += 1;
	}
	if (argc == 2)
		return 0;
	printf("%d passed, %d failed\n", passed, failed);
	return failed || !passed ? 1 : 0;
}
