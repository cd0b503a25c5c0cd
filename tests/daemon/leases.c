/* SPDX-License-Identifier: MIT */
/*
 * Guarded programs and a collector: limits of tenants and of the host hold exactly
 * and refuse nobody without need, changes are in force at once, and the collector's
 * death costs nobody anything but growth. On the stand-in; in the lab, where the
 * kernel has real devices, its counts are compared too.
 */
#include "collector.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"
#include "harness.h"

enum { TENANTS = 4, PER_TENANT = 16, FIRST_UID = 61000, QPS_MAX = 64 };
enum { MEMBERS = TENANTS * PER_TENANT };

/* Words of the shared page. */
enum {
	WORD_GO,
	WORD_FAILURES,
	WORD_REFUSED,
	WORD_MADE,
	WORD_HELD_HOST,
	WORD_HELD, /* one for each tenant */
	WORD_READY = WORD_HELD + TENANTS,
	WORD_TIME,
	WORD_TENANT_LIMIT,
	WORD_HOST_LIMIT,
	WORD_TRIES,
	WORD_STEPS, /* of a member between two pauses */
};

static uint64_t nanoseconds(void)
{
	return (uint64_t)(seconds_now() * 1e9);
}

/* The QPs that the kernel lists, or -1 where it has no RDMA device:
 * "0: rxe0: pd 1 cq 1 qp 1 cm_id 0 mr 0 ctx 0 srq 0", a line per device. */
static long kernel_qps(void)
{
	FILE *pipe = popen("env -u LD_PRELOAD rdma resource show 2>/dev/null", "re");
	char line[256], *at;
	long sum = -1;

	while (pipe && fgets(line, sizeof(line), pipe))
		if ((at = strstr(line, " qp ")))
			sum = (sum < 0 ? 0 : sum) + atol(at + 4);
	if (pipe)
		pclose(pipe);
	return sum;
}

/* ---- 64 processes of 4 tenants */

enum { STEPS = 200, STEPS_ON_KERNEL = 20, PAUSES = 3 };

/* A member takes or gives back one QP. What is held is counted after it was made and before it
 * is destroyed: so the words never say too much, and a word above the limit is a violation. */
static void member_step(struct fixture *fixture, unsigned tenant, unsigned most, struct ibv_qp **qp,
			unsigned *held, unsigned *seed)
{
	if (*held < most && rand_r(seed) % 3) {
		qp[*held] = qp_make(fixture, IBV_QPT_RC);
		if (!qp[*held]) {
			word_add(WORD_REFUSED, 1);
			CHECK(errno == EDQUOT, "errno %d", errno);
			return;
		}
		++*held;
		word_add(WORD_MADE, 1);
		if (word_add(WORD_HELD + tenant, 1) > word_load(WORD_TENANT_LIMIT))
			word_add(WORD_FAILURES, 1);
		if (word_add(WORD_HELD_HOST, 1) > word_load(WORD_HOST_LIMIT))
			word_add(WORD_FAILURES, 1);
	} else if (*held) {
		word_add(WORD_HELD + tenant, -1ull);
		word_add(WORD_HELD_HOST, -1ull);
		CHECK(ibv_destroy_qp(qp[--*held]) == 0);
	}
}

/* Opens the device, which no limit forbids. On a busy machine the collector may not answer in the
 * second that the library waits, and the library then refuses: try again. */
static struct fixture member_fixture(void)
{
	struct fixture fixture = { .devices = ibv_get_device_list(NULL) };
	struct waiting waiting = { .for_what = "opening the device", .file = __FILE__,
				   .line = __LINE__ };

	fixture_part(fixture.devices, "ibv_get_device_list");
	do {
		if (!fixture.context)
			fixture.context = ibv_open_device(fixture.devices[0]);
		if (fixture.context && !fixture.pd)
			fixture.pd = ibv_alloc_pd(fixture.context);
		if (fixture.pd && !fixture.cq)
			fixture.cq = ibv_create_cq(fixture.context, CQ_DEPTH, NULL, NULL, 0);
	} while (!fixture.cq && errno == EDQUOT && waiting_goes_on(&waiting));
	fixture_part(fixture.cq, "the device");
	return fixture;
}

/* "TENANT,MOST": takes and gives back QPs, up to MOST at once. After each share of the work it
 * pauses, until the driver has compared the counts and lets everybody go on. */
static void run_member(const char *argument)
{
	unsigned tenant = (unsigned)atoi(argument),
		 most = (unsigned)atoi(strchr(argument, ',') + 1);
	unsigned seed = (unsigned)getpid(), held = 0;
	struct ibv_qp *qp[QPS_MAX];
	struct fixture fixture;

	if (geteuid() == 0 && setresuid(FIRST_UID + tenant, FIRST_UID + tenant, FIRST_UID + tenant))
		abort();
	die_with_parent();
	fixture = member_fixture();
	word_add(WORD_READY, 1);
	word_await(WORD_GO, 1);
	for (unsigned pause = 1; pause <= PAUSES; pause++) {
		for (uint64_t step = word_load(WORD_STEPS); step; step--)
			member_step(&fixture, tenant, most, qp, &held, &seed);
		word_add(WORD_READY, 1);
		word_await(WORD_GO, 1 + pause);
	}
	word_add(WORD_HELD + tenant, -(uint64_t)held);
	word_add(WORD_HELD_HOST, -(uint64_t)held);
	/* Half of them end with what they hold. */
	if (getpid() % 2)
		_exit(checks_failed() ? 1 : 0);
	while (held)
		ibv_destroy_qp(qp[--held]);
	fixture_close(&fixture);
}

static const char tenants_policy[] = "[tenant t0]\nmatch = uid=61000\n"
				     "[tenant t1]\nmatch = uid=61001\n"
				     "[tenant t2]\nmatch = uid=61002\n"
				     "[tenant t3]\nmatch = uid=61003\n";

/* Everybody pauses: no count changes any more. */
static bool counts_rest(void)
{
	uint64_t held = word_load(WORD_HELD_HOST), listed = collector_tenant(NULL).used[KIND_qp];
	long kernel = kernel_qps();

	usleep(1000);
	return held == word_load(WORD_HELD_HOST) &&
	       listed == collector_tenant(NULL).used[KIND_qp] && kernel == kernel_qps();
}

/* What the members count themselves, the collector and the kernel. */
static void counts_agree(long kernel_before)
{
	uint64_t held, listed;
	long kernel;

	NEED(counts_rest());
	held = word_load(WORD_HELD_HOST);
	listed = collector_tenant(NULL).used[KIND_qp];
	kernel = kernel_qps();
	CHECK(held == listed, "held %llu, the collector says %llu", (unsigned long long)held,
	      (unsigned long long)listed);
	CHECK(kernel < 0 || held == (uint64_t)(kernel - kernel_before),
	      "held %llu, the kernel says %ld", (unsigned long long)held, kernel - kernel_before);
}

static void members_run(const char *what, unsigned most, unsigned tenant_limit, unsigned host_limit,
			bool may_refuse)
{
	pid_t pid[MEMBERS];
	long before = kernel_qps();
	uint64_t refused;
	char line[64];

	if (geteuid() != 0) {
		skip_part("processes of other users need root");
		return;
	}
	words_clear();
	word_store(WORD_STEPS, (kernel_qps() < 0 ? STEPS : STEPS_ON_KERNEL) * test_factor());
	word_store(WORD_TENANT_LIMIT, tenant_limit);
	word_store(WORD_HOST_LIMIT, host_limit);
	collector_fresh(tenants_policy, "");
	snprintf(line, sizeof(line), "qp = %u\n", host_limit);
	CHECK(collector_set("host", line) == 0);
	snprintf(line, sizeof(line), "qp = %u\n", tenant_limit);
	CHECK(collector_set("default", line) == 0);
	for (unsigned i = 0; i < MEMBERS; i++) {
		snprintf(line, sizeof(line), "member:%u,%u", i % TENANTS, most);
		pid[i] = spawn_start(line, "TRANSPORT=lease\nLOG_LEVEL=0\nQUIET=1\nFAIL=closed");
	}
	NEED(word_load(WORD_READY) == MEMBERS, "%llu members are ready",
	     (unsigned long long)word_load(WORD_READY));
	for (unsigned pause = 1; pause <= PAUSES; pause++) {
		word_store(WORD_GO, pause);
		NEED(word_load(WORD_READY) == (1 + pause) * MEMBERS, "%llu of %u pauses",
		     (unsigned long long)word_load(WORD_READY) - MEMBERS, pause * MEMBERS);
		counts_agree(before);
	}
	word_store(WORD_GO, PAUSES + 1);
	for (unsigned i = 0; i < MEMBERS; i++)
		CHECK(spawn_wait(pid[i]) == 0, "member %u", i);
	printf("%s: %llu made, %llu refused\n", what, (unsigned long long)word_load(WORD_MADE),
	       (unsigned long long)word_load(WORD_REFUSED));
	CHECK(word_load(WORD_FAILURES) == 0, "%llu times over a limit",
	      (unsigned long long)word_load(WORD_FAILURES));
	CHECK(word_load(WORD_MADE) > MEMBERS);
	/* The library also refuses when a starved collector does not answer within a second; the
	 * collector counts its own refusals. */
	refused = collector_tenant(NULL).refused[KIND_qp];
	CHECK(may_refuse == (refused > 0), "the collector refused %llu, the members saw %llu",
	      (unsigned long long)refused, (unsigned long long)word_load(WORD_REFUSED));
	CHECK(collector_wait_used(NULL, KIND_qp, 0));
	EVENTUALLY(collector_tenant(NULL).granted[KIND_qp] == 0 &&
		   collector_tenant(NULL).processes == 0);
	EVENTUALLY(kernel_qps() == before);
	CHECK(collector_tenant("t0").peak[KIND_qp] <= tenant_limit);
	CHECK(collector_tenant(NULL).peak[KIND_qp] <= host_limit);
	collector_stop();
}

static void tenants_over_limit(void)
{
	members_run("tenants over their limit", 4, 20, 1000, true);
}

static void host_over_limit(void)
{
	members_run("host over its limit", 4, 64, 70, true);
}

static void demand_within_limits(void)
{
	members_run("demand within every limit", 3, 3 * PER_TENANT, 3 * MEMBERS, false);
}

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
		static const char *const off[] = { "qp = unset\n", "qp = unset\n",
						   "process.qp = unset\n" };

		words_clear();
		pid = spawn_start("drained", "TRANSPORT=lease\nQUIET=1\nLOG_LEVEL=0");
		NEED(word_load(WORD_READY) == 1);
		CHECK(collector_tenant("default").used[KIND_qp] == 8);
		CHECK(collector_set(section[scope], low[scope]) == 0);
		if (scope < 2)
			CHECK(collector_tenant(scope ? NULL : "default").flags & ROW_DRAINING);
		word_store(WORD_GO, 1);
		CHECK(spawn_wait(pid) == 0, "scope %d", scope);
		CHECK(collector_set(section[scope], off[scope]) == 0);
	}
	collector_stop();
}

/* ---- limits that were tolerated, and are enforced then */

static void expect(const char *scenario, const char *settings)
{
	char all[512];

	snprintf(all, sizeof(all), "TRANSPORT=lease\nQUIET=1\n%s", settings);
	spawn(scenario, all);
	snprintf(all, sizeof(all), "TRANSPORT=socket\nQUIET=1\n%s", settings);
	spawn(scenario, all);
}

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
	CHECK(!(row.flags & ROW_DRAINING) == (row.granted[KIND_qp] <= limit));
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
	CHECK(collector_process(pid).refused[KIND_qp] == 2, "%llu would have been refused",
	      (unsigned long long)collector_process(pid).refused[KIND_qp]);
	CHECK(collector_set("default", "mode = enforce\n") == 0);
	shows("default", 6, 4);
	expect("exactly:0", "");
	CHECK(collector_set("default", "qp = 6\n") == 0);
	expect("exactly:0", "");
	CHECK(collector_set("default", "qp = 7\n") == 0);
	shows("default", 6, 7);
	expect("exactly:1", "");
	/* The same limit by another collector. */
	collector_kill();
	collector_start("");
	shows("default", 6, 7);
	expect("exactly:1", "");
	holds_end(pid);
	expect("exactly:7", "");
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
	rollout_of("audit", "TRANSPORT=lease\nQUIET=1\nLOG_LEVEL=0\nLIMITS=process:qp=4\nMODE=audit");
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
	expect("exactly:2", "");
	/* Beyond the host's limit nobody else gets anything. */
	word_store(WORD_GO, 1);
	NEED(word_load(WORD_MADE) == 1);
	shows("trial", 12, 4);
	shows(NULL, 12, 10);
	expect("exactly:0", "");
	CHECK(collector_set("host", "qp = 13\n") == 0);
	expect("exactly:1", "");
	holds_end(pid);
	expect("exactly:13", "");
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
	expect("exactly:0", "");
	CHECK(collector_set("default", "qp = 6\n") == 0);
	expect("exactly:0", "");
	holds_end(pid);
	expect("exactly:6", "");
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
	expect("exactly:0", "");
	holds_end(pid);
	collector_stop();
}

/* ---- the collector's death */

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

/* ---- one program and its collector */

/* "N[,M]": gets exactly N QPs (and then M on the second device). */
static void run_exactly(const char *argument)
{
	unsigned wanted = (unsigned)atoi(argument), made = 0;
	struct fixture fixture = fixture_open();
	struct ibv_qp *qp[QPS_MAX];

	while (made < QPS_MAX && (qp[made] = qp_make(&fixture, IBV_QPT_RC)))
		made++;
	CHECK(made == wanted, "%u, not %u", made, wanted);
	word_add(WORD_READY, 1);
	if (strchr(argument, 'w')) /* to be killed */
		pause();
	while (made)
		ibv_destroy_qp(qp[--made]);
	fixture_close(&fixture);
}

static void scopes(void)
{
	pid_t pid;

	collector_fresh("[host]\nqp = 12\ndevice.rxe0.qp = 11\n"
			"[default]\nqp = 10\ndevice.rxe0.qp = 9\n"
			"process.qp = 8\nprocess.device.rxe0.qp = 7\n",
			"RDMA_INTERCEPT_MAX_GLOBAL_QP=3\n"); /* the file's goes first */
	expect("exactly:7", "");
	CHECK(strstr(log_text(), "limit of the process on the device"), "%s", log_text());
	CHECK(collector_set("default", "process.device.rxe0.qp = unlimited\n") == 0);
	expect("exactly:8", "");
	CHECK(collector_set("default", "process.qp = unlimited\n") == 0);
	expect("exactly:9", "");
	CHECK(strstr(log_text(), "limit of the tenant on the device"), "%s", log_text());
	CHECK(collector_set("default", "device.rxe0.qp = unlimited\n") == 0);
	expect("exactly:10", "");
	CHECK(collector_set("default", "qp = unlimited\n") == 0);
	expect("exactly:11", "");
	CHECK(collector_set("host", "device.rxe0.qp = unlimited\n") == 0);
	expect("exactly:12", "");
	CHECK(strstr(log_text(), "12/12, wanted 1 more, limit of the host"), "%s", log_text());
	/* The environment lowers, and does not raise. */
	expect("exactly:4", "LIMITS=process:qp=4");
	expect("exactly:5", "LIMITS=host:qp=5");
	expect("exactly:6", "LIMITS=device:rxe0:qp=6");
	expect("exactly:12", "LIMITS=process:qp=40;host:qp=40;device:rxe0:qp=40");
	/* Documented defaults give way to what somebody said. */
	expect("exactly:12", "ENABLE_QP_CONTROL=1");
	expect("exactly:2", "ENABLE_QP_CONTROL=1\nMAX_QP_PER_PROCESS=2");
	/* Two share, and one that is killed gives back. */
	words_clear();
	pid = spawn_start("exactly:12w", "TRANSPORT=lease\nQUIET=1");
	NEED(word_load(WORD_READY) == 1);
	expect("exactly:0", "");
	kill(pid, SIGKILL);
	spawn_wait(pid);
	expect("exactly:12", "");
	words_clear();
	pid = spawn_start("exactly:12w", "TRANSPORT=socket\nQUIET=1");
	NEED(word_load(WORD_READY) == 1);
	CHECK(collector_process(pid).used[KIND_qp] == 12 &&
	      collector_process(pid).flags & ROW_SOCKET);
	expect("exactly:0", "");
	kill(pid, SIGKILL);
	spawn_wait(pid);
	expect("exactly:12", "");
	/* Without a file, the environment of the collector is what counts. */
	collector_stop();
	collector_fresh("", "RDMA_INTERCEPT_MAX_GLOBAL_QP=3\n");
	expect("exactly:3", "");
	collector_stop();
}

static void modes(void)
{
	pid_t pid;

	collector_fresh("[default]\nqp = 2\nmode = audit\n", "");
	log_clear();
	expect("exactly:64", "QUIET=0");
	CHECK(!strstr(stderr_text(), "qp used"), "%s", stderr_text());
	words_clear();
	pid = spawn_start("exactly:64w", "TRANSPORT=lease");
	NEED(word_load(WORD_READY) == 1);
	CHECK(collector_tenant("default").used[KIND_qp] == 64);
	CHECK(collector_tenant("default").granted[KIND_qp] == 64);
	kill(pid, SIGKILL);
	spawn_wait(pid);
	CHECK(collector_set("default", "mode = warn\n") == 0);
	expect("exactly:64", "QUIET=0");
	CHECK(strstr(stderr_text(), "over limit, allowed: ibv_create_qp: tenant=default"), "%s",
	      stderr_text());
	/* The environment's own limits have the environment's mode, and no say in the tenant's. */
	expect("exactly:1", "LIMITS=process:qp=1");
	expect("exactly:64", "LIMITS=process:qp=1\nMODE=warn");
	CHECK(collector_set("default", "mode = enforce\n") == 0);
	expect("exactly:2", "MODE=audit");
	/* Who lets itself pass its own limit is still held to the tenant's. */
	expect("exactly:2", "LIMITS=process:qp=0\nMODE=audit");
	expect("exactly:2", "LIMITS=process:qp=1\nMODE=warn");
	expect("exactly:2", "TRANSPORT=socket\nLIMITS=process:qp=0\nMODE=audit");
	words_clear();
	pid = spawn_start("exactly:2w", "TRANSPORT=lease\nQUIET=1\nLIMITS=process:qp=0\nMODE=audit");
	NEED(word_load(WORD_READY) == 1);
	CHECK(collector_tenant("default").granted[KIND_qp] == 2);
	expect("exactly:0", "");
	kill(pid, SIGKILL);
	spawn_wait(pid);
	collector_stop();
}

/* Calls exec with objects: what the first image held is given back. */
static void run_exec(const char *argument)
{
	struct fixture fixture = fixture_open();

	CHECK(qp_make(&fixture, IBV_QPT_RC) && qp_make(&fixture, IBV_QPT_RC));
	execl("/proc/self/exe", "test", "exactly:2", NULL);
	abort();
}

/* The child goes on with the parent's context: its objects are its own. */
static void run_fork(const char *argument)
{
	struct fixture fixture = fixture_open();
	struct ibv_qp *qp = qp_make(&fixture, IBV_QPT_RC);
	int status;
	pid_t pid;

	CHECK(qp != NULL);
	pid = fork_child();
	if (pid == 0) {
		CHECK((qp = qp_make(&fixture, IBV_QPT_RC)) != NULL);
		CHECK(!qp_make(&fixture, IBV_QPT_RC));
		_exit(checks_failed() ? 1 : 0);
	}
	waitpid(pid, &status, 0);
	CHECK(status == 0);
	CHECK(qp_make(&fixture, IBV_QPT_RC) != NULL); /* the child's place is free again */
	CHECK(!qp_make(&fixture, IBV_QPT_RC));
}

/* A child that is born while there is no collector gets nothing, and as soon as there is
 * one again it joins. FAIL=open has no say in it: its parent could not grow either. */
static void run_late_child(const char *argument)
{
	struct fixture fixture = fixture_open();
	pid_t pid;
	int status;

	word_add(WORD_READY, 1);
	word_await(WORD_GO, 1);
	pid = fork_child();
	if (pid == 0) {
		CHECK(!qp_make(&fixture, IBV_QPT_RC) && errno == EDQUOT);
		word_add(WORD_READY, 1);
		word_await(WORD_GO, 2);
		EVENTUALLY(qp_make(&fixture, IBV_QPT_RC) != NULL);
		CHECK(qp_make(&fixture, IBV_QPT_RC) != NULL);
		CHECK(!qp_make(&fixture, IBV_QPT_RC));
		_exit(checks_failed() ? 1 : 0);
	}
	waitpid(pid, &status, 0);
	CHECK(status == 0);
}

/* As daemons do: every descriptor closed, others opened in their places. */
static void run_closer(const char *argument)
{
	struct fixture fixture = fixture_open();
	struct ibv_qp *qp = qp_make(&fixture, IBV_QPT_RC);

	CHECK(qp != NULL);
	for (int fd = 3; fd < 256; fd++) /* all but the device's own */
		if (fd != fixture.context->cmd_fd && fd != fixture.context->async_fd)
			close(fd);
	for (int i = 0; i < 100; i++)
		CHECK(open("/dev/null", O_RDONLY) >= 0);
	CHECK(qp_make(&fixture, IBV_QPT_RC) != NULL);
	CHECK(!qp_make(&fixture, IBV_QPT_RC));
	ibv_destroy_qp(qp);
	CHECK(qp_make(&fixture, IBV_QPT_RC) != NULL);
}

static void run_closed_one(const char *argument)
{
	run_closer(argument);
	word_add(WORD_READY, 1);
	pause();
}

static void family(void)
{
	pid_t pid;

	collector_fresh("[default]\nqp = 2\n", "");
	expect("exec", "");
	expect("fork", "");
	expect("closer", "");
	CHECK(collector_wait_used(NULL, KIND_qp, 0));
	words_clear();
	pid = spawn_start("late_child", "TRANSPORT=lease\nQUIET=1\nFAIL=open");
	NEED(word_load(WORD_READY) == 1);
	collector_kill();
	word_store(WORD_GO, 1);
	NEED(word_load(WORD_READY) == 2);
	collector_start("");
	word_store(WORD_GO, 2);
	CHECK(spawn_wait(pid) == 0);
	/* Its page is not found again: then what it was granted counts as used. */
	words_clear();
	pid = spawn_start("closed_one", "TRANSPORT=lease\nQUIET=1");
	NEED(word_load(WORD_READY) == 1);
	collector_kill();
	collector_start("");
	CHECK(collector_process(pid).flags & ROW_UNATTACHED);
	CHECK(collector_process(pid).used[KIND_qp] == 2);
	expect("exactly:0", "");
	kill(pid, SIGKILL);
	spawn_wait(pid);
	expect("exactly:2", "");
	collector_stop();
}

/* ---- with and without a collector */

static void transports(void)
{
	/* None: embedded by default; what asks for one by name fails as FAIL says. */
	spawn("exactly:3", "LIMITS=process:qp=3\nQUIET=1");
	CHECK(strstr(log_text(), "joined /dev/shm/"), "%s", log_text());
	log_clear();
	spawn("exactly:64", "LIMITS=process:qp=3\nTRANSPORT=lease\nLOG_LEVEL=1");
	CHECK(strstr(stderr_text(), "collector.sock"), "%s", stderr_text());
	log_clear();
	CHECK(spawn_wait(spawn_start("exactly:0", "TRANSPORT=lease\nFAIL=closed")) != 0);
	/* One: leases by default. */
	collector_fresh("", "");
	log_clear();
	spawn("exactly:3", "LIMITS=process:qp=3\nQUIET=1");
	CHECK(strstr(log_text(), "joined the collector by lease as tenant default"), "%s",
	      log_text());
	log_clear();
	spawn("exactly:3", "LIMITS=process:qp=3\nQUIET=1\nTRANSPORT=embedded");
	CHECK(strstr(log_text(), "joined /dev/shm/"), "%s", log_text());
	collector_stop();
	/* It took its socket away, so nobody waits for it. */
	CHECK(access(collector_socket(), F_OK) != 0);
}

/* ---- versions */

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
	CHECK(strstr(text, "/state/ledger: has the layout version 77, this collector needs 2") &&
		      strstr(text, "exit 1"),
	      "%s", text);
	patch("state/ledger", 8, 2);
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

/* ---- a thread with a small stack: it joins, asks for more, and is refused */

static void *ask_for_more(void *argument)
{
	struct fixture fixture = member_fixture();
	uint64_t made = 0;

	while (made < 100 && qp_make(&fixture, IBV_QPT_RC))
		made++;
	word_store(WORD_MADE, made);
	return NULL;
}

static void run_small_stack(const char *argument)
{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	CHECK(pthread_attr_setstacksize(&attributes, 16384) == 0);
	CHECK(pthread_create(&thread, &attributes, ask_for_more, NULL) == 0);
	pthread_join(thread, NULL);
}

static void small_stack(void)
{
	static const char *const settings[] = { "TRANSPORT=lease", "TRANSPORT=socket",
						"TRANSPORT=lease\nLOG_LEVEL=DEBUG" };

	collector_fresh("[tenant default]\nqp = 40\n", "");
	for (unsigned i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		words_clear();
		CHECK(spawn("small_stack", settings[i]) == 0, "%s", settings[i]);
		CHECK(word_load(WORD_MADE) > 0 && word_load(WORD_MADE) <= 40);
	}
	collector_stop();
}

static void drive(void)
{
	/* Processes of other users come this way. */
	chmod(harness_path(""), 0711);
	RUN(scopes);
	RUN(small_stack);
	RUN(modes);
	RUN(family);
	RUN(transports);
	RUN(live_changes);
	RUN(draining);
	RUN(rollout);
	RUN(rollout_in_each_scope);
	RUN(rollout_beside_others);
	RUN(rollout_after_silence);
	RUN(outage);
	RUN(tenants_over_limit);
	RUN(host_over_limit);
	RUN(demand_within_limits);
	RUN(versions);
}

int main(int argc, char **argv)
{
	static const struct scenario scenarios[] = {
		{ "small_stack", run_small_stack },
		{ "member", run_member },
		{ "prober", run_prober },
		{ "drained", run_drained },
		{ "holds", run_holds },
		{ "survivor", run_survivor },
		{ "exactly", run_exactly },
		{ "exec", run_exec },
		{ "fork", run_fork },
		{ "closer", run_closer },
		{ "closed_one", run_closed_one },
		{ "late_child", run_late_child },
		{ NULL, NULL },
	};

	return harness_main(argc, argv, scenarios, drive);
}
