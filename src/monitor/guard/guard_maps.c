/* SPDX-License-Identifier: MIT */
/* The guard's maps, told and read; see guard_maps.h. */
#include "monitor/guard/guard_maps.h"

#include <errno.h>
#include <limits.h>
#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "monitor/reader/pinned_map.h"

#define CGROUPS_NAME "guard_tenants"
#define TENDED_NS 10000000000ull /* the loader comes five times a second */

static const struct {
	const char *name;
	size_t bytes;
	int protection;
	size_t offset; /* of the pointer in struct monitor_guard */
} mapped[GUARD_MAPPED] = {
	{ "guard_head", sizeof(struct guard_head), PROT_READ | PROT_WRITE,
	  offsetof(struct monitor_guard, head) },
	{ "guard_limits", GUARD_TENANTS * sizeof(struct guard_limits), PROT_READ | PROT_WRITE,
	  offsetof(struct monitor_guard, limits) },
	{ "guard_counts", GUARD_TENANTS * sizeof(struct guard_counts), PROT_READ,
	  offsetof(struct monitor_guard, counts) },
	{ "guard_log", GUARD_LOG * sizeof(struct guard_entry), PROT_READ,
	  offsetof(struct monitor_guard, log) },
	{ "guard_rules", 2 * GUARD_RULES * sizeof(struct guard_rule), PROT_READ | PROT_WRITE,
	  offsetof(struct monitor_guard, rules) },
};

static void **map_memory(struct monitor_guard *guard, unsigned map)
{
	return (void **)((char *)guard + mapped[map].offset);
}

/* ---- opening */

static int cgroups_open(struct monitor_guard *guard, const char *path)
{
	size_t bytes = GUARD_CGROUPS * sizeof(struct guard_cgroup);
	void *memory = NULL;
	bool is_map = false;
	int result, fd = pinned_map_open(path, PROT_READ | PROT_WRITE, &is_map);

	if (fd < 0)
		return fd;
	if (is_map) {
		guard->map = fd;
		return 0;
	}
	close(fd);
	result = pinned_map_memory(path, bytes, PROT_READ | PROT_WRITE, &memory, NULL);
	guard->file = memory;
	return result;
}

/* 0, or -errno with a sentence, for a head that was mapped. */
static int head_check(const struct guard_head *head, const char *directory,
		      char problem[PROBLEM_SIZE])
{
	if (!__atomic_load_n(&head->magic, __ATOMIC_ACQUIRE))
		return problem_set(-ENOENT, problem, "%s: the guard is just being loaded",
				   directory);
	if (head->magic != GUARD_MAGIC || head->version != GUARD_VERSION ||
	    head->tenants != GUARD_TENANTS || head->kinds != kinds_signature())
		return problem_set(
			-EPROTO, problem,
			"%s: the guard is of another version of rdma_monitor (layout %u, this is "
			"%u%s); unload it with: rdma_monitor --unload",
			directory, head->version, GUARD_VERSION,
			head->version == GUARD_VERSION ? ", other kinds or sizes" : "");
	return 0;
}

int monitor_guard_check(const char *directory, char problem[PROBLEM_SIZE])
{
	char path[PATH_MAX];
	void *memory = NULL;
	int result;

	snprintf(path, sizeof(path), "%s/%s", directory, mapped[0].name);
	result = pinned_map_memory(path, mapped[0].bytes, PROT_READ, &memory, NULL);
	if (result == 0) {
		result = head_check(memory, directory, problem);
		munmap(memory, mapped[0].bytes);
	} else if (result != -ENOENT) {
		problem_set(result, problem, "%s: %s", path, strerror(-result));
	}
	return result == -ENOENT ? 0 : result;
}

int monitor_guard_open(struct monitor_guard *ret_guard, const char *directory,
		       char problem[PROBLEM_SIZE])
{
	struct monitor_guard guard = { .map = -1 };
	char path[PATH_MAX];
	int result = 0;

	for (unsigned i = 0; i < GUARD_MAPPED && result == 0; i++) {
		snprintf(path, sizeof(path), "%s/%s", directory, mapped[i].name);
		result = pinned_map_memory(path, mapped[i].bytes, mapped[i].protection,
					   map_memory(&guard, i), &guard.inode[i]);
		if (result < 0)
			problem_set(result, problem,
				    result == -ENOENT ? "%s: no guard is loaded" : "%s/%s: %s",
				    directory, mapped[i].name, strerror(-result));
		else if (i == 0)
			result = head_check(guard.head, directory, problem);
	}
	if (result == 0) {
		snprintf(path, sizeof(path), "%s/%s", directory, CGROUPS_NAME);
		result = cgroups_open(&guard, path);
		if (result < 0)
			problem_set(result, problem, "%s: %s", path, strerror(-result));
	}
	if (result < 0)
		monitor_guard_close(&guard);
	else
		*ret_guard = guard;
	return result;
}

void monitor_guard_close(struct monitor_guard *guard)
{
	for (unsigned i = 0; i < GUARD_MAPPED; i++)
		if (*map_memory(guard, i))
			munmap(*map_memory(guard, i), mapped[i].bytes);
	if (guard->file)
		munmap(guard->file, GUARD_CGROUPS * sizeof(*guard->file));
	if (guard->map >= 0)
		close(guard->map);
	*guard = (struct monitor_guard){ .map = -1 };
}

/* Each load pins anew, so that inodes are others; and a file may have been cut. */
bool monitor_guard_is_current(const struct monitor_guard *guard, const char *directory)
{
	char path[PATH_MAX];
	struct stat file;

	for (unsigned i = 0; i < GUARD_MAPPED; i++) {
		snprintf(path, sizeof(path), "%s/%s", directory, mapped[i].name);
		if (stat(path, &file) || file.st_ino != guard->inode[i] ||
		    !pinned_map_is_whole(&file, guard->map >= 0, mapped[i].bytes))
			return false;
	}
	return true;
}

/* ---- cgroups */

static int file_cgroups(const struct monitor_guard *guard, struct guard_cgroup *ret_cgroups)
{
	int count = 0;

	for (unsigned i = 0; i < GUARD_CGROUPS; i++)
		if (guard->file[i].cgroup)
			ret_cgroups[count++] = guard->file[i];
	return count;
}

static int map_cgroups(const struct monitor_guard *guard, struct guard_cgroup *ret_cgroups)
{
	union bpf_attr attr;
	__u64 before = 0, next;
	int count = 0, result;

	while (count < GUARD_CGROUPS) {
		memset(&attr, 0, sizeof(attr));
		attr.map_fd = (__u32)guard->map;
		attr.key = count ? (__u64)(uintptr_t)&before : 0;
		attr.next_key = (__u64)(uintptr_t)&next;
		result = pinned_map_call(BPF_MAP_GET_NEXT_KEY, &attr);
		if (result < 0)
			return result == -ENOENT ? count : result;
		before = ret_cgroups[count].cgroup = next;
		memset(&attr, 0, sizeof(attr));
		attr.map_fd = (__u32)guard->map;
		attr.key = (__u64)(uintptr_t)&next;
		attr.value = (__u64)(uintptr_t)&ret_cgroups[count].slot;
		result = pinned_map_call(BPF_MAP_LOOKUP_ELEM, &attr);
		if (result < 0)
			return result;
		count++;
	}
	return count;
}

int monitor_guard_cgroups(const struct monitor_guard *guard, struct guard_cgroup **ret_cgroups)
{
	struct guard_cgroup *cgroups = calloc(GUARD_CGROUPS, sizeof(*cgroups));
	int count;

	if (!cgroups)
		return -ENOMEM;
	count = guard->file ? file_cgroups(guard, cgroups) : map_cgroups(guard, cgroups);
	if (count < 0)
		free(cgroups);
	else
		*ret_cgroups = cgroups;
	return count;
}

/* The place of a cgroup, with 0 a free one, or NULL. */
static struct guard_cgroup *file_find(const struct monitor_guard *guard, __u64 cgroup)
{
	for (unsigned i = 0; i < GUARD_CGROUPS; i++)
		if (guard->file[i].cgroup == cgroup)
			return &guard->file[i];
	return NULL;
}

static int file_set(const struct monitor_guard *guard, __u64 cgroup, __u32 slot)
{
	struct guard_cgroup *place = file_find(guard, cgroup);

	if (!place)
		place = file_find(guard, 0);
	if (!place)
		return -E2BIG;
	__atomic_store_n(&place->slot, slot, __ATOMIC_RELAXED);
	__atomic_store_n(&place->cgroup, cgroup, __ATOMIC_RELEASE);
	return 0;
}

int monitor_guard_cgroup_set(const struct monitor_guard *guard, __u64 cgroup, __u32 slot)
{
	union bpf_attr attr;

	if (guard->file)
		return file_set(guard, cgroup, slot);
	memset(&attr, 0, sizeof(attr));
	attr.map_fd = (__u32)guard->map;
	attr.key = (__u64)(uintptr_t)&cgroup;
	attr.value = (__u64)(uintptr_t)&slot;
	attr.flags = BPF_ANY;
	return pinned_map_call(BPF_MAP_UPDATE_ELEM, &attr);
}

int monitor_guard_cgroup_clear(const struct monitor_guard *guard, __u64 cgroup)
{
	union bpf_attr attr;
	struct guard_cgroup *place;

	if (guard->file) {
		place = file_find(guard, cgroup);
		if (!place)
			return -ENOENT;
		__atomic_store_n(&place->cgroup, 0, __ATOMIC_RELEASE);
		return 0;
	}
	memset(&attr, 0, sizeof(attr));
	attr.map_fd = (__u32)guard->map;
	attr.key = (__u64)(uintptr_t)&cgroup;
	return pinned_map_call(BPF_MAP_DELETE_ELEM, &attr);
}

void monitor_guard_cgroups_changed(const struct monitor_guard *guard)
{
	__atomic_add_fetch(&guard->head->epoch, 1, __ATOMIC_SEQ_CST);
}

/* ---- rules */

static struct guard_rule *rules_half(const struct monitor_guard *guard, __u32 rules)
{
	return guard->rules + (rules & GUARD_RULES_HALF ? GUARD_RULES : 0);
}

const struct guard_rule *monitor_guard_rules(const struct monitor_guard *guard, unsigned *ret_count)
{
	__u32 rules = __atomic_load_n(&guard->head->rules, __ATOMIC_ACQUIRE);

	*ret_count = rules & ~GUARD_RULES_HALF;
	if (*ret_count > GUARD_RULES)
		*ret_count = GUARD_RULES;
	return rules_half(guard, rules);
}

void monitor_guard_rules_set(const struct monitor_guard *guard, const struct guard_rule *rules,
			     unsigned count)
{
	__u32 half = ~__atomic_load_n(&guard->head->rules, __ATOMIC_RELAXED) & GUARD_RULES_HALF;

	memcpy(rules_half(guard, half), rules, count * sizeof(*rules));
	__atomic_store_n(&guard->head->rules, half | count, __ATOMIC_SEQ_CST);
}

/* ---- limits and counts */

bool monitor_guard_is_tended(const struct monitor_guard *guard)
{
	__u64 tended_ns = __atomic_load_n(&guard->head->tended_ns, __ATOMIC_RELAXED);

	return clock_boot_ns() < tended_ns + TENDED_NS;
}

void monitor_guard_name_set(const struct monitor_guard *guard, __u32 slot, const char *tenant)
{
	snprintf(guard->limits[slot].tenant, GUARD_NAME, "%s", tenant);
}

bool monitor_guard_is_named(const struct monitor_guard *guard, __u32 slot, const char *tenant)
{
	return !strncmp(guard->limits[slot].tenant, tenant, GUARD_NAME);
}

void monitor_guard_limit(const struct monitor_guard *guard, __u32 slot, enum kind kind, __u64 limit)
{
	if (guard->limits[slot].limit[kind] != limit)
		__atomic_store_n(&guard->limits[slot].limit[kind], limit, __ATOMIC_SEQ_CST);
}

void monitor_guard_host_limited(const struct monitor_guard *guard, __u32 slot, bool limited)
{
	if (guard->limits[slot].host_limited != limited)
		__atomic_store_n(&guard->limits[slot].host_limited, limited, __ATOMIC_SEQ_CST);
}

/* The bits first, so that no device is refused that was allowed before and is now. */
void monitor_guard_devices(const struct monitor_guard *guard, __u32 slot,
			   const __u64 bits[GUARD_DEVICES / 64])
{
	struct guard_limits *limits = &guard->limits[slot];

	for (unsigned i = 0; bits && i < GUARD_DEVICES / 64; i++)
		if (limits->device[i] != bits[i])
			__atomic_store_n(&limits->device[i], bits[i], __ATOMIC_SEQ_CST);
	if (limits->restricted != (bits != NULL))
		__atomic_store_n(&limits->restricted, bits != NULL, __ATOMIC_SEQ_CST);
}

void monitor_guard_counts(const struct monitor_guard *guard, __u32 slot,
			  struct guard_counts *ret_counts)
{
	const struct guard_counts *counts = &guard->counts[slot];

	for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
		ret_counts->used[kind] = __atomic_load_n(&counts->used[kind], __ATOMIC_RELAXED);
		ret_counts->floating[kind] =
			__atomic_load_n(&counts->floating[kind], __ATOMIC_RELAXED);
		ret_counts->refused[kind] =
			__atomic_load_n(&counts->refused[kind], __ATOMIC_RELAXED);
		ret_counts->overrun[kind] =
			__atomic_load_n(&counts->overrun[kind], __ATOMIC_RELAXED);
	}
	ret_counts->killed = __atomic_load_n(&counts->killed, __ATOMIC_RELAXED);
	ret_counts->afloat = __atomic_load_n(&counts->afloat, __ATOMIC_RELAXED);
	for (unsigned table = 0; table < GUARD_TABLES; table++) {
		ret_counts->taken[table] = __atomic_load_n(&counts->taken[table], __ATOMIC_RELAXED);
		ret_counts->crowded[table] =
			__atomic_load_n(&counts->crowded[table], __ATOMIC_RELAXED);
	}
}

__s64 monitor_guard_room(const struct monitor_guard *guard, __u32 slot, enum guard_table table)
{
	__s64 most = (__s64)guard->head->most[table];

	return most - most / GUARD_RESERVE -
	       __atomic_load_n(&guard->head->taken[table], __ATOMIC_RELAXED) -
	       __atomic_load_n(&guard->counts[slot].taken[table], __ATOMIC_RELAXED);
}

/* ---- the log */

bool monitor_guard_log(const struct monitor_guard *guard, __u64 *seen, __u64 *lost,
		       struct guard_entry *ret_entry)
{
	__u64 logged = __atomic_load_n(&guard->head->logged, __ATOMIC_ACQUIRE);

	if (logged > *seen + GUARD_LOG) {
		*lost += logged - GUARD_LOG - *seen;
		*seen = logged - GUARD_LOG;
	}
	while (*seen < logged) {
		__u64 number = *seen + 1, before;
		const struct guard_entry *entry = &guard->log[*seen % GUARD_LOG];

		before = __atomic_load_n(&entry->number, __ATOMIC_ACQUIRE);
		memcpy(ret_entry, entry, sizeof(*entry));
		__sync_synchronize(); /* what was copied was read before this */
		if (before == number &&
		    __atomic_load_n(&entry->number, __ATOMIC_RELAXED) == before) {
			ret_entry->command[GUARD_COMMAND - 1] = '\0';
			*seen = number;
			return true;
		}
		if (before < number)
			return false; /* it is being written */
		*lost += 1;
		*seen = number;
	}
	return false;
}
