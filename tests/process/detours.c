/* SPDX-License-Identifier: MIT */
/*
 * Verbs that are called, left or interrupted in unusual ways: by destructors after ours, by
 * siglongjmp out of a verb, by handlers of signals in the middle of one, on other stacks. Each
 * is counted, and limits hold.
 */
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "fakeverbs.h"
#include "fixture.h"
#include "harness.h"

extern void (*late_work)(void); /* of libraries/late.c */

enum { LIMIT = 10 };

static struct fixture fixture;
static char memory[MR_LENGTH];

static unsigned make_qps(unsigned wanted)
{
	unsigned made = 0;

	while (made < wanted && qp_make(&fixture, IBV_QPT_RC))
		made++;
	return made;
}

/* ---- the end of the process */

static void make_late(void)
{
	fixture = fixture_open();
	word_store(0, make_qps(2 * LIMIT));
	word_store(1, (uint64_t)errno);
}

/* Nothing is held when our own destructor runs, or a little is. */
static void ends(const char *argument)
{
	fixture = fixture_open();
	CHECK(make_qps(2) == 2);
	if (!strcmp(argument, "empty")) {
		fixture_close(&fixture);
		fixture = fixture_open();
		fixture_close(&fixture);
	}
	late_work = make_late;
}

/* The same where the parent made nothing and the child ends by exit(). */
static void after_destructors(const char *scenario)
{
	uint64_t held = strstr(scenario, "holding") ? 2 : 0;

	words_clear();
	shm_remove();
	spawn(scenario, "LIMITS=process:qp=10");
	CHECK(word_load(0) == LIMIT - held && word_load(1) == EDQUOT,
	      "%llu made after our destructor at a limit of %d, errno %llu",
	      (unsigned long long)word_load(0), LIMIT, (unsigned long long)word_load(1));
	CHECK(used(KIND_qp) == 0 && used(KIND_ctx) == 0, "the process is gone, its seat as well");
}

/* ---- leaving a verb */

static sigjmp_buf before_verb;

static void jump(int number)
{
	siglongjmp(before_verb, 1);
}

/* Deeper than the verb that was left, and not. */
static __attribute__((noinline)) unsigned make_qps_deep(unsigned wanted)
{
	volatile char room[65536];

	room[0] = 1;
	return make_qps(wanted) + (room[0] - 1u);
}

/* What the left verb made is known to nobody: its charge stays. Everything after it counts. */
static void jumps(const char *argument)
{
	fixture = fixture_open();
	signal(SIGUSR1, jump);
	fake_set("ibv_create_qp", FAKE_RAISE, SIGUSR1, 0, 1);
	if (!sigsetjmp(before_verb, 1)) {
		CHECK(!make_qps(1), "the verb came back");
	} else {
		unsigned made = strcmp(argument, "deep") ? make_qps(4 * LIMIT) :
							   make_qps_deep(4 * LIMIT);

		CHECK(made == LIMIT - 1 && errno == EDQUOT, "%u made at a limit of %d", made,
		      LIMIT);
		CHECK(fake_live("qp") <= LIMIT);
	}
}

/* Out of a verb that was called by a verb. */
static void jumps_nested(const char *argument)
{
	fixture = fixture_open();
	signal(SIGUSR1, jump);
	fake_set("ibv_reg_mr_iova2", FAKE_RAISE, SIGUSR1, 0, 1);
	if (!sigsetjmp(before_verb, 1)) {
		(ibv_reg_mr)(fixture.pd, memory, sizeof(memory), 0);
		CHECK(false, "the verb came back");
		return;
	}
	for (unsigned i = 2; i <= LIMIT; i++)
		CHECK((ibv_reg_mr)(fixture.pd, memory, sizeof(memory), 0) && used(KIND_mr) == i,
		      "MR %u: %llu used", i, (unsigned long long)used(KIND_mr));
	CHECK(!(ibv_reg_mr)(fixture.pd, memory, sizeof(memory), 0) && errno == EDQUOT);
}

/* ---- a verb in the middle of a verb */

static void make_one(int number)
{
	word_store(0, make_qps(1));
}

static ucontext_t interrupted, other;

static void make_one_elsewhere(void)
{
	word_store(0, make_qps(1));
}

static void switch_and_make(int number)
{
	static char stack[65536];

	getcontext(&other);
	other.uc_stack.ss_sp = stack;
	other.uc_stack.ss_size = sizeof(stack);
	other.uc_link = &interrupted;
	makecontext(&other, make_one_elsewhere, 0);
	swapcontext(&interrupted, &other);
}

static void interrupted_verb(const char *argument)
{
	bool away = !strcmp(argument, "altstack");
	stack_t stack = { .ss_size = 65536 };
	struct sigaction action = { .sa_handler = strcmp(argument, "context") ? make_one :
										 switch_and_make,
				    .sa_flags = away ? SA_ONSTACK : 0 };

	fixture = fixture_open();
	stack.ss_sp = mmap(NULL, stack.ss_size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(sigaltstack(&stack, NULL) == 0 && sigaction(SIGUSR1, &action, NULL) == 0);
	word_store(0, 0);
	fake_set("ibv_create_qp", FAKE_RAISE, SIGUSR1, 0, 1);
	CHECK(make_qps(1) == 1 && word_load(0) == 1);
	CHECK(used(KIND_qp) == 2, "%llu used of two", (unsigned long long)used(KIND_qp));
	CHECK(make_qps(2 * LIMIT) == LIMIT - 2 && errno == EDQUOT);
	CHECK(fake_live("qp") == LIMIT);
}

/* The device is opened in the middle of an opening: both contexts work, inline verbs too. */
static void open_another(int number)
{
	struct fixture second = fixture_open();

	CHECK(ibv_alloc_mw(second.pd, IBV_MW_TYPE_1) != NULL);
}

static void interrupted_open(const char *argument)
{
	signal(SIGUSR1, open_another);
	fake_set(argument, FAKE_RAISE, SIGUSR1, 0, 1);
	fixture = fixture_open();
	CHECK(used(KIND_ctx) == 2, "%llu contexts", (unsigned long long)used(KIND_ctx));
	CHECK(ibv_alloc_mw(fixture.pd, IBV_MW_TYPE_1) && used(KIND_mw) == 2);
}

static const struct scenario scenarios[] = {
	{ "ends", ends },
	{ "jumps", jumps },
	{ "jumps_nested", jumps_nested },
	{ "interrupted_verb", interrupted_verb },
	{ "interrupted_open", interrupted_open },
	{ 0 },
};

static void driver(void)
{
	static const char *const limited[] = {
		"jumps", "jumps:deep", "jumps_nested", "interrupted_verb", "interrupted_verb:altstack",
		"interrupted_verb:context", "interrupted_open:ibv_open_device",
		"interrupted_open:verbs_open_device",
	};

	cases_at_once();
	CASE("ends_empty")
		after_destructors("ends:empty");
	CASE("ends_holding")
		after_destructors("ends:holding");
	for (unsigned i = 0; i < sizeof(limited) / sizeof(limited[0]); i++)
		CASE(limited[i]) {
			shm_remove();
			spawn(limited[i], "LIMITS=process:qp=10,mr=10");
		}
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, scenarios, driver);
}
