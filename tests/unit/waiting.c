/* SPDX-License-Identifier: MIT */
/* A wait of the tests ends when a child crashes, and not only when nothing works any more. */
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"

/* Something works all the time, so that the session never stands still. */
static pid_t worker_start(void)
{
	pid_t worker = fork_child();

	while (worker == 0)
		getppid();
	return worker;
}

static void crash(int number)
{
	struct rlimit no_core = { 0 };

	setrlimit(RLIMIT_CORE, &no_core);
	raise(number);
	_exit(0);
}

static void wait_ends(int number, bool crashes)
{
	enum { STEPS = 500 }; /* 2 seconds and more */
	struct waiting waiting = { .for_what = "nothing", .file = __FILE__, .line = __LINE__ };
	pid_t worker = worker_start(), child = fork_child();
	unsigned steps = 0;

	if (child == 0)
		crash(number);
	while (steps < STEPS && waiting_goes_on(&waiting))
		steps++;
	CHECK((steps < STEPS) == crashes, "signal %d, %u steps", number, steps);
	CHECK(waitpid(child, NULL, WNOHANG) == child, "the end of the child was left to us");
	kill(worker, SIGKILL);
	waitpid(worker, NULL, 0);
}

static void driver(void)
{
	CASE("crashed")
		wait_ends(SIGSEGV, true);
	CASE("aborted")
		wait_ends(SIGABRT, true);
	CASE("killed_by_the_test")
		wait_ends(SIGKILL, false);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
