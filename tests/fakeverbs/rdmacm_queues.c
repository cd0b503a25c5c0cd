/* SPDX-License-Identifier: MIT */
/*
 * Stand-in librdmacm: the QPs, SRQs and endpoints of an id, on the PD given
 * or on a hidden one. It speaks to libibverbs, and to itself, through its PLT,
 * as the real one does.
 */
#include <rdma/rdma_verbs.h>
#include <string.h>

#include "fake_internal.h"

/* What an id without a device is bound to; opened once, never closed. */
static pthread_mutex_t hidden_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct ibv_context *hidden_context;
static struct ibv_pd *hidden_pd;

static int fail(int err)
{
	errno = err;
	return -1;
}

static int open_hidden(void)
{
	struct ibv_device **list;

	if (hidden_pd)
		return 0;
	if (!hidden_context) {
		list = ibv_get_device_list(NULL);
		if (!list)
			return -1;
		if (list[0])
			hidden_context = ibv_open_device(list[0]);
		else
			errno = ENODEV;
		ibv_free_device_list(list);
		if (!hidden_context)
			return -1;
	}
	hidden_pd = ibv_alloc_pd(hidden_context);
	return hidden_pd ? 0 : -1;
}

/* Binds the id to the device of pd, or to the hidden one. */
static int bind_device(struct rdma_cm_id *id, struct ibv_pd *pd)
{
	int ret;

	if (id->verbs)
		return pd && pd->context != id->verbs ? fail(EINVAL) : 0;
	if (pd) {
		id->verbs = pd->context;
		id->pd = pd;
	} else {
		pthread_mutex_lock(&hidden_mutex);
		ret = open_hidden();
		pthread_mutex_unlock(&hidden_mutex);
		if (ret)
			return ret;
		id->verbs = hidden_context;
		id->pd = hidden_pd;
	}
	id->port_num = 1;
	return 0;
}

static void drop_cq(struct ibv_cq **cq, struct ibv_comp_channel **channel)
{
	if (*cq)
		ibv_destroy_cq(*cq);
	if (*channel)
		ibv_destroy_comp_channel(*channel);
	*cq = NULL;
	*channel = NULL;
}

static int make_cq(struct rdma_cm_id *id, uint32_t depth, struct ibv_cq **cq,
		   struct ibv_comp_channel **channel)
{
	*channel = ibv_create_comp_channel(id->verbs);
	if (*channel)
		*cq = ibv_create_cq(id->verbs, (int)depth, id, *channel, 0);
	if (*cq)
		return 0;
	drop_cq(cq, channel);
	return -1;
}

static void drop_cqs(struct rdma_cm_id *id)
{
	drop_cq(&id->send_cq, &id->send_cq_channel);
	drop_cq(&id->recv_cq, &id->recv_cq_channel);
}

static int make_qp(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	if (id->qp)
		return fail(EINVAL);
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd) {
		if (bind_device(id, NULL))
			return -1;
		attr->comp_mask |= IBV_QP_INIT_ATTR_PD;
		attr->pd = id->pd;
	} else if (bind_device(id, attr->pd)) {
		return -1;
	}
	if (!attr->send_cq && attr->cap.max_send_wr &&
	    make_cq(id, attr->cap.max_send_wr, &id->send_cq, &id->send_cq_channel))
		goto drop;
	if (!attr->recv_cq && attr->cap.max_recv_wr &&
	    make_cq(id, attr->cap.max_recv_wr, &id->recv_cq, &id->recv_cq_channel))
		goto drop;
	if (!attr->send_cq)
		attr->send_cq = id->send_cq;
	if (!attr->recv_cq)
		attr->recv_cq = id->recv_cq;
	id->qp = ibv_create_qp_ex(id->verbs, attr);
	if (!id->qp)
		goto drop;
	id->pd = attr->pd;
	return 0;

drop:
	drop_cqs(id);
	return -1;
}

int rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	ENTER_CALL(rdma_create_qp_ex);
	return make_qp(id, attr);
}

int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	ENTER_CALL(rdma_create_qp);
	struct ibv_qp_init_attr_ex ex = { .comp_mask = IBV_QP_INIT_ATTR_PD, .pd = pd };

	memcpy(&ex, attr, sizeof(*attr));
	if (make_qp(id, &ex))
		return -1;
	memcpy(attr, &ex, sizeof(*attr));
	return 0;
}

void rdma_destroy_qp(struct rdma_cm_id *id)
{
	ENTER_VOID(rdma_destroy_qp);
	if (!id->qp || ibv_destroy_qp(id->qp))
		return;
	id->qp = NULL;
	drop_cqs(id);
}

int rdma_create_srq_ex(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	ENTER_CALL(rdma_create_srq_ex);
	if (bind_device(id, attr->comp_mask & IBV_SRQ_INIT_ATTR_PD ? attr->pd : NULL))
		return -1;
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD)) {
		attr->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
		attr->pd = id->pd;
	}
	id->srq = ibv_create_srq_ex(id->verbs, attr);
	return id->srq ? 0 : -1;
}

int rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	ENTER_CALL(rdma_create_srq);
	if (bind_device(id, pd))
		return -1;
	id->srq = ibv_create_srq(pd ? pd : id->pd, attr);
	return id->srq ? 0 : -1;
}

void rdma_destroy_srq(struct rdma_cm_id *id)
{
	ENTER_VOID(rdma_destroy_srq);
	if (id->srq && !ibv_destroy_srq(id->srq))
		id->srq = NULL;
}

/* ---- endpoints ---- */

int rdma_create_ep(struct rdma_cm_id **id, struct rdma_addrinfo *res, struct ibv_pd *pd,
		   struct ibv_qp_init_attr *attr)
{
	ENTER_CALL(rdma_create_ep);
	enum rdma_port_space ps = res ? (enum rdma_port_space)res->ai_port_space : RDMA_PS_TCP;
	struct fake_cm_id *fake = fake_cm_id_new(NULL, NULL, ps);

	if (!fake)
		return -1;
	if (attr && res && res->ai_flags & RAI_PASSIVE) {
		fake->passive = true;
		fake->passive_pd = pd;
		fake->passive_attr = *attr;
	} else if (attr && rdma_create_qp(&fake->id, pd, attr)) {
		int err = errno;

		rdma_destroy_ep(&fake->id);
		return fail(err);
	}
	*id = &fake->id;
	return 0;
}

void rdma_destroy_ep(struct rdma_cm_id *id)
{
	ENTER_VOID(rdma_destroy_ep);
	if (id->qp)
		rdma_destroy_qp(id);
	if (id->srq)
		rdma_destroy_srq(id);
	rdma_destroy_id(id);
}

/* The request's event stays with the new id and is acked when that is destroyed. */
int rdma_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **id)
{
	ENTER_CALL(rdma_get_request);
	struct fake_cm_id *fake = fake_cm_id_of(listen);
	struct rdma_cm_event *event;

	if (!fake->owns_channel)
		return fail(EINVAL);
	if (rdma_get_cm_event(listen->channel, &event))
		return -1;
	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
		rdma_ack_cm_event(event);
		return fail(EINVAL);
	}
	if (fake->passive) {
		struct ibv_qp_init_attr attr = fake->passive_attr;

		if (rdma_create_qp(event->id, fake->passive_pd, &attr)) {
			int err = errno;
			struct rdma_cm_id *child = event->id;

			rdma_ack_cm_event(event);
			rdma_destroy_ep(child);
			return fail(err);
		}
	}
	*id = event->id;
	event->id->event = event;
	return 0;
}
