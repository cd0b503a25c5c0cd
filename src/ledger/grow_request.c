/* SPDX-License-Identifier: MIT */
/*
 * One request to the collector for a larger lease, and its reply: over the connection of
 * HELLO or a new one. Knows nothing of caps and charges.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

#include "ledger/lease.h"

/* For so long after the collector did not answer, nobody asks again. */
enum { UNANSWERED_PAUSE_MS = 1000 };

/* Over the connection of HELLO, if the number is still that; -ENOTCONN if not. After a failure
 * an answer could come when another question is under way: it is not used again. */
static int grow_request_over_kept(struct ledger_lease *lease,
				  const struct proto_grow_request *request,
				  struct proto_grow_reply *ret_reply, char problem[PROBLEM_SIZE])
{
	struct stat status;
	int result = -ENOTCONN;

	if (lease->connection && !fstat(lease->connection, &status) &&
	    descriptor_is_at(&lease->connection_place, &status))
		result = proto_ask(lease->socket, lease->connection, lease->protocol,
				   MESSAGE_GROW, request, ret_reply, problem);
	if (result < 0)
		lease->connection = 0;
	return result;
}

static bool grow_request_root_changed(const struct ledger_lease *lease)
{
	struct stat status;

	return !stat("/", &status) && !descriptor_is_at(&lease->root, &status);
}

/* Over a new connection. Who sees another root directory need not wait for a socket in it. */
static int grow_request_over_new(struct ledger_lease *lease,
				 const struct proto_grow_request *request,
				 struct proto_grow_reply *ret_reply, const char **ret_obstacle,
				 char problem[PROBLEM_SIZE])
{
	bool elsewhere = grow_request_root_changed(lease);
	struct proto_reply reply;
	int result = proto_call(lease->socket, MESSAGE_GROW, request, ret_reply, &reply, 0,
				lease->unanswered_ns || elsewhere ? 0 : LEASE_PATIENCE_MS, problem);

	if (result == -EMFILE)
		*ret_obstacle = "no descriptor is left";
	else if (result == -ENOBUFS)
		*ret_obstacle = "this process can make no socket";
	else if (result == -EPROTO)
		*ret_obstacle = "it is of another version; restart this program";
	else if (result == -ENOENT && elsewhere)
		*ret_obstacle = "this process has changed its root directory";
	return result < 0 ? result : reply.status;
}

/* That is an answer, too. */
static bool grow_reply_no_lease(int error)
{
	return error == -EUSERS || error == -ENOSPC;
}

/* One question. A collector that has just failed to answer is not asked again at once,
 * so that many threads do not wait for it one after the other. */
int grow_request_send(struct ledger *ledger, struct proto_grow_request *request,
		      struct proto_grow_reply *ret_reply, const char **ret_obstacle)
{
	struct ledger_lease *lease = &ledger->lease;
	char problem[PROBLEM_SIZE];
	int result;

	*ret_obstacle = NULL;
	if (lease->unanswered_ns &&
	    clock_now_ns() - lease->unanswered_ns < UNANSWERED_PAUSE_MS * 1000000ull)
		return -ETIMEDOUT;
	result = grow_request_over_kept(lease, request, ret_reply, problem);
	if (result == -ENOTCONN || result == -ECONNRESET)
		result = grow_request_over_new(lease, request, ret_reply, ret_obstacle, problem);
	lease->unanswered_ns =
		result < 0 && !*ret_obstacle && !grow_reply_no_lease(result) ? clock_now_ns() : 0;
	if (result < 0 && clock_now_ns() - lease->logged_ns >= UNANSWERED_PAUSE_MS * 1000000ull) {
		lease->logged_ns = clock_now_ns();
		log_write(ledger->log, LOG_WARN, "%s", problem);
	}
	if (result >= 0)
		__atomic_store_n(&lease->mode, ret_reply->mode, __ATOMIC_RELAXED);
	return result;
}

void grow_request_begin(struct ledger *ledger, unsigned device, const struct cost *cost,
			unsigned flags, struct proto_grow_request *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->cookie = ledger->lease.cookie;
	ret->question = ++ledger->lease.questions;
	__atomic_store_n(&ledger->lease.usage->question, ret->question, __ATOMIC_SEQ_CST);
	strncpy(ret->device, lease_device_name(ledger, device), sizeof(ret->device) - 1);
	ret->row = device;
	ret->flags = flags;
	ret->count = cost->count;
	for (unsigned i = 0; i < cost->count; i++) {
		ret->kind[i] = cost->kind[i];
		ret->total[i] = lease_total(&ledger->lease, device, cost, i);
		ret->wanted[i] = cost->amount[i];
	}
	lease_device_limits(ledger, device, ret->device_limit);
}

void grow_request_end(struct ledger *ledger)
{
	__atomic_store_n(&ledger->lease.usage->question, 0, __ATOMIC_SEQ_CST);
}

void grow_reply_describe(const struct ledger *ledger, const struct proto_grow_reply *reply,
			 int status, struct ledger_refusal *ret)
{
	enum verdict verdict = verdict_at_limit(reply->own ? LIMIT_OF_PROGRAM : LIMIT_OF_POLICY,
						reply->mode, ledger->own_mode);

	/* The collector has decided; the modes of that moment say whether a line is written. */
	if (status == PROTO_REFUSED)
		verdict = VERDICT_REFUSED;
	else if (verdict == VERDICT_REFUSED)
		verdict = VERDICT_TOLD;
	*ret = (struct ledger_refusal){
		.verdict = verdict,
		.scope = reply->scope < SCOPES ? reply->scope : SCOPE_HOST,
		.kind = reply->kind < KINDS_COUNTED ? reply->kind : 0,
		.used = reply->used,
		.wanted = reply->wanted,
		.limit = reply->limit,
		.configured = reply->configured,
		.own = reply->own != 0,
		.forbidden = reply->forbidden != 0,
		.event = reply->event,
	};
	_Static_assert(sizeof(ret->origin) == sizeof(reply->origin), "the same text");
	memcpy(ret->origin, reply->origin, sizeof(ret->origin) - 1);
}

int grow_request_unanswered(const struct proto_grow_request *request, int error, const char *obstacle,
			    struct ledger_refusal *ret)
{
	*ret = (struct ledger_refusal){
		.scope = SCOPE_PROCESS,
		.kind = request->kind[0],
		.used = request->total[0] - request->wanted[0],
		.wanted = request->wanted[0],
		.limit = request->total[0] - request->wanted[0],
		.unanswered = true,
		.unregistered = error == -ESTALE,
		.obstacle = obstacle,
		.no_lease = grow_reply_no_lease(error),
	};
	return LEDGER_UNANSWERED;
}
