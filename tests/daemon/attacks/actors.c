/* SPDX-License-Identifier: MIT */
/*
 * Processes of an attack test and the words that they share; see attack.h. Every process ends
 * with its parent, so a test that is killed leaves none. This file does not know the collector.
 */
#include "attack.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
	unsigned ready, stop;
	unsigned turns[ATTACKERS_MAX];
	uint64_t note[NOTES];
} *shared;

static int actor = -1; /* the number of this attacker; -1: the driver or a victim */
static unsigned failures_before;

/* ---- words */

void actors_share(void)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		abort();
}

void actors_clear(void)
{
	memset(shared, 0, sizeof(*shared));
}

void actor_is(unsigned number)
{
	actor = (int)number;
}

unsigned actors_ready(void)
{
	return __atomic_load_n(&shared->ready, __ATOMIC_SEQ_CST);
}

unsigned actor_turns(unsigned number)
{
	return __atomic_load_n(&shared->turns[number], __ATOMIC_SEQ_CST);
}

bool attack_is_on(void)
{
	return !__atomic_load_n(&shared->stop, __ATOMIC_SEQ_CST);
}

void attack_stop(void)
{
	__atomic_store_n(&shared->stop, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &shared->stop, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

bool going(void)
{
	if (actor >= 0 && shared->turns[actor] < UINT_MAX)
		__atomic_add_fetch(&shared->turns[actor], 1, __ATOMIC_SEQ_CST);
	return attack_is_on();
}

void rest(void)
{
	if (actor >= 0)
		__atomic_store_n(&shared->turns[actor], UINT_MAX, __ATOMIC_SEQ_CST);
	while (attack_is_on())
		syscall(SYS_futex, &shared->stop, FUTEX_WAIT, 0, NULL, NULL, 0);
}

void ready(void)
{
	__atomic_add_fetch(&shared->ready, 1, __ATOMIC_SEQ_CST);
}

uint64_t note(unsigned index)
{
	return __atomic_load_n(&shared->note[index], __ATOMIC_SEQ_CST);
}

void note_set(unsigned index, uint64_t value)
{
	__atomic_store_n(&shared->note[index], value, __ATOMIC_SEQ_CST);
}

void note_add(unsigned index)
{
	__atomic_add_fetch(&shared->note[index], 1, __ATOMIC_SEQ_CST);
}

bool note_wait(unsigned index, uint64_t value)
{
	struct waiting waiting = { .for_what = "a note", .file = __FILE__, .line = __LINE__ };

	while (note(index) != value)
		if (!waiting_goes_on(&waiting))
			return false;
	return true;
}

/* ---- users */

void become(uid_t uid, const char *group)
{
	const struct group *entry = group ? getgrnam(group) : NULL;
	gid_t more = entry ? entry->gr_gid : 0;

	if (setgroups(entry ? 1 : 0, &more) || setresgid(uid, uid, uid) ||
	    setresuid(uid, uid, uid) || prctl(PR_SET_DUMPABLE, 1) ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL)) /* the kernel clears it with the old uid */
		abort();
}

static void map_write(const char *file, const char *format, unsigned id)
{
	char path[64], text[64];
	int fd, length = snprintf(text, sizeof(text), format, id);

	snprintf(path, sizeof(path), "/proc/self/%s", file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, text, (size_t)length) != length)
		printf("%s: %s\n", path, strerror(errno));
	close(fd);
}

bool become_container_root(void)
{
	uid_t uid = geteuid();

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
		return false;
	map_write("setgroups", "deny", 0);
	map_write("uid_map", "0 %u 1", uid);
	map_write("gid_map", "0 %u 1", uid);
	return geteuid() == 0;
}

/* ---- processes */

/* The child is no attacker by itself, and ends with its parent. */
static void child_begin(pid_t parent)
{
	actor = -1;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
		_exit(1);
}

static pid_t split_by(struct clone_args *arguments)
{
	pid_t parent = getpid(), child;

	fflush(stdout);
	failures_before = checks_failed();
	arguments->exit_signal = SIGCHLD;
	child = (pid_t)syscall(SYS_clone3, arguments, sizeof(*arguments));
	if (child == 0)
		child_begin(parent);
	return child;
}

pid_t split(void)
{
	pid_t parent = getpid(), child;

	fflush(stdout);
	failures_before = checks_failed();
	child = fork();
	if (child < 0)
		abort();
	if (child == 0)
		child_begin(parent);
	return child;
}

pid_t split_heir(void)
{
	pid_t driver = getppid(), parent = getpid(), child;

	fflush(stdout);
	failures_before = checks_failed();
	child = fork();
	if (child < 0)
		abort();
	if (child) {
		note_set(NOTE_HEIR, (uint64_t)child);
		return child;
	}
	actor = -1;
	while (getppid() == parent)
		usleep(500);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != driver)
		_exit(1);
	return 0;
}

pid_t split_sharing(void)
{
	return split_by(&(struct clone_args){ .flags = CLONE_FILES });
}

pid_t split_as(pid_t wanted)
{
	return split_by(&(struct clone_args){ .set_tid = (uintptr_t)&wanted, .set_tid_size = 1 });
}

void finish(void)
{
	fflush(stdout);
	_exit(checks_failed() != failures_before);
}

int reap(pid_t pid)
{
	struct waiting waiting = { .for_what = "the end of a process", .file = __FILE__,
				   .line = __LINE__ };
	int status = 0;
	pid_t ended;

	while ((ended = waitpid(pid, &status, WNOHANG)) == 0)
		if (!waiting_goes_on(&waiting)) {
			kill(pid, SIGKILL);
			ended = waitpid(pid, &status, 0);
			break;
		}
	if (ended != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool has_child_ended(pid_t pid)
{
	siginfo_t info = { 0 };

	return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid;
}

void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}
