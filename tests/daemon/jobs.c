/* SPDX-License-Identifier: MIT */
/* Jobs of Slurm as tenants of a collector, as prolog, epilog and sweep add and remove them. No Slurm takes
 * part. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "collector.h"
#include "harness.h"
#include "slurm/jobs.h"

static struct plugin_settings settings;
static char problem[PROBLEM_SIZE];

static struct job job_of(uint32_t number)
{
	return (struct job){ .number = number, .uid = getuid(), .gid = getgid(), .node = "n1" };
}

static int job_begin(uint32_t number)
{
	const struct job job = job_of(number);
	struct job_limits limits;

	job_limits_init(&limits);
	limits.amount[KIND_qp] = 100;
	return job_register(&settings, &job, &limits, problem);
}

static bool there_is(const char *tenant)
{
	return collector_tenant(tenant).tenant[0] != '\0';
}

static int tenant_add(const char *section, const char *text)
{
	struct proto_change change = { 0 };

	snprintf(change.section, sizeof(change.section), "%s", section);
	snprintf(change.text, sizeof(change.text), "%s", text);
	return collector_call(MESSAGE_TENANT_ADD, &change, NULL);
}

static bool is_over(uint32_t number, const char *where)
{
	return true;
}

static void begin(const char *policy)
{
	settings = (struct plugin_settings){ .library = "" };
	snprintf(settings.socket, sizeof(settings.socket), "%s", collector_socket());
	collector_fresh(policy, "");
}

static void jobs(void)
{
	const struct job other = job_of(1);

	begin("[tenant job-%j]\nmatch = job=*\nqp = 8\n");
	CHECK(job_begin(7) == 0, "%s", problem);
	CHECK(collector_tenant("job-7").limit[KIND_qp] == 8);
	CHECK(job_begin(7) == 0, "%s", problem);
	CHECK(job_begin(77) == 0, "%s", problem);
	CHECK(job_unregister(&settings, 7, problem) == 0 && !there_is("job-7") && there_is("job-77"));
	CHECK(job_unregister(&settings, 7, problem) == -ENOENT);
	CHECK(jobs_sweep(&settings, &other, is_over, problem) == 1 && !there_is("job-77"));
	collector_stop();
}

/* What administrators have made stays, also if they have put the job there. */
static void tenants_of_others(void)
{
	const struct job other = job_of(1);

	begin("[tenant job-%j]\nmatch = job=*\nqp = 8\n[tenant batch]\nmatch = uid=61999\n");
	CHECK(tenant_add("tenant vip", "match = first job=7\nmatch = first job=8\nqp = 50\n") == 0);
	CHECK(collector_set("tenant batch", "match = first job=9\n") == 0);
	CHECK(job_begin(7) == JOB_IS_OF_OTHERS, "%s", problem);
	CHECK(job_begin(9) == JOB_IS_OF_OTHERS, "%s", problem);
	CHECK(job_begin(10) == 0, "%s", problem);
	CHECK(job_unregister(&settings, 7, problem) == -ENOENT);
	CHECK(jobs_sweep(&settings, &other, is_over, problem) == 1, "%s", problem);
	CHECK(there_is("vip") && there_is("batch") && !there_is("job-10"));
	collector_stop();
}

static void driver(void)
{
	RUN(jobs);
	RUN(tenants_of_others);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
