/* SPDX-License-Identifier: MIT */
/*
 * How a process comes to its collector where that is difficult: no descriptor is left, the
 * collector is slow, or the process has locked itself away after its first verb. Where somebody
 * serves the socket, no process is free of its tenant's limit, and none is refused for a wrong
 * reason. On the stand-in.
 */
#include "collector.h"

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

static void gets(const char *argument)
{
	struct fixture fixture = fixture_open();
	unsigned made = make_all(&fixture);

	CHECK(made == LIMIT, "%u made", made);
}

static const struct scenario scenarios[] = {
	{ "gets", gets },
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
	CHECK(strstr(collector_log(), "what user 65533 had put there was removed"), "%s",
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
	CHECK(strstr(collector_log(), "is beside it now"), "%s", collector_log());
	spawn("gets", "");
	collector_stop();
}

static void driver(void)
{
	cases_at_once();
	RUN(first_with_few_descriptors);
	RUN(first_with_slow_collector);
	RUN(planted);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, scenarios, driver);
}
