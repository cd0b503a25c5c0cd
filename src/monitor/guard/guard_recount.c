/* SPDX-License-Identifier: MIT */
/*
 * What the guard's programs did not see: objects that are older than the guard, ends that were
 * missed, and reservations that float. The accounting lists what is there; here it is charged, and
 * what is not there is given back; see guard_loader_parts.h.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "monitor/guard/excess.h"
#include "monitor/guard/guard_loader_parts.h"
#include "base/clock.h"
#include "monitor/guard/tenancy.h"
#include "monitor/kernel/pins.h"

enum {
	ADOPT_PASSES = 8,
	LIST_PASSES = 4096,
	EXCESS_LOOKS = 50, /* there are five in a second */
	REST = 4,	   /* times as long as it took to look for objects, */
	THREADS_REST = 20, /* and for threads */
};

static bool floats_any(const struct guard_loader *loader)
{
	for (unsigned slot = 1; slot < GUARD_TENANTS; slot++)
		if (__atomic_load_n(&loader->counts[slot].afloat, __ATOMIC_RELAXED))
			return true;
	return false;
}

/* Threads whose end was not seen have places, too: one that is not the first of its process and
 * calls exec goes on under another number. They are looked for before a tenant has its share. */
static bool threads_are_crowded(const struct guard_loader *loader)
{
	return __atomic_load_n(&loader->head->taken[GUARD_RUNNING], __ATOMIC_RELAXED) >
	       (__s64)loader->head->most[GUARD_RUNNING] / 4;
}

static struct tenancy tenancy_open(const struct guard_loader *loader)
{
	return (struct tenancy){ loader->head, loader->rules,
				 pins_open(loader->directory, "guard_tenants") };
}

static void tenancy_close(const struct tenancy *tenancy)
{
	if (tenancy->tenants >= 0)
		close(tenancy->tenants);
}

struct adoption {
	struct tenancy tenancy;
	int tenancies; /* the map */
	const struct monitor_row *rows;
	unsigned unknown; /* cgroups of which it was not known whose they are */
	bool ownerless;	  /* a cgroup is gone, and nobody is left who made objects in it */
};

/* The tenant, in its present cgroup, of a process that made an object in a cgroup that is gone. */
static int owner_find(const struct adoption *adoption, __u64 cgroup)
{
	for (unsigned i = 1; i < MONITOR_ROWS; i++) {
		const struct monitor_row *row = &adoption->rows[i];

		if (row->generation & 1 && row->cgroup == cgroup && !row->exited)
			return (int)tenancy_of_process(&adoption->tenancy, (pid_t)row->pid);
	}
	return -ESRCH;
}

/* Decides whose a cgroup is in which somebody made an object; 0: an object is being made. */
static void tenancy_write(void *closure, const void *record)
{
	struct adoption *adoption = closure;
	__u64 epoch = adoption->tenancy.head->epoch, cgroup = *(const __u64 *)record;
	struct guard_tenancy tenancy = { .epoch = epoch }, known;
	int slot;

	if (cgroup && !bpf_map_lookup_elem(adoption->tenancies, &cgroup, &known) &&
	    known.epoch == epoch && known.ownerless) {
		adoption->ownerless = true;
		return;
	}
	adoption->unknown++;
	if (!cgroup)
		return;
	slot = tenancy_of_cgroup(&adoption->tenancy, cgroup);
	if (slot < 0)
		slot = owner_find(adoption, cgroup);
	tenancy.slot = slot > 0 ? (__u32)slot : 0;
	tenancy.ownerless = slot < 0;
	bpf_map_update_elem(adoption->tenancies, &cgroup, &tenancy, BPF_ANY);
}

/* Charges what the accounting has listed. True if it is known of all whose they are, or that
 * nobody can tell of some (ret_ownerless). */
static bool objects_adopt(const struct guard_loader *loader, bool *ret_ownerless)
{
	struct adoption adoption = {
		.tenancy = tenancy_open(loader),
		.tenancies = pins_open(loader->directory, "guard_tenancies"),
		.rows = loader->owners,
		.unknown = 1,
	};

	for (unsigned pass = 0; pass < ADOPT_PASSES && adoption.unknown; pass++) {
		adoption.unknown = 0;
		if (adoption.tenancy.tenants < 0 || adoption.tenancies < 0 ||
		    pins_iterate(loader->directory, "g_adopt", sizeof(__u64), tenancy_write,
				 &adoption) < 0)
			adoption.unknown = 1;
	}
	tenancy_close(&adoption.tenancy);
	if (adoption.tenancies >= 0)
		close(adoption.tenancies);
	*ret_ownerless = adoption.ownerless;
	return !adoption.unknown;
}

/* Lists what is there, as the accounting's loader does. True if that was all. */
static bool objects_list(const struct guard_loader *loader)
{
	struct monitor_head *monitor = loader->monitor;
	__u64 lost = __atomic_load_n(&monitor->lost_objects, __ATOMIC_SEQ_CST);

	for (unsigned pass = 0; pass < LIST_PASSES; pass++) {
		__atomic_store_n(&monitor->seed_unfinished, 0, __ATOMIC_SEQ_CST);
		if (pins_iterate(loader->directory, "seed", sizeof(__u64), NULL, NULL) < 0)
			return false;
		if (!__atomic_load_n(&monitor->seed_unfinished, __ATOMIC_SEQ_CST))
			return __atomic_load_n(&monitor->lost_objects, __ATOMIC_SEQ_CST) == lost;
	}
	return false;
}

static void places_put(const struct guard_loader *loader, __u32 slot, enum guard_table table,
		       __s64 amount)
{
	__atomic_fetch_sub(&loader->head->taken[table], amount, __ATOMIC_SEQ_CST);
	__atomic_fetch_sub(&loader->counts[slot].taken[table], amount, __ATOMIC_SEQ_CST);
}

/* When to look again, after so many times as long as the look took. */
static __u64 rest_until_ns(__u64 begun_ns, unsigned times)
{
	__u64 now_ns = clock_boot_ns();

	return now_ns + times * (now_ns - begun_ns);
}

/* A thread whose end was not seen. What it was at floats. */
static void thread_forget(const struct guard_loader *loader, int commands, __u32 thread)
{
	struct guard_command last;
	struct guard_counts *counts;

	if (!kill((pid_t)thread, 0) || errno != ESRCH ||
	    bpf_map_lookup_and_delete_elem(commands, &thread, &last))
		return;
	if (last.payer < GUARD_TENANTS)
		places_put(loader, last.payer, GUARD_RUNNING, 1);
	if (last.state < GUARD_RESERVED || last.slot >= GUARD_TENANTS || last.kind >= KIND_COUNT)
		return;
	counts = &loader->counts[last.slot];
	__atomic_fetch_add(&counts->afloat, 1, __ATOMIC_SEQ_CST);
	if (last.kind != KIND_mr_bytes)
		__atomic_fetch_add(&counts->floating[last.kind], 1, __ATOMIC_SEQ_CST);
	if (last.kind == KIND_mr || last.kind == KIND_mr_bytes)
		__atomic_fetch_add(&counts->floating[KIND_mr_bytes], (__s64)last.bytes,
				   __ATOMIC_SEQ_CST);
}

static void threads_forget(struct guard_loader *loader)
{
	int commands = pins_open(loader->directory, "guard_commands");
	__u64 begun_ns = clock_boot_ns();
	__u32 thread, before, *at = NULL;

	while (commands >= 0 && !bpf_map_get_next_key(commands, at, &thread)) {
		if (at) /* only now: from it the next one was found */
			thread_forget(loader, commands, before);
		before = thread;
		at = &before;
	}
	if (at)
		thread_forget(loader, commands, before);
	if (commands >= 0)
		close(commands);
	loader->threads_rest_ns = rest_until_ns(begun_ns, THREADS_REST);
}

/* What floats in a slot at a moment. */
struct afloat {
	__s64 places, amount[KIND_COUNT];
};

static void afloat_seek(struct guard_counts *counts, struct afloat *ret_afloat)
{
	ret_afloat->places = __atomic_load_n(&counts->afloat, __ATOMIC_SEQ_CST);
	counts->sought_places = ret_afloat->places;
	for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
		ret_afloat->amount[kind] =
			__atomic_load_n(&counts->floating[kind], __ATOMIC_SEQ_CST);
		counts->sought[kind] = ret_afloat->amount[kind];
	}
}

/* What was found floats no more. What was not found does not exist, if everything was listed. */
static void afloat_settle(const struct guard_loader *loader, __u32 slot,
			  const struct afloat *afloat, bool complete)
{
	struct guard_counts *counts = &loader->counts[slot];
	__s64 lost = counts->sought_places;

	for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
		__s64 left = counts->sought[kind];

		/* In this order: if we are killed in between, too much counts, not too little. */
		if (afloat->amount[kind])
			__atomic_fetch_sub(&counts->floating[kind],
					   afloat->amount[kind] - (complete ? 0 : left),
					   __ATOMIC_SEQ_CST);
		if (complete && left) {
			__atomic_fetch_sub(&counts->used[kind], left, __ATOMIC_SEQ_CST);
			__atomic_fetch_sub(&loader->counts[GUARD_HOST].used[kind], left,
					   __ATOMIC_SEQ_CST);
		}
		counts->sought[kind] = 0;
	}
	counts->sought_places = 0;
	if (!afloat->places)
		return;
	if (complete)
		places_put(loader, slot, GUARD_OBJECTS, lost);
	__atomic_fetch_sub(&counts->afloat, afloat->places - (complete ? 0 : lost),
			   __ATOMIC_SEQ_CST);
}

/*
 * Charges what the accounting has found and nobody is charged for, and forgets what is there
 * no more. What floated before that is either found now, or it is not there: it floats no more.
 * Unless not everything could be listed: then all stays as it is, and the head says so.
 */
static void recount(struct guard_loader *loader)
{
	static struct afloat afloat[GUARD_TENANTS];
	__u64 begun_ns = clock_boot_ns();
	bool complete, ownerless;

	/* What comes after this is for the next time. */
	loader->misses = guard_misses(loader);
	loader->epoch = loader->head->epoch;
	loader->seeded_ns = loader->monitor->seeded_ns;
	threads_forget(loader);
	for (unsigned slot = 0; slot < GUARD_TENANTS; slot++)
		afloat_seek(&loader->counts[slot], &afloat[slot]);
	complete = objects_list(loader);
	complete &= objects_adopt(loader, &ownerless);
	/* A charge without an object is stale; unless there was no room for objects. */
	if (complete && !loader->monitor->lost_objects)
		pins_iterate(loader->directory, "g_strays", sizeof(__u64), NULL, NULL);
	for (unsigned slot = 0; slot < GUARD_TENANTS; slot++)
		afloat_settle(loader, slot, &afloat[slot], complete);
	__atomic_store_n(&loader->head->incomplete, (__u64)(!complete || ownerless),
			 __ATOMIC_SEQ_CST);
	__atomic_store_n(&loader->head->counted, loader->epoch, __ATOMIC_SEQ_CST);
	loader->rest_ns = rest_until_ns(begun_ns, REST);
}

/* A loader that was killed may have lowered the count of a tenant and not that of the host. A
 * program in the kernel is between the two for a moment; so only what stays the same for
 * long is taken off. */
static void host_count_tend(struct guard_loader *loader)
{
	struct guard_counts *host = &loader->counts[GUARD_HOST];

	for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
		__s64 excess = __atomic_load_n(&host->used[kind], __ATOMIC_SEQ_CST);

		for (unsigned slot = 1; slot < GUARD_TENANTS; slot++)
			excess -= __atomic_load_n(&loader->counts[slot].used[kind], __ATOMIC_SEQ_CST);
		if (excess <= 0 || excess != loader->host_excess[kind])
			loader->host_looks[kind] = 0;
		loader->host_excess[kind] = excess;
		if (excess > 0 && ++loader->host_looks[kind] >= EXCESS_LOOKS)
			__atomic_fetch_sub(&host->used[kind], excess, __ATOMIC_SEQ_CST);
	}
}

/* Of files that are closed: see excess.h. */
static void excess_tend(struct guard_loader *loader)
{
	struct tenancy tenancy;

	if (!__atomic_load_n(&loader->head->closed, __ATOMIC_RELAXED))
		return;
	tenancy = tenancy_open(loader);
	if (tenancy.tenants >= 0)
		excess_end(loader->directory, &tenancy, loader->counts);
	tenancy_close(&tenancy);
}

/* With the accounting, which looks often while calls may be under way that began before
 * something was attached. */
static bool recount_is_due(const struct guard_loader *loader)
{
	return loader->head->epoch != loader->epoch ||
	       loader->monitor->seeded_ns != loader->seeded_ns ||
	       guard_misses(loader) != loader->misses ||
	       (clock_boot_ns() > loader->rest_ns &&
		(loader->head->incomplete || floats_any(loader)));
}

void guard_recount_tend(struct guard_loader *loader)
{
	if (loader->head->armed) {
		excess_tend(loader);
		host_count_tend(loader);
	}
	if (loader->head->armed && recount_is_due(loader))
		recount(loader);
	else if (threads_are_crowded(loader) && clock_boot_ns() > loader->threads_rest_ns)
		threads_forget(loader);
}
