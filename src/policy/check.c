/* SPDX-License-Identifier: MIT */
/*
 * The checks of a policy that was read: for each row WARNING of checks.def the function that looks
 * for it. They change nothing, and tell only what is certain.
 */
#include "policy/check.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/translation.h"
#include "policy/conditions.h"
#include "policy/guarantees.h"
#include "policy/pattern.h"
#include "policy/reader.h"
#include "terms/verdict.h"

#define MISTAKE(name, text)
#define WARNING(name, text)                                                                          \
	static void policy_check_##name(const struct policy *policy, const char *devices);
#include "policy/checks.def"
#undef MISTAKE
#undef WARNING

const struct policy_check policy_checks[POLICY_CHECKS] = {
#define MISTAKE(name, text) { #name, text, NULL },
#define WARNING(name, text) { #name, text, policy_check_##name },
#include "policy/checks.def"
#undef MISTAKE
#undef WARNING
};

bool policy_check_is_error(enum policy_check_number number)
{
	return !policy_checks[number].look;
}

/* The line that has set a value of a tenant: in its section, or in [default]; or else the title of
 * its section. */
static struct policy_mark tenant_line(const struct policy *policy,
				      const struct policy_tenant *tenant,
				      enum policy_key_number number,
				      const struct policy_place *place)
{
	const struct policy_report *report = policy->report;
	const struct policy_key *key = &policy_keys[number];
	const struct policy_mark *mark = policy_report_find(report, tenant, key, place);

	if (!mark)
		mark = policy_report_find(report, &policy->fallback, key, place);
	if (!mark)
		mark = policy_report_find(report, tenant, NULL, NULL);
	return mark ? *mark : (struct policy_mark){ .file = policy->file };
}

/* ---- tenants and match lines */

static bool tenant_has_rule(const struct policy *policy, const struct policy_tenant *tenant,
			    bool in_kernel)
{
	for (const struct policy_rule *rule = policy->rules; rule; rule = rule->next)
		if (rule->tenant == tenant && (!in_kernel || policy_rule_in_kernel(rule)))
			return true;
	return false;
}

/* A match line of it is wrong, so that it is not known what the tenant will have. */
static bool tenant_has_invalid_match(const struct policy *policy,
				     const struct policy_tenant *tenant)
{
	for (const struct policy_mark *mark = policy->report->marks; mark; mark = mark->next)
		if (mark->tenant == tenant && mark->key == &policy_keys[POLICY_KEY_match] &&
		    mark->invalid)
			return true;
	return false;
}

/* A section of a single job or user beside a pattern: the pattern has its match lines. */
static bool name_is_of_pattern(const struct policy *policy, const struct policy_tenant *tenant)
{
	for (const struct policy_tenant *pattern = policy->tenants; pattern;
	     pattern = pattern->next)
		if (pattern != tenant && policy_pattern_fits(pattern->name, tenant->name))
			return true;
	return false;
}

static void policy_check_tenant_without_match(const struct policy *policy, const char *devices)
{
	for (const struct policy_tenant *tenant = policy->tenants; tenant; tenant = tenant->next) {
		struct policy_mark mark;

		if (!strcmp(tenant->name, TENANT_OTHERS) || name_is_of_pattern(policy, tenant) ||
		    tenant_has_rule(policy, tenant, false) ||
		    tenant_has_invalid_match(policy, tenant))
			continue;
		mark = tenant_line(policy, tenant, POLICY_KEY_match, NULL);
		policy_report_add(policy->report, POLICY_CHECK_tenant_without_match, mark.file,
				  mark.line,
				  "tenant '%s' has no match line: no process belongs to it: expected a "
				  "line such as match = %s",
				  tenant->name, policy_pattern_example(tenant->name));
	}
}

/* Its source is "FILE:LINE". */
static struct policy_mark rule_line(const struct policy *policy, const struct policy_rule *rule)
{
	const struct policy_mark *found = NULL;

	for (const struct policy_mark *mark = policy->report->marks; mark; mark = mark->next) {
		size_t length = strlen(mark->file);

		if (mark->key == &policy_keys[POLICY_KEY_match] && !mark->invalid &&
		    !strncmp(rule->source, mark->file, length) && rule->source[length] == ':' &&
		    strtoul(rule->source + length + 1, NULL, 10) == mark->line)
			found = mark;
	}
	return found ? *found : (struct policy_mark){ .file = policy->file };
}

static void policy_check_shadowed_match(const struct policy *policy, const char *devices)
{
	const struct policy_rule *rule, *earlier;

	for (rule = policy->rules; rule; rule = rule->next) {
		struct policy_mark line;

		for (earlier = policy->rules; earlier != rule; earlier = earlier->next)
			if (policy_rule_covers(earlier, rule))
				break;
		/* In the same tenant it is only needless. */
		if (earlier == rule || earlier->tenant == rule->tenant)
			continue;
		line = rule_line(policy, rule);
		policy_report_add(policy->report, POLICY_CHECK_shadowed_match, line.file, line.line,
				  policy_rule_covers(rule, earlier) ?
					  N_("match: has no effect: %s gives the same processes to "
					     "tenant '%s': expected one of the two lines") :
					  N_("match: has no effect: %s gives all these processes to "
					     "tenant '%s' before: expected the narrower line first"),
				  earlier->source, earlier->tenant->name);
	}
}

static void policy_check_guard_without_cgroup(const struct policy *policy, const char *devices)
{
	for (const struct policy_tenant *tenant = policy->tenants; tenant; tenant = tenant->next) {
		struct policy_mark mark;

		/* A tenant without any match line has a warning of its own. */
		if (!policy_tenant_guard(policy, tenant) ||
		    !tenant_has_rule(policy, tenant, false) ||
		    (tenant_has_rule(policy, tenant, true) &&
		     !policy_name_is_pattern(tenant->name)) ||
		    tenant_has_invalid_match(policy, tenant))
			continue;
		mark = tenant_line(policy, tenant, POLICY_KEY_guard, NULL);
		policy_report_add(policy->report, POLICY_CHECK_guard_without_cgroup, mark.file,
				  mark.line,
				  "guard: the kernel cannot guard tenant '%s': expected a match line of "
				  "it that contains only cgroup=...",
				  tenant->name);
	}
}

static void policy_check_guard_not_enforced(const struct policy *policy, const char *devices)
{
	for (const struct policy_tenant *tenant = policy->tenants; tenant; tenant = tenant->next) {
		enum mode mode = policy_tenant_mode(policy, tenant);
		struct policy_mark mark;

		if (!policy_tenant_guard(policy, tenant) ||
		    verdict_at_limit(LIMIT_OF_POLICY, mode, mode) == VERDICT_REFUSED)
			continue;
		mark = tenant_line(policy, tenant, POLICY_KEY_guard, NULL);
		policy_report_add(policy->report, POLICY_CHECK_guard_not_enforced, mark.file,
				  mark.line,
				  "guard: the kernel refuses nothing of tenant '%s', since its mode is "
				  "%s: expected mode = enforce",
				  tenant->name, mode_names[mode]);
	}
}

static void policy_check_within_unknown(const struct policy *policy, const char *devices)
{
	for (const struct policy_tenant *tenant = policy->tenants; tenant; tenant = tenant->next) {
		struct policy_mark mark;

		if (!tenant->within[0] || tenant->base)
			continue;
		mark = tenant_line(policy, tenant, POLICY_KEY_within, NULL);
		policy_report_add(policy->report, POLICY_CHECK_within_unknown, mark.file, mark.line,
				  policy_tenant_find(policy, tenant->within) ?
					  N_("within: has no effect: '%s' is itself within tenant '%s': "
					     "expected a tenant or pattern that is not") :
					  N_("within: has no effect: there is no section [tenant %s] to "
					     "bound tenant '%s': expected the name of a tenant or pattern"),
				  tenant->within, tenant->name);
	}
}

/* ---- devices */

enum { HOST_DEVICES = 256 };

/* What the host has. */
struct host_devices {
	unsigned count;
	char name[HOST_DEVICES][NAME_SIZE];
};

static void host_devices_read(const char *path, struct host_devices *ret_devices)
{
	DIR *directory = opendir(path);
	struct dirent *entry;

	ret_devices->count = 0;
	while (directory && ret_devices->count < HOST_DEVICES && (entry = readdir(directory)))
		if (entry->d_name[0] != '.' && strlen(entry->d_name) < NAME_SIZE)
			strcpy(ret_devices->name[ret_devices->count++], entry->d_name);
	if (directory)
		closedir(directory);
}

/* Whether one of them has the name, or fits the pattern. */
static bool host_devices_have(const struct host_devices *devices, const char *pattern)
{
	for (unsigned i = 0; i < devices->count; i++)
		if (settings_device_matches(pattern, devices->name[i]))
			return true;
	return false;
}

static void device_warn(const struct policy *policy, const struct policy_mark *mark,
			const char *key, const char *device)
{
	policy_report_add(policy->report, POLICY_CHECK_unknown_device, mark->file, mark->line,
			  "%s: this host has no device '%s': 'rdma_intercept doctor' lists its devices",
			  key, device);
}

/* The names in keys such as device.NAME.qp; each once for a key of a section. */
static void section_devices_check(const struct policy *policy, const struct policy_key *key,
				  const void *structure, const struct policy_tenant *tenant,
				  const struct host_devices *devices)
{
	struct policy_place place = { .next = 0 };
	char before[NAME_SIZE] = "", name[POLICY_KEY_NAME];

	while (policy_key_next(key, structure, &place)) {
		const struct policy_mark *mark;

		if (!place.device[0] || !strcmp(place.device, before) ||
		    host_devices_have(devices, place.device))
			continue;
		strcpy(before, place.device);
		mark = policy_report_find(policy->report, tenant, key, &place);
		policy_key_print(key, &place, name);
		if (mark)
			device_warn(policy, mark, name, place.device);
	}
}

/* devices = PATTERN...: each that fits no device. */
static void patterns_check(const struct policy *policy, const struct policy_tenant *tenant,
			   const struct host_devices *devices)
{
	const struct policy_key *key = &policy_keys[POLICY_KEY_devices];
	const char *patterns = policy_key_get(key, tenant, NULL);
	const struct policy_mark *mark = policy_report_find(policy->report, tenant, key, NULL);
	char copy[SETTINGS_DEVICES], *rest = copy, *pattern;

	if (!patterns || !mark)
		return;
	strcpy(copy, patterns);
	while ((pattern = strsep(&rest, " ")))
		if (*pattern && !host_devices_have(devices, pattern))
			device_warn(policy, mark, key->name, pattern);
}

static void tenant_devices_check(const struct policy *policy, const struct policy_tenant *tenant,
				 const struct host_devices *devices)
{
	for (const struct policy_key *key = policy_keys; key < policy_keys + POLICY_KEYS; key++)
		if (key->sections & POLICY_OF_TENANT && key->type->shape == POLICY_PER_KIND)
			section_devices_check(policy, key, tenant, tenant, devices);
	patterns_check(policy, tenant, devices);
}

static void policy_check_unknown_device(const struct policy *policy, const char *path)
{
	struct host_devices devices;

	host_devices_read(path, &devices);
	if (!devices.count)
		return;
	section_devices_check(policy, &policy_keys[POLICY_KEY_host], policy, NULL, &devices);
	tenant_devices_check(policy, &policy->fallback, &devices);
	for (const struct policy_tenant *tenant = policy->tenants; tenant; tenant = tenant->next)
		tenant_devices_check(policy, tenant, &devices);
}

/* ---- limits */

/* The lowest limit of the host above a place, and whose it is. */
static uint64_t place_limit(const struct policy *policy, const struct policy_place *place,
			    const char **ret_whose)
{
	uint64_t in_total = policy_limit(&policy->host, NULL, place->kind);
	uint64_t on_device = place->device[0] ?
				     policy_limit(&policy->host, place->device, place->kind) :
				     UNLIMITED;

	*ret_whose = on_device < in_total ? _("the device") : _("the host");
	return on_device < in_total ? on_device : in_total;
}

static void section_limits_check(const struct policy *policy, const struct policy_tenant *tenant,
				 enum policy_key_number number)
{
	const struct policy_key *key = &policy_keys[number];
	struct policy_place place = { .next = 0 };
	const uint64_t *amount;

	while ((amount = policy_key_next(key, tenant, &place))) {
		char name[POLICY_KEY_NAME], text[POLICY_AMOUNT], most[POLICY_AMOUNT];
		const char *whose;
		uint64_t limit = place_limit(policy, &place, &whose);
		struct policy_mark mark;

		if (*amount == UNLIMITED || *amount <= limit)
			continue;
		mark = tenant_line(policy, tenant, number, &place);
		policy_key_print(key, &place, name);
		policy_report_add(policy->report, POLICY_CHECK_limit_above_host, mark.file, mark.line,
				  "%s: %s cannot be reached: expected at most %s, the limit of %s", name,
				  policy_amount_print(place.kind, *amount, text),
				  policy_amount_print(place.kind, limit, most), whose);
	}
}

static void policy_check_limit_above_host(const struct policy *policy, const char *devices)
{
	const struct policy_tenant *tenant = &policy->fallback;

	while (tenant) {
		section_limits_check(policy, tenant, POLICY_KEY_all);
		section_limits_check(policy, tenant, POLICY_KEY_process);
		tenant = tenant == &policy->fallback ? policy->tenants : tenant->next;
	}
}

/* ---- files */

/* The group that may change the policy by commands may write it, too. */
static bool others_may_write(const struct policy *policy, const struct stat *status)
{
	bool trusted = status->st_gid == 0 || (policy->admin_group.name[0] &&
					       status->st_gid == policy->admin_group.gid);

	return status->st_mode & S_IWOTH || (status->st_mode & S_IWGRP && !trusted);
}

static void file_rights_check(const struct policy *policy, const char *path)
{
	struct stat status;

	if (stat(path, &status) || !others_may_write(policy, &status))
		return;
	/* In a directory such as /tmp everybody may write their own files only. */
	if (S_ISDIR(status.st_mode) && status.st_mode & S_ISVTX)
		return;
	policy_report_add(policy->report, POLICY_CHECK_writable_file, path, 0,
			  "mode %04o lets users other than the owner change limits: chmod go-w %s",
			  (unsigned)status.st_mode & 07777, path);
}

static void policy_check_writable_file(const struct policy *policy, const char *devices)
{
	char directory[POLICY_DIRECTORY];
	char *end;

	if (!policy->file[0])
		return;
	for (const struct policy_file *file = policy->report->files; file; file = file->next)
		file_rights_check(policy, file->path);
	policy_directory_print(policy->file, directory);
	file_rights_check(policy, directory);
	end = strrchr(directory, '/');
	if (end)
		end[end == directory] = '\0';
	file_rights_check(policy, end ? directory : ".");
}

static void policy_check_file_not_read(const struct policy *policy, const char *devices)
{
	char directory[POLICY_DIRECTORY], path[2 * POLICY_PATH + sizeof("tenants.d/")];
	struct dirent **entries;
	int count;

	if (!policy->file[0])
		return;
	policy_directory_print(policy->file, directory);
	count = scandir(directory, &entries, NULL, alphasort);
	for (int i = 0; i < count; i++) {
		const char *name = entries[i]->d_name;

		snprintf(path, sizeof(path), "%s/%s", directory, name);
		if (strcmp(name, ".") && strcmp(name, "..") && !policy_file_is_read(name))
			policy_report_add(policy->report, POLICY_CHECK_file_not_read, path, 0,
					  "not read: expected a name that ends with .conf and does not "
					  "begin with a dot");
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
}

/* ---- all of them */

static int finding_compare(const void *left, const void *right)
{
	const struct policy_finding *a = left, *b = right;
	int order = strcmp(a->file, b->file);

	if (!order && a->line != b->line)
		return a->line < b->line ? -1 : 1;
	if (!order)
		return a->order < b->order ? -1 : 1;
	return order;
}

int policy_check(struct policy *policy, const char *path, const char *devices)
{
	struct policy_report *report = policy->report;
	char problem[PROBLEM_SIZE];
	int result = policy_read(policy, path, problem);

	if (result < 0)
		return result;
	for (unsigned i = 0; i < POLICY_CHECKS; i++)
		if (policy_checks[i].look)
			policy_checks[i].look(policy, devices);
	if (report->count)
		qsort(report->finding, report->count, sizeof(*report->finding), finding_compare);
	return report->incomplete ? -ENOMEM : 0;
}
