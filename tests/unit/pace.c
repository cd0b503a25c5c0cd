/* SPDX-License-Identifier: MIT */
/* Paces as numbers: texts of rates, the bucket that carries debt, and how a rate is divided. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collector/pace_split.h"
#include "harness.h"
#include "terms/pace_bucket.h"
#include "terms/pace_rate.h"

#define SECOND 1000000000ull

static int parse(const char *text, bool bytes, struct pace_rate *ret)
{
	return pace_rate_parse(text, strlen(text), bytes, ret);
}

static void texts(void)
{
	static const char *const wrong[] = { "5MB",	    "5",	  "/s",		 "5MB/m",
					     "0/s",	    "-1/s",	  "5MB/s burst", "5MB/s burst 0",
					     "5MB/s burst64K", "5MB/s 64K", "unlimited/s", "5/s burst max",
					     "",	    "99999999999999999999/s" };
	struct pace_rate rate = { 7, 7 };
	char text[PACE_RATE_TEXT];

	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		CHECK(parse(wrong[i], true, &rate) < 0 && rate.per_second == 7, "%s", wrong[i]);
	CHECK(parse("5M/s", false, &rate) == -EINVAL, "operations have no suffix");
	CHECK(parse("5MB/s", true, &rate) == 0 && rate.per_second == 5 << 20 && rate.burst == 0);
	CHECK(parse("5MB/s  burst 64K", true, &rate) == 0 && rate.burst == 65536);
	pace_rate_print(&rate, text);
	CHECK(!strcmp(text, "5242880/s burst 65536"), "%s", text);
	CHECK(parse("unlimited", true, &rate) == 0 && !pace_rate_is_limit(&rate));
	CHECK(parse("10000/s burst 20", false, &rate) == 0 && rate.per_second == 10000);
}

/* Posts of any size at any time, each after the wait that the bucket asks for: never more than rate
 * and burst allow and one post, and nothing is lost while somebody waits. */
static void averages(void)
{
	for (unsigned round = 0; round < 2000; round++) {
		struct pace_bucket bucket = { 0 };
		uint64_t rate = 1 + (uint64_t)rand() % 10000000, burst = (uint64_t)rand() % 100000;
		uint64_t now = SECOND, spent = 0, largest = 0, most;
		bool waited = false;

		pace_bucket_set(&bucket, rate, burst, now);
		for (unsigned i = 0; i < 200; i++) {
			uint64_t size = (uint64_t)rand() % 300000, wait;

			pace_bucket_fill(&bucket, now, waited);
			wait = pace_bucket_wait_ns(&bucket);
			waited = wait != 0;
			if (waited) {
				now += wait + (uint64_t)rand() % 10000; /* a sleep lasts longer */
				i--;
				continue;
			}
			pace_bucket_spend(&bucket, (int64_t)size);
			spent += size;
			largest = size > largest ? size : largest;
			if (rand() % 8 == 0)
				now += (uint64_t)rand() % SECOND;
		}
		most = (uint64_t)((unsigned __int128)(now - SECOND) * rate / SECOND) + burst +
		       largest + rate / 5 + 1;
		if (!CHECK(spent <= most, "%llu of %llu", (unsigned long long)spent,
			   (unsigned long long)most))
			return;
	}
}

static void debt(void)
{
	struct pace_bucket bucket = { 0 };

	pace_bucket_set(&bucket, 1000, 100, SECOND);
	CHECK(bucket.balance == 100 && pace_bucket_wait_ns(&bucket) == 0);
	pace_bucket_spend(&bucket, 2100); /* at its size, however large */
	CHECK(bucket.balance == -2000);
	CHECK(pace_bucket_wait_ns(&bucket) == 2 * SECOND + 1);
	CHECK(pace_bucket_allowance(&bucket, 1 << 20) == 0);
	pace_bucket_fill(&bucket, 2 * SECOND, true);
	CHECK(bucket.balance == -1000);
	pace_bucket_set(&bucket, 2000, 100, 2 * SECOND); /* is paid faster then */
	CHECK(pace_bucket_wait_ns(&bucket) == SECOND / 2 + 1);
	pace_bucket_fill(&bucket, 3 * SECOND, false);
	CHECK(bucket.balance == 100, "no more than the burst gathers: %lld",
	      (long long)bucket.balance);
	pace_bucket_spend(&bucket, -500);
	CHECK(bucket.balance == 600, "a refund is not cut");
	pace_bucket_set(&bucket, 0, 0, 3 * SECOND);
	pace_bucket_spend(&bucket, 1 << 30);
	CHECK(pace_bucket_wait_ns(&bucket) == 0 && pace_bucket_allowance(&bucket, 99) == 99);
	/* Fractions of a unit are not lost: 3 a second, looked at each 10 ms. */
	bucket = (struct pace_bucket){ 0 };
	pace_bucket_set(&bucket, 3, 1000, SECOND);
	pace_bucket_spend(&bucket, 1000);
	for (uint64_t now = SECOND; now <= 101 * SECOND; now += 10000000)
		pace_bucket_fill(&bucket, now, true);
	CHECK(bucket.balance == 300, "%lld", (long long)bucket.balance);
}

/* Feasible; work-conserving; who wants little has it; nobody who wants more has less than another. */
static void division(void)
{
	struct pace_part parts[40];

	for (unsigned round = 0; round < 100000; round++) {
		unsigned count = 1 + (unsigned)rand() % 40;
		uint64_t rate = 40 + (uint64_t)rand() % 100000000, sum = 0, least = UINT64_MAX;
		bool good = true;

		for (unsigned i = 0; i < count; i++)
			parts[i].demand = rand() % 3 ? (uint64_t)rand() % (2 * rate) :
					  rand() % 2 ? UINT64_MAX :
						       0;
		pace_split(rate, parts, count);
		for (unsigned i = 0; i < count; i++) {
			sum += parts[i].share;
			if (parts[i].share < parts[i].demand && parts[i].share < least)
				least = parts[i].share; /* of those who want more */
		}
		for (unsigned i = 0; i < count; i++)
			good &= parts[i].share > 0 &&
				(least == UINT64_MAX || parts[i].share <= least + count);
		if (!CHECK(good && sum <= rate + count && sum + 2 * count >= rate,
			   "round %u: %llu of %llu", round, (unsigned long long)sum,
			   (unsigned long long)rate))
			return;
	}
	parts[0].demand = parts[1].demand = UINT64_MAX;
	parts[2].demand = 100;
	pace_split(1000100, parts, 3);
	CHECK(parts[0].share == parts[1].share && parts[0].share >= 498000, "%llu",
	      (unsigned long long)parts[0].share);
}

/* What is within both allows no more than either, at once and each second. */
static void lower(void)
{
	static const struct {
		struct pace_rate a, b, wanted;
	} rows[] = {
		{ { 5, 0 }, { 9, 0 }, { 5, 0 } },
		{ { 900, 0 }, { 5, 0 }, { 5, 0 } },
		{ { 5, 1000 }, { 9, 20 }, { 5, 20 } },
		{ { 5, 20 }, { 9, 1000 }, { 5, 20 } },
		{ { 5, 1000 }, { 900, 0 }, { 5, 45 } },
		{ { 5, 1000 }, { 9, 0 }, { 5, 16 } },
		{ { 5, 0 }, { 9, 3 }, { 5, 3 } },
		{ { 5, 0 }, { 9, 1000 }, { 5, 16 } },
		{ { 0, 0 }, { 9, 3 }, { 9, 3 } },
		{ { 9, 3 }, { UINT64_MAX, 1 }, { 9, 3 } },
		{ { UINT64_MAX, 0 }, { 0, 0 }, { UINT64_MAX, 0 } },
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pace_rate found = pace_rate_lower(rows[i].a, rows[i].b, 16);

		CHECK(found.per_second == rows[i].wanted.per_second &&
			      found.burst == rows[i].wanted.burst,
		      "%u: %llu burst %llu", i, (unsigned long long)found.per_second,
		      (unsigned long long)found.burst);
	}
}

static void drive(void)
{
	srand(1);
	RUN(texts);
	RUN(averages);
	RUN(debt);
	RUN(division);
	RUN(lower);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, (const struct scenario[]){ { NULL, NULL } }, drive);
}
