/* SPDX-License-Identifier: MIT */
/*
 * Eight processes of fifty threads around a limit of five. The stand-in counts
 * per process only, so the truth is a ticket counter in shared memory, taken
 * after each success and handed in before each destroy: it never shows more
 * than is held. First everybody fights; then demand equals the limit, and a
 * single refusal would be a false one.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fakeverbs.h"
#include "fixture.h"
#include "harness.h"

enum { PROCESSES = 8, THREADS = 50, POLITE = 4, LIMIT = 5 };
enum { WORD_HELD, WORD_PEAK, WORD_MADE, WORD_REFUSED, WORD_WRONG, WORD_CHAIRS, WORD_READY, WORD_GO };

/* What is made and refused before it ends. */
enum { ENOUGH_MADE = 20000, ENOUGH_REFUSED = 20000, ENOUGH_POLITE = 20000 };

static struct fixture fixture;

static bool enough(unsigned word, uint64_t amount)
{
	return word_load(word) >= amount * test_factor();
}

static void count(unsigned word, uint64_t amount)
{
	__atomic_add_fetch(shared_word(word), amount, __ATOMIC_SEQ_CST);
}

static void *fight(void *argument)
{
	unsigned seed = (unsigned)(uintptr_t)argument;

	word_await(WORD_GO, 1);
	while (!enough(WORD_MADE, ENOUGH_MADE) || !enough(WORD_REFUSED, ENOUGH_REFUSED)) {
		struct ibv_qp *qp = qp_make(&fixture, IBV_QPT_RC);
		uint64_t held, peak;

		if (!qp) {
			count(errno == EDQUOT ? WORD_REFUSED : WORD_WRONG, 1);
			continue;
		}
		held = __atomic_add_fetch(shared_word(WORD_HELD), 1, __ATOMIC_SEQ_CST);
		peak = __atomic_load_n(shared_word(WORD_PEAK), __ATOMIC_SEQ_CST);
		while (held > peak && !__atomic_compare_exchange_n(shared_word(WORD_PEAK), &peak, held,
								   false, __ATOMIC_SEQ_CST,
								   __ATOMIC_SEQ_CST))
			;
		count(WORD_MADE, 1);
		if (rand_r(&seed) % 4 == 0)
			usleep((unsigned)rand_r(&seed) % 300);
		__atomic_sub_fetch(shared_word(WORD_HELD), 1, __ATOMIC_SEQ_CST);
		if (ibv_destroy_qp(qp))
			count(WORD_WRONG, 1);
	}
	return NULL;
}

static void fighters(const char *argument)
{
	pthread_t thread[THREADS];

	fixture = fixture_open();
	word_add(WORD_READY, 1);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, fight, (void *)(uintptr_t)(getpid() * 64 + i));
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	fixture_close(&fixture);
	CHECK(fake_live("all") == 0);
}

/* Takes one of LIMIT chairs. Taking one and giving it back when it was too many would let a crowd
 * of threads keep each other standing. */
static bool chair_take(void)
{
	uint64_t taken = word_load(WORD_CHAIRS);

	while (taken < LIMIT)
		if (__atomic_compare_exchange_n(shared_word(WORD_CHAIRS), &taken, taken + 1, false,
						__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			return true;
	return false;
}

/* At most LIMIT threads of all processes want one at a time: those that have a chair. */
static void *polite(void *argument)
{
	word_await(WORD_GO, 1);
	while (!enough(WORD_MADE, ENOUGH_POLITE)) {
		struct ibv_qp *qp;

		if (!chair_take()) {
			sched_yield();
			continue;
		}
		qp = qp_make(&fixture, IBV_QPT_RC);
		count(qp ? WORD_MADE : WORD_REFUSED, 1);
		if (qp && ibv_destroy_qp(qp))
			count(WORD_WRONG, 1);
		__atomic_sub_fetch(shared_word(WORD_CHAIRS), 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

static void polite_ones(const char *argument)
{
	pthread_t thread[POLITE];

	fixture = fixture_open();
	word_add(WORD_READY, 1);
	for (unsigned i = 0; i < POLITE; i++)
		pthread_create(&thread[i], NULL, polite, NULL);
	for (unsigned i = 0; i < POLITE; i++)
		pthread_join(thread[i], NULL);
	fixture_close(&fixture);
}

static const struct scenario scenarios[] = {
	{ "fighters", fighters },
	{ "polite", polite_ones },
	{ 0 },
};

static void run(const char *scenario)
{
	pid_t pid[PROCESSES];

	words_clear();
	shm_remove();
	for (unsigned i = 0; i < PROCESSES; i++)
		pid[i] = spawn_start(scenario, "LIMITS=host:qp=5\nQUIET=1");
	NEED(word_load(WORD_READY) == PROCESSES);
	word_store(WORD_GO, 1);
	for (unsigned i = 0; i < PROCESSES; i++)
		CHECK(spawn_wait(pid[i]) == 0);
	printf("%s: %llu made, %llu refused, at most %llu held\n", scenario,
	       (unsigned long long)*shared_word(WORD_MADE),
	       (unsigned long long)*shared_word(WORD_REFUSED),
	       (unsigned long long)*shared_word(WORD_PEAK));
	CHECK(*shared_word(WORD_WRONG) == 0);
	for (int kind = 0; kind < KINDS_COUNTED; kind++)
		CHECK(used((enum kind)kind) == 0, "%s", kind_rows[kind].name);
}

static void fight_for_limit(void)
{
	run("fighters");
	CHECK(*shared_word(WORD_PEAK) == LIMIT, "the limit was reached and never passed");
}

static void demand_equals_limit(void)
{
	run("polite");
	CHECK(*shared_word(WORD_REFUSED) == 0, "a refusal while demand was within the limit");
}

static void driver(void)
{
	RUN(fight_for_limit);
	RUN(demand_equals_limit);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, scenarios, driver);
}
