/* SPDX-License-Identifier: MIT */
/*
 * Trials; see trial.h. A program counts if it is on this host and works without the library; then
 * it has to end with the same status and print the same with it. The dynamic linker's complaints
 * are part of what it prints.
 */
#include "cli/trial.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/translation.h"
#include "cli/preload_list.h"
#include "output/memory.h"

enum {
	PATIENCE = 120,	    /* seconds until a program that hangs is stopped by SIGALRM */
	NOBODY = 65534,	    /* user and group */
	TEXT_SIZE = 512,    /* of what a program prints */
	LISTED_SIZE = 4096, /* of what the dynamic linker lists */
};

/* Plain ones, set-user-ID ones, and the first program that the next boot starts. */
static char *const programs[][4] = {
	{ "/bin/true", NULL },
	{ "/bin/sh", "-c", "/bin/true | /bin/cat", NULL },
	{ "/bin/ls", "-d", "/", NULL },
	{ "/bin/su", "--version", NULL },
	{ "/bin/mount", "--version", NULL },
	{ "/usr/bin/sudo", "-h", NULL },
	{ "/lib/systemd/systemd", "--version", NULL },
};
enum { PROGRAMS = sizeof(programs) / sizeof(programs[0]) };

struct trial_results {
	struct {
		int status;
		char text[TEXT_SIZE];
	} of[PROGRAMS][2]; /* as root, and without privileges */
};

static _Noreturn void trial_execute(char *const words[], const struct trial *trial)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	sigset_t none;

	if (null >= 0)
		dup2(null, STDIN_FILENO);
	/* What the host does, and not what this shell makes of it. */
	clearenv();
	setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", true);
	signal(SIGALRM, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (trial->preload)
		setenv("LD_PRELOAD", trial->preload, true);
	if (trial->list)
		setenv("LD_TRACE_LOADED_OBJECTS", "1", true);
#ifdef __SANITIZE_ADDRESS__
	setenv("ASAN_OPTIONS", "verify_asan_link_order=0", true);
#endif
	if (trial->unprivileged && (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) ||
				    setresuid(NOBODY, NOBODY, NOBODY)))
		_exit(127);
	alarm(PATIENCE);
	execvp(words[0], words);
	_exit(127);
}

/* What the program and those that it started print: the first is kept, and the rest is read, or a
 * program would end by SIGPIPE. False if one still has its output open after too long a time. */
static bool trial_read(int fd, char *ret_text, size_t size)
{
	struct pollfd printed = { .fd = fd, .events = POLLIN };
	uint64_t deadline_ns = clock_now_ns() + (PATIENCE + 1) * 1000000000ull;
	size_t length = 0;
	ssize_t got = 1;

	while (got > 0 && clock_now_ns() < deadline_ns) {
		char more[TEXT_SIZE];

		if (TEMP_FAILURE_RETRY(poll(&printed, 1, 1000)) <= 0)
			continue;
		got = TEMP_FAILURE_RETRY(read(fd, more, sizeof(more)));
		for (ssize_t i = 0; i < got && length < size - 1; i++)
			ret_text[length++] = more[i];
	}
	ret_text[length] = '\0';
	return got <= 0;
}

int trial_start(char *const words[], const struct trial *trial, char *ret_text, size_t size)
{
	int fds[2], status = -1;
	pid_t child;

	*ret_text = '\0';
	if (pipe2(fds, O_CLOEXEC))
		return -1;
	child = fork();
	if (child == 0) {
		setpgid(0, 0);
		dup2(fds[1], STDOUT_FILENO);
		dup2(fds[1], STDERR_FILENO);
		trial_execute(words, trial);
	}
	close(fds[1]);
	if (child > 0) {
		setpgid(child, child); /* if the child has not done it yet */
		if (!trial_read(fds[0], ret_text, size))
			kill(-child, SIGKILL);
		if (TEMP_FAILURE_RETRY(waitpid(child, &status, 0)) != child)
			status = -1;
	}
	close(fds[0]);
	return status;
}

struct trial_results *trial_record(void)
{
	struct trial_results *results = memory_need(calloc(1, sizeof(*results)));

	for (int i = 0; i < PROGRAMS; i++)
		for (int way = 0; way < 2; way++)
			results->of[i][way].status =
				trial_start(programs[i], &(struct trial){ .unprivileged = way },
					    results->of[i][way].text, TEXT_SIZE);
	return results;
}

/* The dynamic linker of the first program says that it loads the library, for root and for others. */
static int trial_check_loaded(const struct trial_results *before, const char *library,
			      const char *preload, char problem[PROBLEM_SIZE])
{
	char *text = memory_need(malloc(LISTED_SIZE));
	int result = 0, status;

	if (before->of[0][0].status)
		result = problem_set(-ENOEXEC, problem, _("%s: it does not start on this host"),
				     programs[0][0]);
	for (int way = 0; way < 2 && !result; way++) {
		if (before->of[0][way].status)
			continue;
		status = trial_start(programs[0],
				     &(struct trial){ .preload = preload, .list = true, .unprivileged = way },
				     text, LISTED_SIZE);
		if (!status && strstr(text, library))
			continue;
		if (way)
			result = problem_set(-EACCES, problem,
					     _("programs of other users than root do not load %s: expected "
					       "a list that every user may read: chmod 644 %s"),
					     library, PRELOAD_FILE);
		else
			result = problem_set(-ELIBBAD, problem,
					     _("%s: the dynamic linker of %s does not load it: expected a "
					       "library for the C library of this host"),
					     library, programs[0][0]);
	}
	free(text);
	return result;
}

int trial_compare(const struct trial_results *before, const char *library, bool by_variable,
		  char problem[PROBLEM_SIZE])
{
	const char *preload = by_variable ? library : NULL;
	char text[TEXT_SIZE];

	for (int i = 0; i < PROGRAMS; i++)
		for (int way = 0; way < 2; way++) {
			int status;

			if (before->of[i][way].status) /* it is not on this host */
				continue;
			status = trial_start(programs[i],
					     &(struct trial){ .preload = preload, .unprivileged = way },
					     text, sizeof(text));
			if (status >= 0 && WIFSIGNALED(status))
				return problem_set(-ELIBBAD, problem,
						   _("with %s, '%s' ends with signal %d"), library,
						   programs[i][0], WTERMSIG(status));
			if (status || strcmp(text, before->of[i][way].text))
				return problem_set(-ELIBBAD, problem,
						   _("with %s, '%s' does not work as without it: %.300s"),
						   library, programs[i][0], text);
		}
	return trial_check_loaded(before, library, preload, problem);
}

int trial_compare_with_file(const struct trial_results *before, const char *library,
			    const char *candidate, const char *file, char problem[PROBLEM_SIZE])
{
	char said[PROBLEM_SIZE] = "";
	ssize_t length = 0;
	int fds[2];
	pid_t child;

	if (pipe2(fds, O_CLOEXEC))
		return 0;
	child = fork();
	if (child == 0) {
		if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		    mount(candidate, file, NULL, MS_BIND, NULL))
			_exit(0);
		if (!trial_compare(before, library, false, said))
			_exit(0);
		length = write(fds[1], said, strlen(said));
		_exit(length < 0);
	}
	close(fds[1]);
	if (child > 0) {
		length = file_read(fds[0], said, sizeof(said) - 1);
		said[length > 0 ? length : 0] = '\0';
		TEMP_FAILURE_RETRY(waitpid(child, NULL, 0));
	}
	close(fds[0]);
	return *said ? problem_set(-ELIBBAD, problem, "%s", said) : 0;
}
