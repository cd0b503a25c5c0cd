/* SPDX-License-Identifier: MIT */
/*
 * The guard's counts while so many others change them that every compare-and-swap is lost, and
 * charges of objects whose end was not seen. The functions run here on a stand-in for the kernel: no
 * test can arrange the first in the lab, and of the second only some (guard-skips).
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

/* Charges of two tenants: those of objects that are no more go, of this tenant and kind only. */
static void stale(void)
{
	enum { GONE, REPLACED, MOVED, ALIVE, OTHERS, OBJECTS };
	static struct {
		char before[64];
		__u32 type;
	} api[2];
	static char hardware, file, new_file;
	static struct ib_uobject objects_[OBJECTS];
	__u32 slot = SLOT;
	__u64 address[OBJECTS];

	for (unsigned i = 0; i < 2; i++)
		memcpy((char *)&api[i] + offsets.api_object_id,
		       &(__u32){ i ? UVERBS_OBJECT_CQ : UVERBS_OBJECT_QP }, sizeof(__u32));
	for (unsigned i = 0; i < OBJECTS; i++) {
		struct guard_charge charge = { .file = (__u64)&file,
					       .slot = i == OTHERS ? SLOT + 1 : SLOT,
					       .kind = KIND_qp };

		objects_[i].object = i == GONE || i == OTHERS ? NULL : &hardware;
		objects_[i].ufile = i == MOVED ? &new_file : &file;
		objects_[i].uapi_object = (void *)&api[i == REPLACED];
		address[i] = (__u64)&objects_[i];
		bpf_map_update_elem(&guard_charges, &address[i], &charge, BPF_ANY);
	}
	bpf_map_lookup_elem(&guard_counts, &slot)->used[KIND_qp] = 4;
	stale_drop(SLOT, KIND_cq);
	CHECK(qps() == 4, "%lld used", (long long)qps());
	stale_drop(SLOT, KIND_qp);
	CHECK(qps() == 1, "%lld used", (long long)qps());
	for (unsigned i = 0; i < OBJECTS; i++)
		CHECK(!bpf_map_lookup_elem(&guard_charges, &address[i]) == (i < ALIVE), "%u", i);
}

static void driver(void)
{
	RUN(contention);
	RUN(stale);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
