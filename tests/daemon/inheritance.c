/* SPDX-License-Identifier: MIT */
/*
 * Objects that outlive the process that made them, because a forked child has the device: the
 * worker of a program that calls exec keeps them. They count until they are gone, and not longer.
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

enum { WORD_MADE, WORD_STEP, WORD_WORKER };

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
static struct ibv_qp *qp[1];

/* The kernel's file of the device, which the stand-in has none of. */
static struct fixture open_all(void)
{
	if (open(DEVICE_FILE, O_RDWR | O_CLOEXEC) < 0)
		abort();
	return fixture_open();
}

static unsigned make(unsigned wanted, struct ibv_qp **ret_qp)
{
	unsigned made = 0;

	while (made < wanted && (ret_qp[made] = qp_make(&fixture, IBV_QPT_RC)))
		made++;
	return made;
}

/* ---- a program that calls exec */

static void tries(const char *argument)
{
	fixture = fixture_open();
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
	execl("/proc/self/exe", "test", "tries", NULL);
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
