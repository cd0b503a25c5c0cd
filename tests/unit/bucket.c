/* SPDX-License-Identifier: MIT */
/*
 * Token buckets: in any time t no more than burst + rate * t goes out, whatever changes meanwhile,
 * also where several buckets share one flow that is moved between them, and where threads take at
 * once; and who waits as long as it is told to gets a part.
 */
#include <pthread.h>
#include <string.h>

#include "fair_random.h"
#include "harness.h"
#include "terms/bucket.h"
#include "terms/rates.h"

#define SECOND 1000000000ull

enum { STEPS = 400, CASES = 3000, BUCKETS = 4 };

struct flow_case {
	struct bucket_flow flow[BUCKETS];
	uint64_t taken[BUCKETS];
	uint64_t rate, burst;
};

/* What went out up to each step, and the time. */
struct history {
	uint64_t ns[STEPS], out[STEPS];
	unsigned count;
};

/* All windows that end at the last step. The rounding of each change and bucket is one part. */
static unsigned windows_exceeded(const struct history *history, uint64_t rate, uint64_t burst,
				 uint64_t before)
{
	unsigned last = history->count - 1, exceeded = 0;

	for (unsigned i = 0; i < history->count; i++) {
		uint64_t out = history->out[last] - (i ? history->out[i - 1] : before);
		unsigned __int128 may = (unsigned __int128)rate *
						(history->ns[last] - history->ns[i]) / SECOND +
					burst + BUCKETS;

		exceeded += out > may;
	}
	return exceeded;
}

/* A division of rate and burst, chosen at random: its sums are at most these. */
static void shares_choose(const struct flow_case *each, uint64_t *rate, uint64_t *burst)
{
	uint64_t rate_left = each->rate, burst_left = each->burst;

	for (unsigned i = 0; i < BUCKETS; i++) {
		bool all = random_chance(20);

		rate[i] = all ? rate_left : random_below(rate_left + 1);
		burst[i] = all ? burst_left : random_below(burst_left + 1);
		rate_left -= rate[i];
		burst_left -= burst[i];
	}
}

/* As the collector does it: cut first, collect what was not used, then raise and hand over. */
static void shares_move(struct flow_case *each, uint64_t now)
{
	uint64_t rate[BUCKETS], burst[BUCKETS], pool = 0;

	shares_choose(each, rate, burst);
	for (unsigned i = 0; i < BUCKETS; i++) {
		struct bucket_flow *flow = &each->flow[i];
		uint64_t before = bucket_available(flow, now, each->taken[i]);

		bucket_change(flow, now, rate[i] < flow->rate ? rate[i] : flow->rate,
			      burst[i] < flow->burst ? burst[i] : flow->burst);
		pool += before - bucket_available(flow, now, each->taken[i]);
	}
	for (unsigned i = 0; i < BUCKETS; i++) {
		struct bucket_flow *flow = &each->flow[i];
		uint64_t room, gift;

		bucket_change(flow, now, rate[i], burst[i]);
		room = burst[i] - bucket_available(flow, now, each->taken[i]);
		gift = room < pool ? room : pool;
		bucket_add(flow, gift);
		pool -= gift;
	}
}

static unsigned case_run(unsigned *exceeded)
{
	static struct history history;
	struct flow_case each = { .rate = (1 + random_below(1000)) * RATE_PART,
				  .burst = (1 + random_below(50)) * RATE_PART };
	uint64_t now = random_below(SECOND), out = 0, at;
	unsigned given = 0;

	history.count = 0;
	each.flow[0] = (struct bucket_flow){ now, each.burst, 0, each.rate, each.burst };
	for (unsigned i = 1; i < BUCKETS; i++)
		each.flow[i] = (struct bucket_flow){ .since_ns = now };
	for (unsigned step = 0; step < STEPS; step++) {
		unsigned which = (unsigned)random_below(BUCKETS);

		now += random_chance(50) ? 0 : random_below(SECOND / 50);
		if (random_chance(10))
			shares_move(&each, now);
		if (bucket_take(&each.flow[which], now, &each.taken[which], RATE_PART, &at)) {
			out += RATE_PART;
			given++;
			history.ns[history.count] = now;
			history.out[history.count++] = out;
			*exceeded += windows_exceeded(&history, each.rate, each.burst, 0);
		}
	}
	return given;
}

static void no_window_gets_more(void)
{
	unsigned exceeded = 0, given = 0;

	random_seed();
	for (unsigned i = 0; i < CASES; i++)
		given += case_run(&exceeded);
	CHECK(exceeded == 0 && given > CASES, "%u windows of %u takes", exceeded, given);
}

/* One who waits as long as told gets a part; n of them that take turns get their n-th. */
static void waiting_is_enough(void)
{
	unsigned early = 0, late = 0;

	random_seed();
	for (unsigned i = 0; i < CASES; i++) {
		struct bucket_flow flow = { random_below(SECOND), random_below(1u << 30), 0,
					    1 + random_below(1u << 26),
					    RATE_PART * (1 + random_below(20)) };
		uint64_t now = flow.since_ns + random_below(10 * SECOND), taken = 0, wait, at;

		flow.floor = flow.filled;
		for (unsigned turn = 0; turn < 50; turn++) {
			wait = bucket_wait_ns(&flow, now, taken, RATE_PART);
			if (wait) {
				early += bucket_take(&flow, now + wait - 1, &taken, RATE_PART, &at);
				now += wait;
			}
			late += !bucket_take(&flow, now, &taken, RATE_PART, &at);
		}
	}
	CHECK(early == 0 && late == 0, "%u too early, %u too late", early, late);
}

/* ---- threads */

enum { THREADS = 4, THREAD_TAKES = 200000 };

static struct {
	struct bucket_flow flow;
	uint64_t taken, now;
} shared = { .flow = { .rate = 100000 * RATE_PART, .burst = UINT64_MAX } };

/* Takes, puts every seventh part back, and lets time go on. Returns how many it kept. */
static void *thread_takes(void *unused)
{
	uintptr_t kept = 0;
	uint64_t at;

	for (unsigned i = 0; i < THREAD_TAKES; i++) {
		uint64_t now = __atomic_add_fetch(&shared.now, 1000, __ATOMIC_SEQ_CST);

		if (!bucket_take(&shared.flow, now, &shared.taken, RATE_PART, &at))
			continue;
		if (i % 7)
			kept++;
		else
			__atomic_fetch_sub(&shared.taken, RATE_PART, __ATOMIC_SEQ_CST);
	}
	return (void *)kept;
}

/* The bucket is empty at the beginning and never full, so all of it is handed out once. */
static void threads_share(void)
{
	uint64_t kept = 0, may, left;
	pthread_t thread[THREADS];
	void *result;

	for (unsigned i = 0; i < THREADS; i++)
		CHECK(pthread_create(&thread[i], NULL, thread_takes, NULL) == 0);
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(thread[i], &result);
		kept += (uintptr_t)result;
	}
	may = bucket_filled(&shared.flow, shared.now) / RATE_PART;
	left = bucket_available(&shared.flow, shared.now, shared.taken) / RATE_PART;
	CHECK(kept && kept + left == may, "%llu taken, %llu left, %llu came in",
	      (unsigned long long)kept, (unsigned long long)left, (unsigned long long)may);
}

static void edges(void)
{
	struct bucket_flow flow = { .since_ns = SECOND, .rate = 10, .burst = 5 };
	uint64_t taken = 0, at;

	CHECK(bucket_available(&flow, SECOND, taken) == 0, "a new bucket is not empty");
	CHECK(bucket_available(&flow, 0, taken) == 0, "time before the beginning counts");
	CHECK(bucket_available(&flow, 100 * SECOND, taken) == 5, "more than the burst");
	CHECK(bucket_wait_ns(&flow, SECOND, taken, 6) == BUCKET_NEVER, "more than the burst");
	CHECK(bucket_wait_ns(&flow, SECOND, taken, 1) == SECOND / 10, "%llu",
	      (unsigned long long)bucket_wait_ns(&flow, SECOND, taken, 1));
	bucket_change(&flow, 100 * SECOND, 10, 50);
	CHECK(bucket_available(&flow, 100 * SECOND, taken) == 5, "what was lost came back");
	bucket_change(&flow, 100 * SECOND, 0, 2);
	CHECK(bucket_available(&flow, 100 * SECOND, taken) == 2, "the new burst");
	bucket_change(&flow, 100 * SECOND, 0, 5);
	CHECK(bucket_available(&flow, 100 * SECOND, taken) == 2, "what was lost came back");
	CHECK(bucket_wait_ns(&flow, 100 * SECOND, taken, 3) == BUCKET_NEVER, "without a flow");
	CHECK(!bucket_take(&flow, 100 * SECOND, &taken, 3, &at) && taken == 0, "more than there is");
	flow = (struct bucket_flow){ 0, UINT64_MAX - 1, 0, UINT64_MAX, UINT64_MAX };
	CHECK(bucket_filled(&flow, UINT64_MAX) == UINT64_MAX, "wraps around");
}

/* ---- rates as people write them */

static void rate_texts(void)
{
	static const struct {
		const char *text;
		uint32_t per_second, burst;
	} valid[] = {
		{ "100/s", 100, 10 },	      { "5/s", 5, 1 },
		{ "100/s burst 20", 100, 20 }, { "1/s  burst\t1000000", 1, 1000000 },
		{ "unlimited", 0, 0 },	      { "1000000/s", 1000000, 100000 },
	};
	static const char *const invalid[] = {
		"100",	    "100 /s",	     "/s",	     "0/s",	  "-1/s",
		"1.5/s",    "100/s burst",   "100/s burst 0", "100/sburst 2", "100/min",
		"1000001/s", "100/s burst 2x", "100/s 20",	     "",	  "100/s,burst 2",
		"99999999999999999999/s",
	};
	struct rate rate;
	char text[RATE_TEXT];

	for (unsigned i = 0; i < sizeof(valid) / sizeof(valid[0]); i++) {
		struct rate again = { 7, 7 };

		CHECK(rate_parse(valid[i].text, &rate) == 0 &&
			      rate.per_second == valid[i].per_second && rate.burst == valid[i].burst,
		      "%s", valid[i].text);
		rate_print(&rate, text);
		CHECK(rate_parse(text, &again) == 0 && !memcmp(&rate, &again, sizeof(rate)), "%s",
		      text);
	}
	for (unsigned i = 0; i < sizeof(invalid) / sizeof(invalid[0]); i++)
		CHECK(rate_parse(invalid[i], &rate) < 0, "%s", invalid[i]);
}

static void delay_texts(void)
{
	static const char *const invalid[] = { "100", "ms", "61s", "1.5s", "100 ms", "1h", "" };
	uint64_t ns;
	char text[RATE_TEXT];

	CHECK(rate_delay_parse("100ms", &ns) == 0 && ns == SECOND / 10, "100ms");
	rate_delay_print(ns, text);
	CHECK(!strcmp(text, "100ms"), "%s", text);
	CHECK(rate_delay_parse("60s", &ns) == 0 && ns == 60 * SECOND, "60s");
	CHECK(rate_delay_parse("0ms", &ns) == 0 && ns == 0, "0ms");
	CHECK(rate_delay_parse("250us", &ns) == 0 && ns == SECOND / 4000, "250us");
	for (unsigned i = 0; i < sizeof(invalid) / sizeof(invalid[0]); i++)
		CHECK(rate_delay_parse(invalid[i], &ns) < 0, "%s", invalid[i]);
}

static void driver(void)
{
	RUN(no_window_gets_more);
	RUN(waiting_is_enough);
	RUN(threads_share);
	RUN(edges);
	RUN(rate_texts);
	RUN(delay_texts);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
