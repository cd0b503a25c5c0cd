/* SPDX-License-Identifier: MIT */
/*
 * What the collector asks others for, and gets late or never: names of users and groups, mappings
 * of processes, a file whose file system is a program that does not answer. The collector answers
 * everybody else meanwhile, and nothing is in force of a policy whose names are not known.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"
#include "harness.h"
#include "ledger/leaselayout.h"
#include "watched.h"

#define PAGE_LINK "memfd:rdma_intercept_usage"

/* Words of the file system and of the program that has its file. */
enum { WORD_FUSE = 8, WORD_GETATTR, WORD_OPEN, WORD_WORKER };

static char host[128], variables[640];

/* ---- a slow host */

static const char *host_file(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", host, name);
	return path;
}

/* Late answers come from a child that works: the collector has more patience with it, so that a
 * busy machine does not turn late into never. */
enum hold { HOLD_LATE, HOLD_FOR_EVER };

static void host_hold(const char *name, enum hold hold)
{
	int fd = creat(host_file(name), 0600);

	if (fd < 0 || (hold == HOLD_LATE && write(fd, "late", 4) != 4))
		abort();
	close(fd);
	unlink(host_file("asked"));
}

static void host_release(const char *name)
{
	unlink(host_file(name));
}

static bool host_was_asked(void)
{
	return !access(host_file("asked"), F_OK);
}

static void slow_prepare(void)
{
	snprintf(host, sizeof(host), "%s", harness_path("host"));
	mkdir(host, 0700);
	snprintf(variables, sizeof(variables), "%sSLOW_HOST=%s\nLD_PRELOAD=%s/tests/libslow_host.so\n",
		 watched_variables, host, getenv("BUILD_DIRECTORY"));
}

/* ---- what the collector says */

static uint64_t qp_limit(void)
{
	return collector_tenant("a").limit[KIND_qp];
}

/* To others, while somebody waits. */
static void answers_others(void)
{
	struct proto_status status;

	for (unsigned i = 0; i < 20; i++)
		if (!CHECK(collector_call(MESSAGE_STATUS, NULL, &status) == 0))
			stop_here();
}

static bool rule_is_met(void)
{
	struct proto_ask ask = { .pid = getpid() };
	struct proto_explanation explanation = { 0 };

	CHECK(collector_call(MESSAGE_EXPLAIN, &ask, &explanation) == 0);
	return !strcmp(explanation.tenant, "a");
}

static bool collector_has_children(void)
{
	char path[64], text[64] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)collector_pid(),
		 (int)collector_pid());
	file = fopen(path, "re");
	if (!file)
		abort();
	if (!fgets(text, sizeof(text), file))
		text[0] = '\0';
	fclose(file);
	return text[0];
}

/* A client that waits for its answer. */
static pid_t client_start(enum message type, const char *section, const char *text)
{
	struct proto_change change = { 0 };
	pid_t pid = fork_child();

	if (pid)
		return pid;
	snprintf(change.section, sizeof(change.section), "%s", section);
	snprintf(change.text, sizeof(change.text), "%s", text);
	_exit(-collector_call(type, &change, NULL) & 0xff);
}

/* The errno of its answer. */
static int client_end(pid_t pid)
{
	int status = 0;

	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* ---- names */

#define USER_POLICY(name, limit) "[tenant a]\nmatch = uid=" name "\nqp = " limit "\n"

static void names_late(void)
{
	pid_t client;

	collector_fresh(USER_POLICY("59999", "3"), variables);
	host_hold("slow-user", HOLD_LATE);
	collector_policy(USER_POLICY("slow-user", "4"));
	client = client_start(MESSAGE_RELOAD, "", "");
	NEED(host_was_asked());
	answers_others();
	CHECK(qp_limit() == 3 && !rule_is_met(), "a policy is in force before its names are known");
	host_release("slow-user");
	CHECK(client_end(client) == 0);
	CHECK(qp_limit() == 4 && rule_is_met(), "%s", collector_log());
	EVENTUALLY(!collector_has_children());
	collector_stop();
}

static void names_of_a_command(void)
{
	pid_t client;

	collector_fresh(USER_POLICY("59999", "3"), variables);
	host_hold("slow-user", HOLD_LATE);
	client = client_start(MESSAGE_CHANGE_POLICY, "tenant a", "match = uid=slow-user\nqp = 5");
	NEED(host_was_asked());
	answers_others();
	CHECK(qp_limit() == 3, "a part of a change is in force");
	host_release("slow-user");
	CHECK(client_end(client) == 0 && qp_limit() == 5 && rule_is_met());
	collector_stop();
}

/* By nobody's request: the file changed, or a signal came. */
static void names_of_a_file(void)
{
	collector_fresh(USER_POLICY("59999", "3"), variables);
	host_hold("slow-user", HOLD_LATE);
	collector_policy(USER_POLICY("slow-user", "4"));
	NEED(host_was_asked());
	answers_others();
	kill(collector_pid(), SIGHUP);
	answers_others();
	CHECK(qp_limit() == 3);
	host_release("slow-user");
	EVENTUALLY(qp_limit() == 4 && rule_is_met(), "%s", collector_log());
	collector_stop();
}

static void names_never(void)
{
	pid_t client;

	collector_fresh(USER_POLICY("59999", "3"), variables);
	host_hold("slow-user", HOLD_FOR_EVER);
	collector_policy(USER_POLICY("slow-user", "4"));
	client = client_start(MESSAGE_RELOAD, "", "");
	NEED(host_was_asked());
	answers_others();
	CHECK(client_end(client) == ETIMEDOUT);
	CHECK(strstr(collector_log(), "cannot look up the user 'slow-user'"), "%s", collector_log());
	answers_others();
	CHECK(qp_limit() == 3, "the old policy does not stay");
	EVENTUALLY(!collector_has_children(), "the child that hangs was not ended");
	/* Another child is asked, and for what is true now. */
	host_release("slow-user");
	CHECK(collector_call(MESSAGE_RELOAD, NULL, NULL) == 0 && qp_limit() == 4);
	CHECK(client_end(client_start(MESSAGE_CHANGE_POLICY, "tenant a", "match = uid=fatal-user")) ==
	      EIO);
	CHECK(client_end(client_start(MESSAGE_CHANGE_POLICY, "tenant a",
				      "match = uid=no-such-user")) == EINVAL);
	answers_others();
	CHECK(qp_limit() == 4);
	collector_stop();
}

/* A host without a collector would have no limits. */
static void names_never_at_the_start(void)
{
	static const char policy[] = "[collector]\nadmin_group = slow-admins\n"
				     "[tenant a]\nmatch = uid=slow-user\nqp = 3\n";

	collector_fresh(policy, variables);
	CHECK(qp_limit() == 3 && rule_is_met());
	collector_kill();
	host_hold("slow-user", HOLD_FOR_EVER);
	host_hold("slow-admins", HOLD_FOR_EVER);
	collector_restart(variables);
	CHECK(qp_limit() == 3 && rule_is_met(), "%s", collector_log());
	CHECK(strstr(collector_log(), "cannot look up the group 'slow-admins'") &&
		      strstr(collector_log(), "the last good policy is used"),
	      "%s", collector_log());
	host_release("slow-user");
	host_release("slow-admins");
	CHECK(collector_call(MESSAGE_RELOAD, NULL, NULL) == 0);
	collector_stop();
}

/* ---- mappings */

static const char *number_of(pid_t pid)
{
	static char text[16];

	snprintf(text, sizeof(text), "%d", (int)pid);
	return text;
}

static pid_t uncovered_start(enum hold hold)
{
	pid_t pid = unguarded_start();

	host_hold(number_of(pid), hold);
	kernel_set(kernel_row(pid, "rxe0", "raw"), KIND_qp, 1);
	return pid;
}

static void mappings_begin(void)
{
	words_clear();
	kernel_load(watched_directory, MONITOR_FENTRY);
	collector_fresh("", variables);
}

static void mappings_late(void)
{
	pid_t pid;

	mappings_begin();
	pid = uncovered_start(HOLD_LATE);
	NEED(host_was_asked());
	answers_others();
	CHECK(process_has(pid, ROW_UNCOVERED), "it is not shown as uncovered meanwhile");
	CHECK(!events_of(EVENT_UNCOVERED, pid).count, "%s", events_of(EVENT_UNCOVERED, pid).text);
	host_release(number_of(pid));
	EVENTUALLY(events_of(EVENT_UNCOVERED, pid).count);
	CHECK(!strcmp(events_of(EVENT_UNCOVERED, pid).text, "raw: the library is not loaded"), "%s",
	      events_of(EVENT_UNCOVERED, pid).text);
	process_kill(pid);
	collector_stop();
}

static void mappings_never(void)
{
	pid_t hanging, other;

	mappings_begin();
	hanging = uncovered_start(HOLD_FOR_EVER);
	NEED(host_was_asked());
	other = uncovered_start(HOLD_LATE);
	host_release(number_of(other));
	answers_others();
	EVENTUALLY(events_of(EVENT_UNCOVERED, hanging).count &&
		   events_of(EVENT_UNCOVERED, other).count);
	CHECK(strstr(events_of(EVENT_UNCOVERED, hanging).text, "unknown whether"), "%s",
	      events_of(EVENT_UNCOVERED, hanging).text);
	CHECK(strstr(events_of(EVENT_UNCOVERED, other).text, "not loaded"), "%s",
	      events_of(EVENT_UNCOVERED, other).text);
	EVENTUALLY(!collector_has_children(), "the child that hangs was not ended");
	process_kill(hanging);
	process_kill(other);
	collector_stop();
}

/* ---- a file that hangs */

static void fuse_reply(int fuse, uint64_t unique, int error, const void *body, size_t size)
{
	struct {
		struct fuse_out_header header;
		char body[256];
	} reply = { .header = { .len = (uint32_t)(sizeof(reply.header) + size),
				.error = error,
				.unique = unique } };

	memcpy(reply.body, body, size);
	if (write(fuse, &reply, reply.header.len) < 0)
		_exit(1);
}

/* Has one file, of a usage page's size, and never says what is known of it now. */
static void fuse_serve(int fuse)
{
	static const struct fuse_init_out begin = { .major = FUSE_KERNEL_VERSION,
						    .minor = 31,
						    .max_write = 65536 };
	static const struct fuse_entry_out entry = { .nodeid = 2,
						     .entry_valid = 1000000,
						     .attr = { .ino = 2,
							       .size = sizeof(struct usage_page),
							       .mode = S_IFREG | 0644,
							       .nlink = 1 } };
	static char request[1 << 17];
	const struct fuse_in_header *header = (const void *)request;

	while (read(fuse, request, sizeof(request)) > 0) {
		switch (header->opcode) {
		case FUSE_INIT:
			fuse_reply(fuse, header->unique, 0, &begin, sizeof(begin));
			word_store(WORD_FUSE, 1);
			break;
		case FUSE_LOOKUP:
			fuse_reply(fuse, header->unique, 0, &entry, sizeof(entry));
			break;
		case FUSE_GETATTR:
			if (header->nodeid == entry.nodeid)
				word_add(WORD_GETATTR, 1);
			else
				fuse_reply(fuse, header->unique, -EIO, NULL, 0);
			break;
		case FUSE_FORGET:
		case FUSE_BATCH_FORGET:
			break;
		default:
			fuse_reply(fuse, header->unique, -ENOSYS, NULL, 0);
		}
	}
	_exit(0);
}

static pid_t fuse_mount(const char *directory)
{
	int fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	char options[128];
	pid_t pid;

	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", fuse);
	mkdir(directory, 0755);
	if (fuse < 0 || unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("test", directory, "fuse", MS_NOSUID | MS_NODEV, options))
		skip("a file system of the test's own is not permitted: %s", strerror(errno));
	pid = fork_child();
	if (pid == 0)
		fuse_serve(fuse);
	close(fuse);
	return pid;
}

/* Leaves a child that has what the search for heirs looks at, and the file. */
static void leaves_a_file(const char *argument)
{
	struct fixture fixture = fixture_open();
	char path[256];

	snprintf(path, sizeof(path), "%s/" PAGE_LINK, argument);
	CHECK(qp_make(&fixture, IBV_QPT_RC) != NULL);
	if (open(path, O_PATH) < 0)
		abort();
	if (fork() == 0) {
		word_store(WORD_WORKER, (uint64_t)getpid());
		word_store(WORD_OPEN, 1);
		for (;;)
			pause();
	}
	word_await(WORD_READY, 1); /* killed there */
}

/* Whether one of its descriptors has the name of a usage page without being one. */
static bool has_the_file(pid_t pid)
{
	char path[64], target[128];

	for (int fd = 3; fd < 64; fd++) {
		ssize_t length;

		snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
		length = readlink(path, target, sizeof(target) - 1);
		target[length > 0 ? length : 0] = '\0';
		if (!strcmp(target, "/" PAGE_LINK))
			return true;
	}
	return false;
}

static void file_hangs(void)
{
	char directory[128], scenario[192];
	pid_t server, pid;

	words_clear();
	snprintf(directory, sizeof(directory), "%s", harness_path("fuse"));
	server = fuse_mount(directory);
	NEED(word_load(WORD_FUSE));
	collector_fresh("", variables);
	snprintf(scenario, sizeof(scenario), "leaves_a_file:%s", directory);
	pid = spawn_start(scenario, "TRANSPORT=lease");
	NEED(word_load(WORD_OPEN));
	/* What is mounted nowhere is named as if it were at the root, as a memfd is. */
	CHECK(umount2(directory, MNT_DETACH) == 0);
	CHECK(has_the_file((pid_t)word_load(WORD_WORKER)), "the file has another name");
	CHECK(collector_tenant(NULL).used[KIND_qp] == 1);
	kill(pid, SIGKILL);
	spawn_wait(pid);
	answers_others();
	EVENTUALLY(collector_tenant(NULL).used[KIND_qp] == 0, "the search does not end");
	CHECK(word_load(WORD_GETATTR) == 0, "the file system was asked");
	kill((pid_t)word_load(WORD_WORKER), SIGKILL);
	process_kill(server);
	collector_stop();
}

static void drive(void)
{
	watched_prepare();
	slow_prepare();
	RUN(names_late);
	RUN(names_of_a_command);
	RUN(names_of_a_file);
	RUN(names_never);
	RUN(names_never_at_the_start);
	RUN(mappings_late);
	RUN(mappings_never);
	RUN(file_hangs);
}

int main(int argc, char **argv)
{
	static const struct scenario scenarios[] = {
		{ "leaves_a_file", leaves_a_file },
		{ NULL, NULL },
	};

	return harness_main(argc, argv, scenarios, drive);
}
