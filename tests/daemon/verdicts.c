/* SPDX-License-Identifier: MIT */
/*
 * At a limit, everybody tells the same: the verb and its errno, the library's line, the collector's
 * event, its explanation and its rows. In each mode of the tenant and of the program, at a limit of
 * either, with the transports lease and socket, and where the collector does not answer in time.
 */
#include "collector.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fixture.h"
#include "harness.h"

enum { POLICY_LIMIT = 4, OWN_LIMIT = 2 };
enum { WORD_GO, WORD_READY, WORD_DONE, WORD_MADE /* bit: number of the program */, WORD_REFUSED };

/* "NUMBER,N": holds N QPs, which is a limit, and tries to make one more. */
static void run_tries(const char *argument)
{
	unsigned number = (unsigned)atoi(argument), held = (unsigned)atoi(strchr(argument, ',') + 1);
	struct fixture fixture = fixture_open();
	struct ibv_qp *qp;

	for (unsigned i = 0; i < held; i++)
		CHECK(qp_make(&fixture, IBV_QPT_RC) != NULL);
	word_add(WORD_READY, 1);
	word_await(WORD_GO, 1);
	errno = 0;
	qp = qp_make(&fixture, IBV_QPT_RC);
	CHECK(qp || errno == EDQUOT, "errno %d", errno);
	if (qp)
		word_add(WORD_MADE, 1ull << number);
	word_add(WORD_DONE, 1);
	word_await(WORD_GO, 2);
}

/* Threads that make and destroy around the limit, and count what they were refused. */
enum { THREADS = 4, THREAD_ROUNDS = 300, THREAD_QPS = POLICY_LIMIT + 1 };

static void *thread_tries(void *fixture)
{
	struct ibv_qp *qp[THREAD_QPS];

	for (unsigned round = 0; round < THREAD_ROUNDS; round++) {
		for (int i = 0; i < THREAD_QPS; i++)
			if (!(qp[i] = qp_make(fixture, IBV_QPT_RC)))
				word_add(WORD_REFUSED, 1);
		for (int i = 0; i < THREAD_QPS; i++)
			if (qp[i])
				ibv_destroy_qp(qp[i]);
	}
	return NULL;
}

static void run_threads(const char *argument)
{
	struct fixture fixture = fixture_open();
	pthread_t thread[THREADS];

	for (unsigned i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, thread_tries, &fixture))
			abort();
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	word_add(WORD_READY, 1);
	word_await(WORD_GO, 1);
	fixture_close(&fixture);
}

/* ---- the programs of one round: each own mode, limit and transport */

struct program {
	enum mode own_mode;
	bool own;    /* the limit is the program's own */
	bool socket; /* its transport */
	pid_t pid;
};

enum { PROGRAMS = MODES * 2 * 2 };

static void programs_start(struct program program[PROGRAMS])
{
	char scenario[32], settings[160];

	words_clear();
	log_clear();
	for (unsigned i = 0; i < PROGRAMS; i++) {
		program[i] = (struct program){ i % MODES, i / MODES % 2, i / MODES / 2, 0 };
		snprintf(scenario, sizeof(scenario), "tries:%u,%d", i,
			 program[i].own ? OWN_LIMIT : POLICY_LIMIT);
		snprintf(settings, sizeof(settings), "QUIET=1\nLOG_LEVEL=INFO\nTRANSPORT=%s\nMODE=%s%s",
			 program[i].socket ? "socket" : "lease", mode_names[program[i].own_mode],
			 program[i].own ? "\nLIMITS=process:qp=2" : "");
		program[i].pid = spawn_start(scenario, settings);
	}
	NEED(word_load(WORD_READY) == PROGRAMS);
}

static void programs_end(const struct program program[PROGRAMS])
{
	word_store(WORD_GO, 2);
	for (unsigned i = 0; i < PROGRAMS; i++)
		CHECK(spawn_wait(program[i].pid) == 0);
}

/* ---- what is told of a program */

struct told {
	pid_t pid;
	unsigned refused, tolerated; /* events */
	struct proto_event last;
};

static int told_see(const void *row, void *closure)
{
	const struct proto_event *event = row;
	struct told *told = closure;

	if (event->pid != told->pid ||
	    (event->type != EVENT_REFUSED && event->type != EVENT_TOLERATED))
		return 0;
	*(event->type == EVENT_REFUSED ? &told->refused : &told->tolerated) += (unsigned)event->count;
	told->last = *event;
	return 0;
}

static struct told told_of(pid_t pid)
{
	struct proto_choose choose = { .pid = pid };
	struct told told = { .pid = pid };
	char problem[PROBLEM_SIZE];

	CHECK(proto_rows(collector_socket(), MESSAGE_EVENTS, &choose, told_see, &told,
			 COLLECTOR_PATIENCE_MS, problem) >= 0,
	      "%s", problem);
	return told;
}

/* Whether the program's log has such a line. */
static bool line_is_there(pid_t pid, const char *words)
{
	char whose[32], *text = strdup(log_text()), *rest = text, *line;
	bool found = false;

	snprintf(whose, sizeof(whose), "[%d]", (int)pid);
	while ((line = strsep(&rest, "\n")))
		found |= strstr(line, whose) && strstr(line, words);
	free(text);
	return found;
}

static void line_agrees(const struct program *program, bool made, enum mode mode)
{
	bool allowed = line_is_there(program->pid, "over limit, allowed: ibv_create_qp:");
	bool refused = line_is_there(program->pid, "refused ibv_create_qp:");

	CHECK(refused == !made && allowed == (made && mode == MODE_WARN), "made %d: %s", made,
	      log_text());
}

/* Where the limit was set, in the event whole and in the program's line as short as it is clear. */
static void origin_agrees(const struct program *program, const struct proto_event *event,
			  const char *line)
{
	char origin[PROTO_ORIGIN];

	snprintf(origin, sizeof(origin), "%s:2 [default]", harness_path("policy.conf"));
	CHECK(!strcmp(event->origin, program->own ? "environment" : origin), "%s", event->origin);
	if (line)
		CHECK(line_is_there(program->pid, line), "%s: %s", line, log_text());
}

static void event_agrees(const struct program *program, bool made, enum mode mode)
{
	struct told told = told_of(program->pid);
	struct proto_ask ask = { .pid = program->pid, .number = told.last.number };
	struct proto_explanation explanation = { .has_event = 0 };
	struct proto_row row = collector_process(program->pid);

	CHECK(told.refused == !made && told.tolerated == made, "made %d, %u refused, %u tolerated",
	      made, told.refused, told.tolerated);
	CHECK(!told.last.own == !program->own &&
	      told.last.limit == (program->own ? OWN_LIMIT : POLICY_LIMIT));
	CHECK(collector_call(MESSAGE_EXPLAIN, &ask, &explanation) == 0 && explanation.has_event);
	CHECK(explanation.event.type == (made ? EVENT_TOLERATED : EVENT_REFUSED));
	CHECK(row.refused[KIND_qp] == !made && row.tolerated[KIND_qp] == made);
	CHECK(row.refused_here[KIND_qp] == (!made && !program->own) &&
	      row.tolerated_here[KIND_qp] == (made && !program->own));
	origin_agrees(program, &told.last,
		      made && mode != MODE_WARN ? NULL :
		      program->own ? ", limit of the process (its own), from RDMA_INTERCEPT_LIMITS, event " :
				     ", limit of the process, from policy.conf:2 [default], event ");
}

static void row_agrees(const struct program *program, bool made)
{
	uint64_t held = (program->own ? OWN_LIMIT : POLICY_LIMIT) + made;

	EVENTUALLY(collector_process(program->pid).used[KIND_qp] == held, "%llu, not %llu",
		   (unsigned long long)collector_process(program->pid).used[KIND_qp],
		   (unsigned long long)held);
}

static const char *policy_of(enum mode mode)
{
	static char policy[64];

	snprintf(policy, sizeof(policy), "[default]\nprocess.qp = %d\nmode = %s\n", POLICY_LIMIT,
		 mode_names[mode]);
	return policy;
}

/* ---- the collector answers */

static void answered(void)
{
	struct program program[PROGRAMS];

	for (enum mode tenant = 0; tenant < MODES; tenant++) {
		collector_fresh(policy_of(tenant), "");
		programs_start(program);
		word_store(WORD_GO, 1);
		NEED(word_load(WORD_DONE) == PROGRAMS);
		for (unsigned i = 0; i < PROGRAMS; i++) {
			enum mode mode = program[i].own ? program[i].own_mode : tenant;
			bool made = word_load(WORD_MADE) >> i & 1;

			CHECK(made == (mode != MODE_ENFORCE), "tenant %s, program %s, %s limit, %s",
			      mode_names[tenant], mode_names[program[i].own_mode],
			      program[i].own ? "its own" : "the policy's",
			      program[i].socket ? "socket" : "lease");
			line_agrees(&program[i], made, mode);
			event_agrees(&program[i], made, mode);
			row_agrees(&program[i], made);
		}
		programs_end(program);
		collector_stop();
	}
}

/* ---- what audit says is what happened, also of a program that ends within a moment */

enum { AUDIT_LIMIT = 2, AUDIT_HELD = 6 };

static void audit_with(const char *transport)
{
	struct proto_row row;
	struct told told;
	char settings[64];
	pid_t pid;

	collector_fresh("[tenant default]\nmode = audit\nqp = 2\n", "");
	words_clear();
	word_store(WORD_GO, 2); /* it does not stop at its limit */
	snprintf(settings, sizeof(settings), "QUIET=1\nTRANSPORT=%s", transport);
	pid = spawn_start("tries:0,6", settings);
	CHECK(spawn_wait(pid) == 0 && word_load(WORD_MADE) == 1);
	told = told_of(pid);
	CHECK(!told.refused && told.tolerated == AUDIT_HELD + 1 - AUDIT_LIMIT, "%s: %u, %u",
	      transport, told.refused, told.tolerated);
	CHECK(told.last.used == AUDIT_HELD && told.last.wanted == 1 &&
		      told.last.limit == AUDIT_LIMIT,
	      "%s: used %llu", transport, (unsigned long long)told.last.used);
	row = collector_tenant("default");
	CHECK(!row.refused[KIND_qp] && row.tolerated[KIND_qp] == told.tolerated &&
	      row.tolerated_here[KIND_qp] == told.tolerated);
	CHECK(row.peak[KIND_qp] == AUDIT_HELD + 1, "%s: peak %llu", transport,
	      (unsigned long long)row.peak[KIND_qp]);
	collector_stop();
}

/* Over a limit that is not enforced nothing drains, while it is used or afterwards. */
static void audit(void)
{
	pid_t pid;

	audit_with("lease");
	audit_with("socket");
	collector_fresh("[tenant default]\nmode = audit\nqp = 2\n", "");
	words_clear();
	pid = spawn_start("tries:0,6", "QUIET=1");
	NEED(word_load(WORD_READY) == 1);
	CHECK(collector_tenant("default").used[KIND_qp] == AUDIT_HELD);
	CHECK(!(collector_tenant("default").flags & ROW_DRAINING) &&
	      !(collector_process(pid).flags & ROW_DRAINING));
	CHECK(collector_set("tenant default", "mode = enforce") == 0);
	CHECK(collector_tenant("default").flags & ROW_DRAINING &&
	      collector_process(pid).flags & ROW_DRAINING);
	/* Raised, lowered again, unset: right at once. */
	CHECK(collector_set("tenant default", "qp = 6") == 0);
	CHECK(!(collector_tenant("default").flags & ROW_DRAINING) &&
	      !(collector_process(pid).flags & ROW_DRAINING));
	CHECK(collector_set("tenant default", "qp = 3") == 0);
	CHECK(collector_tenant("default").flags & ROW_DRAINING &&
	      collector_process(pid).flags & ROW_DRAINING);
	CHECK(collector_set("tenant default", "qp = unset\nmode = unset") == 0);
	CHECK(!(collector_tenant("default").flags & (ROW_DRAINING | ROW_RUNTIME)) &&
	      !(collector_process(pid).flags & ROW_DRAINING));
	word_store(WORD_GO, 2);
	CHECK(spawn_wait(pid) == 0);
	collector_stop();
}

/* ---- the collector does not answer in time, and reads the question later */

/* The policy is changed to another mode before the collector goes on. */
static void unanswered_in(enum mode tenant, enum mode then)
{
	struct program program[PROGRAMS];

	collector_fresh(policy_of(tenant), "");
	programs_start(program);
	kill(collector_pid(), SIGSTOP);
	word_store(WORD_GO, 1);
	NEED(word_load(WORD_DONE) == PROGRAMS);
	collector_policy(policy_of(then));
	kill(collector_pid(), SIGCONT);
	EVENTUALLY(collector_tenant("default").mode == then);
	for (unsigned i = 0; i < PROGRAMS; i++) {
		bool made = word_load(WORD_MADE) >> i & 1;
		struct told told;

		CHECK(made == (tenant != MODE_ENFORCE), "tenant %s, program %s",
		      mode_names[tenant], mode_names[program[i].own_mode]);
		line_agrees(&program[i], made, tenant);
		if (!program[i].socket) /* the page of others is not shared */
			row_agrees(&program[i], made);
		told = told_of(program[i].pid);
		CHECK(!told.refused && !told.tolerated,
		      "tenant %s, program %s, %s limit, %s: made %d, %u refused, %u tolerated",
		      mode_names[tenant], mode_names[program[i].own_mode],
		      program[i].own ? "its own" : "the policy's",
		      program[i].socket ? "socket" : "lease", made, told.refused, told.tolerated);
	}
	programs_end(program);
	collector_stop();
}

static void unanswered(void)
{
	for (enum mode tenant = 0; tenant < MODES; tenant++)
		unanswered_in(tenant, tenant);
}

static void unanswered_and_changed(void)
{
	unanswered_in(MODE_ENFORCE, MODE_WARN);
	unanswered_in(MODE_WARN, MODE_ENFORCE);
}

/*
 * ---- threads of one program at a limit: each refusal has its event. There may be an event more:
 * where another thread gives back while the question is under way, the refusal is not believed, and
 * the process asks again.
 */

static void threads(void)
{
	struct told told;
	pid_t pid;

	collector_fresh(policy_of(MODE_ENFORCE), "");
	words_clear();
	log_clear();
	pid = spawn_start("threads", "QUIET=1\nLOG_LEVEL=INFO\nTRANSPORT=lease");
	NEED(word_load(WORD_READY) == 1);
	told = told_of(pid);
	printf("%llu refused, %u events\n", (unsigned long long)word_load(WORD_REFUSED),
	       told.refused);
	/* A busy machine may starve the collector for a second; there is no event of that. */
	if (strstr(log_text(), "does not answer"))
		skip_part("the collector did not answer in time");
	else
		CHECK(word_load(WORD_REFUSED) > 0 && told.refused >= word_load(WORD_REFUSED) &&
			      !told.tolerated,
		      "%u events, %llu refusals", told.refused,
		      (unsigned long long)word_load(WORD_REFUSED));
	word_store(WORD_GO, 1);
	CHECK(spawn_wait(pid) == 0);
	collector_stop();
}

static void driver(void)
{
	RUN(answered);
	RUN(audit);
	RUN(unanswered);
	RUN(unanswered_and_changed);
	RUN(threads);
}

int main(int argc, char **argv)
{
	static const struct scenario scenarios[] = { { "tries", run_tries },
						     { "threads", run_threads },
						     { NULL, NULL } };

	return harness_main(argc, argv, scenarios, driver);
}
