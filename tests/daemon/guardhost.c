/* SPDX-License-Identifier: MIT */
/*
 * The limit of the host, of which the guard's tenants have a part without a question: what they do
 * not use is there for others at once, and what others hold or are guaranteed is not theirs. The
 * guard is one of files; collector and programs are real.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guardfiles.h"
#include "member.h"

enum { HOST_LIMIT = 10 };

static uint64_t room(void)
{
	return __atomic_load_n(&guard_limits[GUARD_HOST].limit[KIND_qp], __ATOMIC_SEQ_CST);
}

/* As the programs in the kernel do it. */
static void held_set(const char *cgroup, __s64 amount)
{
	guard_counts[guard_slot(cgroup)].used[KIND_qp] = amount;
	guard_counts[GUARD_HOST].used[KIND_qp] = amount;
}

/* A process that keeps what the scenario makes, once it is there. */
static pid_t holder_start(const char *scenario)
{
	pid_t pid;

	word_store(WORD_READY, 0);
	pid = spawn_start(scenario, "TRANSPORT=lease\nQUIET=1\nFAIL=closed");
	NEED(word_load(WORD_READY) == 1);
	return pid;
}

static void holder_end(pid_t pid)
{
	kill(pid, SIGKILL);
	spawn_wait(pid);
}

/* A program without a guard that gets exactly that many, and keeps them. */
static pid_t others_start(unsigned amount)
{
	char scenario[32];
	pid_t pid;

	snprintf(scenario, sizeof(scenario), "exactly:%uw", amount);
	pid = holder_start(scenario);
	/* It is killed later, so that its own checks count for nothing. */
	CHECK(collector_wait_used(NULL, KIND_qp, amount), "%llu, not %u",
	      (unsigned long long)collector_tenant(NULL).used[KIND_qp], amount);
	return pid;
}

static void others_end(pid_t pid)
{
	holder_end(pid);
	EVENTUALLY(room() == HOST_LIMIT, "%llu", (unsigned long long)room());
}

/* "exactly" as another user. */
static void run_other_user(const char *argument)
{
	if (setresuid(FIRST_UID, FIRST_UID, FIRST_UID))
		abort();
	member_exactly(argument);
}

static void run_one(const char *argument)
{
	struct fixture fixture = member_fixture();

	CHECK(qp_make(&fixture, IBV_QPT_RC));
	word_add(WORD_READY, 1);
	pause();
}

static void part_of_the_guard(void)
{
	pid_t pid;

	guard_fresh("[host]\nqp = 10\n[tenant a]\nmatch = cgroup=/a\nqp = 9\nguard = on\n");
	EVENTUALLY(room() == HOST_LIMIT);
	CHECK(guard_limits[guard_slot("/a")].host_limited);
	/* All that the guard's tenant does not use, in the moment that it is asked for. */
	held_set("/a", 4);
	pid = others_start(6);
	CHECK(room() <= 4, "%llu", (unsigned long long)room());
	EVENTUALLY(room() == 4, "%llu", (unsigned long long)room());
	/* The collector knows it again after its death. */
	collector_kill();
	collector_start(guard_variables);
	CHECK(room() == 4, "%llu", (unsigned long long)room());
	held_set("/a", 0);
	others_end(pid);
	others_end(others_start(HOST_LIMIT));
	/* A guarantee of the guard's tenant is not lent, */
	CHECK(collector_set("tenant a", "guarantee.qp = 3") == 0);
	others_end(others_start(7));
	/* nor that of others. */
	CHECK(collector_set("tenant a", "guarantee.qp = unset") == 0);
	CHECK(collector_set("tenant default", "guarantee.qp = 2") == 0);
	EVENTUALLY(room() == 8, "%llu", (unsigned long long)room());
	/* One that is merely watched is refused nothing. */
	CHECK(collector_set("tenant a", "mode = audit") == 0);
	CHECK(!guard_limits[guard_slot("/a")].host_limited);
	CHECK(collector_set("host", "qp = unlimited") == 0);
	CHECK(room() == UNLIMITED);
	collector_stop();
}

static void refusal_is_told(void)
{
	char line[64];
	pid_t pid = getpid();

	guard_fresh("[host]\nqp = 10\n[tenant a]\nmatch = cgroup=/a\nqp = 9\nguard = on\n");
	EVENTUALLY(guard_slot("/a"));
	guard_log(GUARD_HOST_REFUSED, guard_slot("/a"), pid, KIND_qp, 4);
	EVENTUALLY(told_of(pid).count == 1);
	CHECK(told_of(pid).last.scope == SCOPE_HOST && told_of(pid).last.limit == HOST_LIMIT);
	snprintf(line, sizeof(line), "explain %d-1", (int)pid);
	CHECK(strstr(command_output(line), "Refused in the kernel (guard of tenant a)."), "%s",
	      command_output(line));
	collector_stop();
}

/* The request with which pressure begins: what the guard's tenant has was counted before. */
static void pressure_begins(void)
{
	guard_fresh("[host]\nqp = 10\n[tenant a]\nmatch = cgroup=/a\nqp = 9\nguard = on\n");
	held_set("/a", 4);
	EVENTUALLY(collector_tenant("a").limit[KIND_qp] == 9 && room() == HOST_LIMIT);
	sleep(2); /* it is read each second */
	holder_end(others_start(6));
	collector_stop();
}

/* What the guard has not counted yet, or does not limit, is no part of what its tenants may have. */
static void guard_comes_and_goes(void)
{
	uint64_t most = 0;
	pid_t pid, other;

	guard_fresh("[host]\nqp = 10\n[tenant a]\nmatch = cgroup=/a\nguard = on\n"
		    "[tenant b]\nmatch = cgroup=/b\nmatch = uid=0\nqp = 6\nguard = off\n");
	EVENTUALLY(room() == HOST_LIMIT);
	pid = others_start(6);
	EVENTUALLY(room() == 4, "%llu", (unsigned long long)room());
	CHECK(collector_set("tenant b", "guard = on") == 0);
	for (double begun = seconds_now(); seconds_now() - begun < 1.5; usleep(1000))
		most = room() > most ? room() : most;
	CHECK(most == 4, "the guard's tenants may have %llu beside 6 of 10", (unsigned long long)most);
	other = holder_start("other_user:4w");
	CHECK(collector_wait_used(NULL, KIND_qp, HOST_LIMIT));
	CHECK(room() == 0, "%llu", (unsigned long long)room());
	holder_end(other);
	CHECK(collector_set("tenant b", "guard = off") == 0);
	EVENTUALLY(room() == 4, "%llu", (unsigned long long)room());
	holder_end(pid);
	collector_stop();
}

/* Processes of a guarded tenant by a line that the kernel cannot decide by are not counted there. */
static void other_lines(void)
{
	pid_t pid;

	guard_fresh("[host]\nqp = 10\n[tenant a]\nmatch = cgroup=/a\nguard = on\n"
		    "[tenant b]\nmatch = cgroup=/b\nmatch = uid=0\nguard = on\n");
	EVENTUALLY(room() == HOST_LIMIT && guard_slot("/b"));
	__atomic_store_n(&guard_head->counted, guard_head->epoch, __ATOMIC_SEQ_CST);
	pid = others_start(HOST_LIMIT);
	CHECK(room() == 0, "%llu", (unsigned long long)room());
	others_end(pid);
	/* One that was switched off is not limited any more. */
	CHECK(collector_set("tenant b", "guard = off") == 0);
	pid = others_start(HOST_LIMIT);
	CHECK(room() == 0, "%llu", (unsigned long long)room());
	others_end(pid);
	collector_stop();
}

/* The cgroup of this process; "" if there is none with a name that a pattern can have. */
static const char *own_cgroup(void)
{
	static char path[128];
	char line[256];
	FILE *file = fopen("/proc/self/cgroup", "re");

	path[0] = '\0';
	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, "0::/", 4) && strlen(line) < sizeof(path) &&
		    !strpbrk(line, "*?[ ,"))
			snprintf(path, sizeof(path), "%.*s", (int)strcspn(line + 3, "\n"), line + 3);
	if (file)
		fclose(file);
	return path;
}

/* Of a tenant that the guard holds all is counted there, once it is attached and has counted. */
static void held_by_the_guard(void)
{
	char policy[512];
	pid_t pid;

	if (!own_cgroup()[0])
		skip("this process is in no cgroup of the unified hierarchy");
	for (size_t i = 1; own_cgroup()[i]; i++)
		if (own_cgroup()[i + 1] == '/' || !own_cgroup()[i + 1]) {
			snprintf(policy, sizeof(policy), "%.*s", (int)i + 1, own_cgroup());
			cgroup_make(policy);
		}
	snprintf(policy, sizeof(policy),
		 "[host]\nqp = 10\n[tenant a]\nmatch = cgroup=/a\nguard = on\n"
		 "[tenant d]\nmatch = cgroup=%s\nguard = on\n",
		 own_cgroup());
	guard_fresh(policy);
	guard_head->counted = 0;
	pid = others_start(HOST_LIMIT);
	CHECK(room() == 0, "it has not counted: %llu", (unsigned long long)room());
	__atomic_store_n(&guard_head->counted, guard_head->epoch, __ATOMIC_SEQ_CST);
	EVENTUALLY(room() == HOST_LIMIT, "%llu", (unsigned long long)room());
	__atomic_store_n(&guard_head->armed, 0, __ATOMIC_SEQ_CST);
	EVENTUALLY(room() == 0, "it is not attached: %llu", (unsigned long long)room());
	holder_end(pid);
	collector_stop();
}

/* Credit that others do not use is there for a guarded tenant that is refused. */
static void idle_credit(void)
{
	pid_t pid;

	guard_fresh("[host]\nqp = 400\n[tenant a]\nmatch = cgroup=/a\nqp = 9\nguard = on\n");
	EVENTUALLY(room() == 400);
	pid = holder_start("one");
	EVENTUALLY(room() < 399, "%llu", (unsigned long long)room());
	CHECK(collector_set("host", "qp = 2") == 0);
	EVENTUALLY((guard_counts[guard_slot("/a")].refused[KIND_qp]++,
		    guard_counts[GUARD_HOST].refused[KIND_qp]++, room() == 1),
		   "%llu", (unsigned long long)room());
	holder_end(pid);
	collector_stop();
}

static void drive(void)
{
	if (geteuid() != 0)
		skip("only root can make processes of several users");
	guard_files_prepare();
	chmod(harness_path(""), 0711); /* processes of other users come this way */
	RUN(part_of_the_guard);
	RUN(pressure_begins);
	RUN(guard_comes_and_goes);
	RUN(other_lines);
	RUN(held_by_the_guard);
	RUN(idle_credit);
	RUN(refusal_is_told);
}

int main(int argc, char **argv)
{
	static const struct scenario scenarios[] = {
		{ "exactly", member_exactly },
		{ "other_user", run_other_user },
		{ "one", run_one },
		{ NULL, NULL },
	};

	return harness_main(argc, argv, scenarios, drive);
}
