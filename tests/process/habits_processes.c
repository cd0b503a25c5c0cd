/* SPDX-License-Identifier: MIT */
/* Habits of daemons with their descriptors and their families: they close, fork and exec. */
#include "habits.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- descriptors */

void habit_plain(void)
{
	habit_tell_work();
}

void habit_close_all_before(void)
{
	for (int fd = 3; fd < 1024; fd++)
		close(fd);
	habit_tell_work();
}

void habit_close_all_after(void)
{
	habit_tell_work();
	for (int fd = 3; fd < 1024; fd++)
		if (fd != habit_fixture.context->cmd_fd && fd != habit_fixture.context->async_fd)
			close(fd);
	habit_tell_work();
}

/* What closefrom(3) is made of. */
void habit_close_range_after(void)
{
	habit_tell_work();
	habit_need(!syscall(__NR_close_range, 3, ~0u, 0));
	habit_fixture = (struct fixture){ 0 };
	habit_tell_work();
}

/* The lowest free numbers are the program's. */
void habit_numbers(void)
{
	habit_tell("first", open("/dev/null", O_RDONLY));
	habit_tell_work();
	habit_tell("second", open("/dev/null", O_RDONLY));
	habit_tell("third", dup(0));
}

void habit_stdio_closed(void)
{
	habit_output = fcntl(STDOUT_FILENO, F_DUPFD, 100);
	for (int fd = 0; fd < 3; fd++)
		close(fd);
	habit_tell_work();
	for (int fd = 0; fd < 3; fd++) /* of the device, or nothing */
		habit_tell("open", fcntl(fd, F_GETFD));
}

void habit_stdio_reused(void)
{
	struct stat status;
	char name[32];

	habit_output = fcntl(STDOUT_FILENO, F_DUPFD, 100);
	for (int fd = 0; fd < 3; fd++)
		close(fd);
	for (int fd = 0; fd < 3; fd++) {
		snprintf(name, sizeof(name), "data.%d", fd);
		habit_need(open(harness_path(name), O_RDWR | O_CREAT | O_TRUNC, 0600) == fd);
	}
	habit_tell_work();
	for (int fd = 0; fd < 3; fd++) {
		fstat(fd, &status);
		habit_tell("size", status.st_size);
	}
}

void habit_stderr_pipe_gone(void)
{
	int ends[2];

	habit_need(!pipe(ends));
	dup2(ends[1], STDERR_FILENO);
	close(ends[0]);
	close(ends[1]);
	habit_again("habit:plain");
}

void habit_few_descriptors(void)
{
	struct rlimit limit = { 16, 16 };

	habit_need(!setrlimit(RLIMIT_NOFILE, &limit));
	habit_tell_work();
}

void habit_no_descriptors_after(void)
{
	struct rlimit limit = { 128, 128 };

	habit_tell_work();
	habit_need(!setrlimit(RLIMIT_NOFILE, &limit));
	while (open("/dev/null", O_RDONLY) >= 0)
		;
	habit_tell_work();
}

/* ---- families */

static void daemonize(void)
{
	pid_t pid = fork();

	if (pid)
		_exit(pid < 0);
	setsid();
	pid = fork();
	if (pid)
		_exit(pid < 0);
	habit_need(!chdir("/"));
	umask(0);
}

void habit_daemon_before(void)
{
	daemonize();
	habit_tell_work();
}

void habit_daemon_after(void)
{
	habit_tell_work();
	daemonize();
	habit_tell_work();
}

void habit_prefork(void)
{
	for (int i = 0; i < 6; i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(habit_work(false) == 2 * SOME ? 7 : 8);
		habit_reap(pid);
	}
	habit_tell_work();
}

void habit_vfork_exec(void)
{
	pid_t pid;

	habit_tell_work();
	pid = vfork();
	if (pid == 0)
		habit_again("habit:plain");
	habit_reap(pid);
	habit_tell_work();
}

void habit_posix_spawned(void)
{
	struct again again = program_again("test", "habit:plain", NULL);
	extern char **environ;
	pid_t pid;

	habit_tell_work();
	habit_need(!posix_spawn(&pid, again.program, NULL, NULL, again.arguments, environ));
	habit_reap(pid);
}

void habit_exec_chain(void)
{
	const char *left = getenv("HABIT_LEFT");
	int count = left ? atoi(left) : 4;
	char text[16];

	habit_work(true);
	habit_tell("left", count);
	if (!count)
		return;
	snprintf(text, sizeof(text), "%d", count - 1);
	setenv("HABIT_LEFT", text, 1);
	habit_again("habit:exec_chain");
}

void habit_children_ignored(void)
{
	signal(SIGCHLD, SIG_IGN);
	habit_tell_work();
	if (fork() == 0)
		_exit(habit_work(false) != 2 * SOME);
	habit_tell("wait", wait(NULL));
}
