/* SPDX-License-Identifier: MIT */
/* Rules about what processes do. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "advice/rules.h"
#include "base/translation.h"

enum {
	FEW_QPS = 4,	   /* fewer that are not used cost little */
	FEW_EVENTS = 1000, /* that a program may acknowledge later, together */
	FEW_CQES = 4096,
	FEW_FALLS = 3,
	FEW_CONNECTIONS = 10,
};

/* The tenant of a process; "" if the collector does not say. */
static const char *tenant_of(const struct observation *observation, int32_t pid)
{
	const struct proto_row *row = rule_process(observation, pid);

	return row ? row->tenant : "";
}

void advise_uncovered_process(const struct observation *observation, struct list *advice)
{
	const struct proto_row *process;

	RULE_EACH_ROW(process, observation, ROW_PROCESS, false) {
		uint64_t objects = 0;
		struct advice *one;

		if (!(process->flags & ROW_UNCOVERED))
			continue;
		for (int kind = 0; kind < KIND_COUNT; kind++)
			if (kind_rows[kind].form == FORM_OBJECT &&
			    process->kernel[kind] != PROTO_UNKNOWN)
				objects += process->kernel[kind];
		one = rule_add(advice, process->tenant, process->pid);
		rule_say(one, "process %d (%s) has %" PRIu64 " objects in the kernel and %s",
			 (int)process->pid, process->command, objects,
			 process->flags & ROW_INACTIVE ?
				 _("has the library loaded, but counts by itself or with another collector") :
				 _("runs without the library: no limit holds for it"));
		if (process->flags & ROW_INACTIVE)
			rule_command(one, "rdma_intercept explain %d", (int)process->pid);
		else
			rule_command(one, "rdma_intercept guard on %s", rule_quoted(process->tenant));
	}
}

void advise_drift(const struct observation *observation, struct list *advice)
{
	const struct proto_row *process;

	RULE_EACH_ROW(process, observation, ROW_PROCESS, false) {
		int most = 0;
		struct advice *one;

		if (!(process->flags & ROW_DRIFT))
			continue;
		for (int kind = 1; kind < KIND_COUNT; kind++)
			if (llabs(process->drift[kind]) > llabs(process->drift[most]))
				most = kind;
		one = rule_add(advice, process->tenant, process->pid);
		rule_say(one,
			 "the kernel has %s %s %s of process %d (%s) than the books: it makes or frees "
			 "objects past the library",
			 rule_amount(most, (uint64_t)llabs(process->drift[most])),
			 process->drift[most] < 0 ? _("fewer") : _("more"), kind_rows[most].name,
			 (int)process->pid, process->command);
		rule_command(one, "rdma_intercept show process %d", (int)process->pid);
	}
}

/* The least of what limits an amount of the kind for a process. */
static uint64_t process_may(const struct observation *observation, const struct proto_row *process,
			    int kind)
{
	const struct proto_row *tenant = rule_tenant(observation, process->tenant);
	uint64_t may = process->limit[kind];

	if (tenant && tenant->limit[kind] < may)
		may = tenant->limit[kind];
	if (tenant && tenant->process_limit[kind] < may)
		may = tenant->process_limit[kind];
	return may;
}

void advise_memlock_in_the_way(const struct observation *observation, struct list *advice)
{
	for (size_t i = 0; i < observation->memlocks.count; i++) {
		const struct memlock *memlock = list_at(&observation->memlocks, i);
		const struct proto_row *process = rule_process(observation, memlock->pid);
		struct advice *one;
		uint64_t may;

		/* What root locks is not limited. */
		if (!process || !process->uid || memlock->bytes == UNLIMITED)
			continue;
		may = process_may(observation, process, KIND_mr_bytes);
		if (memlock->bytes >= may)
			continue;
		one = rule_add(advice, process->tenant, process->pid);
		rule_say(one,
			 "RLIMIT_MEMLOCK of process %d (%s) is %s, and its limit of registered memory is "
			 "%s: the kernel refuses (ENOMEM) before the limit does",
			 (int)process->pid, process->command,
			 rule_amount(KIND_mr_bytes, memlock->bytes),
			 may == UNLIMITED ? _("unlimited") : rule_amount(KIND_mr_bytes, may));
		rule_command(one, "prlimit --pid %d --memlock=unlimited", (int)process->pid);
	}
}

/* A tenant of several processes in which one leaves nothing for the others. */
void advise_one_process_takes_all(const struct observation *observation, struct list *advice)
{
	const struct proto_row *process;

	RULE_EACH_ROW(process, observation, ROW_PROCESS, false) {
		const struct proto_row *tenant = rule_tenant(observation, process->tenant);

		for (int kind = 0; tenant && tenant->processes > 1 && kind < KIND_COUNT; kind++) {
			uint64_t limit = tenant->limit[kind];
			struct advice *one;

			if (limit == UNLIMITED || limit < 10 ||
			    tenant->process_limit[kind] != UNLIMITED ||
			    process->used[kind] < limit - limit / 10)
				continue;
			one = rule_add(advice, process->tenant, process->pid);
			rule_say(one,
				 "process %d (%s) holds %s of the %s %s that tenant %s may have (%u %%); %u "
				 "other processes share the rest",
				 (int)process->pid, process->command,
				 rule_amount(kind, process->used[kind]), rule_amount(kind, limit),
				 kind_rows[kind].name, tenant->tenant,
				 rule_percent(process->used[kind], limit), tenant->processes - 1);
			rule_command(one, "rdma_intercept limit set tenant %s process.%s=%s",
				     rule_quoted(tenant->tenant), kind_rows[kind].name,
				     rule_value(kind, limit / 2));
		}
	}
}

/* ---- queues, by their sizes */

void advise_completion_queues_too_small(const struct observation *observation, struct list *advice)
{
	const struct proto_row *process;

	RULE_EACH_ROW(process, observation, ROW_PROCESS, false) {
		uint64_t cqes = process->used[KIND_cqe], receives = process->used[KIND_recv_wr];
		struct advice *one;

		if (!process->used[KIND_cq] || cqes >= receives)
			continue;
		one = rule_add(advice, process->tenant, process->pid);
		rule_say(one,
			 "the %" PRIu64 " completion queues of process %d (%s) have %" PRIu64
			 " entries, and its receive queues hold %" PRIu64
			 ": completions can overrun them",
			 process->used[KIND_cq], (int)process->pid, process->command, cqes, receives);
		rule_command(one, "rdma_intercept show process %d", (int)process->pid);
	}
}

void advise_completion_queues_too_large(const struct observation *observation, struct list *advice)
{
	const struct proto_row *process;

	RULE_EACH_ROW(process, observation, ROW_PROCESS, false) {
		uint64_t cqes = process->used[KIND_cqe];
		uint64_t requests = process->used[KIND_recv_wr] + process->used[KIND_send_wr];
		struct advice *one;

		if (cqes < FEW_CQES || cqes / 4 <= requests)
			continue;
		one = rule_add(advice, process->tenant, process->pid);
		rule_say(one,
			 "the completion queues of process %d (%s) have %" PRIu64
			 " entries, and its queues hold %" PRIu64 " requests: %u %% can be used",
			 (int)process->pid, process->command, cqes, requests,
			 rule_percent(requests, cqes));
		rule_command(one, "rdma_intercept limit set tenant %s process.cqe=%" PRIu64,
			     rule_quoted(process->tenant), requests ? 2 * requests : FEW_CQES);
	}
}

/* ---- counters and gauges */

#define EACH_DETAILS(details, observation, on_device)                                              \
	for (size_t i_ = 0; i_ < (observation)->details.count; i_++)                               \
		if (details = list_at(&(observation)->details, i_),                                \
		    (on_device) == (details->device[0] != '\0'))

void advise_idle_queue_pairs(const struct observation *observation, struct list *advice)
{
	const struct proto_details *details;

	EACH_DETAILS(details, observation, true) {
		const uint64_t *state = details->gauges.qp_state;
		uint64_t idle = state[QP_RESET] + state[QP_INIT], all = 0;
		struct advice *one;

		for (int i = 0; i < QP_STATES; i++)
			all += state[i];
		if (idle < FEW_QPS || idle * 2 <= all)
			continue;
		one = rule_add(advice, tenant_of(observation, details->pid), details->pid);
		rule_say(one,
			 "%" PRIu64 " of %" PRIu64 " queue pairs of process %d on %s are in RESET or "
			 "INIT: they were never connected, but count against limits",
			 idle, all, (int)details->pid, details->device);
		rule_command(one, "rdma_intercept show process %d", (int)details->pid);
	}
}

void advise_failed_queue_pairs(const struct observation *observation, struct list *advice)
{
	const struct proto_details *details;

	EACH_DETAILS(details, observation, true) {
		const uint64_t *state = details->gauges.qp_state;
		struct advice *one;

		if (!state[QP_ERR] && !state[QP_SQE])
			continue;
		one = rule_add(advice, tenant_of(observation, details->pid), details->pid);
		rule_say(one,
			 "%" PRIu64 " queue pairs of process %d on %s are in an error state and cannot "
			 "send (%" PRIu64 " completions reported errors)",
			 state[QP_ERR] + state[QP_SQE], (int)details->pid, details->device,
			 details->gauges.posted.errors);
		rule_command(one, "rdma_intercept show process %d", (int)details->pid);
	}
}

void advise_events_not_acknowledged(const struct observation *observation, struct list *advice)
{
	const struct proto_details *details;

	EACH_DETAILS(details, observation, false) {
		uint64_t events = details->tallies.counter[COUNTER_CQ_EVENTS];
		uint64_t acknowledged = details->tallies.counter[COUNTER_CQ_ACKS];
		struct advice *one;

		if (events < acknowledged + FEW_EVENTS)
			continue;
		one = rule_add(advice, tenant_of(observation, details->pid), details->pid);
		rule_say(one,
			 "process %d acknowledged %" PRIu64 " of %" PRIu64
			 " completion events: ibv_destroy_cq waits for the other %" PRIu64,
			 (int)details->pid, acknowledged, events, events - acknowledged);
		rule_command(one, "rdma_intercept show process %d", (int)details->pid);
	}
}

void advise_connections_fail(const struct observation *observation, struct list *advice)
{
	/* Numbers of rdma_cma.h, as in the rows of terms/tallies.c. */
	enum { CONNECT_ERROR = 6, UNREACHABLE = 7, REJECTED = 8, ESTABLISHED = 9 };
	const struct proto_details *details;

	EACH_DETAILS(details, observation, false) {
		const uint64_t *event = details->tallies.cm_event;
		uint64_t failed = event[CONNECT_ERROR] + event[UNREACHABLE] + event[REJECTED];
		struct advice *one;

		if (failed < FEW_CONNECTIONS || failed <= event[ESTABLISHED])
			continue;
		one = rule_add(advice, tenant_of(observation, details->pid), details->pid);
		rule_say(one,
			 "%" PRIu64 " connections of process %d failed (%" PRIu64 " rejected, %" PRIu64
			 " unreachable), and %" PRIu64 " were established",
			 failed, (int)details->pid, event[REJECTED], event[UNREACHABLE],
			 event[ESTABLISHED]);
		rule_command(one, "rdma_intercept show process %d", (int)details->pid);
	}
}

void advise_calls_throttled(const struct observation *observation, struct list *advice)
{
	for (size_t i = 0; i < observation->rates.count; i++) {
		const struct proto_rate *rate = list_at(&observation->rates, i);
		struct advice *one;

		if (rate->pid || rate->class >= RATE_CLASSES || rate->owner != RATE_OF_TENANT ||
		    (!rate->throttled && !rate->refused && !rate->tolerated))
			continue;
		one = rule_add(advice, rate->tenant, 0);
		rule_say(one,
			 "rate.%s of tenant %s is %u/s: %" PRIu64 " calls waited %.1f s in all, %" PRIu64
			 " failed, and %" PRIu64 " passed although they were above it",
			 rate_rows[rate->class].name, rate->tenant, rate->per_second, rate->throttled,
			 (double)rate->throttled_ns / 1e9, rate->refused, rate->tolerated);
		rule_command(one, "rdma_intercept limit set tenant %s rate.%s=%u/s",
			     rule_quoted(rate->tenant), rate_rows[rate->class].name,
			     rate->per_second * 2);
	}
}

void advise_registration_loop(const struct observation *observation, struct list *advice)
{
	for (size_t i = 0; i < observation->churns.count; i++) {
		const struct churn *churn = list_at(&observation->churns, i);
		struct advice *one;

		if (churn->falls < FEW_FALLS || churn->falls * 5 < observation->readings)
			continue;
		one = rule_add(advice, churn->tenant, churn->pid);
		rule_say(one,
			 "process %d freed memory regions and registered others: their number fell %u "
			 "times in %u readings over %.1f s; such a loop slows the card down for all, and "
			 "regions that are kept cost nothing",
			 (int)churn->pid, churn->falls, observation->readings, observation->seconds);
		rule_command(one, "rdma_intercept limit set tenant %s process.rate.reg_mr=100/s",
			     rule_quoted(churn->tenant));
	}
}
