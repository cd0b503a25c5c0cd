/* SPDX-License-Identifier: MIT */
/* Tenants within others: the values of the other one where a tenant sets none, and never more than its
 * limits, whatever the tenant says itself. */
#include <string.h>

#include "policy/origins.h"
#include "policyfiles.h"

#define JOB "[tenant job-%j]\nmatch = job=*\nqp = 8\nprocess.mr = 3\ndevice.x.qp = 2\nmode = warn\n" \
	    "rate.reg_mr = 100/s\npace.bytes = 10MB/s\n"

static struct policy *policy_with(const char *lines)
{
	struct policy *files = policy_good("[default]\ncq = 50\nguarantee.pd = 1\n" JOB "[tenant wide]\nqp = 20\n");
	struct policy *runtime = policy_new(), *all;

	CHECK(policy_change(runtime, "tenant t", lines, policy_complaint) == 0, "%s",
	      policy_complaint);
	all = policy_merge(files, runtime);
	policy_free(files);
	policy_free(runtime);
	return all;
}

static void amounts(void)
{
	struct policy *policy = policy_with("within = job-%j\nqp = 4\nprocess.mr = 9\nmr = 7\n");
	const struct policy_tenant *tenant = policy_tenant_find(policy, "t");

	CHECK(policy_limit_of(policy, "t", false, NULL, KIND_qp) == 4);
	CHECK(policy_limit_of(policy, "t", true, NULL, KIND_mr) == 3);
	CHECK(policy_limit_of(policy, "t", false, NULL, KIND_mr) == 7);
	CHECK(policy_limit_of(policy, "t", false, "x", KIND_qp) == 2);
	CHECK(policy_limit_of(policy, "t", false, NULL, KIND_cq) == 50);
	CHECK(policy_tenant_mode(policy, tenant) == MODE_WARN);
	CHECK(policy_tenant_guarantee(policy, tenant, NULL, KIND_pd) == 0);
	policy_free(policy);
	policy = policy_with("within = job-%j\nqp = unlimited\nmode = enforce\n");
	CHECK(policy_limit_of(policy, "t", false, NULL, KIND_qp) == 8);
	CHECK(policy_tenant_mode(policy, policy_tenant_find(policy, "t")) == MODE_ENFORCE);
	/* What it is within changes. */
	CHECK(policy_change(policy, "tenant job-%j", "qp = 3\n", policy_complaint) == 0);
	policy_bases_find(policy);
	CHECK(policy_limit_of(policy, "t", false, NULL, KIND_qp) == 3);
	CHECK(policy_remove_tenant(policy, "job-%j") == 0);
	CHECK(policy_limit_of(policy, "t", false, NULL, KIND_qp) == UNLIMITED);
	policy_free(policy);
}

static void rates(void)
{
	static const struct {
		const char *lines;
		unsigned rate;
		uint64_t pace;
	} rows[] = {
		{ "within = job-%j\n", 100, 10 << 20 },
		{ "within = job-%j\nrate.reg_mr = 20/s\npace.bytes = 1MB/s\n", 20, 1 << 20 },
		{ "within = job-%j\nrate.reg_mr = 500/s\npace.bytes = 90MB/s\n", 100, 10 << 20 },
		{ "within = job-%j\nrate.reg_mr = unlimited\npace.bytes = unlimited\n", 100, 10 << 20 },
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct policy *policy = policy_with(rows[i].lines);
		const struct policy_tenant *tenant = policy_tenant_find(policy, "t");

		CHECK(policy_tenant_rate(policy, tenant, RATE_OF_TENANT, RATE_reg_mr).per_second ==
			      rows[i].rate,
		      "%s", rows[i].lines);
		CHECK(policy_tenant_pace(policy, tenant).bytes.per_second == rows[i].pace, "%s",
		      rows[i].lines);
		policy_free(policy);
	}
}

/* A low rate with a large burst would be a way to more than the other one allows at once. */
static void bursts(void)
{
	static const struct {
		const char *lines;
		unsigned calls;
		uint64_t bytes;
	} rows[] = {
		{ "rate.reg_mr = 99/s burst 1000000\npace.bytes = 1MB/s burst 1T\n", 10, (10 << 20) / 20 },
		{ "rate.reg_mr = 200/s burst 3\npace.bytes = 90MB/s burst 5000\n", 3, 5000 },
		{ "rate.reg_mr = 20/s\npace.bytes = 1MB/s\n", 2, 0 },
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct policy *policy = policy_good(JOB "[tenant t]\n");
		const struct policy_tenant *tenant;
		char lines[256];

		snprintf(lines, sizeof(lines), "within = job-%%j\n%s", rows[i].lines);
		CHECK(policy_change(policy, "tenant t", lines, policy_complaint) == 0);
		CHECK(policy_change(policy, "tenant job-%j", "pace.ops = 1000/s burst 5\n",
				    policy_complaint) == 0);
		policy_bases_find(policy);
		tenant = policy_tenant_find(policy, "t");
		CHECK(policy_tenant_rate(policy, tenant, RATE_OF_TENANT, RATE_reg_mr).burst ==
			      rows[i].calls, "%s", rows[i].lines);
		CHECK(policy_tenant_pace(policy, tenant).bytes.burst == rows[i].bytes, "%s: %llu",
		      rows[i].lines,
		      (unsigned long long)policy_tenant_pace(policy, tenant).bytes.burst);
		CHECK(policy_tenant_pace(policy, tenant).operations.burst == 5);
		policy_free(policy);
	}
}

static void origins(void)
{
	struct policy *policy = policy_with("within = job-%j\nqp = 4\nprocess.mr = 9\n");
	const struct policy_tenant *tenant = policy_tenant_find(policy, "t");
	char origin[POLICY_ORIGIN];

	policy_limit_origin(policy, tenant, SCOPE_TENANT, NULL, KIND_qp, origin);
	CHECK(!strcmp(origin, POLICY_COMMAND), "%s", origin);
	policy_limit_origin(policy, tenant, SCOPE_PROCESS, NULL, KIND_mr, origin);
	CHECK(strstr(origin, "policy.conf:7") != NULL, "%s", origin);
	policy_limit_origin(policy, tenant, SCOPE_TENANT, NULL, KIND_cq, origin);
	CHECK(strstr(origin, "policy.conf:2 [default]") != NULL, "%s", origin);
	policy_free(policy);
}

/* The tenant "default" has what [default] says, also where no section names it. */
static void tenant_default(void)
{
	struct policy *policy = policy_good("[default]\nqp = 3\n[tenant t]\nwithin = default\nqp = 9\n");
	char origin[POLICY_ORIGIN];

	CHECK(policy_limit_of(policy, "t", false, NULL, KIND_qp) == 3);
	policy_limit_origin(policy, policy_tenant_find(policy, "t"), SCOPE_TENANT, NULL, KIND_qp,
			    origin);
	CHECK(strstr(origin, "policy.conf:2 [default]") != NULL, "%s", origin);
	policy_free(policy);
	policy = policy_good("[default]\nqp = 3\n[tenant default]\nqp = 6\n"
			     "[tenant t]\nwithin = default\nqp = 9\n");
	CHECK(policy_limit_of(policy, "t", false, NULL, KIND_qp) == 6);
	policy_free(policy);
}

/* A change counts at once: when lines are put over a policy that is in force. */
static void changed(void)
{
	struct policy *policy = policy_good("[tenant a]\nqp = 2\n[tenant t]\nqp = 9\n");

	CHECK(policy_change(policy, "tenant t", "within = a\n", policy_complaint) == 0);
	CHECK(policy_limit_of(policy, "t", false, NULL, KIND_qp) == 2);
	CHECK(policy_change(policy, "tenant t", "within = default\n", policy_complaint) == 0);
	CHECK(policy_change(policy, "default", "qp = 1\n", policy_complaint) == 0);
	CHECK(policy_limit_of(policy, "t", false, NULL, KIND_qp) == 1);
	CHECK(policy_change(policy, "tenant t", "within = unset\n", policy_complaint) == 0);
	CHECK(policy_limit_of(policy, "t", false, NULL, KIND_qp) == 9);
	policy_free(policy);
}

/* Rings, and names that there are not, are within nothing. */
static void rings(void)
{
	struct policy *policy = policy_good("[tenant a]\nwithin = b\nqp = 5\n[tenant b]\nwithin = c\nqp = 4\n"
					    "[tenant c]\nwithin = a\nqp = 3\n[tenant d]\nwithin = nobody\nqp = 2\n"
					    "[tenant e]\nwithin = f\nqp = 9\n[tenant f]\nwithin = g\nqp = 8\n"
					    "[tenant g]\nqp = 7\n");

	CHECK(policy_limit_of(policy, "a", false, NULL, KIND_qp) >= 3);
	CHECK(policy_limit_of(policy, "d", false, NULL, KIND_qp) == 2);
	CHECK(policy_limit_of(policy, "e", false, NULL, KIND_qp) == 7);
	policy_free(policy);
	/* Who is only within a ring is within its tenants all the same. */
	policy = policy_good("[tenant z]\nwithin = a\nqp = 9\n[tenant a]\nwithin = b\nqp = 5\n"
			     "[tenant b]\nwithin = a\nqp = 4\n");
	CHECK(policy_limit_of(policy, "z", false, NULL, KIND_qp) <= 5);
	policy_free(policy);
	policy_bad("[default]\nwithin = a\n", 2, "unknown key in [default]");
	policy_bad("[tenant job-%j]\nwithin = a\n", 2, "within: not possible in [job-%j]");
	policy_bad("[tenant a]\nwithin = a\n", 2, "within: not possible in [a]");
	policy_bad("[tenant a]\nwithin = a b\n", 2, "within: invalid value 'a b'");
}

static void driver(void)
{
	policy_files_begin();
	RUN(amounts);
	RUN(rates);
	RUN(bursts);
	RUN(origins);
	RUN(tenant_default);
	RUN(changed);
	RUN(rings);
	policy_files_remove();
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
