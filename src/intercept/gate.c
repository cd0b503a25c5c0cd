/* SPDX-License-Identifier: MIT */
/* Deals, releases and changes; see gate.h. Refusals are worded here. */
#include "intercept/gate.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "intercept/contexts.h"

__thread uint32_t gate_inside;

static struct owner owner_of(struct library *library, struct ibv_context *context)
{
	struct context *entry;

	if (!context)
		return (struct owner){ 0, LEDGER_NAMELESS };
	entry = context_find(context);
	if (__builtin_expect(entry != NULL, 1))
		return (struct owner){ entry->group, entry->device };
	return (struct owner){ 0, ledger_device(&library->ledger, context->device->name) };
}

/* The line that DEBUG has shown since the first version, before QPs and MRs. */
static void show_usage(struct library *library, enum object object)
{
	if (object == OBJECT_qp || object == OBJECT_mr)
		log_write(&library->log, LOG_DEBUG,
			  "从共享内存获取进程资源使用情况: PID=%d, QP=%llu, MR=%llu, Memory=%llu",
			  (int)getpid(), (unsigned long long)ledger_used(&library->ledger, KIND_qp),
			  (unsigned long long)ledger_used(&library->ledger, KIND_mr),
			  (unsigned long long)ledger_used(&library->ledger, KIND_mr_bytes));
}

/* At most one line a second per process; the next one tells how many were not shown. */
static void say_refusal(struct library *library, const char *verb, unsigned device,
			const struct ledger_refusal *refusal, bool tolerated)
{
	uint64_t number = __atomic_add_fetch(&library->refusals, 1, __ATOMIC_RELAXED);
	uint64_t last = __atomic_load_n(&library->last_refusal_second, __ATOMIC_RELAXED);
	uint64_t unshown;
	struct timespec now;
	char line[320];

	clock_gettime(CLOCK_MONOTONIC, &now);
	if ((uint64_t)now.tv_sec + 1 == last ||
	    !__atomic_compare_exchange_n(&library->last_refusal_second, &last,
					 (uint64_t)now.tv_sec + 1, false, __ATOMIC_RELAXED,
					 __ATOMIC_RELAXED)) {
		__atomic_add_fetch(&library->refusals_unshown, 1, __ATOMIC_RELAXED);
		return;
	}
	unshown = __atomic_exchange_n(&library->refusals_unshown, 0, __ATOMIC_RELAXED);
	snprintf(line, sizeof(line),
		 "%s %s: tenant=default device=%s %s used %llu/%llu, wanted %llu more, limit of the %s, "
		 "event %d-%llu%s%.0llu%s",
		 tolerated ? "over limit, allowed:" : "refused", verb,
		 ledger_device_name(&library->ledger, device), kind_rows[refusal->kind].name,
		 (unsigned long long)refusal->used, (unsigned long long)refusal->limit,
		 (unsigned long long)refusal->wanted, ledger_scope_names[refusal->scope],
		 (int)getpid(), (unsigned long long)number, unshown ? " (and " : "",
		 (unsigned long long)unshown, unshown ? " more not shown)" : "");
	log_write(&library->log, LOG_INFO, "%s", line);
	if (!library->config.quiet && !(library->log.to_stderr && log_wants(&library->log, LOG_INFO)))
		log_stderr("rdma_intercept: %s", line);
}

static void say_out_of_order(struct library *library, const char *verb, int result)
{
	log_write(&library->log, LOG_ERROR, "%s: the ledger cannot be written (error %d); %s", verb,
		  -result, library->config.fail_closed ? "refused" : "counted later");
}

/* Takes the cost by the mode in force; false when it is refused. */
static bool take(struct library *library, const char *verb, unsigned device, const struct cost *cost)
{
	struct ledger_refusal refusal;
	bool tolerated = library->config.mode != MODE_ENFORCE;
	int result = ledger_charge(&library->ledger, device, cost, &refusal);

	if (__builtin_expect(result == 0, 1))
		return true;
	if (result == LEDGER_REFUSED) {
		ledger_count_refused(&library->ledger, refusal.kind, tolerated);
		if (library->config.mode != MODE_AUDIT)
			say_refusal(library, verb, device, &refusal, tolerated);
		if (!tolerated)
			return false;
		result = ledger_charge_forced(&library->ledger, device, cost);
	}
	if (result < 0) {
		say_out_of_order(library, verb, result);
		if (library->config.fail_closed)
			return false;
		ledger_defer_charge(&library->ledger, device, cost);
	}
	return true;
}

bool deal_wanted(struct deal *deal, enum object object, struct ibv_context *context)
{
	if (gate_nested(object))
		return false;
	deal->library = library_get();
	/* This verb alone has one symbol for both ABIs: an unknown context is of the old one. */
	if (object == OBJECT_comp_channel && !context_find(context))
		return false;
	return deal->library != NULL;
}

static bool open_owned(struct deal *deal, const char *verb, enum object object,
		       struct ibv_context *context, struct owner owner, struct cost cost)
{
	struct library *library = deal->library;

	deal->verb = verb;
	deal->object = object;
	deal->context = context;
	deal->owner = owner;
	deal->cost = cost;
	deal->qp_type = QP_NONE;
	if (__builtin_expect(log_wants(&library->log, LOG_DEBUG), 0))
		show_usage(library, object);
	if (!take(library, verb, owner.device, &deal->cost)) {
		errno = library->config.deny_errno;
		return false;
	}
	gate_inside |= 1u << object;
	errno = deal->saved_errno;
	return true;
}

/* Without a ledger nothing is looked up in it. */
static bool open_closed(struct deal *deal)
{
	deal->saved_errno = errno;
	if (__builtin_expect(deal->library->phase != PHASE_CLOSED, 1))
		return false;
	errno = deal->library->config.deny_errno;
	return true;
}

bool deal_open(struct deal *deal, const char *verb, enum object object,
	       struct ibv_context *context, struct cost cost)
{
	return !open_closed(deal) && open_owned(deal, verb, object, context,
						owner_of(deal->library, context), cost);
}

bool deal_open_on_device(struct deal *deal, const char *verb, const char *device, struct cost cost)
{
	struct owner owner = { 0, LEDGER_NAMELESS };

	if (open_closed(deal))
		return false;
	owner.device = ledger_device(&deal->library->ledger, device);
	return open_owned(deal, verb, OBJECT_ctx, NULL, owner, cost);
}

void deal_abandon(struct deal *deal)
{
	int left = errno;

	gate_inside &= ~(1u << deal->object);
	ledger_refund(&deal->library->ledger, deal->owner.device, &deal->cost);
	errno = left;
}

/* Takes or gives back the difference between two costs of the same kinds. */
static bool adjust(struct library *library, const char *verb, unsigned device,
		   const struct cost *from, const struct cost *to)
{
	struct cost more = { 0 }, less = { 0 };

	for (unsigned i = 0; i < to->count; i++) {
		struct cost *side = to->amount[i] > from->amount[i] ? &more : &less;

		if (to->amount[i] == from->amount[i])
			continue;
		side->kind[side->count] = to->kind[i];
		side->amount[side->count++] = side == &more ? to->amount[i] - from->amount[i] :
							      from->amount[i] - to->amount[i];
	}
	if (more.count && !take(library, verb, device, &more))
		return false;
	if (less.count)
		ledger_refund(&library->ledger, device, &less);
	return true;
}

static bool equal(const struct cost *a, const struct cost *b)
{
	for (unsigned i = 0; i < a->count; i++)
		if (a->amount[i] != b->amount[i])
			return false;
	return true;
}

static void qp_gauges(struct library *library, const struct handle *handle, bool alive)
{
	struct ledger *ledger = &library->ledger;

	ledger_qp_type(ledger, handle->device, alive ? QP_NONE : handle->qp_type,
		       alive ? handle->qp_type : QP_NONE);
	ledger_qp_state(ledger, handle->device, alive ? QP_NONE : handle->qp_state,
			alive ? handle->qp_state : QP_NONE);
	ledger_qp_port(ledger, handle->device, alive ? QP_NONE : handle->qp_port,
		       alive ? handle->qp_port : QP_NONE);
}

void *deal_settle(struct deal *deal, void *object, struct cost settled)
{
	struct library *library = deal->library;
	struct handle handle = {
		.key = object,
		.owner = deal->owner.group,
		.object = (uint8_t)deal->object,
		.device = (uint8_t)deal->owner.device,
		.qp_type = deal->qp_type,
		.qp_state = deal->qp_type == QP_NONE ? QP_NONE : QP_RESET,
		.qp_port = QP_NONE,
		.cost = settled,
	};
	int left = library->config.deny_errno;

	if (__builtin_expect(!equal(&deal->cost, &settled), 0) &&
	    !adjust(library, deal->verb, deal->owner.device, &deal->cost, &settled))
		goto undo;
	deal->cost = settled;
	if (__builtin_expect(handles_put(&library->handles, &handle) < 0, 0)) {
		left = ENOMEM;
		goto undo;
	}
	if (handle.qp_type != QP_NONE)
		qp_gauges(library, &handle, true);
	gate_inside &= ~(1u << deal->object);
	if (__builtin_expect(log_wants(&library->log, LOG_DEBUG), 0))
		log_write(&library->log, LOG_DEBUG, "%s: allowed", deal->verb);
	errno = deal->saved_errno;
	return object;

undo:
	object_undo(deal->object, deal->context, object);
	deal_abandon(deal);
	errno = left;
	return NULL;
}

void release_open(struct release *release, enum object object, const void *key)
{
	release->library = gate_nested(object) ? NULL : library_active();
	if (release->library &&
	    !handles_take(&release->library->handles, key, object, &release->handle))
		release->library = NULL;
	if (release->library)
		gate_inside |= 1u << object;
}

static void give_back(struct library *library, const struct handle *handle)
{
	if (handle->qp_type != QP_NONE)
		qp_gauges(library, handle, false);
	ledger_refund(&library->ledger, handle->device, &handle->cost);
}

int release_close(struct release *release, int result)
{
	int left = errno;

	if (!release->library)
		return result;
	gate_inside &= ~(1u << release->handle.object);
	if (result == 0)
		give_back(release->library, &release->handle);
	else /* its place in the table has just become free */
		handles_put(&release->library->handles, &release->handle);
	errno = left;
	return result;
}

static struct cost one(enum kind kind, uint64_t amount)
{
	return (struct cost){ 1, { (uint8_t)kind }, { amount } };
}

static uint64_t *amount_of(struct handle *handle, enum kind kind)
{
	for (unsigned i = 0; i < handle->cost.count; i++)
		if (handle->cost.kind[i] == kind)
			return &handle->cost.amount[i];
	return NULL;
}

bool change_open(struct change *change, const char *verb, enum object object, const void *key,
		 enum kind kind, uint64_t after)
{
	struct library *library = library_active();
	struct handle *handle = library ? handles_hold(&library->handles, key, object) : NULL;
	uint64_t *amount = handle ? amount_of(handle, kind) : NULL;
	int saved = errno;
	bool granted = true;

	*change = (struct change){ amount ? library : NULL, verb, key, object, 0, kind, 0, 0 };
	if (amount) {
		change->device = handle->device;
		change->before = *amount;
	}
	if (handle)
		handles_release(&library->handles, key);
	if (change->library && after > change->before) {
		struct cost more = one(kind, after - change->before);

		change->taken = after - change->before;
		granted = take(library, verb, change->device, &more);
	}
	errno = granted ? saved : library->config.deny_errno;
	return granted;
}

void change_force(struct change *change, uint64_t after)
{
	struct library *library = change->library;
	uint64_t booked = change->before + change->taken;
	struct handle *handle;
	struct cost difference;
	int left = errno;

	if (!library)
		return;
	difference = one(change->kind, after > booked ? after - booked : booked - after);
	if (after > booked && ledger_charge_forced(&library->ledger, change->device, &difference) < 0)
		ledger_defer_charge(&library->ledger, change->device, &difference);
	else if (after < booked)
		ledger_refund(&library->ledger, change->device, &difference);
	change->taken = 0;
	change->before = after;
	handle = handles_hold(&library->handles, change->key, change->object);
	if (handle) {
		*amount_of(handle, change->kind) = after;
		handles_release(&library->handles, change->key);
	}
	errno = left;
}

bool change_close(struct change *change, uint64_t after)
{
	uint64_t booked = change->before + change->taken;

	if (change->library && after > booked) {
		struct cost more = one(change->kind, after - booked);
		int left = errno;

		if (!take(change->library, change->verb, change->device, &more))
			return false;
		change->taken += after - booked;
		errno = left;
	}
	change_force(change, after);
	return true;
}

void gate_release_group(struct library *library, uint32_t group)
{
	struct handle handle;

	while (handles_take_owned(&library->handles, group, &handle))
		give_back(library, &handle);
}
