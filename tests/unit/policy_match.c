/* SPDX-License-Identifier: MIT */
/* Which tenant a process belongs to by the match lines, and which lines the kernel can hold. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policy/fleet.h"
#include "policyfiles.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define OTHER_ID "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"

static void labels(void)
{
	static const struct {
		const char *cgroup, *container, *job;
	} rows[] = {
		{ "", "", "" },
		{ "/", "", "" },
		{ "/user.slice/user-1000.slice/session-3.scope", "", "" },
		{ "/system.slice/docker-" ID ".scope", ID, "" },
		{ "/docker/" ID, ID, "" },
		{ "/docker/" ID "/kubelet.slice/cri-containerd-" OTHER_ID ".scope", ID, "" },
		{ "/kubepods.slice/kubepods-pod1234.slice/cri-containerd-" ID ".scope", ID, "" },
		{ "/kubepods/burstable/pod8cd1ab34-0123-4567-89ab-0123456789ab/" ID, ID, "" },
		{ "/kubepods/burstable/pod8cd1ab34-0123-4567-89ab-0123456789ab", "", "" },
		{ "/kubepods/pod1/crio-" ID ".scope/x", ID, "" },
		{ "/machine.slice/libpod-" ID ".scope/container", ID, "" },
		{ "/machine.slice/machine-libpod_pod_" ID ".slice/libpod-" OTHER_ID ".scope",
		  OTHER_ID, "" },
		{ "/system.slice/containerd.service/kubepods-pod1.slice:cri-containerd:" ID, ID,
		  "" },
		{ "/docker/" ID "0", "", "" },
		{ "/docker/" ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
		  "", "" },
		{ "/lxc.payload.web/system.slice/x.service", "web", "" },
		{ "/machine.slice/systemd-nspawn@db.service/payload", "db", "" },
		{ "/machine.slice/machine-my\\x2ddb.scope", "my-db", "" },
		{ "/machine.slice/machine-.scope", "", "" },
		{ "/slurm/uid_1000/job_42/step_0", "", "42" },
		{ "/system.slice/slurmstepd.scope/job_7/step_0/user/task_0", "", "7" },
		{ "/slurm/uid_1000/job_42/docker/" ID "/job_9", ID, "42" },
		{ "/slurm/uid_1000/job_42/step_0/job_43", "", "42" },
		{ "/slurm_node7/uid_1000/job_42", "", "42" },
		{ "/system.slice/node7_slurmstepd.scope/job_7", "", "7" },
		/* Only where Slurm makes them. */
		{ "/job_42", "", "" },
		{ "/system.slice/web.service/job_42", "", "" },
		{ "/x/slurm/uid_1000/job_42", "", "" },
		{ "/system.slice/web.service/slurmstepd.scope/job_42", "", "" },
		{ "/slurm/uid_1000/job_42x", "", "" },
		{ "/slurm/uid_1000/job_", "", "" },
		{ "/pbs_jobs.service/jobid/123.head/x", "", "123.head" },
		{ "/pbs_jobs.service/jobs/123.head", "", "123.head" },
		{ "/x/pbs_jobs.service/jobid/123.head", "", "" },
		/* What users may name themselves tells nothing. */
		{ "/user.slice/user-5.slice/user@5.service/job_42", "", "" },
		{ "/user.slice/user-5.slice/user@5.service/docker-" ID ".scope", "", "" },
		{ "/docker/" ID "/job_42", ID, "" },
	};
	char container[2 * NAME_SIZE], job[NAME_SIZE], deep[400];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		policy_labels(rows[i].cgroup, container, job);
		CHECK(!strcmp(container, rows[i].container), "%s: %s", rows[i].cgroup, container);
		CHECK(!strcmp(job, rows[i].job), "%s: %s", rows[i].cgroup, job);
	}
	memset(deep, '7', sizeof(deep));
	deep[sizeof(deep) - 1] = '\0';
	memcpy(deep, "/lxc.payload.", 13);
	policy_labels(deep, container, job);
	CHECK(strlen(container) == sizeof(container) - 1);
	memcpy(deep, "/slurm/uid_1/job_", 17);
	policy_labels(deep, container, job);
	CHECK(strlen(job) == sizeof(job) - 1);
}

/* Only where the kubelet makes cgroups of pods. */
static void pods(void)
{
#define UID "8cd1ab34-0123-4567-89ab-0123456789ab"
#define UNDERLINED "8cd1ab34_0123_4567_89ab_0123456789ab"
	static const struct {
		const char *cgroup, *uid;
	} rows[] = {
		{ "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UNDERLINED
		  ".slice/cri-containerd-" ID ".scope", UID },
		{ "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" UNDERLINED
		  ".slice/crio-" ID ".scope", UID },
		{ "/kubepods.slice/kubepods-pod" UNDERLINED ".slice", UID },
		{ "/kubepods/burstable/pod" UID "/" ID, UID },
		{ "/kubepods/besteffort/pod" UID, UID },
		{ "/kubepods/pod" UID "/" ID "/x", UID },
		/* A static pod: the hash of its configuration. */
		{ "/kubepods/burstable/pod0123456789abcdef0123456789abcdef/" ID,
		  "0123456789abcdef0123456789abcdef" },
		{ "", "" },
		{ "/", "" },
		{ "/kubepods.slice", "" },
		{ "/kubepods.slice/kubepods-burstable.slice", "" },
		{ "/kubepods.slice/kubepods-pod.slice", "" },
		{ "/kubepods/pod", "" },
		{ "/kubepods/pod" UNDERLINED, "" },
		{ "/kubepods/pod" UID "$", "" },
		{ "/kubepods/burstable/x/pod" UID, "" },
		{ "/kubepods.slice/kubepods-burstable.slice/kubepods-pod" UNDERLINED ".slice", "" },
		{ "/kubepods/pod0123456789012345678901234567890123456789012345678901234567890123", "" },
		{ "/x/kubepods/pod" UID, "" },
		{ "/system.slice/kubepods/pod" UID, "" },
		{ "/docker/" ID "/kubepods/pod" UID, "" },
		{ "/user.slice/user-5.slice/user@5.service/kubepods/pod" UID, "" },
	};
	char uid[NAME_SIZE];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uid[0] = '\0';
		CHECK(policy_pod_uid(rows[i].cgroup, uid) == (rows[i].uid[0] != '\0'), "%s: %s",
		      rows[i].cgroup, uid);
		CHECK(!rows[i].uid[0] || !strcmp(uid, rows[i].uid), "%s: %s", rows[i].cgroup, uid);
	}
}

static void matching(void)
{
	struct policy *policy = policy_good("[tenant root]\nmatch = uid=root gid=root\n"
					    "[tenant users]\nmatch = uid=1000-1009,2000\n"
					    "[tenant first]\nmatch = uid=3000\n"
					    "[tenant second]\nmatch = uid=3000\nmatch = uid=3001\n"
					    "[tenant wheel]\nmatch = uid=50 gid=27\n"
					    "[tenant group]\nmatch = uid=51 gid=5\n"
					    "[tenant pod]\nmatch = cgroup=/kubepods/*/pod12*\n"
					    "[tenant exact]\nmatch = cgroup=/exact\n"
					    "[tenant escaped]\nmatch = cgroup=/a\\x2db\n"
					    "[tenant job]\nmatch = job=4*\n"
					    "[tenant boxed]\nmatch = container=0123*\n"
					    "[tenant any-box]\nmatch = container=*\n"
					    "[tenant rest]\nmatch = uid=60 cgroup=*\n");

	policy_belongs(policy, 0, 0, "/", "root");
	policy_belongs(policy, 0, 1, "/", "default");
	policy_belongs(policy, 999, 1, "/", "default");
	policy_belongs(policy, 1000, 1, "/", "users");
	policy_belongs(policy, 1009, 1, "/", "users");
	policy_belongs(policy, 1010, 1, "/", "default");
	policy_belongs(policy, 2000, 1, NULL, "users");
	policy_belongs(policy, 3000, 1, "/", "first");
	policy_belongs(policy, 3001, 1, "/", "second");
	policy_belongs(policy, 50, 1, "/", "wheel");
	policy_belongs(policy, 51, 1, "/", "default");
	policy_belongs(policy, 51, 5, "/", "group");
	policy_belongs(policy, 1, 1, "/kubepods/burstable/x/pod12-3/deeper", "pod");
	policy_belongs(policy, 1, 1, "/kubepods/pod12", "default");
	policy_belongs(policy, 1, 1, "/exact", "exact");
	policy_belongs(policy, 1, 1, "/exact/below", "default");
	policy_belongs(policy, 1, 1, "/a\\x2db", "escaped");
	policy_belongs(policy, 1, 1, "/slurm/uid_1/job_41", "job");
	policy_belongs(policy, 1, 1, "/slurm/uid_1/job_14", "default");
	policy_belongs(policy, 1, 1, "/docker/" ID, "boxed");
	policy_belongs(policy, 1, 1, "/docker/" OTHER_ID, "any-box");
	policy_belongs(policy, 60, 1, "/", "rest");
	policy_belongs(policy, 60, 1, NULL, "rest");
	CHECK(policy_remove_tenant(policy, "first") == 0);
	CHECK(policy_remove_tenant(policy, "first") == -ENOENT);
	policy_belongs(policy, 3000, 1, "/", "second");
	policy_free(policy);
}

/* Lines with the word at their beginning are tried before all others, in their own order, and stay
 * so when the policy is written, merged and read again. */
static void first_lines(void)
{
	struct policy *policy = policy_good("[tenant users]\nmatch = uid=1000-1009\n"
					    "[tenant job]\nmatch = first cgroup=/jobs/1/*\n"
					    "[tenant late]\nmatch = first cgroup=/jobs/*\n"
					    "match = uid=2000\n"),
		      *commands = policy_new(), *merged;
	char problem[PROBLEM_SIZE], *text;

	CHECK(policy_change(commands, "tenant added", "match = first uid=1009", problem) == 0,
	      "%s", problem);
	merged = policy_merge(policy, commands);
	policy_belongs(policy, 1009, 1, "/", "users");
	policy_belongs(merged, 1009, 1, "/", "added");
	policy_belongs(merged, 1009, 1, "/jobs/2/x", "late");
	policy_belongs(merged, 1000, 1, "/jobs/1/x", "job");
	policy_belongs(merged, 1000, 1, "/", "users");
	policy_belongs(merged, 2000, 1, "/", "late");
	text = policy_written(merged);
	policy_free(policy);
	policy = policy_good(text);
	policy_belongs(policy, 1009, 1, "/", "added");
	policy_belongs(policy, 1000, 1, "/jobs/1/x", "job");
	policy_free(policy);
	policy_free(merged);
	policy_free(commands);
	policy_bad("[tenant t]\nmatch = first\n", 2, "match: missing condition behind first: expected");
	policy_bad("[tenant t]\nmatch = uid=1 first\n", 2, "match: unknown condition 'first'");
	policy_bad("[tenant t]\nmatch = first first uid=1\n", 2, "match: unknown condition 'first'");
	policy = policy_good("[tenant a]\nmatch = uid=1\n[tenant t]\nmatch = first uid=1\n");
	CHECK(policy_fleet_check(policy, "fleet", problem) == -EINVAL &&
		      strstr(problem, "[tenant t] match: first is not allowed here"),
	      "%s", problem);
	policy_free(policy);
}

/* A condition that the kernel does not know takes the whole line out of the guard. */
static void kernel_rules(void)
{
	static const struct {
		const char *match;
		bool in_kernel;
	} rows[] = {
		{ "cgroup=/a/*", true },	 { "uid=1", false },
		{ "gid=1", false },		 { "job=1", false },
		{ "container=*", false },	 { "cgroup=/a uid=1", false },
		{ "gid=1 cgroup=/a", false },	 { "cgroup=/a container=*", false },
		{ "cgroup=/a job=1", false },	 { "namespace=a", false },
		{ "cgroup=/a pod=*", false },
	};
	struct policy_rule none = { .next = NULL };

	CHECK(!policy_rule_in_kernel(&none));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct policy *policy;
		char text[80];

		snprintf(text, sizeof(text), "[tenant t]\nmatch = %s\n", rows[i].match);
		policy = policy_good(text);
		CHECK(policy->rules && policy_rule_in_kernel(policy->rules) == rows[i].in_kernel,
		      "%s", rows[i].match);
		policy_free(policy);
	}
}

/* A process as a person describes it, and where it belongs. */
static void given(void)
{
	static const struct {
		const char *text, *tenant, *source;
	} rows[] = {
		{ "uid=1000", "users", "policy.conf:2" },
		{ "uid=root", "default", "" },
		{ "gid=7", "group", "policy.conf:5" },
		{ "gid=1,2,7", "group", "policy.conf:5" },
		{ "gid=1,2,3", "default", "" },
		{ "uid=1000,gid=7", "users", "policy.conf:2" },
		{ "cgroup=/x", "place", "policy.conf:8" },
		{ "cgroup=/slurm/uid_1/job_42/step_0", "jobs", "policy.conf:10" },
		{ "job=42", "jobs", "policy.conf:10" },
		{ "cgroup=/slurm/uid_1/job_42,job=43", "default", "" },
		{ "container=a,b", "jobs", "policy.conf:11" },
		{ "namespace=ml", "ml", "policy.conf:15" },
		{ "pod=ml/train-0", "ml", "policy.conf:15" },
		{ "pod=web/front-1", "front", "policy.conf:17" },
		{ "pod=web/back-1", "default", "" },
		{ "pod=xweb/front-1", "default", "" },
		{ "namespace=web", "default", "" },
		{ "pod=other/x,namespace=ml", "ml", "policy.conf:15" },
	};
	static const char *const bad[][2] = {
		{ "uid=1-2", "uid: more than one value" },
		{ "uid=1,2", "uid: more than one value" },
		{ "gid=1-2", "gid: more than one value" },
		{ "uid=", "uid: invalid value ''" },
		{ "", "--as: unknown condition ''" },
		{ "uid", "--as: unknown condition 'uid'" },
		{ "pid=1", "--as: unknown condition 'pid'" },
		{ "uid=1,uid=1", "--as: repeated condition uid=" },
		{ "cgroup=x", "cgroup: invalid value 'x'" },
		{ "pod=web", "pod: invalid value 'web': expected NAMESPACE/NAME" },
		{ "gid=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17", "gid: more than 16" },
	};
	struct policy *policy = policy_good("[tenant users]\nmatch = uid=1000-1099\nqp = 3\n"
					    "[tenant group]\nmatch = gid=7\nmode = audit\n"
					    "[tenant place]\nmatch = cgroup=/x\n"
					    "[tenant jobs]\nmatch = job=42\nmatch = container=a,b\n"
					    "[default]\nprocess.mr = 9\n"
					    "[tenant ml]\nmatch = namespace=ml\n"
					    "[tenant front]\nmatch = pod=web/front-*\n");
	char problem[PROBLEM_SIZE];
	struct policy_given said;
	struct placement placement;

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (!CHECK(policy_given_parse(rows[i].text, &said, problem) == 0, "%s: %s",
			   rows[i].text, problem))
			continue;
		policy_place(policy, &said.subject, &placement);
		CHECK(!strcmp(placement.tenant, rows[i].tenant) &&
		      (rows[i].source[0] ? strstr(placement.source, rows[i].source) != NULL :
					   !placement.source[0]),
		      "%s: %s, %s", rows[i].text, placement.tenant, placement.source);
		CHECK(placement.process_limit[KIND_mr] == 9 &&
		      placement.limit[KIND_qp] == (i && i != 5 ? UNLIMITED : 3) &&
		      placement.mode == (i == 2 || i == 3 ? MODE_AUDIT : MODE_ENFORCE),
		      "%s", rows[i].text);
	}
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK(policy_given_parse(bad[i][0], &said, problem) == -EINVAL &&
		      strstr(problem, bad[i][1]), "%s: %s", bad[i][0], problem);
	policy_free(policy);
}

/* The names of tenants that patterns make, and what patterns cannot be. */
static void patterns(void)
{
	static const struct {
		const char *text, *tenant;
		uint64_t limit;
	} rows[] = {
		{ "job=4711", "job-4711", 4 },
		{ "job=4711,uid=1000", "job-4711", 4 },
		{ "job=1", "job-1", 9 }, /* has a section of its own */
		{ "job=12[3].head", "job-12_3_.head-0e077f21", 4 },
		{ "container=web,uid=7", "box-web-7", UNLIMITED },
		{ "container=" ID ",uid=7", "box-0123456789ab-7", UNLIMITED },
		{ "container=a-very-long-name-that-does-not-fit-into-the-name,uid=7",
		  "box-a-very-long-name-tha-3cd87f33-7", UNLIMITED },
		{ "pod=team-a/web-0,uid=7", "pod-team-a.web-0", UNLIMITED },
		{ "pod=team.a/web-0,uid=7", "pod-team.a.web-0", UNLIMITED },
		{ "pod=a/a-name-that-is-longer-than-what-a-tenant-may-be-called-by-its-pattern",
		  "pod-a.a-name-that-is-longer-than-what-a-tenant-may-be--464ff448", UNLIMITED },
		{ "namespace=team-b,uid=1001", "ns-team-b-1001", UNLIMITED },
		{ "uid=1001", "u-1001", UNLIMITED },
		{ "uid=5", "default", UNLIMITED },
	};
	static const struct {
		const char *text;
		unsigned line;
		const char *words;
	} bad[] = {
		{ "[tenant %j]\n", 1, "'%j': invalid pattern: expected a name that begins" },
		{ "[tenant job-%]\n", 1, "'job-%': invalid pattern: unknown placeholder: expected %u" },
		{ "[tenant job-%x]\n", 1, "invalid pattern: unknown placeholder: expected %u" },
		{ "[tenant job/%j]\n", 1, "invalid pattern: expected a name that begins" },
		{ "[tenant j%j%c%u]\n", 1, "invalid pattern: too long: expected at most two placeholders" },
		{ "[tenant a-name-of-forty-characters-is-one-too-lo%j]\n", 1,
		  "invalid pattern: too long: expected at most two placeholders" },
		{ "[tenant job-%j]\nmatch = uid=1\n", 2, "match: missing condition job=" },
		{ "[tenant b-%c]\nmatch = job=*\n", 2, "match: missing condition container=" },
		{ "[tenant n-%n]\nmatch = pod=*\n", 2, "match: missing condition namespace=" },
		{ "[tenant p-%p]\nmatch = namespace=*\n", 2, "match: missing condition pod=" },
		{ "[tenant p]\nmatch = pod=web\n", 2, "pod: invalid value 'web': expected NAMESPACE" },
		{ "[tenant u-%u]\nguard = on\n", 2, "guard: not possible in the pattern" },
		{ "[tenant u-%u]\nguarantee.qp = 1\n", 2,
		  "guarantee.qp: not possible in the pattern" },
	};
	struct policy *policy = policy_good("[tenant job-%j]\nmatch = job=*\nqp = 4\nguard = off\n"
					    "[tenant job-1]\nqp = 9\n"
					    "[tenant box-%c-%u]\nmatch = container=*\n"
					    "[tenant pod-%p]\nmatch = pod=*\n"
					    "[tenant ns-%n-%u]\nmatch = namespace=*\n"
					    "[tenant u-%u]\nmatch = uid=1000-1099\n");
	struct policy *copy;
	char problem[PROBLEM_SIZE];
	struct policy_given said;
	struct placement placement;

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (!CHECK(policy_given_parse(rows[i].text, &said, problem) == 0, "%s", problem))
			continue;
		policy_place(policy, &said.subject, &placement);
		CHECK(!strcmp(placement.tenant, rows[i].tenant), "%s: %s", rows[i].text,
		      placement.tenant);
		CHECK(placement.limit[KIND_qp] == rows[i].limit, "%s", rows[i].text);
		CHECK(strlen(placement.tenant) < NAME_SIZE);
	}
	/* One that was made has the values of its pattern, and its own before them. */
	CHECK(policy_tenant_make(policy, "job-2", policy_tenant_find(policy, "job-%j")) == 0);
	CHECK(policy_limit_of(policy, "job-2", false, NULL, KIND_qp) == 4);
	CHECK(policy_change(policy, "tenant job-%j", "qp = 5\nmr = 6", problem) == 0);
	CHECK(policy_change(policy, "tenant job-2", "mr = 7", problem) == 0);
	copy = policy_merge(policy, NULL);
	CHECK(policy_limit_of(copy, "job-2", false, NULL, KIND_qp) == 5 &&
	      policy_limit_of(copy, "job-2", false, NULL, KIND_mr) == 7);
	CHECK(policy_remove_tenant(copy, "job-%j") == 0 &&
	      policy_limit_of(copy, "job-2", false, NULL, KIND_qp) == UNLIMITED);
	policy_free(copy);
	policy_free(policy);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		policy_bad(bad[i].text, bad[i].line, bad[i].words);
}

static void driver(void)
{
	policy_files_begin();
	RUN(labels);
	RUN(pods);
	RUN(matching);
	RUN(first_lines);
	RUN(kernel_rules);
	RUN(given);
	RUN(patterns);
	policy_files_remove();
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
