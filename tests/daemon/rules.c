/* SPDX-License-Identifier: MIT */
/*
 * When lines of the policy: in force while usage passes a mark or in a window of time, visible, kept
 * over a restart, and without effect where they name something that is not there.
 */
#include "collector.h"

#include <signal.h>
#include <string.h>

#include "harness.h"
#include "member.h"

#define SETTINGS "TRANSPORT=lease\nQUIET=1\nLOG_LEVEL=0"
#define BUSY "host.qp > 50% : default.process.qp = 3"

struct rules {
	unsigned count;
	struct proto_rule rule[4];
};

static int rule_note(const void *row, void *closure)
{
	struct rules *rules = closure;

	if (rules->count < 4)
		rules->rule[rules->count] = *(const struct proto_rule *)row;
	rules->count++;
	return 0;
}

static struct rules rules_now(void)
{
	struct rules rules = { 0 };
	char problem[PROBLEM_SIZE];

	CHECK(proto_rows(collector_socket(), MESSAGE_GET_RULES, &(struct proto_choose){ 0 }, rule_note, &rules,
			 COLLECTOR_PATIENCE_MS, problem) >= 0, "%s", problem);
	return rules;
}

static bool rule_in_force(unsigned number)
{
	return rules_now().rule[number].in_force;
}

static uint64_t process_limit(void)
{
	return collector_tenant("default").process_limit[KIND_qp];
}

static int event_count(const void *row, void *count)
{
	*(unsigned *)count += ((const struct proto_event *)row)->type == EVENT_RULE;
	return 0;
}

static unsigned rule_events(void)
{
	char problem[PROBLEM_SIZE];
	unsigned count = 0;

	CHECK(proto_rows(collector_socket(), MESSAGE_EVENTS, &(struct proto_choose){ 0 },
			 event_count, &count, COLLECTOR_PATIENCE_MS, problem) >= 0, "%s", problem);
	return count;
}

/* Above the mark each process may have less; what is held stays. */
static void usage(void)
{
	pid_t holder;

	collector_fresh("[host]\nqp = 10\nwhen = " BUSY "\n", "");
	CHECK(rules_now().count == 1 && !rule_in_force(0) && process_limit() == UNLIMITED);
	holder = spawn_start("exactly:5w", SETTINGS "\nLIMITS=process:qp=5");
	EVENTUALLY(collector_tenant(NULL).used[KIND_qp] == 5);
	EVENTUALLY(rules_now().rule[0].used == 5);
	CHECK(!rule_in_force(0), "5 of 10 are not above 50%%");
	CHECK(collector_set("host", "qp = 9") == 0);
	EVENTUALLY(rule_in_force(0));
	EVENTUALLY(process_limit() == 3);
	CHECK(collector_process(holder).used[KIND_qp] == 5);
	CHECK(spawn("exactly:3", SETTINGS) == 0);
	/* The mark is of the limit without rules, and the rule is still there after a restart. */
	collector_kill();
	collector_start("");
	EVENTUALLY(rule_in_force(0));
	EVENTUALLY(process_limit() == 3);
	kill(holder, SIGKILL);
	CHECK(spawn_wait(holder) == 128 + SIGKILL);
	EVENTUALLY(!rule_in_force(0));
	EVENTUALLY(process_limit() == UNLIMITED);
	CHECK(rule_events() >= 2, "%u", rule_events());
	collector_stop();
}

/* A window of the whole week, and lines that change nothing. */
static void windows(void)
{
	collector_fresh("[host]\nqp = 10\n"
			"when = sun-sat : tenant.a.qp = 4\n"
			"when = sun-sat 00:00-24:00 : tenant.nobody.qp = 4\n"
			"[tenant a]\nqp = 7\n",
			"");
	CHECK(rules_now().count == 2 && rule_in_force(0) &&
	      collector_tenant("a").limit[KIND_qp] == 4);
	CHECK(strstr(rules_now().rule[0].source, "policy.conf:3"), "%s", rules_now().rule[0].source);
	CHECK(strstr(rules_now().rule[1].problem, "there is no tenant 'nobody'"), "%s",
	      rules_now().rule[1].problem);
	CHECK(collector_tenant("nobody").scope != ROW_TENANT, "a tenant was made");
	/* By a command, and taken back; a later line goes over an earlier one. */
	CHECK(collector_set("host", "when = sun-sat : tenant.a.qp = 2") == 0);
	EVENTUALLY(collector_tenant("a").limit[KIND_qp] == 2);
	CHECK(collector_set("host", "when = unset") == 0);
	EVENTUALLY(collector_tenant("a").limit[KIND_qp] == 4);
	/* What is wrong is refused, and nothing changes. */
	CHECK(collector_set("host", "when = sometimes : tenant.a.qp = 1") < 0);
	CHECK(rules_now().count == 2 && collector_tenant("a").limit[KIND_qp] == 4);
	collector_stop();
}

static void drive(void)
{
	RUN(usage);
	RUN(windows);
}

int main(int argc, char **argv)
{
	static const struct scenario scenarios[] = {
		{ "exactly", member_exactly },
		{ NULL, NULL },
	};

	return harness_main(argc, argv, scenarios, drive);
}
