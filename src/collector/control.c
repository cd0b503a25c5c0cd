/* SPDX-License-Identifier: MIT */
/* The layers of the policy, and what is put into force; see collector.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/collector.h"
#include "collector/grants.h"
#include "collector/limits.h"
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

int control_environment(struct collector *collector, char problem[POLICY_PROBLEM])
{
	collector->environment = policy_new();
	if (!collector->environment)
		return -ENOMEM;
	for (unsigned i = 0; i < sizeof(host_variables) / sizeof(host_variables[0]); i++) {
		const char *value = getenv(host_variables[i].variable);
		enum kind kind = host_variables[i].kind;
		uint64_t *limit = &collector->environment->host.total[kind];

		if (value && size_parse(value, strlen(value), 1, kind_rows[kind].unit == UNIT_BYTES,
					limit) < 0) {
			snprintf(problem, POLICY_PROBLEM,
				 "%s='%.80s' is not valid (allowed: a number, or unlimited)",
				 host_variables[i].variable, value);
			return -EINVAL;
		}
	}
	return 0;
}

/* ---- tenants and devices */

static const char *device_name(const struct collector *collector, unsigned device)
{
	const char *name = collector->books.file->device[device].name;

	return name[0] ? name : NULL;
}

static bool is_named(const struct policy *policy, const char *tenant)
{
	return !strcmp(tenant, COLLECTOR_TENANT) || policy_tenant_find(policy, tenant);
}

/* Every tenant that the policy names is on the books, and COLLECTOR_TENANT; others only while
 * they have members. Whether there is room for them all. */
static int tenants_fit(const struct collector *collector, const struct policy *policy,
		       char problem[POLICY_PROBLEM])
{
	const struct books *books = &collector->books;
	unsigned count = !policy_tenant_find(policy, COLLECTOR_TENANT);

	for (const struct policy_tenant *tenant = policy->tenants; tenant; tenant = tenant->next)
		count++;
	for (unsigned i = 0; i < BOOKS_TENANTS; i++)
		count += books->tenant[i] && books->tenant[i]->members &&
			 !is_named(policy, books->file->tenant[i].name);
	if (count <= BOOKS_TENANTS)
		return 0;
	snprintf(problem, POLICY_PROBLEM,
		 "too many tenants: %u, with '" COLLECTOR_TENANT "' and those that still have "
		 "processes: expected at most %u",
		 count, (unsigned)BOOKS_TENANTS);
	return -ENOSPC;
}

/* First those go that nobody needs: there is room for as many as tenants_fit allows. */
static int tenants_match(struct collector *collector)
{
	struct books *books = &collector->books;
	int result;

	for (unsigned i = 0; i < BOOKS_TENANTS; i++)
		if (books->tenant[i] && !books->tenant[i]->members &&
		    !is_named(collector->effective, books->file->tenant[i].name))
			books_tenant_drop(books, i);
	result = books_tenant(books, COLLECTOR_TENANT);
	for (struct policy_tenant *tenant = collector->effective->tenants; tenant && result >= 0;
	     tenant = tenant->next)
		result = books_tenant(books, tenant->name);
	return result < 0 ? result : 0;
}

/* Devices that somebody limits have their numbers before anybody uses them. */
static void devices_name(struct books *books, const struct policy_limits *limits)
{
	for (unsigned i = 0; i < limits->devices; i++)
		books_device(books, limits->device[i].name);
}

static void devices_match(struct collector *collector)
{
	const struct policy *policy = collector->effective;

	devices_name(&collector->books, &policy->host);
	devices_name(&collector->books, &policy->fallback.all);
	devices_name(&collector->books, &policy->fallback.process);
	for (const struct policy_tenant *tenant = policy->tenants; tenant; tenant = tenant->next) {
		devices_name(&collector->books, &tenant->all);
		devices_name(&collector->books, &tenant->process);
	}
}

int control_apply(struct collector *collector)
{
	int result = tenants_match(collector);

	collector->policies++;
	devices_match(collector);
	limits_apply(collector);
	grants_enforce(&collector->books);
	guards_apply(collector);
	return result;
}

/* A name that nobody vouches for must not use up the numbers of real devices. */
static bool may_be_named(const struct collector *collector, const char *name, unsigned known)
{
	char path[sizeof("/sys/class/infiniband/") + LEDGER_DEVICE_NAME];

	if (known < LEDGER_DEVICES / 2)
		return true;
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s", name);
	return !strchr(name, '/') && !access(path, F_OK);
}

unsigned control_device(struct collector *collector, const char *name)
{
	unsigned known = 1, device;

	while (known < LEDGER_DEVICES && device_name(collector, known)) {
		if (!strcmp(device_name(collector, known), name))
			return known;
		known++;
	}
	if (!name[0] || !may_be_named(collector, name, known))
		return LEDGER_NAMELESS;
	device = books_device(&collector->books, name);
	if (device != LEDGER_NAMELESS)
		limits_apply_device(collector, device);
	return device;
}

/* ---- the layers */

/* The three layers as one, with others in place of files and runtime. */
static struct policy *layers_merge(const struct collector *collector, const struct policy *files,
				   const struct policy *runtime)
{
	struct policy *below = policy_merge(collector->environment, files);
	struct policy *all = below ? policy_merge(below, runtime) : NULL;

	policy_free(below);
	return all;
}

static void adopt(struct policy **place, struct policy *policy)
{
	policy_free(*place);
	*place = policy;
}

static bool had_policy(const struct collector *collector)
{
	return collector->files && collector->files->file[0];
}

/* Who edits a file may take it away, empty it or write a part of it for a moment, and a disk that
 * is full or a copy that was stopped leave the same behind. None of it lifts a limit. */
static int files_check(const struct collector *collector, const struct policy *files,
		       char problem[POLICY_PROBLEM])
{
	char missing[POLICY_PROBLEM];

	if (!had_policy(collector))
		return 0;
	if (files->cut[0]) {
		snprintf(problem, POLICY_PROBLEM,
			 "%s: the last line has no newline at its end: the file may be cut",
			 files->cut);
		return -EINVAL;
	}
	if (!policy_lacks(files, collector->files, missing))
		return 0;
	snprintf(problem, POLICY_PROBLEM,
		 "%.200s: %.160s: complete it, or accept it with 'rdma_intercept reload --replace'",
		 collector->policy_path, missing);
	return -EINVAL;
}

static int files_read(struct collector *collector, enum reload how, struct policy **ret_files,
		      char problem[POLICY_PROBLEM])
{
	struct policy *files = policy_new();
	int result = files ? policy_read(files, collector->policy_path, problem) : -ENOMEM;

	if (result == -ENOENT &&
	    (how == RELOAD_LESS || (!collector->policy_must_exist && !had_policy(collector)))) {
		problem[0] = '\0';
		result = 0;
	}
	if (result == 0 && how == RELOAD_WHOLE)
		result = files_check(collector, files, problem);
	if (result < 0) {
		policy_free(files);
		return result;
	}
	*ret_files = files;
	return 0;
}

static void report_reload(struct collector *collector, int result)
{
	struct proto_event event = { .type = result < 0 ? EVENT_RELOAD_FAILED : EVENT_RELOADED };

	snprintf(event.text, sizeof(event.text), "%.250s",
		 result < 0 ? collector->problem : collector->files->file);
	collector_event(collector, &event);
	if (result < 0)
		log_write(&collector->log, LOG_ERROR, "%s; %s", collector->problem,
			  !collector->files	 ? "there is no earlier policy" :
			  collector->books.file ? "the old policy stays" :
						  "the last good policy is used");
	else if (collector->files->file[0])
		log_write(&collector->log, LOG_INFO, "policy %s is in force",
			  collector->files->file);
	else
		log_write(&collector->log, LOG_INFO, "there is no policy file %s",
			  collector->policy_path);
}

/* ---- the last good policy */

/* Whether nobody else can have put something there. */
static int directory_check(const char *directory)
{
	struct stat status;

	if (lstat(directory, &status))
		return -errno;
	return S_ISDIR(status.st_mode) && status.st_uid == geteuid() && !(status.st_mode & 022) ?
		       0 :
		       -EPERM;
}

/* A name that tells which policy file it is a copy of. */
static int good_name(struct collector *collector, const char *directory)
{
	int length = snprintf(collector->good_path, sizeof(collector->good_path),
			      "%.250s/" CONTROL_GOOD "%s", directory, collector->policy_path);

	if (length >= (int)sizeof(collector->good_path))
		return -ENAMETOOLONG;
	for (char *at = collector->good_path + strlen(directory) + 1; (at = strchr(at, '/'));)
		*at = ':';
	return 0;
}

void control_recall(struct collector *collector, const char *directory)
{
	struct policy *good = policy_new();
	char problem[POLICY_PROBLEM] = "";
	int result = good ? good_name(collector, directory) : -ENOMEM;

	if (result == 0)
		result = directory_check(directory);
	if (result == 0)
		result = policy_read_file(good, collector->good_path, false, problem);
	if (result == 0) {
		snprintf(good->file, sizeof(good->file), "%.255s", collector->good_path);
		adopt(&collector->files, good);
		return;
	}
	policy_free(good);
	if (result != -ENOENT)
		log_write(&collector->log, LOG_ERROR, "the last good policy is lost: %s",
			  problem[0] ? problem : strerror(-result));
}

void control_keep(struct collector *collector)
{
	char directory[sizeof(collector->good_path)];
	int result;

	snprintf(directory, sizeof(directory), "%.*s",
		 (int)(strrchr(collector->good_path, '/') - collector->good_path),
		 collector->good_path);
	if (mkdir(directory, 0700) && errno != EEXIST)
		result = -errno;
	else
		result = directory_check(directory);
	if (result == 0 && !strcmp(collector->files->file, collector->policy_path))
		result = policy_write(collector->files, collector->good_path);
	else if (result == 0 && !collector->files->file[0] && unlink(collector->good_path) &&
		 errno != ENOENT)
		result = -errno;
	if (result < 0)
		log_write(&collector->log, LOG_WARN,
			  "%s: %s: a collector that starts with a bad policy will not have this one",
			  collector->good_path, strerror(-result));
}

int control_reload(struct collector *collector, enum reload how)
{
	struct policy *files = NULL, *all = NULL;
	int result;

	collector->problem[0] = '\0';
	result = files_read(collector, how, &files, collector->problem);
	if (result == 0) {
		all = layers_merge(collector, files, collector->runtime);
		if (!all)
			result = -errno;
		else if (collector->books.file)
			result = tenants_fit(collector, all, collector->problem);
	}
	if (result < 0) {
		policy_free(files);
		policy_free(all);
		if (!collector->problem[0])
			snprintf(collector->problem, sizeof(collector->problem), "%s: %s",
				 collector->policy_path, strerror(-result));
	} else {
		adopt(&collector->files, files);
		adopt(&collector->effective, all);
		collector->reloads++;
		/* At start the policy says where the books are. */
		if (collector->books.file) {
			control_keep(collector);
			result = control_apply(collector);
		}
		if (result < 0)
			snprintf(collector->problem, sizeof(collector->problem),
				 "%s: not every tenant has room on the books: %s",
				 collector->policy_path, strerror(-result));
	}
	report_reload(collector, result);
	return result;
}

/* Another runtime layer: kept in its file first, then in force. Takes it over, or frees it. */
static int runtime_replace(struct collector *collector, struct policy *runtime,
			   char problem[POLICY_PROBLEM])
{
	struct policy *all = layers_merge(collector, collector->files, runtime);
	int result;

	problem[0] = '\0';
	result = all ? tenants_fit(collector, all, problem) : -errno;
	if (result == 0)
		result = policy_write(runtime, collector->runtime_path);
	if (result < 0) {
		if (!problem[0])
			snprintf(problem, POLICY_PROBLEM, "%.400s: %s", collector->runtime_path,
				 strerror(-result));
		policy_free(all);
		policy_free(runtime);
		return result;
	}
	adopt(&collector->runtime, runtime);
	adopt(&collector->effective, all);
	result = control_apply(collector);
	if (result < 0)
		snprintf(problem, POLICY_PROBLEM,
			 "it is in force, but not for every tenant: the books: %s",
			 strerror(-result));
	return result;
}

static int no_memory(char problem[POLICY_PROBLEM])
{
	snprintf(problem, POLICY_PROBLEM, "no memory");
	return -ENOMEM;
}

int control_change(struct collector *collector, const char *section, const char *text,
		   char problem[POLICY_PROBLEM])
{
	struct policy *runtime = policy_merge(collector->runtime, NULL);
	struct proto_event event = { .type = EVENT_LIMITS };
	int result;

	if (!runtime)
		return no_memory(problem);
	result = policy_change(runtime, section, text, problem);
	if (result < 0) {
		policy_free(runtime);
		return result;
	}
	result = runtime_replace(collector, runtime, problem);
	if (result < 0)
		return result;
	snprintf(event.text, sizeof(event.text), "[%s] %.200s", section, text);
	for (char *at = event.text; (at = strchr(at, '\n'));)
		*at = ' ';
	collector_event(collector, &event);
	return 0;
}

int control_tenant_remove(struct collector *collector, const char *name,
			  char problem[POLICY_PROBLEM])
{
	struct proto_event event = { .type = EVENT_LIMITS };
	struct policy *runtime;
	int result;

	if (policy_tenant_find(collector->files, name)) {
		snprintf(problem, POLICY_PROBLEM,
			 "tenant '%s' is named by the policy file, and to be removed there", name);
		return -EINVAL;
	}
	runtime = policy_merge(collector->runtime, NULL);
	if (!runtime)
		return no_memory(problem);
	result = policy_remove_tenant(runtime, name);
	if (result < 0) {
		snprintf(problem, POLICY_PROBLEM, "there is no tenant '%s'", name);
		policy_free(runtime);
		return result;
	}
	result = runtime_replace(collector, runtime, problem);
	if (result < 0)
		return result;
	snprintf(event.text, sizeof(event.text), "tenant %s removed", name);
	collector_event(collector, &event);
	return 0;
}

const char *control_tenant_name(const struct collector *collector, const struct subject *subject)
{
	const struct policy_rule *rule = policy_match(collector->effective, &subject->policy);

	return rule ? rule->tenant->name : COLLECTOR_TENANT;
}
