/* SPDX-License-Identifier: MIT */
/*
 * Objects that outlive the process that made them, because a forked child has the device: the
 * child of a program that becomes a daemon carries on with them, and the worker of a program that
 * calls exec keeps them. They count until they are gone, and not longer.
 *
 * The collector searches for heirs only where there is /dev/infiniband, so this program makes one
 * in a mount namespace of its own.
 */
#include "collector.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"
#include "harness.h"

#define DEVICE_FILE "/dev/infiniband/uverbs0"

enum { LIMIT = 10, INHERITED = 8 };
enum { WORD_MADE, WORD_STEP, WORD_WORKER, WORD_PARENT, WORD_DAEMON };

/* ---- a device directory */

/* The collector looks at names of open files only, so a plain file serves as the device. */
static void device_make(void)
{
	static const struct {
		const char *path;
		unsigned minor;
	} memory[] = { { "/dev/null", 3 }, { "/dev/zero", 5 }, { "/dev/urandom", 9 } };
	static bool made;
	int fd;

	if (made)
		return;
	made = true;
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tmpfs", "/dev", "tmpfs", 0, "mode=0755"))
		skip("a mount namespace with a /dev of its own is not permitted: %s",
		     strerror(errno));
	for (unsigned i = 0; i < sizeof(memory) / sizeof(memory[0]); i++)
		if (mknod(memory[i].path, S_IFCHR | 0666, makedev(1, memory[i].minor)))
			skip("%s: device files are not permitted: %s", memory[i].path,
			     strerror(errno));
	if (mkdir("/dev/infiniband", 0755) || mkdir("/dev/shm", 01777))
		abort();
	fd = open(DEVICE_FILE, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0)
		abort();
	close(fd);
}

/* ---- scenarios */

static struct fixture fixture;
static struct ibv_qp *qp[LIMIT];

/* A collector that does not answer within a second, on a busy machine, is no refusal of the kind
 * that is meant here. True: try again. The library does not ask for another second. */
static bool was_unanswered(double begin)
{
	if (seconds_now() - begin < 0.9)
		return false;
	usleep(1100000);
	return true;
}

static struct ibv_context *device_open(void)
{
	struct ibv_device **devices = ibv_get_device_list(NULL);
	struct ibv_context *context;
	double begin;

	do {
		begin = seconds_now();
		context = ibv_open_device(devices[0]);
	} while (!context && was_unanswered(begin));
	return fixture_part(context, "ibv_open_device");
}

/* With the kernel's file of the device, which the stand-in has none of. */
static struct fixture open_all(void)
{
	struct fixture all = { 0 };

	if (open(DEVICE_FILE, O_RDWR | O_CLOEXEC) < 0)
		abort();
	all.context = device_open();
	all.pd = fixture_part(ibv_alloc_pd(all.context), "ibv_alloc_pd");
	all.cq = fixture_part(ibv_create_cq(all.context, CQ_DEPTH, NULL, NULL, 0), "ibv_create_cq");
	return all;
}

static void __attribute__((noreturn)) end(void)
{
	word_store(WORD_STEP, 100 + checks_failed());
	_exit(checks_failed() ? 1 : 0);
}

static unsigned make(unsigned wanted, struct ibv_qp **ret_qp)
{
	unsigned made = 0;
	double begin;

	do {
		begin = seconds_now();
		while (made < wanted && (ret_qp[made] = qp_make(&fixture, IBV_QPT_RC))) {
			made++;
			begin = seconds_now();
		}
	} while (made < wanted && was_unanswered(begin));
	return made;
}

#define CHECK_MAKES(wanted, right, why)                                                            \
	do {                                                                                       \
		unsigned made_ = make(wanted, more);                                               \
		if (!CHECK(made_ == (right), "%u, expected %u: %s", made_, (unsigned)(right), why)) \
			end();                                                                     \
	} while (0)

static bool is_gone(pid_t pid)
{
	char state = process_state(pid);

	return state == 0 || state == 'Z';
}

/* ---- a program that becomes a daemon */

/* Exactly what is free: the inherited ones count, and no longer than they are there. */
static void daemon_late(pid_t parent)
{
	struct ibv_qp *more[2 * LIMIT];

	NEED(is_gone(parent));
	CHECK_MAKES(2 * LIMIT, LIMIT - INHERITED, "beside those that were inherited");
	for (unsigned i = 0; i < 3; i++)
		CHECK(ibv_destroy_qp(qp[i]) == 0);
	CHECK_MAKES(LIMIT, 3, "in the places of three that are gone");
	for (unsigned i = 3; i < INHERITED; i++)
		CHECK(ibv_destroy_qp(qp[i]) == 0);
	CHECK_MAKES(LIMIT, INHERITED - 3, "in the places of those that are gone");
	CHECK(ibv_destroy_qp(more[0]) == 0);
	CHECK_MAKES(LIMIT, 1, "in the place of one of its own");
}

/* They are destroyed while the parent is still there. */
static void daemon_early(pid_t parent)
{
	struct ibv_qp *more[2 * LIMIT];

	for (unsigned i = 0; i < INHERITED; i++)
		CHECK(ibv_destroy_qp(qp[i]) == 0);
	CHECK_MAKES(2 * LIMIT, LIMIT - INHERITED, "the parent still has its charge");
	word_store(WORD_STEP, 1); /* it may end */
	NEED(is_gone(parent));
	CHECK_MAKES(2 * LIMIT, INHERITED, "in the places of those that are gone");
}

/* The whole device is closed and opened again. */
static void daemon_reopens(pid_t parent)
{
	struct ibv_qp *more[2 * LIMIT];

	NEED(is_gone(parent));
	for (unsigned i = 0; i < INHERITED; i++)
		CHECK(ibv_destroy_qp(qp[i]) == 0);
	ibv_destroy_cq(fixture.cq);
	ibv_dealloc_pd(fixture.pd);
	CHECK(ibv_close_device(fixture.context) == 0);
	fixture = open_all();
	CHECK_MAKES(2 * LIMIT, LIMIT, "in the places of those that are gone");
	for (unsigned i = 0; i < LIMIT; i++)
		CHECK(ibv_destroy_qp(more[i]) == 0);
	/* Closed with what was in it: the collector finds out that nobody has it. */
	EVENTUALLY(collector_tenant(NULL).used[KIND_ctx] == 1, "%llu contexts",
		   (unsigned long long)collector_tenant(NULL).used[KIND_ctx]);
	CHECK_MAKES(2 * LIMIT, LIMIT, "in a context of its own");
}

static void becomes_daemon(const char *argument)
{
	pid_t parent = getpid();

	fixture = open_all();
	CHECK(make(INHERITED, qp) == INHERITED);
	if (fork() == 0) { /* twice, as daemons do */
		if (fork())
			_exit(0);
		setsid();
		word_store(WORD_DAEMON, (uint64_t)getpid());
		if (!strcmp(argument, "early"))
			daemon_early(parent);
		else if (!strcmp(argument, "reopens"))
			daemon_reopens(parent);
		else
			daemon_late(parent);
		end();
	}
	if (!strcmp(argument, "early"))
		word_await(WORD_STEP, 1);
}

static void daemons(const char *scenario)
{
	words_clear();
	collector_fresh("[tenant default]\nqp = 10\n", "");
	CHECK(spawn(scenario, "TRANSPORT=lease") == 0);
	NEED(word_load(WORD_STEP) >= 100);
	CHECK(word_load(WORD_STEP) == 100, "the daemon's checks failed");
	EVENTUALLY(collector_tenant(NULL).used[KIND_qp] == 0);
	collector_stop();
}

/* ---- a program that calls exec */

static void tries(const char *argument)
{
	fixture = open_all();
	word_store(WORD_MADE, make(1, qp));
	word_store(WORD_STEP, 2);
	word_await(WORD_STEP, 3);
	if (word_load(WORD_MADE) == 0)
		EVENTUALLY(make(1, qp) == 1, "the worker is gone, and with it its object");
}

static void calls_exec(const char *argument)
{
	fixture = open_all();
	CHECK(make(1, qp) == 1);
	if (!strcmp(argument, "worker")) {
		pid_t worker = fork();

		if (worker == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			word_store(WORD_STEP, 1);
			for (;;)
				pause();
		}
		word_store(WORD_WORKER, (uint64_t)worker);
		word_await(WORD_STEP, 1);
	}
	exec_again("test", "tries", NULL);
}

static void exec_alone(void)
{
	pid_t pid;

	words_clear();
	collector_fresh("[tenant default]\nqp = 1\n", "");
	pid = spawn_start("calls_exec", "TRANSPORT=lease");
	NEED(word_load(WORD_STEP) == 2);
	CHECK(word_load(WORD_MADE) == 1, "nobody has what was there before exec");
	word_store(WORD_STEP, 3);
	CHECK(spawn_wait(pid) == 0);
	collector_stop();
}

static void exec_with_worker(bool restart)
{
	pid_t pid;

	words_clear();
	collector_fresh("[tenant default]\nqp = 1\n", "");
	device_make(); /* for those who come now; a collector from before does not see it */
	pid = spawn_start("calls_exec:worker", "TRANSPORT=lease");
	NEED(word_load(WORD_STEP) == 2);
	CHECK(word_load(WORD_MADE) == 0, "the worker has one, and %llu were made at a limit of 1",
	      (unsigned long long)word_load(WORD_MADE));
	if (restart) {
		collector_kill();
		collector_start("");
		CHECK(collector_tenant(NULL).used[KIND_qp] == 1, "%llu after the restart",
		      (unsigned long long)collector_tenant(NULL).used[KIND_qp]);
	}
	kill((pid_t)word_load(WORD_WORKER), SIGKILL);
	word_store(WORD_STEP, 3);
	CHECK(spawn_wait(pid) == 0);
	collector_stop();
}

static const struct scenario scenarios[] = {
	{ "becomes_daemon", becomes_daemon },
	{ "calls_exec", calls_exec },
	{ "tries", tries },
	{ 0 },
};

static void driver(void)
{
	/* A service may have a /dev of its own, without devices. */
	CASE("collector_without_devices")
		exec_with_worker(false);
	device_make();
	CASE("daemon")
		daemons("becomes_daemon");
	CASE("daemon_early")
		daemons("becomes_daemon:early");
	CASE("daemon_reopens")
		daemons("becomes_daemon:reopens");
	RUN(exec_alone);
	CASE("exec_with_worker")
		exec_with_worker(false);
	CASE("exec_with_worker_and_restart")
		exec_with_worker(true);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, scenarios, driver);
}
