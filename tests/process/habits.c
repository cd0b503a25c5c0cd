/* SPDX-License-Identifier: MIT */
/*
 * What ordinary daemons do to themselves: they close what they do not know, fork twice, give up
 * rights, change their root, limit their resources, take signals. Each habit is a small program
 * that makes objects before, during or after it and prints what it sees. It must end the same way
 * and print the same with the library as without: alone, with a collector, and with one that is
 * asked each time. On the stand-in; no limit is met.
 */
#include "collector.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"
#include "harness.h"

enum { NOBODY = 65534, SOME = 40, NOT_HERE = 77 };

/* ---- what the habits share */

static struct fixture fixture;
static struct ibv_qp *made[SOME];

/* Makes some QPs and MRs, and frees them unless they are to stay; tells how it went. */
static unsigned work(bool keep)
{
	static char memory[MR_LENGTH];
	unsigned good = 0;

	if (!fixture.cq)
		fixture = fixture_open();
	for (unsigned i = 0; i < SOME; i++) {
		struct ibv_mr *mr = ibv_reg_mr(fixture.pd, memory, sizeof(memory), 0);

		made[i] = qp_make(&fixture, IBV_QPT_RC);
		good += made[i] && mr && !ibv_dereg_mr(mr);
	}
	for (unsigned i = 0; i < SOME && !keep; i++)
		good += made[i] && !ibv_destroy_qp(made[i]);
	return good;
}

static int output = STDOUT_FILENO;

static void tell(const char *what, long number)
{
	char line[128];
	int length = snprintf(line, sizeof(line), "%s %ld errno %d\n", what, number, errno);

	(void)!write(output, line, (size_t)length);
}

static void tell_work(void)
{
	errno = 0;
	tell("work", work(false));
}

static void reap(pid_t pid)
{
	int status = 0;

	waitpid(pid, &status, 0);
	tell("child", status);
}

/* The habit cannot be had here, for want of a right: with the library as without. */
static void need(bool good)
{
	if (!good)
		_exit(NOT_HERE);
}

static void again(const char *scenario)
{
	execl("/proc/self/exe", "test", scenario, NULL);
	_exit(126);
}

/* ---- descriptors */

static void plain(void)
{
	tell_work();
}

static void close_all_before(void)
{
	for (int fd = 3; fd < 1024; fd++)
		close(fd);
	tell_work();
}

static void close_all_after(void)
{
	tell_work();
	for (int fd = 3; fd < 1024; fd++)
		if (fd != fixture.context->cmd_fd && fd != fixture.context->async_fd)
			close(fd);
	tell_work();
}

/* What closefrom(3) is made of. */
static void close_range_after(void)
{
	tell_work();
	need(!syscall(SYS_close_range, 3, ~0u, 0));
	fixture = (struct fixture){ 0 };
	tell_work();
}

/* The lowest free numbers are the program's. */
static void numbers(void)
{
	tell("first", open("/dev/null", O_RDONLY));
	tell_work();
	tell("second", open("/dev/null", O_RDONLY));
	tell("third", dup(0));
}

static void stdio_closed(void)
{
	output = fcntl(STDOUT_FILENO, F_DUPFD, 100);
	for (int fd = 0; fd < 3; fd++)
		close(fd);
	tell_work();
	for (int fd = 0; fd < 3; fd++) /* of the device, or nothing */
		tell("open", fcntl(fd, F_GETFD));
}

static void stdio_reused(void)
{
	struct stat status;
	char name[32];

	output = fcntl(STDOUT_FILENO, F_DUPFD, 100);
	for (int fd = 0; fd < 3; fd++)
		close(fd);
	for (int fd = 0; fd < 3; fd++) {
		snprintf(name, sizeof(name), "data.%d", fd);
		need(open(harness_path(name), O_RDWR | O_CREAT | O_TRUNC, 0600) == fd);
	}
	tell_work();
	for (int fd = 0; fd < 3; fd++) {
		fstat(fd, &status);
		tell("size", status.st_size);
	}
}

static void stderr_pipe_gone(void)
{
	int ends[2];

	need(!pipe(ends));
	dup2(ends[1], STDERR_FILENO);
	close(ends[0]);
	close(ends[1]);
	again("habit:plain");
}

static void few_descriptors(void)
{
	struct rlimit limit = { 16, 16 };

	need(!setrlimit(RLIMIT_NOFILE, &limit));
	tell_work();
}

static void no_descriptors_after(void)
{
	struct rlimit limit = { 128, 128 };

	tell_work();
	need(!setrlimit(RLIMIT_NOFILE, &limit));
	while (open("/dev/null", O_RDONLY) >= 0)
		;
	tell_work();
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
	need(!chdir("/"));
	umask(0);
}

static void daemon_before(void)
{
	daemonize();
	tell_work();
}

static void daemon_after(void)
{
	tell_work();
	daemonize();
	tell_work();
}

static void prefork(void)
{
	for (int i = 0; i < 6; i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(work(false) == 2 * SOME ? 7 : 8);
		reap(pid);
	}
	tell_work();
}

static void vfork_exec(void)
{
	pid_t pid;

	tell_work();
	pid = vfork();
	if (pid == 0)
		again("habit:plain");
	reap(pid);
	tell_work();
}

static void posix_spawned(void)
{
	char *arguments[] = { "test", "habit:plain", NULL };
	extern char **environ;
	pid_t pid;

	tell_work();
	need(!posix_spawn(&pid, "/proc/self/exe", NULL, NULL, arguments, environ));
	reap(pid);
}

static void exec_chain(void)
{
	const char *left = getenv("HABIT_LEFT");
	int count = left ? atoi(left) : 4;
	char text[16];

	work(true);
	tell("left", count);
	if (!count)
		return;
	snprintf(text, sizeof(text), "%d", count - 1);
	setenv("HABIT_LEFT", text, 1);
	again("habit:exec_chain");
}

static void children_ignored(void)
{
	signal(SIGCHLD, SIG_IGN);
	tell_work();
	if (fork() == 0)
		_exit(work(false) != 2 * SOME);
	tell("wait", wait(NULL));
}

/* ---- rights and roots */

static void root_before(void)
{
	need(!mkdir(harness_path("root"), 0755) || errno == EEXIST);
	need(!chroot(harness_path("root")) && !chdir("/"));
	tell_work();
}

static void root_after(void)
{
	tell_work();
	need(!mkdir(harness_path("root"), 0755) || errno == EEXIST);
	need(!chroot(harness_path("root")) && !chdir("/"));
	tell_work();
}

static void user_before(void)
{
	need(!setresgid(NOBODY, NOBODY, NOBODY) && !setresuid(NOBODY, NOBODY, NOBODY));
	tell_work();
}

static void user_after(void)
{
	tell_work();
	need(!setresgid(NOBODY, NOBODY, NOBODY) && !setresuid(NOBODY, NOBODY, NOBODY));
	tell_work();
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

	need(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	     !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

static void filtered_after(void)
{
	tell_work();
	filter(SECCOMP_RET_ERRNO | EPERM);
	tell_work();
}

static void filtered_to_death_after(void)
{
	tell_work();
	filter(SECCOMP_RET_KILL_PROCESS);
	tell_work();
}

static void undumpable(void)
{
	need(!prctl(PR_SET_DUMPABLE, 0));
	tell_work();
}

static void pid_namespace(void)
{
	pid_t pid;

	need(!unshare(CLONE_NEWPID));
	pid = fork();
	if (pid == 0) {
		tell("pid", getpid());
		tell_work();
		_exit(0);
	}
	reap(pid);
}

/* ---- resources */

static void files_may_not_grow(void)
{
	struct rlimit limit = { 0, RLIM_INFINITY };

	need(!setrlimit(RLIMIT_FSIZE, &limit));
	work(false);
	limit.rlim_cur = RLIM_INFINITY;
	need(!setrlimit(RLIMIT_FSIZE, &limit));
	tell_work();
}

static void little_address_space(void)
{
	unsigned long pages;
	struct rlimit limit;
	FILE *file = fopen("/proc/self/statm", "re");

	need(file && fscanf(file, "%lu", &pages) == 1);
	fclose(file);
	limit.rlim_cur = limit.rlim_max = pages * 4096 + (4 << 20);
	need(!setrlimit(RLIMIT_AS, &limit));
	tell_work();
}

static void memory_locked(void)
{
	need(!mlockall(MCL_CURRENT | MCL_FUTURE));
	tell_work();
}

static void no_new_processes(void)
{
	struct rlimit limit = { 0, 0 };

	need(!setrlimit(RLIMIT_NPROC, &limit) && !setrlimit(RLIMIT_CORE, &limit));
	tell_work();
}

static void full_shm(void)
{
	static const char page[4096];
	int fd;

	need(!unshare(CLONE_NEWNS) && !mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
	     !mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=64k"));
	fd = open("/dev/shm/filler", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	while (write(fd, page, sizeof(page)) > 0)
		;
	close(fd);
	tell_work();
}

static void no_environment(void)
{
	clearenv();
	setenv("RDMA_INTERCEPT_LOG_LEVEL", "OFF", 1); /* for the test's sake */
	tell_work();
}

static void strange_umask(void)
{
	umask(0777);
	tell_work();
}

/* ---- signals */

static void tick(int number)
{
}

static void signals_each_millisecond(void)
{
	struct itimerval each = { { 0, 1000 }, { 0, 1000 } };
	struct sigaction action = { .sa_handler = tick };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &each, NULL);
	for (int i = 0; i < 20; i++)
		tell_work();
}

static void signals_blocked(void)
{
	sigset_t all, after;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	tell_work();
	sigprocmask(SIG_BLOCK, NULL, &after);
	for (int number = 1; number < 32; number++)
		tell("blocked", sigismember(&after, number));
	sigpending(&after);
	tell("pending", sigisemptyset(&after));
}

static void dispositions(void)
{
	struct sigaction action;

	tell_work();
	for (int number = 1; number < 32; number++)
		if (!sigaction(number, NULL, &action))
			tell("default", action.sa_handler == SIG_DFL);
}

static void ends_by_signal(void)
{
	tell("made", work(true));
	raise(SIGTERM);
}

static void aborts(void)
{
	struct rlimit limit = { 0, 0 };

	setrlimit(RLIMIT_CORE, &limit);
	tell("made", work(true));
	abort();
}

static sigjmp_buf back;

static void jump(int number)
{
	siglongjmp(back, 1);
}

/* Out of a system call of the program's own. */
static void jumps(void)
{
	signal(SIGALRM, jump);
	tell_work();
	if (!sigsetjmp(back, 1)) {
		raise(SIGALRM);
		tell("not here", 0);
	}
	tell_work();
}

/* ---- threads and libraries */

static void *thread_work(void *closure)
{
	*(long *)closure = work(false);
	return NULL;
}

static void on_thread(size_t stack)
{
	pthread_attr_t attributes;
	pthread_t thread;
	long good = -1;

	pthread_attr_init(&attributes);
	need(!pthread_attr_setstacksize(&attributes, stack));
	need(!pthread_create(&thread, &attributes, thread_work, &good));
	pthread_join(thread, NULL);
	tell("thread", good);
}

static void first_verb_on_thread(void)
{
	on_thread(128 << 10);
}

static void small_stack(void)
{
	tell_work();
	on_thread(32 << 10);
}

static void *thread_cancelled(void *closure)
{
	pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, NULL);
	pthread_cancel(pthread_self());
	*(long *)closure = work(false); /* makes no cancellation point */
	pthread_testcancel();
	return closure;
}

static void cancelled(void)
{
	pthread_t thread;
	long good = -1;
	void *end;

	need(!pthread_create(&thread, NULL, thread_cancelled, &good));
	pthread_join(thread, &end);
	tell("good", good);
	tell("cancelled", end == PTHREAD_CANCELED);
}

static void main_thread_ends(void)
{
	pthread_t thread;
	static long good;

	tell_work();
	need(!pthread_create(&thread, NULL, thread_work, &good));
	pthread_join(thread, NULL);
	tell("good", good);
	pthread_exit(NULL);
}

static void loads_and_unloads(void)
{
	for (int i = 0; i < 3; i++) {
		void *library = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);

		tell("opened", library != NULL);
		tell("found", library && dlsym(library, "ibv_create_qp") != NULL);
		tell_work();
		tell("closed", library ? dlclose(library) : -1);
	}
}

static void at_exit(void)
{
	tell_work();
}

static void works_at_exit(void)
{
	atexit(at_exit);
	tell_work();
}

static void holds_at_exit(void)
{
	tell("made", work(true));
	exit(3);
}

static void ends_at_once(void)
{
	tell("made", work(true));
	_exit(4);
}

/* ---- the table */

static const struct habit {
	const char *name;
	void (*run)(void);
	const char *settings; /* "" where none is needed */
} habits[] = {
#define HABIT(name) { #name, name, "" }
	HABIT(plain),
	HABIT(close_all_before),
	HABIT(close_all_after),
	HABIT(close_range_after),
	HABIT(numbers),
	HABIT(stdio_closed),
	HABIT(stdio_reused),
	HABIT(stderr_pipe_gone),
	HABIT(few_descriptors),
	HABIT(no_descriptors_after),
	HABIT(daemon_before),
	HABIT(daemon_after),
	HABIT(prefork),
	HABIT(vfork_exec),
	HABIT(posix_spawned),
	HABIT(exec_chain),
	HABIT(children_ignored),
	/* A log that was asked for and cannot be written is complained about. */
	{ "root_before", root_before, "LOG_LEVEL=OFF\nTRANSPORT=auto" }, /* so is a collector */
	HABIT(root_after),
	{ "user_before", user_before, "LOG_LEVEL=OFF" },
	HABIT(user_after),
	HABIT(filtered_after),
	HABIT(filtered_to_death_after),
	HABIT(undumpable),
	HABIT(pid_namespace),
	HABIT(files_may_not_grow),
	HABIT(little_address_space),
	HABIT(memory_locked),
	HABIT(no_new_processes),
	HABIT(full_shm),
	HABIT(no_environment),
	HABIT(strange_umask),
	HABIT(signals_each_millisecond),
	HABIT(signals_blocked),
	HABIT(dispositions),
	HABIT(ends_by_signal),
	HABIT(aborts),
	HABIT(jumps),
	HABIT(first_verb_on_thread),
	HABIT(small_stack),
	HABIT(cancelled),
	HABIT(main_thread_ends),
	HABIT(loads_and_unloads),
	HABIT(works_at_exit),
	HABIT(holds_at_exit),
	HABIT(ends_at_once),
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

/* Runs a habit to the end of its last descendant. The output goes to files; the status of the
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
		again(scenario);
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
	CHECK(!strcmp(with.out, bare.out), "%s [%s]: output\n%swithout the library\n%s", habit->name,
	      settings, with.out, bare.out);
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
