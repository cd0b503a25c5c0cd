/* SPDX-License-Identifier: MIT */
/*
 * Processes that fork, exec, die, stop and share: who is charged, what comes
 * back, and that nobody waits for ever.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fakeverbs.h"
#include "fixture.h"
#include "harness.h"
#include "ledger/layout.h"
#include "ledger/shmfile.h"
#include "ledger/view.h"

/* The child inherits no charge, is charged for its own, and gives back nothing
 * of its parent's, whether it destroys inherited objects or just exits. */
static void forks(const char *argument)
{
	struct fixture fixture = fixture_open();
	struct ibv_qp *qp = qp_make(&fixture, IBV_QPT_RC), *kept = qp_make(&fixture, IBV_QPT_RC);
	pid_t child;

	CHECK(used(KIND_qp) == 2);
	child = strcmp(argument, "raw") ? fork() : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (child == 0) {
		struct ibv_qp *own;
		struct ibv_mw *mw;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		CHECK(used(KIND_qp) == 2, "nothing is charged by forking");
		own = qp_make(&fixture, IBV_QPT_RC);
		CHECK(own && used(KIND_qp) == 3, "the child's own");
		mw = ibv_alloc_mw(fixture.pd, IBV_MW_TYPE_1);
		CHECK(mw && used(KIND_mw) == 1, "inline verbs of an inherited context");
		CHECK(ibv_destroy_qp(own) == 0 && used(KIND_qp) == 2);
		CHECK(ibv_destroy_qp(qp) == 0 && used(KIND_qp) == 2, "the parent's is not ours");
		_exit(checks_failed() ? 1 : 0);
	}
	CHECK(spawn_wait(child) == 0);
	CHECK(used(KIND_qp) == 2 && used(KIND_mw) == 0, "the child's window went with it");
	CHECK(ibv_destroy_qp(qp) == 0 && ibv_destroy_qp(kept) == 0 && used(KIND_qp) == 0);
	fixture_close(&fixture);
}

static void held(const char *argument)
{
	CHECK(used(KIND_qp) == (uint64_t)atoi(argument));
}

static void join_and_look(const char *argument)
{
	struct fixture fixture = fixture_open();

	CHECK(used(KIND_qp) == (uint64_t)atoi(argument), "%llu", (unsigned long long)used(KIND_qp));
	CHECK(used(KIND_ctx) == 1, "%llu", (unsigned long long)used(KIND_ctx));
	fixture_close(&fixture);
}

/* exec: the kernel closed everything; the same process, now another program, starts at nothing. */
static void execs(const char *argument)
{
	struct fixture fixture = fixture_open();

	CHECK(qp_make(&fixture, IBV_QPT_RC) && used(KIND_qp) == 1);
	exec_again("test", "join_and_look:0", NULL);
}

static void fork_and_exec(const char *argument)
{
	struct fixture fixture = fixture_open();
	pid_t child;

	CHECK(qp_make(&fixture, IBV_QPT_RC) != NULL);
	child = fork_child();
	if (child == 0) {
		exec_again("test", "held:1", NULL);
		_exit(126);
	}
	CHECK(spawn_wait(child) == 0);
	child = vfork();
	if (child == 0) {
		exec_again("test", "held:1", NULL);
		_exit(126);
	}
	CHECK(spawn_wait(child) == 0);
	CHECK(used(KIND_qp) == 1, "what a vforked child does leaves us alone");
	fixture_close(&fixture);
}

static void *destroy_all(void *argument)
{
	struct ibv_qp **qps = argument;

	for (; *qps; qps++)
		CHECK(ibv_destroy_qp(*qps) == 0);
	return NULL;
}

static void threads(const char *argument)
{
	struct fixture fixture = fixture_open();
	struct ibv_qp *qps[4][26] = { 0 };
	pthread_t thread[4];

	for (unsigned i = 0; i < 4; i++)
		for (unsigned j = 0; j < 25; j++)
			qps[i][j] = qp_make(&fixture, IBV_QPT_RC);
	CHECK(used(KIND_qp) == 100);
	for (unsigned i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, destroy_all, qps[i]);
	for (unsigned i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	CHECK(used(KIND_qp) == 0 && used(KIND_send_wr) == 0);
	fixture_close(&fixture);
}

/* The main thread ends, others go on: the process is no zombie for us. */
static void *outlive(void *argument)
{
	struct fixture *fixture = argument;

	NEED(process_state(getpid()) == 'Z');
	CHECK(used(KIND_ctx) == 1 && used(KIND_qp) == 1, "a leader's end is not the end");
	CHECK(qp_make(fixture, IBV_QPT_RC) && used(KIND_qp) == 2);
	_exit(0);
}

static void leader_exits(const char *argument)
{
	static struct fixture fixture;
	pthread_t thread;

	fixture = fixture_open();
	CHECK(qp_make(&fixture, IBV_QPT_RC) != NULL);
	pthread_create(&thread, NULL, outlive, &fixture);
	pthread_exit(NULL);
}

static void hold_and_wait(const char *argument)
{
	struct fixture fixture = fixture_open();

	for (int i = 0; i < atoi(argument); i++)
		CHECK(qp_make(&fixture, IBV_QPT_RC) != NULL);
	word_add(0, 1);
	for (;;)
		pause();
}

/* Makes as many as it can and says how many. */
static void take_all(const char *argument)
{
	struct fixture fixture = fixture_open();
	uint64_t made = 0;

	while (made < 1000 && qp_make(&fixture, IBV_QPT_RC))
		made++;
	CHECK(errno == EDQUOT);
	*shared_word(1) = made;
}

static void exit_without_destroy(const char *argument)
{
	struct fixture fixture = fixture_open();

	CHECK(qp_make(&fixture, IBV_QPT_RC) && used(KIND_qp) == 1);
	if (!strcmp(argument, "_exit"))
		_exit(0);
}

/* Stops for ever while it holds the ledger's lock. */
static void freeze_with_lock(const char *argument)
{
	char problem[PROBLEM_SIZE];
	struct ledger_limits limits;
	struct log log = { 0 };
	struct ledger_options options = { .name = shm_name(), .mode = 0600, .limits = &limits, .log = &log };
	struct shmfile file;

	ledger_limits_clear(&limits);
	if (shmfile_open(&file, &options, problem) < 0)
		abort();
	pthread_mutex_lock(&file.header->lock);
	word_store(0, 1);
	raise(SIGSTOP);
	pthread_mutex_unlock(&file.header->lock);
}

static pid_t freezer;

/* The holder goes on as soon as the thread that wants the lock sleeps. */
static void *thaw_later(void *argument)
{
	EVENTUALLY(process_state(getpid()) == 'S');
	kill(freezer, SIGCONT);
	return NULL;
}

/* With the lock out of reach a program goes on, while the holder is still stopped; and when the
 * lock is back the books are put right. */
static void meet_frozen_lock(const char *argument)
{
	struct fixture fixture = fixture_open();
	struct ibv_qp *qp = qp_make(&fixture, IBV_QPT_RC), *late;
	double begin;

	word_store(2, 1); /* ready: freeze now */
	word_await(3, 1);
	freezer = (pid_t)word_load(3);
	begin = seconds_now();
	errno = 0;
	late = qp_make(&fixture, IBV_QPT_RC);
	printf("went on after %.2f s\n", seconds_now() - begin);
	CHECK(process_state(freezer) == 'T', "the holder is '%c'", process_state(freezer));
	if (!strcmp(argument, "closed")) {
		CHECK(!late && errno == EDQUOT);
	} else {
		CHECK(late != NULL);
	}
	if (late && !strcmp(argument, "early")) { /* made and freed while nobody could write it */
		CHECK(ibv_destroy_qp(late) == 0);
		late = NULL;
	}
	CHECK(ibv_destroy_qp(qp) == 0, "a refund never waits");
	kill(freezer, SIGCONT);
	NEED(process_state(freezer) == 'Z');
	qp = qp_make(&fixture, IBV_QPT_RC);
	CHECK(qp && used(KIND_qp) == (late ? 2 : 1), "%llu", (unsigned long long)used(KIND_qp));
	CHECK(used(KIND_send_wr) == SEND_DEPTH * used(KIND_qp));
	if (late)
		CHECK(ibv_destroy_qp(late) == 0);
	CHECK(ibv_destroy_qp(qp) == 0 && used(KIND_qp) == 0);
	fixture_close(&fixture);
}

/* A holder that is only slow is waited for: nothing fails, nothing is deferred. */
static void meet_slow_lock(const char *argument)
{
	struct fixture fixture = fixture_open();
	pthread_t thread;

	word_store(2, 1);
	word_await(3, 1);
	freezer = (pid_t)word_load(3);
	pthread_create(&thread, NULL, thaw_later, NULL);
	CHECK(qp_make(&fixture, IBV_QPT_RC) && used(KIND_qp) == 1);
	CHECK(!qp_make(&fixture, IBV_QPT_RC) && errno == EDQUOT, "the limit is one");
	pthread_join(thread, NULL);
	fixture_close(&fixture);
}

static const struct scenario scenarios[] = {
	{ "forks", forks },
	{ "held", held },
	{ "join_and_look", join_and_look },
	{ "execs", execs },
	{ "fork_and_exec", fork_and_exec },
	{ "threads", threads },
	{ "leader_exits", leader_exits },
	{ "hold_and_wait", hold_and_wait },
	{ "take_all", take_all },
	{ "exit_without_destroy", exit_without_destroy },
	{ "freeze_with_lock", freeze_with_lock },
	{ "meet_frozen_lock", meet_frozen_lock },
	{ "meet_slow_lock", meet_slow_lock },
	{ 0 },
};

/* The host's limit holds over processes, and what the killed held is free for the next. */
static void host_limit(void)
{
	const char *limit = "LIMITS=host:qp=7";
	pid_t holders[2];

	words_clear();
	for (unsigned i = 0; i < 2; i++)
		holders[i] = spawn_start("hold_and_wait:2", limit);
	NEED(word_load(0) == 2);
	CHECK(used(KIND_qp) == 4);
	spawn("take_all", limit);
	CHECK(*shared_word(1) == 3, "%llu", (unsigned long long)*shared_word(1));
	kill(holders[0], SIGKILL);
	CHECK(spawn_wait(holders[0]) == 128 + SIGKILL);
	spawn("take_all", limit);
	CHECK(*shared_word(1) == 5);
	/* Killed, but its parent has not asked yet: a zombie holds nothing either. */
	kill(holders[1], SIGKILL);
	NEED(process_state(holders[1]) == 'Z');
	spawn("take_all", limit);
	CHECK(*shared_word(1) == 7);
	spawn_wait(holders[1]);
	CHECK(used(KIND_qp) == 0);
}

/* The first sets the host's limit; another value later is not used, and the log says so. */
static void first_limit_stays(void)
{
	shm_remove();
	log_clear();
	spawn("take_all", "LIMITS=host:qp=4");
	spawn("take_all", "LIMITS=host:qp=6");
	CHECK(*shared_word(1) == 4);
	CHECK(strstr(log_text(), "host limit qp=4 is set already") != NULL, "%s", log_text());
	spawn("take_all", "");
	CHECK(*shared_word(1) == 4, "also for a process that asks for none");
}

static void frozen(const char *scenario, const char *settings)
{
	pid_t client, holder;

	shm_remove();
	words_clear();
	client = spawn_start(scenario, settings);
	NEED(word_load(2) == 1);
	holder = spawn_start("freeze_with_lock", "!LD_PRELOAD=");
	NEED(word_load(0) == 1 && process_state(holder) == 'T');
	word_store(3, (uint64_t)holder);
	CHECK(spawn_wait(client) == 0, "%s: %s", scenario, log_text());
	kill(holder, SIGCONT);
	CHECK(spawn_wait(holder) == 0);
}

/* What is held when a process has ended. */
static void ends(const char *scenario)
{
	spawn(scenario, "");
	CHECK(used(KIND_qp) == 0);
}

static void driver(void)
{
	static const char *const plain[] = { "forks", "forks:raw", "execs", "fork_and_exec",
					     "threads", "leader_exits", "exit_without_destroy",
					     "exit_without_destroy:_exit", "join_and_look:0" };

	cases_at_once();
	for (unsigned i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		CASE(plain[i])
			ends(plain[i]);
	RUN(host_limit);
	RUN(first_limit_stays);
	CASE("frozen_lock")
		frozen("meet_frozen_lock", "");
	CASE("frozen_lock_early")
		frozen("meet_frozen_lock:early", "");
	CASE("frozen_lock_fail_closed")
		frozen("meet_frozen_lock:closed", "FAIL=closed");
	CASE("slow_lock")
		frozen("meet_slow_lock", "LIMITS=process:qp=1");
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, scenarios, driver);
}
