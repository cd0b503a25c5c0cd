/* SPDX-License-Identifier: MIT */
/*
 * Containers: a guarded program in user, pid, ipc, net and mount namespaces of its own,
 * with nothing of the host but programs, libraries and the socket's directory, is served
 * like any other. It is known by the host's numbers whatever it is called inside, its
 * limits hold exactly, and when it is killed everything is given back. On the stand-in.
 */
#include "collector.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"
#include "harness.h"

enum {
	TENANT_UID = 60001,
	OTHER_UID = 60002,
	TENANT_QPS = 7,
	PROCESS_QPS = 4,
	OTHER_QPS = 2,
	QPS_MOST = 64,
	NOT_PERMITTED = 77,
};

/* Words of the shared page: so many for each container. */
enum {
	WORD_PID,	/* the host's number of the program */
	WORD_INNER_PID, /* what it is called inside */
	WORD_INNER_UID,
	WORD_ORDERS, /* how often it was told to make what it can */
	WORD_DONE,   /* how often it did */
	WORD_MADE,
	WORDS
};

static uint64_t load(unsigned box, unsigned which)
{
	return word_load(box * WORDS + which);
}

static void store(unsigned box, unsigned which, uint64_t value)
{
	word_store(box * WORDS + which, value);
}

/* ---- inside */

/* Makes QPs until one is refused, once for each order, and keeps them. */
static void boxed(const char *argument)
{
	unsigned box = (unsigned)atoi(argument), made = 0;
	struct fixture fixture = fixture_open();

	store(box, WORD_INNER_UID, geteuid());
	store(box, WORD_INNER_PID, (uint64_t)getpid());
	for (uint64_t order = 0;; order++) {
		word_await(box * WORDS + WORD_ORDERS, order + 1);
		while (made < QPS_MOST && qp_make(&fixture, IBV_QPT_RC))
			made++;
		store(box, WORD_MADE, made);
		store(box, WORD_DONE, order + 1);
	}
}

static const struct scenario scenarios[] = { { "boxed", boxed }, { 0 } };

/* ---- building a container */

static __attribute__((noreturn)) void give_up(const char *what)
{
	printf("%s: %s\n", what, strerror(errno));
	fflush(stdout);
	_exit(NOT_PERMITTED);
}

static void file_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		give_up(path);
	close(fd);
}

/* A user of the host without rights, who is root in namespaces of its own. */
static void namespaces_enter(uid_t uid)
{
	char map[32];

	if (setgroups(0, NULL) || setresgid(uid, uid, uid) || setresuid(uid, uid, uid) ||
	    prctl(PR_SET_DUMPABLE, 1) || prctl(PR_SET_PDEATHSIG, SIGKILL))
		abort();
	if (unshare(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWNS))
		give_up("new namespaces");
	snprintf(map, sizeof(map), "0 %u 1", (unsigned)uid);
	file_write("/proc/self/setgroups", "deny");
	file_write("/proc/self/uid_map", map);
	file_write("/proc/self/gid_map", map);
}

static void directories_make(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(path, 0755);
		*slash = '/';
	}
	mkdir(path, 0755);
}

/* Something of the host at its own path below the new root; a link stays a link. */
static void take_over(const char *root, const char *path, unsigned long more)
{
	char target[PATH_MAX], link[PATH_MAX] = "";
	struct statvfs options;
	struct stat status;

	snprintf(target, sizeof(target), "%s%s", root, path);
	if (lstat(path, &status))
		return;
	if (S_ISLNK(status.st_mode)) {
		if (readlink(path, link, sizeof(link) - 1) < 0 || symlink(link, target))
			give_up(path);
		return;
	}
	directories_make(target);
	if (mount(path, target, NULL, MS_BIND | more, NULL) || statvfs(target, &options))
		give_up(path);
	if (more && mount(NULL, target, NULL,
			  MS_REMOUNT | MS_BIND | MS_RDONLY |
				  (options.f_flag & (ST_NOSUID | ST_NODEV | ST_NOEXEC)),
			  NULL))
		give_up(path);
}

/* A root with nothing in it but what is needed. The socket's directory comes as it is,
 * everything else for reading. */
static void root_build(const char *root, const char *directory)
{
	static const char *const system[] = { "/usr", "/lib", "/lib64", "/bin" };

	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tmpfs", root, "tmpfs", 0, "mode=0755"))
		give_up("a root of its own");
	for (unsigned i = 0; i < sizeof(system) / sizeof(system[0]); i++)
		take_over(root, system[i], MS_REC);
	take_over(root, getenv("BUILD_DIRECTORY"), MS_REC);
	take_over(root, directory, 0);
}

/* As the first process of the pid namespace: a /proc of that, and no way back. */
static void root_enter(const char *root)
{
	if (chdir(root) || mkdir("proc", 0755) || mount("proc", "proc", "proc", 0, NULL))
		give_up("a /proc of its own");
	if (syscall(SYS_pivot_root, ".", ".") || umount2(".", MNT_DETACH) || chdir("/"))
		give_up("pivot_root");
}

static __attribute__((noreturn)) void program_run(unsigned box, const char *program,
						  const char *directory)
{
	char scenario[32];

	snprintf(scenario, sizeof(scenario), "boxed:%u", box);
	setenv("HARNESS_DIRECTORY", directory, 1);
	setenv("LD_PRELOAD", getenv("HARNESS_PRELOAD"), 1);
	setenv("RDMA_COLLECTOR_SOCKET", collector_socket(), 1);
	setenv("RDMA_INTERCEPT_TRANSPORT", "lease", 1);
	setenv("RDMA_INTERCEPT_FAIL", "closed", 1);
	setenv("RDMA_INTERCEPT_LOG_FILE_PATH", "stderr", 1);
	setenv("RDMA_INTERCEPT_LOG_LEVEL", "ERROR", 1);
	execl(program, "boxed", scenario, NULL);
	give_up(program);
}

/* The process in between: its child is the first in the new pid namespace, and it learns
 * that one's number on the host. */
static __attribute__((noreturn)) void box_make(unsigned box, uid_t uid)
{
	char program[PATH_MAX] = "", directory[PATH_MAX], root[PATH_MAX];
	int status;
	pid_t child;

	snprintf(directory, sizeof(directory), "%s", collector_socket());
	*strrchr(directory, '/') = '\0';
	snprintf(root, sizeof(root), "%s", harness_path("root"));
	if (readlink("/proc/self/exe", program, sizeof(program) - 1) < 0)
		abort();
	namespaces_enter(uid);
	root_build(root, directory);
	child = fork();
	if (child < 0)
		give_up("fork");
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* its parent is in another namespace */
		root_enter(root);
		program_run(box, program, directory);
	}
	store(box, WORD_PID, (uint64_t)child);
	waitpid(child, &status, 0);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

/* ---- from outside */

struct box {
	unsigned number;
	pid_t between; /* our child */
	pid_t pid;     /* of the program */
};

static bool wait_word(const struct box *box, unsigned which, uint64_t value)
{
	struct waiting waiting = { .for_what = "a word of a container", .file = __FILE__,
				   .line = __LINE__ };

	while (load(box->number, which) != value) {
		int status;

		if (waitpid(box->between, &status, WNOHANG) == box->between) {
			if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_PERMITTED)
				skip("a container cannot be built here: its last message says why; "
				     "other users must be able to reach the build directory");
			return CHECK(false, "a container ended with %x", (unsigned)status);
		}
		if (!waiting_goes_on(&waiting))
			return CHECK(false, "word %u is %llu, not %llu", which,
				     (unsigned long long)load(box->number, which),
				     (unsigned long long)value);
	}
	return true;
}

static struct box box_start(unsigned number, uid_t uid)
{
	struct box box = { .number = number };

	for (unsigned which = 0; which < WORDS; which++)
		store(number, which, 0);
	box.between = fork_child();
	if (box.between == 0)
		box_make(number, uid);
	if (!wait_word(&box, WORD_INNER_PID, 1))
		stop_here();
	CHECK(load(number, WORD_INNER_UID) == 0, "root inside");
	box.pid = (pid_t)load(number, WORD_PID);
	return box;
}

/* Tells it to make what it can. How many it has then. */
static unsigned box_fill(const struct box *box)
{
	uint64_t order = load(box->number, WORD_ORDERS) + 1;

	store(box->number, WORD_ORDERS, order);
	wait_word(box, WORD_DONE, order);
	return (unsigned)load(box->number, WORD_MADE);
}

static void box_kill(const struct box *box)
{
	kill(box->pid, SIGKILL);
	CHECK(spawn_wait(box->between) == 128 + SIGKILL);
}

/* The collector knows it by what it is on the host. */
static void box_known(const struct box *box, const char *tenant, uid_t uid, unsigned qps)
{
	struct proto_row row = collector_process(box->pid);
	struct proto_explanation explanation = { 0 };
	struct proto_ask question = { .pid = box->pid };
	char rule[32];

	snprintf(rule, sizeof(rule), "uid=%u", (unsigned)uid);
	CHECK(row.pid == box->pid && row.uid == uid && !strcmp(row.tenant, tenant),
	      "process %d of uid %u is of '%s'", (int)row.pid, (unsigned)row.uid, row.tenant);
	CHECK(row.used[KIND_qp] == qps && row.used[KIND_ctx] == 1, "%llu QPs",
	      (unsigned long long)row.used[KIND_qp]);
	CHECK(!(row.flags & (ROW_SOCKET | ROW_UNATTACHED)), "flags %x", row.flags);
	CHECK(collector_call(MESSAGE_EXPLAIN, &question, &explanation) == 0);
	CHECK(explanation.registered && explanation.uid == uid && explanation.gid == uid &&
		      !strcmp(explanation.tenant, tenant) && strstr(explanation.rule, rule),
	      "explained as uid %u of '%s' by '%s'", explanation.uid, explanation.tenant,
	      explanation.rule);
}

/* Its first refusal is kept under the host's number too. */
static void box_refused(const struct box *box)
{
	struct proto_explanation explanation = { 0 };
	struct proto_ask question = { .pid = box->pid, .number = 1 };

	CHECK(collector_call(MESSAGE_EXPLAIN, &question, &explanation) == 0);
	CHECK(explanation.has_event && explanation.event.pid == box->pid &&
		      explanation.event.kind == KIND_qp && explanation.event.limit == PROCESS_QPS,
	      "event %d-%llu", (int)explanation.event.pid,
	      (unsigned long long)explanation.event.number);
}

static void one(void)
{
	struct box box = box_start(0, TENANT_UID);

	CHECK(box_fill(&box) == PROCESS_QPS, "%u QPs", (unsigned)load(0, WORD_MADE));
	box_known(&box, "boxed", TENANT_UID, PROCESS_QPS);
	box_refused(&box);
	CHECK(collector_tenant("boxed").processes == 1);
	box_kill(&box);
	CHECK(collector_wait_used("boxed", KIND_qp, 0) &&
	      collector_wait_used("boxed", KIND_ctx, 0));
}

/* Both are process 1 and root inside; what one cannot have, the other's death gives. */
static void two_of_one_name(void)
{
	struct box first = box_start(0, TENANT_UID), second = box_start(1, TENANT_UID);

	CHECK(load(0, WORD_INNER_PID) == load(1, WORD_INNER_PID) && first.pid != second.pid);
	CHECK(box_fill(&first) == PROCESS_QPS);
	CHECK(box_fill(&second) == TENANT_QPS - PROCESS_QPS, "%u QPs",
	      (unsigned)load(1, WORD_MADE));
	box_known(&first, "boxed", TENANT_UID, PROCESS_QPS);
	box_known(&second, "boxed", TENANT_UID, TENANT_QPS - PROCESS_QPS);
	box_kill(&first);
	CHECK(collector_wait_used("boxed", KIND_qp, TENANT_QPS - PROCESS_QPS));
	CHECK(box_fill(&second) == PROCESS_QPS, "%u QPs", (unsigned)load(1, WORD_MADE));
	box_kill(&second);
	CHECK(collector_wait_used("boxed", KIND_qp, 0));
}

/* Root inside as well, but another user's. */
static void another_user(void)
{
	struct box box = box_start(0, OTHER_UID), guest = box_start(1, TENANT_UID);

	CHECK(box_fill(&box) == OTHER_QPS && box_fill(&guest) == PROCESS_QPS);
	box_known(&box, "other", OTHER_UID, OTHER_QPS);
	box_known(&guest, "boxed", TENANT_UID, PROCESS_QPS);
	box_kill(&box);
	box_kill(&guest);
	CHECK(collector_wait_used(NULL, KIND_qp, 0));
}

/* A page that lives in another pid namespace is found again, and the limit still holds. */
static void restart(void)
{
	struct box box = box_start(0, TENANT_UID);

	CHECK(box_fill(&box) == PROCESS_QPS);
	collector_kill();
	collector_start("");
	box_known(&box, "boxed", TENANT_UID, PROCESS_QPS);
	CHECK(box_fill(&box) == PROCESS_QPS);
	box_kill(&box);
	CHECK(collector_wait_used("boxed", KIND_qp, 0));
}

static void with_collector(void (*run)(void))
{
	collector_fresh("[tenant boxed]\nmatch = uid=60001\nqp = 7\nprocess.qp = 4\n"
			"[tenant other]\nmatch = uid=60002\nqp = 2\n",
			"");
	run();
	EVENTUALLY(collector_tenant(NULL).processes == 0);
	collector_stop();
}

static void driver(void)
{
	char directory[PATH_MAX];

	if (geteuid())
		skip("this needs root, to be other users");
	snprintf(directory, sizeof(directory), "%s", collector_socket());
	*strrchr(directory, '/') = '\0';
	if (chmod(directory, 0711) || chmod(harness_path("words"), 0666) ||
	    mkdir(harness_path("root"), 0755))
		abort();
	CASE("one_container")
		with_collector(one);
	CASE("two_of_one_name")
		with_collector(two_of_one_name);
	CASE("another_user")
		with_collector(another_user);
	CASE("restart")
		with_collector(restart);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, scenarios, driver);
}
