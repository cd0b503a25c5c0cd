/* SPDX-License-Identifier: MIT */
/*
 * Runs one test so that nothing of it is left, whatever its end: in a session and a cgroup of its
 * own, with a temporary directory of its own and, where the user may mount, its own /dev/shm. It
 * stops a test that stands still or takes too long, and fails a test that leaves processes
 * running. It knows no test; tests need nothing of it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "session.h"

#define CGROUP_PREFIX "rdma_test."
#define DIRECTORY_PREFIX "rdma_sandbox."

enum {
	STILL_SECONDS = 120, /* default of SANDBOX_STILL_SECONDS: no process worked for so long */
	TOTAL_SECONDS = 3000,
	LONG_SECONDS = 24 * 3600, /* of the long form */
	GRACE_SECONDS = 10, /* for processes that are about to end by themselves */
	EXIT_FAILED = 1,
	EXIT_STOPPED = 124,
};

static const char *test_name;
static char cgroup[PATH_MAX - 64]; /* "" without one */
static char directory[64];

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
	va_list arguments;

	printf("sandbox: %s: ", test_name);
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	printf("\n");
	fflush(stdout);
}

/* ---- the cgroup */

static bool file_write(const char *folder, const char *file, const char *text)
{
	char path[PATH_MAX];
	ssize_t written;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	written = write(fd, text, strlen(text));
	close(fd);
	return written == (ssize_t)strlen(text);
}

/* Where cgroups of version 2 are mounted, and where in there we are. */
static bool cgroup_find_own(char *ret_path, size_t size)
{
	char line[PATH_MAX], mounted[PATH_MAX / 2] = "", own[PATH_MAX / 2] = "";
	FILE *file = fopen("/proc/self/mounts", "re");

	while (file && fgets(line, sizeof(line), file)) {
		char type[32], place[PATH_MAX / 2];

		if (!mounted[0] && sscanf(line, "%*s %2047s %31s", place, type) == 2 &&
		    !strcmp(type, "cgroup2"))
			snprintf(mounted, sizeof(mounted), "%s", place);
	}
	if (file)
		fclose(file);
	file = fopen("/proc/self/cgroup", "re");
	while (file && fgets(line, sizeof(line), file))
		sscanf(line, "0::%2047s", own);
	if (file)
		fclose(file);
	snprintf(ret_path, size, "%s%s", mounted, !strcmp(own, "/") ? "" : own);
	return mounted[0] && own[0];
}

static bool cgroup_is_populated(const char *path)
{
	char file_path[PATH_MAX], line[64];
	bool populated = false;
	FILE *file;

	snprintf(file_path, sizeof(file_path), "%s/cgroup.events", path);
	file = fopen(file_path, "re");
	while (file && fgets(line, sizeof(line), file))
		populated |= !strcmp(line, "populated 1\n");
	if (file)
		fclose(file);
	return populated;
}

/* Kills what is in there, also where the kernel has no cgroup.kill (before 5.14). */
static void cgroup_kill(const char *path)
{
	char procs[PATH_MAX], line[32];
	FILE *file;

	if (file_write(path, "cgroup.kill", "1"))
		return;
	snprintf(procs, sizeof(procs), "%s/cgroup.procs", path);
	file = fopen(procs, "re");
	while (file && fgets(line, sizeof(line), file))
		if (atoi(line) > 1)
			kill(atoi(line), SIGKILL);
	if (file)
		fclose(file);
}

/* With the cgroups that a test made below its own. */
static void cgroup_remove(const char *path)
{
	DIR *folder = opendir(path);
	struct dirent *entry;

	cgroup_kill(path);
	while (folder && (entry = readdir(folder))) {
		char below[PATH_MAX];

		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		if (snprintf(below, sizeof(below), "%s/%s", path, entry->d_name) < (int)sizeof(below))
			cgroup_remove(below);
	}
	if (folder)
		closedir(folder);
	for (int i = 0; i < 1000 && rmdir(path) && errno == EBUSY; i++) {
		cgroup_kill(path);
		usleep(5000);
	}
}

/* Locks a directory. Whoever makes one keeps it locked as long as it lives; a process number alone
 * proves nothing, since its owner may be in another PID namespace. */
static int directory_lock(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/*
 * A sandbox that was killed could not clean up: calls remove for what is named PREFIX and the
 * number of a process that is no more.
 */
static void leftovers_remove(const char *parent, const char *prefix, void (*remove)(const char *path))
{
	DIR *folder = opendir(parent);
	struct dirent *entry;

	while (folder && (entry = readdir(folder))) {
		char path[PATH_MAX];
		pid_t owner;
		int lock;

		if (strncmp(entry->d_name, prefix, strlen(prefix)))
			continue;
		owner = atoi(entry->d_name + strlen(prefix));
		if (owner <= 0 || kill(owner, 0) == 0 || errno != ESRCH)
			continue;
		snprintf(path, sizeof(path), "%s/%s", parent, entry->d_name);
		lock = directory_lock(path);
		if (lock < 0)
			continue;
		remove(path);
		close(lock);
	}
	if (folder)
		closedir(folder);
}

static void cgroup_remove_leftover(const char *path)
{
	if (cgroup_is_populated(path))
		say("note: an earlier test left processes running in %s; they are killed", path);
	cgroup_remove(path);
}

static void cgroup_make(void)
{
	char parent[PATH_MAX - 320]; /* room for a name below it */

	if (!cgroup_find_own(parent, sizeof(parent)))
		return;
	leftovers_remove(parent, CGROUP_PREFIX, cgroup_remove_leftover);
	snprintf(cgroup, sizeof(cgroup), "%s/" CGROUP_PREFIX "%d", parent, (int)getpid());
	if (mkdir(cgroup, 0755))
		cgroup[0] = '\0';
	else
		directory_lock(cgroup); /* until we end */
}

/* ---- the test */

/* Mounts that only this test sees; needs privileges, and a root that is a mount point. */
static void mounts_isolate(void)
{
	if (unshare(CLONE_NEWNS) || mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return;
	mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777");
}

/* A test sees the settings that it was registered with, not those of whoever runs it. */
static void environment_clear(void)
{
	static const char *const prefixes[] = { "RDMA_INTERCEPT_", "RDMA_COLLECTOR_", "LD_PRELOAD=" };
	char name[128];

	for (char **entry = environ; *entry;) {
		bool foreign = false;

		for (unsigned i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
			foreign |= !strncmp(*entry, prefixes[i], strlen(prefixes[i]));
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(*entry, "="), *entry);
		if (foreign && strncmp(name, "RDMA_INTERCEPT_TEST_", strlen("RDMA_INTERCEPT_TEST_")))
			unsetenv(name); /* moves the rest */
		else
			entry++;
	}
}

static pid_t test_start(char **command)
{
	pid_t sandbox = getpid(), pid = fork();
	sigset_t none;

	if (pid)
		return pid;
	setsid();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != sandbox)
		_exit(EXIT_FAILED);
	if (cgroup[0] && !file_write(cgroup, "cgroup.procs", "0"))
		say("note: cannot enter the cgroup %s: %s", cgroup, strerror(errno));
	mounts_isolate();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	environment_clear();
	setenv("TMPDIR", directory, 1);
	execvp(command[0], command);
	say("cannot run %s: %s", command[0], strerror(errno));
	_exit(127);
}

/* Calls visit for each child of a process; orphans of the test are our own. */
static unsigned children_visit(pid_t parent, void (*visit)(pid_t))
{
	char path[64];
	unsigned count = 0;
	FILE *file;
	int child;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)parent, (int)parent);
	file = fopen(path, "re");
	while (file && fscanf(file, "%d", &child) == 1) {
		visit(child);
		count++;
	}
	if (file)
		fclose(file);
	return count;
}

static void child_kill(pid_t child)
{
	kill(child, SIGKILL);
}

/* With all that descend from it. */
static void child_show(pid_t child)
{
	char path[64], command[256] = "?";
	ssize_t length;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)child);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	length = fd < 0 ? 0 : read(fd, command, sizeof(command) - 1);
	if (fd >= 0)
		close(fd);
	for (ssize_t i = 0; i < length - 1; i++)
		if (!command[i])
			command[i] = ' ';
	command[length > 0 ? length : 1] = '\0';
	say("running: process %d: %s", (int)child, command);
	children_visit(child, child_show);
}

static void reap(void)
{
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

/* Kills every process of the test. Orphans become our children, one generation after another. */
static void processes_kill(void)
{
	for (;;) {
		if (cgroup[0])
			cgroup_kill(cgroup);
		if (!children_visit(getpid(), child_kill))
			break;
		reap();
		usleep(2000);
	}
	if (cgroup[0])
		cgroup_remove(cgroup);
	cgroup[0] = '\0';
}

/* Whether processes are left that do not end by themselves. */
static bool processes_left(void)
{
	double until = now() + GRACE_SECONDS;

	for (;;) {
		reap();
		if (waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD &&
		    !(cgroup[0] && cgroup_is_populated(cgroup)))
			return false;
		if (now() > until)
			return true;
		usleep(2000);
	}
}

static void directory_remove(const char *path)
{
	char command[PATH_MAX + 16];

	snprintf(command, sizeof(command), "rm -rf '%s'", path);
	if (system(command))
		say("cannot remove %s", path);
}

static bool directory_make(void)
{
	leftovers_remove("/tmp", DIRECTORY_PREFIX, directory_remove);
	snprintf(directory, sizeof(directory), "/tmp/" DIRECTORY_PREFIX "%d.XXXXXX", (int)getpid());
	if (!mkdtemp(directory) || chmod(directory, 0755)) /* tests become other users */
		return false;
	directory_lock(directory); /* until we end */
	return true;
}

static sigset_t signals_block(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return set;
}

static int seconds_of(const char *variable, int seconds)
{
	const char *set = getenv(variable);

	return set && atoi(set) > 0 ? atoi(set) : seconds;
}

/* Waits for the test's end; its exit status, or that of a test which was stopped. */
static int test_wait(pid_t test, int signals)
{
	double begin = now();
	struct session_watch watch;
	int status, still = seconds_of("SANDBOX_STILL_SECONDS", STILL_SECONDS);
	int total = getenv("RDMA_INTERCEPT_TEST_FACTOR") ? LONG_SECONDS : TOTAL_SECONDS;

	session_watch_begin(&watch, test, still / 3.0, begin);
	for (;;) {
		struct pollfd ready = { .fd = signals, .events = POLLIN };
		struct signalfd_siginfo info;
		pid_t ended;

		if (poll(&ready, 1, 1000) > 0 && read(signals, &info, sizeof(info)) == sizeof(info) &&
		    info.ssi_signo != SIGCHLD)
			return 128 + (int)info.ssi_signo;
		while ((ended = waitpid(-1, &status, WNOHANG)) > 0)
			if (ended == test)
				return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
		if (session_still(&watch, now()) > still)
			say("stopped: no process has worked for %d s", still);
		else if (now() - begin > total)
			say("stopped: not finished after %d s", total);
		else
			continue;
		children_visit(getpid(), child_show);
		return EXIT_STOPPED;
	}
}

/* For whoever wants the tests faster: in ctest's Testing/Temporary/LastTest.log. */
static void times_show(double begin)
{
	struct rusage all;

	getrusage(RUSAGE_CHILDREN, &all);
	say("%.1f s of processor time in %.1f s",
	    (double)(all.ru_utime.tv_sec + all.ru_stime.tv_sec) +
		    (double)(all.ru_utime.tv_usec + all.ru_stime.tv_usec) / 1e6,
	    now() - begin);
}

int main(int argc, char **argv)
{
	double begin = now();
	sigset_t set;
	int signals, status;

	if (argc < 3) {
		fprintf(stderr, "usage: sandbox TEST-NAME COMMAND [ARGUMENT...]\n");
		return 2;
	}
	test_name = argv[1];
	set = signals_block();
	signal(SIGPIPE, SIG_IGN); /* cleaning up comes first */
	prctl(PR_SET_PDEATHSIG, SIGTERM); /* ctest was killed */
	signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) || signals < 0 || !directory_make()) {
		say("cannot prepare: %s", strerror(errno));
		return EXIT_FAILED;
	}
	cgroup_make();
	status = test_wait(test_start(argv + 2), signals);
	if ((status == 0 || status == 77) && processes_left()) {
		say("failed: the test has ended and left processes running");
		children_visit(getpid(), child_show);
		status = EXIT_FAILED;
	}
	processes_kill();
	times_show(begin);
	directory_remove(directory);
	return status;
}
