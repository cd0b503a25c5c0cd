/* SPDX-License-Identifier: MIT */
/*
 * A host on which nobody has written a policy yet: the collector's default file is read by itself
 * when it comes, although its directory does not exist when the collector starts; and a directory
 * that is taken away and put back is watched again. The collector has an /etc of its own.
 */
#include "collector.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"

enum { NOT_PERMITTED = 77 };

static void collector_exec_fresh(void)
{
	char program[256], etc[128], state[128];

	snprintf(program, sizeof(program), "%s/collector_server", getenv("BUILD_DIRECTORY"));
	snprintf(etc, sizeof(etc), "%s", harness_path("etc"));
	snprintf(state, sizeof(state), "%s", harness_path("state"));
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount(etc, "/etc", NULL, MS_BIND, NULL))
		_exit(NOT_PERMITTED);
	setenv("RDMA_MONITOR_DIRECTORY", harness_path("monitor"), false);
	unsetenv("RDMA_INTERCEPT_POLICY");
	execl(program, "collector_server", "--socket", collector_socket(), "--state", state, NULL);
	_exit(126);
}

static bool collector_answers(struct proto_status *ret_status)
{
	char problem[PROBLEM_SIZE];

	return proto_call(collector_socket(), MESSAGE_STATUS, NULL, ret_status, NULL, 0, 1000,
			  problem) == 0;
}

static uint64_t qp_limit(void)
{
	return collector_tenant("a").limit[KIND_qp];
}

static void policy_write_limit(unsigned limit)
{
	FILE *file = fopen(harness_path("etc/rdma_intercept/policy.conf"), "w");

	if (!file || fprintf(file, "[tenant a]\nmatch = uid=61997\nqp = %u\n", limit) < 0 ||
	    fclose(file))
		abort();
}

static void first_policy(void)
{
	struct proto_status status = { 0 };
	char directory[128], away[128];
	int ended = 0;
	pid_t pid;

	snprintf(directory, sizeof(directory), "%s", harness_path("etc/rdma_intercept"));
	snprintf(away, sizeof(away), "%s", harness_path("etc/away"));
	if (mkdir(harness_path("etc"), 0755))
		abort();
	pid = fork_child();
	if (pid == 0)
		collector_exec_fresh();
	NEED(collector_answers(&status) || waitpid(pid, &ended, WNOHANG) == pid);
	if (ended && WIFEXITED(ended) && WEXITSTATUS(ended) == NOT_PERMITTED) {
		skip_part("this needs root, and the right to mount");
		return;
	}
	CHECK(!ended && !status.policy[0] && !status.problem[0], "%s", status.policy);
	/* The directory first, and the file later. */
	CHECK(mkdir(directory, 0755) == 0);
	policy_write_limit(3);
	EVENTUALLY(qp_limit() == 3);
	policy_write_limit(4);
	EVENTUALLY(qp_limit() == 4);
	/* Another directory in its place, as a tool for configurations does. */
	CHECK(rename(directory, away) == 0);
	EVENTUALLY(collector_answers(&status) && status.problem[0]);
	CHECK(qp_limit() == 4);
	CHECK(mkdir(directory, 0755) == 0);
	policy_write_limit(5);
	EVENTUALLY(qp_limit() == 5);
	EVENTUALLY(collector_answers(&status) && !status.problem[0], "%s", status.problem);
	kill(pid, SIGTERM);
	CHECK(waitpid(pid, &ended, 0) == pid && WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
}

static void driver(void)
{
	RUN(first_policy);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
