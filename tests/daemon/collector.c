/* SPDX-License-Identifier: MIT */
/* Starting and asking the test's collector; see collector.h. */
#include "collector.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"

static pid_t collector;

pid_t collector_pid(void)
{
	return collector;
}

const char *collector_socket(void)
{
	static char path[PROTO_PATH];

	if (!path[0])
		snprintf(path, sizeof(path), "%s", harness_path("collector.sock"));
	return path;
}

void collector_policy(const char *text)
{
	FILE *file = fopen(harness_path("policy.conf"), "w");

	if (!file || fputs(text, file) < 0 || fclose(file))
		abort();
}

static void collector_exec(const char *variables, const char *program)
{
	char state[128], policy[128], *line, *rest = strdup(variables);
	int fd = open(harness_path("collector.log"), O_WRONLY | O_CREAT | O_APPEND, 0600);

	dup2(fd, STDERR_FILENO);
	/* The library waits for one second and refuses then: a collector that shares its
	 * processor with busy strangers needs to be served first. This may fail. */
	setpriority(PRIO_PROCESS, 0, -15);
	while ((line = strsep(&rest, "\n")))
		if (*line)
			putenv(line);
	setenv("RDMA_MONITOR_DIRECTORY", harness_path("monitor"), false); /* not the host's */
	snprintf(state, sizeof(state), "%s", harness_path("state"));
	snprintf(policy, sizeof(policy), "%s", harness_path("policy.conf"));
	execl(program, "collector_server", "--socket", collector_socket(), "--state", state,
	      "--policy", policy, NULL);
	_exit(126);
}

pid_t collector_restart(const char *variables)
{
	struct proto_status collector_state;
	struct waiting waiting = { .for_what = "the collector answers", .file = __FILE__,
				   .line = __LINE__ };
	char program[256], problem[PROBLEM_SIZE];

	snprintf(program, sizeof(program), "%s/collector_server", getenv("BUILD_DIRECTORY"));
	collector = fork_child();
	if (collector == 0)
		collector_exec(variables, program);
	while (proto_call(collector_socket(), MESSAGE_STATUS, NULL, &collector_state, NULL, 0, 1000, problem) <
		       0 ||
	       collector_state.pid != collector)
		if (waitpid(collector, NULL, WNOHANG) == collector || !waiting_goes_on(&waiting)) {
			CHECK(false, "the collector does not start: %s\n%s", problem,
			      collector_log());
			stop_here();
		}
	return collector;
}

pid_t collector_start(const char *variables)
{
	if (access(harness_path("policy.conf"), F_OK))
		collector_policy("");
	return collector_restart(variables);
}

void collector_forget_policy(void)
{
	glob_t good;

	if (glob(harness_path("state/last-good*"), 0, NULL, &good))
		return;
	for (size_t i = 0; i < good.gl_pathc; i++)
		unlink(good.gl_pathv[i]);
	globfree(&good);
}

pid_t collector_fresh(const char *policy, const char *variables)
{
	static const char *const files[] = { "state/ledger", "state/runtime.conf", "collector.log" };


	for (unsigned i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		unlink(harness_path(files[i]));
	collector_forget_policy();
	collector_policy(policy);
	return collector_start(variables);
}

void collector_kill(void)
{
	kill(collector, SIGKILL);
	waitpid(collector, NULL, 0);
	collector = 0;
}

int collector_stop(void)
{
	int status = 0;

	kill(collector, SIGTERM);
	waitpid(collector, &status, 0);
	collector = 0;
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x: %s", (unsigned)status,
	      collector_log());
	return status;
}

const char *collector_log(void)
{
	static char text[65536];
	int fd = open(harness_path("collector.log"), O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	text[length < 0 ? 0 : length] = '\0';
	return text;
}

void collector_must_live(void)
{
	siginfo_t info = { 0 };

	if (!collector || waitid(P_PID, (id_t)collector, &info, WEXITED | WNOHANG | WNOWAIT) ||
	    !info.si_pid)
		return;
	CHECK(false, "the collector ended by itself, status %d:\n%s", info.si_status,
	      collector_log());
	stop_here();
}

int collector_call(enum message type, const void *body, void *ret_body)
{
	char problem[PROBLEM_SIZE], unused[PROTO_REPLY_MAX];
	struct proto_reply reply;
	int result;

	collector_must_live();
	result = proto_call(collector_socket(), type, body, ret_body ? ret_body : unused, &reply, 0,
			    COLLECTOR_PATIENCE_MS, problem);
	return result < 0 ? result : reply.status;
}

int collector_set(const char *section, const char *text)
{
	struct proto_change change = { 0 };

	snprintf(change.section, sizeof(change.section), "%s", section);
	snprintf(change.text, sizeof(change.text), "%s", text);
	return collector_call(MESSAGE_CHANGE_POLICY, &change, NULL);
}

/* The first row, which is the total. */
static int first_row(const void *row, void *closure)
{
	memcpy(closure, row, sizeof(struct proto_row));
	return 1;
}

static struct proto_row row_of(enum message type, const struct proto_choose *choose)
{
	struct proto_row row = { 0 };
	char problem[PROBLEM_SIZE];
	int result;

	collector_must_live();
	result = proto_rows(collector_socket(), type, choose, first_row, &row,
			    COLLECTOR_PATIENCE_MS, problem);
	CHECK(result >= 0, "%s", problem);
	return row;
}

struct proto_row collector_tenant(const char *name)
{
	struct proto_choose choose = { 0 };

	if (name)
		snprintf(choose.tenant, sizeof(choose.tenant), "%s", name);
	return row_of(MESSAGE_GET_STATS, &choose);
}

struct proto_row collector_process(pid_t pid)
{
	return row_of(MESSAGE_GET_PROC_STATS, &(struct proto_choose){ .pid = pid });
}

bool collector_wait_used(const char *tenant, enum kind kind, uint64_t amount)
{
	struct waiting waiting = { .for_what = "the amount in use", .file = __FILE__,
				   .line = __LINE__ };

	while (collector_tenant(tenant).used[kind] != amount)
		if (!waiting_goes_on(&waiting))
			return false;
	return true;
}
