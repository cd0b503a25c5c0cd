/* SPDX-License-Identifier: MIT */
/* Drivers, scenarios and what they may ask; see harness.h. */
#include "harness.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ledger/ledger.h"
#include "ledger/view.h"
#include "session.h"
#include "words.h"

enum { EXIT_FAILED = 1, EXIT_SKIPPED = 77 };

static unsigned checks, failures;
static char directory[64], log_path[96], stderr_path[96], name[48];
static pid_t driver_pid; /* 0 in a scenario */
static pid_t parent_pid; /* when this program began */

/* While we only look whether others are done, our own work must not count as theirs. */
static bool named_waiter;
static void waiter_name(bool waits);

bool check_one(bool good, const char *file, int line, const char *text, const char *format, ...)
{
	va_list arguments;

	__atomic_add_fetch(&checks, 1, __ATOMIC_RELAXED);
	if (__atomic_load_n(&named_waiter, __ATOMIC_RELAXED))
		waiter_name(false);
	if (good)
		return true;
	__atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED);
	flockfile(stdout);
	printf("%s:%d: failed: %s ", file, line, text);
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	printf("\n");
	fflush(stdout);
	funlockfile(stdout);
	return false;
}

unsigned checks_failed(void)
{
	return failures;
}

/* ---- cases */

enum { CASES_MAX = 64 };

static struct {
	const char *only, *name;
	bool list, at_once, part; /* part: one of the cases that run at once */
	unsigned failures_before, checks_before, passed, failed, skipped;
	unsigned started;
	pid_t pid[CASES_MAX]; /* of the cases that run at once */
} cases;

/*
 * A test of the harness: TEST_BREAK=PROGRAM:fail or PROGRAM:hang makes that program end without
 * cleaning up, or never, in the middle of its work. Only that test may turn red.
 */
static void break_if_asked(void)
{
	const char *wish = getenv("TEST_BREAK");
	size_t length = strlen(program_invocation_short_name);

	if (!wish || strncmp(wish, program_invocation_short_name, length) || wish[length] != ':')
		return;
	printf("TEST_BREAK=%s\n", wish);
	fflush(stdout);
	if (!strcmp(wish + length, ":fail"))
		_exit(EXIT_FAILED);
	for (;;)
		pause();
}

void cases_at_once(void)
{
	cases.at_once = !cases.list && !cases.only;
}

static const char *case_output(unsigned number)
{
	char file[16];

	snprintf(file, sizeof(file), "case.%u", number);
	return harness_path(file);
}

/* A driver for one case. It is asked to end with us, and not killed: it removes its files. */
static void case_start(const char *case_name)
{
	pid_t parent = getpid(), pid;

	fflush(stdout);
	if (cases.started == CASES_MAX)
		abort();
	pid = fork();
	if (pid == 0) {
		int fd = open(case_output(cases.started), O_WRONLY | O_CREAT, 0600);

		dup2(fd, STDOUT_FILENO);
		close(fd);
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		if (getppid() == parent)
			exec_again(program_invocation_short_name, "--case", case_name);
		_exit(126);
	}
	cases.pid[cases.started++] = pid;
}

static void cases_collect(void)
{
	for (unsigned i = 0; i < cases.started; i++) {
		int status = spawn_wait(cases.pid[i]), byte;
		FILE *output = fopen(case_output(i), "re");

		while (output && (byte = getc(output)) != EOF)
			putchar(byte);
		if (output)
			fclose(output);
		if (status > EXIT_FAILED && status != EXIT_SKIPPED)
			printf("FAIL  a case ended with status %d\n", status);
		*(status == 0 ? &cases.passed :
		  status == EXIT_SKIPPED ? &cases.skipped : &cases.failed) += 1;
		failures += status != 0 && status != EXIT_SKIPPED;
	}
}

bool case_begin(const char *case_name)
{
	if (cases.list)
		puts(case_name);
	if (cases.list || (cases.only && strcmp(cases.only, case_name)))
		return false;
	if (cases.at_once) {
		case_start(case_name);
		return false;
	}
	cases.name = case_name;
	cases.checks_before = checks;
	cases.failures_before = failures;
	return true;
}

bool case_end(void)
{
	unsigned bad = failures - cases.failures_before;
	bool skipped = __atomic_exchange_n(words_skipped(), 0, __ATOMIC_SEQ_CST) != 0;

	printf("%s  %s (%u checks, %u failed)\n", bad ? "FAIL" : skipped ? "skip" : "ok  ",
	       cases.name, checks - cases.checks_before, bad);
	*(bad ? &cases.failed : skipped ? &cases.skipped : &cases.passed) += 1;
	cases.name = NULL;
	break_if_asked();
	return false;
}

static int cases_result(void)
{
	if (cases.list)
		return 0;
	cases_collect();
	if (cases.skipped && !cases.passed && !cases.failed)
		return EXIT_SKIPPED;
	if (cases.part && cases.passed + cases.failed > 0)
		return failures ? EXIT_FAILED : 0;
	if (cases.skipped)
		printf("%u passed, %u failed, %u skipped\n", cases.passed, cases.failed,
		       cases.skipped);
	else if (cases.passed + cases.failed > 0)
		printf("%u passed, %u failed\n", cases.passed, cases.failed);
	else if (cases.only)
		printf("%s: no such case: --list prints the names\n", cases.only);
	else
		printf("%u checks, %u failed\n", checks, failures);
	return failures || (cases.only && !cases.passed && !cases.skipped) ? EXIT_FAILED : 0;
}

void stop_here(void)
{
	fflush(stdout);
	if (getpid() != driver_pid)
		exit(EXIT_FAILED);
	if (cases.name)
		case_end();
	printf("stopped: the rest needs the check above\n");
	cases_result();
	exit(EXIT_FAILED);
}

unsigned test_factor(void)
{
	const char *set = getenv("RDMA_INTERCEPT_TEST_FACTOR");

	return set && atoi(set) > 1 ? (unsigned)atoi(set) : 1;
}

static void skip_say(const char *format, va_list arguments)
{
	printf("skipped: ");
	vprintf(format, arguments);
	printf("\n");
	fflush(stdout);
}

void skip(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	skip_say(format, arguments);
	va_end(arguments);
	exit(failures ? EXIT_FAILED : EXIT_SKIPPED);
}

void skip_part(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	skip_say(format, arguments);
	va_end(arguments);
	__atomic_store_n(words_skipped(), 1, __ATOMIC_SEQ_CST);
}

static const char *environment(const char *variable)
{
	const char *value = getenv(variable);

	if (value)
		return value;
	printf("%s is not set: run this by ctest\n", variable);
	exit(EXIT_FAILED);
}

static void names_make(const char *base)
{
	snprintf(directory, sizeof(directory), "%s", base);
	snprintf(log_path, sizeof(log_path), "%s/log", directory);
	snprintf(stderr_path, sizeof(stderr_path), "%s/stderr", directory);
	snprintf(name, sizeof(name), "ri_%s", strrchr(base, '/') + 1);
	words_map(harness_path("words"));
}

const char *harness_path(const char *file)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", directory, file);
	return path;
}

/* Calls visit for every child. Returns whether there is one. */
static bool children_visit(void (*visit)(pid_t child, int *closure), int *closure)
{
	DIR *processes = opendir("/proc");
	struct dirent *entry;
	bool any = false;

	while (processes && (entry = readdir(processes))) {
		char path[300], text[512], *rest;
		ssize_t length;
		int fd, parent;

		if (atoi(entry->d_name) <= 0)
			continue;
		snprintf(path, sizeof(path), "/proc/%s/stat", entry->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		length = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
		if (fd >= 0)
			close(fd);
		text[length < 0 ? 0 : length] = '\0';
		rest = strrchr(text, ')');
		if (!rest || sscanf(rest + 1, " %*c %d", &parent) != 1 || parent != getpid())
			continue;
		visit(atoi(entry->d_name), closure);
		any = true;
	}
	if (processes)
		closedir(processes);
	return any;
}

static void child_signal(pid_t child, int *number)
{
	kill(child, *number);
}

static bool children_signal(int number)
{
	return children_visit(child_signal, &number);
}

/* A signal that no test sends, if the child ended by one; it stays to be waited for. */
static void child_look(pid_t child, int *ret_number)
{
	static const int crashes[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS };
	siginfo_t end = { 0 };

	if (waitid(P_PID, (id_t)child, &end, WEXITED | WNOHANG | WNOWAIT) ||
	    end.si_pid != child || end.si_code == CLD_EXITED)
		return;
	for (unsigned i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++)
		if (end.si_status == crashes[i])
			*ret_number = crashes[i];
}

/* Ends what still runs: children, and children of these. */
static void children_end(void)
{
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	for (unsigned i = 0; i < cases.started; i++) {
		if (kill(cases.pid[i], SIGTERM) == 0)
			waitpid(cases.pid[i], NULL, 0);
	}
	while (children_signal(SIGKILL))
		while (waitpid(-1, NULL, 0) < 0 && errno == EINTR)
			;
}

static int files_remove(void)
{
	char command[128];

	shm_remove();
	snprintf(command, sizeof(command), "rm -rf '%s'", directory);
	return system(command);
}

static void clean_up(void)
{
	if (getpid() != driver_pid) /* a child that ends by exit() */
		return;
	children_end();
	if (files_remove())
		printf("cannot remove %s\n", directory);
}

static void killed(int number)
{
	clean_up();
	signal(number, SIG_DFL);
	raise(number);
}

static int drive(void (*driver)(void))
{
	static const int deadly[] = { SIGHUP, SIGINT, SIGPIPE, SIGTERM, SIGABRT };
	const char *temporary = getenv("TMPDIR");
	char base[64];

	snprintf(base, sizeof(base), "%s/rdma_test.XXXXXX", temporary ? temporary : "/tmp");
	if (!mkdtemp(base)) {
		fprintf(stderr, "TMPDIR: cannot make %s: %s\n", base, strerror(errno));
		return EXIT_FAILED;
	}
	driver_pid = getpid();
	names_make(base);
	atexit(clean_up);
	for (unsigned i = 0; i < sizeof(deadly) / sizeof(deadly[0]); i++)
		signal(deadly[i], killed);
	driver();
	return cases_result();
}

int harness_main(int argc, char **argv, const struct scenario *scenarios, void (*driver)(void))
{
	char scenario[128], *argument;

	setvbuf(stdout, NULL, _IOLBF, 0);
	parent_pid = getppid();
	if (argc == 2 && !strcmp(argv[1], "--list"))
		cases.list = true;
	else if (argc == 3 && (!strcmp(argv[1], "--only") || !strcmp(argv[1], "--case")))
		cases.only = argv[2];
	else if (argc < 2) /* by ctest, which gives no arguments */
		cases.only = getenv("TEST_CASE");
	cases.part = cases.only && argc == 3 && !strcmp(argv[1], "--case");
	if (argc < 2 || cases.list || cases.only)
		return drive(driver);
	if (argv[1][0] == '-') {
		fprintf(stderr, "usage: %s [--list | --only CASE]\n", program_invocation_short_name);
		return 2;
	}
	names_make(environment("HARNESS_DIRECTORY"));
	snprintf(scenario, sizeof(scenario), "%s", argv[1]);
	argument = strchr(scenario, ':');
	if (argument)
		*argument++ = '\0';
	for (; scenarios && scenarios->name; scenarios++) {
		if (strcmp(scenarios->name, scenario))
			continue;
		scenarios->run(argument ? argument : "");
		return failures ? EXIT_FAILED : 0;
	}
	printf("no scenario %s\n", scenario);
	return EXIT_FAILED;
}

static void settings_apply(const char *settings)
{
	char line[1024], full[1100], *value;

	while (*settings) {
		size_t length = strcspn(settings, "\n");

		snprintf(line, sizeof(line), "%.*s", (int)length, settings);
		settings += length + (settings[length] == '\n');
		value = strchr(line, '=');
		if (!value)
			abort();
		*value++ = '\0';
		snprintf(full, sizeof(full), "%s%s", line[0] == '!' ? "" : "RDMA_INTERCEPT_",
			 line + (line[0] == '!'));
		setenv(full, value, 1);
	}
}

void die_with_parent(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent_pid)
		_exit(126);
}

pid_t fork_child(void)
{
	pid_t parent = getpid(), pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(126);
	}
	return pid;
}

char process_state(pid_t pid)
{
	char path[64], text[512], state = 0, *rest;
	ssize_t length;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	length = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	text[length < 0 ? 0 : length] = '\0';
	rest = strrchr(text, ')');
	if (rest)
		sscanf(rest + 1, " %c", &state);
	return state;
}

static pid_t start(const char *scenario, const char *settings, bool preloaded)
{
	pid_t pid = fork_child();

	if (pid == 0) {
		int fd = open(stderr_path, O_WRONLY | O_CREAT | O_APPEND, 0600);

		dup2(fd, STDERR_FILENO);
		close(fd);
		setenv("HARNESS_DIRECTORY", directory, 1);
		if (preloaded)
			setenv("LD_PRELOAD", environment("HARNESS_PRELOAD"), 1);
		setenv("RDMA_INTERCEPT_SHM_NAME", name, 1);
		setenv("RDMA_INTERCEPT_LOG_FILE_PATH", log_path, 1);
		setenv("RDMA_COLLECTOR_SOCKET", harness_path("collector.sock"), 1);
		settings_apply(settings);
		exec_again("test", scenario, NULL);
		_exit(126);
	}
	return pid;
}

pid_t spawn_start(const char *scenario, const char *settings)
{
	pid_t pid = start(scenario, settings, true);

	break_if_asked();
	return pid;
}

int spawn_wait(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* The last lines that a scenario wrote to stderr, which began at that offset of the file. */
static const char *stderr_since(off_t offset)
{
	enum { MOST = 2000 };
	static char text[MOST + 1];
	int fd = open(stderr_path, O_RDONLY | O_CLOEXEC);
	off_t size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
	ssize_t length;

	if (size - offset > MOST)
		offset = size - MOST;
	length = fd < 0 || size <= offset ? 0 : pread(fd, text, MOST, offset);
	if (fd >= 0)
		close(fd);
	text[length < 0 ? 0 : length] = '\0';
	return text;
}

int spawn(const char *scenario, const char *settings)
{
	struct stat before = { 0 };
	int result;

	if (stat(stderr_path, &before))
		before.st_size = 0;
	result = spawn_wait(spawn_start(scenario, settings));
	CHECK(result == 0, "scenario %s [%s] ended with %d; stderr: %s", scenario, settings, result,
	      stderr_since(before.st_size));
	return result;
}

int spawn_bare(const char *scenario, const char *settings)
{
	int result = spawn_wait(start(scenario, settings, false));

	CHECK(result == 0, "scenario %s without the library ended with %d", scenario, result);
	return result;
}

const char *shm_name(void)
{
	const char *set = getenv("RDMA_INTERCEPT_SHM_NAME");

	return set ? set : name;
}

void shm_remove(void)
{
	char path[96];

	snprintf(path, sizeof(path), "/dev/shm/%s", name);
	unlink(path);
}

uint64_t used_on(const char *device, enum kind kind)
{
	char problem[PROBLEM_SIZE];
	struct ledger_view view;
	uint64_t amount = 0;
	int number = -1;
	int saved = errno;

	if (ledger_view_open(&view, shm_name(), problem) < 0) {
		errno = saved;
		return 0;
	}
	if (device)
		number = ledger_view_device(&view, device);
	if (!device || number >= 0)
		amount = ledger_view_used(&view, number, kind);
	ledger_view_close(&view);
	errno = saved;
	return amount;
}

uint64_t used(enum kind kind)
{
	return used_on(NULL, kind);
}

static const char *text_of(const char *path)
{
	static char text[65536];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	text[length < 0 ? 0 : length] = '\0';
	return text;
}

const char *log_text(void)
{
	return text_of(log_path);
}

const char *stderr_text(void)
{
	return text_of(stderr_path);
}

unsigned occurrences(const char *text, const char *word)
{
	unsigned found = 0;

	for (text = strstr(text, word); text; text = strstr(text + 1, word))
		found++;
	return found;
}

void log_clear(void)
{
	unlink(log_path);
	unlink(stderr_path);
}

static void waiter_name(bool waits)
{
	if (__atomic_exchange_n(&named_waiter, waits, __ATOMIC_RELAXED) == waits)
		return;
	prctl(PR_SET_NAME, waits ? SESSION_WAITER : program_invocation_short_name);
}

bool waiting_goes_on(struct waiting *waiting)
{
	enum { STILL_SECONDS = 30, PATIENCE_CPU_SECONDS = 300, REPORT_SECONDS = 20 };
	double now = seconds_now();
	int crash = 0;

	usleep(waiting->steps < 100 ? 500 : waiting->steps < 500 ? 5000 : 20000);
	if (waiting->steps++ == 0) {
		waiting->begin = waiting->looked = now;
		session_watch_begin(&waiting->watch, getsid(0), STILL_SECONDS / 3.0, now);
	}
	if (now < waiting->looked + 1)
		return true;
	waiting->looked = now;
	waiter_name(true);
	if (now > waiting->begin + REPORT_SECONDS && !waiting->reported && waiting->for_what) {
		printf("%s:%d: still waiting after %d s: %s\n", waiting->file, waiting->line,
		       REPORT_SECONDS, waiting->for_what);
		waiting->reported = true;
	}
	children_visit(child_look, &crash);
	if (crash) {
		printf("%s:%d: a child of the test ended by signal %d (%s): waiting no longer: %s\n",
		       waiting->file ? waiting->file : "?", waiting->line, crash, strsignal(crash),
		       waiting->for_what ? waiting->for_what : "?");
		waiter_name(false);
		return false;
	}
	if (session_still(&waiting->watch, now) < STILL_SECONDS &&
	    waiting->watch.total < PATIENCE_CPU_SECONDS * (uint64_t)sysconf(_SC_CLK_TCK))
		return true;
	waiter_name(false);
	return false;
}

double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}
