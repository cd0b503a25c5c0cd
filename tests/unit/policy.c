/* SPDX-License-Identifier: MIT */
/* What policy files mean, what is wrong with bad ones, and who belongs to which tenant. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "policy/policy.h"
#include "harness.h"

#define NONE UNLIMITED

static char directory[] = "/tmp/rdma_policy.XXXXXX";
static char problem[PROBLEM_SIZE];

static const char *path_of(const char *name)
{
	static char paths[4][160];
	static unsigned turn;
	char *path = paths[turn++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", directory, name);
	return path;
}

static void file_bytes(const char *name, const char *bytes, size_t length)
{
	FILE *file = fopen(path_of(name), "w");

	if (!file || fwrite(bytes, 1, length, file) != length || fclose(file))
		abort();
}

static void file_is(const char *name, const char *text)
{
	file_bytes(name, text, strlen(text));
}

static char *file_text(const char *path)
{
	static char texts[2][1 << 20];
	static unsigned turn;
	char *text = texts[turn++ % 2];
	FILE *file = fopen(path, "r");

	if (!file)
		abort();
	text[fread(text, 1, sizeof(texts[0]) - 1, file)] = '\0';
	fclose(file);
	return text;
}

/* A fresh policy from policy.conf and tenants.d; NULL when it is refused, with *ret_result. */
static struct policy *read_policy(int *ret_result)
{
	struct policy *policy = policy_new();

	problem[0] = '\0';
	*ret_result = policy_read(policy, path_of("policy.conf"), problem);
	if (*ret_result == 0)
		return policy;
	policy_free(policy);
	return NULL;
}

static struct policy *good(const char *text)
{
	struct policy *policy;
	int result;

	file_is("policy.conf", text);
	policy = read_policy(&result);
	CHECK(result == 0, "%s: %s", text, problem);
	return policy ? policy : policy_new();
}

/* Refused in that line (0: none) for a reason that has all the words of the list. */
static void bad_bytes(const char *text, size_t length, unsigned line, const char *words)
{
	char begin[200], list[200], *at = list, *word;
	int result;

	file_bytes("policy.conf", text, length);
	policy_free(read_policy(&result));
	CHECK(result < 0 && result != -ENOENT, "%s: %d", text, result);
	if (line)
		snprintf(begin, sizeof(begin), "%s:%u: ", path_of("policy.conf"), line);
	else
		snprintf(begin, sizeof(begin), "%s: ", path_of("policy.conf"));
	CHECK(!strncmp(problem, begin, strlen(begin)), "%s: %s", text, problem);
	snprintf(list, sizeof(list), "%s", words);
	while ((word = strsep(&at, "|")))
		CHECK(strstr(problem, word) != NULL, "%s: %s", word, problem);
}

static void bad(const char *text, unsigned line, const char *words)
{
	bad_bytes(text, strlen(text), line, words);
}

static uint64_t tenant_limit(const struct policy *policy, const char *name, bool process,
			     const char *device, enum kind kind)
{
	return policy_tenant_limit(policy, policy_tenant_find(policy, name), process, device, kind);
}

static void values(void)
{
	struct policy *policy = good("# all of it\n"
				     "[collector]\n"
				     "socket = /run/x.sock\n"
				     "state=/var/lib/x y\n"
				     "  admin_group =  root\t\n"
				     "\n"
				     "; the host\n"
				     "[host]\n"
				     "qp = 1000\n"
				     "mr_bytes = 64G\n"
				     "device.mlx5_0.qp = 600\n"
				     "guard_writes = on\n"
				     "[ default ]\n"
				     "mode = warn\n"
				     "guard = on\n"
				     "qp = 10\n"
				     "process.qp = 2\n"
				     "process.device.mlx5_0.mr_bytes = 1M\n"
				     "[tenant a]\n"
				     "mode = Audit\n"
				     "guard = Off\n"
				     "qp = unlimited\n"
				     "device.a.b.c.mr = 0\n"
				     "[tenant  b]\n"
				     "process.qp = 7");
	const struct policy_tenant *a = policy_tenant_find(policy, "a");

	CHECK(!strcmp(policy->socket, "/run/x.sock") && !strcmp(policy->state, "/var/lib/x y") &&
	      !strcmp(policy->admin_group.name, "root"));
	CHECK(!strcmp(policy->file, path_of("policy.conf")));
	CHECK(policy_limit(&policy->host, NULL, KIND_qp) == 1000);
	CHECK(policy_limit(&policy->host, NULL, KIND_mr_bytes) == 64ull << 30);
	CHECK(policy_limit(&policy->host, NULL, KIND_mr) == NONE);
	CHECK(policy_limit(&policy->host, "mlx5_0", KIND_qp) == 600);
	CHECK(policy_limit(&policy->host, "mlx5_0", KIND_mr) == NONE);
	CHECK(policy_limit(&policy->host, "mlx5_1", KIND_qp) == NONE);
	CHECK(a && !a->runtime && a->next == policy_tenant_find(policy, "b") && !a->next->next);
	/* What was said, "unlimited" included, goes before [default]. */
	CHECK(policy_tenant_limit(policy, a, false, NULL, KIND_qp) == NONE);
	CHECK(policy_tenant_limit(policy, a, true, NULL, KIND_qp) == 2);
	CHECK(policy_tenant_limit(policy, a, false, "a.b.c", KIND_mr) == 0);
	CHECK(policy_tenant_limit(policy, a, true, "mlx5_0", KIND_mr_bytes) == 1 << 20);
	CHECK(tenant_limit(policy, "b", true, NULL, KIND_qp) == 7);
	CHECK(tenant_limit(policy, "b", false, NULL, KIND_qp) == 10);
	CHECK(tenant_limit(policy, "nobody", false, NULL, KIND_qp) == 10);
	CHECK(policy_tenant_mode(policy, a) == MODE_AUDIT);
	CHECK(policy_tenant_mode(policy, a->next) == MODE_WARN);
	CHECK(policy_tenant_mode(policy, NULL) == MODE_WARN);
	CHECK(policy_guard_writes(policy) && !policy_tenant_guard(policy, a) &&
	      policy_tenant_guard(policy, a->next) && policy_tenant_guard(policy, NULL));
	policy_free(policy);
	policy = good("");
	CHECK(policy_tenant_mode(policy, NULL) == MODE_ENFORCE && !policy->tenants &&
	      !policy_tenant_guard(policy, NULL) && policy_guard_writes(policy) &&
	      !policy->rules && !policy->socket[0] &&
	      policy_tenant_limit(policy, NULL, true, "x", KIND_qp) == NONE);
	policy_free(policy);
	policy_free(NULL);
}

static void every_kind_has_its_keys(void)
{
	for (int kind = 0; kind < KIND_COUNT; kind++) {
		const char *name = kind_rows[kind].name;
		struct policy *policy;
		char text[256];

		snprintf(text, sizeof(text),
			 "[host]\n%s = 1\ndevice.d.%s = 2\n[tenant t]\n%s = 3\ndevice.d.%s = 4\n"
			 "process.%s = 5\nprocess.device.d.%s = 6\n",
			 name, name, name, name, name, name);
		policy = good(text);
		CHECK(policy_limit(&policy->host, NULL, (enum kind)kind) == 1);
		CHECK(policy_limit(&policy->host, "d", (enum kind)kind) == 2);
		CHECK(tenant_limit(policy, "t", false, NULL, (enum kind)kind) == 3);
		CHECK(tenant_limit(policy, "t", false, "d", (enum kind)kind) == 4);
		CHECK(tenant_limit(policy, "t", true, NULL, (enum kind)kind) == 5);
		CHECK(tenant_limit(policy, "t", true, "d", (enum kind)kind) == 6);
		policy_free(policy);
		snprintf(text, sizeof(text), "[host]\n%s = 1K\n", name);
		if (kind_rows[kind].unit == UNIT_BYTES)
			policy_free(good(text));
		else
			bad(text, 2, "'1K'|count");
		bad("[host]\nqqp = 1\n", 2, name);
	}
}

static void mistakes(void)
{
	bad("qp = 1\n", 1, "'qp': no section yet: expected [SECTION]");
	bad("\n[hosts]\n", 2, "[hosts]: unknown section: expected [collector], [host], [default] or [tenant NAME]");
	bad("[host x]\n", 1, "[host x]");
	bad("[host\nqp = 1\n", 1, "]");
	bad("[host] # all\n", 1, "]");
	bad("[]\n", 1, "[]: unknown section");
	bad("[", 1, "]");
	bad("[tenant]\n", 1, "[tenant NAME]");
	bad("[tenant a b]\n", 1, "'a b'|A-Z");
	bad("[tenant a/b]\n", 1, "'a/b'");
	bad("[tenant 0123456789012345678901234567890123456789012345678901234567890123]\n", 1, "63");
	bad("[host]\n\nqpp = 1\n", 3, "'qpp'|[host]|KIND|mr_bytes");
	bad("[host]\nprocess.qp = 1\n", 2, "'process.qp'|[host]");
	bad("[host]\nmode = warn\n", 2, "'mode'");
	bad("[default]\nmatch = uid=1\n", 2, "'match'|[default]");
	bad("[host]\nsocket = /x\n", 2, "'socket'");
	bad("[collector]\nqp = 1\n", 2, "'qp'|socket, state or admin_group");
	bad("[host]\ndevice.qp = 1\n", 2, "device.NAME.KIND");
	bad("[host]\ndevice..qp = 1\n", 2, "'device..qp': invalid name of a device");
	bad("[host]\ndevice.a b.qp = 1\n", 2, "invalid name of a device");
	bad("[host]\ndevice.0123456789012345678901234567890123456789012345678901234567890123.qp=1\n",
	    2, "63");
	bad("[host]\ndevice.mlx5_0.nosuch = 1\n", 2, "'nosuch'|device.mlx5_0.nosuch|recv_wr");
	bad("[tenant a]\nprocess.nosuch = 1\n", 2, "'nosuch'");
	bad("[host]\nqp\n", 2, "'qp'|KEY = VALUE");
	bad("[host]\nqp =\n", 2, "'qp': missing value");
	bad("[host]\n= 3\n", 2, "''");
	bad("[host]\nqp = many\n", 2, "'many'|qp|unlimited");
	bad("[host]\nqp = -1\n", 2, "'-1'");
	bad("[host]\nqp = unset\n", 2, "'unset'");
	bad("[host]\nmr_bytes = 5X\n", 2, "'5X'|K, M, G or T");
	bad("[host]\nqp = 99999999999999999999\n", 2, "too large");
	bad("[host]\nqp = 18446744073709551614\n", 2, "too large");
	bad("[host]\nqp = 10 # ten\n", 2, "comment");
	bad("[collector]\nstate = /x ; here\n", 2, "comment");
	bad("[default]\nmode = off\n", 2, "mode: invalid value 'off': expected enforce, warn or audit");
	bad("[default]\nguard = enforce\n", 2, "guard: invalid value 'enforce': expected on or off");
	bad("[tenant a]\nguard = unset\n", 2, "'unset'|on or off");
	bad("[host]\nguard_writes = yes\n", 2, "'yes'|guard_writes|on or off");
	bad("[host]\nguard = on\n", 2, "'guard'|guard_writes");
	bad("[tenant a]\nguard_writes = on\n", 2, "'guard_writes'|mode, guard or match");
	bad("[tenant a]\nguard = on\nguard = on\n", 3, "guard: set already in line 2");
	bad("[collector]\nsocket = x.sock\n", 2, "socket|'x.sock'|/");
	bad("[collector]\nadmin_group = no_such_group\n", 2, "group|'no_such_group'");
	/* Once in a section of a file, also if the section is opened again. */
	bad("[host]\nqp = 1\nmr = 2\nqp = 3\n", 4, "qp: set already in line 2");
	bad("[tenant a]\nmode = warn\n[tenant b]\nmode = warn\n[tenant a]\nmode = audit\n", 6,
	    "mode: set already in line 2");
	bad("[tenant a]\nprocess.device.x.qp = 1\nprocess.device.x.qp = 1\n", 3,
	    "process.device.x.qp: set already in line 2");
	policy_free(good("[tenant host]\nqp = 1\n[host]\nqp = 2\n[default]\nqp = 3\n"));
}

static void bad_matches(void)
{
	bad("[tenant a]\nmatch = uid\n", 2, "'uid'|uid=|job=");
	bad("[tenant a]\nmatch = uid = 5\n", 2, "'uid'|without blanks");
	bad("[tenant a]\nmatch = user=5\n", 2, "'user'|cgroup=");
	bad("[tenant a]\nmatch = uid=1 uid=2\n", 2, "repeated condition uid=");
	bad("[tenant a]\nmatch = job=1 job=2\n", 2, "repeated condition job=");
	bad("[tenant a]\nmatch = uid=\n", 2, "uid");
	bad("[tenant a]\nmatch = uid=1,,2\n", 2, "''|uid");
	bad("[tenant a]\nmatch = uid=4294967295\n", 2, "'4294967295'");
	bad("[tenant a]\nmatch = uid=9-3\n", 2, "'9-3'|range");
	bad("[tenant a]\nmatch = uid=1-2-3\n", 2, "'1-2-3'");
	bad("[tenant a]\nmatch = uid=no_such_user\n", 2, "user|'no_such_user'");
	bad("[tenant a]\nmatch = gid=root,no_such_group\n", 2, "group|'no_such_group'");
	bad("[tenant a]\nmatch = uid=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17\n", 2, "16");
	bad("[tenant a]\nmatch = cgroup=\n", 2, "cgroup: missing value");
	bad("[tenant a]\nmatch = cgroup=slurm/*\n", 2, "'slurm/*'|/");
	bad("[tenant a]\nmatch = job=0123456789012345678901234567890123456789012345678901234567890123",
	    2, "63");
}

static void strange_files(void)
{
	char *large = malloc((1 << 20) + 2), line[600];
	struct policy *policy;
	int result;

	policy = good("\xef\xbb\xbf[host]\r\nqp = 5\r\n\r\n# end\r\n   mr = 6");
	CHECK(policy_limit(&policy->host, NULL, KIND_qp) == 5);
	CHECK(policy_limit(&policy->host, NULL, KIND_mr) == 6);
	policy_free(policy);
	policy_free(good("[host]\n# caf\xc3\xa9\n"));

	bad_bytes("[host]\nqp = 1\0 0\n", 17, 2, "0x00");
	bad_bytes("\xff\xfe[\0h\0", 6, 1, "0x00");
	bad("[host]\rqp = 1\r", 1, "0x0d");
	bad("[host]\nqp = \x1b[31m1\n", 2, "0x1b");

	/* Nothing is cut: a long line is read to its end, a long value is refused. */
	memset(line, 'x', sizeof(line));
	memcpy(line, "[host]\n#", 8);
	strcpy(line + sizeof(line) - 9, "\nqp = 7\n");
	policy = good(line);
	CHECK(policy_limit(&policy->host, NULL, KIND_qp) == 7);
	policy_free(policy);
	memset(line, 'x', sizeof(line));
	memcpy(line, "[collector]\nstate = /", 21);
	line[sizeof(line) - 1] = '\0';
	bad(line, 2, "state|255");
	line[12 + 8 + 256] = '\0';
	bad(line, 2, "state|255");
	line[12 + 8 + 255] = '\0';
	policy_free(good(line));
	memcpy(line, "[collector]\nsocket= /", 21);
	line[12 + 8 + 108] = '\0';
	bad(line, 2, "socket|107");
	line[12 + 8 + 107] = '\0';
	policy_free(good(line));

	memset(large, '\n', 1 << 20);
	memcpy(large, "[host]\nqp = 3", 13);
	large[1 << 20] = '\0';
	policy = good(large);
	CHECK(policy_limit(&policy->host, NULL, KIND_qp) == 3);
	policy_free(policy);
	large[1 << 20] = '\n';
	bad_bytes(large, (1 << 20) + 1, 0, "1 MiB");
	free(large);

	unlink(path_of("policy.conf"));
	CHECK(!read_policy(&result) && result == -ENOENT);
	CHECK(strstr(problem, path_of("policy.conf")) == problem);
	mkdir(path_of("policy.conf"), 0700);
	CHECK(!read_policy(&result) && result == -EISDIR && strstr(problem, "directory"));
	rmdir(path_of("policy.conf"));
	mkfifo(path_of("policy.conf"), 0600);
	CHECK(!read_policy(&result) && result == -EINVAL && strstr(problem, "regular file"));
	unlink(path_of("policy.conf"));
	if (geteuid() != 0) {
		file_is("policy.conf", "");
		chmod(path_of("policy.conf"), 0);
		CHECK(!read_policy(&result) && result == -EACCES);
		unlink(path_of("policy.conf"));
	}
	memset(line, '/', sizeof(line));
	line[sizeof(line) - 1] = '\0';
	policy = policy_new();
	CHECK(policy_read(policy, line, problem) == -ENAMETOOLONG && strstr(problem, "too long"));
	policy_free(policy);
}

static void bounds(void)
{
	char *text = malloc(1 << 20);
	int length, full;

	length = sprintf(text, "[host]\n");
	for (int i = 0; i < POLICY_DEVICES; i++)
		length += sprintf(text + length, "device.d%d.qp = %d\n", i, i);
	policy_free(good(text));
	sprintf(text + length, "device.more.qp = 1\n");
	bad(text, POLICY_DEVICES + 2, "more|31 devices");

	for (length = 0, full = 0; full < POLICY_TENANTS; full++)
		length += sprintf(text + length, "[tenant t%d]\n", full);
	policy_free(good(text));
	sprintf(text + length, "[tenant t0]\n[tenant more]\n");
	bad(text, POLICY_TENANTS + 2, "more|1024 tenants");

	length = sprintf(text, "[tenant t]\n");
	for (int i = 0; i < POLICY_RULES; i++)
		length += sprintf(text + length, "match = uid=%d\n", i);
	policy_free(good(text));
	sprintf(text + length, "match = uid=7\nmatch = gid=1\n");
	bad(text, POLICY_RULES + 3, "4096 match lines");
	free(text);
}

static void several_files(void)
{
	static const char *const files[] = { "tenants.d/b.conf",     "tenants.d/a.conf",
					     "tenants.d/B.conf",     "tenants.d/.hidden.conf",
					     "tenants.d/c.conf.bak", "tenants.d/.conf" };
	const struct policy_rule *rule;
	struct policy *policy;
	char words[200];
	int result;

	mkdir(path_of("tenants.d"), 0700);
	file_is(files[0], "[tenant one]\nqp = 3\nmatch = uid=3\n");
	file_is(files[1], "[tenant two]\nmatch = uid=2\n[tenant one]\nqp = 2\nmr = 2\n");
	file_is(files[2], "[tenant one]\nmatch = uid=1\nmw = 1\n");
	file_is(files[3], "not read\n");
	file_is(files[4], "not read\n");
	file_is(files[5], "not read\n");
	policy = good("[tenant two]\nmatch = uid=0\n[tenant one]\nqp = 0\nmr = 0\nmw = 0\nah = 0\n");
	CHECK(tenant_limit(policy, "one", false, NULL, KIND_qp) == 3);
	CHECK(tenant_limit(policy, "one", false, NULL, KIND_mr) == 2);
	CHECK(tenant_limit(policy, "one", false, NULL, KIND_mw) == 1);
	CHECK(tenant_limit(policy, "one", false, NULL, KIND_ah) == 0);
	rule = policy->rules;
	for (unsigned uid = 0; uid < 4; uid++, rule = rule->next)
		if (!CHECK(rule && rule->uid.range[0].first == uid))
			break;
	CHECK(!rule);
	snprintf(words, sizeof(words), "%s/tenants.d/B.conf:2: match = uid=1", directory);
	CHECK(!strcmp(policy->rules->next->source, words), "%s", policy->rules->next->source);
	policy_free(policy);

	file_is(files[1], "[tenant two]\n\nqp = no\n");
	CHECK(!read_policy(&result) && result == -EINVAL);
	snprintf(words, sizeof(words), "%s/tenants.d/a.conf:3: qp: invalid value 'no'", directory);
	CHECK(!strncmp(problem, words, strlen(words)), "%s", problem);
	/* A link to nowhere is not taken for a host without a policy. */
	unlink(path_of(files[1]));
	CHECK(symlink("/nonexistent", path_of(files[1])) == 0);
	CHECK(!read_policy(&result) && result == -EINVAL && strstr(problem, "a.conf: No such"));
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		unlink(path_of(files[i]));
	rmdir(path_of("tenants.d"));
	file_is("tenants.d", "");
	CHECK(!read_policy(&result) && result == -ENOTDIR && strstr(problem, "tenants.d: "));
	unlink(path_of("tenants.d"));
}

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
		{ "/system.slice/containerd.service/kubepods-pod1.slice:cri-containerd:" ID, ID, "" },
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

static void belongs(const struct policy *policy, uid_t uid, gid_t gid, const char *cgroup,
		    const char *tenant)
{
	static const gid_t groups[] = { 70, 27 };
	struct policy_subject subject = {
		.uid = uid, .gid = gid, .groups = 2, .group = groups, .cgroup = cgroup
	};
	const struct policy_rule *rule = policy_match(policy, &subject);
	const char *found = rule ? rule->tenant->name : "default";

	CHECK(!strcmp(found, tenant), "%u %u %s: %s, not %s", uid, gid, cgroup ? cgroup : "-",
	      found, tenant);
}

static void matching(void)
{
	struct policy *policy = good("[tenant root]\nmatch = uid=root gid=root\n"
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

	belongs(policy, 0, 0, "/", "root");
	belongs(policy, 0, 1, "/", "default");
	belongs(policy, 999, 1, "/", "default");
	belongs(policy, 1000, 1, "/", "users");
	belongs(policy, 1009, 1, "/", "users");
	belongs(policy, 1010, 1, "/", "default");
	belongs(policy, 2000, 1, NULL, "users");
	belongs(policy, 3000, 1, "/", "first");
	belongs(policy, 3001, 1, "/", "second");
	belongs(policy, 50, 1, "/", "wheel");
	belongs(policy, 51, 1, "/", "default");
	belongs(policy, 51, 5, "/", "group");
	belongs(policy, 1, 1, "/kubepods/burstable/x/pod12-3/deeper", "pod");
	belongs(policy, 1, 1, "/kubepods/pod12", "default");
	belongs(policy, 1, 1, "/exact", "exact");
	belongs(policy, 1, 1, "/exact/below", "default");
	belongs(policy, 1, 1, "/a\\x2db", "escaped");
	belongs(policy, 1, 1, "/slurm/uid_1/job_41", "job");
	belongs(policy, 1, 1, "/slurm/uid_1/job_14", "default");
	belongs(policy, 1, 1, "/docker/" ID, "boxed");
	belongs(policy, 1, 1, "/docker/" OTHER_ID, "any-box");
	belongs(policy, 60, 1, "/", "rest");
	belongs(policy, 60, 1, NULL, "rest");
	CHECK(policy_remove_tenant(policy, "first") == 0);
	CHECK(policy_remove_tenant(policy, "first") == -ENOENT);
	belongs(policy, 3000, 1, "/", "second");
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
		{ "cgroup=/a job=1", false },
	};
	struct policy_rule none = { .next = NULL };

	CHECK(!policy_rule_in_kernel(&none));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct policy *policy;
		char text[80];

		snprintf(text, sizeof(text), "[tenant t]\nmatch = %s\n", rows[i].match);
		policy = good(text);
		CHECK(policy->rules && policy_rule_in_kernel(policy->rules) == rows[i].in_kernel,
		      "%s", rows[i].match);
		policy_free(policy);
	}
}

static char *written(const struct policy *policy)
{
	CHECK(policy_write(policy, path_of("written")) == 0);
	return file_text(path_of("written"));
}

static void changed(struct policy *policy, const char *section, const char *text)
{
	problem[0] = '\0';
	CHECK(policy_change(policy, section, text, problem) == 0, "[%s] %s: %s", section, text,
	      problem);
}

static void not_changed(struct policy *policy, const char *section, const char *text,
			const char *words)
{
	char *before = written(policy), *after;

	CHECK(policy_change(policy, section, text, problem) < 0, "[%s] %s", section, text);
	CHECK(strstr(problem, words) != NULL, "%s: %s", words, problem);
	after = written(policy);
	CHECK(!strcmp(before, after), "[%s] %s", section, text);
}

static unsigned rules_of(const struct policy *policy)
{
	unsigned rules = 0;

	for (const struct policy_rule *rule = policy->rules; rule; rule = rule->next)
		rules++;
	return rules;
}

static void commands(void)
{
	struct policy *policy = good("[tenant a]\nqp = 5\nmatch = uid=1\n");

	changed(policy, "tenant a", "qp = 6\nprocess.device.x.mr = 7");
	CHECK(tenant_limit(policy, "a", false, NULL, KIND_qp) == 6);
	CHECK(tenant_limit(policy, "a", true, "x", KIND_mr) == 7);
	CHECK(!policy_tenant_find(policy, "a")->runtime && rules_of(policy) == 1);
	changed(policy, "tenant a",
		"qp = unset\nprocess.device.x.mr = unset\ndevice.y.qp = unset\n");
	CHECK(tenant_limit(policy, "a", false, NULL, KIND_qp) == NONE);
	CHECK(policy_tenant_find(policy, "a")->process.devices == 0);
	CHECK(policy_tenant_find(policy, "a")->all.devices == 0);
	changed(policy, "host", "qp = 100");
	changed(policy, "default", "mode = audit");
	CHECK(policy_limit(&policy->host, NULL, KIND_qp) == 100);
	CHECK(policy_tenant_mode(policy, NULL) == MODE_AUDIT);
	changed(policy, "default", "mode = unset");
	CHECK(policy_tenant_mode(policy, NULL) == MODE_ENFORCE);
	changed(policy, "default", "guard = on");
	changed(policy, "tenant a", "guard = off");
	changed(policy, "host", "guard_writes = on");
	CHECK(policy_tenant_guard(policy, NULL) && policy->guard_writes == POLICY_ON &&
	      !policy_tenant_guard(policy, policy_tenant_find(policy, "a")));
	CHECK(strstr(written(policy), "guard_writes = on\n") &&
	      strstr(written(policy), "guard = on\n") && strstr(written(policy), "guard = off\n"));
	changed(policy, "tenant a", "guard = unset");
	changed(policy, "host", "guard_writes = unset");
	CHECK(policy_tenant_guard(policy, policy_tenant_find(policy, "a")) &&
	      policy->guard_writes == SWITCH_UNSET);
	changed(policy, "default", "guard = unset");
	CHECK(!policy_tenant_guard(policy, policy_tenant_find(policy, "a")));
	changed(policy, " tenant  b ", "");
	CHECK(policy_tenant_find(policy, "b") && policy_tenant_find(policy, "b")->runtime);
	/* The same rule once, however often it is given. */
	changed(policy, "tenant b", "match = uid=2\nmatch = uid=2-2\nmatch = uid=3\n");
	changed(policy, "tenant b", "match = uid=3");
	CHECK(rules_of(policy) == 3);
	CHECK(!strcmp(policy->rules->next->source, "command: match = uid=2"));
	changed(policy, "tenant b", "match = unset\nmatch = uid=4");
	CHECK(rules_of(policy) == 2 && policy->rules->next->uid.range[0].first == 4);

	not_changed(policy, "tenant a", "qp = 1\nmr = no", "'no'");
	not_changed(policy, "tenant a", "match = unset\nmatch = no", "'no'");
	not_changed(policy, "tenant new", "mode = no", "'no'");
	not_changed(policy, "tenant new", "guard = no", "'no'");
	not_changed(policy, "tenant", "qp = 1", "name");
	not_changed(policy, "tenant x/y", "qp = 1", "'x/y'");
	not_changed(policy, "collector", "state = /x", "[collector]: unknown section: expected [host]");
	not_changed(policy, "", "qp = 1", "[]");
	not_changed(policy, "host\n", "qp = 1", "[host?]");
	not_changed(policy, "host", "qp = 1\nqp = 2", "qp: set already in line 1");
	not_changed(policy, "host", "[default]\nqp = 2", "one section");
	not_changed(policy, "host", "qp = UNSET", "'UNSET'");
	policy_free(policy);
}

static void merging(void)
{
	struct policy *base = good("[collector]\nsocket = /a\nstate = /b\n[host]\nqp = 1\nmr = 2\n"
				   "guard_writes = on\n"
				   "[default]\nmode = warn\nguard = on\n"
				   "[tenant a]\nqp = 3\nmatch = uid=1\nguard = off\n"
				   "[tenant b]\nmatch = uid=2\n");
	struct policy *over = policy_new(), *both, *wide;
	char text[64];

	changed(over, "host", "qp = unlimited");
	changed(over, "tenant c", "match = uid=3");
	changed(over, "tenant a", "process.qp = 4\nmatch = uid=1\nmatch = uid=4\nmode = audit");
	changed(over, "tenant c", "guard = off");
	both = policy_merge(base, over);
	CHECK(!strcmp(both->file, base->file) && !strcmp(both->socket, "/a") &&
	      !strcmp(both->state, "/b"));
	CHECK(policy_limit(&both->host, NULL, KIND_qp) == NONE);
	CHECK(policy_limit(&both->host, NULL, KIND_mr) == 2);
	CHECK(tenant_limit(both, "a", false, NULL, KIND_qp) == 3);
	CHECK(tenant_limit(both, "a", true, NULL, KIND_qp) == 4);
	CHECK(policy_tenant_mode(both, policy_tenant_find(both, "a")) == MODE_AUDIT);
	CHECK(policy_tenant_mode(both, policy_tenant_find(both, "b")) == MODE_WARN);
	CHECK(!policy_tenant_guard(both, policy_tenant_find(both, "a")) &&
	      policy_tenant_guard(both, policy_tenant_find(both, "b")) &&
	      !policy_tenant_guard(both, policy_tenant_find(both, "c")) &&
	      both->guard_writes == POLICY_ON);
	CHECK(!policy_tenant_find(both, "a")->runtime && policy_tenant_find(both, "c")->runtime);
	CHECK(!strcmp(both->tenants->name, "a") && !strcmp(both->tenants->next->name, "b") &&
	      !strcmp(both->tenants->next->next->name, "c"));
	CHECK(rules_of(both) == 4 && strstr(both->rules->source, "policy.conf:13: match = uid=1"));
	belongs(both, 3, 3, "/", "c");
	belongs(both, 4, 3, "/", "a");
	/* The parts are untouched, and do not hold the whole. */
	CHECK(policy_limit(&base->host, NULL, KIND_qp) == 1);
	wide = policy_merge(over, base);
	CHECK(!strcmp(wide->file, base->file) && policy_limit(&wide->host, NULL, KIND_qp) == 1);
	policy_free(wide);
	policy_free(base);
	policy_free(over);
	belongs(both, 1, 3, "/", "a");

	base = policy_new();
	wide = policy_new();
	for (int i = 0; i < POLICY_DEVICES; i++) {
		snprintf(text, sizeof(text), "device.x%d.qp = 1", i);
		changed(base, "host", text);
	}
	changed(wide, "host", "device.y.qp = 1");
	errno = 0;
	CHECK(!policy_merge(base, wide) && errno == E2BIG);
	changed(base, "host", "device.x0.qp = unset\ndevice.y.qp = 2");
	policy_free(policy_merge(base, wide));
	policy_free(base);
	policy_free(wide);
	policy_free(both);
}

static bool same(const struct policy *a, const struct policy *b)
{
	char *text = written(a);

	return !strcmp(text, written(b));
}

/* Reads back what was written, and finds the same. */
static void comes_back(const struct policy *policy)
{
	struct policy *again = policy_new();
	const struct policy_rule *rule, *other;
	struct stat status;
	int result;

	CHECK(policy_write(policy, path_of("again")) == 0);
	CHECK(stat(path_of("again"), &status) == 0 && (status.st_mode & 07777) == 0600);
	result = policy_read_file(again, path_of("again"), true, problem);
	CHECK(result == 0, "%s", problem);
	CHECK(same(policy, again));
	for (int kind = 0; kind < KIND_COUNT; kind++)
		CHECK(policy->host.total[kind] == again->host.total[kind] &&
		      policy->fallback.process.total[kind] == again->fallback.process.total[kind]);
	for (rule = policy->rules, other = again->rules; rule && other;
	     rule = rule->next, other = other->next)
		CHECK(!strcmp(rule->tenant->name, other->tenant->name) &&
		      !strcmp(rule->cgroup, other->cgroup) &&
		      !memcmp(&rule->uid, &other->uid, sizeof(rule->uid)));
	CHECK(!rule && !other && !again->file[0]);
	for (const struct policy_tenant *tenant = again->tenants; tenant; tenant = tenant->next)
		CHECK(tenant->runtime);
	policy_free(again);
}

static unsigned pick(unsigned below)
{
	return (unsigned)random() % below;
}

static void random_limit(struct policy_limits *limits)
{
	static const char *const devices[] = { NULL, NULL, "mlx5_0", "a.b.c", "x-1", "device.qp" };
	const uint64_t numbers[] = { 0, 1, pick(100000), (uint64_t)random() << 31, NONE - 2, NONE,
				     UNSET };

	CHECK(policy_limit_set(limits, devices[pick(6)], (enum kind)pick(KIND_COUNT),
			       numbers[pick(7)]) == 0);
}

static void random_ids(struct policy_ids *ids)
{
	ids->count = pick(3) ? 0 : pick(POLICY_IDS) + 1;
	for (unsigned i = 0; i < ids->count; i++) {
		ids->range[i].first = pick(UINT32_MAX);
		ids->range[i].last = ids->range[i].first + (pick(2) ? pick(1000) : 0);
		if (ids->range[i].last == UINT32_MAX || ids->range[i].last < ids->range[i].first)
			ids->range[i].last = ids->range[i].first;
	}
}

static void random_rule(struct policy *policy, struct policy_tenant *tenant)
{
	static const char *const globs[] = { "*", "/a/*", "[x]?", "/=#;", "/unset", "*\\x2d\xc3\xa9" };
	struct policy_rule rule = { .next = NULL };

	random_ids(&rule.uid);
	random_ids(&rule.gid);
	strcpy(rule.cgroup, globs[pick(6)]);
	if (pick(2))
		strcpy(rule.container, globs[pick(6)]);
	if (pick(2))
		strcpy(rule.job, globs[pick(6)]);
	CHECK(policy_rule_add(policy, tenant, &rule) == 0);
}

static struct policy *random_policy(void)
{
	struct policy *policy = policy_new();
	struct policy_tenant *tenant;
	char name[16];

	if (pick(2))
		strcpy(policy->socket, "/run/a b.sock");
	policy->guard_writes = (enum policy_switch)pick(3);
	for (unsigned i = pick(20); i > 0; i--)
		random_limit(&policy->host);
	for (unsigned i = pick(20); i > 0; i--)
		random_limit(pick(2) ? &policy->fallback.all : &policy->fallback.process);
	for (unsigned i = pick(200); i > 0; i--) {
		snprintf(name, sizeof(name), "t%u", pick(8));
		CHECK(policy_tenant_add(policy, name, true, &tenant) == 0);
		random_limit(pick(2) ? &tenant->all : &tenant->process);
		if (pick(4) == 0)
			tenant->mode = (enum mode)pick(4);
		if (pick(4) == 0)
			tenant->guard = (enum policy_switch)pick(3);
		if (pick(4) == 0)
			random_rule(policy, tenant);
	}
	return policy;
}

static void round_trips(void)
{
	struct policy *policy = good("[tenant a]\nmatch = uid=1\n[tenant b]\nmatch = uid=1-2\n"
				     "[tenant a]\nmatch = uid=2\nqp = 4\n");

	comes_back(policy);
	CHECK(policy_write(policy, path_of("nowhere/file")) == -ENOENT);
	mkdir(path_of("taken"), 0700);
	CHECK(policy_write(policy, path_of("taken")) == -EISDIR);
	rmdir(path_of("taken"));
	policy_free(policy);
	srandom(1);
	for (int i = 0; i < 200; i++) {
		struct policy *one = random_policy(), *other = random_policy();
		struct policy *empty = policy_new(), *copy = policy_merge(one, NULL);
		struct policy *both = policy_merge(one, other), *twice = policy_merge(both, other);
		struct policy *onto = policy_merge(empty, one);

		comes_back(one);
		comes_back(both);
		CHECK(same(one, copy) && same(one, onto) && same(both, twice));
		for (struct policy **each = (struct policy *[]){ one, other, empty, copy, both,
								 twice, onto, NULL };
		     *each; each++)
			policy_free(*each);
	}
}

/* The example that is installed is true. */
static void example(void)
{
	const char *source = getenv("SOURCE_DIRECTORY");
	struct policy *policy = policy_new();
	char path[POLICY_PATH];

	snprintf(path, sizeof(path), "%s/packaging/policy.conf.example", source ? source : ".");
	CHECK(policy_read_file(policy, path, false, problem) == 0, "%s", problem);
	CHECK(policy_limit(&policy->host, NULL, KIND_qp) != NONE && policy->rules);
	policy_free(policy);
}

static void clean_up(void)
{
	static const char *const names[] = { "policy.conf", "written", "again" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlink(path_of(names[i]));
	CHECK(rmdir(directory) == 0, "something was left in %s", directory);
}

static void driver(void)
{
	if (!mkdtemp(directory))
		abort();
	RUN(values);
	RUN(every_kind_has_its_keys);
	RUN(mistakes);
	RUN(bad_matches);
	RUN(strange_files);
	RUN(bounds);
	RUN(several_files);
	RUN(labels);
	RUN(matching);
	RUN(kernel_rules);
	RUN(commands);
	RUN(merging);
	RUN(round_trips);
	RUN(example);
	clean_up();
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
