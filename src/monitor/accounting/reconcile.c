/* SPDX-License-Identifier: MIT */
/*
 * What the programs did not see: objects that are older than the accounting or were missed, objects
 * and rows whose end was missed. Found and put right; see loader_parts.h.
 */
#include "monitor/accounting/loader_parts.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/proc.h"
#include "monitor/kernel/pins.h"

enum {
	SEED_PASSES = 4096,
	ACTIVE_MS = 200,
	IDLE_MS = 10000,
	SELDOM_MS = 60000,
};

/* Each list is read from its beginning. */
static void cursors_clear(const struct loader *loader)
{
	int cursors = pins_open(loader->directory, "cursors");
	__u64 file;

	while (cursors >= 0 && !bpf_map_get_next_key(cursors, NULL, &file) &&
	       !bpf_map_delete_elem(cursors, &file))
		;
	if (cursors >= 0)
		close(cursors);
}

static int seed_all(struct loader *loader, char problem[PROBLEM_SIZE])
{
	cursors_clear(loader);
	for (unsigned pass = 0; pass < SEED_PASSES; pass++) {
		int result;

		__atomic_fetch_add(&loader->head->seed_pass, 1, __ATOMIC_SEQ_CST);
		__atomic_store_n(&loader->head->seed_unfinished, 0, __ATOMIC_SEQ_CST);
		result = pins_iterate(loader->directory, "seed", sizeof(__u64), NULL, NULL);
		if (result < 0)
			return problem_set(result, problem, "listing existing objects failed: %s",
					   strerror(-result));
		if (!__atomic_load_n(&loader->head->seed_unfinished, __ATOMIC_SEQ_CST))
			return 0;
	}
	return problem_set(-EOVERFLOW, problem, "gave up listing existing objects after %u passes",
			   SEED_PASSES);
}

struct stale {
	int program; /* stale_remove */
	unsigned removed;
};

/* An object whose end was not seen; only a gap in the watching leaves any. In the kernel, since
 * here another object could come to be there between a look at it and its removal. */
static void stale_remove_one(void *closure, const void *record)
{
	struct stale *stale = closure;
	__u64 address = *(const __u64 *)record;
	LIBBPF_OPTS(bpf_test_run_opts, run, .ctx_in = &address, .ctx_size_in = sizeof(address));

	if (!bpf_prog_test_run_opts(stale->program, &run) && run.retval)
		stale->removed++;
}

/* Rows of processes whose end was not seen. */
static bool row_has_ended(const struct monitor_row *row)
{
	struct proc_stat stat;
	int result = proc_stat_read((pid_t)row->pid, &stat);

	return result < 0 ? result == -ENOENT || result == -ESRCH :
			    stat.start != row->start_ns / proc_tick_ns();
}

static void rows_vacate(struct loader *loader, int owners, int vacant)
{
	for (__u32 i = 1; i < MONITOR_ROWS; i++) {
		struct monitor_row *row = &loader->rows[i];
		struct {
			__u32 pid, nth;
			__u64 start_ns;
		} key = { row->pid, row->nth, row->start_ns };

		if (!(row->generation & 1) || !row_has_ended(row))
			continue;
		__atomic_store_n(&row->exited, 1, __ATOMIC_SEQ_CST);
		if (__atomic_load_n(&row->live, __ATOMIC_SEQ_CST) == 0 &&
		    !bpf_map_delete_elem(owners, &key)) {
			__atomic_fetch_add(&row->generation, 1, __ATOMIC_SEQ_CST);
			bpf_map_update_elem(vacant, NULL, &i, BPF_ANY);
		}
	}
}

/* Finds what was missed, and removes what is there no more. */
static int loader_reconcile(struct loader *loader, char problem[PROBLEM_SIZE])
{
	int owners = pins_open(loader->directory, "owners"),
	    vacant = pins_open(loader->directory, "vacant");
	struct stale stale = { .program = pins_open(loader->directory, "stale_remove") };
	int result = seed_all(loader, problem);

	if (result == 0 && (stale.program < 0 || owners < 0 || vacant < 0))
		result = problem_set(-ENOENT, problem,
				     "%s: a map or a program of the accounting is missing",
				     loader->directory);
	if (result == 0) {
		pins_iterate_twice(loader->directory, "stale_list", sizeof(__u64), stale_remove_one,
				   &stale);
		/* Another object may be where one of them was. */
		if (stale.removed)
			result = seed_all(loader, problem);
	}
	if (result == 0) {
		rows_vacate(loader, owners, vacant);
		loader->head->seeded_ns = clock_boot_ns();
	}
	if (stale.program >= 0)
		close(stale.program);
	if (owners >= 0)
		close(owners);
	if (vacant >= 0)
		close(vacant);
	return result;
}

/* The programs that list what is there are in place, and read the modules as they are now. */
bool loader_lists_hold(const struct loader *loader)
{
	char path[PATH_MAX];

	pins_path(loader->directory, "", "stale_list", path);
	return !access(path, F_OK) &&
	       !memcmp(&loader->listed, &loader->probe.offsets, sizeof(loader->listed));
}

/* ---- what was missed */

__u64 loader_misses(const struct loader *loader)
{
	__u64 sum = pins_misses(loader->directory, LOADER_EXIT_LINK);

	for (unsigned i = 0; i < MONITOR_HOOKS; i++)
		if (i != MONITOR_HOOK_destroy || !loader->probe.preempts) /* others see it, too */
			sum += pins_misses(loader->directory, loader_hooks[i].name);
	return sum;
}

/* A number that changes when anything is made or goes. */
static __u64 loader_activity(const struct loader *loader)
{
	__u64 sum = 0;

	for (unsigned i = 0; i < MONITOR_ROWS; i++) {
		const struct monitor_row *row = &loader->rows[i];

		sum += row->generation;
		for (unsigned j = 0; row->generation & 1 && j < MONITOR_COUNTERS; j++)
			sum += row->made[j] + row->gone[j];
	}
	return sum;
}

/* By kprobes, not all that is missed is counted: then it is looked for while there is activity.
 * What was under way when a hook was attached is missed by that hook. */
bool loader_is_due(const struct loader *loader)
{
	__u64 now = clock_boot_ns(), since_ms = (now - loader->head->seeded_ns) / 1000000;
	bool by_kprobe = loader->probe.mode == MONITOR_KPROBE,
	     young = (now - loader->attached_ns) / 1000000 < PINS_YOUNG_MS;

	return loader_misses(loader) != loader->head->misses ||
	       (young && since_ms > PINS_YOUNG_STEP_MS) ||
	       since_ms > (by_kprobe ? IDLE_MS : SELDOM_MS) ||
	       (by_kprobe && since_ms > ACTIVE_MS && loader_activity(loader) != loader->activity);
}

/* What is missed while we look is for the next time. */
int loader_catch_up(struct loader *loader, char problem[PROBLEM_SIZE])
{
	__u64 missed = loader_misses(loader), before = loader_activity(loader);
	int result = 0;

	/* Where nothing can be listed, what was there before stays unknown. */
	if (loader_lists_hold(loader))
		result = loader_reconcile(loader, problem);
	if (result < 0)
		return result;
	loader->head->misses = missed;
	loader->activity = before;
	return 0;
}
