/* SPDX-License-Identifier: MIT */
/*
 * The wrappers that need thought: contexts, changes of live objects, events
 * and the connection manager. Each row SPECIAL or UNVERSIONED of verbs.def
 * has its function here.
 */
#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "base/maps.h"
#include "intercept/contexts.h"
#include "base/clock.h"
#include "intercept/costs.h"
#include "intercept/gate.h"
#include "intercept/prototypes.h"

/* ---- contexts ---- */

/* Books a context that the real verb just made, and replaces its operations. */
static struct ibv_context *context_commit(struct creation *creation, struct ibv_context *context)
{
	int result;

	if (!context) {
		creation_abort(creation);
		return NULL;
	}
	result = context_add(creation->library, context, creation->handle.device, false);
	if (result < 0) {
		object_undo(OBJECT_ctx, context, context);
		creation_abort(creation);
		errno = -result;
		return NULL;
	}
	creation->context = context;
	creation->handle.owner = context_find(context)->group;
	if (!creation_try_commit(creation, context)) {
		uint32_t group;
		unsigned device;

		context_remove(creation->library, context, &group, &device);
		object_undo(OBJECT_ctx, context, context);
		creation_abort(creation);
		errno = ENOMEM;
		return NULL;
	}
	return context;
}

/* Providers and the connection manager open files, where a thread can be cancelled: then nobody
 * could tell what was made. So these verbs are left before or after, and not in the middle. */
#define UNCANCELLED(call)                                                                          \
	({                                                                                         \
		__typeof__(call) result_;                                                          \
		int state_;                                                                        \
                                                                                                   \
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state_);                           \
		result_ = call;                                                                    \
		pthread_setcancelstate(state_, NULL);                                              \
		result_;                                                                           \
	})

struct ibv_context *wrap_ibv_open_device(struct ibv_device *device)
{
	__typeof__(real_verbs.ibv_open_device) real = REAL(ibv_open_device);
	struct creation creation;

	if (!real)
		return NULL;
	if (!creation_start_library(&creation, OBJECT_ctx, NULL, CALLER))
		return real(device);
	creation.handle.cost = COST1(ctx, 1);
	if (!creation_begin_on_device(&creation, "ibv_open_device", device->name))
		return NULL;
	return context_commit(&creation, UNCANCELLED(real(device)));
}

/* What providers' own openers come to. */
struct ibv_context *wrap_verbs_open_device(struct ibv_device *device, void *private_data)
{
	__typeof__(real_verbs.verbs_open_device) real = REAL(verbs_open_device);
	struct creation creation;

	if (!real)
		return NULL;
	if (!creation_start_library(&creation, OBJECT_ctx, NULL, CALLER))
		return real(device, private_data);
	creation.handle.cost = COST1(ctx, 1);
	if (!creation_begin_on_device(&creation, "verbs_open_device", device->name))
		return NULL;
	return context_commit(&creation, UNCANCELLED(real(device, private_data)));
}

/* Another handle on a context that exists: nothing is charged, but what is made
 * through it is. */
struct ibv_context *wrap_ibv_import_device(int cmd_fd)
{
	__typeof__(real_verbs.ibv_import_device) real = REAL(ibv_import_device);
	struct library *library = library_get();
	struct ibv_context *context;
	unsigned device;
	int saved = errno, reason = ENOMEM;

	if (!real)
		return NULL;
	if (library && library_refuses(library)) {
		errno = library->config.deny_errno;
		return NULL;
	}
	context = real(cmd_fd);
	if (!context || !library)
		return context;
	if (!gate_device(library, "ibv_import_device", context->device->name, &device))
		reason = errno;
	else if (context_add(library, context, device, true) == 0)
		reason = 0;
	if (reason) {
		object_undo(OBJECT_ctx, context, context);
		context = NULL;
	}
	errno = reason ? reason : saved;
	return context;
}

int wrap_ibv_close_device(struct ibv_context *context)
{
	__typeof__(real_verbs.ibv_close_device) real = REAL(ibv_close_device);
	struct library *library = gate_nested(OBJECT_ctx, CALLER) ? NULL : library_active();
	char path[64];
	uint32_t group;
	unsigned device;
	int result, left;

	if (!real)
		return EOPNOTSUPP;
	/* Forget it first: its address is reused as soon as it is closed. */
	if (library && context_remove(library, context, &group, &device))
		maps_path_of(context->cmd_fd, path, sizeof(path));
	else
		library = NULL;
	result = real(context);
	left = errno;
	if (library && !context_group_is_open(group)) { /* the context's own handle is among them */
		gate_release_group(library, group, device, path);
		inherited_close_group(group);
	}
	errno = left;
	return result;
}

/* ---- changes of live objects ---- */

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

/* ---- completion events ---- */

static void cq_event_count(struct library *library)
{
	uint64_t ns = clock_now_ns(), last;

	last = __atomic_exchange_n(&library->last_cq_event_ns, ns, __ATOMIC_RELAXED);
	ledger_count(&library->ledger, COUNTER_CQ_EVENTS, 1);
	if (last && ns > last) {
		ledger_count(&library->ledger, COUNTER_CQ_GAPS, 1);
		ledger_count(&library->ledger, COUNTER_CQ_GAP_NS, ns - last);
		ledger_count_max(&library->ledger, COUNTER_CQ_GAP_MAX_NS, ns - last);
	}
}

int wrap_ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	__typeof__(real_verbs.ibv_get_cq_event) real = REAL(ibv_get_cq_event);
	struct library *library;
	int result;

	if (!real)
		return -1;
	result = real(channel, cq, cq_context);
	if (result == 0) {
		int left = errno;

		library = library_active();
		if (library)
			cq_event_count(library);
		errno = left;
	}
	return result;
}

void wrap_ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	__typeof__(real_verbs.ibv_ack_cq_events) real = REAL(ibv_ack_cq_events);
	struct library *library = library_active();

	if (library)
		ledger_count(&library->ledger, COUNTER_CQ_ACKS, nevents);
	if (real)
		real(cq, nevents);
}

/* ---- connection manager ---- */

static int cm_id_commit(struct creation *creation, int result, struct rdma_cm_id **id)
{
	if (result) {
		creation_abort(creation);
		return result;
	}
	return creation_commit(creation, *id) ? 0 : -1;
}

int wrap_rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
			enum rdma_port_space ps)
{
	__typeof__(real_verbs.rdma_create_id) real = REAL(rdma_create_id);
	struct creation creation;

	if (!real)
		return -1;
	if (!creation_start_library(&creation, OBJECT_cm_id, NULL, CALLER))
		return real(channel, id, context, ps);
	creation.handle.cost = COST1(cm_id, 1);
	if (!creation_begin(&creation, "rdma_create_id", OBJECT_cm_id, NULL))
		return -1;
	return cm_id_commit(&creation, UNCANCELLED(real(channel, id, context, ps)), id);
}

int wrap_rdma_create_ep(struct rdma_cm_id **id, struct rdma_addrinfo *res, struct ibv_pd *pd,
			struct ibv_qp_init_attr *attr)
{
	__typeof__(real_verbs.rdma_create_ep) real = REAL(rdma_create_ep);
	struct creation creation;

	if (!real)
		return -1;
	if (!creation_start_library(&creation, OBJECT_cm_id, NULL, CALLER))
		return real(id, res, pd, attr);
	creation.handle.cost = COST1(cm_id, 1);
	if (!creation_begin(&creation, "rdma_create_ep", OBJECT_cm_id, NULL))
		return -1;
	return cm_id_commit(&creation, real(id, res, pd, attr), id);
}

int wrap_rdma_destroy_id(struct rdma_cm_id *id)
{
	__typeof__(real_verbs.rdma_destroy_id) real = REAL(rdma_destroy_id);
	struct release release;

	if (!real)
		return -1;
	release_begin(&release, OBJECT_cm_id, id);
	return release_end(&release, real(id));
}

void wrap_rdma_destroy_ep(struct rdma_cm_id *id)
{
	__typeof__(real_verbs.rdma_destroy_ep) real = REAL(rdma_destroy_ep);
	struct release release;

	if (!real)
		return;
	release_begin(&release, OBJECT_cm_id, id);
	real(id);
	release_end(&release, 0);
}

/*
 * A connection request brings an id that nobody created. Over the limit it is
 * what a server does that wants no more connections: rejected, and the
 * application waits for its next event. True when the event was eaten.
 */
static bool cm_request_refused(struct library *library, struct rdma_cm_event *event)
{
	static __typeof__(rdma_reject) *reject;
	static __typeof__(rdma_ack_cm_event) *acknowledge;
	struct creation creation = { .library = library, .handle.cost = COST1(cm_id, 1) };
	struct rdma_cm_id *id = event->id;
	int saved = errno;

	if (creation_begin(&creation, "rdma_get_cm_event", OBJECT_cm_id, NULL)) {
		if (creation_try_commit(&creation, id))
			return false;
		creation_abort(&creation);
	}
	if (!reject)
		reject = real_helper("librdmacm.so.1", "rdma_reject");
	if (!acknowledge)
		acknowledge = real_helper("librdmacm.so.1", "rdma_ack_cm_event");
	if (!reject || !acknowledge)
		return false;
	reject(id, NULL, 0);
	acknowledge(event);
	object_undo(OBJECT_cm_id, NULL, id);
	errno = saved; /* the application is not refused anything */
	return true;
}

int wrap_rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	__typeof__(real_verbs.rdma_get_cm_event) real = REAL(rdma_get_cm_event);
	struct library *library;
	int result;

	if (!real)
		return -1;
	do {
		int left;

		result = real(channel, event);
		if (result)
			return result;
		left = errno;
		library = library_active();
		if (library)
			ledger_count_cm_event(&library->ledger, (unsigned)(*event)->event);
		errno = left;
	} while (library && (*event)->event == RDMA_CM_EVENT_CONNECT_REQUEST &&
		 cm_request_refused(library, *event));
	return result;
}
