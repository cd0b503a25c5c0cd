/* SPDX-License-Identifier: MIT */
/*
 * The rules by which verbs fail, change and die, beyond what the table test
 * does for every row: re-registration, resizing, imports, closing, events,
 * gauges, nested calls, old ABI, pointers nobody knows.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <time.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "fakeverbs.h"
#include "fixture.h"
#include "harness.h"
#include "ledger/layout.h"
#include "ledger/view.h"

static char memory[1 << 16];

static struct ibv_mr *mr_make(struct fixture *fixture, size_t length)
{
	return ibv_reg_mr(fixture->pd, memory, length, IBV_ACCESS_LOCAL_WRITE);
}

enum { FLOOD = 501 };

/* The slot of this process, as an observer sees it. */
static const struct layout_slot *own_slot(void)
{
	static struct ledger_view view;
	char problem[PROBLEM_SIZE];
	const struct layout_slot *slot = NULL;
	pid_t pid;

	if (!view.header && ledger_view_open(&view, shm_name(), problem) < 0)
		abort();
	for (unsigned seat = 0; seat < ledger_view_seats(&view); seat++) {
		slot = ledger_view_seat(&view, seat, &pid);
		if (slot && pid == getpid())
			return slot;
	}
	abort();
}

/* -1 and -2 keep the old registration, -3 leaves the new one, -4 and -5 keep
 * the charge until the MR is deregistered. */
static void rereg(const char *argument)
{
	static const struct {
		int code;
		size_t length;
	} cases[] = { { -1, 4096 }, { -2, 4096 }, { -3, 8192 }, { -4, 4096 }, { -5, 4096 } };
	struct fixture fixture = fixture_open();
	const int flags = IBV_REREG_MR_CHANGE_TRANSLATION;
	struct ibv_mr *mr;

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		mr = mr_make(&fixture, 4096);
		fake_set("ibv_rereg_mr", FAKE_CODE, cases[i].code, 0, 1);
		CHECK(ibv_rereg_mr(mr, flags, NULL, memory, 8192, 0) == cases[i].code);
		CHECK(used(KIND_mr_bytes) == cases[i].length, "code %d", cases[i].code);
		CHECK(used(KIND_mr) == 1);
		CHECK(ibv_dereg_mr(mr) == 0);
		CHECK(used(KIND_mr_bytes) == 0 && used(KIND_mr) == 0);
	}
	mr = mr_make(&fixture, 4096);
	CHECK(ibv_rereg_mr(mr, flags, NULL, memory, 12288, 0) == 0 && used(KIND_mr_bytes) == 12288);
	CHECK(ibv_rereg_mr(mr, flags, NULL, memory, 100, 0) == 0 && used(KIND_mr_bytes) == 100);
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 1) == 0);
	CHECK(used(KIND_mr_bytes) == 100);
	/* The limit of this scenario is 12288. */
	errno = 0;
	CHECK(ibv_rereg_mr(mr, flags, NULL, memory, 12289, 0) == IBV_REREG_MR_ERR_INPUT);
	CHECK(errno == EDQUOT && mr->length == 100 && used(KIND_mr_bytes) == 100);
	CHECK(ibv_dereg_mr(mr) == 0 && used(KIND_mr_bytes) == 0);
	fixture_close(&fixture);
}

static void resize(const char *argument)
{
	struct fixture fixture = fixture_open();

	CHECK(ibv_resize_cq(fixture.cq, 40) == 0 && used(KIND_cqe) == 40);
	CHECK(ibv_resize_cq(fixture.cq, 10) == 0 && used(KIND_cqe) == 10);
	fake_set("ibv_resize_cq", FAKE_FAIL, ENOMEM, 0, 1);
	CHECK(ibv_resize_cq(fixture.cq, 30) == ENOMEM && used(KIND_cqe) == 10);
	fake_set("ibv_resize_cq", FAKE_ROUND_UP, 0, 0, 1);
	CHECK(ibv_resize_cq(fixture.cq, 16) == 0 && used(KIND_cqe) == (uint64_t)fixture.cq->cqe);
	/* The limit of this scenario is 64. */
	CHECK(ibv_resize_cq(fixture.cq, 65) == EDQUOT);
	fake_set("ibv_resize_cq", FAKE_ROUND_UP, 0, 0, 1);
	CHECK(ibv_resize_cq(fixture.cq, 60) == EDQUOT, "rounded up to 128");
	CHECK(used(KIND_cqe) == (uint64_t)fixture.cq->cqe && fixture.cq->cqe <= 64);
	fixture_close(&fixture);
	CHECK(used(KIND_cqe) == 0);
}

static void srq_depth(const char *argument)
{
	struct fixture fixture = fixture_open();
	struct ibv_srq_init_attr init = { .attr = { .max_wr = SRQ_DEPTH, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(fixture.pd, &init);
	struct ibv_srq_attr attr = { .max_wr = 50, .srq_limit = 3 };

	CHECK(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT) == 0 && used(KIND_recv_wr) == SRQ_DEPTH);
	CHECK(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR) == 0 && used(KIND_recv_wr) == 50);
	attr.max_wr = 20;
	CHECK(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR) == 0 && used(KIND_recv_wr) == 20);
	fake_set("ibv_modify_srq", FAKE_FAIL, EINVAL, 0, 1);
	attr.max_wr = 30;
	CHECK(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR) == EINVAL && used(KIND_recv_wr) == 20);
	attr.max_wr = 65; /* the limit of this scenario is 64 */
	CHECK(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR) == EDQUOT && used(KIND_recv_wr) == 20);
	CHECK(ibv_destroy_srq(srq) == 0 && used(KIND_recv_wr) == 0 && used(KIND_srq) == 0);
	fixture_close(&fixture);
}

/* A QP on a shared receive queue, and the two halves of XRC, have no own queue there. */
static void own_queues(const char *argument)
{
	struct fixture fixture = fixture_open();
	struct ibv_srq_init_attr init = { .attr = { .max_wr = SRQ_DEPTH, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(fixture.pd, &init);
	struct ibv_qp_init_attr attr = qp_attributes(fixture.cq, IBV_QPT_RC);
	struct ibv_qp *qp;

	attr.srq = srq;
	qp = ibv_create_qp(fixture.pd, &attr);
	CHECK(used(KIND_send_wr) == SEND_DEPTH && used(KIND_recv_wr) == SRQ_DEPTH);
	CHECK(ibv_destroy_qp(qp) == 0 && used(KIND_send_wr) == 0 && used(KIND_recv_wr) == SRQ_DEPTH);
	CHECK(ibv_destroy_srq(srq) == 0);
	fixture_close(&fixture);
}

static void implicit_odp(const char *argument)
{
	struct fixture fixture = fixture_open();
	struct ibv_mr *mr = ibv_reg_mr(fixture.pd, NULL, SIZE_MAX, IBV_ACCESS_ON_DEMAND);

	CHECK(mr && mr->length == SIZE_MAX && used(KIND_mr) == 1 && used(KIND_mr_bytes) == 0);
	CHECK(ibv_dereg_mr(mr) == 0 && used(KIND_mr) == 0 && used(KIND_mr_bytes) == 0);
	mr = ibv_alloc_null_mr(fixture.pd);
	CHECK(mr && mr->length == SIZE_MAX && used(KIND_mr) == 0 && used(KIND_mr_bytes) == 0);
	CHECK(ibv_dereg_mr(mr) == 0 && used(KIND_mr) == 0 && used(KIND_mr_bytes) == 0);
	fixture_close(&fixture);
}

/* An import is no new object in the kernel, unimport frees none, and what was made
 * through either context lives until the last one on the same file is closed. */
static void imports(const char *argument)
{
	struct fixture fixture = fixture_open();
	struct ibv_context *second = ibv_import_device(dup(fixture.context->cmd_fd));
	struct ibv_mr *mr = mr_make(&fixture, 4096), *imported;
	struct ibv_pd *pd;
	struct ibv_mw *mw;

	CHECK(second && used(KIND_ctx) == 1);
	pd = ibv_import_pd(second, fixture.pd->handle);
	CHECK(pd && used(KIND_pd) == 1);
	imported = ibv_import_mr(pd, mr->handle);
	CHECK(imported && used(KIND_mr) == 1 && used(KIND_mr_bytes) == 4096);
	ibv_unimport_mr(imported);
	CHECK(used(KIND_mr) == 1 && used(KIND_mr_bytes) == 4096);
	mw = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
	CHECK(mw && used(KIND_mw) == 1, "inline verbs of an imported context are seen");
	ibv_unimport_pd(pd);
	CHECK(used(KIND_pd) == 1);
	ibv_close_device(fixture.context);
	CHECK(used(KIND_ctx) == 1 && used(KIND_mr) == 1 && used(KIND_mw) == 1 && fake_live("mr") == 1,
	      "the file is still open");
	ibv_close_device(second);
	for (int kind = 0; kind < KINDS_COUNTED; kind++)
		CHECK(used((enum kind)kind) == 0, "%s", kind_rows[kind].name);
	CHECK(fake_live("all") == 0);
}

/* A context's remaining objects are given back when it closes, only its own, and
 * a context at the same address afterwards starts clean. */
static void closing(const char *argument)
{
	struct fixture first = fixture_open(), second = fixture_open_device(1);

	for (unsigned round = 0; round < 50; round++) {
		struct ibv_context *context = ibv_open_device(first.devices[0]);
		struct ibv_pd *pd = ibv_alloc_pd(context);

		CHECK(ibv_alloc_mw(pd, IBV_MW_TYPE_2) != NULL);
		CHECK(used(KIND_mw) == 1 && used_on("rxe0", KIND_pd) == 2);
		CHECK(ibv_close_device(context) == 0);
		CHECK(used(KIND_mw) == 0 && used_on("rxe0", KIND_pd) == 1);
		CHECK(used_on("rxe1", KIND_pd) == 1 && used(KIND_ctx) == 2);
	}
	/* Device removal: destroy fails with EIO, the object goes with the context. */
	mr_make(&first, 4096);
	fake_set("ibv_dereg_mr", FAKE_FAIL, EIO, 0, 1);
	CHECK(ibv_dereg_mr(mr_make(&first, 4096)) == EIO && used(KIND_mr) == 2);
	ibv_close_device(first.context);
	CHECK(used(KIND_mr) == 0 && used(KIND_mr_bytes) == 0 && used_on("rxe0", KIND_pd) == 0);
	fixture_close(&second);
}

static void qp_gauges(const char *argument)
{
	struct fixture fixture = fixture_open();
	const struct layout_slot_device *row;
	struct ibv_qp *rc = qp_make(&fixture, IBV_QPT_RC), *ud = qp_make(&fixture, IBV_QPT_UD),
		      *uc = qp_make(&fixture, IBV_QPT_UC), *raw = qp_make(&fixture, IBV_QPT_RAW_PACKET);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 2 };
	const struct layout_slot *slot = own_slot();
	struct ledger_view view;
	char problem[PROBLEM_SIZE];

	CHECK(ledger_view_open(&view, shm_name(), problem) == 0);
	row = &slot->device[ledger_view_device(&view, "rxe0")];
	CHECK(row->gauges.qp_type[QP_RC] == 1 && row->gauges.qp_type[QP_UD] == 1 && row->gauges.qp_type[QP_UC] == 1 &&
	      row->gauges.qp_type[QP_RAW] == 1);
	CHECK(row->gauges.qp_state[QP_RESET] == 4);
	CHECK(ibv_modify_qp(rc, &attr, IBV_QP_STATE | IBV_QP_PORT) == 0);
	attr.port_num = 1;
	CHECK(ibv_modify_qp(ud, &attr, IBV_QP_STATE | IBV_QP_PORT) == 0);
	CHECK(row->gauges.qp_state[QP_RESET] == 2 && row->gauges.qp_state[QP_INIT] == 2);
	CHECK(row->gauges.qp_port[1] == 1 && row->gauges.qp_port[2] == 1);
	attr.qp_state = IBV_QPS_RTR;
	CHECK(ibv_modify_qp(rc, &attr, IBV_QP_STATE) == 0);
	attr.qp_state = IBV_QPS_RTS;
	CHECK(ibv_modify_qp(rc, &attr, IBV_QP_STATE) == 0);
	fake_set("ibv_modify_qp", FAKE_FAIL, EINVAL, 0, 1);
	attr.qp_state = IBV_QPS_ERR;
	CHECK(ibv_modify_qp(rc, &attr, IBV_QP_STATE) == EINVAL);
	CHECK(row->gauges.qp_state[QP_RTS] == 1 && row->gauges.qp_state[QP_ERR] == 0 && row->gauges.qp_port[2] == 1);
	attr.qp_state = IBV_QPS_RESET;
	CHECK(ibv_modify_qp(ud, &attr, IBV_QP_STATE) == 0);
	CHECK(row->gauges.qp_port[1] == 0 && row->gauges.qp_state[QP_RESET] == 3);
	ibv_destroy_qp(rc);
	ibv_destroy_qp(ud);
	ibv_destroy_qp(uc);
	ibv_destroy_qp(raw);
	for (unsigned i = 0; i < QP_TYPES; i++)
		CHECK(row->gauges.qp_type[i] == 0, "type %u", i);
	for (unsigned i = 0; i < QP_STATES; i++)
		CHECK(row->gauges.qp_state[i] == 0, "state %u", i);
	for (unsigned i = 0; i < QP_PORTS; i++)
		CHECK(row->gauges.qp_port[i] == 0, "port %u", i);
	fixture_close(&fixture);
}

static void *destroy_later(void *cq)
{
	CHECK(ibv_destroy_cq(cq) == 0);
	return NULL;
}

/* Events are counted, and a destroy that waits for an ack holds nothing that others need. */
static void cq_events(const char *argument)
{
	struct fixture fixture = fixture_open();
	struct ibv_comp_channel *channel = ibv_create_comp_channel(fixture.context);
	struct ibv_cq *cq = ibv_create_cq(fixture.context, 4, NULL, channel, 0), *seen;
	const struct layout_slot *slot = own_slot();
	pthread_t thread;
	void *context;

	for (unsigned i = 0; i < 3; i++) {
		CHECK(fake_cq_event(cq) == 0);
		CHECK(ibv_get_cq_event(channel, &seen, &context) == 0 && seen == cq);
		usleep(2000);
	}
	CHECK(slot->tallies.counter[COUNTER_CQ_EVENTS] == 3 && slot->tallies.counter[COUNTER_CQ_ACKS] == 0);
	CHECK(slot->tallies.counter[COUNTER_CQ_GAPS] == 2);
	CHECK(slot->tallies.counter[COUNTER_CQ_GAP_MAX_NS] >= 2000000 &&
	      slot->tallies.counter[COUNTER_CQ_GAP_NS] >= slot->tallies.counter[COUNTER_CQ_GAP_MAX_NS]);
	ibv_ack_cq_events(cq, 2);
	CHECK(slot->tallies.counter[COUNTER_CQ_ACKS] == 2);
	pthread_create(&thread, NULL, destroy_later, cq);
	usleep(20000);
	for (unsigned i = 0; i < 200; i++) { /* all shards of the table, and the ledger */
		struct ibv_pd *pd = ibv_alloc_pd(fixture.context);

		CHECK(pd && ibv_dealloc_pd(pd) == 0);
	}
	CHECK(used(KIND_cq) == 2, "still there while it waits");
	ibv_ack_cq_events(cq, 1);
	pthread_join(thread, NULL);
	CHECK(used(KIND_cq) == 1);
	fcntl(channel->fd, F_SETFL, O_NONBLOCK);
	errno = 0;
	CHECK(ibv_get_cq_event(channel, &seen, &context) == -1 && errno == EAGAIN);
	CHECK(slot->tallies.counter[COUNTER_CQ_EVENTS] == 3);
	CHECK(ibv_destroy_comp_channel(channel) == 0);
	fixture_close(&fixture);
}

static uint64_t calls_of(enum verb_class class)
{
	const struct verb_tally *verb = &own_slot()->tallies.verb[class];
	uint64_t calls = 0;

	for (unsigned i = 0; i < LATENCY_BUCKETS; i++)
		calls += verb->latency[i];
	return calls;
}

/* Calls that reach the provider are counted and timed by class, failed ones among them, refused
 * ones apart. The limits of this scenario are three QPs and 64 CQEs. */
static void calls(const char *argument)
{
	uint64_t begun = clock_now_ns(), passed;
	struct fixture fixture = fixture_open();
	const struct verb_tally *verb = own_slot()->tallies.verb;
	struct ibv_qp *qp[3];
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	struct ibv_mr *mr = mr_make(&fixture, 4096);

	for (unsigned i = 0; i < 3; i++)
		qp[i] = qp_make(&fixture, IBV_QPT_RC);
	CHECK(!qp_make(&fixture, IBV_QPT_RC) && !qp_make(&fixture, IBV_QPT_RC));
	CHECK(calls_of(VERB_create_qp) == 3 && verb[VERB_create_qp].refused == 2 &&
	      verb[VERB_create_qp].failed == 0);
	fake_set("ibv_destroy_qp", FAKE_FAIL, EBUSY, 0, 1);
	CHECK(ibv_destroy_qp(qp[0]) == EBUSY);
	CHECK(calls_of(VERB_destroy_qp) == 1 && verb[VERB_destroy_qp].failed == 1);
	for (unsigned i = 0; i < 3; i++)
		CHECK(ibv_modify_qp(qp[i], &attr, IBV_QP_STATE) == 0 && ibv_destroy_qp(qp[i]) == 0);
	CHECK(calls_of(VERB_destroy_qp) == 4 && verb[VERB_destroy_qp].failed == 1);
	CHECK(calls_of(VERB_modify_qp) == 3 && calls_of(VERB_create_cq) == 1);
	fake_set("ibv_create_qp", FAKE_FAIL, ENOMEM, 0, 1);
	CHECK(!qp_make(&fixture, IBV_QPT_RC));
	CHECK(calls_of(VERB_create_qp) == 4 && verb[VERB_create_qp].failed == 1);
	CHECK(ibv_resize_cq(fixture.cq, 20) == 0 && ibv_resize_cq(fixture.cq, 100) == EDQUOT);
	CHECK(calls_of(VERB_resize) == 1 && verb[VERB_resize].refused == 1);
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0) == 0);
	CHECK(ibv_dereg_mr(mr) == 0);
	CHECK(calls_of(VERB_reg_mr) == 2 && calls_of(VERB_dereg_mr) == 1);
	CHECK(calls_of(VERB_create_other) == 2, "a context and a PD");
	fixture_close(&fixture);
	CHECK(calls_of(VERB_destroy_other) == 2 && calls_of(VERB_destroy_cq) == 1);
	passed = clock_now_ns() - begun;
	for (unsigned class = 0; class < VERB_CLASSES; class++)
		CHECK(!calls_of(class) == !verb[class].ns && verb[class].ns <= passed,
		      "class %u: %llu ns", class, (unsigned long long)verb[class].ns);
}

static void cm_events(const char *argument)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *listener, *ids[2];
	struct rdma_cm_event *event;
	const struct layout_slot *slot;

	CHECK(rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP) == 0);
	slot = own_slot();
	fake_cm_event(listener, RDMA_CM_EVENT_ADDR_RESOLVED);
	CHECK(rdma_get_cm_event(channel, &event) == 0 && rdma_ack_cm_event(event) == 0);
	CHECK(slot->tallies.cm_event[RDMA_CM_EVENT_ADDR_RESOLVED] == 1);
	for (unsigned i = 0; i < 2; i++) {
		fake_cm_event(listener, RDMA_CM_EVENT_CONNECT_REQUEST);
		CHECK(rdma_get_cm_event(channel, &event) == 0);
		ids[i] = event->id;
		rdma_ack_cm_event(event);
		CHECK(used(KIND_cm_id) == 2 + i, "a request brings an id of its own");
	}
	/* The limit of this scenario is 3: the next request is rejected, and the
	 * application only sees the event after it. */
	fake_cm_event(listener, RDMA_CM_EVENT_CONNECT_REQUEST);
	fake_cm_event(ids[0], RDMA_CM_EVENT_ESTABLISHED);
	CHECK(rdma_get_cm_event(channel, &event) == 0 &&
	      event->event == RDMA_CM_EVENT_ESTABLISHED);
	rdma_ack_cm_event(event);
	CHECK(used(KIND_cm_id) == 3 && fake_live("cm_id") == 3 && fake_calls("rdma_reject") == 1);
	CHECK(slot->tallies.cm_event[RDMA_CM_EVENT_CONNECT_REQUEST] == 3);
	for (unsigned i = 0; i < 2; i++)
		CHECK(rdma_destroy_id(ids[i]) == 0);
	CHECK(used(KIND_cm_id) == 1);
	CHECK(rdma_destroy_id(listener) == 0 && used(KIND_cm_id) == 0);
	rdma_destroy_event_channel(channel);
}

/* librdmacm's own creation of an endpoint with a QP: one id, one QP. */
static void endpoint(const char *argument)
{
	struct rdma_addrinfo info = { .ai_port_space = RDMA_PS_TCP, .ai_qp_type = IBV_QPT_RC };
	struct ibv_qp_init_attr attr = qp_attributes(NULL, IBV_QPT_RC);
	struct rdma_cm_id *id;

	CHECK(rdma_create_ep(&id, &info, NULL, &attr) == 0);
	CHECK(used(KIND_cm_id) == 1 && used(KIND_qp) == 1 && used(KIND_pd) == 1);
	rdma_destroy_ep(id);
	CHECK(used(KIND_cm_id) == 0 && used(KIND_qp) == 0);
}

/* An old caller has other structures: its calls must reach the old functions as they are. */
static void old_abi(const char *argument)
{
	void *library = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_NOLOAD);
	struct ibv_qp *(*create)(void *, void *) = dlvsym(library, "ibv_create_qp", "IBVERBS_1.0");

	CHECK(create != NULL);
	create(NULL, NULL);
	CHECK(fake_calls("ibv_create_qp@IBVERBS_1.0") == 1 && fake_calls("ibv_create_qp") == 0);
}

/* Pointers that we never saw being made pass through. */
static void unknown(const char *argument)
{
	void *library = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_NOLOAD);
	struct fixture fixture = fixture_open();
	struct ibv_mr *mr = mr_make(&fixture, 4096);
	struct ibv_mr *stranger = ibv_import_mr(fixture.pd, mr->handle);

	CHECK(library && stranger);
	CHECK(ibv_dereg_mr(stranger) == 0);
	CHECK(used(KIND_mr) == 1, "the stranger's charge is not ours to give back");
	fixture_close(&fixture);
}

/* A context of an older library is smaller: what it does not have stays untouched. */
static void small_context(const char *argument)
{
	struct fixture fixture = fixture_open();
	struct ibv_alloc_dm_attr attr = { .length = 64 };
	struct ibv_mw *mw = ibv_alloc_mw(fixture.pd, IBV_MW_TYPE_1);

	CHECK(mw && used(KIND_mw) == 1 && ibv_dealloc_mw(mw) == 0);
	errno = 0;
	CHECK(!ibv_alloc_dm(fixture.context, &attr) && errno == EOPNOTSUPP);
	CHECK(used(KIND_dm_bytes) == 0);
	fixture_close(&fixture);
}

static void *make_and_free(void *argument)
{
	struct fixture *fixture = argument;

	for (unsigned i = 0; i < 2000; i++) {
		struct ibv_mr *mr = mr_make(fixture, 4096);

		if (!CHECK(mr && ibv_dereg_mr(mr) == 0))
			break;
	}
	return NULL;
}

/* Addresses are reused at once, by whichever thread is first. */
static void reuse(const char *argument)
{
	struct fixture fixture = fixture_open();
	pthread_t threads[8];

	for (unsigned i = 0; i < 8; i++)
		pthread_create(&threads[i], NULL, make_and_free, &fixture);
	for (unsigned i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	CHECK(used(KIND_mr) == 0 && used(KIND_mr_bytes) == 0);
	fixture_close(&fixture);
}

static void modes(const char *argument)
{
	struct fixture fixture = fixture_open();
	const struct layout_slot *slot = own_slot();

	/* The limit is one QP. */
	CHECK(qp_make(&fixture, IBV_QPT_RC) != NULL);
	errno = 0;
	if (!strcmp(argument, "enforce")) {
		CHECK(!qp_make(&fixture, IBV_QPT_RC) && errno == ENOMEM, "DENY_ERRNO is ENOMEM");
		CHECK(slot->tallies.refused[KIND_qp] == 1 && slot->tallies.tolerated[KIND_qp] == 0);
	} else {
		CHECK(qp_make(&fixture, IBV_QPT_RC) != NULL && used(KIND_qp) == 2 && errno == 0);
		CHECK(slot->tallies.refused[KIND_qp] == 0 && slot->tallies.tolerated[KIND_qp] == 1);
	}
}

/* However often a program asks, the log gets a line a second. Reports in how many seconds it
 * asked. */
static void flood(const char *argument)
{
	struct fixture fixture = fixture_open();
	time_t last = 0;

	for (unsigned i = 0; i < FLOOD; i++) {
		struct timespec before, after;

		do
			clock_gettime(CLOCK_MONOTONIC, &before);
		while (i == FLOOD - 1 && before.tv_sec == last && !usleep(1000));
		CHECK(!qp_make(&fixture, IBV_QPT_RC));
		clock_gettime(CLOCK_MONOTONIC, &after);
		word_add(0, (before.tv_sec != last) + (after.tv_sec != before.tv_sec));
		last = after.tv_sec;
	}
	fixture_close(&fixture);
}

static const struct scenario scenarios[] = {
	{ "rereg", rereg },	      { "resize", resize },
	{ "srq_depth", srq_depth },   { "own_queues", own_queues },
	{ "implicit_odp", implicit_odp }, { "imports", imports },
	{ "closing", closing },	      { "qp_gauges", qp_gauges },
	{ "calls", calls }, { "cq_events", cq_events },   { "cm_events", cm_events },
	{ "endpoint", endpoint },     { "old_abi", old_abi },
	{ "unknown", unknown },	      { "small_context", small_context },
	{ "reuse", reuse },	      { "modes", modes },
	{ "flood", flood },
	{ 0 },
};

static void each(const char *scenario, const char *settings)
{
	shm_remove();
	spawn(scenario, settings);
}

/* Every refusal is in a line, or in the number of those that a line leaves out. */
static void flood_is_throttled(void)
{
	static const char more[] = " (and ";
	unsigned lines, hidden = 0;
	const char *at;

	words_clear();
	log_clear();
	each("flood", "LIMITS=process:qp=0");
	lines = occurrences(log_text(), "refused ibv_create_qp");
	for (at = strstr(log_text(), more); at; at = strstr(at + 1, more))
		hidden += (unsigned)atoi(at + strlen(more));
	CHECK(lines >= 2 && lines <= word_load(0), "%u lines in %llu seconds: %s", lines,
	      (unsigned long long)word_load(0), log_text());
	CHECK(lines + hidden == FLOOD, "%u shown, %u not: %s", lines, hidden, log_text());
	CHECK(occurrences(stderr_text(), "refused ibv_create_qp") == lines, "%s", stderr_text());
}

static void mode_warn(void)
{
	log_clear();
	each("modes:warn", "LIMITS=process:qp=1\nMODE=warn");
	CHECK(strstr(log_text(), "over limit, allowed: ibv_create_qp"), "%s", log_text());
	CHECK(strstr(stderr_text(), "over limit, allowed: ibv_create_qp") != NULL);
}

static void mode_audit(void)
{
	log_clear();
	each("modes:audit", "LIMITS=process:qp=1\nMODE=audit");
	CHECK(!strstr(log_text(), "over limit"), "%s", log_text());
	CHECK(stderr_text()[0] == '\0');
}

static void driver(void)
{
	static const struct {
		const char *scenario, *settings;
	} rows[] = {
		{ "rereg", "LIMITS=process:mr_bytes=12288" },
		{ "resize", "LIMITS=process:cqe=64" },
		{ "srq_depth", "LIMITS=process:recv_wr=64" },
		{ "own_queues", "" },
		{ "implicit_odp", "" },
		{ "imports", "" },
		{ "closing", "" },
		{ "qp_gauges", "" },
		{ "calls", "LIMITS=process:qp=3,cqe=64" },
		{ "cq_events", "" },
		{ "cm_events", "LIMITS=process:cm_id=3" },
		{ "endpoint", "" },
		{ "old_abi", "" },
		{ "unknown", "" },
		{ "small_context", "!FAKEVERBS_SZ=200" },
		{ "reuse", "" },
		{ "modes:enforce", "LIMITS=process:qp=1\nDENY_ERRNO=ENOMEM" },
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		CASE(rows[i].scenario)
			each(rows[i].scenario, rows[i].settings);
	RUN(mode_warn);
	RUN(mode_audit);
	RUN(flood_is_throttled);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, scenarios, driver);
}
