/* SPDX-License-Identifier: MIT */
/*
 * The limit of the host, of which the guard's tenants have a part without a question: what they do
 * not use is there for others at once, and what others hold or are guaranteed is not theirs. The
 * guard is one of files; collector and programs are real.
 */
#include <signal.h>
#include <string.h>
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

/* A program without a guard that gets exactly that many, and keeps them. */
static pid_t others_start(unsigned amount)
{
	char scenario[32];
	pid_t pid;

	snprintf(scenario, sizeof(scenario), "exactly:%uw", amount);
	word_store(WORD_READY, 0);
	pid = spawn_start(scenario, "TRANSPORT=lease\nQUIET=1\nFAIL=closed");
	NEED(word_load(WORD_READY) == 1);
	return pid;
}

static void others_end(pid_t pid)
{
	kill(pid, SIGKILL);
	spawn_wait(pid);
	EVENTUALLY(room() == HOST_LIMIT, "%llu", (unsigned long long)room());
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

static void drive(void)
{
	guard_files_prepare();
	RUN(part_of_the_guard);
	RUN(refusal_is_told);
}

int main(int argc, char **argv)
{
	static const struct scenario scenarios[] = {
		{ "exactly", member_exactly },
		{ NULL, NULL },
	};

	return harness_main(argc, argv, scenarios, drive);
}
