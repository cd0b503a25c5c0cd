/* SPDX-License-Identifier: MIT */
/* A token bucket with debt; see pace_bucket.h. */
#include "terms/pace_bucket.h"

#define SECOND_NS 1000000000ull
#define BUCKET_DEBT_MOST (INT64_MAX / 4)

static uint64_t pace_bucket_step(const struct pace_bucket *bucket)
{
	return bucket->rate / 20 ? bucket->rate / 20 : 1; /* what comes in 50 ms */
}

void pace_bucket_set(struct pace_bucket *bucket, uint64_t rate, uint64_t burst, uint64_t now_ns)
{
	bool begins = bucket->rate == 0;

	if (bucket->rate == rate && bucket->burst == burst)
		return;
	pace_bucket_fill(bucket, now_ns, false);
	bucket->rate = rate;
	bucket->burst = burst;
	bucket->at_ns = now_ns;
	if (begins || bucket->balance > (int64_t)burst)
		bucket->balance = (int64_t)burst;
}

void pace_bucket_fill(struct pace_bucket *bucket, uint64_t now_ns, bool waited)
{
	uint64_t most = bucket->burst, came;

	if (!bucket->rate || now_ns <= bucket->at_ns)
		return;
	came = (uint64_t)((unsigned __int128)(now_ns - bucket->at_ns) * bucket->rate / SECOND_NS);
	if (!came)
		return;
	/* Only the time that became whole units; the rest is for the next look. */
	bucket->at_ns += (uint64_t)((unsigned __int128)came * SECOND_NS / bucket->rate);
	if (waited && most < bucket->rate / 5)
		most = bucket->rate / 5;
	if (bucket->balance >= (int64_t)most) /* never takes away what is there */
		return;
	if (came > (uint64_t)((int64_t)most - bucket->balance))
		bucket->balance = (int64_t)most;
	else
		bucket->balance += (int64_t)came;
}

void pace_bucket_spend(struct pace_bucket *bucket, int64_t amount)
{
	if (!bucket->rate)
		return;
	bucket->balance -= amount;
	if (bucket->balance < -BUCKET_DEBT_MOST)
		bucket->balance = -BUCKET_DEBT_MOST;
}

uint64_t pace_bucket_wait_ns(const struct pace_bucket *bucket)
{
	unsigned __int128 wait;

	if (!bucket->rate || bucket->balance >= 0)
		return 0;
	wait = (unsigned __int128)(-bucket->balance) * SECOND_NS / bucket->rate + 1;
	return wait > UINT64_MAX / 2 ? UINT64_MAX / 2 : (uint64_t)wait;
}

uint64_t pace_bucket_allowance(const struct pace_bucket *bucket, uint64_t most)
{
	uint64_t allowance = bucket->balance < 0 ? 0 : (uint64_t)bucket->balance;

	if (!bucket->rate)
		return most;
	if (allowance > pace_bucket_step(bucket))
		allowance = pace_bucket_step(bucket);
	return allowance < most ? allowance : most;
}
