/* SPDX-License-Identifier: MIT */
/*
 * The guard's counts while so many others change them that every compare-and-swap is lost. The
 * functions run here on a stand-in for the kernel: no test can arrange that in the lab.
 */
#pragma GCC diagnostic ignored "-Wunknown-pragmas"
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
static unsigned long long losses; /* so many compare-and-swaps still fail */
#define __sync_val_compare_and_swap(place, old, new)                                               \
	(losses ? (losses--, (old) + 1) : (__sync_val_compare_and_swap)(place, old, new))
#define __bpf__
#include "monitor/guard/guard.bpf.c"
#undef __bpf__
#undef __sync_val_compare_and_swap

#include "harness.h"

enum { SLOT = 3, FEW = 20, MANY = 1000000 };

/* One more QP of a tenant that has `used` of them. */
static int qp_take(__s64 used, __u64 limit, unsigned lost)
{
	__u32 slot = SLOT;
	__u64 ret_used, ret_limit;

	memset(bpf_map_lookup_elem(&guard_limits, &slot), 0xff, sizeof(struct guard_limits));
	bpf_map_lookup_elem(&guard_limits, &slot)->limit[KIND_qp] = limit;
	bpf_map_lookup_elem(&guard_counts, &slot)->used[KIND_qp] = used;
	losses = lost;
	return count_take(SLOT, KIND_qp, 1, &ret_used, &ret_limit);
}

static __s64 qps(void)
{
	__u32 slot = SLOT;

	return bpf_map_lookup_elem(&guard_counts, &slot)->used[KIND_qp];
}

static void contention(void)
{
	static const struct {
		__s64 used;
		__u64 limit;
		int result;
	} trials[] = {
		{ 0, UNLIMITED, 0 },   { 7, UNLIMITED, 0 }, { 0, 1, 0 },
		{ 4, 5, 0 },	       { 5, 5, -EDQUOT },   { 6, 5, -EDQUOT },
		{ 0, 0, -EDQUOT },
	};

	for (unsigned i = 0; i < sizeof(trials) / sizeof(trials[0]); i++)
		for (unsigned lost = 0; lost < 2 * MANY; lost += lost < FEW ? 1 : MANY) {
			int result = qp_take(trials[i].used, trials[i].limit, lost);

			CHECK(result == trials[i].result, "row %u, %u lost: %d", i, lost, result);
			CHECK(qps() == trials[i].used + !result, "row %u, %u lost: %lld used", i,
			      lost, (long long)qps());
		}
}

static void driver(void)
{
	RUN(contention);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
