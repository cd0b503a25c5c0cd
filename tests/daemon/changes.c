/* SPDX-License-Identifier: MIT */
/*
 * Limits and modes that change while processes hold objects: a change is in force at once, what is
 * held above a limit is drained and not taken away, and what was tolerated is on the books.
 */
#include "collector.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"
#include "harness.h"
#include "member.h"

enum { WORD_TRIES = WORD_OWN };

/* ---- limits that change */

/* Tries again and again, and notes when the answer changed last. */
static void run_prober(const char *argument)
{
	struct fixture fixture = fixture_open();
	bool allowed = true;

	word_add(WORD_READY, 1);
	while (word_load(WORD_GO) == 0) {
		struct ibv_qp *qp = qp_make(&fixture, IBV_QPT_RC);

		if ((qp != NULL) != allowed) {
			allowed = qp != NULL;
			word_store(WORD_TIME, nanoseconds());
			word_store(WORD_MADE, allowed);
		}
		if (qp)
			ibv_destroy_qp(qp);
		word_add(WORD_TRIES, 1);
	}
	fixture_close(&fixture);
}

/* A change is in force when its answer comes: the second try that ends after that began after
 * it. Returns the milliseconds from the moment before the command to the first new answer. */
static double takes_effect(const char *text, bool allowed)
{
	uint64_t before = nanoseconds(), tries;

	CHECK(collector_set("tenant default", text) == 0);
	tries = word_load(WORD_TRIES);
	NEED(word_load(WORD_TRIES) >= tries + 2);
	CHECK(word_load(WORD_MADE) == allowed, "%s is not in force", text);
	return ((double)word_load(WORD_TIME) - (double)before) / 1e6;
}

static int compare(const void *a, const void *b)
{
	return *(const double *)a < *(const double *)b ? -1 : 1;
}

static void live_changes(void)
{
	enum { ROUNDS = 40 };
	double taken[ROUNDS];
	pid_t pid;

	collector_fresh("", "");
	words_clear();
	word_store(WORD_MADE, true);
	pid = spawn_start("prober", "TRANSPORT=lease\nQUIET=1\nLOG_LEVEL=0");
	NEED(word_load(WORD_READY) == 1);
	for (int round = 0; round < ROUNDS; round += 2) {
		taken[round] = takes_effect("qp = 0\n", false);
		taken[round + 1] = takes_effect("qp = 10\n", true);
	}
	qsort(taken, ROUNDS, sizeof(taken[0]), compare);
	printf("a changed limit is in force after %.2f ms, at most %.2f\n", taken[ROUNDS / 2],
	       taken[ROUNDS - 1]);
	word_store(WORD_GO, 1);
	CHECK(spawn_wait(pid) == 0);
	collector_stop();
}

/* Holds 8, whatever the limit becomes; then each gone one must not come back while more
 * than the limit is held. */
static void run_drained(const char *argument)
{
	struct fixture fixture = fixture_open();
	struct ibv_qp *qp[8];

	for (int i = 0; i < 8; i++)
		CHECK((qp[i] = qp_make(&fixture, IBV_QPT_RC)) != NULL);
	word_add(WORD_READY, 1);
	word_await(WORD_GO, 1); /* the limit is 5 now */
	for (int held = 8; held > 5; held--) {
		CHECK(!qp_make(&fixture, IBV_QPT_RC), "with %d held", held);
		ibv_destroy_qp(qp[held - 1]);
	}
	CHECK(!qp_make(&fixture, IBV_QPT_RC));
	ibv_destroy_qp(qp[4]);
	CHECK((qp[4] = qp_make(&fixture, IBV_QPT_RC)) != NULL);
	CHECK(!qp_make(&fixture, IBV_QPT_RC));
	for (int i = 0; i < 5; i++)
		ibv_destroy_qp(qp[i]);
	fixture_close(&fixture);
}

static void draining(void)
{
	pid_t pid;

	collector_fresh("", "");
	for (int scope = 0; scope < 3; scope++) {
		static const char *const section[] = { "tenant default", "host", "default" };
		static const char *const low[] = { "qp = 5\n", "qp = 5\n", "process.qp = 5\n" };
		static const char *const high[] = { "qp = 9\n", "qp = 9\n", "process.qp = 9\n" };
		static const char *const off[] = { "qp = unset\n", "qp = unset\n",
						   "process.qp = unset\n" };

		words_clear();
		pid = spawn_start("drained", "TRANSPORT=lease\nQUIET=1\nLOG_LEVEL=0");
		NEED(word_load(WORD_READY) == 1);
		CHECK(collector_tenant("default").used[KIND_qp] == 8);
		CHECK(collector_set(section[scope], low[scope]) == 0);
		if (scope < 2)
			CHECK(collector_tenant(scope ? NULL : "default").flags & ROW_DRAINING);
		CHECK(collector_process(pid).flags & ROW_DRAINING);
		/* Raised, nothing is draining any more, before the process asks for anything. */
		CHECK(collector_set(section[scope], high[scope]) == 0);
		CHECK(!(collector_process(pid).flags & ROW_DRAINING), "scope %d", scope);
		CHECK(!(collector_tenant("default").flags & ROW_DRAINING), "scope %d", scope);
		CHECK(collector_set(section[scope], low[scope]) == 0);
		word_store(WORD_GO, 1);
		CHECK(spawn_wait(pid) == 0, "scope %d", scope);
		CHECK(collector_set(section[scope], off[scope]) == 0);
	}
	collector_stop();
}

/* ---- limits that were tolerated, and are enforced then */

/* "N[,M][u]": holds N QPs, and when it is told to makes M more; with u as the other tenant. */
static void run_holds(const char *argument)
{
	unsigned first = (unsigned)atoi(argument), more = 0;
	struct fixture fixture;

	if (strchr(argument, ','))
		more = (unsigned)atoi(strchr(argument, ',') + 1);
	if (strchr(argument, 'u') && setresuid(FIRST_UID, FIRST_UID, FIRST_UID))
		abort();
	die_with_parent();
	fixture = member_fixture();
	for (unsigned i = 0; i < first; i++)
		CHECK(qp_make(&fixture, IBV_QPT_RC) != NULL, "%u of %u", i, first);
	word_add(WORD_READY, 1);
	word_await(WORD_GO, 1);
	for (unsigned i = 0; i < more; i++)
		CHECK(qp_make(&fixture, IBV_QPT_RC) != NULL, "%u more of %u", i, more);
	word_add(WORD_MADE, 1);
	pause();
}

static pid_t holds_start(const char *scenario, const char *settings)
{
	pid_t pid;

	words_clear();
	pid = spawn_start(scenario, settings);
	NEED(word_load(WORD_READY) == 1);
	return pid;
}

static void holds_end(pid_t pid)
{
	kill(pid, SIGKILL);
	spawn_wait(pid);
}

/* What is held, and of what: as commands show it. */
static void shows(const char *tenant, uint64_t used, uint64_t limit)
{
	struct proto_row row = collector_tenant(tenant);

	CHECK(row.used[KIND_qp] == used && row.limit[KIND_qp] == limit, "%llu/%llu, not %llu/%llu",
	      (unsigned long long)row.used[KIND_qp], (unsigned long long)row.limit[KIND_qp],
	      (unsigned long long)used, (unsigned long long)limit);
	CHECK(row.granted[KIND_qp] >= used, "%llu granted",
	      (unsigned long long)row.granted[KIND_qp]);
	CHECK(!(row.flags & ROW_DRAINING) ==
	      (row.granted[KIND_qp] <= limit || row.mode != MODE_ENFORCE));
}

/* A process holds 6 of 4, and nobody objects; then limits are enforced. */
static void rollout_of(const char *mode, const char *settings)
{
	char line[64];
	pid_t pid;

	snprintf(line, sizeof(line), "[default]\nqp = 4\nmode = %s\n", mode);
	collector_fresh(line, "");
	pid = holds_start("holds:6", settings);
	shows("default", 6, 4);
	CHECK(collector_process(pid).tolerated[KIND_qp] == 2, "%llu would have been refused",
	      (unsigned long long)collector_process(pid).tolerated[KIND_qp]);
	CHECK(collector_set("default", "mode = enforce\n") == 0);
	shows("default", 6, 4);
	member_expect("exactly:0", "");
	CHECK(collector_set("default", "qp = 6\n") == 0);
	member_expect("exactly:0", "");
	CHECK(collector_set("default", "qp = 7\n") == 0);
	shows("default", 6, 7);
	member_expect("exactly:1", "");
	/* The same limit by another collector. */
	collector_kill();
	collector_start("");
	shows("default", 6, 7);
	member_expect("exactly:1", "");
	holds_end(pid);
	member_expect("exactly:7", "");
	collector_stop();
}

/* What was tolerated in each scope is drained, as after a cut. */
static void rollout_in_scopes(const char *mode, const char *settings)
{
	static const char *const limits[] = {
		"[default]\nqp = 5\n",
		"[default]\ndevice.rxe0.qp = 5\n",
		"[default]\nprocess.qp = 5\n",
		"[default]\nprocess.device.rxe0.qp = 5\n",
		"[host]\nqp = 5\n[default]\n",
		"[host]\ndevice.rxe0.qp = 5\n[default]\n",
	};
	char policy[128];
	pid_t pid;

	for (unsigned i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		snprintf(policy, sizeof(policy), "%smode = %s\n", limits[i], mode);
		collector_fresh(policy, "");
		words_clear();
		pid = spawn_start("drained", settings);
		NEED(word_load(WORD_READY) == 1);
		CHECK(collector_tenant("default").used[KIND_qp] == 8);
		CHECK(collector_set("default", "mode = enforce\n") == 0);
		CHECK(collector_tenant("default").used[KIND_qp] == 8);
		word_store(WORD_GO, 1);
		CHECK(spawn_wait(pid) == 0, "%s", limits[i]);
		collector_stop();
	}
}

static void rollout(void)
{
	rollout_of("audit", "TRANSPORT=lease\nQUIET=1\nLOG_LEVEL=0");
	rollout_of("warn", "TRANSPORT=lease\nQUIET=1\nLOG_LEVEL=0");
	rollout_of("audit", "TRANSPORT=socket\nQUIET=1\nLOG_LEVEL=0");
	/* Also what the process's own limits tolerate. */
	rollout_of("audit",
		   "TRANSPORT=lease\nQUIET=1\nLOG_LEVEL=0\nLIMITS=process:qp=4\nMODE=audit");
}

static void rollout_in_each_scope(void)
{
	rollout_in_scopes("audit", "TRANSPORT=lease\nQUIET=1\nLOG_LEVEL=0");
	rollout_in_scopes("warn", "TRANSPORT=socket\nQUIET=1\nLOG_LEVEL=0");
}

/* A tenant without enforced limits counts for the host's like every other. */
static void rollout_beside_others(void)
{
	pid_t pid;

	if (geteuid() != 0) {
		skip_part("processes of other users need root");
		return;
	}
	collector_fresh("[host]\nqp = 10\n"
			"[tenant trial]\nmatch = uid=61000\nqp = 4\nmode = audit\n",
			"");
	pid = holds_start("holds:8,4u", "TRANSPORT=lease\nQUIET=1\nLOG_LEVEL=0");
	shows("trial", 8, 4);
	member_expect("exactly:2", "");
	/* Beyond the host's limit nobody else gets anything. */
	word_store(WORD_GO, 1);
	NEED(word_load(WORD_MADE) == 1);
	shows("trial", 12, 4);
	shows(NULL, 12, 10);
	member_expect("exactly:0", "");
	CHECK(collector_set("host", "qp = 13\n") == 0);
	member_expect("exactly:1", "");
	holds_end(pid);
	member_expect("exactly:13", "");
	collector_stop();
}

/* What was made while the collector did not answer is on the books as soon as it does. */
static void rollout_after_silence(void)
{
	pid_t pid;

	collector_fresh("[default]\nqp = 4\nmode = audit\n", "");
	pid = holds_start("holds:2,4", "TRANSPORT=lease\nQUIET=1\nLOG_LEVEL=0");
	collector_kill();
	word_store(WORD_GO, 1);
	NEED(word_load(WORD_MADE) == 1);
	/* The policy has changed meanwhile. */
	collector_policy("[default]\nqp = 4\nmode = enforce\n");
	collector_start("");
	shows("default", 6, 4);
	member_expect("exactly:0", "");
	CHECK(collector_set("default", "qp = 6\n") == 0);
	member_expect("exactly:0", "");
	holds_end(pid);
	member_expect("exactly:6", "");
	collector_stop();
	/* One that is there and says nothing. */
	collector_fresh("[default]\nqp = 4\nmode = audit\n", "");
	pid = holds_start("holds:2,4", "TRANSPORT=lease\nQUIET=1\nLOG_LEVEL=0");
	kill(collector_pid(), SIGSTOP);
	word_store(WORD_GO, 1);
	NEED(word_load(WORD_MADE) == 1);
	kill(collector_pid(), SIGCONT);
	CHECK(collector_set("default", "mode = enforce\n") == 0);
	shows("default", 6, 4);
	CHECK(collector_set("default", "qp = 6\n") == 0);
	member_expect("exactly:0", "");
	holds_end(pid);
	collector_stop();
}

static void drive(void)
{
	/* Processes of other users come this way. */
	chmod(harness_path(""), 0711);
	RUN(live_changes);
	RUN(draining);
	RUN(rollout);
	RUN(rollout_in_each_scope);
	RUN(rollout_beside_others);
	RUN(rollout_after_silence);
}

int main(int argc, char **argv)
{
	static const struct scenario scenarios[] = {
		{ "prober", run_prober },
		{ "drained", run_drained },
		{ "holds", run_holds },
		{ "exactly", member_exactly },
		{ NULL, NULL },
	};

	return harness_main(argc, argv, scenarios, drive);
}
