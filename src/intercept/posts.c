/* SPDX-License-Identifier: MIT */
/*
 * Our functions on the data path, and how they come to stand there; see posts.h. What the provider
 * had set for a queue pair is kept in a table by its address. Entries are never taken out: a thread
 * may be in one of our functions at any time, and a queue pair that is made later at the same
 * address gets the same entry.
 */
#include "intercept/posts.h"

#include <string.h>
#include <sys/mman.h>

#include "intercept/contexts.h"
#include "intercept/library.h"
#include "intercept/pace.h"

/* The functions of a queue pair as the provider set them; NULL where it has none. */
struct posts_qp_ops {
#define POST_REQUEST(op, parameters, arguments) void(*op) parameters;
#define POST_DATA(op, parameters, arguments, bytes) void(*op) parameters;
#include "intercept/posts.def"
	void (*wr_start)(struct ibv_qp_ex *qp);
	int (*wr_complete)(struct ibv_qp_ex *qp);
	void (*wr_abort)(struct ibv_qp_ex *qp);
};

struct posts_qp {
	const struct ibv_qp *qp;
	struct posts_qp *next; /* in its bucket, for ever */
	struct pace *pace;
	struct qp_pace own;
	/* Since wr_start; only the thread between wr_start and wr_complete touches them. */
	uint64_t bytes, operations;
	struct posts_qp_ops real;
};

enum { QP_BUCKETS = 1024, QP_CHUNK_BYTES = 16384 };

/* A fork may come between any two stores of another thread: each leaves the table in order. */
struct qp_chunk {
	uint64_t used;
	struct posts_qp entry[(QP_CHUNK_BYTES - sizeof(uint64_t)) / sizeof(struct posts_qp)];
};

static struct posts_qp *qp_buckets[QP_BUCKETS];
static struct qp_chunk *qp_chunk; /* the newest; writers hold paces.qp_lock */
static __thread struct posts_qp *qp_last; /* that this thread looked up */

static struct posts_qp **qp_bucket(const struct ibv_qp *qp)
{
	return &qp_buckets[(uint64_t)(uintptr_t)qp * 0x9e3779b97f4a7c15u >> 54];
}

static __attribute__((noinline)) struct posts_qp *qp_search(const struct ibv_qp *qp)
{
	struct posts_qp *entry = __atomic_load_n(qp_bucket(qp), __ATOMIC_ACQUIRE);

	while (entry && entry->qp != qp)
		entry = entry->next;
	return entry;
}

/* Of a queue pair whose functions are ours, or were a moment ago. */
static inline struct posts_qp *qp_find(const struct ibv_qp *qp)
{
	struct posts_qp *entry = qp_last;

	if (__builtin_expect(!entry || entry->qp != qp, 0))
		entry = qp_last = qp_search(qp);
	return entry;
}

/* ---- sizes */

static inline uint64_t sges_length(const struct ibv_sge *list, size_t count)
{
	uint64_t length = 0;

	for (size_t i = 0; i < count; i++)
		length += list[i].length;
	return length;
}

static inline uint64_t buffers_length(const struct ibv_data_buf *list, size_t count)
{
	uint64_t length = 0;

	for (size_t i = 0; i < count; i++)
		length += list[i].length;
	return length;
}

struct posts_sum {
	uint64_t bytes, operations;
};

enum { SGES_MOST = 1024 }; /* more than any device takes: the provider refuses such a list */

/* Only lists that the provider reads, too. */
_Static_assert(IBV_WR_BIND_MW == IBV_WR_LOCAL_INV + 1, "one comparison for both");
static inline bool request_has_data(const struct ibv_send_wr *wr)
{
	return (unsigned)wr->num_sge - 1 < SGES_MOST && (unsigned)wr->opcode - IBV_WR_LOCAL_INV > 1;
}

static inline struct posts_sum requests_sum(const struct ibv_send_wr *wr)
{
	struct posts_sum sum = { 0, 0 };

	for (; wr; wr = wr->next) {
		if (request_has_data(wr))
			sum.bytes += sges_length(wr->sg_list, (size_t)wr->num_sge);
		sum.operations++;
	}
	return sum;
}

/* What of a list was not posted: from the bad one on, or all if the provider names none. */
static struct posts_sum requests_unposted(const struct posts_sum *sum,
					  const struct ibv_send_wr *bad,
					  struct ibv_send_wr **bad_wr)
{
	if (!bad)
		return *sum;
	*bad_wr = (struct ibv_send_wr *)bad;
	return requests_sum(bad);
}

/*
 * First in each function of ours that stands in a structure of libibverbs. The caller has loaded the
 * pointer to it without an order, and what we kept in its place was stored before that pointer. A
 * processor that runs ahead on a guessed call may have loaded the old NULL of it. The pointer is
 * loaded again: it is this one or a later one, and acquire orders all that follows.
 */
#define POST_ENTERED(field) ((void)__atomic_load_n(&(field), __ATOMIC_ACQUIRE))

/* ---- operations of the context */

/* The pace of the device; nothing waits here. */
static __attribute__((always_inline)) inline int
device_post(const struct context *context, struct ibv_qp *qp, struct ibv_send_wr *wr,
	    struct ibv_send_wr **bad_wr)
{
	struct pace *pace = &library_state.paces.device[context->device];
	struct ibv_send_wr *bad = NULL; /* not every provider sets it */
	/* Before the call: after it, completions may have made the list invalid. */
	struct posts_sum sum = requests_sum(wr);
	int result;

	pace_charge(pace, sum.bytes, sum.operations);
	result = context->posts.post_send(qp, wr, &bad);
	if (__builtin_expect(result != 0, 0)) {
		sum = requests_unposted(&sum, bad, bad_wr);
		pace_refund(pace, sum.bytes, sum.operations);
	}
	return result;
}

/* There is a pace for each queue pair. */
static inline bool each_qp_is_paced(void)
{
	return __builtin_expect(
		__atomic_load_n(&library_state.paces.each_qp, __ATOMIC_RELAXED), 0);
}

static __attribute__((noinline)) int qp_post(const struct context *context, struct ibv_qp *qp,
					     struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	struct posts_qp *entry = qp_find(qp);
	struct posts_sum sum = requests_sum(wr);
	struct ibv_send_wr *bad = NULL;
	int result;

	if (!entry) { /* there was no memory for it */
		pace_before(&library_state.paces.device[context->device]);
		return device_post(context, qp, wr, bad_wr);
	}
	qp_pace_before(&entry->own);
	qp_pace_charge(&entry->own, (int64_t)sum.bytes, (int64_t)sum.operations);
	result = device_post(context, qp, wr, &bad);
	if (result != 0) {
		sum = requests_unposted(&sum, bad, bad_wr);
		qp_pace_charge(&entry->own, -(int64_t)sum.bytes, -(int64_t)sum.operations);
	}
	return result;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	const struct context *context;

	POST_ENTERED(qp->context->ops.post_send);
	context = context_find(qp->context);
	if (each_qp_is_paced())
		return qp_post(context, qp, wr, bad_wr);
	pace_before(&library_state.paces.device[context->device]);
	return device_post(context, qp, wr, bad_wr);
}

static int poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *wc)
{
	const struct context *context;
	struct pace *pace;
	int found;

	POST_ENTERED(cq->context->ops.poll_cq);
	context = context_find(cq->context);
	pace = &library_state.paces.device[context->device];
	found = context->posts.poll_cq(cq, count, wc);
	for (int i = 0; i < found; i++)
		if (__builtin_expect(wc[i].status != IBV_WC_SUCCESS, 0) && pace->posted)
			__atomic_fetch_add(&pace->posted->errors, 1, __ATOMIC_RELAXED);
	return found;
}

/* ---- functions of extended queue pairs */

#define POST_REQUEST(op, parameters, arguments)                                                    \
	static void post_##op parameters                                                           \
	{                                                                                          \
		struct posts_qp *entry;                                                            \
                                                                                                   \
		POST_ENTERED(qp->op);                                                              \
		entry = qp_find(&qp->qp_base);                                                     \
		entry->operations++;                                                               \
		entry->real.op arguments;                                                          \
	}
#define POST_DATA(op, parameters, arguments, length_)                                              \
	static void post_##op parameters                                                           \
	{                                                                                          \
		struct posts_qp *entry;                                                            \
                                                                                                   \
		POST_ENTERED(qp->op);                                                              \
		entry = qp_find(&qp->qp_base);                                                     \
		entry->bytes += length_;                                                           \
		entry->real.op arguments;                                                          \
	}
#include "intercept/posts.def"

/* Waits here: in wr_start the provider may take a lock that it holds until wr_complete. */
static void post_wr_start(struct ibv_qp_ex *qp)
{
	struct posts_qp *entry;

	POST_ENTERED(qp->wr_start);
	entry = qp_find(&qp->qp_base);
	if (each_qp_is_paced())
		qp_pace_before(&entry->own);
	else
		pace_before(entry->pace);
	entry->real.wr_start(qp);
	entry->bytes = entry->operations = 0;
}

static int post_wr_complete(struct ibv_qp_ex *qp)
{
	struct posts_qp *entry;
	uint64_t bytes, operations;
	int result;

	POST_ENTERED(qp->wr_complete);
	entry = qp_find(&qp->qp_base);
	bytes = entry->bytes;
	operations = entry->operations;
	result = entry->real.wr_complete(qp);

	operations += !operations;
	if (__builtin_expect(result == 0, 1)) {
		pace_charge(entry->pace, bytes, operations);
		if (each_qp_is_paced())
			qp_pace_charge(&entry->own, (int64_t)bytes, (int64_t)operations);
	}
	return result;
}

static void post_wr_abort(struct ibv_qp_ex *qp)
{
	struct posts_qp *entry;

	POST_ENTERED(qp->wr_abort);
	entry = qp_find(&qp->qp_base);
	entry->real.wr_abort(qp);
}

/* ---- replacing and putting back */

#define REPLACE(field, kept, ours)                                                                 \
	if ((field) && (field) != (ours)) {                                                        \
		(kept) = (field);                                                                  \
		__atomic_store_n(&(field), (ours), __ATOMIC_RELEASE);                              \
	}
#define PUT_BACK(field, kept, ours)                                                                \
	if ((kept) && (field) == (ours))                                                           \
		__atomic_store_n(&(field), (kept), __ATOMIC_RELEASE);

static struct posts_qp *qp_entry_make(const struct ibv_qp *qp)
{
	struct posts_qp *entry = qp_search(qp), **bucket = qp_bucket(qp);

	if (entry)
		return entry;
	if (!qp_chunk || qp_chunk->used == sizeof(qp_chunk->entry) / sizeof(qp_chunk->entry[0])) {
		void *chunk = mmap(NULL, QP_CHUNK_BYTES, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (chunk == MAP_FAILED)
			return NULL;
		qp_chunk = chunk;
	}
	entry = &qp_chunk->entry[qp_chunk->used++];
	entry->qp = qp;
	entry->next = *bucket;
	__atomic_store_n(bucket, entry, __ATOMIC_RELEASE);
	return entry;
}

static __typeof__(ibv_qp_to_qp_ex) *qp_convert;

/* Before any lock: the loader takes its own, and holds it while constructors make queue pairs. */
static void qp_convert_find(void)
{
	if (!qp_convert)
		qp_convert = real_helper("libibverbs.so.1", "ibv_qp_to_qp_ex");
}

/* Its functions are the provider's while it cannot be known: then it is not counted. */
static void qp_switch(struct library *library, const struct handle *handle, bool on)
{
	struct ibv_qp *base = (struct ibv_qp *)handle->key;
	struct ibv_qp_ex *qp = handle->qp_extended && qp_convert ? qp_convert(base) : NULL;
	struct posts_qp *entry;

	lock_acquire(&library->paces.qp_lock);
	entry = on ? qp_entry_make(base) : qp_search(base);
	if (entry && on)
		entry->pace = entry->own.device = &library->paces.device[handle->device];
	if (entry && qp && on) {
#define POST_REQUEST(op, parameters, arguments) REPLACE(qp->op, entry->real.op, post_##op)
#define POST_DATA(op, parameters, arguments, bytes) REPLACE(qp->op, entry->real.op, post_##op)
#include "intercept/posts.def"
		REPLACE(qp->wr_abort, entry->real.wr_abort, post_wr_abort)
		REPLACE(qp->wr_complete, entry->real.wr_complete, post_wr_complete)
		REPLACE(qp->wr_start, entry->real.wr_start, post_wr_start)
	} else if (entry && qp) {
#define POST_REQUEST(op, parameters, arguments) PUT_BACK(qp->op, entry->real.op, post_##op)
#define POST_DATA(op, parameters, arguments, bytes) PUT_BACK(qp->op, entry->real.op, post_##op)
#include "intercept/posts.def"
		PUT_BACK(qp->wr_abort, entry->real.wr_abort, post_wr_abort)
		PUT_BACK(qp->wr_complete, entry->real.wr_complete, post_wr_complete)
		PUT_BACK(qp->wr_start, entry->real.wr_start, post_wr_start)
	}
	lock_release(&library->paces.qp_lock);
}

static void context_switch(struct context *context, struct ibv_context *handle, bool on)
{
	struct ibv_context_ops *ops = &handle->ops;

	if (on) {
		pace_begin(&library_state, context->device);
		REPLACE(ops->post_send, context->posts.post_send, post_send)
		REPLACE(ops->poll_cq, context->posts.poll_cq, poll_cq)
	} else {
		PUT_BACK(ops->post_send, context->posts.post_send, post_send)
		PUT_BACK(ops->poll_cq, context->posts.poll_cq, poll_cq)
	}
}

static void context_visit(struct context *context, void *closure)
{
	context_switch(context, context->handle, *(const bool *)closure);
}

struct qp_visit {
	struct library *library;
	bool on;
};

/* The queue pair is alive: who destroys it takes the handle out first, and the table is locked. */
static void handle_visit(const struct handle *handle, void *closure)
{
	const struct qp_visit *visit = closure;

	if (handle->object == OBJECT_qp)
		qp_switch(visit->library, handle, visit->on);
}

void posts_switch(struct library *library, bool on)
{
	struct qp_visit visit = { library, on };

	qp_convert_find();
	contexts_visit(library, context_visit, &on);
	handles_visit(&library->handles, handle_visit, &visit);
}

/* Whoever switches off sets paces.on first and then visits all there are. */
void posts_add_context(struct library *library, struct context *context)
{
	if (!__atomic_load_n(&library->paces.on, __ATOMIC_SEQ_CST))
		return;
	context_switch(context, context->handle, true);
	if (!__atomic_load_n(&library->paces.on, __ATOMIC_SEQ_CST))
		context_switch(context, context->handle, false);
}

void posts_add_qp(struct library *library, const struct handle *qp)
{
	struct posts_qp *earlier = qp_search(qp->key);

	qp_convert_find();
	if (earlier) /* another one had this address */
		earlier->own = (struct qp_pace){ .device = earlier->pace };
	qp_switch(library, qp, true);
	if (!__atomic_load_n(&library->paces.on, __ATOMIC_SEQ_CST))
		qp_switch(library, qp, false);
}

void posts_restore_context(struct context *context, struct ibv_context *handle)
{
	context_switch(context, handle, false);
}
