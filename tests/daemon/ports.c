/* SPDX-License-Identifier: MIT */
/*
 * Limits of a port: a QP takes its place there from the modify to INIT on and gives it back on
 * RESET, on a move and at its end, an address handle has one while it lives. The limits hold
 * exactly, through failed calls, through the death of programs and of the collector, and when they
 * change while programs run.
 */
#include "collector.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fakeverbs.h"
#include "fixture.h"
#include "harness.h"
#include "member.h"

enum { QPS = 6, EVERYBODY = 6 };

static uint64_t on_port(enum kind kind, unsigned port)
{
	return collector_tenant(NULL).used[kind_on_port(kind, port)];
}

static int port_enter(struct ibv_qp *qp, unsigned port)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = (uint8_t)port };

	return ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS);
}

static int state_set(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

static struct ibv_ah *ah_make(struct fixture *fixture, unsigned port)
{
	struct ibv_ah_attr attr = { .port_num = (uint8_t)port };

	return ibv_create_ah(fixture->pd, &attr);
}

static unsigned long modify_calls(void)
{
	return fake_calls("ibv_modify_qp");
}

/* ---- one program */

/* "LIMIT": of that many QPs on port 1, by whatever scope; port 2 has none. */
static void run_life(const char *argument)
{
	unsigned limit = (unsigned)atoi(argument);
	struct fixture fixture = fixture_open();
	struct ibv_qp_attr alternate = { .alt_port_num = 1 };
	struct ibv_qp *qp[QPS];
	struct ibv_ah *ah[2];
	unsigned long calls;

	for (unsigned i = 0; i < QPS; i++)
		CHECK((qp[i] = qp_make(&fixture, IBV_QPT_RC)) != NULL);
	errno = 0;
	for (unsigned i = 0; i < limit; i++)
		CHECK(port_enter(qp[i], 1) == 0 && errno == 0, "%u, errno %d", i, errno);
	/* Full: refused, before the real verb is called. */
	calls = modify_calls();
	CHECK(port_enter(qp[limit], 1) == EDQUOT && errno == EDQUOT, "errno %d", errno);
	CHECK(modify_calls() == calls && qp[limit]->state == IBV_QPS_RESET);
	/* The other port has no limit, and who is on the port already may say so again. */
	CHECK(port_enter(qp[limit], 2) == 0);
	CHECK(port_enter(qp[0], 1) == 0);
	/* An alternate path does not count. */
	CHECK(ibv_modify_qp(qp[limit], &alternate, IBV_QP_ALT_PATH) == 0);
	/* Nor does a move to a full port happen in part. */
	CHECK(port_enter(qp[limit], 1) == EDQUOT);
	/* Other states stay on the port; RESET leaves it. */
	CHECK(state_set(qp[0], IBV_QPS_ERR) == 0 && port_enter(qp[limit], 1) == EDQUOT);
	CHECK(state_set(qp[0], IBV_QPS_RESET) == 0 && port_enter(qp[limit], 1) == 0);
	CHECK(port_enter(qp[0], 1) == EDQUOT && port_enter(qp[0], 2) == 0);
	/* A move gives the old place back. */
	CHECK(port_enter(qp[limit], 2) == 0 && port_enter(qp[0], 1) == 0);
	CHECK(port_enter(qp[limit], 1) == EDQUOT);
	/* A call that fails gives back what it took, and nothing else. */
	CHECK(state_set(qp[0], IBV_QPS_RESET) == 0);
	for (int i = 0; i < 10; i++) {
		fake_set("ibv_modify_qp", FAKE_CODE, EINVAL, 0, 1);
		CHECK(port_enter(qp[limit], 1) == EINVAL);
	}
	CHECK(port_enter(qp[limit], 1) == 0 && port_enter(qp[0], 1) == EDQUOT);
	fake_set("ibv_modify_qp", FAKE_CODE, EINVAL, 0, 1);
	CHECK(state_set(qp[limit], IBV_QPS_RESET) == EINVAL && port_enter(qp[0], 1) == EDQUOT);
	/* So does the end of a QP. */
	CHECK(ibv_destroy_qp(qp[limit]) == 0 && port_enter(qp[0], 1) == 0);
	/* Ports that are not counted have no limits. */
	CHECK(port_enter(qp[QPS - 1], 200) == 0 && state_set(qp[QPS - 1], IBV_QPS_RESET) == 0);
	/* Two address handles. */
	CHECK((ah[0] = ah_make(&fixture, 1)) && (ah[1] = ah_make(&fixture, 1)));
	CHECK(!ah_make(&fixture, 1) && errno == EDQUOT);
	CHECK(ibv_destroy_ah(ah[0]) == 0);
	CHECK((ah[0] = ah_make(&fixture, 2)) != NULL);
	fake_set("ibv_create_ah", FAKE_FAIL, ENOMEM, 0, 1);
	CHECK(!ah_make(&fixture, 1) && errno == ENOMEM);
	CHECK(ibv_destroy_ah(ah[0]) == 0 && (ah[0] = ah_make(&fixture, 1)));
	ibv_destroy_ah(ah[0]);
	ibv_destroy_ah(ah[1]);
	for (unsigned i = 0; i < QPS; i++)
		if (i != limit)
			CHECK(ibv_destroy_qp(qp[i]) == 0);
	fixture_close(&fixture);
}

static void scopes(void)
{
	static const char *const policies[] = {
		"[host]\nport.rxe0/1.qp = 3\nport.rxe0/1.ah = 2\n",
		"[default]\nport.rxe0/1.qp = 3\nport.rxe0/1.ah = 2\n",
		"[default]\nprocess.port.rxe0/1.qp = 3\nprocess.port.rxe0/1.ah = 2\n",
		/* a limit of another device, or of another port, is not in the way */
		"[host]\nport.rxe0/1.qp = 3\nport.rxe0/1.ah = 2\nport.rxe1/1.qp = 0\n"
		"port.rxe0/3.qp = 0\n[default]\nport.rxe0/1.qp = 4\nprocess.port.rxe0/1.qp = 5\n",
	};

	for (unsigned i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
		collector_fresh(policies[i], "");
		member_expect("life:3", "");
		CHECK(collector_wait_used(NULL, (enum kind)kind_on_port(KIND_qp, 1), 0));
		CHECK(on_port(KIND_qp, 2) == 0 && on_port(KIND_ah, 1) == 0);
		collector_stop();
	}
	/* The program's own, beside a collector. */
	collector_fresh("", "");
	member_expect("life:3", "LIMITS=port:rxe0/1:qp=3,ah=2");
	collector_stop();
}

/* ---- several programs */

/* "N[w]": gets exactly N of QPS QPs onto port 1; with w it keeps them until it is killed. */
static void run_fill(const char *argument)
{
	unsigned wanted = (unsigned)atoi(argument), got = 0;
	struct fixture fixture = member_fixture();

	for (unsigned i = 0; i < QPS; i++) {
		struct ibv_qp *qp = qp_make(&fixture, IBV_QPT_RC);

		CHECK(qp != NULL);
		got += qp && port_enter(qp, 1) == 0;
	}
	CHECK(got == wanted, "%u, not %u", got, wanted);
	word_add(WORD_MADE, got);
	word_add(WORD_READY, 1);
	if (strchr(argument, 'w')) /* to be killed */
		pause();
}

/* Who is killed gives everything back, also while there is no collector. */
static void killed(void)
{
	static const char *const transports[] = { "TRANSPORT=lease\nQUIET=1",
						  "TRANSPORT=socket\nQUIET=1" };

	for (unsigned i = 0; i < 2; i++) {
		pid_t pid;

		collector_fresh("[host]\nport.rxe0/1.qp = 4\n", "");
		words_clear();
		pid = spawn_start("fill:4w", transports[i]);
		NEED(word_load(WORD_READY) == 1);
		CHECK(on_port(KIND_qp, 1) == 4);
		spawn("fill:0", transports[i]);
		/* A new collector knows of them. */
		collector_kill();
		collector_start("");
		CHECK(collector_wait_used(NULL, (enum kind)kind_on_port(KIND_qp, 1), 4));
		spawn("fill:0", transports[i]);
		kill(pid, SIGKILL);
		CHECK(spawn_wait(pid) == 128 + SIGKILL);
		CHECK(collector_wait_used(NULL, (enum kind)kind_on_port(KIND_qp, 1), 0));
		words_clear();
		pid = spawn_start("fill:4w", transports[i]);
		NEED(word_load(WORD_READY) == 1);
		collector_kill();
		kill(pid, SIGKILL);
		CHECK(spawn_wait(pid) == 128 + SIGKILL);
		collector_start("");
		CHECK(collector_wait_used(NULL, (enum kind)kind_on_port(KIND_qp, 1), 0));
		spawn("fill:4", transports[i]);
		collector_stop();
	}
}

enum { WORD_ON_PORT = WORD_OWN, WORD_REFUSED, WORD_STAGE };

/* Puts QPs onto the port and takes them off; counted after and before. */
static void run_crowd(const char *argument)
{
	struct fixture fixture = member_fixture();
	unsigned seed = (unsigned)getpid(), limit = (unsigned)atoi(argument);
	struct ibv_qp *qp[QPS];
	bool there[QPS] = { false };

	for (unsigned i = 0; i < QPS; i++)
		CHECK((qp[i] = qp_make(&fixture, IBV_QPT_RC)) != NULL);
	for (unsigned step = 0; step < 400 * test_factor(); step++) {
		unsigned i = (unsigned)rand_r(&seed) % QPS;

		if (there[i]) {
			word_add(WORD_ON_PORT, -1ull);
			CHECK((rand_r(&seed) % 2 ? port_enter(qp[i], 2) :
						   state_set(qp[i], IBV_QPS_RESET)) == 0);
			there[i] = false;
		} else if (port_enter(qp[i], 1) == 0) {
			there[i] = true;
			if (word_add(WORD_ON_PORT, 1) > limit)
				word_add(WORD_FAILURES, 1);
		} else {
			CHECK(errno == EDQUOT);
			word_add(WORD_REFUSED, 1);
		}
	}
	/* The last one finds the port full of what the others hold. */
	word_add(WORD_STAGE, 1);
	EVENTUALLY(word_load(WORD_STAGE) == EVERYBODY);
	for (unsigned i = 0; i < QPS; i++)
		if (there[i])
			word_add(WORD_ON_PORT, -1ull);
	/* It ends with what it holds. */
}

static void crowd(void)
{
	enum { LIMIT = 10 };
	pid_t pid[EVERYBODY];

	collector_fresh("[default]\nport.rxe0/1.qp = 10\n", "");
	words_clear();
	for (unsigned i = 0; i < EVERYBODY; i++)
		pid[i] = spawn_start("crowd:10", "TRANSPORT=lease\nQUIET=1\nLOG_LEVEL=0");
	for (unsigned i = 0; i < EVERYBODY; i++)
		CHECK(spawn_wait(pid[i]) == 0);
	printf("%llu refused\n", (unsigned long long)word_load(WORD_REFUSED));
	CHECK(word_load(WORD_FAILURES) == 0 && word_load(WORD_REFUSED) > 0);
	CHECK(collector_tenant(NULL).peak[kind_on_port(KIND_qp, 1)] <= LIMIT);
	CHECK(collector_wait_used(NULL, (enum kind)kind_on_port(KIND_qp, 1), 0));
	EVENTUALLY(collector_tenant(NULL).granted[kind_on_port(KIND_qp, 1)] == 0);
	collector_stop();
}

/* ---- changes */

/* Has four QPs on the port before there is a limit; then follows what the driver sets. */
static void run_follow(const char *argument)
{
	struct fixture fixture = member_fixture();
	struct ibv_qp *qp[QPS];

	for (unsigned i = 0; i < QPS; i++)
		CHECK((qp[i] = qp_make(&fixture, IBV_QPT_RC)) != NULL);
	for (unsigned i = 0; i < 4; i++)
		CHECK(port_enter(qp[i], 1) == 0);
	word_add(WORD_STAGE, 1);
	word_await(WORD_GO, 1); /* the limit is 2: four stay, and none comes back */
	for (unsigned held = 4; held > 2; held--) {
		CHECK(port_enter(qp[4], 1) == EDQUOT, "with %u held", held);
		CHECK(state_set(qp[held - 1], IBV_QPS_RESET) == 0);
		CHECK(port_enter(qp[held - 1], 1) == EDQUOT);
	}
	CHECK(state_set(qp[1], IBV_QPS_RESET) == 0 && port_enter(qp[1], 1) == 0);
	word_add(WORD_STAGE, 1);
	word_await(WORD_GO, 2); /* there is none */
	for (unsigned i = 0; i < QPS; i++)
		CHECK(port_enter(qp[i], 1) == 0);
	word_add(WORD_STAGE, 1);
	word_await(WORD_GO, 3);
}

static void changes(void)
{
	pid_t pid;

	collector_fresh("", "");
	words_clear();
	pid = spawn_start("follow", "TRANSPORT=lease\nQUIET=1");
	NEED(word_load(WORD_STAGE) == 1);
	/* Counted without any limit. */
	CHECK(on_port(KIND_qp, 1) == 4 && on_port(KIND_qp, 2) == 0);
	CHECK(collector_set("tenant default", "port.rxe0/1.qp = 2\n") == 0);
	CHECK(on_port(KIND_qp, 1) == 4);
	spawn("fill:0", "TRANSPORT=lease\nQUIET=1");
	word_store(WORD_GO, 1);
	NEED(word_load(WORD_STAGE) == 2);
	CHECK(on_port(KIND_qp, 1) == 2);
	spawn("fill:0", "TRANSPORT=lease\nQUIET=1");
	CHECK(collector_set("tenant default", "port.rxe0/1.qp = unset\n") == 0);
	word_store(WORD_GO, 2);
	NEED(word_load(WORD_STAGE) == 3);
	CHECK(on_port(KIND_qp, 1) == QPS);
	word_store(WORD_GO, 3);
	CHECK(spawn_wait(pid) == 0);
	collector_stop();
}

/* ---- without questions */

/* Nobody asks for a port of which the policy does not speak: it works without a collector, too. */
static void run_quiet(const char *argument)
{
	struct fixture fixture = member_fixture();
	struct ibv_qp *qp[QPS];

	for (unsigned i = 0; i < QPS; i++)
		CHECK((qp[i] = qp_make(&fixture, IBV_QPT_RC)) != NULL);
	word_add(WORD_STAGE, 1);
	word_await(WORD_GO, 1); /* the collector is gone */
	for (unsigned i = 0; i < QPS; i++)
		CHECK(port_enter(qp[i], 1 + i % PORTS_COUNTED) == 0);
	for (unsigned i = 0; i < QPS; i++)
		CHECK(port_enter(qp[i], 1) == 0);
	word_add(WORD_STAGE, 1);
	word_await(WORD_GO, 2);
}

static void unlimited(void)
{
	pid_t pid;

	collector_fresh("[default]\nqp = 20\n", "");
	words_clear();
	pid = spawn_start("quiet", "TRANSPORT=lease\nQUIET=1");
	NEED(word_load(WORD_STAGE) == 1);
	collector_kill();
	word_store(WORD_GO, 1);
	NEED(word_load(WORD_STAGE) == 2);
	collector_start("");
	CHECK(collector_wait_used(NULL, (enum kind)kind_on_port(KIND_qp, 1), QPS));
	word_store(WORD_GO, 2);
	CHECK(spawn_wait(pid) == 0);
	collector_stop();
}

/* ---- modes, and words */

static void modes(void)
{
	static const char *const tolerant[] = { "warn", "audit" };
	char policy[96];

	for (unsigned i = 0; i < 2; i++) {
		snprintf(policy, sizeof(policy), "[default]\nmode = %s\nport.rxe0/1.qp = 2\n",
			 tolerant[i]);
		collector_fresh(policy, "");
		log_clear();
		member_expect("fill:6", "");
		CHECK(collector_tenant(NULL).tolerated[kind_on_port(KIND_qp, 1)] == 8);
		CHECK((strstr(log_text(), "over limit, allowed: ibv_modify_qp") != NULL) == !i,
		      "%s", log_text());
		collector_stop();
	}
	collector_fresh("[default]\nport.rxe0/1.qp = 2\n", "");
	log_clear();
	spawn("fill:2", "TRANSPORT=lease");
	CHECK(strstr(log_text(),
		     "refused ibv_modify_qp: tenant=default device=rxe0/1 qp used 2/2, wanted 1 "
		     "more, limit of the tenant on the port, from policy.conf:2 [default], event ") != NULL,
	      "%s", log_text());
	CHECK(collector_tenant(NULL).refused[KIND_qp] == 4);
	collector_stop();
}

static void drive(void)
{
	RUN(scopes);
	RUN(killed);
	RUN(crowd);
	RUN(changes);
	RUN(unlimited);
	RUN(modes);
}

int main(int argc, char **argv)
{
	static const struct scenario scenarios[] = {
		{ "life", run_life },	  { "fill", run_fill },	  { "crowd", run_crowd },
		{ "follow", run_follow }, { "quiet", run_quiet }, { NULL, NULL },
	};

	return harness_main(argc, argv, scenarios, drive);
}
