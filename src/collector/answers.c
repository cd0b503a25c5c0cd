/* SPDX-License-Identifier: MIT */
/* Answers that are short, and who answers which message; see answers.h. */
#include "collector/answers.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "collector/control.h"
#include "collector/subject.h"

/* ---- STATUS */

static void status_add_kernel(const struct collector *collector, struct proto_status *status)
{
	const struct kernel_usage *kernel = &collector->kernel;
	const struct kernel_sums *host = reconcile_sums(collector, -1);
	const struct monitor_head *head = kernel->reader.head;

	snprintf(status->monitor, sizeof(status->monitor), "%s", monitor_mode_names[kernel->mode]);
	snprintf(status->monitor_problem, sizeof(status->monitor_problem), "%.255s",
		 kernel->problem);
	status->uncovered = host->uncovered;
	status->drifting = host->drifting;
	status->observed = kernel_observed(kernel);
	if (!head)
		return;
	status->lost_objects = __atomic_load_n(&head->lost_objects, __ATOMIC_RELAXED);
	status->lost_rows = __atomic_load_n(&head->lost_rows, __ATOMIC_RELAXED);
}

void answer_STATUS(struct collector *collector, const struct request *request)
{
	struct proto_status status = {
		.pid = getpid(),
		.uid = geteuid(),
		.processes = collector->books.members_count,
		.leases = collector->books.leases_count,
		.reloads = collector->reloads,
		.searches = members_passes(&collector->members),
		.version = COLLECTOR_VERSION,
	};

	status.uptime_seconds = clock_now_seconds() - collector->started;
	for (unsigned i = 0; i < BOOKS_TENANTS; i++)
		status.tenants += collector->books.tenant[i] != NULL;
	snprintf(status.policy, sizeof(status.policy), "%s", collector->effective->file);
	snprintf(status.problem, sizeof(status.problem), "%.500s", collector->problem);
	reconcile_look(collector);
	status_add_kernel(collector, &status);
	server_reply(request, 0, &status, NULL, 0);
}

/* ---- changes */

static struct proto_change request_change(const struct request *request)
{
	struct proto_change change = *(const struct proto_change *)request->body;

	proto_text(change.section);
	proto_text(change.text);
	return change;
}

static const char *section_tenant(const char *section)
{
	static const char prefix[] = "tenant ";

	return strncmp(section, prefix, sizeof(prefix) - 1) ? NULL : section + sizeof(prefix) - 1;
}

/* Done, or not and why. */
static void request_done(const struct request *request, int result, const char *problem)
{
	if (result < 0)
		server_fail(request, result, "%s", problem);
	else
		server_reply(request, 0, NULL, NULL, 0);
}

static void change_make(struct collector *collector, const struct request *request,
			const struct proto_change *asked)
{
	char problem[PROBLEM_SIZE];
	int result = control_change(collector, asked->section, asked->text, problem);

	request_done(request, result, problem);
}

void answer_CHANGE_POLICY(struct collector *collector, const struct request *request)
{
	struct proto_change asked = request_change(request);
	const char *tenant = section_tenant(asked.section);

	if (tenant && strcmp(tenant, COLLECTOR_TENANT) &&
	    !policy_tenant_find(collector->effective, tenant))
		server_fail(request, -ENOENT, "there is no tenant '%s'", tenant);
	else
		change_make(collector, request, &asked);
}

void answer_TENANT_ADD(struct collector *collector, const struct request *request)
{
	struct proto_change asked = request_change(request);
	const char *tenant = section_tenant(asked.section);

	if (!tenant)
		server_fail(request, -EINVAL, "'%s' is no tenant", asked.section);
	else if (policy_tenant_find(collector->effective, tenant))
		server_fail(request, -EEXIST, "there is a tenant '%s' already", tenant);
	else
		change_make(collector, request, &asked);
}

void answer_TENANT_REMOVE(struct collector *collector, const struct request *request)
{
	struct proto_change asked = request_change(request);
	const char *tenant = section_tenant(asked.section);
	char problem[PROBLEM_SIZE];
	int result;

	if (!tenant) {
		server_fail(request, -EINVAL, "'%s' is no tenant", asked.section);
		return;
	}
	result = control_tenant_remove(collector, tenant, problem);
	request_done(request, result, problem);
}

void answer_RELOAD(struct collector *collector, const struct request *request)
{
	int result = control_reload(collector, RELOAD_WHOLE);

	request_done(request, result, collector->problem);
}

void answer_REPLACE(struct collector *collector, const struct request *request)
{
	int result = control_reload(collector, RELOAD_LESS);

	request_done(request, result, collector->problem);
}

/* ---- events and explanations */

struct proto_choose request_choice(const struct request *request)
{
	struct proto_choose choose = *(const struct proto_choose *)request->body;

	proto_text(choose.tenant);
	proto_text(choose.device);
	return choose;
}

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

static bool request_is_admin(const struct collector *collector, const struct request *request)
{
	const struct policy *policy = collector->effective;

	return server_is_admin(request, policy->admin_group.name[0] ? &policy->admin_group.gid : NULL);
}

void answer_EXPLAIN(struct collector *collector, const struct request *request)
{
	const struct proto_ask *ask = request->body;
	pid_t pid = ask->pid ? ask->pid : request->pid;
	int member = members_of_pid(&collector->members, pid);
	struct proto_explanation explanation = { 0 };
	const struct proto_event *event = NULL;
	const struct policy_rule *rule;
	struct subject subject;
	int result = subject_of_process(&subject, pid);
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
		server_fail(request, -ENOENT, "no event %d-%llu is kept", (int)pid,
			    (unsigned long long)ask->number);
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
		rule = policy_match(collector->effective, &subject.policy);
		explanation.uid = subject.policy.uid;
		explanation.gid = subject.policy.gid;
		snprintf(explanation.container, sizeof(explanation.container), "%s",
			 subject.container);
		snprintf(explanation.job, sizeof(explanation.job), "%s", subject.job);
		snprintf(explanation.cgroup, sizeof(explanation.cgroup), "%.255s", subject.cgroup);
		snprintf(explanation.rule, sizeof(explanation.rule), "%s",
			 rule ? rule->source : "");
		if (member >= 0)
			snprintf(explanation.tenant, sizeof(explanation.tenant), "%s",
				 collector->books.file
					 ->tenant[collector->books.file->member[member].tenant]
					 .name);
		else if (!event)
			snprintf(explanation.tenant, sizeof(explanation.tenant), "%s",
				 rule ? rule->tenant->name : COLLECTOR_TENANT);
	}
	server_reply(request, 0, &explanation, NULL, 0);
}

/* ---- the guard */

void answer_GUARD(struct collector *collector, const struct request *request)
{
	struct proto_choose choose = request_choice(request);
	struct proto_guard row;

	guards_look(collector);
	guards_listen(collector);
	guards_describe_host(collector, &row);
	server_row(request, &row);
	for (unsigned i = 0; i < BOOKS_TENANTS; i++) {
		const char *name = collector->books.file->tenant[i].name;

		if (!collector->books.tenant[i] ||
		    (choose.tenant[0] && strcmp(choose.tenant, name)))
			continue;
		guards_describe_tenant(collector, name, &row);
		server_row(request, &row);
	}
	server_end(request);
}

/* ---- all of them */

void answer(void *closure, const struct request *request)
{
	struct collector *collector = closure;

	/* Who has just ended must not count any more for those that ask now. */
	collector_dispatch(collector);
	if (request->message->access == ACCESS_ADMIN && !request_is_admin(collector, request)) {
		server_fail(
			request, -EPERM,
			"%s is for root, the collector's own user and members of its admin group",
			request->message->name);
		return;
	}
	switch ((enum message)request->message->type) {
#define MESSAGE(name, number, request_body, reply_body, who, how)                                  \
	case MESSAGE_##name:                                                                       \
		answer_##name(collector, request);                                                 \
		break;
#include "proto/messages.def"
#undef MESSAGE
	}
}
