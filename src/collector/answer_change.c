/* SPDX-License-Identifier: MIT */
/* CHANGE_POLICY, RESET_POLICY, TENANT_ADD, TENANT_REMOVE, RELOAD and REPLACE: changes of the policy. */
#include "collector/answers.h"

#include <errno.h>
#include <string.h>

#include "collector/accounts.h"
#include "collector/control.h"
#include "collector/patterns.h"

static struct proto_change request_change(const struct request *request)
{
	struct proto_change change = *(const struct proto_change *)request->body;

	proto_text(change.section);
	proto_text(change.text);
	proto_text(change.via);
	return change;
}

static struct control_author request_author(const struct request *request, const char *via)
{
	return (struct control_author){ request->uid, via };
}

static const char *section_tenant(const char *section)
{
	static const char prefix[] = "tenant ";

	return strncmp(section, prefix, sizeof(prefix) - 1) ? NULL : section + sizeof(prefix) - 1;
}

/* Done, or not and why; or names are looked up first, and the request comes again. */
static void request_done(const struct request *request, int result, const char *problem)
{
	enum { TICKET = 1 };

	if (result == CONTROL_WAITS && server_hold(request, TICKET))
		return;
	if (result == CONTROL_WAITS)
		server_fail(request, -EBUSY, "too many requests wait for names of users and groups");
	else if (result < 0)
		server_fail(request, result, "%s", problem);
	else
		server_reply(request, 0, NULL, NULL, 0);
}

/* Names that are known from an earlier request are asked for anew. */
static void request_begin(struct collector *collector, const struct request *request)
{
	if (!request->ticket)
		accounts_forget(collector);
}

static void change_make(struct collector *collector, const struct request *request,
			const struct proto_change *asked)
{
	const struct control_author author = request_author(request, asked->via);
	char problem[PROBLEM_SIZE];
	int result;

	request_begin(collector, request);
	result = control_change(collector, asked->section, asked->text, &author, problem);
	request_done(request, result, problem);
}

void answer_CHANGE_POLICY(struct collector *collector, const struct request *request)
{
	struct proto_change asked = request_change(request);
	const char *tenant = section_tenant(asked.section);

	if (tenant && strcmp(tenant, COLLECTOR_TENANT) &&
	    !policy_tenant_find(collector->effective, tenant))
		server_fail(request, -ENOENT, "there is no tenant '%s': 'rdma_intercept tenant add' adds one",
			    tenant);
	else
		change_make(collector, request, &asked);
}

void answer_TENANT_ADD(struct collector *collector, const struct request *request)
{
	struct proto_change asked = request_change(request);
	const char *tenant = section_tenant(asked.section);

	if (!tenant)
		server_fail(request, -EINVAL, "section '%s': invalid: expected tenant NAME", asked.section);
	else if (policy_tenant_find(collector->effective, tenant))
		server_fail(request, -EEXIST, "tenant '%s' exists already: 'rdma_intercept limit set' changes it",
			    tenant);
	else
		change_make(collector, request, &asked);
}

void answer_TENANT_REMOVE(struct collector *collector, const struct request *request)
{
	struct proto_change asked = request_change(request);
	const struct control_author author = request_author(request, asked.via);
	const char *tenant = section_tenant(asked.section);
	char problem[PROBLEM_SIZE];
	int result;

	if (!tenant) {
		server_fail(request, -EINVAL, "section '%s': invalid: expected tenant NAME", asked.section);
		return;
	}
	result = control_tenant_remove(collector, tenant, &author, problem);
	request_done(request, result, problem);
}

/* "", "host", "default", or a tenant that the files name. */
static bool reset_is_possible(const struct collector *collector, const struct request *request,
			      const char *section)
{
	const char *tenant = section_tenant(section);

	if (!tenant && *section && strcmp(section, "host") && strcmp(section, "default"))
		server_fail(request, -EINVAL, "[%s]: unknown section: expected host, default or tenant NAME",
			    section);
	else if (!tenant || !strcmp(tenant, COLLECTOR_TENANT) ||
		 control_names_tenant(collector, tenant) || patterns_made(collector, tenant))
		return true;
	else if (policy_tenant_find(collector->effective, tenant))
		server_fail(request, -EINVAL,
			    "tenant '%s' was added by a command: 'tenant remove' removes it, 'limit unset' "
			    "drops single keys",
			    tenant);
	else
		server_fail(request, -ENOENT, "there is no tenant '%s': 'rdma_intercept tenant add' adds one",
			    tenant);
	return false;
}

void answer_RESET_POLICY(struct collector *collector, const struct request *request)
{
	struct proto_change asked = request_change(request);
	const struct control_author author = request_author(request, asked.via);
	struct proto_reset reply = { .keys = 0 };
	char problem[PROBLEM_SIZE];
	int result;

	if (!reset_is_possible(collector, request, asked.section))
		return;
	result = control_reset(collector, asked.section, &author, &reply.keys, problem);
	if (result < 0)
		server_fail(request, result, "%s", problem);
	else
		server_reply(request, 0, &reply, NULL, 0);
}

static void reload_make(struct collector *collector, const struct request *request,
			enum reload how)
{
	const struct control_author author = request_author(request, "");

	request_begin(collector, request);
	request_done(request, control_reload(collector, how, &author), collector->problem);
}

void answer_RELOAD(struct collector *collector, const struct request *request)
{
	reload_make(collector, request, RELOAD_WHOLE);
}

void answer_REPLACE(struct collector *collector, const struct request *request)
{
	reload_make(collector, request, RELOAD_LESS);
}
