/* SPDX-License-Identifier: MIT */
/* Where values of a policy were set: lines of files, commands, when lines; also in merged policies. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "policy/origins.h"
#include "policyfiles.h"

/* The origin of a limit of a tenant (NULL: of the host). */
static const char *origin_of(const struct policy *policy, const char *tenant,
			     enum policy_key_number key, const char *device, enum kind kind)
{
	static char origin[POLICY_ORIGIN];
	struct policy_place place = { .kind = kind };

	snprintf(place.device, sizeof(place.device), "%s", device);
	policy_value_origin(policy, tenant ? policy_tenant_find(policy, tenant) : NULL,
			    &policy_keys[key], &place, origin);
	return origin;
}

static bool is_line(const char *origin, const char *file, unsigned line, const char *more)
{
	char expected[POLICY_ORIGIN];

	snprintf(expected, sizeof(expected), "%s:%u%s", file_path(file), line, more);
	return !strcmp(origin, expected);
}

static void files_and_default(void)
{
	struct policy *policy =
		policy_good("[host]\nqp = 100\n[default]\nprocess.qp = 5\nmode = audit\n"
			    "[tenant a]\nqp = 7\n\ndevice.x.mr = 8\n");

	CHECK(is_line(origin_of(policy, NULL, POLICY_KEY_host, "", KIND_qp), "policy.conf", 2, ""));
	CHECK(is_line(origin_of(policy, "a", POLICY_KEY_all, "", KIND_qp), "policy.conf", 7, ""));
	CHECK(is_line(origin_of(policy, "a", POLICY_KEY_all, "x", KIND_mr), "policy.conf", 9, ""));
	CHECK(is_line(origin_of(policy, "a", POLICY_KEY_process, "", KIND_qp), "policy.conf", 4,
		      " [default]"));
	CHECK(is_line(origin_of(policy, "b", POLICY_KEY_mode, "", 0), "policy.conf", 5,
		      " [default]"));
	CHECK(!*origin_of(policy, "a", POLICY_KEY_all, "", KIND_mr));
	CHECK(!*origin_of(policy, "a", POLICY_KEY_all, "y", KIND_mr));
	policy_free(policy);
}

static void commands_and_merges(void)
{
	struct policy *files = policy_good("[tenant a]\nqp = 7\nmr = 8\n");
	struct policy *runtime = policy_new(), *all;

	CHECK(policy_change(runtime, "tenant a", "qp = 9\ncq = 1\n", policy_complaint) == 0);
	all = policy_merge(files, runtime);
	CHECK(!strcmp(origin_of(all, "a", POLICY_KEY_all, "", KIND_qp), POLICY_COMMAND));
	CHECK(is_line(origin_of(all, "a", POLICY_KEY_all, "", KIND_mr), "policy.conf", 3, ""));
	policy_free(all);
	/* What is unset is forgotten, and the file's line counts again. */
	CHECK(policy_change(runtime, "tenant a", "qp = unset\n", policy_complaint) == 0);
	all = policy_merge(files, runtime);
	CHECK(is_line(origin_of(all, "a", POLICY_KEY_all, "", KIND_qp), "policy.conf", 2, ""));
	CHECK(!strcmp(origin_of(all, "a", POLICY_KEY_all, "", KIND_cq), POLICY_COMMAND));
	policy_free(all);
	/* The file that keeps the commands' layer over restarts is no place that people edit. */
	CHECK(policy_write(runtime, file_path("runtime")) == 0);
	all = policy_new();
	CHECK(policy_read_file(all, file_path("runtime"), true, policy_complaint) == 0);
	CHECK(!strcmp(origin_of(all, "a", POLICY_KEY_all, "", KIND_cq), POLICY_COMMAND));
	policy_free(all);
	unlink(file_path("runtime"));
	policy_free(files);
	policy_free(runtime);
}

static void when_lines(void)
{
	struct policy *policy =
		policy_good("[host]\nwhen = host.qp > 5 : tenant.a.qp = 3\n[tenant a]\nqp = 7\n");
	char expected[POLICY_ORIGIN];

	CHECK(policy_when_apply(policy, policy->whens, policy_complaint) == 0);
	snprintf(expected, sizeof(expected), "when %s:2", file_path("policy.conf"));
	CHECK(!strcmp(origin_of(policy, "a", POLICY_KEY_all, "", KIND_qp), expected), "%s",
	      origin_of(policy, "a", POLICY_KEY_all, "", KIND_qp));
	policy_free(policy);
}

static void driver(void)
{
	policy_files_begin();
	RUN(files_and_default);
	RUN(commands_and_merges);
	RUN(when_lines);
	policy_files_remove();
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
