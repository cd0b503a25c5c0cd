/* SPDX-License-Identifier: MIT */
/*
 * The part of the ledger that is the same wherever the numbers live: when a
 * refusal is final, what happens to a charge that cannot be written, and the
 * gauges and counters in the process's own memory.
 */
#include "ledger/ledger.h"

#include <errno.h>
#include <string.h>

#include "ledger/backing.h"
#include "terms/tallies.h"


void ledger_limits_clear(struct ledger_limits *limits)
{
	memset(limits, 0, sizeof(*limits));
	for (int kind = 0; kind < KINDS_COUNTED; kind++)
		limits->process[kind] = limits->host[kind] = UNLIMITED;
}

struct ledger_device_limits *ledger_limits_device(struct ledger_limits *limits, const char *name,
						  size_t length)
{
	struct ledger_device_limits *row = limits->device;

	if (length == 0 || length >= NAME_SIZE)
		return NULL;
	for (; row < limits->device + limits->devices; row++)
		if (strlen(row->name) == length && !memcmp(row->name, name, length))
			return row;
	if (limits->devices == DEVICES_MAX - 1)
		return NULL;
	limits->devices++;
	memcpy(row->name, name, length);
	for (int kind = 0; kind < KINDS_COUNTED; kind++)
		row->limit[kind] = UNLIMITED;
	return row;
}

/* The parent's, in a forked child; TRANSPORT_AUTO in a process that has had none. */
static enum transport inherited;

static int ledger_open_by(struct ledger *ledger, const struct ledger_options *options,
			  enum transport transport, char problem[PROBLEM_SIZE])
{
	memset(ledger, 0, sizeof(*ledger));
	ledger->limits = options->limits;
	ledger->own_mode = options->own_mode;
	ledger->log = options->log;
	ledger->settings = &settings_none;
	if (transport == TRANSPORT_EMBEDDED)
		return embedded_open(ledger, options, problem);
	return lease_open(ledger, options, transport, problem);
}

/* What an attempt to join a collector tells about it. */
enum presence {
	PRESENCE_NONE,	 /* nobody serves the socket, or somebody who has no right to */
	PRESENCE_USELESS, /* it does not understand us, or cannot see us: it never will */
	PRESENCE_THERE,
};

static enum presence collector_presence(int result)
{
	switch (-result) {
	case ENOENT:
	case ENOTDIR:
	case ELOOP:
	case ENAMETOOLONG:
	case ECONNREFUSED:
	case EPROTOTYPE: /* another sort of socket */
	case EACCES:
	case EPERM:
		return PRESENCE_NONE;
	case EPROTO:
	case EXDEV:
		return PRESENCE_USELESS;
	default:
		return PRESENCE_THERE;
	}
}

static int collector_join(struct ledger *ledger, const struct ledger_options *options,
			  enum transport transport, char problem[PROBLEM_SIZE])
{
	int result = ledger_open_by(ledger, options, transport, problem);
	bool heir = inherited != TRANSPORT_AUTO; /* its parent could not grow either */

	return result < 0 && (heir || collector_presence(result) == PRESENCE_THERE) ? LEDGER_LATER :
										      result;
}

int ledger_open(struct ledger *ledger, const struct ledger_options *options,
		char problem[PROBLEM_SIZE])
{
	enum transport transport = inherited ? inherited : options->transport;
	int result;

	if (transport == TRANSPORT_AUTO)
		result = collector_join(ledger, options, TRANSPORT_LEASE, problem);
	else if (transport == TRANSPORT_EMBEDDED)
		result = ledger_open_by(ledger, options, transport, problem);
	else
		result = collector_join(ledger, options, transport, problem);
	if (transport == TRANSPORT_AUTO && result < 0 &&
	    !(options->closed && collector_presence(result) == PRESENCE_USELESS)) {
		if (result != -ENOENT)
			log_write(ledger->log, LOG_WARN, "%s; going on without a collector",
				  problem);
		result = ledger_open_by(ledger, options, TRANSPORT_EMBEDDED, problem);
	}
	if (result == 0 || result == LEDGER_ALONE)
		inherited = ledger->backing->transport;
	return result;
}

void ledger_close(struct ledger *ledger)
{
	ledger->backing->close(ledger);
}

int ledger_device(struct ledger *ledger, const char *name)
{
	int device = ledger->backing->device(ledger, name);

	if (device != -ENOSPC)
		return device;
	log_write(ledger->log, LOG_WARN,
		  "device %s: no room in the table of %d devices; "
		  "its objects count for the process and the host only",
		  name, DEVICES_MAX);
	return LEDGER_NAMELESS;
}

const char *ledger_device_name(const struct ledger *ledger, unsigned device)
{
	const char *name = ledger->backing->device_name(ledger, device);

	return name[0] ? name : "-";
}

const char *ledger_tenant(const struct ledger *ledger)
{
	return ledger->backing->tenant(ledger);
}

enum mode ledger_mode(const struct ledger *ledger)
{
	return ledger->backing->mode(ledger);
}

enum transport ledger_transport(const struct ledger *ledger)
{
	return ledger->backing->transport;
}

const struct tenant_settings *ledger_settings(const struct ledger *ledger)
{
	return ledger->settings;
}

/* Before a refusal is final, what the dead hold is given back. */
static int ledger_charge_again(struct ledger *ledger, unsigned device, const struct cost *cost,
			       struct ledger_refusal *ret_refusal)
{
	int result = LEDGER_REFUSED;

	while (result == LEDGER_REFUSED && ret_refusal->scope != SCOPE_PROCESS &&
	       ledger->backing->release_dead(ledger) > 0)
		result = ledger->backing->charge(ledger, device, cost, false, ret_refusal);
	return result;
}

static enum verdict ledger_verdict(const struct ledger *ledger, enum limit_owner owner)
{
	return verdict_at_limit(owner, ledger_mode(ledger), ledger->own_mode);
}

bool ledger_enforces(const struct ledger *ledger)
{
	return ledger_verdict(ledger, LIMIT_OF_POLICY) == VERDICT_REFUSED;
}

/*
 * Charges by force what no collector has decided on, if the modes tolerate it. A collector finds
 * the charge on our page when it is back. But if the mode has changed since we looked, it may have
 * looked already: then the charge is taken back.
 */
static int ledger_charge_tolerated(struct ledger *ledger, unsigned device, const struct cost *cost,
				   enum limit_owner owner, int refused,
				   struct ledger_refusal *ret_refusal)
{
	int result;

	ret_refusal->verdict = ledger_verdict(ledger, owner);
	if (ret_refusal->verdict == VERDICT_REFUSED)
		return refused;
	result = ledger_charge_forced(ledger, device, cost);
	if (result < 0)
		return result;
	if (ledger_verdict(ledger, owner) != VERDICT_REFUSED)
		return LEDGER_TOLERATED;
	ret_refusal->verdict = VERDICT_REFUSED;
	ledger_refund(ledger, device, cost);
	return refused;
}

/* Decides a charge that the backing did not take. An answer of the collector is final. */
static __attribute__((noinline, cold)) int ledger_charge_decide(struct ledger *ledger,
								unsigned device,
								const struct cost *cost, int result,
								struct ledger_refusal *ret_refusal)
{
	if (result == LEDGER_REFUSED)
		result = ledger_charge_again(ledger, device, cost, ret_refusal);
	if (result == LEDGER_UNANSWERED)
		return ledger_charge_tolerated(ledger, device, cost, LIMIT_UNKNOWN, result,
					       ret_refusal);
	if (result == LEDGER_REFUSED && ledger->backing->transport == TRANSPORT_EMBEDDED)
		return ledger_charge_tolerated(ledger, device, cost, LIMIT_OF_PROGRAM, result,
					       ret_refusal);
	return result;
}

int ledger_charge(struct ledger *ledger, unsigned device, const struct cost *cost,
		  struct ledger_refusal *ret_refusal)
{
	int result = ledger->backing->charge(ledger, device, cost, false, ret_refusal);

	return __builtin_expect(result <= 0, 1) ?
		       result :
		       ledger_charge_decide(ledger, device, cost, result, ret_refusal);
}

int ledger_charge_forced(struct ledger *ledger, unsigned device, const struct cost *cost)
{
	return ledger->backing->charge(ledger, device, cost, true, NULL);
}

void ledger_refund(struct ledger *ledger, unsigned device, const struct cost *cost)
{
	ledger->backing->refund(ledger, device, cost);
}

void ledger_defer_charge(struct ledger *ledger, unsigned device, const struct cost *cost)
{
	ledger->backing->defer(ledger, device, cost);
}

static inline struct gauges *gauges_of(struct ledger *ledger, unsigned device)
{
	return (struct gauges *)(ledger->gauges + device * ledger->gauges_stride);
}

static inline void gauge_up(uint64_t *gauge, int row)
{
	if (row != QP_NONE)
		__atomic_fetch_add(&gauge[row], 1, __ATOMIC_RELAXED);
}

static inline void gauge_down(uint64_t *gauge, int row)
{
	if (row != QP_NONE)
		__atomic_fetch_sub(&gauge[row], 1, __ATOMIC_RELAXED);
}

void ledger_qp_appears(struct ledger *ledger, unsigned device, int type, int state)
{
	struct gauges *row = gauges_of(ledger, device);

	gauge_up(row->qp_type, type);
	gauge_up(row->qp_state, state);
}

void ledger_qp_vanishes(struct ledger *ledger, unsigned device, int type, int state, int port)
{
	struct gauges *row = gauges_of(ledger, device);

	gauge_down(row->qp_type, type);
	gauge_down(row->qp_state, state);
	gauge_down(row->qp_port, port);
}

void ledger_qp_moves(struct ledger *ledger, unsigned device, int from_state, int to_state,
		     int from_port, int to_port)
{
	struct gauges *row = gauges_of(ledger, device);

	gauge_up(row->qp_state, to_state);
	gauge_down(row->qp_state, from_state);
	gauge_up(row->qp_port, to_port);
	gauge_down(row->qp_port, from_port);
}

void ledger_qp_class_moves(struct ledger *ledger, unsigned device, int from_class, int to_class,
			   int from_level, int to_level)
{
	struct class_gauges *row;

	if (!ledger->classes)
		return;
	row = &ledger->classes[device];
	gauge_up(row->traffic_class, to_class);
	gauge_down(row->traffic_class, from_class);
	gauge_up(row->service_level, to_level);
	gauge_down(row->service_level, from_level);
}

void ledger_count(struct ledger *ledger, enum tally_counter counter, uint64_t amount)
{
	__atomic_fetch_add(&ledger->tallies->counter[counter], amount, __ATOMIC_RELAXED);
}

void ledger_count_max(struct ledger *ledger, enum tally_counter counter, uint64_t value)
{
	uint64_t *word = &ledger->tallies->counter[counter];
	uint64_t seen = __atomic_load_n(word, __ATOMIC_RELAXED);

	while (seen < value && !__atomic_compare_exchange_n(word, &seen, value, true,
							    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

void ledger_count_cm_event(struct ledger *ledger, unsigned event)
{
	if (event >= CM_EVENTS)
		event = CM_EVENTS - 1;
	__atomic_fetch_add(&ledger->tallies->cm_event[event], 1, __ATOMIC_RELAXED);
}

void ledger_count_rate(struct ledger *ledger, enum rate_tally tally, enum rate_class class,
		       uint64_t amount)
{
	__atomic_fetch_add(&ledger->tallies->rate[tally][class], amount, __ATOMIC_RELAXED);
}

void ledger_count_refused(struct ledger *ledger, enum kind kind, bool tolerated)
{
	uint64_t *row = tolerated ? ledger->tallies->tolerated : ledger->tallies->refused;

	__atomic_fetch_add(&row[kind_plain(kind)], 1, __ATOMIC_RELAXED);
}

struct posted *ledger_posted(struct ledger *ledger, unsigned device)
{
	return &gauges_of(ledger, device)->posted;
}

const struct lease_share *ledger_share(const struct ledger *ledger, unsigned device)
{
	const struct ledger_backing *backing = ledger->backing;

	return backing->transport == TRANSPORT_LEASE ? lease_share(ledger, device) : NULL;
}

uint64_t ledger_used(struct ledger *ledger, enum kind kind)
{
	return ledger->backing->used(ledger, kind);
}
