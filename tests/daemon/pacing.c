/* SPDX-License-Identifier: MIT */
/*
 * Paces that a collector sets while programs run: whose functions stand in contexts and queue pairs
 * before, during and after, with other threads inside; rates that are changed; and how processes of
 * a tenant share a rate. What is checked of times are upper bounds, which a busy machine cannot
 * break, and the parts of two processes in the same run.
 */
#include "poster.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#define SETTINGS "TRANSPORT=lease\nQUIET=1\nLOG_LEVEL=0"
#define MEGABYTE (1u << 20)

enum { WORD_BYTES = WORD_OWN, WORD_POSTS, WORD_ROUNDS };

/* ---- set and taken off while threads post */

struct posting {
	struct ibv_qp *plain;
	struct ibv_qp_ex *extended;
};

static void *posting_run(void *closure)
{
	struct posting *posting = closure;

	while (word_load(WORD_GO) == 0) {
		post_plain(posting->plain);
		post_extended(posting->extended);
		__atomic_fetch_add(shared_word(WORD_POSTS), 2, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* The driver sets and unsets; the program makes verbs, and looks at its own pointers. */
static void run_switched(const char *argument)
{
	struct fixture fixture = member_fixture();
	struct ibv_qp_ex *watched = qp_extended_make(&fixture);
	struct posting posting[2];
	pthread_t thread[2];

	CHECK(posts_are_the_providers(&fixture, watched), "no pace is set");
	for (int i = 0; i < 2; i++) {
		posting[i].plain = qp_make(&fixture, IBV_QPT_RC);
		posting[i].extended = qp_extended_make(&fixture);
		CHECK(pthread_create(&thread[i], NULL, posting_run, &posting[i]) == 0);
	}
	word_store(WORD_READY, 1);
	for (uint64_t round = 1; round <= 20; round++) {
		struct ibv_qp_ex *later;

		word_await(WORD_MADE, 2 * round - 1); /* the driver has set a pace */
		EVENTUALLY((ibv_dealloc_pd(ibv_alloc_pd(fixture.context)),
			    posts_are_ours(&fixture, watched)));
		later = qp_extended_make(&fixture);
		CHECK(posts_are_ours(&fixture, later), "made while posts are counted");
		word_store(WORD_ROUNDS, 2 * round - 1);
		word_await(WORD_MADE, 2 * round); /* and has taken it off: posts alone notice that */
		EVENTUALLY(posts_are_the_providers(&fixture, watched));
		EVENTUALLY(posts_are_the_providers(&fixture, later));
		CHECK(ibv_destroy_qp(&later->qp_base) == 0);
		word_store(WORD_ROUNDS, 2 * round);
	}
	word_store(WORD_GO, 1);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	fixture_close(&fixture);
}

static void switched(void)
{
	pid_t pid;

	collector_fresh("", "");
	words_clear();
	pid = spawn_start("switched", SETTINGS);
	NEED(word_load(WORD_READY) == 1);
	for (uint64_t round = 1; round <= 20; round++) {
		CHECK(collector_set("default", "pace.bytes = 400MB/s\n") == 0);
		word_store(WORD_MADE, 2 * round - 1);
		NEED(word_load(WORD_ROUNDS) == 2 * round - 1);
		CHECK(collector_set("default", "pace.bytes = unset\n") == 0);
		word_store(WORD_MADE, 2 * round);
		NEED(word_load(WORD_ROUNDS) == 2 * round);
	}
	CHECK(spawn_wait(pid) == 0);
	printf("20 times set and taken off during %llu posts\n",
	       (unsigned long long)word_load(WORD_POSTS));
	collector_stop();
}

/* ---- rates */

/* Posts until it is stopped; its part of WORD_BYTES is the word that the argument names. */
static void run_poster(const char *argument)
{
	struct fixture fixture = member_fixture();
	struct ibv_qp *plain = qp_make(&fixture, IBV_QPT_RC);
	struct ibv_qp_ex *extended = qp_extended_make(&fixture);
	unsigned word = WORD_BYTES + (unsigned)(argument[0] - '0');

	word_add(WORD_READY, 1);
	while (word_load(WORD_GO) == 0) {
		post_plain(plain);
		post_extended(extended);
		__atomic_fetch_add(shared_word(word), 2 * POST_BYTES, __ATOMIC_RELAXED);
	}
	fixture_close(&fixture);
}

static void pause_seconds(double seconds)
{
	usleep((useconds_t)(seconds * 1e6));
}

/* What both posted in a while; ret_seconds: at most how long that was. */
static uint64_t posted_in(double wanted, double *ret_seconds, uint64_t ret_each[2])
{
	double begun = seconds_now();
	uint64_t before[2], sum = 0;

	for (int i = 0; i < 2; i++)
		before[i] = word_load(WORD_BYTES + (unsigned)i);
	pause_seconds(wanted);
	for (int i = 0; i < 2; i++) {
		ret_each[i] = word_load(WORD_BYTES + (unsigned)i) - before[i];
		sum += ret_each[i];
	}
	*ret_seconds = seconds_now() - begun;
	return sum;
}

/* Never above the rate, over what may come at once. */
static bool within(uint64_t bytes, double seconds, double rate)
{
	return (double)bytes <= rate * (seconds + 0.25) * 1.05 + 65536 + 4 * POST_BYTES;
}

static void rates(void)
{
	double seconds, least, most;
	uint64_t each[2], bytes;
	struct proto_pace row;
	pid_t pid[2];

	collector_fresh("[default]\npace.bytes = 5MB/s burst 64K\n", "");
	words_clear();
	pid[0] = spawn_start("poster:0", SETTINGS);
	NEED(word_load(WORD_READY) == 1);
	pause_seconds(0.3); /* the burst, and before the collector has divided */
	bytes = posted_in(2, &seconds, each);
	CHECK(within(bytes, seconds, 5 * MEGABYTE), "%llu in %.3f s", (unsigned long long)bytes,
	      seconds);
	printf("one process: %.3f MB/s of 5\n", (double)bytes / seconds / MEGABYTE);
	CHECK(bytes > 0);
	/* A second one shares the rate. */
	pid[1] = spawn_start("poster:1", SETTINGS);
	NEED(word_load(WORD_READY) == 2);
	pause_seconds(0.5);
	bytes = posted_in(3, &seconds, each);
	CHECK(within(bytes, seconds, 5 * MEGABYTE), "%llu in %.3f s", (unsigned long long)bytes,
	      seconds);
	least = (double)(each[0] < each[1] ? each[0] : each[1]);
	most = (double)(each[0] < each[1] ? each[1] : each[0]);
	printf("two processes: %.3f and %.3f MB/s of 5\n", (double)each[0] / seconds / MEGABYTE,
	       (double)each[1] / seconds / MEGABYTE);
	CHECK(least >= 0.5 * most, "%.0f and %.0f", least, most);
	/* Changed: after 200 ms the new rate holds. */
	CHECK(collector_set("default", "pace.bytes = 2MB/s burst 64K\n") == 0);
	pause_seconds(0.2);
	bytes = posted_in(1, &seconds, each);
	CHECK(within(bytes, seconds, 2 * MEGABYTE), "%llu in %.3f s", (unsigned long long)bytes,
	      seconds);
	printf("changed: %.3f MB/s of 2\n", (double)bytes / seconds / MEGABYTE);
	row = pace_of("default");
	CHECK(row.is_counted == 1 && row.bytes.per_second == 2 * MEGABYTE &&
	      row.bytes.burst == 65536 && row.posted.delays > 0 && row.held[0] == '\0');
	CHECK(row.posted.bytes >= each[0] + each[1] && row.posted.operations > 0);
	/* One that is alone again has all of it, and one that is killed leaves nothing. */
	kill(pid[1], SIGKILL);
	CHECK(spawn_wait(pid[1]) == 128 + SIGKILL);
	EVENTUALLY((posted_in(0.5, &seconds, each),
		    (double)each[0] / seconds > 1.2 * MEGABYTE));
	/* Operations of each process. */
	CHECK(collector_set("default", "pace.bytes = unset\nprocess.pace.ops = 500/s burst 10\n") == 0);
	pause_seconds(0.2);
	bytes = posted_in(1, &seconds, each);
	CHECK((double)each[0] / POST_BYTES <= 500 * (seconds + 0.25) * 1.05 + 20, "%llu in %.3f s",
	      (unsigned long long)bytes, seconds);
	/* Without the collector the last rate holds. */
	collector_kill();
	bytes = posted_in(1, &seconds, each);
	CHECK((double)each[0] / POST_BYTES <= 500 * (seconds + 0.25) * 1.05 + 20 && each[0] > 0);
	word_store(WORD_GO, 1);
	CHECK(spawn_wait(pid[0]) == 0);
}

/* Two queue pairs, one of each interface: one in debt waits, the other does not. */
static void run_each_qp(const char *argument)
{
	struct fixture fixture = member_fixture();
	struct ibv_qp *plain = qp_make(&fixture, IBV_QPT_RC);
	struct ibv_qp_ex *extended = qp_extended_make(&fixture);
	double begun = seconds_now(), took;
	uint64_t delays;

	for (int i = 0; i < 10; i++)
		post_plain(plain);
	/* 5 at once, the next makes debt, and each of the other 4 waits for a twentieth of a second. */
	took = seconds_now() - begun;
	CHECK(took >= 0.19, "%.3f s", took);
	delays = pace_of("default").posted.delays;
	CHECK(delays <= 4, "%llu", (unsigned long long)delays); /* fewer if we had no processor */
	for (int i = 0; i < 5; i++)
		post_extended(extended);
	CHECK(pace_of("default").posted.delays == delays, "another queue pair waited");
	begun = seconds_now();
	for (int i = 0; i < 3; i++)
		post_extended(extended);
	took = seconds_now() - begun;
	CHECK(took >= 0.09, "%.3f s", took);
	/* One that is made at the same address has a full bucket. */
	CHECK(ibv_destroy_qp(plain) == 0);
	plain = qp_make(&fixture, IBV_QPT_RC);
	delays = pace_of("default").posted.delays;
	for (int i = 0; i < 5; i++)
		post_plain(plain);
	CHECK(pace_of("default").posted.delays == delays, "a new queue pair waited");
	/* Taken off while a post waits: it ends at once. */
	CHECK(collector_set("default", "qp.pace.ops = 1/s burst 1\n") == 0);
	for (int i = 0; i < 2; i++)
		post_plain(plain);
	word_store(WORD_READY, 1);
	post_plain(plain);
	EVENTUALLY(posts_are_the_providers(&fixture, extended));
	fixture_close(&fixture);
}

static void each_qp(void)
{
	pid_t pid;

	collector_fresh("[default]\nqp.pace.ops = 20/s burst 5\npace.max_delay = 60s\n", "");
	words_clear();
	pid = spawn_start("each_qp", SETTINGS);
	NEED(word_load(WORD_READY) == 1);
	CHECK(pace_of("default").qp_operations.per_second == 1);
	CHECK(collector_set("default", "qp.pace.ops = unlimited\n") == 0);
	CHECK(spawn_wait(pid) == 0);
	collector_stop();
}

/* ---- processes that begin */

enum { NEWCOMERS = 24, NEWCOMER_POSTS = 15 };

/* Posts when all are there, and waits to be killed. */
static void run_newcomer(const char *argument)
{
	struct fixture fixture = member_fixture();
	struct ibv_qp *qp = qp_make(&fixture, IBV_QPT_RC);

	word_add(WORD_READY, 1);
	word_await(WORD_GO, 1);
	for (unsigned i = 0; i < NEWCOMER_POSTS; i++) {
		post_plain(qp);
		word_add(WORD_BYTES, POST_BYTES);
	}
	word_add(WORD_READY, 1);
	pause();
}

/* A process that begins has no burst of its own: many of them are no faster than one, and neither are
 * those that come when they were killed. Each posts once before it waits; the first ones may have
 * gathered parts of the burst while they were few, together less than four bursts. */
static void newcomers(void)
{
	collector_fresh("[default]\npace.bytes = 1MB/s burst 4K\n", "");
	for (unsigned round = 0; round < 2; round++) {
		pid_t pid[NEWCOMERS];
		double begun, passed;
		uint64_t bytes;

		words_clear();
		for (unsigned i = 0; i < NEWCOMERS; i++)
			pid[i] = spawn_start("newcomer", SETTINGS);
		NEED(word_load(WORD_READY) == NEWCOMERS);
		begun = seconds_now();
		word_store(WORD_GO, 1);
		for (unsigned looks = 0; looks < 20; looks++) {
			pause_seconds(0.02);
			bytes = word_load(WORD_BYTES);
			passed = seconds_now() - begun;
			if (!CHECK((double)bytes <= MEGABYTE * passed + 4 * 4096 + NEWCOMERS * POST_BYTES,
				   "round %u: %llu bytes after %.3f s", round,
				   (unsigned long long)bytes, passed))
				break;
		}
		NEED(word_load(WORD_READY) == 2 * NEWCOMERS);
		for (unsigned i = 0; i < NEWCOMERS; i++) {
			kill(pid[i], SIGKILL);
			CHECK(spawn_wait(pid[i]) == 128 + SIGKILL);
		}
	}
	collector_stop();
}

/* Values that are refused: the old policy stays. */
static void values(void)
{
	static const char *const wrong[] = {
		"pace.bytes = 5MB",	 "pace.bytes = 0/s",  "pace.ops = 5M/s",
		"pace.bytes = 5MB/s 64K", "pace.max_delay = 5", "priority = high",
		"bulk_floor = 1MB",	 "process.pace.bytes = -1/s", "qp.pace.ops = 20",
	};

	collector_fresh("[default]\npace.bytes = 5MB/s\n", "");
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		CHECK(collector_set("default", wrong[i]) < 0, "%s", wrong[i]);
	CHECK(pace_of("default").bytes.per_second == 5 * MEGABYTE);
	CHECK(collector_set("default", "pace.bytes = unlimited") == 0);
	CHECK(pace_of("default").tenant[0] == '\0', "a tenant without a pace has no row");
	collector_stop();
}

static void drive(void)
{
	RUN(switched);
	RUN(rates);
	RUN(each_qp);
	RUN(newcomers);
	RUN(values);
}

int main(int argc, char **argv)
{
	static const struct scenario scenarios[] = {
		{ "switched", run_switched },
		{ "poster", run_poster },
		{ "each_qp", run_each_qp },
		{ "newcomer", run_newcomer },
		{ NULL, NULL },
	};

	return harness_main(argc, argv, scenarios, drive);
}
