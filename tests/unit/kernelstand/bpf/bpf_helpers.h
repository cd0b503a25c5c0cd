/* SPDX-License-Identifier: MIT */
/*
 * A stand-in for libbpf's header, with which the programs for the kernel are compiled for a test
 * on the host: maps are lists, the kernel's memory and the user's are the test's own.
 */
#ifndef KERNELSTAND_BPF_HELPERS_H
#define KERNELSTAND_BPF_HELPERS_H

#include <stdlib.h>
#include <string.h>

#define SEC(name) __attribute__((used))
#define __uint(name, value) int(*name)[value]
#define __type(name, value) __typeof__(value) *name
#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
#define __noinline __attribute__((noinline))
#define NUMBER_OF(member) (sizeof(*(member)) / sizeof(int))

struct seq_file;

/* What the programs find around them, and what they did; for the test to set and to read. */
static struct stand {
	__u64 cgroup;	  /* of the current process, below the root */
	__u64 thread;	  /* tgid << 32 | tid */
	unsigned kills;	  /* signals sent to it */
	const void *full; /* a map that takes no further entry */
} stand;

struct stand_entry {
	struct stand_entry *next;
	const void *map;
	__u64 key;
	_Alignas(16) char value[];
};
static struct stand_entry *stand_entries;

static inline struct stand_entry **stand_find(const void *map, const void *key, size_t size)
{
	struct stand_entry **at = &stand_entries;
	__u64 wanted = 0;

	memcpy(&wanted, key, size);
	while (*at && ((*at)->map != map || (*at)->key != wanted))
		at = &(*at)->next;
	return at;
}

static inline void *stand_add(const void *map, const void *key, size_t size, size_t value_size)
{
	struct stand_entry *entry = calloc(1, sizeof(*entry) + value_size);

	if (!entry)
		abort();
	entry->map = map;
	memcpy(&entry->key, key, size);
	entry->next = stand_entries;
	stand_entries = entry;
	return entry->value;
}

/* An array has all its entries. */
#define bpf_map_lookup_elem(map_, key_)                                                            \
	({                                                                                         \
		struct stand_entry **at_ = stand_find(map_, key_, sizeof(*(map_)->key));           \
		(__typeof__((map_)->value))(*at_ ? (*at_)->value :                                 \
					    NUMBER_OF((map_)->type) == BPF_MAP_TYPE_ARRAY ?        \
						   stand_add(map_, key_, sizeof(*(map_)->key),     \
							     sizeof(*(map_)->value)) :             \
						   NULL);                                          \
	})
#define bpf_map_update_elem(map_, key_, from, flags)                                               \
	stand_update(map_, key_, sizeof(*(map_)->key), from, sizeof(*(map_)->value), flags)
#define bpf_map_delete_elem(map_, key_) stand_delete(map_, key_, sizeof(*(map_)->key))

static inline long stand_update(const void *map, const void *key, size_t size, const void *from,
				size_t value_size, __u64 flags)
{
	struct stand_entry **at = stand_find(map, key, size);

	if ((*at && flags == BPF_NOEXIST) || (!*at && map == stand.full))
		return -1;
	memcpy(*at ? (*at)->value : stand_add(map, key, size, value_size), from, value_size);
	return 0;
}

static inline long stand_delete(const void *map, const void *key, size_t size)
{
	struct stand_entry **at = stand_find(map, key, size), *entry = *at;

	if (!entry)
		return -1;
	*at = entry->next;
	free(entry);
	return 0;
}

/* A step may delete its own entry. */
#define bpf_for_each_map_elem(map_, step, context, flags)                                          \
	({                                                                                         \
		struct stand_entry *next_ = NULL;                                                  \
		for (struct stand_entry *entry_ = stand_entries; entry_; entry_ = next_) {         \
			next_ = entry_->next;                                                      \
			if (entry_->map == (map_) && step(map_, (__typeof__((map_)->key))&entry_->key,     \
						  (__typeof__((map_)->value))entry_->value, context))      \
				break;                                                             \
		}                                                                                  \
	})

static inline long stand_copy(void *to, size_t size, const void *from)
{
	if (!from)
		return -1;
	memcpy(to, from, size);
	return 0;
}
#define bpf_probe_read_kernel stand_copy
#define bpf_probe_read_user stand_copy
#define bpf_probe_read_kernel_str stand_copy
#define bpf_copy_from_user stand_copy
#define bpf_loop(count, function, context, flags) ((void)(function), (void)(context))
#define barrier_var(variable) ((void)(variable))

#define bpf_get_current_cgroup_id() (stand.cgroup)
#define bpf_get_current_ancestor_cgroup_id(level) ((level) == 1 ? stand.cgroup : 0)
#define bpf_get_current_pid_tgid() (stand.thread)
#define bpf_get_current_uid_gid() ((__u64)0)
#define bpf_get_current_comm(to, size) ((void)memset(to, 0, size))
/* Whose the cgroup is the test has written: nobody searches by its path. */
#define bpf_get_current_task() ((__u64)0)
#define bpf_get_current_task_btf() ((struct task_struct *)NULL)
#define bpf_task_pt_regs(task) NULL
#define bpf_ktime_get_boot_ns() ((__u64)0)
#define bpf_send_signal(number) ((void)(number), (void)stand.kills++)
#define bpf_seq_write(seq, from, size) ((void)(seq), (void)(from))

#endif
