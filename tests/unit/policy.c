/* SPDX-License-Identifier: MIT */
/* What policy files mean, and what is wrong with bad ones. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "policyfiles.h"

static void values(void)
{
	struct policy *policy = policy_good("# all of it\n"
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
	CHECK(!strcmp(policy->file, file_path("policy.conf")));
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
	CHECK(policy_limit_of(policy, "b", true, NULL, KIND_qp) == 7);
	CHECK(policy_limit_of(policy, "b", false, NULL, KIND_qp) == 10);
	CHECK(policy_limit_of(policy, "nobody", false, NULL, KIND_qp) == 10);
	CHECK(policy_tenant_mode(policy, a) == MODE_AUDIT);
	CHECK(policy_tenant_mode(policy, a->next) == MODE_WARN);
	CHECK(policy_tenant_mode(policy, NULL) == MODE_WARN);
	CHECK(policy_guard_writes(policy) && !policy_tenant_guard(policy, a) &&
	      policy_tenant_guard(policy, a->next) && policy_tenant_guard(policy, NULL));
	policy_free(policy);
	policy = policy_good("");
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
		policy = policy_good(text);
		CHECK(policy_limit(&policy->host, NULL, (enum kind)kind) == 1);
		CHECK(policy_limit(&policy->host, "d", (enum kind)kind) == 2);
		CHECK(policy_limit_of(policy, "t", false, NULL, (enum kind)kind) == 3);
		CHECK(policy_limit_of(policy, "t", false, "d", (enum kind)kind) == 4);
		CHECK(policy_limit_of(policy, "t", true, NULL, (enum kind)kind) == 5);
		CHECK(policy_limit_of(policy, "t", true, "d", (enum kind)kind) == 6);
		policy_free(policy);
		snprintf(text, sizeof(text), "[host]\n%s = 1K\n", name);
		if (kind_rows[kind].unit == UNIT_BYTES)
			policy_free(policy_good(text));
		else
			policy_bad(text, 2, "'1K'|count");
		policy_bad("[host]\nnonsense = 1\n", 2, "KIND|show kind");
	}
}

/* A port has limits of its own, in every section, beside those of its device. */
static void ports(void)
{
	struct policy *policy = policy_good(
		"[host]\nport.a.b/1.qp = 1\nport.a.b/2.qp = 2\nport.a.b/1.ah = 3\ndevice.a.b.qp = 4\n"
		"[default]\nport.a.b/1.qp = 5\n[tenant t]\nprocess.port.a.b/4.ah = 6\n");
	enum kind qp_1 = (enum kind)kind_on_port(KIND_qp, 1);

	CHECK(policy_limit(&policy->host, "a.b", qp_1) == 1);
	CHECK(policy_limit(&policy->host, "a.b", (enum kind)kind_on_port(KIND_qp, 2)) == 2);
	CHECK(policy_limit(&policy->host, "a.b", (enum kind)kind_on_port(KIND_ah, 1)) == 3);
	CHECK(policy_limit(&policy->host, "a.b", KIND_qp) == 4);
	CHECK(policy_limit(&policy->host, NULL, qp_1) == NONE);
	CHECK(policy_limit_of(policy, "t", false, "a.b", qp_1) == 5);
	CHECK(policy_limit_of(policy, "t", true, "a.b", (enum kind)kind_on_port(KIND_ah, 4)) == 6);
	CHECK(policy_limit_of(policy, "t", true, "a.b", qp_1) == NONE);
	policy_free(policy);
}

static void mistakes(void)
{
	policy_bad("qp = 1\n", 1, "'qp': no section yet: expected [SECTION]");
	policy_bad(
		"\n[hosts]\n", 2,
		"[hosts]: unknown section: expected [collector], [host], [default] or [tenant NAME]");
	policy_bad("[host x]\n", 1, "[host x]");
	policy_bad("[host\nqp = 1\n", 1, "]");
	policy_bad("[host] # all\n", 1, "]");
	policy_bad("[]\n", 1, "[]: unknown section");
	policy_bad("[", 1, "]");
	policy_bad("[tenant]\n", 1, "[tenant NAME]");
	policy_bad("[tenant a b]\n", 1, "'a b'|A-Z");
	policy_bad("[tenant a/b]\n", 1, "'a/b'");
	policy_bad("[tenant 0123456789012345678901234567890123456789012345678901234567890123]\n", 1,
		   "63");
	policy_bad("[host]\n\nnonsense = 1\n", 3, "'nonsense'|[host]|KIND");
	policy_bad("[host]\nprocess.qp = 1\n", 2, "'process.qp'|[host]");
	policy_bad("[host]\nmode = warn\n", 2, "'mode'");
	policy_bad("[default]\nmatch = uid=1\n", 2, "'match'|[default]");
	policy_bad("[host]\nsocket = /x\n", 2, "'socket'");
	policy_bad("[collector]\nqp = 1\n", 2, "'qp'|socket, state, admin_group, pods or fleet");
	policy_bad("[host]\ndevice.qp = 1\n", 2, "device.NAME.KIND");
	policy_bad("[host]\ndevice..qp = 1\n", 2, "'device..qp': invalid name of a device");
	policy_bad("[host]\ndevice.a b.qp = 1\n", 2, "invalid name of a device");
	policy_bad(
		"[host]\ndevice.0123456789012345678901234567890123456789012345678901234567890123.qp=1\n",
		2, "63");
	policy_bad("[host]\nport.mlx5_0.qp = 1\n", 2,
		   "'port.mlx5_0.qp': invalid key of a port: expected port.NAME/PORT.KIND");
	policy_bad("[host]\nport.mlx5_0/1 = 1\n", 2, "port.NAME/PORT.KIND");
	policy_bad("[host]\nport./1.qp = 1\n", 2, "invalid name of a device");
	policy_bad("[host]\n\nport.mlx5_0/0.qp = 1\n", 3,
		   "port.mlx5_0/0.qp: invalid port '0': expected a number from 1 to 4");
	policy_bad("[tenant a]\nport.mlx5_0/255.qp = 1\n", 2, "invalid port '255'");
	policy_bad("[tenant a]\nport.mlx5_0/5.qp = 1\n", 2, "invalid port '5'");
	policy_bad("[tenant a]\nport.mlx5_0/x.qp = 1\n", 2, "invalid port 'x'");
	policy_bad("[tenant a]\nport.mlx5_0/.qp = 1\n", 2, "invalid port ''");
	policy_bad("[default]\nprocess.port.mlx5_0/1.mr = 1\n", 2,
		   "process.port.mlx5_0/1.mr: invalid kind of a port 'mr': expected qp or ah");
	policy_bad("[host]\nport.mlx5_0/1.qp.x = 1\n", 2, "invalid kind of a port 'qp.x'");
	policy_bad("[host]\nprocess.port.mlx5_0/1.qp = 1\n", 2, "'process.port.mlx5_0/1.qp'|[host]");
	policy_bad("[host]\nport.mlx5_0/1.qp = 1K\n", 2, "'1K'|count");
	policy_bad("[host]\ndevice.mlx5_0.nosuch = 1\n", 2,
		   "'nosuch'|device.mlx5_0.nosuch|recv_wr");
	policy_bad("[tenant a]\nprocess.nosuch = 1\n", 2, "'nosuch'");
	policy_bad("[host]\nqp\n", 2, "'qp'|KEY = VALUE");
	policy_bad("[host]\nqp =\n", 2, "'qp': missing value");
	policy_bad("[host]\n= 3\n", 2, "''");
	policy_bad("[host]\nqp = many\n", 2, "'many'|qp|unlimited");
	policy_bad("[host]\nqp = -1\n", 2, "'-1'");
	policy_bad("[host]\nqp = unset\n", 2, "'unset'");
	policy_bad("[host]\nmr_bytes = 5X\n", 2, "'5X'|K, M, G or T");
	policy_bad("[host]\nqp = 99999999999999999999\n", 2, "too large");
	policy_bad("[host]\nqp = 18446744073709551614\n", 2, "too large");
	policy_bad("[host]\nqp = 10 # ten\n", 2, "comment");
	policy_bad("[collector]\nstate = /x ; here\n", 2, "comment");
	policy_bad("[default]\nmode = off\n", 2,
		   "mode: invalid value 'off': expected enforce, warn or audit");
	policy_bad("[default]\nguard = enforce\n", 2,
		   "guard: invalid value 'enforce': expected on or off");
	policy_bad("[tenant a]\nguard = unset\n", 2, "'unset'|on or off");
	policy_bad("[host]\nguard_writes = yes\n", 2, "'yes'|guard_writes|on or off");
	policy_bad("[host]\nguard = on\n", 2, "'guard'|guard_writes");
	policy_bad("[tenant a]\nrate.reg_mr = 100\n", 2, "rate.reg_mr|'100'|expected N/s");
	policy_bad("[tenant a]\nprocess.rate.qp = 100/s\n", 2,
		   "process.rate.qp|unknown class 'qp'|create_qp|create_ah or connect");
	policy_bad("[default]\nrate.x = 100/s\n", 2, "rate.x|unknown class 'x'");
	policy_bad("[default]\nrate_action = wait\n", 2, "rate_action|throttle or deny");
	policy_bad("[default]\nmax_delay = 100\n", 2, "max_delay|'100'|100ms");
	policy_bad("[tenant a]\nguard_writes = on\n", 2, "'guard_writes'|mode, guard, |devices|or match");
	policy_bad("[tenant a]\nweight = 0\n", 2, "weight: invalid value '0'|1 to 10000");
	policy_bad("[tenant a]\nweight = -1\n", 2, "weight: invalid value '-1'");
	policy_bad("[tenant a]\nweight = 10001\n", 2, "weight: invalid value '10001'");
	policy_bad("[host]\npressure = 80\n", 2, "pressure: invalid value '80'|0% to 100%");
	policy_bad("[host]\npressure = 101%\n", 2, "pressure: invalid value '101%'");
	policy_bad("[tenant a]\nguarantee.qp = unlimited\n", 2, "guarantee.qp|'unlimited'");
	/* What cannot be kept, also by what [default] says. */
	policy_bad("[tenant a]\nqp = 1\nguarantee.qp = 2\n", 3,
		   "guarantee.qp: 2 for tenant 'a': expected at most 1, the limit of the tenant");
	policy_bad("[default]\nqp = 1\n[tenant a]\nguarantee.qp = 2\n", 4, "guarantee.qp: 2");
	policy_bad("[tenant a]\nqp = 1\n[default]\nguarantee.qp = 2\n", 4, "guarantee.qp: 2");
	policy_bad("[tenant a]\nqp = 1\nguarantee.device.x.qp = 2\n", 3,
		   "guarantee.device.x.qp: 2|the limit of the tenant in total");
	policy_bad("[host]\nqp = 9\n[tenant a]\nguarantee.qp = 5\n[tenant b]\nguarantee.qp = 5\n", 6,
		   "guarantee.qp: 10 for all tenants together: expected at most 9");
	policy_bad("[default]\nguarantee.qp = 4\n[host]\nqp = 7\n[tenant a]\n", 2,
		   "guarantee.qp: 8 for all tenants together");
	policy_bad("[tenant a]\nqps = 1\n", 2, "did you mean 'qp'?");
	policy_bad("[tenant a]\nguard = on\nguard = on\n", 3, "guard: set already in line 2");
	policy_bad("[collector]\nsocket = x.sock\n", 2, "socket|'x.sock'|/");
	policy_bad("[collector]\nadmin_group = no_such_group\n", 2, "group|'no_such_group'");
	/* Once in a section of a file, also if the section is opened again. */
	policy_bad("[host]\nqp = 1\nmr = 2\nqp = 3\n", 4, "qp: set already in line 2");
	policy_bad("[tenant a]\nmode = warn\n[tenant b]\nmode = warn\n[tenant a]\nmode = audit\n",
		   6, "mode: set already in line 2");
	policy_bad("[tenant a]\nprocess.device.x.qp = 1\nprocess.device.x.qp = 1\n", 3,
		   "process.device.x.qp: set already in line 2");
	policy_free(policy_good("[tenant host]\nqp = 1\n[host]\nqp = 2\n[default]\nqp = 3\n"));
}

static void bad_matches(void)
{
	policy_bad("[tenant a]\nmatch = uid\n", 2, "'uid'|uid=|job=");
	policy_bad("[tenant a]\nmatch = uid = 5\n", 2, "'uid'|without blanks");
	policy_bad("[tenant a]\nmatch = user=5\n", 2, "'user'|cgroup=");
	policy_bad("[tenant a]\nmatch = uid=1 uid=2\n", 2, "repeated condition uid=");
	policy_bad("[tenant a]\nmatch = job=1 job=2\n", 2, "repeated condition job=");
	policy_bad("[tenant a]\nmatch = uid=\n", 2, "uid");
	policy_bad("[tenant a]\nmatch = uid=*\n", 2,
		   "uid: invalid value '*': patterns are not possible here: expected a number");
	policy_bad("[tenant a]\nmatch = uid=1,,2\n", 2, "''|uid");
	policy_bad("[tenant a]\nmatch = uid=4294967295\n", 2, "'4294967295'");
	policy_bad("[tenant a]\nmatch = uid=9-3\n", 2, "'9-3'|range");
	policy_bad("[tenant a]\nmatch = uid=1-2-3\n", 2, "'1-2-3'");
	policy_bad("[tenant a]\nmatch = uid=no_such_user\n", 2, "user|'no_such_user'");
	policy_bad("[tenant a]\nmatch = gid=root,no_such_group\n", 2, "group|'no_such_group'");
	policy_bad("[tenant a]\nmatch = uid=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17\n", 2, "16");
	policy_bad("[tenant a]\nmatch = cgroup=\n", 2, "cgroup: missing value");
	policy_bad("[tenant a]\nmatch = cgroup=slurm/*\n", 2, "'slurm/*'|/");
	policy_bad(
		"[tenant a]\nmatch = job=0123456789012345678901234567890123456789012345678901234567890123",
		2, "63");
}

static void strange_files(void)
{
	char *large = malloc((1 << 20) + 2), line[600];
	struct policy *policy;
	int result;

	policy = policy_good("\xef\xbb\xbf[host]\r\nqp = 5\r\n\r\n# end\r\n   mr = 6");
	CHECK(policy_limit(&policy->host, NULL, KIND_qp) == 5);
	CHECK(policy_limit(&policy->host, NULL, KIND_mr) == 6);
	policy_free(policy);
	policy_free(policy_good("[host]\n# caf\xc3\xa9\n"));

	policy_bad_bytes("[host]\nqp = 1\0 0\n", 17, 2, "0x00");
	policy_bad_bytes("\xff\xfe[\0h\0", 6, 1, "0x00");
	policy_bad("[host]\rqp = 1\r", 1, "0x0d");
	policy_bad("[host]\nqp = \x1b[31m1\n", 2, "0x1b");

	/* Nothing is cut: a long line is read to its end, a long value is refused. */
	memset(line, 'x', sizeof(line));
	memcpy(line, "[host]\n#", 8);
	strcpy(line + sizeof(line) - 9, "\nqp = 7\n");
	policy = policy_good(line);
	CHECK(policy_limit(&policy->host, NULL, KIND_qp) == 7);
	policy_free(policy);
	memset(line, 'x', sizeof(line));
	memcpy(line, "[collector]\nstate = /", 21);
	line[sizeof(line) - 1] = '\0';
	policy_bad(line, 2, "state|255");
	line[12 + 8 + 256] = '\0';
	policy_bad(line, 2, "state|255");
	line[12 + 8 + 255] = '\0';
	policy_free(policy_good(line));
	memcpy(line, "[collector]\nsocket= /", 21);
	line[12 + 8 + 108] = '\0';
	policy_bad(line, 2, "socket|107");
	line[12 + 8 + 107] = '\0';
	policy_free(policy_good(line));

	memset(large, '\n', 1 << 20);
	memcpy(large, "[host]\nqp = 3", 13);
	large[1 << 20] = '\0';
	policy = policy_good(large);
	CHECK(policy_limit(&policy->host, NULL, KIND_qp) == 3);
	policy_free(policy);
	large[1 << 20] = '\n';
	policy_bad_bytes(large, (1 << 20) + 1, 0, "1 MiB");
	free(large);

	unlink(file_path("policy.conf"));
	CHECK(!policy_from_files(&result) && result == -ENOENT);
	CHECK(strstr(policy_complaint, file_path("policy.conf")) == policy_complaint);
	mkdir(file_path("policy.conf"), 0700);
	CHECK(!policy_from_files(&result) && result == -EISDIR &&
	      strstr(policy_complaint, "directory"));
	rmdir(file_path("policy.conf"));
	mkfifo(file_path("policy.conf"), 0600);
	CHECK(!policy_from_files(&result) && result == -EINVAL &&
	      strstr(policy_complaint, "regular file"));
	unlink(file_path("policy.conf"));
	if (geteuid() != 0) {
		file_is("policy.conf", "");
		chmod(file_path("policy.conf"), 0);
		CHECK(!policy_from_files(&result) && result == -EACCES);
		unlink(file_path("policy.conf"));
	}
	memset(line, '/', sizeof(line));
	line[sizeof(line) - 1] = '\0';
	policy = policy_new();
	CHECK(policy_read(policy, line, policy_complaint) == -ENAMETOOLONG &&
	      strstr(policy_complaint, "too long"));
	policy_free(policy);
}

static void bounds(void)
{
	char *text = malloc(1 << 20);
	int length, full;

	length = sprintf(text, "[host]\n");
	for (int i = 0; i < POLICY_DEVICES; i++)
		length += sprintf(text + length, "device.d%d.qp = %d\n", i, i);
	policy_free(policy_good(text));
	sprintf(text + length, "device.more.qp = 1\n");
	policy_bad(text, POLICY_DEVICES + 2, "more|31 devices");

	for (length = 0, full = 0; full < POLICY_TENANTS; full++)
		length += sprintf(text + length, "[tenant t%d]\n", full);
	policy_free(policy_good(text));
	sprintf(text + length, "[tenant t0]\n[tenant more]\n");
	policy_bad(text, POLICY_TENANTS + 2, "more|1024 tenants");

	length = sprintf(text, "[tenant t]\n");
	for (int i = 0; i < POLICY_RULES; i++)
		length += sprintf(text + length, "match = uid=%d\n", i);
	policy_free(policy_good(text));
	sprintf(text + length, "match = uid=7\nmatch = gid=1\n");
	policy_bad(text, POLICY_RULES + 3, "4096 match lines");
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

	mkdir(file_path("tenants.d"), 0700);
	file_is(files[0], "[tenant one]\nqp = 3\nmatch = uid=3\n");
	file_is(files[1], "[tenant two]\nmatch = uid=2\n[tenant one]\nqp = 2\nmr = 2\n");
	file_is(files[2], "[tenant one]\nmatch = uid=1\nmw = 1\n");
	file_is(files[3], "not read\n");
	file_is(files[4], "not read\n");
	file_is(files[5], "not read\n");
	policy = policy_good(
		"[tenant two]\nmatch = uid=0\n[tenant one]\nqp = 0\nmr = 0\nmw = 0\nah = 0\n");
	CHECK(policy_limit_of(policy, "one", false, NULL, KIND_qp) == 3);
	CHECK(policy_limit_of(policy, "one", false, NULL, KIND_mr) == 2);
	CHECK(policy_limit_of(policy, "one", false, NULL, KIND_mw) == 1);
	CHECK(policy_limit_of(policy, "one", false, NULL, KIND_ah) == 0);
	rule = policy->rules;
	for (unsigned uid = 0; uid < 4; uid++, rule = rule->next)
		if (!CHECK(rule && rule->uid.range[0].first == uid))
			break;
	CHECK(!rule);
	snprintf(words, sizeof(words), "%s/tenants.d/B.conf:2", policy_directory);
	CHECK(!strcmp(policy->rules->next->source, words) &&
	      !strcmp(policy->rules->next->text, "uid=1"), "%s", policy->rules->next->source);
	policy_free(policy);

	file_is(files[1], "[tenant two]\n\nqp = no\n");
	CHECK(!policy_from_files(&result) && result == -EINVAL);
	snprintf(words, sizeof(words), "%s/tenants.d/a.conf:3: qp: invalid value 'no'",
		 policy_directory);
	CHECK(!strncmp(policy_complaint, words, strlen(words)), "%s", policy_complaint);
	/* A link to nowhere is not taken for a host without a policy. */
	unlink(file_path(files[1]));
	CHECK(symlink("/nonexistent", file_path(files[1])) == 0);
	CHECK(!policy_from_files(&result) && result == -EINVAL &&
	      strstr(policy_complaint, "a.conf: No such"));
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		unlink(file_path(files[i]));
	rmdir(file_path("tenants.d"));
	file_is("tenants.d", "");
	CHECK(!policy_from_files(&result) && result == -ENOTDIR &&
	      strstr(policy_complaint, "tenants.d: "));
	unlink(file_path("tenants.d"));
}

/* The example that is installed is true. */
static void example(void)
{
	const char *source = getenv("SOURCE_DIRECTORY");
	struct policy *policy = policy_new();
	char path[POLICY_PATH];

	snprintf(path, sizeof(path), "%s/packaging/policy.conf.example", source ? source : ".");
	CHECK(policy_read_file(policy, path, false, policy_complaint) == 0, "%s", policy_complaint);
	CHECK(policy_limit(&policy->host, NULL, KIND_qp) != NONE && policy->rules);
	policy_free(policy);
}

static void driver(void)
{
	policy_files_begin();
	RUN(values);
	RUN(every_kind_has_its_keys);
	RUN(ports);
	RUN(mistakes);
	RUN(bad_matches);
	RUN(strange_files);
	RUN(bounds);
	RUN(several_files);
	RUN(example);
	policy_files_remove();
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
