/* SPDX-License-Identifier: MIT */
/*
 * What ordinary daemons do to themselves: they close what they do not know, fork twice, give up
 * rights, change their root, limit their resources, take signals. Each habit is a small program
 * that makes objects before, during or after it and prints what it sees. It must end the same way
 * and print the same with the library as without: alone, with a collector, and with one that is
 * asked each time. On the stand-in; no limit is met.
 */
#include "collector.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "habits.h"

/* ---- what the habits share */

struct fixture habit_fixture;
static struct ibv_qp *made[SOME];

unsigned habit_work(bool keep)
{
	static char memory[MR_LENGTH];
	unsigned good = 0;

	if (!habit_fixture.cq)
		habit_fixture = fixture_open();
	for (unsigned i = 0; i < SOME; i++) {
		struct ibv_mr *mr = ibv_reg_mr(habit_fixture.pd, memory, sizeof(memory), 0);

		made[i] = qp_make(&habit_fixture, IBV_QPT_RC);
		good += made[i] && mr && !ibv_dereg_mr(mr);
	}
	for (unsigned i = 0; i < SOME && !keep; i++)
		good += made[i] && !ibv_destroy_qp(made[i]);
	return good;
}

int habit_output = STDOUT_FILENO;

void habit_tell(const char *what, long number)
{
	char line[128];
	int length = snprintf(line, sizeof(line), "%s %ld errno %d\n", what, number, errno);

	(void)!write(habit_output, line, (size_t)length);
}

void habit_tell_work(void)
{
	errno = 0;
	habit_tell("work", habit_work(false));
}

void habit_reap(pid_t pid)
{
	int status = 0;

	waitpid(pid, &status, 0);
	habit_tell("child", status);
}

void habit_need(bool good)
{
	if (!good)
		_exit(NOT_HERE);
}

void habit_again(const char *scenario)
{
	exec_again("test", scenario, NULL);
	_exit(126);
}

/* ---- the table */

static const struct habit {
	const char *name;
	void (*run)(void);
	const char *settings; /* "" where none is needed */
} habits[] = {
#define HABIT(name, settings) { #name, habit_##name, settings },
#include "habits.def"
#undef HABIT
};

enum { HABITS = sizeof(habits) / sizeof(habits[0]) };

/* ---- scenarios */

static void habit(const char *argument)
{
	for (unsigned i = 0; i < HABITS; i++)
		if (!strcmp(habits[i].name, argument)) {
			habits[i].run();
			return;
		}
	_exit(126);
}

/* Runs a habit to the end of its last descendant. The habit_output goes to files; the status of the
 * first process is ours. */
static void captured(const char *argument)
{
	char scenario[64];
	int status, first = 0;
	pid_t pid, ended;

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	pid = fork_child();
	if (pid == 0) {
		int out = open(harness_path("out"), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0666);
		int err = open(harness_path("err"), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0666);

		dup2(out, STDOUT_FILENO);
		dup2(err, STDERR_FILENO);
		close(out);
		close(err);
		snprintf(scenario, sizeof(scenario), "habit:%s", argument);
		habit_again(scenario);
	}
	while ((ended = wait(&status)) > 0)
		if (ended == pid)
			first = status;
	_exit(WIFEXITED(first) ? WEXITSTATUS(first) : 128 + WTERMSIG(first));
}

static const struct scenario scenarios[] = { { "habit", habit }, { "captured", captured }, { 0 } };

/* ---- the driver */

struct outcome {
	int status;
	char out[8192], err[2048];
};

static void text_read(const char *file, char *ret_text, size_t size)
{
	int fd = open(harness_path(file), O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? 0 : read(fd, ret_text, size - 1);

	if (fd >= 0)
		close(fd);
	ret_text[length < 0 ? 0 : length] = '\0';
}

static struct outcome outcome_of(const struct habit *habit, const char *settings)
{
	struct outcome outcome;
	char scenario[64], all[768];

	snprintf(scenario, sizeof(scenario), "captured:%s", habit->name);
	snprintf(all, sizeof(all), "%s%s%s", settings, habit->settings[0] ? "\n" : "",
		 habit->settings);
	outcome.status = spawn_wait(spawn_start(scenario, all));
	text_read("out", outcome.out, sizeof(outcome.out));
	text_read("err", outcome.err, sizeof(outcome.err));
	return outcome;
}

static void compare(const struct habit *habit, const char *settings)
{
	struct outcome bare = outcome_of(habit, "!LD_PRELOAD="), with = outcome_of(habit, settings);

	if (bare.status == NOT_HERE) {
		skip_part("%s is not possible here", habit->name);
		return;
	}
	CHECK(bare.out[0] || bare.status, "%s does nothing", habit->name);
	CHECK(with.status == bare.status, "%s [%s]: status %d, without the library %d", habit->name,
	      settings, with.status, bare.status);
	CHECK(!strcmp(with.out, bare.out), "%s [%s]: output\n%swithout the library\n%s",
	      habit->name, settings, with.out, bare.out);
	CHECK(!strcmp(with.err, bare.err), "%s [%s]: standard error '%s', without the library '%s'",
	      habit->name, settings, with.err, bare.err);
}

static void all_with(const char *settings)
{
	for (unsigned i = 0; i < HABITS; i++)
		compare(&habits[i], settings);
}

static void alone(void)
{
	all_with("ENABLE=1");
}

static void with_collector(void)
{
	collector_fresh("", "");
	all_with("ENABLE=1");
	collector_stop();
}

static void with_collector_asked(void)
{
	collector_fresh("", "");
	all_with("TRANSPORT=socket");
	collector_stop();
}

/* Each object is asked for, since there is little to spare. */
static void near_a_limit(void)
{
	collector_fresh("[default]\nqp = 45\nmr = 5\n", "");
	all_with("ENABLE=1");
	collector_stop();
}

/* Another library of the kind, before ours and after it. */
static void beside_another_preload(void)
{
	const char *build = getenv("BUILD_DIRECTORY"), *ours = getenv("HARNESS_PRELOAD");
	char settings[512];

	snprintf(settings, sizeof(settings), "!LD_PRELOAD=%s:%s/tests/libsecond.so", ours, build);
	all_with(settings);
	snprintf(settings, sizeof(settings), "!LD_PRELOAD=%s/tests/libsecond.so:%s", build, ours);
	all_with(settings);
}

static void driver(void)
{
	if (chmod(harness_path("."), 0777)) /* for those who change their user */
		abort();
	RUN(alone);
	RUN(with_collector);
	RUN(with_collector_asked);
	RUN(near_a_limit);
	RUN(beside_another_preload);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, scenarios, driver);
}
