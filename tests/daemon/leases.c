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
	WORD_PAUSED,
};

static uint64_t load(unsigned word)
{
	return __atomic_load_n(shared_word(word), __ATOMIC_SEQ_CST);
}

static void store(unsigned word, uint64_t value)
{
	__atomic_store_n(shared_word(word), value, __ATOMIC_SEQ_CST);
}

static uint64_t add(unsigned word, uint64_t amount)
{
	return __atomic_add_fetch(shared_word(word), amount, __ATOMIC_SEQ_CST);
}

static void words_clear(void)
{
	for (unsigned word = 0; word < 16; word++)
		store(word, 0);
}

static void wait_for(unsigned word, uint64_t value)
{
	double until = seconds_now() + 120;

	while (load(word) != value) {
		if (seconds_now() > until) {
			printf("word %u is %llu, not %llu\n", word, (unsigned long long)load(word),
			       (unsigned long long)value);
			exit(1);
		}
		usleep(5000);
	}
}

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

enum { GO_ON = 1, GO_PAUSE, GO_END }; /* in WORD_GO */

/* "TENANT,MOST": takes and gives back QPs, up to MOST at once, until the driver says
 * stop. What is held is counted after it was made and before it is destroyed: so the
 * words never say too much, and a word above the limit is a violation. */
static void run_member(const char *argument)
{
	unsigned tenant = (unsigned)atoi(argument),
		 most = (unsigned)atoi(strchr(argument, ',') + 1);
	unsigned seed = (unsigned)getpid(), held = 0;
	struct ibv_qp *qp[QPS_MAX];
	struct fixture fixture;

	if (geteuid() == 0 && setresuid(FIRST_UID + tenant, FIRST_UID + tenant, FIRST_UID + tenant))
		abort();
	fixture = fixture_open();
	add(WORD_READY, 1);
	while (!load(WORD_GO))
		usleep(5000);
	while (load(WORD_GO) != GO_END) {
		if (load(WORD_GO) == GO_PAUSE) {
			add(WORD_PAUSED, 1);
			while (load(WORD_GO) == GO_PAUSE)
				usleep(5000);
		}
		if (held < most && rand_r(&seed) % 3) {
			qp[held] = qp_make(&fixture, IBV_QPT_RC);
			if (!qp[held]) {
				add(WORD_REFUSED, 1);
				CHECK(errno == EDQUOT, "errno %d", errno);
				continue;
			}
			held++;
			add(WORD_MADE, 1);
			if (add(WORD_HELD + tenant, 1) > load(WORD_TENANT_LIMIT))
				add(WORD_FAILURES, 1);
			if (add(WORD_HELD_HOST, 1) > load(WORD_HOST_LIMIT))
				add(WORD_FAILURES, 1);
		} else if (held) {
			add(WORD_HELD + tenant, -1ull);
			add(WORD_HELD_HOST, -1ull);
			CHECK(ibv_destroy_qp(qp[--held]) == 0);
		}
	}
	add(WORD_HELD + tenant, -(uint64_t)held);
	add(WORD_HELD_HOST, -(uint64_t)held);
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

static double test_seconds(double usual)
{
	const char *set = getenv("RDMA_INTERCEPT_TEST_SECONDS");

	return set && atof(set) < usual ? atof(set) : usual;
}

/* While nobody works: what the members count themselves, the collector and the kernel. */
static void counts_agree(long kernel_before)
{
	uint64_t held = load(WORD_HELD_HOST), listed = collector_tenant(NULL).used[KIND_qp];
	long kernel = kernel_qps();

	CHECK(held == listed, "held %llu, the collector says %llu", (unsigned long long)held,
	      (unsigned long long)listed);
	CHECK(kernel < 0 || held == (uint64_t)(kernel - kernel_before),
	      "held %llu, the kernel says %ld", (unsigned long long)held, kernel - kernel_before);
}

static void members_run(const char *what, unsigned most, unsigned tenant_limit, unsigned host_limit,
			bool may_refuse)
{
	pid_t pid[TENANTS * PER_TENANT];
	long before = kernel_qps();
	char line[64];

	words_clear();
	store(WORD_TENANT_LIMIT, tenant_limit);
	store(WORD_HOST_LIMIT, host_limit);
	collector_start("");
	snprintf(line, sizeof(line), "qp = %u\n", host_limit);
	CHECK(collector_set("host", line) == 0);
	snprintf(line, sizeof(line), "qp = %u\n", tenant_limit);
	CHECK(collector_set("default", line) == 0);
	for (unsigned i = 0; i < TENANTS * PER_TENANT; i++) {
		snprintf(line, sizeof(line), "member:%u,%u", i % TENANTS, most);
		pid[i] = spawn_start(line, "TRANSPORT=lease\nLOG_LEVEL=0\nQUIET=1\nFAIL=closed");
	}
	wait_for(WORD_READY, TENANTS * PER_TENANT);
	store(WORD_GO, 1);
	for (int round = 0; round < 3; round++) {
		usleep((useconds_t)(test_seconds(4) / 3 * 1e6));
		store(WORD_GO, GO_PAUSE);
		wait_for(WORD_PAUSED, TENANTS * PER_TENANT);
		counts_agree(before);
		store(WORD_PAUSED, 0);
		store(WORD_GO, round < 2 ? GO_ON : GO_END);
	}
	for (unsigned i = 0; i < TENANTS * PER_TENANT; i++)
		CHECK(spawn_wait(pid[i]) == 0, "member %u", i);
	printf("%s: %llu made, %llu refused\n", what, (unsigned long long)load(WORD_MADE),
	       (unsigned long long)load(WORD_REFUSED));
	CHECK(load(WORD_FAILURES) == 0, "%llu times over a limit",
	      (unsigned long long)load(WORD_FAILURES));
	CHECK(load(WORD_MADE) > 0);
	CHECK(may_refuse == (load(WORD_REFUSED) > 0), "%llu refused",
	      (unsigned long long)load(WORD_REFUSED));
	CHECK(collector_wait_used(NULL, KIND_qp, 0));
	CHECK(collector_tenant(NULL).granted[KIND_qp] == 0 &&
	      collector_tenant(NULL).processes == 0);
	CHECK(kernel_qps() == before);
	CHECK(collector_tenant("t0").peak[KIND_qp] <= tenant_limit);
	CHECK(collector_tenant(NULL).peak[KIND_qp] <= host_limit);
	collector_stop();
}

static void drive_tenants(void)
{
	if (geteuid() != 0) {
		printf("skipped: processes of other users need root\n");
		return;
	}
	collector_policy(tenants_policy);
	members_run("tenants over their limit", 4, 20, 1000, true);
	members_run("host over its limit", 4, 64, 70, true);
	members_run("demand within every limit", 3, 3 * PER_TENANT, 3 * TENANTS * PER_TENANT,
		    false);
}

/* ---- limits that change */

/* Tries as fast as it can, and notes when the answer changed last. */
static void run_prober(const char *argument)
{
	struct fixture fixture = fixture_open();
	bool allowed = true;

	add(WORD_READY, 1);
	while (load(WORD_GO) == 0) {
		struct ibv_qp *qp = qp_make(&fixture, IBV_QPT_RC);

		if ((qp != NULL) != allowed) {
			allowed = qp != NULL;
			store(WORD_TIME, nanoseconds());
			store(WORD_MADE, allowed);
		}
		if (qp)
			ibv_destroy_qp(qp);
	}
	fixture_close(&fixture);
}

/* From the moment before the command to the first answer that is another one. */
static double takes_effect(const char *text, bool allowed)
{
	uint64_t before = nanoseconds();

	CHECK(collector_set("tenant default", text) == 0);
	wait_for(WORD_MADE, allowed); /* the prober itself noted the time */
	return (double)(load(WORD_TIME) - before) / 1e6;
}

static int compare(const void *a, const void *b)
{
	return *(const double *)a < *(const double *)b ? -1 : 1;
}

/* The middle of many is judged: a busy machine may hold up a single one. */
static void drive_live(void)
{
	enum { ROUNDS = 40 };
	double taken[ROUNDS];
	pid_t pid;

	collector_policy("");
	collector_start("");
	words_clear();
	store(WORD_MADE, true);
	pid = spawn_start("prober", "TRANSPORT=lease\nQUIET=1\nLOG_LEVEL=0");
	wait_for(WORD_READY, 1);
	for (int round = 0; round < ROUNDS; round += 2) {
		taken[round] = takes_effect("qp = 0\n", false);
		taken[round + 1] = takes_effect("qp = 10\n", true);
	}
	qsort(taken, ROUNDS, sizeof(taken[0]), compare);
	printf("a changed limit is in force after %.2f ms, at most %.2f\n", taken[ROUNDS / 2],
	       taken[ROUNDS - 1]);
	CHECK(taken[ROUNDS / 2] < 100);
	store(WORD_GO, 1);
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
	add(WORD_READY, 1);
	wait_for(WORD_GO, 1); /* the limit is 5 now */
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

static void drive_draining(void)
{
	pid_t pid;

	collector_policy("");
	collector_start("");
	for (int scope = 0; scope < 3; scope++) {
		static const char *const section[] = { "tenant default", "host", "default" };
		static const char *const low[] = { "qp = 5\n", "qp = 5\n", "process.qp = 5\n" };
		static const char *const off[] = { "qp = unset\n", "qp = unset\n",
						   "process.qp = unset\n" };

		words_clear();
		pid = spawn_start("drained", "TRANSPORT=lease\nQUIET=1\nLOG_LEVEL=0");
		wait_for(WORD_READY, 1);
		CHECK(collector_tenant("default").used[KIND_qp] == 8);
		CHECK(collector_set(section[scope], low[scope]) == 0);
		if (scope < 2)
			CHECK(collector_tenant(scope ? NULL : "default").flags & ROW_DRAINING);
		store(WORD_GO, 1);
		CHECK(spawn_wait(pid) == 0, "scope %d", scope);
		CHECK(collector_set(section[scope], off[scope]) == 0);
	}
	collector_stop();
}

/* ---- the collector's death */

enum { GO_WORK = 1, GO_GROW, GO_GROW_AGAIN, GO_FINISH }; /* in WORD_GO */

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
	add(WORD_READY, 1);
	wait_for(WORD_GO, GO_WORK);
	while (load(WORD_GO) == GO_WORK) { /* never more than it had: never a question */
		ibv_destroy_qp(qp[2]);
		qp[2] = qp_make(&fixture, IBV_QPT_RC);
		if (!qp[2]) {
			add(WORD_FAILURES, 1);
			break;
		}
		add(WORD_MADE, 1);
	}
	wait_for(WORD_GO, GO_GROW);
	taken = nanoseconds();
	srq = ibv_create_srq(fixture.pd, &attributes);
	taken = nanoseconds() - taken;
	CHECK(!srq && errno == EDQUOT, "%s, errno %d", srq ? "made" : "refused", errno);
	CHECK(taken < 2000000000u, "%.2f s", (double)taken / 1e9);
	add(WORD_READY, 1);
	wait_for(WORD_GO, GO_GROW_AGAIN);
	sleep(1); /* so long it is not asked again */
	CHECK((srq = ibv_create_srq(fixture.pd, &attributes)) != NULL);
	add(WORD_READY, 1);
	wait_for(WORD_GO, GO_FINISH);
	ibv_destroy_srq(srq);
	for (int i = 0; i < 3; i++)
		if (qp[i])
			ibv_destroy_qp(qp[i]);
	fixture_close(&fixture);
}

static void drive_outage(void)
{
	enum { CLIENTS = 64 };
	pid_t pid[CLIENTS];
	uint64_t made;

	/* Far from the limit: nobody's credit is taken back while the collector lives. */
	collector_policy("[host]\nqp = 20000\n");
	collector_start("");
	words_clear();
	for (int i = 0; i < CLIENTS; i++)
		pid[i] = spawn_start("survivor", "TRANSPORT=lease\nQUIET=1\nLOG_LEVEL=0");
	wait_for(WORD_READY, CLIENTS);
	CHECK(collector_tenant(NULL).used[KIND_qp] == 3 * CLIENTS);
	store(WORD_GO, GO_WORK);
	usleep(500000);
	collector_kill();
	made = load(WORD_MADE);
	usleep(1000000);
	CHECK(load(WORD_MADE) > made, "nobody works without the collector");
	CHECK(load(WORD_FAILURES) == 0, "%llu failed inside their leases",
	      (unsigned long long)load(WORD_FAILURES));
	store(WORD_GO, GO_GROW);
	wait_for(WORD_READY, 2 * CLIENTS);
	collector_start("");
	CHECK(collector_tenant(NULL).processes == CLIENTS);
	CHECK(collector_tenant(NULL).used[KIND_qp] == 3 * CLIENTS, "%llu",
	      (unsigned long long)collector_tenant(NULL).used[KIND_qp]);
	store(WORD_GO, GO_GROW_AGAIN);
	wait_for(WORD_READY, 3 * CLIENTS);
	CHECK(collector_tenant(NULL).used[KIND_srq] == CLIENTS);
	/* Those that die while it is dead are found out too. */
	collector_kill();
	for (int i = 0; i < CLIENTS / 2; i++) {
		kill(pid[i], SIGKILL);
		CHECK(spawn_wait(pid[i]) == 128 + SIGKILL);
	}
	collector_start("");
	CHECK(collector_tenant(NULL).used[KIND_qp] == 3 * CLIENTS / 2, "%llu",
	      (unsigned long long)collector_tenant(NULL).used[KIND_qp]);
	store(WORD_GO, GO_FINISH);
	for (int i = CLIENTS / 2; i < CLIENTS; i++)
		CHECK(spawn_wait(pid[i]) == 0);
	CHECK(collector_wait_used(NULL, KIND_qp, 0));
	CHECK(collector_tenant(NULL).granted[KIND_qp] == 0);
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
	add(WORD_READY, 1);
	if (strchr(argument, 'w')) /* to be killed */
		pause();
	while (made)
		ibv_destroy_qp(qp[--made]);
	fixture_close(&fixture);
}

static void expect(const char *scenario, const char *settings)
{
	char all[512];

	snprintf(all, sizeof(all), "TRANSPORT=lease\nQUIET=1\n%s", settings);
	spawn(scenario, all);
	snprintf(all, sizeof(all), "TRANSPORT=socket\nQUIET=1\n%s", settings);
	spawn(scenario, all);
}

static void drive_scopes(void)
{
	pid_t pid;

	collector_policy("[host]\nqp = 12\ndevice.rxe0.qp = 11\n"
			 "[default]\nqp = 10\ndevice.rxe0.qp = 9\n"
			 "process.qp = 8\nprocess.device.rxe0.qp = 7\n");
	collector_start("RDMA_INTERCEPT_MAX_GLOBAL_QP=3\n"); /* the file's goes first */
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
	wait_for(WORD_READY, 1);
	expect("exactly:0", "");
	kill(pid, SIGKILL);
	spawn_wait(pid);
	expect("exactly:12", "");
	words_clear();
	pid = spawn_start("exactly:12w", "TRANSPORT=socket\nQUIET=1");
	wait_for(WORD_READY, 1);
	CHECK(collector_process(pid).used[KIND_qp] == 12 &&
	      collector_process(pid).flags & ROW_SOCKET);
	expect("exactly:0", "");
	kill(pid, SIGKILL);
	spawn_wait(pid);
	expect("exactly:12", "");
	/* Without a file, the environment of the collector is what counts. */
	collector_stop();
	collector_policy("");
	unlink(harness_path("state/runtime.conf"));
	collector_start("RDMA_INTERCEPT_MAX_GLOBAL_QP=3\n");
	expect("exactly:3", "");
	collector_stop();
}

static void drive_modes(void)
{
	pid_t pid;

	collector_policy("[default]\nqp = 2\nmode = audit\n");
	collector_start("");
	log_clear();
	expect("exactly:64", "QUIET=0");
	CHECK(!strstr(stderr_text(), "qp used"), "%s", stderr_text());
	words_clear();
	pid = spawn_start("exactly:64w", "TRANSPORT=lease");
	wait_for(WORD_READY, 1);
	CHECK(collector_tenant("default").used[KIND_qp] == 64);
	CHECK(collector_tenant("default").granted[KIND_qp] == 2);
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
	wait_for(WORD_READY, 1);
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
	pid = fork();
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

	add(WORD_READY, 1);
	wait_for(WORD_GO, 1);
	pid = fork();
	if (pid == 0) {
		CHECK(!qp_make(&fixture, IBV_QPT_RC) && errno == EDQUOT);
		add(WORD_READY, 1);
		wait_for(WORD_GO, 2);
		sleep(2);
		CHECK(qp_make(&fixture, IBV_QPT_RC) != NULL);
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
	add(WORD_READY, 1);
	pause();
}

static void drive_family(void)
{
	pid_t pid;

	collector_policy("[default]\nqp = 2\n");
	collector_start("");
	expect("exec", "");
	expect("fork", "");
	expect("closer", "");
	CHECK(collector_wait_used(NULL, KIND_qp, 0));
	words_clear();
	pid = spawn_start("late_child", "TRANSPORT=lease\nQUIET=1\nFAIL=open");
	wait_for(WORD_READY, 1);
	collector_kill();
	store(WORD_GO, 1);
	wait_for(WORD_READY, 2);
	collector_start("");
	store(WORD_GO, 2);
	CHECK(spawn_wait(pid) == 0);
	/* Its page is not found again: then what it was granted counts as used. */
	words_clear();
	pid = spawn_start("closed_one", "TRANSPORT=lease\nQUIET=1");
	wait_for(WORD_READY, 1);
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

static void drive_transports(void)
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
	collector_policy("");
	collector_start("");
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

static void drive_versions(void)
{
	struct proto_header wrong = proto_header(MESSAGE_PING, 0, 0);
	char problem[PROTO_TEXT];
	const char *text;

	collector_policy("");
	collector_start("");
	text = refuses_to_start();
	CHECK(strstr(text, "another collector") && strstr(text, "exit 1"), "%s", text);
	collector_stop();
	patch("state/ledger", 8, 77);
	text = refuses_to_start();
	CHECK(strstr(text, "/state/ledger: has the layout version 77, this collector needs 1") &&
		      strstr(text, "exit 1"),
	      "%s", text);
	patch("state/ledger", 8, 1);
	collector_start("");
	collector_stop();
	/* Anything in the book that leads nowhere is damage, not a crash. */
	patch("state/ledger", 40, 0x7fffffff);
	text = refuses_to_start();
	CHECK(strstr(text, "is damaged") && strstr(text, "exit 1"), "%s", text);
	wrong.version = 9;
	CHECK(proto_check(&wrong, PROTO_REQUEST_MAX, problem, sizeof(problem)) == -EPROTO);
	CHECK(strstr(problem, "version 9") && strstr(problem, "version 2"), "%s", problem);
}

static void drive(void)
{
	/* Processes of other users come this way. */
	chmod(harness_path(""), 0711);
	drive_scopes();
	drive_modes();
	drive_family();
	drive_transports();
	drive_live();
	drive_draining();
	drive_outage();
	drive_tenants();
	drive_versions();
}

int main(int argc, char **argv)
{
	static const struct scenario scenarios[] = {
		{ "member", run_member },
		{ "prober", run_prober },
		{ "drained", run_drained },
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
