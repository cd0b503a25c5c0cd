/* SPDX-License-Identifier: MIT */
/* What the plugin for Slurm reads: options of jobs and words of plugstack.conf. Options come from users,
 * and their limits are lines of a policy that root sends. */
#include <string.h>

#include "harness.h"
#include "policy/policy.h"
#include "slurm/options.h"
#include "slurm/settings.h"

static char problem[PROBLEM_SIZE];

static int option_take(const char *name, const char *text, struct job_limits *limits)
{
	for (unsigned i = 0; i < job_options_count; i++)
		if (!strcmp(job_options[i].name, name))
			return job_option_take(&job_options[i], text, limits, problem);
	CHECK(false, "no option %s", name);
	return -1;
}

static void good(void)
{
	static const struct {
		const char *name, *text, *lines;
	} rows[] = {
		{ "rdma-max-qp", "64", "qp = 64\n" },
		{ "rdma-max-qp", "0", "qp = 0\n" },
		{ "rdma-max-qp", "unlimited", "" },
		{ "rdma-max-mem", "1.5G", "mr_bytes = 1610612736\n" },
		{ "rdma-limit", "srq=4,ah=100", "srq = 4\nah = 100\n" },
		{ "rdma-limit", "qp=9,qp=3", "qp = 3\n" },
		{ "rdma-rate", "reg_mr=100/s,create_qp=20/s burst 5",
		  "rate.create_qp = 20/s burst 5\nrate.reg_mr = 100/s burst 10\n" },
		{ "rdma-pace", "100MB/s", "pace.bytes = 104857600/s\n" },
	};
	char text[1024];

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct policy *policy = policy_new();
		struct job_limits limits;

		job_limits_init(&limits);
		CHECK(!job_limits_are_set(&limits));
		CHECK(option_take(rows[i].name, rows[i].text, &limits) == 0, "%s", problem);
		CHECK(job_limits_print(&limits, text, sizeof(text)) == 0);
		CHECK(!strcmp(text, rows[i].lines), "%s: %s", rows[i].text, text);
		CHECK(job_limits_are_set(&limits) == (rows[i].lines[0] != '\0'), "%s", rows[i].text);
		CHECK(policy_change(policy, "tenant t", text, problem) == 0, "%s", problem);
		policy_free(policy);
	}
}

static void bad(void)
{
	static const struct {
		const char *name, *text, *words;
	} rows[] = {
		{ "rdma-max-qp", "x", "--rdma-max-qp: invalid value 'x': expected a count" },
		{ "rdma-max-qp", "", "--rdma-max-qp: invalid value ''" },
		{ "rdma-max-qp", "-1", "invalid value '-1'" },
		{ "rdma-max-qp", "4\nguard = off", "invalid value" },
		{ "rdma-max-qp", "4K", "expected a count" },
		{ "rdma-limit", "q\n\033[1A=3", "unknown kind 'q??[1A'" },
		{ "rdma-max-mem", "1X", "expected a size" },
		{ "rdma-limit", "", "expected KIND=AMOUNT" },
		{ "rdma-limit", "qp", "expected KIND=AMOUNT" },
		{ "rdma-limit", "fish=3", "unknown kind 'fish'" },
		{ "rdma-limit", "qp=3,mr=x", "invalid value 'x'" },
		{ "rdma-rate", "fly=1/s", "unknown class 'fly'" },
		{ "rdma-rate", "reg_mr=1", "invalid value '1': expected CLASS=CALLS/s" },
		{ "rdma-rate", "reg_mr=1/s\nmode=audit", "expected CLASS=CALLS/s" },
		{ "rdma-pace", "fast", "expected a size with /s" },
		{ "rdma-pace", "unlimited", "expected a size with /s" },
	};
	struct job_limits limits;

	job_limits_init(&limits);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CHECK(option_take(rows[i].name, rows[i].text, &limits) < 0, "%s", rows[i].text);
		CHECK(strstr(problem, rows[i].words), "%s: %s", rows[i].text, problem);
		CHECK(!strpbrk(problem, "\n\033"), "%s", problem);
	}
	CHECK(!job_limits_are_set(&limits));
}

static void lower_counts(void)
{
	struct job_limits limits;
	char text[1024];

	job_limits_init(&limits);
	CHECK(option_take("rdma-max-qp", "4", &limits) == 0);
	CHECK(option_take("rdma-limit", "qp=9", &limits) == 0);
	CHECK(option_take("rdma-rate", "reg_mr=9/s", &limits) == 0);
	CHECK(option_take("rdma-rate", "reg_mr=100/s", &limits) == 0);
	CHECK(option_take("rdma-pace", "1MB/s", &limits) == 0);
	CHECK(option_take("rdma-pace", "9MB/s", &limits) == 0);
	CHECK(option_take("rdma-rate", "create_qp=9/s burst 500,create_qp=100/s", &limits) == 0);
	CHECK(job_limits_print(&limits, text, sizeof(text)) == 0);
	CHECK(!strcmp(text, "qp = 4\nrate.create_qp = 9/s burst 10\nrate.reg_mr = 9/s burst 1\npace.bytes = 1048576/s\n"), "%s", text);
	CHECK(job_limits_print(&limits, text, 12) < 0);
}

static void words(void)
{
	char *right[] = { "library=/x.so", "socket=/run/s", "within=job-%j", "guard=on", "comment=off" };
	char *wrong[] = { "guard=maybe", "socket=x", "fish", "library=none" };
	struct plugin_settings settings;

	CHECK(plugin_settings_read(0, NULL, &settings, problem) == 0);
	CHECK(settings.library[0] == '/' && !settings.socket[0] && !settings.guard && settings.comment);
	CHECK(plugin_settings_read(5, right, &settings, problem) == 0, "%s", problem);
	CHECK(!strcmp(settings.library, "/x.so") && !strcmp(settings.socket, "/run/s") &&
	      !strcmp(settings.within, "job-%j") && settings.guard && !settings.comment);
	CHECK(plugin_settings_read(4, wrong, &settings, problem) < 0);
	CHECK(strstr(problem, "guard: invalid value 'maybe': expected on or off"), "%s", problem);
	CHECK(!settings.library[0] && !settings.guard && !settings.socket[0]);
	CHECK(plugin_settings_read(1, wrong + 2, &settings, problem) < 0);
	CHECK(strstr(problem, "unknown word 'fish'"), "%s", problem);
}

static void driver(void)
{
	RUN(good);
	RUN(bad);
	RUN(lower_counts);
	RUN(words);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
