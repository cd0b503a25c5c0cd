/* SPDX-License-Identifier: MIT */
/*
 * Fair shares: tenants that want all there is get it by weight and stay there, what one leaves the
 * others have, guarantees are free at any time, and the limit of the host holds while collector and
 * tenants are killed. What nobody wants is refused to nobody.
 */
#include "collector.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "member.h"
#include "terms/fair.h"

enum { TENANTS = 3, HOST_LIMIT = 400, GUARANTEE = 20 };
enum { STEADY = 10 }; /* looks in a row */
#define BUSY_SECONDS 0.5 /* between two looks */
enum { STAY = 1, STAY_LONG = 10, STAY_LONGEST = 60 }; /* seconds for which shares are watched */

#define SETTINGS "TRANSPORT=lease\nQUIET=1\nLOG_LEVEL=0\nFAIL=closed"

enum {
	WORD_STOP = WORD_OWN, /* bit: the tenant */
	WORD_HELD_ALL,
	WORD_HELD, /* one for each tenant */
};

static const char policy[] = "[host]\nqp = 400\n"
			     "[default]\nguarantee.qp = 20\n"
			     "[tenant t0]\nmatch = uid=61000\n"
			     "[tenant t1]\nmatch = uid=61001\nweight = 2\nqp = 300\n"
			     "[tenant t2]\nmatch = uid=61002\n"
			     "[tenant default]\nguarantee.qp = 0\n";

/* ---- tenants */

static void held_add(unsigned tenant, int64_t change)
{
	word_add(WORD_HELD + tenant, (uint64_t)change);
	if (word_add(WORD_HELD_ALL, (uint64_t)change) > HOST_LIMIT && change > 0)
		word_add(WORD_FAILURES, 1);
}

/* What is held is counted after it was made and before it is destroyed: so the words never say too
 * much. */
static bool hungry_make(struct fixture *fixture, unsigned tenant, struct ibv_qp **ret_qp)
{
	*ret_qp = qp_make(fixture, IBV_QPT_RC);
	if (!*ret_qp) {
		CHECK(errno == EDQUOT, "errno %d", errno);
		return false;
	}
	held_add(tenant, 1);
	return true;
}

/* Destroys what it made last. While no collector answers it keeps what it has. */
static void hungry_destroy(unsigned tenant, struct ibv_qp *qp)
{
	held_add(tenant, -1);
	CHECK(ibv_destroy_qp(qp) == 0);
}

/* "TENANT": makes QPs whenever it may, and replaces one now and then. */
static void run_hungry(const char *argument)
{
	unsigned tenant = (unsigned)atoi(argument), held = 0;
	static struct ibv_qp *qp[2 * HOST_LIMIT];
	struct fixture fixture;

	if (setresuid(FIRST_UID + tenant, FIRST_UID + tenant, FIRST_UID + tenant))
		abort();
	die_with_parent();
	fixture = member_fixture();
	word_add(WORD_READY, 1);
	word_await(WORD_GO, 1);
	while (!(word_load(WORD_STOP) >> tenant & 1)) {
		while (held < 2 * HOST_LIMIT && hungry_make(&fixture, tenant, &qp[held]))
			held++;
		if (held)
			hungry_destroy(tenant, qp[--held]);
		if (hungry_make(&fixture, tenant, &qp[held]))
			held++;
		usleep(1000);
	}
	held_add(tenant, -(int64_t)held); /* the kernel destroys the rest */
}

static pid_t hungry_start(unsigned tenant)
{
	char scenario[32];

	snprintf(scenario, sizeof(scenario), "hungry:%u", tenant);
	return spawn_start(scenario, SETTINGS);
}

static bool is_near(uint64_t value, uint64_t share)
{
	return value + 1 >= share && value <= share + 1;
}

static bool hold(unsigned a, unsigned b, unsigned c)
{
	return is_near(word_load(WORD_HELD), a) && is_near(word_load(WORD_HELD + 1), b) &&
	       is_near(word_load(WORD_HELD + 2), c);
}

static bool hold_more(unsigned a, unsigned b, unsigned c)
{
	return word_load(WORD_HELD) > a + 1 || word_load(WORD_HELD + 1) > b + 1 ||
	       word_load(WORD_HELD + 2) > c + 1;
}

static const char *held_text(void)
{
	static char text[96];

	snprintf(text, sizeof(text), "%llu, %llu, %llu", (unsigned long long)word_load(WORD_HELD),
		 (unsigned long long)word_load(WORD_HELD + 1),
		 (unsigned long long)word_load(WORD_HELD + 2));
	return text;
}

/* One that comes from below is near its share before it has it, and replaces one then. */
static bool hold_steadily(unsigned a, unsigned b, unsigned c)
{
	for (unsigned looks = 0; looks < STEADY; looks++) {
		if (!hold(a, b, c))
			return false;
		usleep(10000);
	}
	return true;
}

/* Whether they hold their shares. While the collector has no processor, a tenant that replaces one is
 * refused and destroys the next: then it holds less for a moment, but nobody holds more. */
static bool stays(const char *what, unsigned a, unsigned b, unsigned c)
{
	if (hold(a, b, c))
		return true;
	return CHECK(!hold_more(a, b, c), "%s: %s, above %u, %u, %u", what, held_text(), a, b, c) &&
	       EVENTUALLY(hold(a, b, c), "%s: %s, not %u, %u, %u again", what, held_text(), a, b, c);
}

/* The time until then is printed, and not judged: the machine may be busy. */
static void settle(const char *what, unsigned a, unsigned b, unsigned c)
{
	double begin = seconds_now();

	EVENTUALLY(hold_steadily(a, b, c), "%s: %s, not %u, %u, %u", what, held_text(), a, b, c);
	printf("  %s: %u, %u, %u after %.2f s\n", what, a, b, c, seconds_now() - begin);
	for (begin = seconds_now(); seconds_now() - begin < STAY * test_factor();) {
		if (!stays(what, a, b, c))
			break;
		usleep(10000);
	}
}

static void tenants_start(pid_t ret_tenant[TENANTS])
{
	words_clear();
	for (unsigned i = 0; i < TENANTS; i++)
		ret_tenant[i] = hungry_start(i);
	NEED(word_load(WORD_READY) == TENANTS);
	word_store(WORD_GO, 1);
}

static void tenant_stop(unsigned tenant, pid_t pid)
{
	word_store(WORD_STOP, word_load(WORD_STOP) | 1u << tenant);
	CHECK(spawn_wait(pid) == 0);
}

static void tenants_stop(const pid_t tenant[TENANTS])
{
	for (unsigned i = 0; i < TENANTS; i++)
		tenant_stop(i, tenant[i]);
	CHECK(word_load(WORD_FAILURES) == 0, "%llu times above the limit of the host",
	      (unsigned long long)word_load(WORD_FAILURES));
}

/* "TENANT,COUNT": makes so many QPs as the tenant's user, and keeps them until it is killed. The
 * library also refuses when a starved collector does not answer: it tries again, and the driver
 * asks the collector how many it has refused. */
static void run_holder(const char *argument)
{
	unsigned uid = FIRST_UID + (unsigned)atoi(argument);
	int count = atoi(strchr(argument, ',') + 1);
	struct fixture fixture;

	if (setresuid(uid, uid, uid))
		abort();
	die_with_parent();
	fixture = member_fixture();
	while (count--)
		EVENTUALLY(qp_make(&fixture, IBV_QPT_RC) != NULL, "%d were left", count);
	word_add(WORD_READY, 1);
	pause();
}

/* ---- cases */

struct events {
	unsigned shares;	   /* limits in force that changed, */
	uint64_t last_share_ns;	   /* the last of them then (CLOCK_REALTIME) */
	struct proto_event refusal; /* the last of a tenant at its share */
};

static int event_note(const void *row, void *closure)
{
	const struct proto_event *event = row;
	struct events *events = closure;

	events->shares += event->type == EVENT_SHARE;
	if (event->type == EVENT_SHARE && event->time_ns > events->last_share_ns)
		events->last_share_ns = event->time_ns;
	if (event->type == EVENT_REFUSED && event->scope == SCOPE_TENANT)
		events->refusal = *event;
	return 0;
}

static struct events events_now(const char *tenant)
{
	struct proto_choose choose = { .pid = 0 };
	struct events events = { 0 };
	char problem[PROBLEM_SIZE];

	snprintf(choose.tenant, sizeof(choose.tenant), "%s", tenant);
	CHECK(proto_rows(collector_socket(), MESSAGE_EVENTS, &choose, event_note, &events,
			 COLLECTOR_PATIENCE_MS, problem) >= 0,
	      "%s", problem);
	return events;
}

/* What is shown of a tenant at its share, and told of its refusals. */
static void share_is_told(void)
{
	struct proto_row row = collector_tenant("t1");
	struct events events;

	CHECK(row.limit[KIND_qp] == 200 && row.configured[KIND_qp] == 300 &&
		      row.guarantee[KIND_qp] == GUARANTEE && row.weight == 2 &&
		      row.reason[KIND_qp] == FAIR_SHARE,
	      "limit %llu, configured %llu, guarantee %llu, weight %llu, %s",
	      (unsigned long long)row.limit[KIND_qp], (unsigned long long)row.configured[KIND_qp],
	      (unsigned long long)row.guarantee[KIND_qp], (unsigned long long)row.weight,
	      fair_reason_names[row.reason[KIND_qp]]);
	events = events_now("t1");
	CHECK(events.refusal.configured == 300 && events.refusal.limit <= 200 &&
		      events.refusal.used <= events.refusal.limit,
	      "used %llu of %llu, configured %llu", (unsigned long long)events.refusal.used,
	      (unsigned long long)events.refusal.limit,
	      (unsigned long long)events.refusal.configured);
}

/* The others want all there is; the collector refuses the owner nothing. */
static void guarantee_at_once(void)
{
	uint64_t refused = collector_tenant("t2").refused[KIND_qp];
	char scenario[32];
	pid_t owner;

	word_store(WORD_READY, 0);
	snprintf(scenario, sizeof(scenario), "holder:2,%u", GUARANTEE);
	owner = spawn_start(scenario, SETTINGS);
	NEED(word_load(WORD_READY) == 1);
	CHECK(collector_tenant("t2").used[KIND_qp] == GUARANTEE);
	CHECK(collector_tenant("t2").refused[KIND_qp] == refused, "%llu refusals",
	      (unsigned long long)(collector_tenant("t2").refused[KIND_qp] - refused));
	kill(owner, SIGKILL);
	spawn_wait(owner);
}

static uint64_t limit_in_force(unsigned tenant)
{
	return collector_tenant((const char *[]){ "t0", "t1", "t2" }[tenant]).limit[KIND_qp];
}

static bool limits_are(uint64_t a, uint64_t b, uint64_t c)
{
	return limit_in_force(0) == a && limit_in_force(1) == b && limit_in_force(2) == c;
}

/* No limit in force changes while all tenants want more than they have. A change is an event, at most
 * a second later; refusals push it out of the collector's memory, so events are read all the time. */
static void stay(unsigned seconds)
{
	unsigned events = 0, others = 0, looks = 0;
	uint64_t last = UINT64_MAX, now;
	double begin, longest = 0, look = seconds_now();

	EVENTUALLY(limits_are(100, 200, 100));
	for (begin = seconds_now(); seconds_now() - begin < seconds + 2; looks++) {
		now = events_now("").last_share_ns;
		/* Events of changes before may come within 2 s. */
		events += now > last && seconds_now() - begin > 2;
		last = now > last || last == UINT64_MAX ? now : last;
		others += !limits_are(100, 200, 100);
		if (!stays("three tenants", 100, 200, 100))
			break;
		usleep(10000);
		longest = seconds_now() - look > longest ? seconds_now() - look : longest;
		look = seconds_now();
	}
	printf("  they stay for %u s: %u looks, at most %.2f s apart; %u with other limits in force, "
	       "%u changes by events\n",
	       seconds, looks, longest, others, events);
	/* A tenant that had no processor for so long has asked for nothing: its share is lent. */
	if (longest < BUSY_SECONDS)
		CHECK(others == 0 && events == 0 && looks > 0);
	else
		printf("  not judged: the machine was busy\n");
}

/* 1:2:1, one leaves, and returns. */
static void weights(void)
{
	pid_t tenant[TENANTS];

	collector_fresh(policy, "");
	tenants_start(tenant);
	/* Looked for at once: refusals push events of shares out of the collector's memory. */
	EVENTUALLY(events_now("t1").shares > 0);
	settle("three tenants", 100, 200, 100);
	share_is_told();
	stay(test_factor() > 1 ? STAY_LONGEST : STAY_LONG);
	/* Its guarantee stays free. */
	tenant_stop(2, tenant[2]);
	settle("one has left", 127, 253, 0);
	guarantee_at_once();
	word_store(WORD_STOP, 0);
	tenant[2] = hungry_start(2);
	settle("it has returned", 100, 200, 100);
	tenants_stop(tenant);
	collector_stop();
}

/* Killed collectors and tenants: nothing is above the limit, and the shares come back. */
static void kills(void)
{
	pid_t tenant[TENANTS];

	collector_fresh(policy, "");
	tenants_start(tenant);
	for (unsigned i = 0; i < 3 * test_factor(); i++) {
		collector_kill();
		collector_start("");
	}
	settle("after kills of the collector", 100, 200, 100);
	kill(tenant[1], SIGKILL);
	CHECK(spawn_wait(tenant[1]) == 128 + SIGKILL);
	word_add(WORD_HELD_ALL, -word_load(WORD_HELD + 1));
	word_store(WORD_HELD + 1, 0);
	collector_kill();
	collector_start("");
	settle("after a kill of one tenant", 190, 0, 190);
	tenant[1] = hungry_start(1);
	settle("it has returned", 100, 200, 100);
	tenants_stop(tenant);
	collector_stop();
}

/* What nobody else wants is not refused, although others are there: no limit is in force that the
 * policy does not set, until somebody asks. */
static void idle(void)
{
	pid_t holder;

	words_clear();
	collector_fresh("[host]\nqp = 40\n[tenant a]\nmatch = uid=61000\n", "");
	holder = spawn_start("holder:0,1", SETTINGS);
	NEED(collector_tenant("a").used[KIND_qp] == 1);
	spawn("exactly:39", SETTINGS);
	spawn("exactly:39", "TRANSPORT=socket\nQUIET=1\nLOG_LEVEL=0");
	kill(holder, SIGKILL);
	spawn_wait(holder);
	EVENTUALLY(collector_tenant("a").limit[KIND_qp] == UNLIMITED);
	spawn("exactly:40", SETTINGS);
	collector_stop();
}

/* Guarantees are reserved for tenants without processes, and without pressure; on a device, too. */
static void guarantees(void)
{
	static const char *const policies[] = {
		"[host]\nqp = 40\n[tenant a]\nmatch = uid=61000\nguarantee.qp = 15\n",
		"[host]\npressure = 100%\nqp = 40\n"
		"[tenant a]\nmatch = uid=61000\nguarantee.qp = 15\n",
		"[host]\ndevice.rxe0.qp = 40\n"
		"[tenant a]\nmatch = uid=61000\nguarantee.device.rxe0.qp = 15\n",
	};

	for (unsigned i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
		pid_t other, owner;

		collector_fresh(policies[i], "");
		word_store(WORD_READY, 0);
		spawn("exactly:25", SETTINGS);
		word_store(WORD_READY, 0);
		other = spawn_start("exactly:25w", SETTINGS);
		NEED(word_load(WORD_READY) == 1);
		owner = spawn_start("holder:0,15", SETTINGS);
		NEED(word_load(WORD_READY) == 2, "policy %u", i);
		CHECK(collector_tenant(NULL).used[KIND_qp] == 40, "%llu are used",
		      (unsigned long long)collector_tenant(NULL).used[KIND_qp]);
		CHECK(collector_tenant("a").refused[KIND_qp] == 0);
		kill(other, SIGKILL);
		kill(owner, SIGKILL);
		spawn_wait(other);
		spawn_wait(owner);
		collector_stop();
	}
}

/* A tenant whose limits are not enforced gets what it wants; its share is in force all the same, and
 * what is beyond is told of. The others share what it leaves. */
static void modes(void)
{
	static const char *const names[] = { "audit", "warn" };

	for (unsigned i = 0; i < 2; i++) {
		char text[256];
		pid_t other;

		snprintf(text, sizeof(text),
			 "[host]\nqp = 40\n[tenant a]\nmatch = uid=61000\nmode = %s\n", names[i]);
		collector_fresh(text, "");
		word_store(WORD_READY, 0);
		other = spawn_start("exactly:40w", SETTINGS);
		NEED(word_load(WORD_READY) == 1);
		spawn_wait(({
			pid_t eager = spawn_start("holder:0,30", SETTINGS);

			NEED(word_load(WORD_READY) == 2);
			CHECK(collector_tenant("a").used[KIND_qp] == 30);
			CHECK(collector_tenant("a").tolerated[KIND_qp] == 30, "%llu told of",
			      (unsigned long long)collector_tenant("a").tolerated[KIND_qp]);
			EVENTUALLY(collector_tenant("a").limit[KIND_qp] <= 20);
			EVENTUALLY(collector_tenant("default").limit[KIND_qp] == 20, "%llu",
				   (unsigned long long)collector_tenant("default").limit[KIND_qp]);
			kill(eager, SIGKILL);
			eager;
		}));
		kill(other, SIGKILL);
		spawn_wait(other);
		collector_stop();
	}
}

/* What cannot be kept is refused, with the line, and the old policy stays. */
static void bad_values(void)
{
	static const struct {
		const char *lines, *problem;
	} cases[] = {
		{ "[tenant a]\nweight = 0\n", ":4: weight: invalid value '0'" },
		{ "[tenant a]\nweight = -1\n", ":4: weight: invalid value '-1'" },
		{ "[tenant a]\nqp = 9\nguarantee.qp = 10\n",
		  ":5: guarantee.qp: 10 for tenant 'a': expected at most 9, the limit of the tenant" },
		{ "[tenant a]\nguarantee.qp = 30\n[tenant b]\nguarantee.qp = 12\n",
		  ":6: guarantee.qp: 42 for all tenants together: expected at most 41, the limit of "
		  "the host" },
		{ "[tenant a]\nguarantee.device.x.qp = 6\n[host]\ndevice.x.qp = 5\n",
		  ":4: guarantee.device.x.qp: 6 for all tenants together: expected at most 5, the "
		  "limit of the device" },
		{ "[tenant a]\nrate.nosuch = 100/s\n",
		  ":4: rate.nosuch: unknown class 'nosuch': expected create_qp, " },
		{ "[tenant a]\nrate.reg_mr = 100\n",
		  ":4: rate.reg_mr: invalid value '100': expected N/s" },
		{ "[tenant a]\nprocess.rate.reg_mr = 100/m\n",
		  ":4: process.rate.reg_mr: invalid value '100/m': expected N/s" },
		{ "[tenant a]\npace.bytes = 5MB\n",
		  ":4: pace.bytes: invalid value '5MB': expected a size with /s" },
		{ "[tenant a]\npriority = urgent\n",
		  ":4: priority: invalid value 'urgent': expected latency" },
		{ "[tenant a]\ntraffic_class = 256\n",
		  ":4: traffic_class: invalid value '256': expected keep" },
		{ "[tenant a]\nservice_level = 16\n",
		  ":4: service_level: invalid value '16': expected keep" },
	};
	char text[256], problem[512];

	collector_fresh("[host]\nqp = 40\n[tenant a]\nmatch = uid=61000\nguarantee.qp = 8\n"
			"weight = 3\n[tenant b]\nguarantee.qp = 4\n",
			"");
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct proto_status status;
		struct proto_row row;

		snprintf(text, sizeof(text), "[host]\nqp = 41\n%s", cases[i].lines);
		snprintf(problem, sizeof(problem), "%s%s", harness_path("policy.conf"),
			 cases[i].problem);
		collector_policy(text);
		CHECK(collector_call(MESSAGE_RELOAD, NULL, NULL) < 0, "%s", cases[i].lines);
		CHECK(collector_call(MESSAGE_STATUS, NULL, &status) == 0);
		CHECK(strstr(status.problem, problem), "%s, not %s", status.problem, problem);
		row = collector_tenant("a");
		CHECK(row.guarantee[KIND_qp] == 8 && row.weight == 3 &&
			      collector_tenant("b").guarantee[KIND_qp] == 4 &&
			      collector_tenant(NULL).limit[KIND_qp] == 40,
		      "%s: the old policy is not in force", cases[i].lines);
	}
	/* By a command, against what the file says. */
	CHECK(collector_set("host", "qp = 7") < 0);
	CHECK(collector_set("tenant a", "qp = 7") < 0);
	CHECK(collector_set("tenant a", "guarantee.qp = 41") < 0);
	CHECK(collector_set("tenant a", "weight = 10001") < 0);
	CHECK(collector_set("host", "pressure = 101%") < 0);
	CHECK(collector_tenant(NULL).limit[KIND_qp] == 40);
	spawn("exactly:28", SETTINGS);
	collector_stop();
}

static void drive(void)
{
	if (geteuid() != 0)
		skip("only root can make processes of several users");
	chmod(harness_path(""), 0711); /* processes of other users come this way */
	RUN(weights);
	RUN(kills);
	RUN(idle);
	RUN(guarantees);
	RUN(modes);
	RUN(bad_values);
}

int main(int argc, char **argv)
{
	static const struct scenario scenarios[] = {
		{ "hungry", run_hungry },
		{ "holder", run_holder },
		{ "exactly", member_exactly },
		{ NULL, NULL },
	};

	return harness_main(argc, argv, scenarios, drive);
}
