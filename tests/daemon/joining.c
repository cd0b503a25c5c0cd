/* SPDX-License-Identifier: MIT */
/*
 * How a process comes to its collector where that is difficult: no descriptor is left, the
 * collector is slow, or the process has locked itself away after its first verb. Where somebody
 * serves the socket, no process is free of its tenant's limit, and none is refused for a wrong
 * reason. On the stand-in.
 */
#include "collector.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "fixture.h"
#include "harness.h"

enum { LIMIT = 5, WANTED = 20, STRANGER = 65533 };

#define POLICY "[tenant t]\nmatch = uid=0-4294967294\nqp = 5\n"

/* Words of the shared page. */
enum { WORD_MADE, WORD_READY, WORD_GO };

/* ---- scenarios */

/* Makes QPs until one is refused; returns how many. */
static unsigned make_all(struct fixture *fixture)
{
	unsigned made = 0;

	while (made < WANTED && qp_make(fixture, IBV_QPT_RC))
		made++;
	return made;
}

/* Leaves so many descriptors. */
static void descriptors_leave(unsigned left)
{
	struct rlimit limit = { 256, 256 };
	int fd;

	if (setrlimit(RLIMIT_NOFILE, &limit))
		abort();
	while (open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0)
		;
	for (fd = 255; left; fd--, left--)
		close(fd);
}

static bool fixture_try(struct fixture *fixture)
{
	if (!fixture->devices)
		fixture->devices = ibv_get_device_list(NULL);
	if (!fixture->context)
		fixture->context = ibv_open_device(fixture->devices[0]);
	if (fixture->context && !fixture->pd)
		fixture->pd = ibv_alloc_pd(fixture->context);
	if (fixture->pd && !fixture->cq)
		fixture->cq = ibv_create_cq(fixture->context, CQ_DEPTH, NULL, NULL, 0);
	return fixture->cq;
}

/* The first verb comes when so many descriptors are left; later there are more. */
static void few_descriptors(const char *argument)
{
	unsigned left = (unsigned)atoi(argument), made = 0;
	struct fixture fixture = { 0 };

	descriptors_leave(left);
	if (fixture_try(&fixture))
		made = make_all(&fixture);
	CHECK(made <= LIMIT, "%u made with %u descriptors left", made, left);
	for (int fd = 100; fd < 200; fd++)
		close(fd);
	EVENTUALLY(fixture_try(&fixture));
	EVENTUALLY((made += make_all(&fixture)) >= LIMIT);
	CHECK(made == LIMIT, "%u made", made);
}

/* The collector stands still at the first verb, and goes on later. */
static void slow_collector(const char *argument)
{
	struct fixture fixture = { 0 };
	unsigned made;

	CHECK(!fixture_try(&fixture) && errno == EDQUOT, "errno %d", errno);
	word_store(WORD_READY, 1);
	EVENTUALLY(fixture_try(&fixture));
	made = make_all(&fixture);
	EVENTUALLY((made += make_all(&fixture)) >= LIMIT);
	CHECK(made == LIMIT, "%u made", made);
}

/* ---- what a process does to itself after its first verb */

static void root_change(void)
{
	if (chroot(harness_path("empty")) || chdir("/"))
		abort();
}

/* No new sockets; what is tried all the same ends by this action. */
static void sockets_forbid(unsigned action)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_connect, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, action),
	};
	struct sock_fprog program = { sizeof(rules) / sizeof(rules[0]), rules };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		abort();
}

/* As a daemon does it: everything is closed but what it knows. */
static void descriptors_close(const struct fixture *fixture)
{
	for (int fd = STDERR_FILENO + 1; fd < 256; fd++)
		if (fd != fixture->context->cmd_fd && fd != fixture->context->async_fd)
			close(fd);
}

static void lock_away(const struct fixture *fixture, const char *how)
{
	if (strstr(how, "close"))
		descriptors_close(fixture);
	if (strstr(how, "descriptors"))
		descriptors_leave(0);
	if (strstr(how, "root"))
		root_change();
	if (strstr(how, "filter"))
		sockets_forbid(SECCOMP_RET_ERRNO | EPERM);
	if (strstr(how, "killer"))
		sockets_forbid(SECCOMP_RET_KILL_PROCESS);
}

/* Grows as if nothing had happened. */
static void grows_after(const char *argument)
{
	struct fixture fixture = fixture_open();
	unsigned made;

	lock_away(&fixture, argument);
	made = make_all(&fixture);
	CHECK(made == LIMIT, "%s: %u made", argument, made);
}

/* There is no way left to ask. */
static void refused_after(const char *argument)
{
	struct fixture fixture = fixture_open();

	lock_away(&fixture, argument);
	for (int i = 0; i < 50; i++)
		CHECK(!qp_make(&fixture, IBV_QPT_RC) && errno == EDQUOT, "errno %d", errno);
}

/* Every number is something else now, the line's a socket as well: it must get nothing. */
static void line_reused(const char *argument)
{
	struct fixture fixture = fixture_open();
	int ends[2], nothing;
	unsigned made;

	descriptors_close(&fixture);
	while (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0 && ends[0] < 200)
		;
	made = make_all(&fixture);
	CHECK(made == LIMIT, "%u made", made);
	for (int fd = STDERR_FILENO + 1; fd < 200; fd++)
		if (fd != fixture.context->cmd_fd && fd != fixture.context->async_fd)
			CHECK(recv(fd, &nothing, sizeof(nothing), 0) < 0 && errno == EAGAIN,
			      "descriptor %d got something", fd);
}

static void gets(const char *argument)
{
	struct fixture fixture = fixture_open();
	unsigned made = make_all(&fixture);

	CHECK(made == LIMIT, "%u made", made);
}

static void gets_later(const char *argument)
{
	struct fixture fixture = fixture_open();
	unsigned made;

	CHECK(qp_make(&fixture, IBV_QPT_RC) != NULL);
	word_store(WORD_READY, 1);
	word_await(WORD_GO, 1);
	made = 1 + make_all(&fixture);
	CHECK(made == LIMIT, "%u made", made);
}

static const struct scenario scenarios[] = {
	{ "gets_later", gets_later },
	{ "gets", gets },
	{ "grows_after", grows_after },
	{ "refused_after", refused_after },
	{ "line_reused", line_reused },
	{ "few_descriptors", few_descriptors },
	{ "slow_collector", slow_collector },
	{ 0 },
};

/* ---- the first verb */

static void first_with_few_descriptors(void)
{
	char scenario[32];

	collector_fresh(POLICY, "");
	for (unsigned left = 0; left <= 6; left++) {
		snprintf(scenario, sizeof(scenario), "few_descriptors:%u", left);
		spawn(scenario, "");
		CHECK(collector_wait_used("t", KIND_qp, 0));
	}
	spawn("few_descriptors:1", "FAIL=closed");
	spawn("few_descriptors:0", "TRANSPORT=lease");
	CHECK(strstr(stderr_text(), "Too many open files") != NULL, "%s", stderr_text());
	collector_stop();
}

static void first_with_slow_collector(void)
{
	pid_t pid;

	collector_fresh(POLICY, "");
	words_clear();
	kill(collector_pid(), SIGSTOP);
	pid = spawn_start("slow_collector", "");
	EVENTUALLY(word_load(WORD_READY) == 1 || process_state(pid) == 'Z');
	kill(collector_pid(), SIGCONT);
	CHECK(spawn_wait(pid) == 0);
	collector_stop();
}

/* ---- later verbs */

/* The last refusal is by the limit: its words say so. */
static void grows(const char *how)
{
	char scenario[64];

	for (unsigned asked = 0; asked < 2; asked++) {
		log_clear();
		snprintf(scenario, sizeof(scenario), "grows_after:%s", how);
		spawn(scenario, asked ? "TRANSPORT=socket" : "");
		CHECK(strstr(stderr_text(), "limit of the tenant"), "%s: %s", how, stderr_text());
		CHECK(collector_wait_used("t", KIND_qp, 0));
	}
}

static void is_refused(const char *how, const char *reason)
{
	char scenario[64];

	log_clear();
	snprintf(scenario, sizeof(scenario), "refused_after:close %s", how);
	spawn(scenario, "");
	CHECK(strstr(stderr_text(), reason), "%s: %s", how, stderr_text());
}

static void locked_away(void)
{
	collector_fresh(POLICY, "");
	grows("nothing");
	grows("close");
	grows("descriptors");
	grows("filter");
	grows("killer");
	grows("descriptors killer");
	spawn("line_reused", "");
	is_refused("descriptors", "the collector cannot be asked: no descriptor is left");
	is_refused("filter", "the collector cannot be asked: this process can make no socket");
	if (geteuid() == 0) {
		if (mkdir(harness_path("empty"), 0700))
			abort();
		grows("root");
		grows("root descriptors killer");
		is_refused("root", "cannot be asked: this process has changed its root directory");
	} else {
		skip_part("not root: no other root directory is tried");
	}
	collector_stop();
}

/* A collector that is started again is asked over new connections. */
static void restarted(void)
{
	pid_t pid;

	collector_fresh(POLICY, "");
	words_clear();
	pid = spawn_start("gets_later", "");
	NEED(word_load(WORD_READY) == 1);
	collector_kill();
	collector_start("");
	word_store(WORD_GO, 1);
	CHECK(spawn_wait(pid) == 0);
	collector_stop();
}

static unsigned collector_descriptors(void)
{
	char path[64];
	unsigned count = 0;
	DIR *directory;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)collector_pid());
	directory = opendir(path);
	if (!directory)
		abort();
	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}

/* Who registers again and again has one connection that stays, and the others end. */
static void registered_often(void)
{
	struct proto_hello hello = { .flags = HELLO_NO_MEMORY };
	struct proto_welcome welcome;
	char problem[PROBLEM_SIZE];
	unsigned before;

	collector_fresh(POLICY, "");
	before = collector_descriptors();
	memset(hello.process_limit, 0xff, sizeof(hello.process_limit));
	memset(hello.host_limit, 0xff, sizeof(hello.host_limit));
	for (int i = 0; i < 200; i++) {
		struct proto_reply reply;

		CHECK(!proto_call(collector_socket(), MESSAGE_HELLO, &hello, &welcome, &reply,
				  PROTO_KEEP_CONNECTION, COLLECTOR_PATIENCE_MS, problem), "%s",
		      problem);
		CHECK(reply.askable && welcome.flags & WELCOME_STAYS);
	}
	EVENTUALLY(collector_descriptors() < before + 20);
	collector_stop();
}

/* ---- what others put at the socket's name */

static void plant_listener(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd;

	if (fork_child()) {
		NEED(word_load(WORD_READY) == 1);
		return;
	}
	strcpy(address.sun_path, collector_socket());
	if (setresuid(STRANGER, STRANGER, STRANGER))
		abort();
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* the change of user has cleared it */
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, 8))
		abort();
	word_store(WORD_READY, 1);
	for (;;)
		pause();
}

static void planted(void)
{
	char inside[160];
	int fd;

	if (geteuid()) {
		skip_part("not root: nothing of other users is tried");
		return;
	}
	if (chmod(harness_path("."), 01777))
		abort();
	words_clear();
	plant_listener();
	collector_fresh(POLICY, "");
	CHECK(strstr(collector_log(), "removed the file of user 65533 at this path"), "%s",
	      collector_log());
	spawn("gets", "");
	collector_stop();
	if (symlink("/etc/passwd", collector_socket()) ||
	    lchown(collector_socket(), STRANGER, STRANGER))
		abort();
	collector_fresh(POLICY, "");
	spawn("gets", "");
	collector_stop();
	snprintf(inside, sizeof(inside), "%s/file", collector_socket());
	if (mkdir(collector_socket(), 0700) || chown(collector_socket(), STRANGER, STRANGER))
		abort();
	fd = open(inside, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	close(fd);
	collector_fresh(POLICY, "");
	CHECK(strstr(collector_log(), "renamed the file of user "), "%s", collector_log());
	spawn("gets", "");
	collector_stop();
}

static void driver(void)
{
	cases_at_once();
	RUN(first_with_few_descriptors);
	RUN(first_with_slow_collector);
	RUN(locked_away);
	RUN(restarted);
	RUN(registered_often);
	RUN(planted);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, scenarios, driver);
}
