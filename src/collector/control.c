/* SPDX-License-Identifier: MIT */
/* The layers of the policy, and how they change; see control.h. */
#include "collector/control.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/notify.h"
#include "collector/accounts.h"
#include "collector/patterns.h"
#include "collector/subject.h"

/* The documented variables that speak of the host. */
static const struct {
	const char *variable;
	enum kind kind;
} host_variables[] = {
	{ "RDMA_INTERCEPT_MAX_GLOBAL_QP", KIND_qp },
	{ "RDMA_INTERCEPT_MAX_GLOBAL_MR", KIND_mr },
	{ "RDMA_INTERCEPT_MAX_GLOBAL_MEMORY", KIND_mr_bytes },
};

int control_environment(struct collector *collector, char problem[PROBLEM_SIZE])
{
	collector->environment = policy_new();
	if (!collector->environment)
		return -ENOMEM;
	for (unsigned i = 0; i < sizeof(host_variables) / sizeof(host_variables[0]); i++) {
		const char *variable = host_variables[i].variable, *value = getenv(variable);
		enum kind kind = host_variables[i].kind;
		uint64_t limit;

		if (!value)
			continue;
		if (kind_amount_parse(kind, value, strlen(value), &limit) < 0)
			return problem_set(
				-EINVAL, problem,
				"%s: invalid value '%.80s': expected a number, or unlimited",
				variable, value);
		if (policy_host_limit_set(collector->environment, kind, limit, variable) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* ---- the layers */

struct policy *control_merge(struct collector *collector, const struct policy *files,
			     const struct policy *runtime, char problem[PROBLEM_SIZE])
{
	struct policy *local = policy_merge(collector->environment, files);
	struct policy *below = local ? policy_merge(local, fleet_layer_in_force(collector)) : NULL;
	struct policy *all = below ? policy_merge(below, runtime) : NULL;
	int result = all ? 0 : -errno;

	policy_free(local);
	policy_free(below);
	if (result == 0)
		result = patterns_merge(collector, files, all);
	if (result < 0 && problem)
		problem_set(result, problem, "the policy cannot be put together: %s",
			    strerror(-result));
	if (result == 0 && problem)
		result = policy_guarantees_check(all, problem);
	if (result < 0) {
		policy_free(all);
		errno = -result;
		return NULL;
	}
	when_rules_apply(collector, all);
	return all;
}

void control_adopt(struct policy **place, struct policy *policy)
{
	policy_free(*place);
	*place = policy;
}

/* Everything that may fail when other layers are put into force; the file of the commands' layer
 * (NULL: that is not replaced) is written last. */
static int layers_prepare(struct collector *collector, const struct policy *all,
			  const struct policy *runtime, char problem[PROBLEM_SIZE])
{
	int result;

	/* At the start the policy says where the books are. */
	if (!collector->books.file)
		return 0;
	result = control_prepare(collector, all, problem);
	if (result == 0 && runtime) {
		result = policy_write(runtime, collector->runtime_path);
		if (result < 0)
			problem_set(result, problem, "%.400s: %s", collector->runtime_path,
				    strerror(-result));
	}
	if (result < 0)
		control_discard(collector);
	return result;
}

/* ---- what is told of a change */

/* Its text is one line, and says for whom it was asked. */
static void change_report(struct collector *collector, struct proto_event *event,
			  const struct control_author *author)
{
	size_t length;

	if (author) {
		event->has_author = 1;
		event->uid = author->uid;
	}
	for (char *at = event->text; *at; at++)
		if ((unsigned char)*at < ' ')
			*at = ' ';
	for (length = strlen(event->text); length && event->text[length - 1] == ' '; length--)
		event->text[length - 1] = '\0';
	if (author && *author->via)
		snprintf(event->text + length, sizeof(event->text) - length, " (%s)", author->via);
	collector_event(collector, event);
	if (author)
		log_write(&collector->log, LOG_INFO, "changed by uid %u: %s", (unsigned)author->uid,
			  event->text);
}

/* ---- the files */

static bool files_were_read(const struct collector *collector)
{
	return collector->files && collector->files->file[0];
}

/* Who edits a file may take it away, empty it or write a part of it for a moment, and a disk that
 * is full or a copy that was stopped leave the same behind. None of it lifts a limit. */
static int files_check(const struct collector *collector, const struct policy *files,
		       char problem[PROBLEM_SIZE])
{
	char missing[PROBLEM_SIZE];

	if (!files_were_read(collector))
		return 0;
	if (files->cut[0])
		return problem_set(
			-EINVAL, problem,
			"%s: the last line has no newline at its end: the file may be cut",
			files->cut);
	if (!policy_lacks(files, collector->files, missing))
		return 0;
	return problem_set(
		-EINVAL, problem,
		"%.200s: %.160s: complete it, or accept it with 'rdma_intercept reload --replace'",
		collector->policy_path, missing);
}

static int files_read(struct collector *collector, enum reload how, struct policy **ret_files,
		      char problem[PROBLEM_SIZE])
{
	struct policy *files = policy_new();
	int result = files ? policy_read(files, collector->policy_path, problem) : -ENOMEM;

	if (accounts_are_awaited(collector) && result == 0)
		result = CONTROL_WAITS;
	if (result == -ENOENT && (how == RELOAD_LESS ||
				  (!collector->policy_must_exist && !files_were_read(collector)))) {
		problem[0] = '\0';
		result = 0;
	}
	if (result == 0 && how == RELOAD_WHOLE)
		result = files_check(collector, files, problem);
	if (result) {
		policy_free(files);
		return result;
	}
	*ret_files = files;
	return 0;
}

int control_read_own(struct collector *collector, const char *path, bool runtime,
		     struct policy **ret_policy, char problem[PROBLEM_SIZE])
{
	struct policy *policy;
	int result;

	do {
		policy = policy_new();
		result = policy ? policy_read_file(policy, path, runtime, problem) : -ENOMEM;
		if (accounts_are_awaited(collector) && result == 0)
			result = CONTROL_WAITS;
		if (result)
			policy_free(policy);
	} while (result == CONTROL_WAITS);
	if (result == 0)
		*ret_policy = policy;
	return result;
}

static void reload_report(struct collector *collector, int result,
			  const struct control_author *author)
{
	struct proto_event event = { .type = result < 0 ? EVENT_RELOAD_FAILED : EVENT_RELOADED };
	char text[PROBLEM_SIZE + POLICY_PATH];

	snprintf(event.text, sizeof(event.text), "%.250s",
		 result < 0 ? collector->problem : collector->files->file);
	change_report(collector, &event, author);
	if (result < 0)
		snprintf(text, sizeof(text), "%s; %s", collector->problem,
			 !collector->files     ? "there is no earlier policy" :
			 collector->books.file ? "the old policy stays" :
						 "the last good policy is used");
	else if (collector->files->file[0])
		snprintf(text, sizeof(text), "policy %s is in force", collector->files->file);
	else
		snprintf(text, sizeof(text), "there is no policy file %s", collector->policy_path);
	log_write(&collector->log, result < 0 ? LOG_ERROR : LOG_INFO, "%s", text);
	notify_status(text);
}

/* Puts other files into force. Takes them over, or frees them. */
static int files_replace(struct collector *collector, struct policy *files,
			 char problem[PROBLEM_SIZE])
{
	struct policy *all = control_merge(collector, files, collector->runtime, problem);
	int result = all ? layers_prepare(collector, all, NULL, problem) : -errno;

	if (result < 0) {
		policy_free(files);
		policy_free(all);
		return result;
	}
	control_adopt(&collector->files, files);
	control_adopt(&collector->effective, all);
	collector->reloads++;
	if (collector->books.file) {
		control_keep(collector);
		control_apply(collector);
	}
	return 0;
}

int control_reload(struct collector *collector, enum reload how,
		   const struct control_author *author)
{
	char problem[PROBLEM_SIZE] = "";
	struct policy *files = NULL;
	int result;

	do
		result = files_read(collector, how, &files, problem);
	while (result == CONTROL_WAITS && !collector->server);
	if (result == CONTROL_WAITS)
		return result;
	if (result == 0)
		result = files_replace(collector, files, problem);
	if (result < 0 && !problem[0])
		snprintf(problem, sizeof(problem), "%s: %s", collector->policy_path,
			 strerror(-result));
	memcpy(collector->problem, problem, sizeof(problem));
	reload_report(collector, result, author);
	return result;
}

/* ---- the commands' layer */

static int change_no_memory(char problem[PROBLEM_SIZE])
{
	return problem_set(-ENOMEM, problem, "no memory");
}

/* Puts another layer of the commands into force. Takes it over, or frees it. */
static int runtime_replace(struct collector *collector, struct policy *runtime,
			   char problem[PROBLEM_SIZE])
{
	struct policy *all = control_merge(collector, collector->files, runtime, problem);
	int result = all ? layers_prepare(collector, all, runtime, problem) : -errno;

	if (result < 0) {
		policy_free(all);
		policy_free(runtime);
		return result;
	}
	control_adopt(&collector->runtime, runtime);
	control_adopt(&collector->effective, all);
	control_apply(collector);
	return 0;
}

int control_renew(struct collector *collector, bool checked, char problem[PROBLEM_SIZE])
{
	struct policy *all = control_merge(collector, collector->files, collector->runtime,
					   checked ? problem : NULL);
	int result = all ? layers_prepare(collector, all, NULL, problem) : -errno;

	if (!all && !checked)
		problem_set(result, problem, "the policy cannot be put together: %s",
			    strerror(-result));
	if (result < 0) {
		log_write(&collector->log, LOG_ERROR, "%s; the old policy stays", problem);
		policy_free(all);
		return result;
	}
	control_adopt(&collector->effective, all);
	if (collector->books.file)
		control_apply(collector);
	return 0;
}

bool control_names_tenant(const struct collector *collector, const char *name)
{
	const struct policy *fleet = fleet_layer_in_force(collector);

	return (collector->files && policy_tenant_find(collector->files, name)) ||
	       (fleet && policy_tenant_find(fleet, name));
}

/* What commands can go over. */
static struct policy_below control_below(const struct collector *collector)
{
	return (struct policy_below){ collector->files, collector->effective, COLLECTOR_TENANT };
}

/* Without the tenant that it is to be within, it would have wider limits than was meant. */
static int within_verify(const struct collector *collector, const struct policy_tenant *tenant,
			 char problem[PROBLEM_SIZE])
{
	const struct policy_tenant *base = policy_tenant_find(collector->effective, tenant->within);

	if (!base && strcmp(tenant->within, COLLECTOR_TENANT) != 0)
		return problem_set(-EINVAL, problem, "within: there is no tenant or pattern '%s'",
				   tenant->within);
	if (base && base->pattern)
		return problem_set(-EINVAL, problem,
				   "within: tenant '%s' ends with its last process: expected its "
				   "pattern '%s'",
				   base->name, base->pattern->name);
	for (; base; base = base->base)
		if (!strcmp(base->name, tenant->name))
			return problem_set(-EINVAL, problem,
					   "within: tenant '%s' is within tenant '%s' already",
					   tenant->within, tenant->name);
	return 0;
}

/* What an earlier change has set stays, whatever has become of the other tenant. */
static int within_check_names(const struct collector *collector, const struct policy *runtime,
			      char problem[PROBLEM_SIZE])
{
	for (const struct policy_tenant *tenant = runtime->tenants; tenant; tenant = tenant->next) {
		const struct policy_tenant *earlier =
			policy_tenant_find(collector->runtime, tenant->name);
		int result = 0;

		if (tenant->within[0] && (!earlier || strcmp(earlier->within, tenant->within) != 0))
			result = within_verify(collector, tenant, problem);
		if (result < 0)
			return result;
	}
	return 0;
}

static const char *within_find(const struct policy *policy, const char *name)
{
	const struct policy_tenant *tenant = policy->tenants;

	while (tenant && strcmp(tenant->within, name) != 0)
		tenant = tenant->next;
	return tenant ? tenant->name : NULL;
}

int control_change(struct collector *collector, const char *section, const char *text,
		   const struct control_author *author, char problem[PROBLEM_SIZE])
{
	const struct policy_below below = control_below(collector);
	struct policy *runtime = policy_merge(collector->runtime, NULL);
	struct proto_event event = { .type = EVENT_LIMITS };
	int result;

	if (!runtime)
		return change_no_memory(problem);
	result = policy_change(runtime, section, text, problem);
	if (result == 0)
		result = within_check_names(collector, runtime, problem);
	if (accounts_are_awaited(collector) && result == 0)
		result = CONTROL_WAITS;
	if (result) {
		policy_free(runtime);
		return result;
	}
	policy_prune(runtime, &below);
	result = runtime_replace(collector, runtime, problem);
	if (result < 0)
		return result;
	snprintf(event.text, sizeof(event.text), "[%s] %.100s", section, text);
	change_report(collector, &event, author);
	return 0;
}

unsigned control_overrides(const struct collector *collector)
{
	const struct policy_below below = control_below(collector);

	return policy_overrides(collector->runtime, &below, "");
}

int control_reset(struct collector *collector, const char *section,
		  const struct control_author *author, unsigned *ret_keys,
		  char problem[PROBLEM_SIZE])
{
	struct proto_event event = { .type = EVENT_LIMITS };
	const struct policy_below below = control_below(collector);
	struct policy *runtime = policy_merge(collector->runtime, NULL);
	int result;

	if (!runtime)
		return change_no_memory(problem);
	*ret_keys = policy_reset(runtime, &below, section);
	if (!*ret_keys) {
		policy_free(runtime);
		return 0;
	}
	result = runtime_replace(collector, runtime, problem);
	if (result < 0)
		return result;
	snprintf(event.text, sizeof(event.text), "%s%s%sreset: keys of commands dropped: %u",
		 *section ? "[" : "", section, *section ? "] " : "", *ret_keys);
	change_report(collector, &event, author);
	return 0;
}

int control_tenant_remove(struct collector *collector, const char *name,
			  const struct control_author *author, char problem[PROBLEM_SIZE])
{
	const char *inner = within_find(collector->effective, name);
	struct proto_event event = { .type = EVENT_LIMITS };
	struct policy *runtime;
	int result;

	if (!strcmp(name, COLLECTOR_TENANT))
		return problem_set(-EINVAL, problem,
				   "tenant '%s' is built in, and cannot be removed", name);
	if (control_names_tenant(collector, name))
		return problem_set(
			-EINVAL, problem,
			"tenant '%s' is in the policy file: remove its section there", name);
	if (patterns_made(collector, name))
		return problem_set(-EINVAL, problem,
				   "tenant '%s': cannot be removed: its pattern has made it, and it "
				   "ends with its last process",
				   name);
	if (inner)
		return problem_set(-EBUSY, problem,
				   "tenant '%s': cannot be removed: it bounds tenant '%s': remove that "
				   "one, or its key within, first",
				   name, inner);
	runtime = policy_merge(collector->runtime, NULL);
	if (!runtime)
		return change_no_memory(problem);
	result = policy_remove_tenant(runtime, name);
	if (result < 0) {
		problem_set(result, problem,
			    "there is no tenant '%s': 'rdma_intercept show tenants' lists the tenants",
			    name);
		policy_free(runtime);
		return result;
	}
	result = runtime_replace(collector, runtime, problem);
	if (result < 0)
		return result;
	snprintf(event.text, sizeof(event.text), "tenant %s removed", name);
	change_report(collector, &event, author);
	return 0;
}

/* ---- the rules */

int control_tenant_of(struct collector *collector, const struct subject *subject,
		      const char **ret_reason)
{
	char name[NAME_SIZE];
	const struct policy_rule *rule =
		policy_match_tenant(collector->effective, &subject->policy, name);
	int tenant;

	if (rule && policy_name_is_pattern(rule->tenant->name))
		return patterns_tenant(collector, rule->tenant, name, ret_reason);
	tenant = control_tenant(collector, name);
	if (tenant < 0)
		*ret_reason = strerror(-tenant);
	return tenant;
}
