/* SPDX-License-Identifier: MIT */
/*
 * What a single program gets of its collector: the lowest limit of all scopes, in each mode and by
 * each transport, whatever the program does to itself (exec, fork, closed descriptors, a small
 * stack).
 */
#include "collector.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"
#include "harness.h"
#include "member.h"

static void scopes(void)
{
	pid_t pid;

	collector_fresh("[host]\nqp = 12\ndevice.rxe0.qp = 11\n"
			"[default]\nqp = 10\ndevice.rxe0.qp = 9\n"
			"process.qp = 8\nprocess.device.rxe0.qp = 7\n",
			"RDMA_INTERCEPT_MAX_GLOBAL_QP=3\n"); /* the file's goes first */
	member_expect("exactly:7", "");
	CHECK(strstr(log_text(), "limit of the process on the device"), "%s", log_text());
	CHECK(collector_set("default", "process.device.rxe0.qp = unlimited\n") == 0);
	member_expect("exactly:8", "");
	CHECK(collector_set("default", "process.qp = unlimited\n") == 0);
	member_expect("exactly:9", "");
	CHECK(strstr(log_text(), "limit of the tenant on the device"), "%s", log_text());
	CHECK(collector_set("default", "device.rxe0.qp = unlimited\n") == 0);
	member_expect("exactly:10", "");
	CHECK(collector_set("default", "qp = unlimited\n") == 0);
	member_expect("exactly:11", "");
	CHECK(collector_set("host", "device.rxe0.qp = unlimited\n") == 0);
	member_expect("exactly:12", "");
	CHECK(strstr(log_text(), "12/12, wanted 1 more, limit of the host"), "%s", log_text());
	/* The environment lowers, and does not raise. */
	member_expect("exactly:4", "LIMITS=process:qp=4");
	member_expect("exactly:5", "LIMITS=host:qp=5");
	member_expect("exactly:6", "LIMITS=device:rxe0:qp=6");
	member_expect("exactly:12", "LIMITS=process:qp=40;host:qp=40;device:rxe0:qp=40");
	/* Documented defaults give way to what somebody said. */
	member_expect("exactly:12", "ENABLE_QP_CONTROL=1");
	member_expect("exactly:2", "ENABLE_QP_CONTROL=1\nMAX_QP_PER_PROCESS=2");
	/* Two share, and one that is killed gives back. */
	words_clear();
	pid = spawn_start("exactly:12w", "TRANSPORT=lease\nQUIET=1");
	NEED(word_load(WORD_READY) == 1);
	member_expect("exactly:0", "");
	kill(pid, SIGKILL);
	spawn_wait(pid);
	member_expect("exactly:12", "");
	words_clear();
	pid = spawn_start("exactly:12w", "TRANSPORT=socket\nQUIET=1");
	NEED(word_load(WORD_READY) == 1);
	CHECK(collector_process(pid).used[KIND_qp] == 12 &&
	      collector_process(pid).flags & ROW_SOCKET);
	member_expect("exactly:0", "");
	kill(pid, SIGKILL);
	spawn_wait(pid);
	member_expect("exactly:12", "");
	/* Without a file, the environment of the collector is what counts. */
	collector_stop();
	collector_fresh("", "RDMA_INTERCEPT_MAX_GLOBAL_QP=3\n");
	member_expect("exactly:3", "");
	collector_stop();
}

static void modes(void)
{
	pid_t pid;

	collector_fresh("[default]\nqp = 2\nmode = audit\n", "");
	log_clear();
	member_expect("exactly:64", "QUIET=0");
	CHECK(!strstr(stderr_text(), "qp used"), "%s", stderr_text());
	words_clear();
	pid = spawn_start("exactly:64w", "TRANSPORT=lease");
	NEED(word_load(WORD_READY) == 1);
	CHECK(collector_tenant("default").used[KIND_qp] == 64);
	CHECK(collector_tenant("default").granted[KIND_qp] == 64);
	kill(pid, SIGKILL);
	spawn_wait(pid);
	CHECK(collector_set("default", "mode = warn\n") == 0);
	member_expect("exactly:64", "QUIET=0");
	CHECK(strstr(stderr_text(), "over limit, allowed: ibv_create_qp: tenant=default"), "%s",
	      stderr_text());
	/* The environment's own limits have the environment's mode, and no say in the tenant's. */
	member_expect("exactly:1", "LIMITS=process:qp=1");
	member_expect("exactly:64", "LIMITS=process:qp=1\nMODE=warn");
	CHECK(collector_set("default", "mode = enforce\n") == 0);
	member_expect("exactly:2", "MODE=audit");
	/* Who lets itself pass its own limit is still held to the tenant's. */
	member_expect("exactly:2", "LIMITS=process:qp=0\nMODE=audit");
	member_expect("exactly:2", "LIMITS=process:qp=1\nMODE=warn");
	member_expect("exactly:2", "TRANSPORT=socket\nLIMITS=process:qp=0\nMODE=audit");
	words_clear();
	pid = spawn_start("exactly:2w",
			  "TRANSPORT=lease\nQUIET=1\nLIMITS=process:qp=0\nMODE=audit");
	NEED(word_load(WORD_READY) == 1);
	CHECK(collector_tenant("default").granted[KIND_qp] == 2);
	member_expect("exactly:0", "");
	kill(pid, SIGKILL);
	spawn_wait(pid);
	collector_stop();
}

/* ---- what programs do to themselves */

/* Calls exec with objects: what the first image held is given back. */
static void run_exec(const char *argument)
{
	struct fixture fixture = fixture_open();

	CHECK(qp_make(&fixture, IBV_QPT_RC) && qp_make(&fixture, IBV_QPT_RC));
	exec_again("test", "exactly:2", NULL);
	abort();
}

/* The child goes on with the parent's context: its objects are its own. */
static void run_fork(const char *argument)
{
	struct fixture fixture = fixture_open();
	struct ibv_qp *qp = qp_make(&fixture, IBV_QPT_RC);
	int status;
	pid_t pid;

	CHECK(qp != NULL);
	pid = fork_child();
	if (pid == 0) {
		CHECK((qp = qp_make(&fixture, IBV_QPT_RC)) != NULL);
		CHECK(!qp_make(&fixture, IBV_QPT_RC));
		_exit(checks_failed() ? 1 : 0);
	}
	waitpid(pid, &status, 0);
	CHECK(status == 0);
	CHECK(qp_make(&fixture, IBV_QPT_RC) != NULL); /* the child's place is free again */
	CHECK(!qp_make(&fixture, IBV_QPT_RC));
}

/* A child that is born while there is no collector gets nothing, and as soon as there is
 * one again it joins. FAIL=open has no say in it: its parent could not grow either. */
static void run_late_child(const char *argument)
{
	struct fixture fixture = fixture_open();
	pid_t pid;
	int status;

	word_add(WORD_READY, 1);
	word_await(WORD_GO, 1);
	pid = fork_child();
	if (pid == 0) {
		CHECK(!qp_make(&fixture, IBV_QPT_RC) && errno == EDQUOT);
		word_add(WORD_READY, 1);
		word_await(WORD_GO, 2);
		EVENTUALLY(qp_make(&fixture, IBV_QPT_RC) != NULL);
		CHECK(qp_make(&fixture, IBV_QPT_RC) != NULL);
		CHECK(!qp_make(&fixture, IBV_QPT_RC));
		_exit(checks_failed() ? 1 : 0);
	}
	waitpid(pid, &status, 0);
	CHECK(status == 0);
}

/* As daemons do: every descriptor closed, others opened in their places. */
static void run_closer(const char *argument)
{
	struct fixture fixture = fixture_open();
	struct ibv_qp *qp = qp_make(&fixture, IBV_QPT_RC);

	CHECK(qp != NULL);
	for (int fd = 3; fd < 256; fd++) /* all but the device's own */
		if (fd != fixture.context->cmd_fd && fd != fixture.context->async_fd)
			close(fd);
	for (int i = 0; i < 100; i++)
		CHECK(open("/dev/null", O_RDONLY) >= 0);
	CHECK(qp_make(&fixture, IBV_QPT_RC) != NULL);
	CHECK(!qp_make(&fixture, IBV_QPT_RC));
	ibv_destroy_qp(qp);
	CHECK(qp_make(&fixture, IBV_QPT_RC) != NULL);
}

static void run_closed_one(const char *argument)
{
	run_closer(argument);
	word_add(WORD_READY, 1);
	pause();
}

static void family(void)
{
	pid_t pid;

	collector_fresh("[default]\nqp = 2\n", "");
	member_expect("exec", "");
	member_expect("fork", "");
	member_expect("closer", "");
	CHECK(collector_wait_used(NULL, KIND_qp, 0));
	words_clear();
	pid = spawn_start("late_child", "TRANSPORT=lease\nQUIET=1\nFAIL=open");
	NEED(word_load(WORD_READY) == 1);
	collector_kill();
	word_store(WORD_GO, 1);
	NEED(word_load(WORD_READY) == 2);
	collector_start("");
	word_store(WORD_GO, 2);
	CHECK(spawn_wait(pid) == 0);
	/* Its page is not found again: then what it was granted counts as used. */
	words_clear();
	pid = spawn_start("closed_one", "TRANSPORT=lease\nQUIET=1");
	NEED(word_load(WORD_READY) == 1);
	collector_kill();
	collector_start("");
	CHECK(collector_process(pid).flags & ROW_UNATTACHED);
	CHECK(collector_process(pid).used[KIND_qp] == 2);
	member_expect("exactly:0", "");
	kill(pid, SIGKILL);
	spawn_wait(pid);
	member_expect("exactly:2", "");
	collector_stop();
}

/* ---- with and without a collector */

static void transports(void)
{
	/* None: embedded by default; what asks for one by name fails as FAIL says. */
	spawn("exactly:3", "LIMITS=process:qp=3\nQUIET=1");
	CHECK(strstr(log_text(), "joined /dev/shm/"), "%s", log_text());
	log_clear();
	spawn("exactly:64", "LIMITS=process:qp=3\nTRANSPORT=lease\nLOG_LEVEL=1");
	CHECK(strstr(stderr_text(), "collector.sock"), "%s", stderr_text());
	log_clear();
	CHECK(spawn_wait(spawn_start("exactly:0", "TRANSPORT=lease\nFAIL=closed")) != 0);
	/* One: leases by default. */
	collector_fresh("", "");
	log_clear();
	spawn("exactly:3", "LIMITS=process:qp=3\nQUIET=1");
	CHECK(strstr(log_text(), "joined the collector by lease as tenant default"), "%s",
	      log_text());
	log_clear();
	spawn("exactly:3", "LIMITS=process:qp=3\nQUIET=1\nTRANSPORT=embedded");
	CHECK(strstr(log_text(), "joined /dev/shm/"), "%s", log_text());
	collector_stop();
	/* It took its socket away, so nobody waits for it. */
	CHECK(access(collector_socket(), F_OK) != 0);
}

/* ---- a thread with a small stack: it joins, asks for more, and is refused */

/* The address sanitizer makes frames larger. */
#if defined(__aarch64__) /* the least that glibc takes there */
enum { SMALL_STACK = 131072 };
#elif defined(__SANITIZE_ADDRESS__)
enum { SMALL_STACK = 32768 };
#else
enum { SMALL_STACK = 16384 };
#endif

static void *ask_for_more(void *argument)
{
	struct fixture fixture = member_fixture();
	uint64_t made = 0;

	while (made < 100 && qp_make(&fixture, IBV_QPT_RC))
		made++;
	word_store(WORD_MADE, made);
	return NULL;
}

static void run_small_stack(const char *argument)
{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	CHECK(pthread_attr_setstacksize(&attributes, SMALL_STACK) == 0);
	CHECK(pthread_create(&thread, &attributes, ask_for_more, NULL) == 0);
	pthread_join(thread, NULL);
}

static void small_stack(void)
{
	static const char *const settings[] = { "TRANSPORT=lease", "TRANSPORT=socket",
						"TRANSPORT=lease\nLOG_LEVEL=DEBUG" };

	collector_fresh("[tenant default]\nqp = 40\n", "");
	for (unsigned i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		words_clear();
		CHECK(spawn("small_stack", settings[i]) == 0, "%s", settings[i]);
		CHECK(word_load(WORD_MADE) > 0 && word_load(WORD_MADE) <= 40);
	}
	collector_stop();
}

static void drive(void)
{
	/* Processes of other users come this way. */
	chmod(harness_path(""), 0711);
	RUN(scopes);
	RUN(small_stack);
	RUN(modes);
	RUN(family);
	RUN(transports);
}

int main(int argc, char **argv)
{
	static const struct scenario scenarios[] = {
		{ "small_stack", run_small_stack },
		{ "exactly", member_exactly },
		{ "exec", run_exec },
		{ "fork", run_fork },
		{ "closer", run_closer },
		{ "closed_one", run_closed_one },
		{ "late_child", run_late_child },
		{ NULL, NULL },
	};

	return harness_main(argc, argv, scenarios, drive);
}
