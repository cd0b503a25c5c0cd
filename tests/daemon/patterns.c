/* SPDX-License-Identifier: MIT */
/*
 * Tenants that patterns of the policy make: one for each user, from its first process to its last,
 * exact, bounded, and there again after a restart of the collector.
 */
#include "collector.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"
#include "member.h"

#define SETTINGS "TRANSPORT=lease\nQUIET=1\nLOG_LEVEL=0"
#define USERS "[tenant u-%u]\nmatch = uid=61000-61999\nqp = 3\n"

/* The scenario "user:N,COUNT[w]": member_exactly, as a user. */
static void run_user(const char *argument)
{
	uid_t uid = FIRST_UID + (uid_t)atoi(argument);

	if (setresuid(uid, uid, uid))
		abort();
	die_with_parent();
	member_exactly(strchr(argument, ',') + 1);
}

/* What the collector says to a process of a user that registers. */
static bool user_is_refused(unsigned user, const char *reason)
{
	struct proto_hello hello = { .flags = HELLO_NO_MEMORY };
	char problem[PROBLEM_SIZE] = "";
	struct proto_welcome welcome;
	struct proto_reply reply;
	pid_t child = fork_child();
	int result;

	if (child == 0) {
		if (setresuid(FIRST_UID + user, FIRST_UID + user, FIRST_UID + user))
			_exit(2);
		result = proto_call(collector_socket(), MESSAGE_HELLO, &hello, &welcome, &reply, 0,
				    COLLECTOR_PATIENCE_MS, problem);
		_exit(result == -EUSERS && strstr(problem, reason) ? 0 : 1);
	}
	return spawn_wait(child) == 0;
}

/* A process that holds so many QPs until it is killed. */
static pid_t user_start(unsigned user, unsigned count)
{
	char scenario[32], name[NAME_SIZE];
	pid_t pid;

	snprintf(scenario, sizeof(scenario), "user:%u,%uw", user, count);
	snprintf(name, sizeof(name), "u-%u", FIRST_UID + user);
	pid = spawn_start(scenario, SETTINGS);
	EVENTUALLY(collector_tenant(name).used[KIND_qp] == count);
	return pid;
}

static void user_end(pid_t pid)
{
	kill(pid, SIGKILL);
	CHECK(spawn_wait(pid) == 128 + SIGKILL);
}

static bool tenant_is_there(const char *name)
{
	return collector_tenant(name).scope == ROW_TENANT;
}

static uint64_t tenant_limit(const char *name)
{
	return collector_tenant(name).limit[KIND_qp];
}

struct tally {
	enum proto_event_type type;
	unsigned count;
};

static int event_tally(const void *row, void *closure)
{
	const struct proto_event *event = row;
	struct tally *tally = closure;

	tally->count += event->type == tally->type && !strcmp(event->tenant, "u-61000") &&
			!strcmp(event->text, "by the pattern u-%u");
	return 0;
}

static unsigned events_of(enum proto_event_type type)
{
	struct tally tally = { .type = type };
	char problem[PROBLEM_SIZE];

	CHECK(proto_rows(collector_socket(), MESSAGE_EVENTS, &(struct proto_choose){ 0 },
			 event_tally, &tally, COLLECTOR_PATIENCE_MS, problem) >= 0, "%s", problem);
	return tally.count;
}

static void life(void)
{
	pid_t first, second;

	collector_fresh(USERS, "");
	CHECK(!tenant_is_there("u-%u") && !tenant_is_there("u-61000"));
	first = user_start(0, 3);
	second = user_start(1, 3);
	CHECK(collector_tenant("u-61000").flags & ROW_PATTERN &&
	      collector_tenant("u-61000").processes == 1 && tenant_limit("u-61000") == 3);
	CHECK(collector_tenant("u-61001").used[KIND_qp] == 3 && !tenant_is_there("u-%u"));
	CHECK(collector_tenant(NULL).used[KIND_qp] == 6);
	/* The tenant has its limit, whoever of its processes asks. */
	CHECK(spawn("user:0,0", SETTINGS) == 0);
	CHECK(events_of(EVENT_TENANT_CREATED) == 1 && events_of(EVENT_TENANT_REMOVED) == 0);
	user_end(first);
	EVENTUALLY(!tenant_is_there("u-61000"));
	CHECK(tenant_is_there("u-61001") && collector_tenant("u-61001").used[KIND_qp] == 3);
	CHECK(events_of(EVENT_TENANT_REMOVED) == 1);
	user_end(second);
	EVENTUALLY(!tenant_is_there("u-61001"));
	CHECK(collector_tenant(NULL).used[KIND_qp] == 0 &&
	      collector_tenant(NULL).granted[KIND_qp] == 0);
	/* And anew. */
	CHECK(spawn("user:0,3", SETTINGS) == 0);
	EVENTUALLY(!tenant_is_there("u-61000"));
	CHECK(events_of(EVENT_TENANT_CREATED) == 2);
	collector_stop();
}

/* Processes come and go while tenants are made and removed: each gets what its tenant has. */
static void churn(void)
{
	enum { USERS_OF_CHURN = 4, ROUNDS = 12 };
	char scenario[32];

	collector_fresh(USERS, "");
	for (unsigned round = 0; round < ROUNDS * test_factor(); round++) {
		pid_t pid[USERS_OF_CHURN];

		for (unsigned user = 0; user < USERS_OF_CHURN; user++) {
			snprintf(scenario, sizeof(scenario), "user:%u,3", user);
			pid[user] = spawn_start(scenario, SETTINGS);
		}
		for (unsigned user = 0; user < USERS_OF_CHURN; user++)
			CHECK(spawn_wait(pid[user]) == 0, "round %u", round);
	}
	EVENTUALLY(!tenant_is_there("u-61000") && !tenant_is_there("u-61003"));
	CHECK(collector_tenant(NULL).granted[KIND_qp] == 0 &&
	      collector_tenant(NULL).processes == 0);
	collector_must_live();
	collector_stop();
}

/* Limits are the pattern's, also when that changes, and over them those of the tenant. */
static void limits(void)
{
	struct proto_change change = { .section = "tenant u-61000" };
	pid_t first, second;

	collector_fresh(USERS "[default]\nprocess.mr = 7\n", "");
	CHECK(collector_set("tenant u-61000", "qp = 8") == -ENOENT);
	first = user_start(0, 3);
	second = user_start(1, 3);
	CHECK(collector_tenant("u-61000").process_limit[KIND_mr] == 7);
	CHECK(collector_set("tenant u-61000", "qp = 8") == 0);
	CHECK(tenant_limit("u-61000") == 8 && tenant_limit("u-61001") == 3);
	CHECK(collector_tenant("u-61000").flags & ROW_PATTERN);
	collector_policy("[tenant u-%u]\nmatch = uid=61000-61999\nqp = 5\nmr = 2\n"
			 "[default]\nprocess.mr = 7\n");
	EVENTUALLY(tenant_limit("u-61001") == 5);
	CHECK(tenant_limit("u-61000") == 8 && collector_tenant("u-61000").limit[KIND_mr] == 2);
	CHECK(collector_set("tenant u-%u", "qp = 6") == 0);
	CHECK(tenant_limit("u-61001") == 6 && tenant_limit("u-61000") == 8);
	CHECK(collector_set("host", "when = sun-sat : tenant.u-%u.mr = 1") == 0);
	EVENTUALLY(collector_tenant("u-61000").limit[KIND_mr] == 1 &&
		   collector_tenant("u-61001").limit[KIND_mr] == 1);
	CHECK(collector_call(MESSAGE_TENANT_REMOVE, &change, NULL) == -EINVAL);
	CHECK(collector_set("tenant u-%u", "guard = on") == -EINVAL);
	CHECK(collector_set("tenant u-%u", "guarantee.qp = 1") == -EINVAL);
	user_end(first);
	EVENTUALLY(!tenant_is_there("u-61000"));
	/* What was set for the tenant has ended with it. */
	first = user_start(0, 6);
	CHECK(tenant_limit("u-61000") == 6);
	user_end(first);
	user_end(second);
	collector_stop();
}

/* A section of the name itself goes before the pattern, and its tenant stays. */
static void named(void)
{
	pid_t first;

	collector_fresh(USERS "[tenant u-61000]\nqp = 4\n", "");
	CHECK(tenant_is_there("u-61000"));
	first = user_start(0, 4);
	CHECK(!(collector_tenant("u-61000").flags & ROW_PATTERN) && tenant_limit("u-61000") == 4);
	user_end(first);
	first = user_start(1, 3);
	/* One that was made is named by the file now. */
	collector_policy(USERS "[tenant u-61000]\nqp = 4\n[tenant u-61001]\nqp = 2\n");
	EVENTUALLY(tenant_limit("u-61001") == 2);
	CHECK(!(collector_tenant("u-61001").flags & ROW_PATTERN));
	user_end(first);
	EVENTUALLY(collector_tenant("u-61001").processes == 0);
	CHECK(spawn("user:3,3", SETTINGS) == 0);
	EVENTUALLY(!tenant_is_there("u-61003"));
	CHECK(tenant_is_there("u-61000") && tenant_is_there("u-61001"));
	collector_stop();
}

static void restarts(void)
{
	pid_t first, second;

	collector_fresh(USERS, "");
	first = user_start(0, 3);
	second = user_start(1, 3);
	CHECK(collector_set("tenant u-61000", "qp = 8") == 0);
	collector_kill();
	user_end(second);
	collector_start("");
	CHECK(collector_tenant("u-61000").flags & ROW_PATTERN && tenant_limit("u-61000") == 8 &&
	      collector_tenant("u-61000").used[KIND_qp] == 3);
	EVENTUALLY(!tenant_is_there("u-61001"));
	CHECK(collector_tenant(NULL).used[KIND_qp] == 3);
	/* Without the pattern, what has processes stays until they end. */
	collector_kill();
	collector_forget_policy();
	collector_policy("[tenant other]\nqp = 1\n");
	collector_start("");
	CHECK(collector_tenant("u-61000").used[KIND_qp] == 3);
	user_end(first);
	EVENTUALLY(!tenant_is_there("u-61000"));
	collector_kill();
	collector_start("");
	CHECK(!tenant_is_there("u-61000") && tenant_is_there("other"));
	collector_stop();
}

/* A pattern gets a further tenant while it has fewer than there are places left. */
static void bounds(void)
{
	enum { NAMED = 1015, FREE = 1024 - 1 - NAMED, MADE = FREE / 2 };
	char *policy = malloc(64 * (NAMED + 2)), *at = policy;
	pid_t pid[MADE], late;

	at = stpcpy(at, USERS);
	for (unsigned i = 0; i < NAMED; i++)
		at += sprintf(at, "[tenant t%u]\n", i);
	collector_fresh(policy, "");
	for (unsigned i = 0; i < MADE; i++)
		pid[i] = user_start(i, 1 + 2);
	CHECK(user_is_refused(100, "its pattern has its share of all tenants"));
	CHECK(!tenant_is_there("u-61100") && tenant_is_there("u-61000") && tenant_is_there("t7"));
	CHECK(collector_tenant("default").processes == 0);
	user_end(pid[0]);
	EVENTUALLY(!tenant_is_there("u-61000"));
	late = user_start(100, 3);
	user_end(late);
	for (unsigned i = 1; i < MADE; i++)
		user_end(pid[i]);
	collector_stop();
	free(policy);
}

/* A tenant of a file or of a command that has the name of a pattern's, and is removed while it has
 * processes: it is the pattern's again, with the pattern's limit. */
static void adopted(void)
{
	struct proto_change change = { .section = "tenant u-61001", .text = "qp = 4" };
	pid_t first, second;

	collector_fresh(USERS, "");
	first = user_start(0, 3);
	collector_policy(USERS "[tenant u-61000]\nqp = 4\n");
	EVENTUALLY(tenant_limit("u-61000") == 4);
	collector_policy(USERS);
	CHECK(collector_call(MESSAGE_REPLACE, NULL, NULL) == 0);
	EVENTUALLY(tenant_limit("u-61000") == 3);
	CHECK(collector_tenant("u-61000").flags & ROW_PATTERN);
	CHECK(spawn("user:0,0", SETTINGS) == 0);
	CHECK(collector_call(MESSAGE_TENANT_ADD, &change, NULL) == 0);
	second = user_start(1, 4);
	CHECK(collector_call(MESSAGE_TENANT_REMOVE, &change, NULL) == 0);
	CHECK(spawn("user:1,0", SETTINGS) == 0);
	CHECK(tenant_limit("u-61001") == 3 && collector_tenant("u-61001").flags & ROW_PATTERN);
	user_end(first);
	user_end(second);
	EVENTUALLY(!tenant_is_there("u-61000") && !tenant_is_there("u-61001"));
	collector_stop();
}

static int rate_row(const void *row, void *closure)
{
	const struct proto_rate *rate = row;

	*(unsigned *)closure += rate->owner == RATE_OF_TENANT && rate->per_second == 1;
	return 0;
}

static unsigned rates_shown(void)
{
	char problem[PROBLEM_SIZE] = "";
	unsigned count = 0;

	CHECK(proto_rows(collector_socket(), MESSAGE_GET_RATES, &(struct proto_choose){ 0 }, rate_row,
			 &count, COLLECTOR_PATIENCE_MS, problem) >= 0, "%s", problem);
	return count;
}

/* Rates end with their tenant, and the next one with its number begins with a full bucket. */
static void rates(void)
{
	pid_t first, second;

	collector_fresh("[tenant u-%u]\nmatch = uid=61000-61999\nrate_action = deny\n"
			"rate.create_qp = 1/s burst 3\n", "");
	first = user_start(0, 3);
	second = user_start(1, 3);
	CHECK(rates_shown() == 2);
	user_end(first);
	EVENTUALLY(!tenant_is_there("u-61000"));
	CHECK(rates_shown() == 1);
	first = user_start(2, 3);
	CHECK(rates_shown() == 2);
	CHECK(collector_set("tenant u-61002", "rate.create_qp = 2/s burst 2") == 0);
	user_end(first);
	EVENTUALLY(!tenant_is_there("u-61002"));
	first = user_start(2, 3);
	CHECK(rates_shown() == 2);
	user_end(first);
	user_end(second);
	collector_must_live();
	collector_stop();
}

/* What commands set for a tenant that a pattern has made is counted, and can be reset. */
static void reset(void)
{
	struct proto_change all = { .section = "" }, one = { .section = "tenant u-61000" };
	struct proto_reset dropped = { 0 };
	struct proto_status status;
	pid_t first;

	collector_fresh(USERS, "");
	first = user_start(0, 3);
	CHECK(collector_set("tenant u-61000", "qp = 8") == 0);
	CHECK(collector_call(MESSAGE_STATUS, NULL, &status) == 0 && status.overrides == 1);
	CHECK(collector_call(MESSAGE_RESET_POLICY, &one, &dropped) == 0 && dropped.keys == 1);
	CHECK(tenant_limit("u-61000") == 3);
	CHECK(collector_set("tenant u-61000", "qp = 8") == 0);
	CHECK(collector_call(MESSAGE_RESET_POLICY, &all, &dropped) == 0 && dropped.keys == 1);
	CHECK(tenant_limit("u-61000") == 3);
	user_end(first);
	collector_stop();
}

static void drive(void)
{
	if (geteuid() != 0)
		skip("only root can be several users");
	chmod(harness_path(""), 0711); /* processes of other users come this way */
	RUN(life);
	RUN(churn);
	RUN(limits);
	RUN(named);
	RUN(adopted);
	RUN(rates);
	RUN(reset);
	RUN(restarts);
	RUN(bounds);
}

int main(int argc, char **argv)
{
	static const struct scenario scenarios[] = {
		{ "user", run_user },
		{ NULL, NULL },
	};

	return harness_main(argc, argv, scenarios, drive);
}
