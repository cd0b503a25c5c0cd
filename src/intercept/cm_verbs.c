/* SPDX-License-Identifier: MIT */
/* The wrappers of the connection manager: its identifiers, and those that requests bring. */
#include <errno.h>

#include "intercept/costs.h"
#include "intercept/gate.h"
#include "intercept/prototypes.h"

static int cm_id_commit(struct creation *creation, uint64_t begun, int result,
			struct rdma_cm_id **id)
{
	call_count(creation->library, VERB_create_other, begun, result != 0);
	if (result) {
		creation_fail(creation);
		return result;
	}
	return creation_commit(creation, *id) ? 0 : -1;
}

/* False: above the rate, and errno says so. */
static bool cm_rate_allows(const char *verb)
{
	int error = rates_pass(RATE_connect, verb);

	if (error) {
		call_count_refused_active(VERB_connect);
		errno = error;
	}
	return !error;
}

int wrap_rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
			enum rdma_port_space ps)
{
	__typeof__(real_verbs.rdma_create_id) real = REAL(rdma_create_id);
	struct creation creation;
	uint64_t begun;

	if (!real)
		return -1;
	if (!creation_start_library(&creation, OBJECT_cm_id, NULL, CALLER))
		return real(channel, id, context, ps);
	creation.handle.cost = COST1(cm_id, 1);
	if (!creation_begin(&creation, "rdma_create_id", OBJECT_cm_id, NULL))
		return -1;
	begun = cycles_now();
	return cm_id_commit(&creation, begun, UNCANCELLED(real(channel, id, context, ps)), id);
}

int wrap_rdma_create_ep(struct rdma_cm_id **id, struct rdma_addrinfo *res, struct ibv_pd *pd,
			struct ibv_qp_init_attr *attr)
{
	__typeof__(real_verbs.rdma_create_ep) real = REAL(rdma_create_ep);
	struct creation creation;
	uint64_t begun;

	if (!real)
		return -1;
	if (!creation_start_library(&creation, OBJECT_cm_id, NULL, CALLER))
		return real(id, res, pd, attr);
	creation.handle.cost = COST1(cm_id, 1);
	if (!creation_begin(&creation, "rdma_create_ep", OBJECT_cm_id, NULL))
		return -1;
	begun = cycles_now();
	return cm_id_commit(&creation, begun, real(id, res, pd, attr), id);
}

int wrap_rdma_destroy_id(struct rdma_cm_id *id)
{
	__typeof__(real_verbs.rdma_destroy_id) real = REAL(rdma_destroy_id);
	struct release release;

	if (!real)
		return -1;
	release_begin(&release, OBJECT_cm_id, id);
	return release_end(&release, OBJECT_cm_id, real(id));
}

void wrap_rdma_destroy_ep(struct rdma_cm_id *id)
{
	__typeof__(real_verbs.rdma_destroy_ep) real = REAL(rdma_destroy_ep);
	struct release release;

	if (!real)
		return;
	release_begin(&release, OBJECT_cm_id, id);
	real(id);
	release_end(&release, OBJECT_cm_id, 0);
}

int wrap_rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *parameters)
{
	__typeof__(real_verbs.rdma_connect) real = REAL(rdma_connect);
	uint64_t begun;
	int result;

	if (!real || !cm_rate_allows("rdma_connect"))
		return -1;
	begun = cycles_now();
	result = real(id, parameters);
	call_count_active(VERB_connect, begun, result != 0);
	return result;
}

int wrap_rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *parameters)
{
	__typeof__(real_verbs.rdma_accept) real = REAL(rdma_accept);
	uint64_t begun;
	int result;

	if (!real || !cm_rate_allows("rdma_accept"))
		return -1;
	begun = cycles_now();
	result = real(id, parameters);
	call_count_active(VERB_connect, begun, result != 0);
	return result;
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
