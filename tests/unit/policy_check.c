/* SPDX-License-Identifier: MIT */
/*
 * `rdma_intercept check`: each row of checks.def is found in a policy that has the fault, in the
 * right line, and not in one that is nearly the same; and reading goes on after every mistake.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "policy/check.h"
#include "policyfiles.h"

struct trial {
	const char *check;
	const char *file; /* where it is found; NULL: in policy.conf */
	unsigned line;
	const char *words;   /* of the finding */
	const char *guilty;  /* policy.conf that has the fault */
	const char *guiltless; /* and one that has not */
	void (*prepare)(bool guilty);
};

static void directory_make(void)
{
	if (mkdir(file_path("tenants.d"), 0755) && errno != EEXIST)
		abort();
}

static void directory_remove(void)
{
	static const char *const names[] = { "a.conf", "a.conf~", ".a.conf", "a", "x.conf" };
	char path[64];

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "tenants.d/%s", names[i]);
		unlink(file_path(path));
	}
	rmdir(file_path("tenants.d"));
}

static void one_file(bool guilty)
{
	directory_make();
	file_is(guilty ? "tenants.d/a" : "tenants.d/a.conf", "[tenant a]\nmatch = uid=1\n");
}

static void hidden_file(bool guilty)
{
	directory_make();
	file_is(guilty ? "tenants.d/.a.conf" : "tenants.d/a.conf", "[tenant a]\nmatch = uid=1\n");
}

static void lost_link(bool guilty)
{
	directory_make();
	if (guilty && symlink("/nonexistent", file_path("tenants.d/x.conf")))
		abort();
}

static void writable(bool guilty)
{
	chmod(file_path("policy.conf"), guilty ? 0666 : 0644);
}

static void writable_directory(bool guilty)
{
	directory_make();
	chmod(file_path("tenants.d"), guilty ? 0777 : 0755);
}

/* root's group is trusted, another is not; only root can make such files. */
static void group_of_root(bool guilty)
{
	if (chown(file_path("policy.conf"), (uid_t)-1, guilty ? 12345 : 0))
		return;
	chmod(file_path("policy.conf"), 0664);
}

#define A_AND_B(first, second) "[tenant a]\nmatch = " first "\n[tenant b]\nmatch = " second "\n"

/* Found in a line of policy.conf; found in a file as a whole. */
#define LINE(check, line, words, guilty, guiltless)                                                \
	{ check, NULL, line, words, guilty, guiltless, NULL }
#define FILES(check, file, words, prepare) { check, file, 0, words, "", "", prepare }

static const struct trial trials[] = {
	LINE("invalid", 2, "invalid value 'x'", "[host]\nqp = x\n", "[host]\nqp = 1\n"),
	LINE("invalid", 1, "unknown section", "[hots]\nqp = x\n", "[host]\nqp = 1\n"),
	FILES("invalid", "tenants.d/x.conf", "No such file", lost_link),
	LINE("cut_file", 2, "newline", "[host]\nqp = 1", "[host]\nqp = 1\n"),
	LINE("guarantee_too_large", 5, "9 for tenant 'a': expected at most 8",
	     "[host]\n[tenant a]\nmatch = uid=1\nqp = 8\nguarantee.qp = 9\n",
	     "[host]\n[tenant a]\nmatch = uid=1\nqp = 8\nguarantee.qp = 8\n"),
	LINE("guarantee_too_large", 8, "2G for all tenants together: expected at most 1G",
	     "[host]\nmr_bytes = 1G\n" A_AND_B("uid=1\nguarantee.mr_bytes = 1G",
					    "uid=2\nguarantee.mr_bytes = 1G"),
	     "[host]\nmr_bytes = 2G\n" A_AND_B("uid=1\nguarantee.mr_bytes = 1G",
					    "uid=2\nguarantee.mr_bytes = 1G")),
	LINE("tenant_without_match", 2, "tenant 'a'", "[host]\n[tenant a]\nqp = 1\n",
	     "[host]\n[tenant a]\nqp = 1\nmatch = uid=1\n[tenant default]\nqp = 1\n"),
	LINE("tenant_without_match", 3, "tenant 'b'", "[tenant a]\nmatch = uid=x\n[tenant b]\n",
	     "[tenant a]\nmatch = uid=x\n"),
	LINE("tenant_without_match", 1, "expected a line such as match = job=*", "[tenant j-%j]\n",
	     "[tenant j-%j]\nmatch = job=*\n"),
	LINE("shadowed_match", 4, "policy.conf:2 gives all these processes to tenant 'a'",
	     A_AND_B("uid=1-9", "uid=5"), A_AND_B("uid=5", "uid=1-9")),
	LINE("shadowed_match", 4, "no effect", A_AND_B("uid=7-9,1-3,4-6", "uid=2-8 gid=3"),
	     A_AND_B("uid=7-9,1-3,5-6", "uid=2-8 gid=3")),
	LINE("shadowed_match", 4, "no effect", A_AND_B("cgroup=/a/*", "cgroup=/a/b*"),
	     A_AND_B("cgroup=/a/b*", "cgroup=/a/*")),
	LINE("shadowed_match", 4, "no effect", A_AND_B("cgroup=/a/?/[bc]", "cgroup=/a/x/c"),
	     A_AND_B("cgroup=/a/?/[bc]", "cgroup=/a/x/d")),
	LINE("shadowed_match", 4, "no effect", A_AND_B("job=*", "job=1 uid=1"),
	     A_AND_B("job=* uid=2", "job=1")),
	LINE("shadowed_match", 4, "gives the same processes", A_AND_B("container=x", "container=x"),
	     "[tenant a]\nmatch = uid=1-9\nmatch = uid=5\n"),
	LINE("guard_without_cgroup", 3, "tenant 'a'",
	     "[tenant a]\nmatch = uid=1 cgroup=/a\nguard = on\n",
	     "[tenant a]\nmatch = uid=1\nmatch = cgroup=/a\nguard = on\n"),
	LINE("guard_without_cgroup", 2, "tenant 'a'",
	     "[default]\nguard = on\n[tenant a]\nmatch = uid=1\n",
	     "[default]\nguard = on\n[tenant a]\nmatch = uid=1\nguard = off\n"),
	LINE("guard_not_enforced", 4, "its mode is audit: expected mode = enforce",
	     "[tenant a]\nmatch = cgroup=/a\nmode = audit\nguard = on\n",
	     "[tenant a]\nmatch = cgroup=/a\nmode = audit\nguard = off\n"),
	LINE("guard_not_enforced", 5, "tenant 'a'",
	     "[default]\nmode = warn\n[tenant a]\nmatch = cgroup=/a\nguard = on\n",
	     "[default]\nmode = warn\n[tenant a]\nmatch = cgroup=/a\nguard = on\nmode = enforce\n"),
	LINE("within_unknown", 3, "no section [tenant b]",
	     "[tenant a]\nmatch = uid=1\nwithin = b\n",
	     "[tenant a]\nmatch = uid=1\nwithin = b\n[tenant b]\nmatch = uid=2\n"),
	LINE("within_unknown", 3, "'b' is itself within tenant 'a'",
	     "[tenant a]\nmatch = uid=1\nwithin = b\n[tenant b]\nmatch = uid=2\nwithin = a\n",
	     "[tenant a]\nmatch = uid=1\nwithin = default\n"),
	LINE("unknown_device", 2, "'mlx5_9'", "[host]\ndevice.mlx5_9.qp = 1\n",
	     "[host]\ndevice.mlx5_0.qp = 1\n"),
	LINE("unknown_device", 3, "'mlx5_9'",
	     "[tenant a]\nmatch = uid=1\nport.mlx5_9/1.qp = 1\n",
	     "[tenant a]\nmatch = uid=1\nport.mlx5_0/1.qp = 1\n"),
	LINE("unknown_device", 2, "'rxe*'", "[default]\ndevices = mlx5_* rxe*\n",
	     "[default]\ndevices = mlx5_*\n"),
	LINE("limit_above_host", 5, "200 cannot be reached: expected at most 100, the limit of the host",
	     "[host]\nqp = 100\n[tenant a]\nmatch = uid=1\nqp = 200\n",
	     "[host]\nqp = 100\n[tenant a]\nmatch = uid=1\nqp = 100\nprocess.qp = unlimited\n"),
	LINE("limit_above_host", 4, "process.device.mlx5_0.mr_bytes: 3G",
	     "[host]\ndevice.mlx5_0.mr_bytes = 2G\n[default]\nprocess.device.mlx5_0.mr_bytes = 3G\n",
	     "[host]\ndevice.mlx5_0.mr_bytes = 2G\n[default]\nprocess.mr_bytes = 3G\n"),
	FILES("writable_file", NULL, "mode 0666", writable),
	FILES("writable_file", NULL, "mode 0664", group_of_root),
	FILES("writable_file", "tenants.d", "mode 0777", writable_directory),
	FILES("file_not_read", "tenants.d/a", "ends with .conf", one_file),
	FILES("file_not_read", "tenants.d/.a.conf", "begin with a dot", hidden_file),
};

enum { TRIALS = sizeof(trials) / sizeof(trials[0]) };

static struct policy *policy_checked(struct policy_report *report)
{
	struct policy *policy = policy_new();

	*report = (struct policy_report){ .count = 0 };
	policy->report = report;
	CHECK(policy_check(policy, file_path("policy.conf"), file_path("devices")) == 0);
	return policy;
}

/* How many findings of the check there are; the last is in ret_finding. */
static unsigned findings_of(const struct policy_report *report, const char *check,
			    struct policy_finding *ret_finding)
{
	unsigned count = 0;

	for (unsigned i = 0; i < report->count; i++)
		if (!strcmp(policy_checks[report->finding[i].check].name, check)) {
			*ret_finding = report->finding[i];
			count++;
		}
	return count;
}

static void trial_run(const struct trial *trial, bool guilty)
{
	const char *text = guilty ? trial->guilty : trial->guiltless;
	struct policy_finding finding = { .line = 0 };
	struct policy_report report;
	struct policy *policy;
	unsigned count;

	unlink(file_path("policy.conf"));
	file_is("policy.conf", text);
	chmod(file_path("policy.conf"), 0644);
	if (trial->prepare)
		trial->prepare(guilty);
	policy = policy_checked(&report);
	count = findings_of(&report, trial->check, &finding);
	CHECK(count == guilty, "%s: %u findings in\n%s", trial->check, count, text);
	CHECK(report.errors + report.warnings == report.count);
	if (guilty && count) {
		CHECK(finding.line == trial->line, "%s: line %u", trial->check, finding.line);
		CHECK(!strcmp(finding.file, file_path(trial->file ? trial->file : "policy.conf")), "%s: file %s", trial->check, finding.file);
		CHECK(strstr(finding.text, trial->words), "%s: %s", trial->check, finding.text);
	}
	policy_free(policy);
	policy_report_free(&report);
	directory_remove();
}

static void every_check(void)
{
	bool tried[POLICY_CHECKS] = { false };

	for (unsigned i = 0; i < TRIALS; i++) {
		if (trials[i].prepare == group_of_root && geteuid())
			continue;
		trial_run(&trials[i], true);
		trial_run(&trials[i], false);
		for (unsigned k = 0; k < POLICY_CHECKS; k++)
			tried[k] |= !strcmp(policy_checks[k].name, trials[i].check);
	}
	for (unsigned k = 0; k < POLICY_CHECKS; k++)
		CHECK(tried[k], "no trial of %s", policy_checks[k].name);
}

/* A host without devices: there is nothing to compare names with. */
static void no_devices(void)
{
	struct policy_report report = { .count = 0 };
	struct policy *policy = policy_new();

	file_is("policy.conf", "[host]\ndevice.mlx5_9.qp = 1\n");
	policy->report = &report;
	CHECK(policy_check(policy, file_path("policy.conf"), "/nonexistent") == 0 && !report.count);
	policy_free(policy);
	policy_report_free(&report);
}

/* What is right is read, whatever is around it; lines of a section without a name are not told
 * one by one. */
static void all_mistakes(void)
{
	static const unsigned lines[] = { 1, 3, 5, 6, 8, 11, 13 };
	struct policy_report report;
	struct policy *policy;

	file_is("policy.conf", "qp = 1\n"
			       "[host]\n"
			       "qp = x\n"
			       "mr = 5\n"
			       "mr = 6\n"
			       "nonsense\n"
			       "[tenant a]\n"
			       "match = color=red\n"
			       "match = uid=1\n"
			       "qp = 4\n"
			       "[tenant a b]\n"
			       "qp = nonsense\n"
			       "[host\n"
			       "mr = nonsense\n"
			       "[default]\n"
			       "qp = 7\n");
	policy = policy_checked(&report);
	CHECK(report.errors == 7 && report.count == 7, "%u errors", report.errors);
	for (unsigned i = 0; i < report.count && i < 7; i++)
		CHECK(report.finding[i].line == lines[i], "%u: %s", report.finding[i].line,
		      report.finding[i].text);
	CHECK(policy->host.total[KIND_mr] == 5 && policy->fallback.all.total[KIND_qp] == 7);
	CHECK(policy_limit_of(policy, "a", false, NULL, KIND_qp) == 4);
	CHECK(policy->rules && !policy->rules->next);
	policy_free(policy);
	policy_report_free(&report);
}

/* Memory is bounded; what is left out is counted. */
static void many_mistakes(void)
{
	static char text[4000 * 2 + 1];
	struct policy_report report;
	struct policy *policy;

	for (unsigned i = 0; i < 4000; i++)
		memcpy(text + 2 * i, "x\n", 2);
	file_is("policy.conf", text);
	policy = policy_checked(&report);
	CHECK(report.errors == 4000 && report.count == POLICY_FINDINGS &&
		      report.left_out == 4000 - POLICY_FINDINGS,
	      "%u errors, %u left out", report.errors, report.left_out);
	policy_free(policy);
	policy_report_free(&report);
}

static void no_file(void)
{
	struct policy_report report;
	struct policy *policy;

	unlink(file_path("policy.conf"));
	policy = policy_checked(&report);
	CHECK(report.errors == 1 && report.count == 1 && report.finding[0].line == 0 &&
	      strstr(report.finding[0].text, "No such file"));
	policy_free(policy);
	policy_report_free(&report);
}

static void driver(void)
{
	policy_files_begin();
	mkdir(file_path("devices"), 0755);
	file_is("devices/mlx5_0", "");
	RUN(every_check);
	RUN(no_devices);
	RUN(all_mistakes);
	RUN(many_mistakes);
	RUN(no_file);
	unlink(file_path("devices/mlx5_0"));
	rmdir(file_path("devices"));
	policy_files_remove();
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
