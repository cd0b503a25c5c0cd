/* SPDX-License-Identifier: MIT */
/*
 * The transport "socket", for processes with which the collector shares no memory: `used` is ours
 * alone, and the collector is told at each operation.
 */
#include <errno.h>
#include <string.h>

#include "base/signals.h"
#include "ledger/lease.h"

static int socket_charge(struct ledger *ledger, unsigned device, const struct cost *cost,
			 bool forced, struct ledger_refusal *ret_refusal)
{
	struct ledger_lease *lease = &ledger->lease;
	struct proto_grow_request request;
	struct proto_grow_reply answer;
	const char *obstacle;
	sigset_t signals;
	int result, saved = errno;

	signals_hold(&signals);
	lock_acquire(&lease->asking);
	grow_request_begin(ledger, device, cost, GROW_EXACT, &request);
	result = grow_request_send(ledger, &request, &answer, &obstacle);
	if (result == 0 || forced) {
		lease_add(lease, device, cost);
		result = 0;
	} else if (result == PROTO_TOLERATED) {
		lease_add(lease, device, cost);
		grow_reply_describe(ledger, &answer, result, ret_refusal);
		result = LEDGER_TOLERATED;
	} else if (result == PROTO_REFUSED) {
		grow_reply_describe(ledger, &answer, result, ret_refusal);
		result = LEDGER_REFUSED;
	} else {
		result = grow_request_unanswered(&request, result, obstacle, ret_refusal);
	}
	lock_release(&lease->asking);
	signals_let_go(&signals);
	errno = saved;
	return result;
}

/* When the collector does not answer, the next question, a total as always, will tell it. */
static void socket_refund(struct ledger *ledger, unsigned device, const struct cost *cost)
{
	struct cost nothing = *cost;
	struct proto_grow_request request;
	struct proto_grow_reply answer;
	const char *obstacle;
	sigset_t signals;
	int saved = errno;

	memset(nothing.amount, 0, sizeof(nothing.amount));
	signals_hold(&signals);
	lock_acquire(&ledger->lease.asking);
	lease_give_back(ledger->lease.usage->row[device].used, cost, cost->count);
	grow_request_begin(ledger, device, &nothing, GROW_EXACT, &request);
	grow_request_send(ledger, &request, &answer, &obstacle);
	lock_release(&ledger->lease.asking);
	signals_let_go(&signals);
	errno = saved;
}

const struct ledger_backing socket_backing =
	LEASE_BACKING(TRANSPORT_SOCKET, socket_charge, socket_refund);
