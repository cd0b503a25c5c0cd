/* SPDX-License-Identifier: MIT */
/*
 * Two versions on one host, after an update: each pair works, or fails with a sentence that names
 * both versions and the way out. The other version is a stand-in that sends the bytes of one, or a
 * file with the number of one.
 */
#include "collector.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/books.h"
#include "fixture.h"
#include "harness.h"
#include "kernel.h"
#include "ledger/leaselayout.h"
#include "rdma_intercept/client.h"

enum { WORD_GO, WORD_READY, WORD_MADE, WORD_ERRNO };
/* One that no message is understood of any more (proto/former.def). */
enum { OLD_PROTO = 5 };

#define WAY_OUT "; after an update, restart the collector and the programs that use it"

static const char *versions_text(const char *format, unsigned other, unsigned ours)
{
	static char text[256];

	snprintf(text, sizeof(text), format, other, ours);
	return text;
}

/* ---- a collector of another version */

/* What the stand-in is. */
enum other {
	OTHER_PROTOCOL, /* refuses every request, under the header of the version before */
	OTHER_KINDS,	/* the same with other kinds */
	OTHER_MESSAGES, /* of this version, and knows no message since GET_DETAILS */
};

static void other_send(int connection, struct proto_header header, const void *body, size_t size)
{
	char whole[sizeof(header) + PROTO_REPLY_MAX];

	header.length = (uint32_t)(sizeof(header) + size);
	memcpy(whole, &header, sizeof(header));
	memcpy(whole + sizeof(header), body, size);
	send(connection, whole, header.length, MSG_NOSIGNAL);
}

/* As every version since the first has refused what it does not speak. */
static void other_refuse(int connection, const struct proto_header *asked, enum other other)
{
	struct proto_header header = proto_header(asked->type, -EPROTO, 0);
	char sentence[128];

	if (other == OTHER_PROTOCOL)
		header.version = OLD_PROTO;
	if (other == OTHER_KINDS)
		header.kinds ^= 1;
	snprintf(sentence, sizeof(sentence), "a message of unknown type %u",
		 (unsigned)asked->type);
	other_send(connection, header, sentence, strlen(sentence));
}

static void other_answer(int connection, enum other other)
{
	struct proto_status status = { .pid = getpid(), .version = "0.9" };
	struct proto_row row = { .scope = ROW_PROCESS, .pid = getppid(), .tenant = "default" };
	struct proto_header asked;
	char body[PROTO_REQUEST_MAX];

	if (recv(connection, &asked, sizeof(asked), MSG_WAITALL) != sizeof(asked) ||
	    (asked.length > sizeof(asked) &&
	     recv(connection, body, asked.length - sizeof(asked), MSG_WAITALL) < 0))
		return;
	if (other != OTHER_MESSAGES || asked.type >= MESSAGE_GET_DETAILS) {
		other_refuse(connection, &asked, other);
	} else if (asked.type == MESSAGE_STATUS) {
		other_send(connection, proto_header(asked.type, 0, 0), &status, sizeof(status));
	} else {
		other_send(connection, proto_header(asked.type, PROTO_MORE, 0), &row, sizeof(row));
		other_send(connection, proto_header(asked.type, 0, 0), "", 0);
	}
}

static pid_t other_start(enum other other)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int connection, listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	pid_t pid;

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", collector_socket());
	unlink(collector_socket());
	if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof(address)) ||
	    listen(listener, 16))
		abort();
	pid = fork_child();
	if (pid == 0)
		for (;;)
			if ((connection = accept(listener, NULL, NULL)) >= 0) {
				other_answer(connection, other);
				close(connection);
			}
	close(listener);
	return pid;
}

static void other_end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	unlink(collector_socket());
}

/* What the command prints, and its exit status. */
static const char *command(const char *arguments)
{
	static char text[4096];
	char line[512];
	FILE *output;
	size_t size;

	snprintf(line, sizeof(line), "%s/rdma_intercept -s %s %s 2>&1; echo exit $?",
		 getenv("BUILD_DIRECTORY"), collector_socket(), arguments);
	output = popen(line, "re");
	size = fread(text, 1, sizeof(text) - 1, output);
	text[size] = '\0';
	pclose(output);
	return text;
}

static int row_ignore(const struct rdma_intercept_row *row, void *closure)
{
	return 0;
}

static void run_makes(const char *argument)
{
	struct ibv_device **devices = ibv_get_device_list(NULL);
	struct ibv_context *context = ibv_open_device(devices[0]);

	word_store(WORD_MADE, context != NULL);
	word_store(WORD_ERRNO, context ? 0 : (uint64_t)errno);
	if (context)
		ibv_close_device(context);
	ibv_free_device_list(devices);
}

static void clients_refuse(enum other other, const char *words)
{
	static const char *const commands[] = { "status", "show tenant", "show process 1",
						"reload", "limit set host qp=1", "events",
						"explain 1" };
	pid_t pid = other_start(other);
	char problem[RDMA_INTERCEPT_PROBLEM];

	for (unsigned i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		const char *text = command(commands[i]);

		CHECK(strstr(text, words) && strstr(text, WAY_OUT) && strstr(text, "exit 3"),
		      "%s: %s", commands[i], text);
	}
	CHECK(strstr(command("doctor"), words));
	CHECK(rdma_intercept_read(collector_socket(), RDMA_INTERCEPT_HOST, NULL, row_ignore, NULL,
				  problem) == -EPROTO &&
		      strstr(problem, words) && strstr(problem, WAY_OUT),
	      "%s", problem);
	/* The library goes on without a collector, or refuses, and says why. */
	log_clear();
	CHECK(spawn("makes", "TRANSPORT=auto\nLOG_LEVEL=INFO\nQUIET=1") == 0);
	CHECK(word_load(WORD_MADE) && strstr(log_text(), words) && strstr(log_text(), WAY_OUT) &&
		      strstr(log_text(), "going on without a collector"),
	      "%s", log_text());
	log_clear();
	CHECK(spawn("makes", "TRANSPORT=lease\nFAIL=closed\nLOG_LEVEL=INFO\nQUIET=1") == 0);
	CHECK(!word_load(WORD_MADE) && word_load(WORD_ERRNO) == EDQUOT &&
		      strstr(log_text(), words) && strstr(log_text(), WAY_OUT),
	      "%s", log_text());
	other_end(pid);
}

static void other_collector(void)
{
	clients_refuse(OTHER_PROTOCOL,
		       versions_text("protocol version %u; this side speaks version %u", OLD_PROTO,
				     PROTO_VERSION));
	clients_refuse(OTHER_KINDS, "another table of kinds");
}

/* Its protocol is the same, but it is older than a message. */
static void unknown_message(void)
{
	pid_t pid = other_start(OTHER_MESSAGES);
	char arguments[64];
	const char *text;

	text = command("status");
	CHECK(strstr(text, "\nversion ") && strstr(text, " 0.9\n") &&
		      strstr(text, "does not understand GET_RULES (a message of unknown type 17") &&
		      strstr(text, "exit 3"),
	      "%s", text);
	snprintf(arguments, sizeof(arguments), "show process %d", (int)getpid());
	text = command(arguments);
	CHECK(strstr(text, "does not understand GET_DETAILS (a message of unknown type 16)" WAY_OUT) &&
		      strstr(text, "the collector is of version 0.9, this command of ") &&
		      strstr(text, "exit 3"),
	      "%s", text);
	other_end(pid);
}

/* ---- a program of another version */

/* A request under the header of another version; the status of the reply, and its sentence. */
static int foreign_request(struct proto_header header, size_t body, char ret_text[PROTO_TEXT + 1])
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char whole[sizeof(header) + PROTO_REQUEST_MAX] = { 0 };
	struct proto_header reply = { 0 };

	header.length = (uint32_t)(sizeof(header) + body);
	memcpy(whole, &header, sizeof(header));
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", collector_socket());
	CHECK(!connect(fd, (struct sockaddr *)&address, sizeof(address)) &&
	      send(fd, whole, header.length, MSG_NOSIGNAL) == (ssize_t)header.length &&
	      recv(fd, &reply, sizeof(reply), MSG_WAITALL) == sizeof(reply));
	memset(ret_text, 0, PROTO_TEXT + 1);
	CHECK(reply.length <= sizeof(reply) + PROTO_TEXT);
	recv(fd, ret_text, reply.length - sizeof(reply), MSG_WAITALL);
	close(fd);
	/* The header is the collector's own, so that the other side can name its version, too. */
	CHECK(reply.magic == PROTO_MAGIC && reply.version == PROTO_VERSION &&
	      reply.kinds == kinds_signature() && reply.type == header.type);
	return reply.status;
}

static void other_program(void)
{
	struct proto_header header = proto_header(MESSAGE_HELLO, 0, 0);
	char text[PROTO_TEXT + 1], pid[32];
	const char *words = versions_text("protocol version %u; this side speaks version %u",
					  OLD_PROTO, PROTO_VERSION);

	collector_fresh("", "");
	header.version = OLD_PROTO;
	CHECK(foreign_request(header, sizeof(struct proto_hello), text) == -EPROTO &&
	      strstr(text, words), "%s", text);
	/* Bodies of another size are not read either. */
	CHECK(foreign_request(header, 64, text) == -EPROTO && strstr(text, words), "%s", text);
	snprintf(pid, sizeof(pid), "process %d sends ", (int)getpid());
	CHECK(strstr(collector_log(), pid) && strstr(collector_log(), words) &&
		      strstr(collector_log(), "; restart it, after an update"),
	      "%s", collector_log());
	header = proto_header(MESSAGE_STATUS, 0, 0);
	header.kinds ^= 1;
	CHECK(foreign_request(header, 0, text) == -EPROTO &&
	      strstr(text, "another table of kinds"), "%s", text);
	/* GET_DEVICE and TENANT_LIST of earlier versions, under the present header. */
	header = proto_header(6, 0, 0);
	CHECK(foreign_request(header, sizeof(struct proto_choose), text) == -EPROTO &&
	      strstr(text, "unknown type 6"), "%s", text);
	CHECK(collector_tenant(NULL).processes == 0);
	collector_stop();
}

/* ---- a program that is registered, and another version of the collector after that */

static void run_stays(const char *argument)
{
	struct fixture fixture = fixture_open();
	struct ibv_qp *qp[2];

	for (int i = 0; i < 2; i++)
		CHECK((qp[i] = qp_make(&fixture, IBV_QPT_RC)) != NULL);
	word_add(WORD_READY, 1);
	word_await(WORD_GO, 1);
	/* What it has stays its own. */
	ibv_destroy_qp(qp[1]);
	CHECK(!strcmp(argument, "socket") || (qp[1] = qp_make(&fixture, IBV_QPT_RC)) != NULL);
	errno = 0;
	CHECK(!qp_make(&fixture, IBV_QPT_RC) && errno == EDQUOT, "errno %d", errno);
	word_add(WORD_READY, 1);
}

static void registered_program(void)
{
	static const char *const transports[] = { "lease", "socket" };

	for (unsigned i = 0; i < 2; i++) {
		char scenario[32], settings[64];
		pid_t pid, other;

		collector_fresh("[default]\nprocess.qp = 2\n", "");
		words_clear();
		log_clear();
		snprintf(scenario, sizeof(scenario), "stays:%s", transports[i]);
		snprintf(settings, sizeof(settings), "LOG_LEVEL=INFO\nQUIET=1\nTRANSPORT=%s",
			 transports[i]);
		pid = spawn_start(scenario, settings);
		NEED(word_load(WORD_READY) == 1);
		collector_kill();
		other = other_start(OTHER_PROTOCOL);
		word_store(WORD_GO, 1);
		CHECK(spawn_wait(pid) == 0);
		CHECK(strstr(log_text(), versions_text("protocol version %u; this side speaks "
						       "version %u", OLD_PROTO, PROTO_VERSION)) &&
			      strstr(log_text(), "refused ibv_create_qp: ") &&
			      strstr(log_text(), "the collector cannot be asked: it is of another "
						 "version; restart this program"),
		      "%s", log_text());
		other_end(other);
	}
}

/* ---- files of another version */

static const char *start_fails(void)
{
	static char text[2048];
	char line[1024];
	FILE *output;
	size_t size;

	size = (size_t)snprintf(line, sizeof(line), "%s/collector_server --socket %s --state ",
				getenv("BUILD_DIRECTORY"), collector_socket());
	size += (size_t)snprintf(line + size, sizeof(line) - size, "%s --policy ",
				 harness_path("state"));
	snprintf(line + size, sizeof(line) - size, "%s 2>&1; echo exit $?",
		 harness_path("policy.conf"));
	output = popen(line, "re");
	size = fread(text, 1, sizeof(text) - 1, output);
	text[size] = '\0';
	pclose(output);
	return text;
}

static void word_write(const char *file, size_t offset, uint32_t value)
{
	FILE *stream = fopen(harness_path(file), "r+e");

	if (!CHECK(stream && !fseek(stream, (long)offset, SEEK_SET) &&
		   fwrite(&value, sizeof(value), 1, stream) == 1 && !fclose(stream), "%s", file))
		stop_here();
}

static void state_files(void)
{
	static const struct {
		const char *file;
		size_t offset;
		uint32_t version;
	} files[] = {
		{ "state/ledger", offsetof(struct book_signature, version), BOOKS_VERSION },
		{ "state/tenant-0", offsetof(struct lease_signature, version), LEASE_VERSION },
	};

	collector_fresh("", "");
	collector_stop();
	for (unsigned i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		const char *text;

		word_write(files[i].file, files[i].offset, files[i].version - 1);
		text = start_fails();
		CHECK(strstr(text, files[i].file) &&
			      strstr(text, versions_text("has the layout version %u, this collector "
							 "needs %u", files[i].version - 1,
							 files[i].version)) &&
			      strstr(text, "remove the directory to start anew") &&
			      strstr(text, "exit 1"),
		      "%s", text);
		word_write(files[i].file, files[i].offset, files[i].version);
	}
	collector_start("");
	collector_stop();
}

static void text_put(const char *file, const char *text)
{
	FILE *stream = fopen(harness_path(file), "we");

	CHECK(stream && fputs(text, stream) >= 0 && !fclose(stream));
}

/* Texts of a version that had other keys: by name, and never half. */
static void kept_policies(void)
{
	char copy[256], line[300];
	const char *text;

	collector_fresh("[host]\nqp = 10\n", "");
	CHECK(collector_set("host", "mr = 5\n") == 0);
	collector_stop();
	text_put("state/runtime.conf", "[host]\nold_key = 5\n");
	text = start_fails();
	CHECK(strstr(text, "runtime.conf:2:") && strstr(text, "old_key"), "%s", text);
	unlink(harness_path("state/runtime.conf"));
	/* The copy is needed when the policy cannot be read. */
	snprintf(line, sizeof(line), "ls %s | grep last-good", harness_path("state"));
	{
		FILE *list = popen(line, "re");

		if (!CHECK(list && fscanf(list, "%255s", copy) == 1))
			stop_here();
		pclose(list);
	}
	snprintf(line, sizeof(line), "state/%s", copy);
	text_put(line, "[host]\nold_key = 5\n");
	collector_policy("[host]\nqp = many\n");
	text = start_fails();
	CHECK(strstr(text, "the last good policy is lost") && strstr(text, "old_key") &&
		      strstr(text, "exit 1"),
	      "%s", text);
}

/* A process keeps its page over a restart of the collector. */
static void usage_page_of_process(void)
{
	char line[160], number[64];
	pid_t pid;
	FILE *list;
	int fd = -1, page;
	uint32_t old = LEASE_VERSION - 1;

	collector_fresh("", "");
	words_clear();
	pid = spawn_start("stays:lease", "LOG_LEVEL=0\nQUIET=1\nTRANSPORT=lease");
	NEED(word_load(WORD_READY) == 1);
	collector_kill();
	snprintf(line, sizeof(line), "ls -l /proc/%d/fd | grep 'usage' | sed 's/.* \\([0-9]*\\) ->.*/\\1/'",
		 (int)pid);
	list = popen(line, "re");
	if (!CHECK(list && fscanf(list, "%d", &fd) == 1 && fd > 0, "no page"))
		stop_here();
	pclose(list);
	snprintf(line, sizeof(line), "/proc/%d/fd/%d", (int)pid, fd);
	page = open(line, O_RDWR | O_CLOEXEC);
	CHECK(page >= 0 && pwrite(page, &old, sizeof(old),
				  offsetof(struct lease_signature, version)) == sizeof(old));
	close(page);
	collector_start("");
	snprintf(number, sizeof(number), "process %d: its usage page does not have", (int)pid);
	EVENTUALLY(strstr(collector_log(), number) &&
			   strstr(collector_log(), "restart the process"),
		   "%s", collector_log());
	CHECK(collector_process(pid).flags & ROW_UNATTACHED);
	CHECK(collector_process(pid).used[KIND_qp] >= 2);
	kill(pid, SIGKILL);
	spawn_wait(pid);
	collector_stop();
}

/* What another version of rdma_monitor has loaded. */
static void monitor_files(void)
{
	struct proto_status status = { 0 };

	kernel_load(harness_path("monitor"), MONITOR_FENTRY);
	kernel_head->version = MONITOR_VERSION - 1;
	collector_fresh("", "");
	EVENTUALLY(collector_call(MESSAGE_STATUS, NULL, &status) == 0 && status.monitor_problem[0]);
	CHECK(!strcmp(status.monitor, "none") &&
		      strstr(status.monitor_problem,
			     versions_text("another version of rdma_monitor is loaded (layout %u, "
					   "this is %u); unload it with: rdma_monitor --unload",
					   MONITOR_VERSION - 1, MONITOR_VERSION)),
	      "%s: %s", status.monitor, status.monitor_problem);
	collector_stop();
	kernel_unload(harness_path("monitor"));
}

static void driver(void)
{
	RUN(other_collector);
	RUN(unknown_message);
	RUN(other_program);
	RUN(registered_program);
	RUN(state_files);
	RUN(kept_policies);
	RUN(usage_page_of_process);
	RUN(monitor_files);
}

int main(int argc, char **argv)
{
	static const struct scenario scenarios[] = { { "makes", run_makes },
						     { "stays", run_stays },
						     { NULL, NULL } };

	return harness_main(argc, argv, scenarios, driver);
}
