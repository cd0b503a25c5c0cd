/* SPDX-License-Identifier: MIT */
/*
 * `explain PID` tells calls that failed in the kernel from those that a limit refused, and names the
 * limit of locked memory of the process.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "collector.h"
#include "fakeverbs.h"
#include "guardfiles.h"
#include "member.h"

enum { LOCKED = 64 << 10 };

/* Three of four registrations fail, one of three QPs is refused; with "well" nothing fails. */
static void works(const char *argument)
{
	static char memory[4096];
	struct fixture fixture = member_fixture();
	struct rlimit limit = { LOCKED, LOCKED };
	bool is_well = !strcmp(argument, "well");

	CHECK(!setrlimit(RLIMIT_MEMLOCK, &limit));
	if (!is_well)
		fake_set("ibv_reg_mr", FAKE_FAIL, ENOMEM, 0, 3);
	for (unsigned i = 0; i < 4; i++)
		CHECK(!ibv_reg_mr(fixture.pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE) ==
		      (!is_well && i < 3));
	for (unsigned i = 0; i < 3; i++)
		CHECK(!qp_make(&fixture, IBV_QPT_RC) == (i == 2));
	word_store(WORD_READY, 1);
	word_await(WORD_GO, 1);
}

static const char *explained(pid_t pid, const char *options)
{
	const char *text;
	char line[64];

	snprintf(line, sizeof(line), "%s explain %d", options, (int)pid);
	text = command_output(line);
	return text ? text : ""; /* a sanitizer lets the compiler think of NULL */
}

static pid_t begin(const char *scenario)
{
	pid_t pid;

	collector_fresh("[default]\nprocess.qp = 2\n", "");
	word_store(WORD_READY, 0);
	word_store(WORD_GO, 0);
	pid = spawn_start(scenario, "QUIET=1");
	word_await(WORD_READY, 1);
	return pid;
}

static void end(pid_t pid)
{
	word_store(WORD_GO, 1);
	spawn_wait(pid);
	collector_stop();
}

static void told_apart(void)
{
	pid_t pid = begin("works:badly");
	const char *text = explained(pid, "");

	CHECK(strstr(text, "FAILED IN THE KERNEL") && strstr(text, "REFUSED BY A LIMIT"), "%s", text);
	CHECK(strstr(text, "These calls passed the limits and failed in the kernel"), "%s", text);
	CHECK(strstr(text, "limited to 64K") || strstr(text, "limited to 65536"), "%s", text);
	CHECK(strstr(text, "ulimit -l"), "%s", text);
	text = explained(pid, "-j");
	CHECK(strstr(text, "{\"class\":\"reg_mr\",\"calls\":4,\"failed\":3,\"refused\":0}"), "%s", text);
	CHECK(!strstr(text, "\"class\":\"create_qp\""), "%s", text);
	end(pid);
}

static void without_failures(void)
{
	pid_t pid = begin("works:well");

	CHECK(!strstr(explained(pid, ""), "FAILED IN THE KERNEL"));
	CHECK(strstr(explained(pid, "-j"), "\"failed_calls\":[]"), "%s", explained(pid, "-j"));
	end(pid);
}

static const struct scenario scenarios[] = { { "works", works }, { NULL, NULL } };

static void driver(void)
{
	RUN(told_apart);
	RUN(without_failures);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, scenarios, driver);
}
