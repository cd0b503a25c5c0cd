/* SPDX-License-Identifier: MIT */
/* EVENTS and EXPLAIN: what happened, and why. */
#include "collector/answers.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "collector/subject.h"

void answer_EVENTS(struct collector *collector, const struct request *request)
{
	struct proto_choose choose = request_choice(request);
	const struct proto_event *event;

	guards_listen(collector);
	event = events_first(&collector->events);
	for (; event; event = events_next(&collector->events, event))
		if (events_is_chosen(&choose, event))
			server_row(request, event);
	if (choose.flags & CHOOSE_FOLLOW)
		server_subscribe(request);
	else
		server_end(request);
}

void answer_EXPLAIN(struct collector *collector, const struct request *request)
{
	const struct proto_ask *ask = request->body;
	pid_t pid = ask->pid ? ask->pid : request->pid;
	int member = members_of_pid(&collector->members, pid);
	struct proto_explanation explanation = { 0 };
	const struct proto_event *event = NULL;
	const struct policy_rule *rule;
	char tenant[NAME_SIZE];
	struct subject subject;
	int result = subject_of_process(&subject, collector->pods, pid);
	bool foreign = (result < 0 || subject.policy.uid != request->uid) &&
		       !request_is_admin(collector, request);

	/* Who it is, where it runs, and even that it exists is its user's affair. Events are
	 * everybody's. */
	if (foreign)
		result = -EPERM;
	guards_listen(collector);
	if (ask->number)
		event = events_numbered(&collector->events, pid, ask->number);
	if (ask->number && !event) {
		server_fail(request, -ENOENT,
			    "no event %d-%llu is in memory: 'rdma_intercept events' lists the latest",
			    (int)pid, (unsigned long long)ask->number);
		return;
	}
	if (result < 0 && !event) {
		server_fail(request, result,
			    foreign ? "process %d: only its user, root and administrators may ask" :
				      "there is no process %d",
			    (int)pid);
		return;
	}
	if (event) {
		explanation.has_event = 1;
		explanation.event = *event;
		snprintf(explanation.tenant, sizeof(explanation.tenant), "%s", event->tenant);
	}
	if (result == 0) {
		explanation.alive = 1;
		explanation.registered = member >= 0;
		rule = policy_match_tenant(collector->effective, &subject.policy, tenant);
		explanation.uid = subject.policy.uid;
		explanation.gid = subject.policy.gid;
		snprintf(explanation.container, sizeof(explanation.container), "%s",
			 subject.container);
		snprintf(explanation.job, sizeof(explanation.job), "%s", subject.job);
		snprintf(explanation.pod_uid, sizeof(explanation.pod_uid), "%s", subject.pod_uid);
		snprintf(explanation.pod, sizeof(explanation.pod), "%s", subject.pod);
		snprintf(explanation.cgroup, sizeof(explanation.cgroup), "%.255s", subject.cgroup);
		if (rule)
			snprintf(explanation.rule, sizeof(explanation.rule), "%.120s: match = %.120s",
				 rule->source, rule->text);
		if (member >= 0)
			snprintf(explanation.tenant, sizeof(explanation.tenant), "%s",
				 collector->books.file
					 ->tenant[collector->books.file->member[member].tenant]
					 .name);
		else if (!event)
			snprintf(explanation.tenant, sizeof(explanation.tenant), "%s", tenant);
	}
	server_reply(request, 0, &explanation, NULL, 0);
}

_Static_assert(sizeof(((struct proto_subject *)0)->group) / sizeof(uint32_t) == POLICY_IDS,
	       "a place for each group that can be given");

/* It says nothing of any process, and what a policy says of tenants is everybody's to see. */
void answer_EXPLAIN_AS(struct collector *collector, const struct request *request)
{
	struct proto_subject asked = *(const struct proto_subject *)request->body;
	struct proto_placement placement;
	struct policy_subject subject = {
		.uid = asked.uid,
		.gid = asked.gid,
		.groups = asked.groups,
		.group = asked.group,
		.cgroup = proto_text(asked.cgroup),
		.container = asked.flags & SUBJECT_CONTAINER ? proto_text(asked.container) : NULL,
		.job = asked.flags & SUBJECT_JOB ? proto_text(asked.job) : NULL,
		.pod = asked.flags & SUBJECT_POD ? proto_text(asked.pod) : NULL,
		.namespace = asked.flags & SUBJECT_NAMESPACE ? proto_text(asked.namespace) : NULL,
	};

	if (asked.groups > POLICY_IDS) {
		server_fail(request, -EINVAL, "%u groups: expected at most %d",
			    (unsigned)asked.groups, POLICY_IDS);
		return;
	}
	policy_place(collector->effective, &subject, &placement.placement);
	server_reply(request, 0, &placement, NULL, 0);
}
