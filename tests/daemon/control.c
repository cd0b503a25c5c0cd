/* SPDX-License-Identifier: MIT */
/*
 * Policy in force: read at the start, again on demand, by signal and when a file
 * changes; all or nothing; changed by commands over the files, which survive a restart.
 * And how the collector comes and goes itself.
 */
#include "collector.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"

static uint64_t qp_limit(const char *tenant)
{
	return collector_tenant(tenant).limit[KIND_qp];
}

static void wait_limit(const char *tenant, uint64_t limit)
{
	EVENTUALLY(qp_limit(tenant) == limit, "the limit is %llu",
		   (unsigned long long)qp_limit(tenant));
}

static struct proto_status collector_state(void)
{
	struct proto_status answer = { 0 };

	CHECK(collector_call(MESSAGE_STATUS, NULL, &answer) == 0);
	return answer;
}

static int event_note(const void *row, void *closure)
{
	const struct proto_event *event = row;
	unsigned *seen = closure;

	*seen |= 1u << event->type;
	return 0;
}

/* An editor's way: a new file renamed over the old one. */
static void write_renamed(const char *name, const char *text)
{
	char path[128], temporary[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s", harness_path(name));
	snprintf(temporary, sizeof(temporary), "%s", harness_path("new~"));
	file = fopen(temporary, "w");
	if (!file || fputs(text, file) < 0 || fclose(file) || rename(temporary, path))
		abort();
}

static void reloads(void)
{
	unsigned count;

	collector_fresh("[tenant a]\nqp = 1\n", "");
	CHECK(qp_limit("a") == 1);
	/* The files are watched, written in place or replaced. */
	collector_policy("[tenant a]\nqp = 2\n");
	wait_limit("a", 2);
	write_renamed("policy.conf", "[tenant a]\nqp = 3\n");
	wait_limit("a", 3);
	mkdir(harness_path("tenants.d"), 0755);
	write_renamed("tenants.d/b.conf", "[tenant b]\nqp = 4\n");
	wait_limit("b", 4);
	write_renamed("tenants.d/b.conf", "[tenant b]\nqp = 5\n");
	wait_limit("b", 5);
	/* A bad one changes nothing, and says where. */
	write_renamed("tenants.d/c.conf", "[tenant c]\nqp = 6\nqpp = 7\n");
	EVENTUALLY(collector_state().problem[0]);
	CHECK(strstr(collector_state().problem, "/tenants.d/c.conf:3: "), "%s", collector_state().problem);
	CHECK(strstr(collector_state().problem, "qpp"), "%s", collector_state().problem);
	CHECK(qp_limit("b") == 5 && qp_limit("a") == 3);
	CHECK(collector_call(MESSAGE_RELOAD, NULL, NULL) == -EINVAL);
	CHECK(strstr(collector_log(), "the old policy stays"));
	/* Put right; by message and by signal. */
	count = collector_state().reloads;
	write_renamed("tenants.d/c.conf", "[tenant c]\nqp = 6\n");
	CHECK(collector_call(MESSAGE_RELOAD, NULL, NULL) == 0);
	CHECK(qp_limit("c") == 6 && !collector_state().problem[0] && collector_state().reloads > count);
	count = collector_state().reloads;
	kill(collector_pid(), SIGHUP);
	EVENTUALLY(collector_state().reloads > count);
	collector_stop();
}

/* ---- a policy that lost something is no policy */

/* Limits as they are when the collector has seen the change of files, and found it wrong. */
static void stays(const char *why)
{
	EVENTUALLY(strstr(collector_state().problem, why), "\"%s\"", collector_state().problem);
	CHECK(qp_limit("a") == 1 && collector_tenant("a").limit[KIND_mr] == 2 && qp_limit("b") == 3,
	      "%s: qp of a %llu, of b %llu", why, (unsigned long long)qp_limit("a"),
	      (unsigned long long)qp_limit("b"));
	CHECK(collector_call(MESSAGE_RELOAD, NULL, NULL) < 0, "%s", why);
	CHECK(qp_limit("a") == 1 && qp_limit("b") == 3, "%s", why);
}

static const char whole[] = "[tenant a]\nmatch = uid=61997\nmatch = uid=61998\nmode = warn\n"
			    "qp = 1\nmr = 2\n";

/* The file again, and in force. */
static void put_right(void)
{
	write_renamed("policy.conf", whole);
	CHECK(collector_call(MESSAGE_RELOAD, NULL, NULL) == 0, "%s", collector_state().problem);
	CHECK(!collector_state().problem[0] && collector_tenant("a").limit[KIND_mr] == 2);
}

static void incomplete_policies(void)
{
	static const struct {
		const char *text, *why;
	} cut[] = {
		{ "", "[tenant a]" },
		{ "# nothing\n", "[tenant a]" },
		{ "[host]\nqp = 100\n", "[tenant a]" },
		/* In the middle of a line that is a whole one too, and between two lines. */
		{ "[tenant a]\nmatch = uid=61997\nmatch = uid=61998\nmode = warn\nqp = 1\nmr = 2",
		  "policy.conf:6: " },
		{ "[tenant a]\nmatch = uid=61997\nmatch = uid=61998\nmode = warn\nqp = 1\n", "mr" },
		{ "[tenant a]\nmatch = uid=61997\nmatch = uid=61998\nqp = 1\nmr = 2\n", "mode" },
		{ "[tenant a]\nmatch = uid=61997\nmode = warn\nqp = 1\nmr = 2\n", "match" },
	};
	char directory[128], away[128];

	collector_fresh("", "");
	snprintf(directory, sizeof(directory), "%s", harness_path("tenants.d"));
	mkdir(directory, 0755);
	write_renamed("tenants.d/b.conf", "[tenant b]\nqp = 3\n");
	put_right();
	for (unsigned i = 0; i < sizeof(cut) / sizeof(cut[0]); i++) {
		collector_policy(cut[i].text); /* in place, as some editors do */
		stays(cut[i].why);
		put_right();
	}
	/* Away: the file, a part of the policy, and the directory of parts. */
	unlink(harness_path("policy.conf"));
	stays("policy.conf: No such file");
	put_right();
	unlink(harness_path("tenants.d/b.conf"));
	stays("[tenant b]");
	write_renamed("tenants.d/b.conf", "[tenant b]\nqp = 3\n");
	snprintf(away, sizeof(away), "%s", harness_path("tenants.away"));
	CHECK(rename(directory, away) == 0);
	stays("[tenant b]");
	CHECK(rename(away, directory) == 0);
	put_right();
	/* What is written is taken: other values, unlimited ones, more tenants. */
	write_renamed("policy.conf", "[tenant a]\nmatch = uid=61997\nmatch = uid=61996\n"
				     "mode = enforce\nqp = 7\nmr = unlimited\n[tenant new]\n");
	wait_limit("a", 7);
	CHECK(collector_tenant("a").limit[KIND_mr] == UNLIMITED && !collector_state().problem[0]);
	/* Less on purpose. */
	write_renamed("policy.conf", "[tenant a]\nqp = 7\n");
	EVENTUALLY(strstr(collector_state().problem, "reload --replace"), "%s", collector_state().problem);
	CHECK(collector_tenant("new").tenant[0]);
	CHECK(collector_call(MESSAGE_REPLACE, NULL, NULL) == 0, "%s", collector_state().problem);
	CHECK(!collector_tenant("new").tenant[0] && !collector_state().problem[0]);
	unlink(harness_path("policy.conf"));
	CHECK(collector_call(MESSAGE_REPLACE, NULL, NULL) == 0);
	CHECK(!collector_tenant("a").tenant[0] && !collector_state().policy[0], "%s", collector_state().policy);
	collector_stop();
}

/* A collector that starts with a policy that is not whole has the last that was. */
static void last_good_policy(void)
{
	static const char *const bad[] = { "", "[tenant a]\nqp = 1\n", "nonsense\n", NULL };
	struct proto_choose all = { 0 };
	char problem[PROBLEM_SIZE];
	unsigned seen;

	collector_fresh(whole, "");
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		collector_stop();
		/* Not by collector_policy: without a file there must be none. */
		if (bad[i])
			write_renamed("policy.conf", bad[i]);
		else
			unlink(harness_path("policy.conf"));
		collector_restart("");
		CHECK(qp_limit("a") == 1 && collector_tenant("a").limit[KIND_mr] == 2,
		      "policy %u: %llu", i, (unsigned long long)qp_limit("a"));
		CHECK(collector_tenant("a").mode == MODE_WARN);
		CHECK(collector_state().problem[0] && strstr(collector_log(), "the last good policy"),
		      "policy %u: %s", i, collector_log());
		seen = 0;
		CHECK(proto_rows(collector_socket(), MESSAGE_EVENTS, &all, event_note, &seen,
				 COLLECTOR_PATIENCE_MS, problem) == 0, "%s", problem);
		CHECK(seen & 1u << EVENT_RELOAD_FAILED, "%x", seen);
	}
	/* It stays the last good one until there is a better. */
	put_right();
	CHECK(collector_call(MESSAGE_REPLACE, NULL, NULL) == 0);
	unlink(harness_path("policy.conf"));
	CHECK(collector_call(MESSAGE_REPLACE, NULL, NULL) == 0);
	collector_policy("[tenant c]\nqp = 4\n");
	CHECK(collector_call(MESSAGE_RELOAD, NULL, NULL) == 0);
	collector_stop();
	collector_restart("");
	CHECK(qp_limit("c") == 4 && !collector_tenant("a").tenant[0] && !collector_state().problem[0]);
	collector_stop();
}

static int tenant(enum message type, const char *section, const char *text)
{
	struct proto_change change = { 0 };

	snprintf(change.section, sizeof(change.section), "%s", section);
	snprintf(change.text, sizeof(change.text), "%s", text);
	return collector_call(type, &change, NULL);
}

/* The tenant that a process gets now. */
static const char *tenant_joined(void)
{
	struct proto_hello hello = { .flags = HELLO_NO_MEMORY };
	static struct proto_welcome welcome;

	memset(hello.process_limit, 0xff, sizeof(hello.process_limit));
	memset(hello.host_limit, 0xff, sizeof(hello.host_limit));
	CHECK(collector_call(MESSAGE_HELLO, &hello, &welcome) == 0);
	return welcome.tenant;
}

static void changes_by_commands(void)
{
	collector_fresh("[tenant a]\nqp = 1\nmode = warn\n", "");
	/* Over the file, and over reloads and restarts, until it is taken back. */
	CHECK(collector_set("tenant a", "qp = 10\n") == 0 && qp_limit("a") == 10);
	CHECK(collector_call(MESSAGE_RELOAD, NULL, NULL) == 0 && qp_limit("a") == 10);
	collector_kill();
	collector_start("");
	CHECK(qp_limit("a") == 10 && collector_tenant("a").mode == MODE_WARN);
	CHECK(collector_set("tenant a", "qp = unset\n") == 0 && qp_limit("a") == 1);
	/* Nothing of a wrong one. */
	CHECK(collector_set("tenant a", "qp = 5\nqpp = 6\n") == -EINVAL && qp_limit("a") == 1);
	CHECK(collector_set("tenant nobody", "qp = 5\n") == -ENOENT);
	CHECK(!collector_tenant("nobody").tenant[0]);
	CHECK(collector_set("collector", "socket = /x\n") == -EINVAL);
	CHECK(collector_set("host", "mr = 7\n") == 0);
	CHECK(collector_tenant(NULL).limit[KIND_mr] == 7);
	/* Tenants that commands make; with "first" before the lines of files. */
	collector_policy("[tenant a]\nqp = 1\nmode = warn\nmatch = uid=0-70000\n");
	CHECK(collector_call(MESSAGE_RELOAD, NULL, NULL) == 0);
	CHECK(tenant(MESSAGE_TENANT_ADD, "tenant job", "match = first cgroup=*\n") == 0);
	CHECK(!strcmp(tenant_joined(), "job"), "%s", tenant_joined());
	collector_kill();
	collector_start("");
	CHECK(!strcmp(tenant_joined(), "job"), "%s", tenant_joined());
	CHECK(tenant(MESSAGE_TENANT_REMOVE, "tenant job", "") == 0);
	CHECK(!strcmp(tenant_joined(), "a"), "%s", tenant_joined());
	CHECK(tenant(MESSAGE_TENANT_ADD, "tenant t", "qp = 3\nmatch = uid=61999\n") == 0);
	CHECK(qp_limit("t") == 3 && collector_tenant("t").flags & ROW_RUNTIME);
	CHECK(tenant(MESSAGE_TENANT_ADD, "tenant t", "qp = 3\n") == -EEXIST);
	CHECK(tenant(MESSAGE_TENANT_ADD, "tenant a", "qp = 3\n") == -EEXIST);
	CHECK(tenant(MESSAGE_TENANT_ADD, "tenant x/y", "qp = 3\n") == -EINVAL);
	CHECK(tenant(MESSAGE_TENANT_ADD, "host", "qp = 3\n") == -EINVAL);
	collector_stop();
	collector_start("");
	CHECK(qp_limit("t") == 3);
	CHECK(tenant(MESSAGE_TENANT_REMOVE, "tenant t", "") == 0);
	CHECK(!collector_tenant("t").tenant[0]);
	CHECK(tenant(MESSAGE_TENANT_REMOVE, "tenant t", "") == -ENOENT);
	CHECK(tenant(MESSAGE_TENANT_REMOVE, "tenant a", "") < 0 && qp_limit("a") == 1);
	CHECK(collector_set("tenant default", "qp = 7") == 0);
	CHECK(tenant(MESSAGE_TENANT_REMOVE, "tenant default", "") == -EINVAL &&
	      qp_limit("default") == 7);
	CHECK(collector_set("tenant default", "qp = unset") == 0);
	collector_stop();
}

static int run(const char *arguments, char *output, size_t size)
{
	char command[1024];
	size_t length;
	FILE *pipe;

	snprintf(command, sizeof(command), "timeout 300 %s/collector_server %s 2>&1",
		 getenv("BUILD_DIRECTORY"), arguments);
	pipe = popen(command, "re");
	length = fread(output, 1, size - 1, pipe);
	output[length] = '\0';
	return WEXITSTATUS(pclose(pipe));
}

/* As many tenants as the books have room for: one more is refused whole, and nothing else is. */
/* One that a command adds has no more than the one that it is within, also after a restart, and after
 * that one has changed. */
static void tenants_within(void)
{
	collector_fresh("[tenant job-%j]\nmatch = job=*\nqp = 8\nmr = 6\n", "");
	CHECK(tenant(MESSAGE_TENANT_ADD, "tenant x", "within = y\n") == -EINVAL);
	CHECK(!collector_tenant("x").tenant[0]);
	CHECK(tenant(MESSAGE_TENANT_ADD, "tenant job-1",
		     "match = first job=1\nwithin = job-%j\nqp = 4\nmr = 100\n") == 0);
	CHECK(qp_limit("job-1") == 4 && collector_tenant("job-1").limit[KIND_mr] == 6);
	collector_kill();
	collector_start("");
	CHECK(qp_limit("job-1") == 4 && collector_tenant("job-1").limit[KIND_mr] == 6);
	collector_policy("[tenant job-%j]\nmatch = job=*\nqp = 2\nmr = 9\n");
	CHECK(collector_call(MESSAGE_RELOAD, NULL, NULL) == 0);
	CHECK(qp_limit("job-1") == 2 && collector_tenant("job-1").limit[KIND_mr] == 9);
	CHECK(tenant(MESSAGE_TENANT_REMOVE, "tenant job-1", "") == 0);
	CHECK(!collector_tenant("job-1").tenant[0]);
	/* What would leave a tenant without its bound is refused. */
	CHECK(tenant(MESSAGE_TENANT_ADD, "tenant outer", "qp = 5\n") == 0);
	CHECK(tenant(MESSAGE_TENANT_ADD, "tenant inner", "within = outer\nqp = 50\n") == 0);
	CHECK(qp_limit("inner") == 5);
	CHECK(collector_set("tenant inner", "within = nobody\n") == -EINVAL);
	CHECK(collector_set("tenant outer", "within = inner\n") == -EINVAL);
	CHECK(tenant(MESSAGE_TENANT_REMOVE, "tenant outer", "") == -EBUSY);
	CHECK(qp_limit("inner") == 5 && qp_limit("outer") == 5);
	CHECK(collector_set("default", "qp = 3\n") == 0);
	CHECK(collector_set("tenant inner", "within = default\n") == 0 && qp_limit("inner") == 3);
	CHECK(tenant(MESSAGE_TENANT_REMOVE, "tenant outer", "") == 0);
	collector_stop();
}

static void too_many_tenants(void)
{
	enum { ROOM = 1024 - 1 }; /* and the tenant default */
	char *policy = malloc(64 * ROOM), *end = policy;

	CHECK(policy);
	for (unsigned i = 0; i < ROOM; i++)
		end += sprintf(end, "[tenant t%u]\nqp = 1\n", i);
	collector_fresh(policy, "");
	free(policy);
	CHECK(qp_limit("t1022") == 1);
	CHECK(tenant(MESSAGE_TENANT_ADD, "tenant more", "qp = 3\n") == -ENOSPC);
	CHECK(tenant(MESSAGE_TENANT_REMOVE, "tenant more", "") == -ENOENT, "it was added");
	CHECK(collector_set("tenant t5", "qp = 5\n") == 0 && qp_limit("t5") == 5);
	/* Others in their place are not too many. */
	collector_policy("[tenant other]\nqp = 2\n");
	CHECK(collector_call(MESSAGE_REPLACE, NULL, NULL) == 0 && qp_limit("other") == 2);
	CHECK(tenant(MESSAGE_TENANT_ADD, "tenant more", "qp = 3\n") == 0 && qp_limit("more") == 3);
	collector_stop();
}

/* A tenant for which the state directory has no room: nothing of the change takes effect. */
static void changes_that_fail(void)
{
	char obstacle[128];

	collector_fresh("[tenant a]\nqp = 1\n", "");
	snprintf(obstacle, sizeof(obstacle), "%s", harness_path("state/.tenant-2.new"));
	CHECK(mkdir(obstacle, 0700) == 0);
	CHECK(tenant(MESSAGE_TENANT_ADD, "tenant b", "qp = 3\n") == -EISDIR);
	CHECK(tenant(MESSAGE_TENANT_REMOVE, "tenant b", "") == -ENOENT, "it was added");
	CHECK(collector_set("tenant a", "mr = 5\n") == 0);
	/* The file changes a limit, too. */
	collector_policy("[tenant a]\nqp = 2\n[tenant b]\nqp = 3\n");
	CHECK(collector_call(MESSAGE_RELOAD, NULL, NULL) == -EISDIR);
	CHECK(strstr(collector_state().problem, "tenant 'b': "), "%s", collector_state().problem);
	CHECK(qp_limit("a") == 1 && collector_tenant("a").limit[KIND_mr] == 5);
	CHECK(!collector_tenant("b").tenant[0]);
	CHECK(strstr(collector_log(), "the old policy stays"));
	CHECK(rmdir(obstacle) == 0);
	CHECK(collector_call(MESSAGE_RELOAD, NULL, NULL) == 0 && !collector_state().problem[0]);
	CHECK(qp_limit("a") == 2 && qp_limit("b") == 3);
	/* A restart finds what the answers said. */
	collector_stop();
	collector_start("");
	CHECK(qp_limit("a") == 2 && qp_limit("b") == 3 &&
	      collector_tenant("a").limit[KIND_mr] == 5);
	collector_stop();
}

/* A collector starts without a tenant that cannot be made; one that is made later has its limits. */
static void tenant_made_late(void)
{
	struct proto_hello hello = { .flags = HELLO_NO_MEMORY };
	struct proto_welcome welcome = { 0 };
	char obstacle[128], policy[128];

	memset(hello.process_limit, 0xff, sizeof(hello.process_limit));
	memset(hello.host_limit, 0xff, sizeof(hello.host_limit));
	collector_fresh("", "");
	collector_stop();
	snprintf(obstacle, sizeof(obstacle), "%s", harness_path("state/.tenant-1.new"));
	CHECK(mkdir(obstacle, 0700) == 0);
	snprintf(policy, sizeof(policy), "[tenant b]\nmatch = uid=%u\nqp = 3\n",
		 (unsigned)geteuid());
	collector_policy(policy);
	collector_start("");
	CHECK(strstr(collector_state().problem, "tenant 'b': "), "%s", collector_state().problem);
	CHECK(!collector_tenant("b").tenant[0]);
	CHECK(rmdir(obstacle) == 0);
	CHECK(collector_call(MESSAGE_HELLO, &hello, &welcome) == 0);
	CHECK(!strcmp(welcome.tenant, "b") && qp_limit("b") == 3, "%s: %llu", welcome.tenant,
	      (unsigned long long)qp_limit("b"));
	collector_stop();
}

static void start_and_arguments(void)
{
	char output[2048], arguments[512], policy[512];
	struct proto_status answer;

	collector_policy("");
	CHECK(run("--version", output, sizeof(output)) == 0 && strstr(output, "collector_server "));
	CHECK(run("--help", output, sizeof(output)) == 0 && strstr(output, "usage:"));
	CHECK(run("--nonsense", output, sizeof(output)) == 2, "%s", output);
	CHECK(run("nonsense", output, sizeof(output)) == 2 && strstr(output, "'nonsense'"));
	CHECK(run("--log-level LOUD", output, sizeof(output)) == 2 && strstr(output, "'LOUD'"));
	CHECK(run("--policy /does/not/exist.conf", output, sizeof(output)) == 1 &&
		      strstr(output, "/does/not/exist.conf"),
	      "%s", output);
	snprintf(arguments, sizeof(arguments), "--state /proc/nowhere --policy %s",
		 harness_path("policy.conf"));
	CHECK(run(arguments, output, sizeof(output)) == 1 && strstr(output, "/proc/nowhere"), "%s",
	      output);
	setenv("RDMA_INTERCEPT_MAX_GLOBAL_QP", "many", 1);
	CHECK(run("", output, sizeof(output)) == 1 &&
		      strstr(output, "RDMA_INTERCEPT_MAX_GLOBAL_QP: invalid value 'many'"),
	      "%s", output);
	unsetenv("RDMA_INTERCEPT_MAX_GLOBAL_QP");
	/* In the background: the socket answers when the command returns. It becomes our child, so
	 * that it ends with us. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	snprintf(arguments, sizeof(arguments), "--daemon --socket %s --state ", collector_socket());
	snprintf(arguments + strlen(arguments), sizeof(arguments) - strlen(arguments), "%s --log ",
		 harness_path("state2"));
	snprintf(arguments + strlen(arguments), sizeof(arguments) - strlen(arguments), "%s",
		 harness_path("daemon.log"));
	CHECK(run(arguments, output, sizeof(output)) == 0 && !output[0], "%s", output);
	if (CHECK(collector_call(MESSAGE_STATUS, NULL, &answer) == 0)) {
		CHECK(getpgid(answer.pid) != getpgid(0));
		kill(answer.pid, SIGTERM);
		CHECK(spawn_wait(answer.pid) == 0);
		CHECK(access(collector_socket(), F_OK) != 0);
	}
	/* Places that only the policy names. */
	snprintf(policy, sizeof(policy), "[collector]\nsocket = %s\nstate = ", collector_socket());
	snprintf(policy + strlen(policy), sizeof(policy) - strlen(policy), "%s\n",
		 harness_path("state4"));
	collector_policy(policy);
	snprintf(arguments, sizeof(arguments), "--daemon --policy %s", harness_path("policy.conf"));
	CHECK(run(arguments, output, sizeof(output)) == 0, "%s", output);
	if (CHECK(collector_call(MESSAGE_STATUS, NULL, &answer) == 0)) {
		CHECK(access(harness_path("state4/ledger"), F_OK) == 0);
		kill(answer.pid, SIGTERM);
		CHECK(spawn_wait(answer.pid) == 0);
	}
	collector_policy("");
	/* One that cannot start says so, and the caller learns of it. */
	snprintf(arguments, sizeof(arguments), "--daemon --socket /does/not/exist/sock --state %s",
		 harness_path("state3"));
	CHECK(run(arguments, output, sizeof(output)) == 1 && strstr(output, "/does/not/exist/sock"),
	      "%s", output);
}

static void explanations(void)
{
	struct proto_explanation answer;
	struct proto_choose all = { 0 };
	struct proto_ask ask = { .pid = getpid() };
	char policy[256], problem[PROBLEM_SIZE];
	unsigned seen = 0;

	snprintf(policy, sizeof(policy),
		 "[tenant nobody]\nmatch = uid=61998\n"
		 "[tenant me]\nmatch = uid=%u\n[tenant late]\nmatch = uid=%u\n",
		 (unsigned)geteuid(), (unsigned)geteuid());
	collector_fresh(policy, "");
	CHECK(collector_call(MESSAGE_EXPLAIN, &ask, &answer) == 0);
	CHECK(!strcmp(answer.tenant, "me") && !answer.registered, "%s", answer.tenant);
	CHECK(strstr(answer.rule, "policy.conf:4: match = uid="), "%s", answer.rule);
	ask.number = 7;
	CHECK(collector_call(MESSAGE_EXPLAIN, &ask, &answer) == -ENOENT);
	ask = (struct proto_ask){ .pid = 0x7ffffff0 };
	CHECK(collector_call(MESSAGE_EXPLAIN, &ask, &answer) == -ESRCH);
	CHECK(collector_set("tenant me", "qp = 1\n") == 0);
	CHECK(proto_rows(collector_socket(), MESSAGE_EVENTS, &all, event_note, &seen,
			 COLLECTOR_PATIENCE_MS, problem) == 0,
	      "%s", problem);
	CHECK(seen & 1u << EVENT_LIMITS && seen & 1u << EVENT_RELOADED, "%x", seen);
	collector_stop();
}

/* A tenant is a command's only while no file names it and it is not built in. */
static bool is_runtime(const char *tenant)
{
	return collector_tenant(tenant).flags & ROW_RUNTIME;
}

static void tenants_of_commands(void)
{
	collector_fresh("[tenant a]\nqp = 1\n", "");
	CHECK(collector_set("tenant a", "qp = 2\n") == 0 && !is_runtime("a"));
	CHECK(collector_set("tenant default", "qp = 2\n") == 0 && !is_runtime("default"));
	CHECK(collector_set("tenant a", "qp = unset\n") == 0 && qp_limit("a") == 1);
	CHECK(collector_state().overrides == 1, "%u", collector_state().overrides);
	/* The file no longer names it: nothing of the command is left that would keep it. */
	collector_policy("[tenant b]\n");
	CHECK(collector_call(MESSAGE_REPLACE, NULL, NULL) == 0);
	CHECK(!collector_tenant("a").tenant[0] || collector_tenant("a").flags & ROW_REMOVED);
	collector_stop();
}

static void drive(void)
{
	cases_at_once();
	RUN(reloads);
	RUN(incomplete_policies);
	RUN(last_good_policy);
	RUN(changes_by_commands);
	RUN(tenants_within);
	RUN(too_many_tenants);
	RUN(changes_that_fail);
	RUN(tenant_made_late);
	RUN(start_and_arguments);
	RUN(explanations);
	RUN(tenants_of_commands);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, drive);
}
