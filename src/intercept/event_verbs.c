/* SPDX-License-Identifier: MIT */
/* The wrappers that count completion events. */
#include <errno.h>

#include "base/clock.h"
#include "intercept/gate.h"
#include "intercept/prototypes.h"

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
