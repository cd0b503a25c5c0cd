/* SPDX-License-Identifier: MIT */
/*
 * The lines that the library writes, to standard error and to its log, where writing is
 * dangerous: the reader is gone, a pipe is full, a terminal is stopped, the number 2 is another
 * file by now, files may not grow. The program must not notice, and a line never goes elsewhere.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pty.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/log.h"
#include "fixture.h"
#include "harness.h"

/* What a program that hangs gets: it is the failure, not a measure. */
enum { HANGING_SECONDS = 30 };

#define ONE_QP "LIMITS=process:qp=1"

/* ---- scenarios ---- */

/* Makes one QP, and two that are refused. */
static void refused_twice(void)
{
	struct fixture fixture = fixture_open();

	CHECK(qp_make(&fixture, IBV_QPT_RC) != NULL);
	for (int i = 0; i < 2; i++) {
		errno = 0;
		CHECK(!qp_make(&fixture, IBV_QPT_RC) && errno == EDQUOT, "errno %d", errno);
	}
	fixture_close(&fixture);
}

static void plain(const char *argument)
{
	alarm(HANGING_SECONDS);
	refused_twice();
}

/* What is written to a reader that is gone must not be found pending either. */
static void blocked(const char *argument)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	sigprocmask(SIG_BLOCK, &set, NULL);
	refused_twice();
	sigpending(&set);
	CHECK(!sigismember(&set, SIGPIPE));
}

/* The program itself again, with this descriptor for standard error. */
static void again_with(int fd, const char *scenario)
{
	if (dup2(fd, STDERR_FILENO) < 0)
		abort();
	close(fd);
	exec_again("test", scenario, NULL);
	abort();
}

static void pipe_reader_gone(const char *argument)
{
	int ends[2];

	if (pipe(ends))
		abort();
	close(ends[0]);
	again_with(ends[1], argument);
}

static void socket_reader_gone(const char *argument)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		abort();
	close(ends[0]);
	again_with(ends[1], argument);
}

static void fill(int fd)
{
	static const char bytes[4096];

	fcntl(fd, F_SETFL, O_NONBLOCK);
	while (write(fd, bytes, sizeof(bytes)) > 0 || write(fd, bytes, 1) > 0)
		;
	fcntl(fd, F_SETFL, 0);
}

static void pipe_full(const char *argument)
{
	int ends[2];

	if (pipe(ends))
		abort();
	fill(ends[1]);
	again_with(ends[1], argument); /* which inherits the other end and does not read it */
}

static void socket_full(const char *argument)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		abort();
	fill(ends[1]);
	again_with(ends[1], argument);
}

/* As after Ctrl-S. */
static void terminal_stopped(const char *argument)
{
	int master, slave;

	if (openpty(&master, &slave, NULL, NULL, NULL) || tcflow(slave, TCOOFF))
		abort();
	again_with(slave, argument);
}

/* In the background of a terminal that stops who writes to it from there. */
static void terminal_background(const char *argument)
{
	int master, slave, status;
	struct termios modes;
	pid_t pid;

	if (setsid() < 0 || openpty(&master, &slave, NULL, NULL, NULL) ||
	    ioctl(slave, TIOCSCTTY, 0) || tcgetattr(slave, &modes))
		abort();
	modes.c_lflag |= TOSTOP;
	if (tcsetattr(slave, TCSANOW, &modes))
		abort();
	pid = fork_child();
	if (pid == 0) {
		setpgid(0, 0);
		again_with(slave, argument);
	}
	waitpid(pid, &status, WUNTRACED);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", status);
	kill(pid, SIGKILL);
}

/* A descriptor that the driver has opened. */
static void given(const char *argument)
{
	const char *number = getenv("LINES_STDERR");

	again_with(number ? atoi(number) : -1, argument);
}

/* The kernel's own way to write without waiting is not there, and some refuse the other one, too. */
static void write_filtered(bool no_pages, const char *argument)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pwritev2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, no_pages ? SYS_vmsplice : SYS_pwritev2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(rules) / sizeof(rules[0]), rules };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		abort();
	if (!strcmp(argument, "gone"))
		pipe_reader_gone("plain");
	else if (!strcmp(argument, "full"))
		pipe_full("plain");
	else
		given("plain");
}

static void old_kernel(const char *argument)
{
	write_filtered(false, argument);
}

/* As container engines do it. */
static void container(const char *argument)
{
	write_filtered(true, argument);
}

/* Number 2 becomes a file of data, before the first verb or after it. */
static void reused(const char *argument)
{
	struct fixture fixture;
	struct stat status;
	int fd;

	if (!strcmp(argument, "later"))
		fixture = fixture_open();
	close(STDERR_FILENO);
	fd = open(harness_path("data"), O_RDWR | O_CREAT | O_TRUNC, 0600);
	CHECK(fd == STDERR_FILENO);
	if (strcmp(argument, "later"))
		fixture = fixture_open();
	CHECK(qp_make(&fixture, IBV_QPT_RC) && !qp_make(&fixture, IBV_QPT_RC));
	if (fstat(fd, &status))
		abort();
	CHECK(status.st_size == 0, "%lld bytes of ours", (long long)status.st_size);
}

/* Nothing is open as 2; the log must not be there for a moment either. */
static void closed(const char *argument)
{
	close(STDERR_FILENO);
	refused_twice();
	CHECK(fcntl(STDERR_FILENO, F_GETFD) < 0);
}

static void small_files(const char *argument)
{
	struct fixture fixture = fixture_open();
	struct rlimit limit = { 1, RLIM_INFINITY };

	setrlimit(RLIMIT_FSIZE, &limit);
	CHECK(qp_make(&fixture, IBV_QPT_RC) && !qp_make(&fixture, IBV_QPT_RC));
	limit.rlim_cur = RLIM_INFINITY;
	setrlimit(RLIMIT_FSIZE, &limit); /* our own words are none of the library's */
	fixture_close(&fixture);
}

static void makes(const char *argument)
{
	struct fixture fixture = fixture_open();

	for (int i = atoi(argument); i > 0; i--)
		ibv_destroy_qp(qp_make(&fixture, IBV_QPT_RC));
	fixture_close(&fixture);
}

static const struct scenario scenarios[] = {
	{ "plain", plain },
	{ "blocked", blocked },
	{ "pipe_reader_gone", pipe_reader_gone },
	{ "socket_reader_gone", socket_reader_gone },
	{ "pipe_full", pipe_full },
	{ "socket_full", socket_full },
	{ "terminal_stopped", terminal_stopped },
	{ "terminal_background", terminal_background },
	{ "given", given },
	{ "old_kernel", old_kernel },
	{ "container", container },
	{ "reused", reused },
	{ "closed", closed },
	{ "small_files", small_files },
	{ "makes", makes },
	{ 0 },
};

/* ---- standard error ---- */

static void reader_gone(void)
{
	spawn("pipe_reader_gone:plain", ONE_QP);
	spawn("pipe_reader_gone:blocked", ONE_QP);
	spawn("socket_reader_gone:plain", ONE_QP);
	spawn("socket_reader_gone:blocked", ONE_QP);
	spawn("pipe_reader_gone:plain", ONE_QP "\nLOG_LEVEL=DEBUG\nLOG_FILE_PATH=stderr");
}

static void reader_slow(void)
{
	spawn("pipe_full:plain", ONE_QP);
	spawn("socket_full:plain", ONE_QP);
	spawn("pipe_full:plain", ONE_QP "\nLOG_LEVEL=DEBUG\nLOG_FILE_PATH=stderr");
}

static void terminal(void)
{
	spawn("terminal_stopped:plain", ONE_QP);
	spawn("terminal_background:plain", ONE_QP);
}

static void number_reused(void)
{
	spawn("reused", ONE_QP);
	spawn("reused:later", ONE_QP);
	spawn("reused:later", ONE_QP "\nLOG_LEVEL=DEBUG\nLOG_FILE_PATH=stderr");
	spawn("closed", ONE_QP);
}

/* Who reads gets the whole line, through whatever leads there. */
static void arrives(int writer, int reader, const char *scenario)
{
	char text[4096] = "", settings[64];
	size_t length = 0;
	ssize_t part;
	pid_t pid;

	snprintf(settings, sizeof(settings), ONE_QP "\n!LINES_STDERR=%d", writer);
	pid = spawn_start(scenario, settings);
	close(writer);
	while (length < sizeof(text) - 1 &&
	       (part = read(reader, text + length, sizeof(text) - 1 - length)) > 0)
		length += (size_t)part;
	close(reader);
	CHECK(spawn_wait(pid) == 0, "%s", scenario);
	CHECK(occurrences(text, "rdma_intercept: refused ibv_create_qp") == 1 &&
	      strstr(text, "limit of the process"), "%s: read '%s'", scenario, text);
}

static void shown(void)
{
	int ends[2];

	if (pipe(ends))
		abort();
	fcntl(ends[0], F_SETFD, FD_CLOEXEC);
	arrives(ends[1], ends[0], "given:plain");
	if (pipe(ends))
		abort();
	fcntl(ends[0], F_SETFD, FD_CLOEXEC);
	arrives(ends[1], ends[0], "old_kernel:given");
	if (pipe(ends))
		abort();
	fcntl(ends[0], F_SETFD, FD_CLOEXEC);
	arrives(ends[1], ends[0], "container:given");
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		abort();
	fcntl(ends[0], F_SETFD, FD_CLOEXEC);
	arrives(ends[1], ends[0], "given:plain");
	if (openpty(&ends[0], &ends[1], NULL, NULL, NULL))
		abort();
	fcntl(ends[0], F_SETFD, FD_CLOEXEC);
	arrives(ends[1], ends[0], "given:plain");
}

static void without_nowait(void)
{
	spawn("old_kernel:gone", ONE_QP);
	spawn("old_kernel:full", ONE_QP);
	spawn("container:gone", ONE_QP);
	spawn("container:full", ONE_QP);
}

/* ---- the log ---- */

static void files_may_not_grow(void)
{
	log_clear();
	spawn("small_files", ONE_QP);
	spawn("small_files", ONE_QP "\nLOG_FILE_PATH=stderr");
}

static off_t size_of(const char *path)
{
	struct stat status;

	return stat(path, &status) ? -1 : status.st_size;
}

static unsigned lines_in(const char *path)
{
	FILE *file = fopen(path, "re");
	unsigned lines = 0;
	int byte;

	while (file && (byte = getc(file)) != EOF)
		lines += byte == '\n';
	if (file)
		fclose(file);
	return lines;
}

/* Many processes meet the bound at once: the file is moved once, and no line is lost. */
static void log_bound(void)
{
	enum { PROCESSES = 8, MADE = 20 };
	char log[160], old[160];
	pid_t pid[PROCESSES];
	unsigned alone, lines;
	int fd;

	snprintf(log, sizeof(log), "%s", harness_path("log"));
	snprintf(old, sizeof(old), "%s", harness_path("log.1"));
	log_clear();
	shm_remove();
	spawn("makes:20", "LOG_LEVEL=DEBUG"); /* makes the shared memory */
	log_clear();
	spawn("makes:20", "LOG_LEVEL=DEBUG");
	alone = lines_in(log);
	CHECK(alone >= MADE);
	log_clear();
	fd = open(log, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, LOG_FILE_MOST - 5000))
		abort();
	close(fd);
	for (unsigned i = 0; i < PROCESSES; i++)
		pid[i] = spawn_start("makes:20", "LOG_LEVEL=DEBUG");
	for (unsigned i = 0; i < PROCESSES; i++)
		CHECK(spawn_wait(pid[i]) == 0);
	lines = lines_in(log) + lines_in(old);
	CHECK(lines >= PROCESSES * alone, "%u lines of %u", lines, PROCESSES * alone);
	CHECK(size_of(old) >= LOG_FILE_MOST - 5000 && size_of(old) < LOG_FILE_MOST + 65536,
	      "%lld bytes", (long long)size_of(old));
	CHECK(size_of(log) > 0 && size_of(log) < LOG_FILE_MOST / 2, "%lld bytes",
	      (long long)size_of(log));
	unlink(old);
	/* Where it cannot be moved nothing more is written. */
	if (truncate(log, LOG_FILE_MOST) || mkdir(old, 0700))
		abort();
	spawn("makes:20", "LOG_LEVEL=DEBUG");
	CHECK(size_of(log) == LOG_FILE_MOST, "%lld bytes", (long long)size_of(log));
	rmdir(old);
	log_clear();
}

static void driver(void)
{
	RUN(reader_gone);
	RUN(reader_slow);
	RUN(terminal);
	RUN(number_reused);
	RUN(without_nowait);
	RUN(shown);
	RUN(files_may_not_grow);
	RUN(log_bound);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, scenarios, driver);
}
