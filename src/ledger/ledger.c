/* SPDX-License-Identifier: MIT */
/*
 * The part of the ledger that is the same wherever the numbers live: when a
 * refusal is final, what happens to a refund that cannot be written, and the
 * gauges and counters in the process's own slot.
 */
#include "ledger/ledger.h"

#include <string.h>

#include "ledger/backing.h"
#include "ledger/layout.h"

const char *const qp_type_names[QP_TYPES] = { "RC", "UC", "UD", "XRC", "RAW", "DRIVER" };
const char *const qp_state_names[QP_STATES] = { "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR" };
const char *const ledger_scope_names[] = { "process", "device", "host" };

void ledger_limits_clear(struct ledger_limits *limits)
{
	memset(limits, 0, sizeof(*limits));
	for (int kind = 0; kind < KIND_COUNT; kind++)
		limits->process[kind] = limits->host[kind] = SIZE_UNLIMITED;
}

struct ledger_device_limits *ledger_limits_device(struct ledger_limits *limits, const char *name,
						  size_t length)
{
	struct ledger_device_limits *row = limits->device;

	if (length == 0 || length >= LEDGER_DEVICE_NAME)
		return NULL;
	for (; row < limits->device + limits->devices; row++)
		if (strlen(row->name) == length && !memcmp(row->name, name, length))
			return row;
	if (limits->devices == LEDGER_DEVICES - 1)
		return NULL;
	limits->devices++;
	memcpy(row->name, name, length);
	for (int kind = 0; kind < KIND_COUNT; kind++)
		row->limit[kind] = SIZE_UNLIMITED;
	return row;
}

int ledger_open(struct ledger *ledger, const struct ledger_options *options,
		char problem[LEDGER_PROBLEM])
{
	memset(ledger, 0, sizeof(*ledger));
	ledger->limits = options->limits;
	ledger->log = options->log;
	return embedded_open(ledger, options, problem);
}

void ledger_close(struct ledger *ledger)
{
	ledger->backing->close(ledger);
}

unsigned ledger_device(struct ledger *ledger, const char *name)
{
	int device = ledger->backing->device(ledger, name);

	if (device >= 0)
		return (unsigned)device;
	log_write(ledger->log, LOG_WARN, "device %s: no room in the table of %d devices; "
		  "its objects count for the process and the host only", name, LEDGER_DEVICES);
	return LEDGER_NAMELESS;
}

const char *ledger_device_name(const struct ledger *ledger, unsigned device)
{
	const char *name = ledger->header->device[device].name;

	return name[0] ? name : "-";
}

int ledger_charge(struct ledger *ledger, unsigned device, const struct cost *cost,
		  struct ledger_refusal *ret_refusal)
{
	int result;

	do {
		result = ledger->backing->charge(ledger, device, cost, false, ret_refusal);
		if (result != LEDGER_REFUSED || ret_refusal->scope == SCOPE_PROCESS)
			return result;
	} while (ledger->backing->release_dead(ledger) > 0);
	return result;
}

int ledger_charge_forced(struct ledger *ledger, unsigned device, const struct cost *cost)
{
	return ledger->backing->charge(ledger, device, cost, true, NULL);
}

static void defer(struct ledger *ledger, unsigned device, const struct cost *cost, int64_t sign)
{
	for (unsigned i = 0; i < cost->count; i++)
		__atomic_fetch_add(&ledger->deferred[device][cost->kind[i]],
				   sign * (int64_t)cost->amount[i], __ATOMIC_RELAXED);
	/* Release: whoever sees the flag sees the amounts. */
	__atomic_store_n(&ledger->deferred_any, 1, __ATOMIC_RELEASE);
}

void ledger_refund(struct ledger *ledger, unsigned device, const struct cost *cost)
{
	if (ledger->backing->refund(ledger, device, cost) < 0)
		defer(ledger, device, cost, -1);
}

void ledger_defer_charge(struct ledger *ledger, unsigned device, const struct cost *cost)
{
	defer(ledger, device, cost, +1);
}

static void move(uint64_t *gauge, int from, int to)
{
	if (from == to)
		return;
	if (from != QP_NONE)
		__atomic_fetch_sub(&gauge[from], 1, __ATOMIC_RELAXED);
	if (to != QP_NONE)
		__atomic_fetch_add(&gauge[to], 1, __ATOMIC_RELAXED);
}

void ledger_qp_type(struct ledger *ledger, unsigned device, int from, int to)
{
	move(ledger->slot->device[device].qp_type, from, to);
}

void ledger_qp_state(struct ledger *ledger, unsigned device, int from, int to)
{
	move(ledger->slot->device[device].qp_state, from, to);
}

void ledger_qp_port(struct ledger *ledger, unsigned device, int from, int to)
{
	move(ledger->slot->device[device].qp_port, from, to);
}

void ledger_count(struct ledger *ledger, enum ledger_counter counter, uint64_t amount)
{
	__atomic_fetch_add(&ledger->slot->counter[counter], amount, __ATOMIC_RELAXED);
}

void ledger_count_max(struct ledger *ledger, enum ledger_counter counter, uint64_t value)
{
	uint64_t *word = &ledger->slot->counter[counter];
	uint64_t seen = __atomic_load_n(word, __ATOMIC_RELAXED);

	while (seen < value && !__atomic_compare_exchange_n(word, &seen, value, true,
							    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

void ledger_count_cm_event(struct ledger *ledger, unsigned event)
{
	if (event >= LEDGER_CM_EVENTS)
		event = LEDGER_CM_EVENTS - 1;
	__atomic_fetch_add(&ledger->slot->cm_event[event], 1, __ATOMIC_RELAXED);
}

void ledger_count_refused(struct ledger *ledger, enum kind kind, bool tolerated)
{
	uint64_t *row = tolerated ? ledger->slot->tolerated : ledger->slot->refused;

	__atomic_fetch_add(&row[kind], 1, __ATOMIC_RELAXED);
}

uint64_t ledger_used(const struct ledger *ledger, enum kind kind)
{
	return __atomic_load_n(&ledger->slot->used[kind], __ATOMIC_RELAXED);
}
