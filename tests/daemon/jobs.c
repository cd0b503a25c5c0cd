/* SPDX-License-Identifier: MIT */
/* Jobs of Slurm as tenants of a collector, as prolog, epilog and sweep add and remove them. No Slurm takes
 * part. */
#include "collector.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <sched.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "base/file.h"
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

static bool sweep_removes(unsigned number)
{
	const struct job other = job_of(1);

	CHECK(job_begin(number) == 0, "%s", problem);
	return jobs_sweep(&settings, &other, is_over, problem) == 1;
}

/* One sweep at a time; what users can lock does not stop it. */
static void locks(void)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	char directory[PATH_MAX], file[PATH_MAX];
	int held;

	begin("[tenant job-%j]\nmatch = job=*\nqp = 8\n");
	snprintf(directory, sizeof(directory), "%s", collector_socket());
	held = open(dirname(directory), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(held >= 0 && !flock(held, LOCK_EX));
	CHECK(sweep_removes(7), "%s", problem);
	close(held);
	snprintf(file, sizeof(file), "%s.slurm", collector_socket());
	held = open(file, O_RDONLY | O_CLOEXEC);
	CHECK(held >= 0 && !flock(held, LOCK_EX));
	CHECK(sweep_removes(8), "%s", problem);
	close(held);
	held = open(file, O_RDWR | O_CLOEXEC);
	CHECK(held >= 0 && !fcntl(held, F_OFD_SETLK, &whole));
	CHECK(!sweep_removes(9) && there_is("job-9"));
	close(held);
	CHECK(sweep_removes(9), "%s", problem);
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

/* Of a node with a long name, in the unified hierarchy. */
#define NODE "node-0001.rack-17.cluster.example.org"
#define SCOPE CGROUP_MOUNT_HYBRID "/system.slice/" NODE "_slurmstepd.scope"

/* So many limits that the collector takes them in no message: the job is its own tenant all the same, and
 * guarded, since without options it would be. */
static void too_many_limits(void)
{
	struct job job = job_of(4294967);
	struct job_limits limits;
	int result;

	if (getuid() != 0) {
		skip_part("only root can make the control group of slurmd");
		return;
	}
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tmpfs", CGROUP_MOUNT, "tmpfs", 0, NULL)) {
		skip_part("a mount namespace cannot be made here: %s", strerror(errno));
		return;
	}
	CHECK(file_make_directories(SCOPE, 0755, 0755, true) == 0);
	begin("[tenant job-%j]\nmatch = job=*\nqp = 8\n");
	job.node = NODE;
	settings.guard = true;
	job_limits_init(&limits);
	for (unsigned kind = 0; kind < KIND_COUNT; kind++)
		limits.amount[kind] = UNLIMITED - 2;
	for (unsigned class = 0; class < RATE_CLASSES; class++)
		limits.rate[class] = (struct rate){ RATE_MOST, RATE_MOST };
	limits.pace = (struct pace_rate){ 1ull << 50, 1ull << 50 };
	result = job_register(&settings, &job, &limits, problem);
	CHECK(result > 0 && result & JOB_WITHOUT_OPTIONS, "%d: %s", result, problem);
	CHECK(there_is("job-4294967") && collector_tenant("job-4294967").limit[KIND_qp] == 8);
	collector_stop();
}

static void driver(void)
{
	RUN(jobs);
	RUN(tenants_of_others);
	RUN(locks);
	RUN(too_many_limits);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
