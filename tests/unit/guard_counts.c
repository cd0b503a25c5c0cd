/* SPDX-License-Identifier: MIT */
/*
 * The guard's counts: the limits of a tenant and of the host, limits that fall while somebody counts,
 * and so many others that every compare-and-swap is lost. Charges of objects whose end was not seen. The functions run here on a stand-in for the kernel: no
 * test can arrange the first in the lab, and of the second only some (guard-skips).
 */
#pragma GCC diagnostic ignored "-Wunknown-pragmas"
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
static unsigned long long losses; /* so many compare-and-swaps still fail */
static unsigned long long *fall;  /* this limit falls to 5 at the next one */
#define __sync_val_compare_and_swap(place, old, new)                                               \
	(fall ? (*fall = 5, fall = 0) : 0,                                                         \
	 losses ? (losses--, (old) + 1) : (__sync_val_compare_and_swap)(place, old, new))
#define __bpf__
#include "monitor/guard/guard.bpf.c"
#undef __bpf__
#undef __sync_val_compare_and_swap

#include "harness.h"

enum { SLOT = 3, FEW = 20, MANY = 1000000 };

static struct guard_limits *limits_of(__u32 slot)
{
	return bpf_map_lookup_elem(&guard_limits, &slot);
}

static struct guard_counts *counts_of(__u32 slot)
{
	return bpf_map_lookup_elem(&guard_counts, &slot);
}

/* One more QP of a tenant that has `used` of them. */
static int qp_take(__s64 used, __u64 limit, unsigned lost)
{
	struct lack lack;

	limits_of(SLOT)->limit[KIND_qp] = limit;
	counts_of(SLOT)->used[KIND_qp] = used;
	losses = lost;
	return count_take(SLOT, KIND_qp, 1, &lack);
}

static __s64 qps(void)
{
	return counts_of(SLOT)->used[KIND_qp];
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

/* A tenant that has 3 of 10, where all have 7: one or more at a limit of the host. */
static void host(void)
{
	static const struct {
		__u64 limit, limited, amount;
		int result;
	} trials[] = {
		{ UNLIMITED, 1, 1, 0 }, { 8, 1, 1, 0 },	      { 7, 1, 1, -EDQUOT },
		{ 8, 1, 2, -EDQUOT },	{ 0, 1, 1, -EDQUOT }, { 7, 0, 1, 0 },
		{ 0, 0, 7, 0 },		{ 100, 1, 8, -EDQUOT },
	};

	losses = 0;
	for (unsigned i = 0; i < sizeof(trials) / sizeof(trials[0]); i++) {
		struct lack lack = { 0 };
		int result;

		limits_of(SLOT)->limit[KIND_qp] = 10;
		limits_of(SLOT)->host_limited = trials[i].limited;
		limits_of(GUARD_HOST)->limit[KIND_qp] = trials[i].limit;
		counts_of(SLOT)->used[KIND_qp] = 3;
		counts_of(GUARD_HOST)->used[KIND_qp] = 7;
		result = count_take(SLOT, KIND_qp, trials[i].amount, &lack);
		CHECK(result == trials[i].result, "row %u: %d", i, result);
		CHECK(counts_of(SLOT)->used[KIND_qp] == 3 + (result ? 0 : (__s64)trials[i].amount) &&
			      counts_of(GUARD_HOST)->used[KIND_qp] ==
				      7 + (result ? 0 : (__s64)trials[i].amount),
		      "row %u: %lld, %lld", i, (long long)counts_of(SLOT)->used[KIND_qp],
		      (long long)counts_of(GUARD_HOST)->used[KIND_qp]);
		CHECK(!result || lack.event == (trials[i].limit == 100 ? GUARD_REFUSED :
								       GUARD_HOST_REFUSED),
		      "row %u: event %u", i, lack.event);
		if (!result)
			count_put(SLOT, KIND_qp, -(__s64)trials[i].amount);
		CHECK(counts_of(SLOT)->used[KIND_qp] == 3 &&
			      counts_of(GUARD_HOST)->used[KIND_qp] == 7,
		      "row %u: given back", i);
	}
	/* More than a process has addresses: refused to all, or sums would not fit into a count. */
	limits_of(SLOT)->limit[KIND_mr_bytes] = UNLIMITED;
	limits_of(SLOT)->host_limited = 0;
	for (unsigned bit = 47; bit < 64; bit++) {
		struct lack lack = { 0 };

		CHECK(count_take(SLOT, KIND_mr_bytes, (1ull << bit) + 1, &lack) == -EDQUOT &&
			      !counts_of(GUARD_HOST)->used[KIND_mr_bytes],
		      "bit %u", bit);
	}
	count_put(GUARD_HOST, KIND_qp, -7);
	CHECK(counts_of(GUARD_HOST)->used[KIND_qp] == 7, "no tenant has the host's slot");
}

/* The collector lowers a limit between the look at it and the count, then reads the count. */
static void falling(void)
{
	losses = 0;
	for (unsigned of_host = 0; of_host < 2; of_host++)
		for (__s64 used = 3; used < 8; used++) {
			struct lack lack = { 0 };
			int result;

			limits_of(SLOT)->limit[KIND_qp] = of_host ? UNLIMITED : 10;
			limits_of(SLOT)->host_limited = 1;
			limits_of(GUARD_HOST)->limit[KIND_qp] = of_host ? 10 : UNLIMITED;
			counts_of(SLOT)->used[KIND_qp] = used;
			counts_of(GUARD_HOST)->used[KIND_qp] = used;
			fall = &limits_of(of_host ? GUARD_HOST : SLOT)->limit[KIND_qp];
			result = count_take(SLOT, KIND_qp, 1, &lack);
			CHECK(!fall && result == (used < 5 ? 0 : -EDQUOT), "%u, %lld: %d", of_host,
			      (long long)used, result);
			CHECK(counts_of(SLOT)->used[KIND_qp] == used + !result &&
				      counts_of(GUARD_HOST)->used[KIND_qp] == used + !result,
			      "%u, %lld: counts", of_host, (long long)used);
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
	RUN(host);
	RUN(falling);
	RUN(stale);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
