/* SPDX-License-Identifier: MIT */
/*
 * One collector after another: without one, processes work on inside their leases and cannot grow;
 * the next one finds them again, and starts only with books that it can read.
 */
#include "collector.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fixture.h"
#include "harness.h"
#include "member.h"

enum { GO_WORK = 1, GO_WORK_ALONE, GO_GROW, GO_GROW_AGAIN, GO_FINISH }; /* in WORD_GO */
enum { CLIENTS = 64, WORK = 200 };

/* Never holds more than it had: never asks the collector. */
static void survivor_work(struct fixture *fixture, struct ibv_qp **qp)
{
	for (unsigned i = 0; i < WORK * test_factor(); i++) {
		ibv_destroy_qp(*qp);
		*qp = qp_make(fixture, IBV_QPT_RC);
		if (!*qp) {
			word_add(WORD_FAILURES, 1);
			break;
		}
		word_add(WORD_MADE, 1);
	}
	word_add(WORD_READY, 1);
}

/* Works inside what it has; then, told to, tries to grow: in vain, and once more. */
static void run_survivor(const char *argument)
{
	struct ibv_srq_init_attr attributes = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct fixture fixture = fixture_open();
	struct ibv_qp *qp[3];
	struct ibv_srq *srq;
	uint64_t taken;

	for (int i = 0; i < 3; i++)
		CHECK((qp[i] = qp_make(&fixture, IBV_QPT_RC)) != NULL);
	word_add(WORD_READY, 1);
	word_await(WORD_GO, GO_WORK);
	survivor_work(&fixture, &qp[2]);
	word_await(WORD_GO, GO_WORK_ALONE);
	survivor_work(&fixture, &qp[2]);
	word_await(WORD_GO, GO_GROW);
	taken = nanoseconds();
	srq = ibv_create_srq(fixture.pd, &attributes);
	taken = nanoseconds() - taken;
	CHECK(!srq && errno == EDQUOT, "%s, errno %d", srq ? "made" : "refused", errno);
	word_add(WORD_TIME, taken / CLIENTS);
	word_add(WORD_READY, 1);
	word_await(WORD_GO, GO_GROW_AGAIN);
	/* For a second after silence the collector is not asked again. */
	NEED((srq = ibv_create_srq(fixture.pd, &attributes)) != NULL);
	word_add(WORD_READY, 1);
	word_await(WORD_GO, GO_FINISH);
	ibv_destroy_srq(srq);
	for (int i = 0; i < 3; i++)
		if (qp[i])
			ibv_destroy_qp(qp[i]);
	fixture_close(&fixture);
}

/* Lets the clients go on, and waits until all have done that. */
static void clients_do(unsigned step)
{
	word_store(WORD_GO, step);
	NEED(word_load(WORD_READY) == (1 + step) * CLIENTS, "step %u: %llu", step,
	     (unsigned long long)word_load(WORD_READY));
}

static void outage(void)
{
	const uint64_t work = (uint64_t)CLIENTS * WORK * test_factor();
	pid_t pid[CLIENTS];

	/* Far from the limit: nobody's credit is taken back while the collector lives. */
	collector_fresh("[host]\nqp = 20000\n", "");
	words_clear();
	for (int i = 0; i < CLIENTS; i++)
		pid[i] = spawn_start("survivor", "TRANSPORT=lease\nQUIET=1\nLOG_LEVEL=0");
	NEED(word_load(WORD_READY) == CLIENTS);
	CHECK(collector_tenant(NULL).used[KIND_qp] == 3 * CLIENTS);
	/* It dies while they work; and then they work without it. */
	word_store(WORD_GO, GO_WORK);
	NEED(word_load(WORD_MADE) >= work / 4);
	collector_kill();
	clients_do(GO_WORK);
	clients_do(GO_WORK_ALONE);
	CHECK(word_load(WORD_FAILURES) == 0 && word_load(WORD_MADE) == 2 * work,
	      "%llu failed inside their leases", (unsigned long long)word_load(WORD_FAILURES));
	/* It is not started before everybody was refused: nobody waits for it. */
	clients_do(GO_GROW);
	printf("without a collector a refusal takes %.2f s\n", (double)word_load(WORD_TIME) / 1e9);
	collector_start("");
	CHECK(collector_tenant(NULL).processes == CLIENTS);
	/* Until it has found a process's usage page, what was granted counts as used. */
	CHECK(collector_wait_used(NULL, KIND_qp, 3 * CLIENTS));
	clients_do(GO_GROW_AGAIN);
	CHECK(collector_tenant(NULL).used[KIND_srq] == CLIENTS);
	/* Those that die while it is dead are found out too. */
	collector_kill();
	for (int i = 0; i < CLIENTS / 2; i++) {
		kill(pid[i], SIGKILL);
		CHECK(spawn_wait(pid[i]) == 128 + SIGKILL);
	}
	collector_start("");
	CHECK(collector_wait_used(NULL, KIND_qp, 3 * CLIENTS / 2));
	word_store(WORD_GO, GO_FINISH);
	for (int i = CLIENTS / 2; i < CLIENTS; i++)
		CHECK(spawn_wait(pid[i]) == 0);
	CHECK(collector_wait_used(NULL, KIND_qp, 0));
	EVENTUALLY(collector_tenant(NULL).granted[KIND_qp] == 0);
	collector_stop();
}

static void patch(const char *file, off_t offset, uint32_t value)
{
	int fd = open(harness_path(file), O_RDWR | O_CLOEXEC);

	CHECK(fd >= 0 && pwrite(fd, &value, sizeof(value), offset) == sizeof(value));
	close(fd);
}

static const char *refuses_to_start(void)
{
	static char text[2048];
	char command[1024];
	FILE *pipe;
	size_t size;

	snprintf(command, sizeof(command), "%s/collector_server --socket %s --state %s",
		 getenv("BUILD_DIRECTORY"), collector_socket(), harness_path("state"));
	snprintf(command + strlen(command), sizeof(command) - strlen(command),
		 " --policy %s 2>&1; echo exit $?", harness_path("policy.conf"));
	pipe = popen(command, "re");
	size = fread(text, 1, sizeof(text) - 1, pipe);
	text[size] = '\0';
	pclose(pipe);
	return text;
}

static void versions(void)
{
	struct proto_header wrong = proto_header(MESSAGE_STATUS, 0, 0);
	char problem[PROBLEM_SIZE];
	const char *text;

	collector_fresh("", "");
	text = refuses_to_start();
	CHECK(strstr(text, "another collector") && strstr(text, "exit 1"), "%s", text);
	collector_stop();
	patch("state/ledger", 8, 77);
	text = refuses_to_start();
	CHECK(strstr(text, "/state/ledger: has the layout version 77, this collector needs 3") &&
		      strstr(text, "exit 1"),
	      "%s", text);
	patch("state/ledger", 8, 3);
	collector_start("");
	collector_stop();
	/* Anything in the book that leads nowhere is damage, not a crash. */
	patch("state/ledger", 40, 0x7fffffff);
	text = refuses_to_start();
	CHECK(strstr(text, "is damaged") && strstr(text, "exit 1"), "%s", text);
	wrong.version = 9;
	CHECK(proto_check(&wrong, PROTO_REQUEST_MAX, problem) == -EPROTO);
	CHECK(strstr(problem, "version 9") && strstr(problem, "version 4"), "%s", problem);
}

static void drive(void)
{
	/* Processes of other users come this way. */
	chmod(harness_path(""), 0711);
	RUN(outage);
	RUN(versions);
}

int main(int argc, char **argv)
{
	static const struct scenario scenarios[] = {
		{ "survivor", run_survivor },
		{ NULL, NULL },
	};

	return harness_main(argc, argv, scenarios, drive);
}
