/* SPDX-License-Identifier: MIT */
/*
 * One collector after another: without one, processes work on inside their leases and cannot grow;
 * the next one finds them again, and starts only with books that it can read. The same with shares,
 * rates and paces: all processes together are never above them, whoever is killed.
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
#include "poster.h"

enum { GO_WORK = 1, GO_WORK_ALONE, GO_GROW, GO_GROW_AGAIN, GO_WORK_LAST, GO_FINISH }; /* in WORD_GO */
enum { CLIENTS = 64 };
/* QPs made and bytes posted by all; QPs that a rate of 0 does not let make. */
enum { WORD_CALLS = WORD_OWN, WORD_BYTES, WORD_MISSING };

/* What limits all processes together. Each is reached all the time. */
static const struct speeds {
	const char *policy;
	unsigned work;		     /* QPs that each process makes at a time */
	unsigned calls, calls_burst; /* QPs made */
	uint64_t bytes, bytes_burst; /* posted */
} speeds[] = {
	/* Far from the limit: nobody's credit is taken back while the collector lives. */
	{ .policy = "[host]\nqp = 20000\n", .work = 200 },
	{ .policy = "[host]\nqp = 20000\npressure = 1%\n"
		    "[default]\nweight = 2\nguarantee.qp = 100\nmax_delay = 5s\n"
		    "rate.create_qp = 8000/s burst 100\npace.bytes = 40MB/s burst 1MB\n",
	  .work = 100,
	  .calls = 8000,
	  .calls_burst = 100,
	  .bytes = 40 << 20,
	  .bytes_burst = 1 << 20 },
};

/* What was done since a moment at which nobody was inside a call. */
struct since {
	double seconds;
	uint64_t calls, bytes;
};

static struct since since_now(void)
{
	return (struct since){ seconds_now(), word_load(WORD_CALLS), word_load(WORD_BYTES) };
}

/* The words were counted before the look at the clock, by which the buckets fill. A process posts
 * once before it waits. */
static void speeds_hold(const struct speeds *now, const struct since *since)
{
	uint64_t calls = word_load(WORD_CALLS) - since->calls;
	uint64_t bytes = word_load(WORD_BYTES) - since->bytes;
	double passed = seconds_now() - since->seconds;

	if (!now->calls)
		return;
	printf("  %llu calls and %llu bytes in %.2f s\n", (unsigned long long)calls,
	       (unsigned long long)bytes, passed);
	CHECK((double)calls <= now->calls_burst + now->calls * passed, "%llu calls in %.3f s",
	      (unsigned long long)calls, passed);
	CHECK((double)bytes <= (double)now->bytes_burst + (double)now->bytes * passed +
				       CLIENTS * POST_BYTES,
	      "%llu bytes in %.3f s", (unsigned long long)bytes, passed);
}

static struct ibv_qp *survivor_make(struct fixture *fixture)
{
	struct ibv_qp *qp = qp_make(fixture, IBV_QPT_RC);

	word_add(qp ? WORD_CALLS : errno == EAGAIN ? WORD_MISSING : WORD_FAILURES, 1);
	return qp;
}

/* Never holds more than it had: never asks the collector. It posts where there is a pace; the stand-in
 * takes posts on queue pairs that are not connected, a real device does not. */
static void survivor_work(struct fixture *fixture, const struct speeds *now, struct ibv_qp **qp,
			  struct ibv_qp_ex *extended)
{
	for (unsigned i = 0; i < now->work * test_factor() && *qp; i++) {
		ibv_destroy_qp(*qp);
		*qp = survivor_make(fixture);
		if (!*qp)
			break;
		word_add(WORD_MADE, 1);
		if (!now->bytes)
			continue;
		post_plain(*qp);
		word_add(WORD_BYTES, POST_BYTES);
		post_extended(extended);
		word_add(WORD_BYTES, POST_BYTES);
	}
	word_add(WORD_READY, 1);
}

/* Works inside what it has; then, told to, tries to grow: in vain, and once more. */
static void run_survivor(const char *argument)
{
	const struct speeds *now = &speeds[atoi(argument)];
	struct ibv_srq_init_attr attributes = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct fixture fixture = fixture_open();
	struct ibv_qp_ex *extended;
	struct ibv_qp *qp[2];
	struct ibv_srq *srq;
	uint64_t taken;

	for (int i = 0; i < 2; i++)
		CHECK((qp[i] = survivor_make(&fixture)) != NULL);
	extended = qp_extended_make(&fixture);
	word_add(WORD_CALLS, 1);
	CHECK(now->bytes ? posts_are_ours(&fixture, extended) :
		      posts_are_the_providers(&fixture, extended));
	word_add(WORD_READY, 1);
	word_await(WORD_GO, GO_WORK);
	survivor_work(&fixture, now, &qp[1], extended);
	word_await(WORD_GO, GO_WORK_ALONE);
	survivor_work(&fixture, now, &qp[1], extended);
	word_await(WORD_GO, GO_GROW);
	taken = nanoseconds();
	srq = ibv_create_srq(fixture.pd, &attributes);
	taken = nanoseconds() - taken;
	CHECK(!srq && errno == EDQUOT, "%s, errno %d", srq ? "made" : "refused", errno);
	word_add(WORD_TIME, taken / CLIENTS);
	word_add(WORD_READY, 1);
	word_await(WORD_GO, GO_GROW_AGAIN);
	if (!qp[1]) {
		NEED((qp[1] = survivor_make(&fixture)) != NULL);
	}
	/* For a second after silence the collector is not asked again. */
	NEED((srq = ibv_create_srq(fixture.pd, &attributes)) != NULL);
	word_add(WORD_READY, 1);
	word_await(WORD_GO, GO_WORK_LAST);
	survivor_work(&fixture, now, &qp[1], extended);
	word_await(WORD_GO, GO_FINISH);
	ibv_destroy_srq(srq);
	/* By now the policy has no pace: it learns that when it makes something. */
	NEED((srq = ibv_create_srq(fixture.pd, &attributes)) != NULL);
	ibv_destroy_srq(srq);
	CHECK(posts_are_the_providers(&fixture, extended));
	ibv_destroy_qp(&extended->qp_base);
	for (int i = 0; i < 2; i++)
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

static void outage_with(unsigned number)
{
	const struct speeds *now = &speeds[number];
	const uint64_t work = (uint64_t)CLIENTS * now->work * test_factor();
	struct since begin = { seconds_now(), 0, 0 }, step;
	char scenario[32];
	pid_t pid[CLIENTS];

	words_clear();
	collector_fresh(now->policy, "");
	snprintf(scenario, sizeof(scenario), "survivor:%u", number);
	for (int i = 0; i < CLIENTS; i++)
		pid[i] = spawn_start(scenario, "TRANSPORT=lease\nQUIET=1\nLOG_LEVEL=0");
	NEED(word_load(WORD_READY) == CLIENTS);
	CHECK(collector_tenant(NULL).used[KIND_qp] == 3 * CLIENTS);
	/* It dies while they work; and then they work without it. Only one that had no part of a rate
	 * when it died, since it was idle, must wait for the next. */
	step = since_now();
	word_store(WORD_GO, GO_WORK);
	NEED(word_load(WORD_MADE) >= work / 4);
	collector_kill();
	clients_do(GO_WORK);
	speeds_hold(now, &step);
	step = since_now();
	clients_do(GO_WORK_ALONE);
	speeds_hold(now, &step);
	CHECK(word_load(WORD_FAILURES) == 0 &&
		      (word_load(WORD_MADE) == 2 * work || word_load(WORD_MISSING)),
	      "%llu failed inside their leases", (unsigned long long)word_load(WORD_FAILURES));
	/* It is not started before everybody was refused: nobody waits for it. */
	clients_do(GO_GROW);
	printf("without a collector a refusal takes %.2f s\n", (double)word_load(WORD_TIME) / 1e9);
	collector_start("");
	CHECK(collector_tenant(NULL).processes == CLIENTS);
	/* Until it has found a process's usage page, what was granted counts as used. */
	CHECK(collector_wait_used(NULL, KIND_qp, 3 * CLIENTS - word_load(WORD_MISSING)));
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
	/* What they had is the others'. */
	word_store(WORD_READY, GO_WORK_LAST * CLIENTS + CLIENTS / 2);
	step = since_now();
	clients_do(GO_WORK_LAST);
	speeds_hold(now, &step);
	speeds_hold(now, &begin);
	if (now->bytes)
		CHECK(collector_set("default", "pace.bytes = unlimited") == 0);
	word_store(WORD_GO, GO_FINISH);
	for (int i = CLIENTS / 2; i < CLIENTS; i++)
		CHECK(spawn_wait(pid[i]) == 0);
	CHECK(collector_wait_used(NULL, KIND_qp, 0));
	EVENTUALLY(collector_tenant(NULL).granted[KIND_qp] == 0);
	collector_stop();
}

static void outage(void)
{
	outage_with(0);
}

static void outage_with_speeds(void)
{
	outage_with(1);
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
	CHECK(strstr(text, ": another collector uses it: stop that collector") && strstr(text, "exit 1"), "%s", text);
	collector_stop();
	patch("state/ledger", 8, 77);
	text = refuses_to_start();
	CHECK(strstr(text, "/state/ledger: has the layout version 77, this collector needs 6") &&
		      strstr(text, "exit 1"),
	      "%s", text);
	patch("state/ledger", 8, 6);
	collector_start("");
	collector_stop();
	/* Anything in the book that leads nowhere is damage, not a crash. */
	patch("state/ledger", 40, 0x7fffffff);
	text = refuses_to_start();
	CHECK(strstr(text, "is damaged") && strstr(text, "exit 1"), "%s", text);
	wrong.version = 9;
	CHECK(proto_check(&wrong, PROTO_REQUEST_MAX, problem) == -EPROTO);
	CHECK(strstr(problem, "version 9") && strstr(problem, "version 8"), "%s", problem);
}

static void drive(void)
{
	/* Processes of other users come this way. */
	chmod(harness_path(""), 0711);
	RUN(outage);
	RUN(outage_with_speeds);
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
