/* SPDX-License-Identifier: MIT */
/*
 * 64 processes of 4 tenants: limits of tenants and of the host hold exactly and refuse nobody
 * without need. On the stand-in; in the lab, where the kernel has real devices, its counts are
 * compared too.
 */
#include "collector.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fixture.h"
#include "harness.h"
#include "member.h"

enum { TENANTS = 4, PER_TENANT = 16 };
enum { MEMBERS = TENANTS * PER_TENANT };

enum {
	WORD_REFUSED = WORD_OWN,
	WORD_HELD_HOST,
	WORD_HELD, /* one for each tenant */
	WORD_TENANT_LIMIT = WORD_HELD + TENANTS,
	WORD_HOST_LIMIT,
	WORD_STEPS, /* of a member between two pauses */
};

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

static void drive(void)
{
	/* Processes of other users come this way. */
	chmod(harness_path(""), 0711);
	RUN(tenants_over_limit);
	RUN(host_over_limit);
	RUN(demand_within_limits);
}

int main(int argc, char **argv)
{
	static const struct scenario scenarios[] = {
		{ "member", run_member },
		{ NULL, NULL },
	};

	return harness_main(argc, argv, scenarios, drive);
}
