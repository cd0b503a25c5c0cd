/* SPDX-License-Identifier: MIT */
/* Creations, releases and changes; see gate.h. */
#include "intercept/gate.h"

#include <errno.h>
#include <unistd.h>

#include "intercept/failures.h"
#include "intercept/refusals.h"

/* Everything on these paths in one piece: call for call, a third of the cost was
 * in the calls. */
#define HOT __attribute__((flatten))

__thread uint32_t gate_inside;
_Static_assert(OBJECTS <= 32, "gate_inside has a bit for each kind of object");

static void gate_report_fault(struct library *library, const char *verb, int result)
{
	log_write(&library->log, LOG_ERROR, "%s: the ledger cannot be written (error %d); %s", verb,
		  -result, library->config.fail_closed ? "refused" : "counted later");
}

/* A charge that was not simply granted: counts and tells what the ledger has decided. 0, or the
 * errno of the refusal. */
static __attribute__((noinline, cold)) int gate_report(struct library *library, const char *verb,
						       unsigned device, const struct cost *cost,
						       int result,
						       const struct ledger_refusal *refusal)
{
	struct ledger_refusal again;

	if (result == LEDGER_REFUSED && inherited_refund_pending(library)) {
		refusal = &again;
		result = ledger_charge(&library->ledger, device, cost, &again);
	}
	/* Neither logging nor the ledger touches errno. */
	if (result > 0) {
		bool tolerated = result == LEDGER_TOLERATED;

		ledger_count_refused(&library->ledger, refusal->kind, tolerated);
		if (refusal->verdict != VERDICT_SILENT)
			refusal_report(library, verb, device, refusal);
		return tolerated	   ? 0 :
		       refusal->forbidden ? EACCES :
					    library->config.deny_errno;
	}
	if (result < 0) {
		gate_report_fault(library, verb, result);
		/* Out of the ledger for good, and on the way to the end of the process. */
		if (library->config.fail_closed || result == -ESHUTDOWN)
			return library->config.deny_errno;
		ledger_defer_charge(&library->ledger, device, cost);
	}
	return 0;
}

/* Takes the cost: 0, or the errno of the refusal. */
static inline int gate_charge(struct library *library, const char *verb, unsigned device,
			       const struct cost *cost)
{
	struct ledger_refusal refusal;
	int result = ledger_charge(&library->ledger, device, cost, &refusal);

	return __builtin_expect(result == 0, 1) ?
		       0 :
		       gate_report(library, verb, device, cost, result, &refusal);
}

/* The same at DEBUG, where every operation leaves a line; QPs and MRs have had
 * theirs since the first version. */
static __attribute__((noinline, cold)) int gate_charge_logged(struct library *library,
							      const char *verb, enum object object,
							      unsigned device,
							      const struct cost *cost)
{
	int refused;

	if (object == OBJECT_qp || object == OBJECT_mr)
		log_write(&library->log, LOG_DEBUG,
			  "从共享内存获取进程资源使用情况: PID=%d, QP=%llu, MR=%llu, Memory=%llu",
			  (int)getpid(), (unsigned long long)ledger_used(&library->ledger, KIND_qp),
			  (unsigned long long)ledger_used(&library->ledger, KIND_mr),
			  (unsigned long long)ledger_used(&library->ledger, KIND_mr_bytes));
	refused = gate_charge(library, verb, device, cost);
	if (!refused)
		log_write(&library->log, LOG_DEBUG, "%s: allowed", verb);
	return refused;
}

/* The rest of opening, once it is known whose the object is. */
static inline __attribute__((always_inline)) bool creation_begin_for(struct creation *creation, const char *verb,
				      enum object object, unsigned device, uint32_t owner,
				      bool unusual)
{
	struct library *library = creation->library;
	int refused;

	creation->verb = verb;
	creation->handle.object = (uint8_t)object;
	creation->handle.device = (uint8_t)device;
	creation->handle.owner = owner;
	creation->handle.qp_extended = 0;
	creation->handle.qp_type = creation->handle.qp_state = creation->handle.qp_port =
		creation->handle.qp_class = creation->handle.qp_level = QP_NONE;
	refused = unusual && log_wants(&library->log, LOG_DEBUG) ?
			  gate_charge_logged(library, verb, object, device, &creation->handle.cost) :
			  gate_charge(library, verb, device, &creation->handle.cost);
	if (__builtin_expect(refused != 0, 0)) {
		call_count_refused(library, call_class_of_making(object));
		errno = refused;
		return false;
	}
	gate_inside |= 1u << object;
	return true;
}

/* Without a ledger nothing is looked up in it; with one, a rate may be in force. */
static __attribute__((noinline, cold)) bool creation_hindered(struct creation *creation,
							      const char *verb, enum object object)
{
	struct library *library = creation->library;
	int error = library_refuses(library) ?
			    library->config.deny_errno :
			    rates_take(library, rate_class_of_making(object), verb);

	if (error) {
		call_count_refused(library, call_class_of_making(object));
		errno = error;
	}
	return error != 0;
}

static inline bool gate_is_closed(struct creation *creation, const char *verb, enum object object)
{
	return __builtin_expect(creation->unusual, 0) && creation_hindered(creation, verb, object);
}

struct library *release_enter(enum object object)
{
	struct library *library = library_active();

	if (library)
		rates_take(library, rate_class_of_freeing(object), NULL);
	return library;
}

bool gate_device(struct library *library, const char *verb, const char *name, unsigned *ret_device)
{
	int device = ledger_device(&library->ledger, name);

	*ret_device = device < 0 ? LEDGER_NAMELESS : (unsigned)device;
	if (device >= 0)
		return true;
	gate_report_fault(library, verb, device);
	if (!library->config.fail_closed)
		return true;
	errno = library->config.deny_errno;
	return false;
}

/* `unusual` is a constant where this becomes part of a function. */
static inline __attribute__((always_inline)) bool
creation_begin_in(struct creation *creation, const char *verb, enum object object,
		  struct ibv_context *context, bool unusual)
{
	const struct context *entry = context ? context_find(context) : NULL;
	unsigned device = LEDGER_NAMELESS;

	if (unusual && gate_is_closed(creation, verb, object))
		return false;
	creation->context = context;
	if (__builtin_expect(entry != NULL, 1))
		return creation_begin_for(creation, verb, object, entry->device, entry->group,
					  unusual);
	if (context && !gate_device(creation->library, verb, context->device->name, &device))
		return false;
	return creation_begin_for(creation, verb, object, device, 0, unusual);
}

bool creation_begin_unusually(struct creation *creation, const char *verb, enum object object,
			      struct ibv_context *context)
{
	return creation_begin_in(creation, verb, object, context, true);
}

HOT bool creation_begin_usually(struct creation *creation, const char *verb, enum object object,
				struct ibv_context *context)
{
	return creation_begin_in(creation, verb, object, context, false);
}

bool creation_begin_on_device(struct creation *creation, const char *verb, const char *name)
{
	unsigned device;

	if (gate_is_closed(creation, verb, OBJECT_ctx) ||
	    !gate_device(creation->library, verb, name, &device))
		return false;
	creation->context = NULL;
	return creation_begin_for(creation, verb, OBJECT_ctx, device, 0, creation->unusual);
}

bool creation_begin_under(struct creation *creation, const char *verb, enum object object,
			  const struct handle *parent)
{
	if (gate_is_closed(creation, verb, object))
		return false;
	creation->context = NULL;
	return creation_begin_for(creation, verb, object, parent ? parent->device : LEDGER_NAMELESS,
				  parent ? parent->owner : 0, creation->unusual);
}

void creation_abort(struct creation *creation)
{
	gate_inside &= ~(1u << creation->handle.object);
	ledger_refund(&creation->library->ledger, creation->handle.device, &creation->handle.cost);
}

static uint64_t cost_bytes(const struct cost *cost)
{
	for (unsigned i = 0; i < cost->count; i++)
		if (cost->kind[i] == KIND_mr_bytes)
			return cost->amount[i];
	return 0;
}

__attribute__((noinline, cold)) void creation_fail(struct creation *creation)
{
	const struct failure failure = { creation->verb, errno, creation->context,
					 creation->handle.object,
					 cost_bytes(&creation->handle.cost) };

	creation_abort(creation);
	failure_report(creation->library, &failure);
}

/* Takes or gives back the difference between two costs of the same kinds: 0, or the errno of the
 * refusal. */
static __attribute__((noinline, cold)) int
gate_charge_difference(struct library *library, const char *verb, unsigned device,
		       const struct cost *from, const struct cost *to)
{
	struct cost more = { 0 }, less = { 0 };
	int refused = 0;

	for (unsigned i = 0; i < to->count; i++) {
		struct cost *side = to->amount[i] > from->amount[i] ? &more : &less;

		if (to->amount[i] == from->amount[i])
			continue;
		side->kind[side->count] = to->kind[i];
		side->amount[side->count++] = side == &more ? to->amount[i] - from->amount[i] :
							      from->amount[i] - to->amount[i];
	}
	if (more.count)
		refused = gate_charge(library, verb, device, &more);
	if (!refused && less.count)
		ledger_refund(&library->ledger, device, &less);
	return refused;
}

/* Destroys what must not be after all. */
static __attribute__((noinline, cold)) void *creation_undo(struct creation *creation, void *object,
							   int reason)
{
	object_undo((enum object)creation->handle.object, creation->context, object);
	creation_abort(creation);
	errno = reason;
	return NULL;
}

static inline void creation_note_qp(struct library *library, const struct handle *handle)
{
	ledger_qp_appears(&library->ledger, handle->device, handle->qp_type, handle->qp_state);
	if (__builtin_expect(__atomic_load_n(&library->paces.on, __ATOMIC_RELAXED), 0))
		posts_add_qp(library, handle);
}

HOT bool creation_try_commit(struct creation *creation, void *object)
{
	struct library *library = creation->library;
	struct handle *handle = &creation->handle, replaced;
	int result;

	handle->key = object;
	result = handles_put(&library->handles, handle, &replaced);
	if (__builtin_expect(result != 0, 0)) {
		if (result < 0)
			return false;
		gate_give_back(library, &replaced);
	}
	if (handle->qp_type != QP_NONE)
		creation_note_qp(library, handle);
	gate_inside &= ~(1u << handle->object);
	return true;
}

HOT void *creation_commit(struct creation *creation, void *object)
{
	return __builtin_expect(creation_try_commit(creation, object), 1) ?
		       object :
		       creation_undo(creation, object, ENOMEM);
}

void *creation_adjust(struct creation *creation, void *object, const struct cost *settled)
{
	int refused = gate_charge_difference(creation->library, creation->verb,
					     creation->handle.device, &creation->handle.cost,
					     settled);

	if (refused) {
		call_count_refused(creation->library, call_class_of_making(
							      (enum object)creation->handle.object));
		return creation_undo(creation, object, refused);
	}
	creation->handle.cost = *settled;
	return creation_commit(creation, object);
}

HOT void gate_give_back(struct library *library, const struct handle *handle)
{
	if (handle->qp_type != QP_NONE) {
		ledger_qp_vanishes(&library->ledger, handle->device, handle->qp_type,
				   handle->qp_state, handle->qp_port);
		if (__builtin_expect(handle->qp_class != QP_NONE, 0))
			ledger_qp_class_moves(&library->ledger, handle->device, handle->qp_class,
					      QP_NONE, handle->qp_level, QP_NONE);
	}
	ledger_refund(&library->ledger, handle->device, &handle->cost);
}

static struct cost cost_of_one(enum kind kind, uint64_t amount)
{
	return (struct cost){ 1, { (uint8_t)kind }, { amount } };
}

int gate_charge_one(struct library *library, const char *verb, unsigned device, enum kind kind)
{
	struct cost cost = cost_of_one(kind, 1);

	return gate_charge(library, verb, device, &cost);
}

void gate_charge_one_forced(struct library *library, unsigned device, enum kind kind)
{
	struct cost cost = cost_of_one(kind, 1);

	if (ledger_charge_forced(&library->ledger, device, &cost) < 0)
		ledger_defer_charge(&library->ledger, device, &cost);
}

void gate_refund_one(struct library *library, unsigned device, enum kind kind)
{
	struct cost cost = cost_of_one(kind, 1);

	ledger_refund(&library->ledger, device, &cost);
}

static uint64_t *handle_amount(struct handle *handle, enum kind kind)
{
	for (unsigned i = 0; i < handle->cost.count; i++)
		if (handle->cost.kind[i] == kind)
			return &handle->cost.amount[i];
	return NULL;
}

bool change_begin(struct change *change, const char *verb, enum object object, const void *key,
		  enum kind kind, uint64_t after)
{
	struct library *library = library_active();
	struct handle *handle = library ? handles_hold(&library->handles, key, object) : NULL;
	uint64_t *amount = handle ? handle_amount(handle, kind) : NULL;
	int refused = 0;

	*change = (struct change){ amount ? library : NULL, verb, key, object, 0, kind, 0, 0 };
	if (amount) {
		change->device = handle->device;
		change->before = *amount;
	}
	if (handle)
		handles_release(&library->handles, key);
	if (change->library && after > change->before) {
		struct cost more = cost_of_one(kind, after - change->before);

		change->taken = after - change->before;
		refused = gate_charge(library, verb, change->device, &more);
	}
	if (refused)
		errno = refused;
	return !refused;
}

__attribute__((noinline, cold)) void change_fail(const struct change *change,
						 struct ibv_context *context, int error)
{
	const struct failure failure = { change->verb, error, context, -1,
					 change->kind == KIND_mr_bytes ? change->taken : 0 };

	if (change->library)
		failure_report(change->library, &failure);
}

/* Books the difference between two amounts, whatever the limits say. */
static void change_book(const struct change *change, uint64_t booked, uint64_t right)
{
	struct ledger *ledger = &change->library->ledger;
	struct cost difference =
		cost_of_one(change->kind, right > booked ? right - booked : booked - right);

	if (right > booked && ledger_charge_forced(ledger, change->device, &difference) < 0)
		ledger_defer_charge(ledger, change->device, &difference);
	else if (right < booked)
		ledger_refund(ledger, change->device, &difference);
}

void change_force(struct change *change, uint64_t after)
{
	struct library *library = change->library;
	uint64_t booked = change->before + change->taken, right = change->before;
	struct handle *handle;
	uint64_t *amount;

	if (!library)
		return;
	/* Meanwhile another thread may have destroyed it, and got back what its handle said; or
	 * another object may have come to its address, or another change been faster. */
	handle = handles_hold(&library->handles, change->key, change->object);
	amount = handle ? handle_amount(handle, change->kind) : NULL;
	if (amount) {
		right = change->before + after - *amount;
		*amount = after;
	}
	if (handle)
		handles_release(&library->handles, change->key);
	change_book(change, booked, right);
	change->taken = 0;
	change->before = after;
}

bool change_commit(struct change *change, uint64_t after)
{
	uint64_t booked = change->before + change->taken;

	if (change->library && after > booked) {
		struct cost more = cost_of_one(change->kind, after - booked);

		if (gate_charge(change->library, change->verb, change->device, &more))
			return false;
		change->taken += after - booked;
	}
	change_force(change, after);
	return true;
}
