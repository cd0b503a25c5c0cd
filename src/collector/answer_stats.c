/* SPDX-License-Identifier: MIT */
/* GET_STATS and GET_PROC_STATS: the rows of stats.c as messages. */
#include "collector/answers.h"

#include <stdio.h>
#include <string.h>

#include "collector/stats.h"

_Static_assert((int)STATS_HOST == ROW_HOST && (int)STATS_TENANT == ROW_TENANT &&
		       (int)STATS_PROCESS == ROW_PROCESS,
	       "owners travel as they are");
_Static_assert((int)STATS_DRAINING == ROW_DRAINING && (int)STATS_ORPHAN == ROW_ORPHAN &&
		       (int)STATS_UNATTACHED == ROW_UNATTACHED && (int)STATS_SOCKET == ROW_SOCKET &&
		       (int)STATS_RUNTIME == ROW_RUNTIME && (int)STATS_REMOVED == ROW_REMOVED &&
		       (int)STATS_UNCOVERED == ROW_UNCOVERED && (int)STATS_DRIFT == ROW_DRIFT &&
		       (int)STATS_WATCHED == ROW_WATCHED && (int)STATS_INACTIVE == ROW_INACTIVE &&
		       (int)STATS_FORBIDDEN == ROW_FORBIDDEN &&
		       (int)STATS_PATTERN == ROW_PATTERN,
	       "so do flags");

static bool row_send(void *closure, const struct stats_row *row)
{
	struct proto_row sent = {
		.scope = row->owner,
		.flags = row->flags,
		.mode = row->mode,
		.pid = row->pid,
		.uid = row->uid,
		.processes = row->processes,
	};

	snprintf(sent.tenant, sizeof(sent.tenant), "%s", row->tenant);
	snprintf(sent.device, sizeof(sent.device), "%s", row->device);
	snprintf(sent.command, sizeof(sent.command), "%s", row->command);
	memcpy(sent.used, row->used, sizeof(sent.used));
	memcpy(sent.granted, row->granted, sizeof(sent.granted));
	memcpy(sent.peak, row->peak, sizeof(sent.peak));
	memcpy(sent.peak_time, row->peak_time, sizeof(sent.peak_time));
	memcpy(sent.limit, row->limit, sizeof(sent.limit));
	memcpy(sent.configured, row->configured, sizeof(sent.configured));
	memcpy(sent.guarantee, row->guarantee, sizeof(sent.guarantee));
	memcpy(sent.reason, row->reason, sizeof(sent.reason));
	sent.weight = row->weight;
	memcpy(sent.process_limit, row->process_limit, sizeof(sent.process_limit));
	memcpy(sent.refused, row->refusals.refused, sizeof(sent.refused));
	memcpy(sent.tolerated, row->refusals.tolerated, sizeof(sent.tolerated));
	memcpy(sent.refused_here, row->refusals.refused_here, sizeof(sent.refused_here));
	memcpy(sent.tolerated_here, row->refusals.tolerated_here, sizeof(sent.tolerated_here));
	memcpy(sent.drift, row->drift, sizeof(sent.drift));
	for (unsigned kind = 0; kind < KIND_COUNT && row->flags & STATS_WATCHED; kind++)
		sent.kernel[kind] = row->observed >> kind & 1 ? row->kernel[kind] : PROTO_UNKNOWN;
	return server_row(closure, &sent);
}

/* The owners that a request names, or those that its message is for. */
static unsigned owners_chosen(const struct proto_choose *choose, unsigned usual)
{
	static const struct {
		uint32_t flag;
		enum stats_owner owner;
	} owners[] = {
		{ CHOOSE_HOST, STATS_HOST },
		{ CHOOSE_TENANTS, STATS_TENANT },
		{ CHOOSE_PROCESSES, STATS_PROCESS },
	};
	unsigned chosen = 0;

	for (unsigned i = 0; i < sizeof(owners) / sizeof(owners[0]); i++)
		if (choose->flags & owners[i].flag)
			chosen |= 1u << owners[i].owner;
	return chosen ? chosen : usual;
}

static void stats_send(struct collector *collector, const struct request *request, unsigned usual)
{
	struct proto_choose choose = request_choice(request);
	struct stats_filter filter = {
		.owners = owners_chosen(&choose, usual),
		.tenant = choose.tenant,
		.device = choose.device,
		.pid = choose.pid,
	};

	stats_visit(collector, &filter, row_send, (void *)request);
	server_end(request);
}

void answer_GET_STATS(struct collector *collector, const struct request *request)
{
	const struct proto_choose *choose = request->body;

	/* Who chooses a tenant does not ask for the host. */
	stats_send(collector, request,
		   (choose->tenant[0] ? 0 : 1u << STATS_HOST) | 1u << STATS_TENANT);
}

void answer_GET_PROC_STATS(struct collector *collector, const struct request *request)
{
	stats_send(collector, request, 1u << STATS_PROCESS);
}
