/* SPDX-License-Identifier: MIT */
/* Habits of daemons that give something up: rights, their root, resources. */
#include "habits.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- rights and roots */

void habit_root_before(void)
{
	habit_need(!mkdir(harness_path("root"), 0755) || errno == EEXIST);
	habit_need(!chroot(harness_path("root")) && !chdir("/"));
	habit_tell_work();
}

void habit_root_after(void)
{
	habit_tell_work();
	habit_need(!mkdir(harness_path("root"), 0755) || errno == EEXIST);
	habit_need(!chroot(harness_path("root")) && !chdir("/"));
	habit_tell_work();
}

void habit_user_before(void)
{
	habit_need(!setresgid(NOBODY, NOBODY, NOBODY) && !setresuid(NOBODY, NOBODY, NOBODY));
	habit_tell_work();
}

void habit_user_after(void)
{
	habit_tell_work();
	habit_need(!setresgid(NOBODY, NOBODY, NOBODY) && !setresuid(NOBODY, NOBODY, NOBODY));
	habit_tell_work();
}

static void filter(unsigned action)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_connect, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sendto, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, action),
	};
	struct sock_fprog program = { sizeof(rules) / sizeof(rules[0]), rules };

	habit_need(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
		   !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

void habit_filtered_after(void)
{
	habit_tell_work();
	filter(SECCOMP_RET_ERRNO | EPERM);
	habit_tell_work();
}

void habit_filtered_to_death_after(void)
{
	habit_tell_work();
	filter(SECCOMP_RET_KILL_PROCESS);
	habit_tell_work();
}

void habit_undumpable(void)
{
	habit_need(!prctl(PR_SET_DUMPABLE, 0));
	habit_tell_work();
}

void habit_pid_namespace(void)
{
	pid_t pid;

	habit_need(!unshare(CLONE_NEWPID));
	pid = fork();
	if (pid == 0) {
		habit_tell("pid", getpid());
		habit_tell_work();
		_exit(0);
	}
	habit_reap(pid);
}

/* ---- resources */

void habit_files_may_not_grow(void)
{
	struct rlimit limit = { 0, RLIM_INFINITY };

	habit_need(!setrlimit(RLIMIT_FSIZE, &limit));
	habit_work(false);
	limit.rlim_cur = RLIM_INFINITY;
	habit_need(!setrlimit(RLIMIT_FSIZE, &limit));
	habit_tell_work();
}

void habit_little_address_space(void)
{
	unsigned long pages;
	struct rlimit limit;
	FILE *file = fopen("/proc/self/statm", "re");

	habit_need(file && fscanf(file, "%lu", &pages) == 1);
	fclose(file);
	limit.rlim_cur = limit.rlim_max = pages * 4096 + (4 << 20);
	habit_need(!setrlimit(RLIMIT_AS, &limit));
	habit_tell_work();
}

void habit_memory_locked(void)
{
	habit_need(!mlockall(MCL_CURRENT | MCL_FUTURE));
	habit_tell_work();
}

void habit_no_new_processes(void)
{
	struct rlimit limit = { 0, 0 };

	habit_need(!setrlimit(RLIMIT_NPROC, &limit) && !setrlimit(RLIMIT_CORE, &limit));
	habit_tell_work();
}

void habit_full_shm(void)
{
	static const char page[4096];
	int fd;

	habit_need(!unshare(CLONE_NEWNS) && !mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
		   !mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=64k"));
	fd = open("/dev/shm/filler", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	while (write(fd, page, sizeof(page)) > 0)
		;
	close(fd);
	habit_tell_work();
}

void habit_no_environment(void)
{
	clearenv();
	setenv("RDMA_INTERCEPT_LOG_LEVEL", "OFF", 1); /* for the test's sake */
	habit_tell_work();
}

void habit_strange_umask(void)
{
	umask(0777);
	habit_tell_work();
}
