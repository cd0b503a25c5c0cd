/* SPDX-License-Identifier: MIT */
/*
 * The guard: refuses, in the kernel, what would take a tenant over a limit. A tenant is a
 * cgroup with everything below it; guardrows.h is what is said about it.
 *
 * A command is looked at before anybody else reads it (LSM). If it makes an object, that is
 * reserved, or refused with EDQUOT. The reservation becomes a charge, kept by the object's
 * address, when the kernel commits the object; it is given back when the command ends
 * without one, and the charge when the object is destroyed.
 *
 * The command lies in memory that other threads can write. So when the kernel, which works
 * on a copy of its own, commits an object that was not reserved, that is charged nevertheless;
 * and who gets over a limit by a command that is proven to have changed is killed. The object
 * lives on if others have its file open, too. So that file is closed: nothing is carried out on
 * it any more, and who of the tenant has it is ended.
 *
 * Kernels that can be preempted skip a program of fentry or fexit now and then, but none of LSM
 * or of kprobes; so there kprobes do the same (k_...). What is skipped all the same lets nobody
 * have more: a reservation whose end was not seen "floats", that is, it counts until the loader
 * has looked for what became of it.
 *
 * No table that is full lets anything pass. The place of a charge is reserved with the object,
 * and without one the object is refused. What cannot be refused and finds no place floats, too.
 */
#include "monitor/guard/commands.bpf.h"
#include "monitor/guard/patterns.h"

#include <linux/ptrace.h>

#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual MIT/GPL";

enum {
	LEVELS = 32,	 /* of cgroups */
	NAME_MOST = 256, /* bytes of a cgroup's name */
	SEARCHES = 1024, /* at a time */
	ATTEMPTS = 8,	 /* at a counter that others change as well */
	UNDECIDED = -1,	 /* in place of a slot */
	NAMES = ~0u,	 /* in place of a number of characters */

	ENOMEM = 12,
	EEXIST = 17,
	EOPNOTSUPP = 95,
	EDQUOT = 122,
	SIGKILL = 9,
	MAY_WRITE = 2,
	TS_COMPAT = 2,
	CAP_SYS_ADMIN = 21,
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct guard_head);
} guard_head SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, GUARD_TENANTS);
	__type(key, __u32);
	__type(value, struct guard_limits);
} guard_limits SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, GUARD_TENANTS);
	__type(key, __u32);
	__type(value, struct guard_counts);
} guard_counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, GUARD_LOG);
	__type(key, __u32);
	__type(value, struct guard_entry);
} guard_log SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, GUARD_CGROUPS);
	__type(key, __u64);
	__type(value, __u32);
} guard_tenants SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 2 * GUARD_RULES);
	__type(key, __u32);
	__type(value, struct guard_rule);
} guard_rules SEC(".maps");

/* By thread: what it needs for a search in the rules, while that lasts. */
struct search {
	char path[GUARD_PATH + NAME_MOST];
	__u32 end[LEVELS]; /* of each group's path in that; 0: it is not in it */
	__u32 rules;	   /* as in the head */
	__u32 slot;	   /* found so far */
	struct pattern_group group;
	struct pattern_match match;
};
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SEARCHES);
	__type(key, __u32);
	__type(value, struct search);
} guard_searches SEC(".maps");

/* Whose a cgroup is, as far as that was asked in this epoch. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, GUARD_CGROUPS);
	__type(key, __u64);
	__type(value, struct guard_tenancy);
} guard_tenancies SEC(".maps");

/* By the object's address: what it is charged. The loader sets the sizes of both. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, struct guard_charge);
} guard_charges SEC(".maps");

/* By thread; each is used by that alone. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct guard_command);
} guard_commands SEC(".maps");

/* Files that are closed. Each of them cost a process of the tenant its life, and a tenant with
 * GUARD_SHUT of them gets no further command in, so that there is room for all tenants. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4 * GUARD_TENANTS * GUARD_SHUT);
	__type(key, __u64);
	__type(value, struct guard_closed);
} guard_closed SEC(".maps");
static const struct search blank;

static __always_inline struct guard_head *the_head(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&guard_head, &zero);
}

static __always_inline struct guard_counts *counts_of(__u32 slot)
{
	return bpf_map_lookup_elem(&guard_counts, &slot);
}

static __always_inline int is_armed(const struct guard_head *head)
{
	return head && *(volatile const __u32 *)&head->armed;
}

/* ---- whose */

/*
 * Functions that are not static are looked at by the verifier once, by themselves, and not again
 * for every state that a caller may be in. Without that, loading would take a second.
 */

/* The path of the current process's cgroup, from the group on that rules begin in. */
__noinline int path_write(struct search *search, __u64 root)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct cgroup *group = BPF_CORE_READ(task, cgroups, dfl_cgrp), *ancestor;
	__u64 ancestors = (__u64)group + bpf_core_field_offset(struct cgroup, ancestors);
	__u32 deepest = (__u32)BPF_CORE_READ(group, level), length = 0;
	int below = 0;

	if (!search)
		return 0;
	for (__u32 level = 0; level < LEVELS && level <= deepest; level++) {
		const char *name;
		long size;

		ancestor = (struct cgroup *)word_at(ancestors + level * sizeof(ancestor));
		if (below && length < GUARD_PATH - 1) {
			name = BPF_CORE_READ(ancestor, kn, name);
			search->path[length % GUARD_PATH] = '/';
			size = bpf_probe_read_kernel_str(&search->path[(length + 1) % GUARD_PATH],
							 NAME_MOST, name);
			if (size > 1 && length + size < GUARD_PATH) {
				length += (__u32)size;
				search->end[level] = length;
			} else {
				length = GUARD_PATH; /* this one and all below it do not fit */
			}
		}
		below |= BPF_CORE_READ(ancestor, kn, id) == root;
	}
	return 0;
}

struct step {
	struct search *search;
	const struct guard_rule *rule;
};

static long search_step(__u32 index, struct step *step)
{
	struct search *search = step->search;

	pattern_step(&search->match, step->rule, search->path, search->group.end);
	return search->match.verdict != 0;
}

/* Whether tokens of a rule match the group's path; `beyond` of the characters after it count. */
__noinline int search_matches(struct search *search, struct guard_rule *rule, __u32 first,
			      __u32 tokens, __u32 beyond)
{
	struct step step = { search, rule };

	if (!search || !rule)
		return 0;
	pattern_begin(&search->match, first, tokens, search->group.end + beyond, 1);
	/* The group itself is named without crossing slashes. */
	search->match.crosses = beyond != NAMES;
	if (beyond == NAMES)
		search->match.length = search->group.end;
	bpf_loop(PATTERN_STEPS, search_step, &step, 0);
	return search->match.verdict == PATTERN_YES;
}

/* What a rule says of the group. */
__noinline int search_rule_add(struct search *search, __u32 number)
{
	struct guard_rule *rule = bpf_map_lookup_elem(&guard_rules, &number);
	int names, in, below;

	if (!search || !rule)
		return 1;
	names = search_matches(search, rule, 0, rule->group, NAMES);
	in = search_matches(search, rule, rule->first, rule->length, 0);
	below = search_matches(search, rule, rule->first, rule->length, 2);
	pattern_group_add(&search->group, rule, names, in, below);
	return search->group.found != 0;
}

static long search_rule(__u32 index, struct search **context)
{
	struct search *search = *context;
	__u32 half = search->rules & GUARD_RULES_HALF ? GUARD_RULES : 0;

	return search_rule_add(search, index + half) != 0;
}

/* Whether the collector has given a group a slot, or a rule names it; the nearest counts. */
static long search_level(__u32 level, struct search **context)
{
	struct search *search = *context;
	__u64 cgroup = bpf_get_current_ancestor_cgroup_id((int)level);
	__u32 *found;

	if (!cgroup)
		return 1;
	found = bpf_map_lookup_elem(&guard_tenants, &cgroup);
	if (found) {
		search->slot = *found;
		return 0;
	}
	search->group = (struct pattern_group){ .end = search->end[level % LEVELS] };
	if (search->group.end)
		bpf_loop(search->rules & ~GUARD_RULES_HALF, search_rule, context, 0);
	if (search->group.found)
		search->slot = search->group.slot;
	return 0;
}

/* Which tenant a process is of whose cgroup nobody has asked for; UNDECIDED if there are too
 * many who search just now. */
__noinline int tenant_search(__u64 root, __u32 rules)
{
	__u32 thread = (__u32)bpf_get_current_pid_tgid();
	struct search *search;
	int tenant;

	if (bpf_map_update_elem(&guard_searches, &thread, &blank, BPF_ANY))
		return UNDECIDED;
	search = bpf_map_lookup_elem(&guard_searches, &thread);
	if (!search)
		return UNDECIDED;
	search->rules = rules;
	path_write(search, root);
	bpf_loop(LEVELS, search_level, &search, 0);
	tenant = (int)search->slot;
	bpf_map_delete_elem(&guard_searches, &thread);
	return tenant;
}

/* The slot of the tenant that the current process is of; 0: of none, or UNDECIDED. */
static __always_inline int tenant_of_current(const struct guard_head *head)
{
	__u64 own = bpf_get_current_cgroup_id();
	struct guard_tenancy *known = bpf_map_lookup_elem(&guard_tenancies, &own), found = {};
	int slot;

	if (known && known->epoch == head->epoch)
		return (int)known->slot;
	found.epoch = head->epoch;
	slot = tenant_search(head->root, head->rules);
	if (slot < 0)
		return UNDECIDED;
	found.slot = (__u32)slot;
	/* Unless somebody has moved it meanwhile. */
	if (own == bpf_get_current_cgroup_id())
		bpf_map_update_elem(&guard_tenancies, &own, &found, BPF_ANY);
	return slot;
}

/* ---- places in tables */

static __always_inline void place_add(struct guard_head *head, struct guard_counts *counts,
				      enum guard_table table, __s64 amount)
{
	ADD(head->taken[table], amount);
	ADD(counts->taken[table], amount);
}

/* By its number. */
static __always_inline void place_add_to(__u32 slot, enum guard_table table, __s64 amount)
{
	struct guard_head *head = the_head();
	struct guard_counts *counts = counts_of(slot);

	if (head && counts)
		place_add(head, counts, table, amount);
}

/* How many places a tenant may have at this moment. */
static __always_inline __s64 place_share(const struct guard_head *head, enum guard_table table)
{
	__u64 most = head->most[table];

	return (__s64)(most - most / GUARD_RESERVE) - *(volatile const __s64 *)&head->taken[table];
}

/* ---- counting */

static __always_inline void note(enum guard_event event, __u32 slot, __u32 kind, __u64 amount,
				 __u64 used, __u64 limit)
{
	struct guard_head *head = the_head();
	struct guard_entry *entry;
	__u64 number;
	__u32 at;

	if (!head)
		return;
	number = __sync_fetch_and_add(&head->logged, 1);
	at = number % GUARD_LOG;
	entry = bpf_map_lookup_elem(&guard_log, &at);
	if (!entry)
		return;
	__sync_lock_test_and_set(&entry->number, 0);
	entry->time_ns = bpf_ktime_get_boot_ns();
	entry->event = event;
	entry->slot = slot;
	entry->pid = bpf_get_current_pid_tgid() >> 32;
	entry->uid = (__u32)bpf_get_current_uid_gid();
	entry->kind = kind;
	entry->amount = amount;
	entry->used = used;
	entry->limit = limit;
	bpf_get_current_comm(entry->command, sizeof(entry->command));
	__sync_lock_test_and_set(&entry->number, number + 1);
}

/* So much more if it fits. Adding first and taking back what was too much would refuse
 * others in between. */
static __always_inline int take(__u32 slot, __u32 kind, __u64 amount, __u64 *ret_used,
				__u64 *ret_limit)
{
	struct guard_counts *counts = counts_of(slot);
	struct guard_limits *limits = bpf_map_lookup_elem(&guard_limits, &slot);
	__u64 limit;

	barrier_var(kind); /* checked where it is used: the verifier forgets what was checked before */
	if (!counts || !limits || kind >= KIND_COUNT || !amount)
		return 0;
	limit = *(volatile __u64 *)&limits->limit[kind];
	if (limit == GUARD_UNLIMITED) { /* nothing to compare with, however many others there are */
		ADD(counts->used[kind], (__s64)amount);
		return 0;
	}
	for (int i = 0; i < ATTEMPTS; i++) {
		__s64 used = *(volatile __s64 *)&counts->used[kind];
		__u64 held = used < 0 ? 0 : (__u64)used;

		*ret_used = held;
		*ret_limit = limit;
		if (amount > limit || held > limit - amount)
			return -EDQUOT;
		if (__sync_val_compare_and_swap(&counts->used[kind], used, used + (__s64)amount) ==
		    used)
			return 0;
	}
	/* Too many others: rather refuse one of them than nobody. */
	if (__sync_fetch_and_add(&counts->used[kind], (__s64)amount) + (__s64)amount <=
	    (__s64)limit)
		return 0;
	ADD(counts->used[kind], -(__s64)amount);
	return -EDQUOT;
}

static __always_inline void put(__u32 slot, __u32 kind, __s64 amount)
{
	struct guard_counts *counts = counts_of(slot);

	barrier_var(kind); /* as in take */
	if (counts && kind < KIND_COUNT)
		ADD(counts->used[kind], amount);
}

/* One more place, or -ENOMEM. Between the look and the addition others may be as far: that is
 * what the reserve is for, and beyond it charges float. */
static __always_inline int place_take(__u32 slot, enum guard_table table, __u32 kind)
{
	struct guard_head *head = the_head();
	struct guard_counts *counts = counts_of(slot);
	__s64 taken, share;

	if (!head || !counts)
		return -ENOMEM;
	taken = *(volatile __s64 *)&counts->taken[table];
	share = place_share(head, table);
	if (taken < share) {
		place_add(head, counts, table, 1);
		return 0;
	}
	ADD(counts->crowded[table], 1);
	note(GUARD_CROWDED, slot, kind < KIND_COUNT ? kind : 0, 1, (__u64)taken,
	     share > 0 ? (__u64)share : 0);
	return -ENOMEM;
}

/* One of a kind and, of memory regions, its bytes: both, or -EDQUOT and neither. */
static __always_inline int reserve(__u32 slot, __u32 kind, __u64 bytes)
{
	struct guard_counts *counts = counts_of(slot);
	__u64 used = 0, limit = 0, amount = 1;
	__u32 lacking = kind;

	if (!counts || kind >= KIND_COUNT)
		return 0;
	if (kind == KIND_mr_bytes) {
		amount = bytes;
		if (!take(slot, kind, bytes, &used, &limit))
			return 0;
	} else if (!take(slot, kind, 1, &used, &limit)) {
		if (kind != KIND_mr || !take(slot, KIND_mr_bytes, bytes, &used, &limit))
			return 0;
		put(slot, kind, -1);
		lacking = KIND_mr_bytes;
		amount = bytes;
	}
	if (lacking < KIND_COUNT)
		ADD(counts->refused[lacking], 1);
	note(GUARD_REFUSED, slot, lacking, amount, used, limit);
	return -EDQUOT;
}

static __always_inline void unreserve(__u32 slot, __u32 kind, __u64 bytes)
{
	if (kind != KIND_mr_bytes)
		put(slot, kind, -1);
	if (kind == KIND_mr || kind == KIND_mr_bytes)
		put(slot, KIND_mr_bytes, -(__s64)bytes);
}

/* The same and a place for the charge: 0, EDQUOT or ENOMEM. Looked at by the verifier by itself. */
__noinline int reserve_with_place(__u32 slot, __u32 kind, __u64 bytes)
{
	if (reserve(slot, kind, bytes))
		return EDQUOT;
	if (!place_take(slot, GUARD_OBJECTS, kind))
		return 0;
	unreserve(slot, kind, bytes);
	return ENOMEM;
}

/* What is charged, or reserved with a place for its charge. */
static __always_inline void give_back(__u32 slot, __u32 kind, __u64 bytes)
{
	unreserve(slot, kind, bytes);
	place_add_to(slot, GUARD_OBJECTS, -1);
}

/* ---- files that are closed */

/* A number, not a pointer: newer kernels know what it points to, and forbid to compare it. */
static __always_inline __u64 file_of(const struct ib_uobject *uobject)
{
	return (__u64)BPF_CORE_READ(uobject, ufile);
}

/* Whoever deletes the key has the rest to do. */
static __always_inline void closed_forget(struct guard_head *head, __u64 file, __u32 slot)
{
	struct guard_counts *counts = counts_of(slot);

	if (bpf_map_delete_elem(&guard_closed, &file))
		return;
	ADD(head->closed, -1);
	if (counts)
		ADD(counts->closed, -1);
}

/* Why a file is closed; NULL: it is not. */
static __always_inline struct guard_closed *closed_find(struct guard_head *head, __u64 file)
{
	struct guard_closed *closed;

	if (!*(volatile __u64 *)&head->closed)
		return NULL;
	closed = bpf_map_lookup_elem(&guard_closed, &file);
	if (!closed || closed->context == word_at(file + offset_file_ucontext))
		return closed;
	closed_forget(head, file, closed->slot); /* an earlier file's, whose end was not seen */
	return NULL;
}

static __always_inline void file_close(__u64 file, __u32 slot, __u32 kind)
{
	struct guard_closed closed = { .context = word_at(file + offset_file_ucontext),
				       .slot = slot,
				       .kind = kind };
	struct guard_head *head = the_head();
	struct guard_counts *counts = counts_of(slot);

	if (!head || !counts || closed_find(head, file))
		return;
	/* Before it is there, so that nobody passes it over. */
	ADD(head->closed, 1);
	ADD(counts->closed, 1);
	if (!bpf_map_update_elem(&guard_closed, &file, &closed, BPF_NOEXIST))
		return;
	ADD(head->closed, -1);
	ADD(counts->closed, -1);
	/* Another thread has closed it; or there is no room, and the tenant is shut for good. */
	if (!bpf_map_lookup_elem(&guard_closed, &file))
		ADD(counts->closed, GUARD_SHUT);
}

/* What cannot be refused any more is charged all the same. Proven: by a command that changed, on
 * this file; else 0. Whether it is over the limit, and that was proven. */
static __always_inline int charge_anyway(__u32 slot, __u32 kind, __u64 amount, __u64 proven)
{
	struct guard_counts *counts = counts_of(slot);
	__u64 used = 0, limit = 0;

	barrier_var(kind); /* as in take */
	if (!counts || kind >= KIND_COUNT || !amount || !take(slot, kind, amount, &used, &limit))
		return 0;
	put(slot, kind, (__s64)amount);
	if (proven) {
		ADD(counts->killed, 1);
		bpf_send_signal(SIGKILL);
		file_close(proven, slot, kind);
	} else {
		ADD(counts->overrun[kind], 1);
	}
	note(proven ? GUARD_KILLED : GUARD_OVERRUN, slot, kind, amount, used, limit);
	return proven != 0;
}

/* ---- the look */

/* What is charged, and its object not known, or no place in the table for it: it counts until
 * somebody has looked. */
static __always_inline void set_afloat(__u32 slot, __u32 kind, __u64 bytes)
{
	struct guard_counts *counts = counts_of(slot);

	if (!counts || kind >= KIND_COUNT)
		return;
	ADD(counts->afloat, 1);
	if (kind != KIND_mr_bytes)
		ADD(counts->floating[kind], 1);
	if (kind == KIND_mr || kind == KIND_mr_bytes)
		ADD(counts->floating[KIND_mr_bytes], (__s64)bytes);
}

/* A command whose end was not seen. */
static __always_inline void float_up(const struct guard_command *command)
{
	if (command->state >= GUARD_RESERVED)
		set_afloat(command->slot, command->kind, command->bytes);
}

/* A thread comes with another command. Fills in whose it is; 0: nobody's; -ENOMEM: nobody can
 * tell. */
static __always_inline int begin(const struct guard_head *head, struct guard_command *last,
				 struct guard_command *command)
{
	__u64 epoch = head->epoch;
	int slot;

	command->cgroup = bpf_get_current_cgroup_id();
	command->epoch = epoch;
	if (last && last->cgroup == command->cgroup && last->epoch == epoch) {
		slot = (int)last->slot;
	} else {
		slot = tenant_of_current(head);
	}
	if (last) {
		float_up(last);
		last->state = GUARD_IDLE;
	}
	command->slot = (__u32)slot;
	return slot == UNDECIDED ? -ENOMEM : slot != 0;
}

/* Reserves for a command that was understood, and keeps what was seen of it. */
static __always_inline int admit(struct guard_command *last, struct guard_command *command)
{
	__u32 thread = (__u32)bpf_get_current_pid_tgid();
	int result;

	/* All memory, paged in as it is used, is not registered. */
	if (command->bytes == ~0ull)
		command->bytes = 0;
	command->state = GUARD_LOOKED;
	command->payer = last ? last->payer : command->slot;
	if (command->kind < KIND_COUNT) {
		result = reserve_with_place(command->slot, command->kind, command->bytes);
		if (result)
			return result == EDQUOT ? -EDQUOT : -ENOMEM;
		command->state = GUARD_RESERVED;
	}
	if (last) {
		*last = *command;
		return 0;
	}
	result = place_take(command->slot, GUARD_RUNNING, command->kind);
	if (!result) {
		if (!bpf_map_update_elem(&guard_commands, &thread, command, BPF_ANY))
			return 0;
		place_add_to(command->slot, GUARD_RUNNING, -1);
		result = -ENOMEM;
	}
	if (command->state == GUARD_RESERVED)
		give_back(command->slot, command->kind, command->bytes);
	return result;
}

/* By which uverbs' files are known; the loader writes them. They are constants of the programs,
 * since one of these runs at every read and write of the host. */
const volatile __u64 uverbs_fops[2] = {};

static __always_inline int is_uverbs(const struct file *file)
{
	__u64 operations = (__u64)file->f_op;

	return operations == uverbs_fops[0] || operations == uverbs_fops[1];
}

/* A command on a file that is closed, or of a tenant that is shut: whatever it is, it could be
 * another one by the time that the kernel reads it. Who is of the tenant that is to blame is
 * killed, unless it seems to tidy up; to others the file was passed, and they are refused only. */
static __noinline int refuse_closed(__u32 slot, __u32 blamed, __u32 kind, int destroys)
{
	struct guard_counts *counts = counts_of(blamed);
	int killed = slot == blamed && !destroys && kind < KIND_COUNT;

	if (kind >= KIND_COUNT)
		kind = KIND_ctx;
	if (killed) {
		bpf_send_signal(SIGKILL);
		if (counts)
			ADD(counts->killed, 1);
	} else if (counts) {
		ADD(counts->refused[kind], 1);
	}
	note(killed ? GUARD_CLOSED_KILLED : GUARD_CLOSED_REFUSED, blamed, kind, 1, 0, 0);
	return -EDQUOT;
}

/* The host's administrator: rdma_monitor, which destroys objects on closed files. */
static __noinline int is_administrator(void)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	const struct cred *cred = BPF_CORE_READ(task, cred);
	__u32 capabilities = 0;

	bpf_probe_read_kernel(&capabilities, sizeof(capabilities),
			      (const char *)cred +
				      bpf_core_field_offset(struct cred, cap_effective));
	return capabilities >> CAP_SYS_ADMIN & 1 && !BPF_CORE_READ(cred, user_ns, level);
}

/* Nothing may be done on this file, or by this tenant; *ret_closed says why. */
static __always_inline int is_closed(struct guard_head *head, const struct file *file, __u32 slot,
				     struct guard_closed *ret_closed)
{
	struct guard_closed *closed = closed_find(head, (__u64)file->private_data);
	struct guard_counts *counts;

	if (closed) {
		*ret_closed = *closed;
		if (slot || !is_administrator())
			return 1;
		ret_closed->slot = GUARD_TENANTS;
		return 0;
	}
	counts = slot ? counts_of(slot) : NULL;
	if (!counts || *(volatile __u64 *)&counts->closed < GUARD_SHUT)
		return 0;
	ret_closed->slot = slot;
	ret_closed->kind = KIND_COUNT; /* the file is another one: no reason to kill */
	return 1;
}

/* Reads a command: 0; NOT_THERE: the kernel will not be able to read it either; or -errno. */
enum { NOT_THERE = 1 };

static __always_inline int look(struct guard_command *command, int sleeps)
{
	struct uverbs_header header;
	__u32 length = 0;
	int result;

	/* Read with patience, it is not there. Read without, nobody knows. */
	if (read_user(sleeps, &header, sizeof(header), command->argument))
		return sleeps ? NOT_THERE : -EFAULT;
	command->key = key_of(header.object, header.method);
	if (header.object == UVERBS_DEVICE && header.method == INVOKE_WRITE) {
		result = attributes_read(sleeps, command, &header, 0);
	} else {
		command->kind = kind_of_method(header.object, header.method, &length);
		command->destroys = is_destroying(header.object, header.method);
		command->drivers = !!((header.object | header.method) & NAMESPACE);
		result = length ? attributes_read(sleeps, command, &header, length) : 0;
	}
	if (result != -EFAULT || !sleeps)
		return result;
	command->key = 0;
	command->kind = KIND_COUNT;
	return 0;
}

/* Functions of their own: a stack has no room for a command's attributes and for a search. */
static __noinline int look_patiently(struct guard_command *command)
{
	return look(command, 1);
}

static __noinline int look_at_once(struct guard_command *command)
{
	return look(command, 0);
}

static __always_inline int on_ioctl(struct file *file, __u64 argument, int sleeps)
{
	struct guard_head *head = the_head();
	struct guard_closed closed = { .slot = GUARD_TENANTS };
	__u32 thread;
	struct guard_command command = {
		.argument = argument, .kind = KIND_COUNT, .old = GUARD_NOT_OLD, .way = GUARD_IOCTL
	};
	struct guard_command *last;
	int result;

	if (!is_armed(head) || !is_uverbs(file))
		return 0;
	thread = (__u32)bpf_get_current_pid_tgid();
	last = bpf_map_lookup_elem(&guard_commands, &thread);
	result = begin(head, last, &command);
	if (result < 0)
		return result;
	if (!is_closed(head, file, command.slot, &closed) && !command.slot)
		return 0;
	result = sleeps ? look_patiently(&command) : look_at_once(&command);
	if (closed.slot < GUARD_TENANTS && result != NOT_THERE)
		return refuse_closed(command.slot, closed.slot, closed.kind, command.destroys);
	if (closed.slot < GUARD_TENANTS)
		return -EFAULT;
	return result < 0 ? result : admit(last, &command);
}

SEC("lsm.s/file_ioctl")
int BPF_PROG(g_ioctl, struct file *file, unsigned int request, unsigned long argument)
{
	return request == UVERBS_IOCTL ? on_ioctl(file, argument, 1) : 0;
}

SEC("lsm/file_ioctl_compat")
int BPF_PROG(g_ioctl_compat, struct file *file, unsigned int request, unsigned long argument)
{
	return request == UVERBS_IOCTL ? on_ioctl(file, argument, 0) : 0;
}

/* ---- write() */

/* Where the message lies that the current call writes: in one piece. */
static __always_inline int message_of_call(__u64 *ret_message)
{
	enum { WRITE = 1, WRITEV = 20, WRITE_32 = 4, WRITEV_32 = 146 };
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	__u64 call = regs->orig_rax, buffer = regs->rsi, count = regs->rdx, base = 0;
	__u32 base32 = 0;

	if (task->thread_info.status & TS_COMPAT) {
		buffer = (__u32)regs->rcx;
		count = (__u32)regs->rdx;
		if (call == WRITE_32) {
			*ret_message = buffer;
			return 0;
		}
		if (call != WRITEV_32 || count != 1)
			return -EOPNOTSUPP;
		if (bpf_probe_read_user(&base32, sizeof(base32), (const void *)buffer))
			return -EFAULT;
		*ret_message = base32;
		return 0;
	}
	if (call == WRITE) {
		*ret_message = buffer;
		return 0;
	}
	if (call != WRITEV || count != 1)
		return -EOPNOTSUPP;
	if (bpf_probe_read_user(&base, sizeof(base), (const void *)buffer))
		return -EFAULT;
	*ret_message = base;
	return 0;
}

/* Apart from its caller, whose frame would else be made ready for it each time. */
static __noinline int look_at_write(struct file *file)
{
	struct guard_head *head = the_head();
	__u32 thread = (__u32)bpf_get_current_pid_tgid();
	struct guard_command command = { .kind = KIND_COUNT, .way = GUARD_WRITE }, *last;
	struct guard_closed closed = { .slot = GUARD_TENANTS };
	struct {
		__u32 command;
		__u16 in_words, out_words;
	} header;
	int result;

	if (!is_armed(head))
		return 0;
	last = bpf_map_lookup_elem(&guard_commands, &thread);
	result = begin(head, last, &command);
	if (result < 0)
		return result;
	if (!is_closed(head, file, command.slot, &closed) && !command.slot)
		return 0;
	result = message_of_call(&command.argument);
	if (result < 0)
		return result;
	if (read_user(0, &header, sizeof(header), command.argument))
		return -EFAULT;
	/* The body of an extended command follows a second header, but none that is read is one. */
	result = old_read(0, &command, header.command, command.argument + sizeof(header));
	if (closed.slot < GUARD_TENANTS)
		return refuse_closed(command.slot, closed.slot, closed.kind, command.destroys);
	return result < 0 ? result : admit(last, &command);
}

/* Asked at every read and write of every file: nothing but two comparisons for the others. */
SEC("lsm/file_permission")
int BPF_PROG(g_write, struct file *file, int mask)
{
	int result;

	if (!is_uverbs(file) || !(mask & MAY_WRITE))
		return 0;
	result = look_at_write(file);
	/* The kernel wants to be sure of what a security module answers. */
	return result < 0 && result >= -EDQUOT ? result : 0;
}

/* ---- what the kernel makes of it */

/* The kernel's copy of the command, if the kernel is at this one. */
static __always_inline __u64 copy_of(const struct guard_command *command, __u64 attrs)
{
	__u64 copy = attrs - offset_command_bundle;

	return word_at(copy + offset_command_attributes) ==
			       command->argument + sizeof(struct uverbs_header) ?
		       copy :
		       0;
}

/* What the kernel is at is another command than was looked at. */
static __always_inline int has_changed(const struct guard_command *command, __u64 attrs, __u32 kind)
{
	if (command->way == GUARD_IOCTL) {
		__u64 copy = copy_of(command, attrs);

		if (!copy)
			return 0;
		if ((__u32)word_at(copy + offset_command_key) != command->key)
			return 1;
	}
	return command->old != GUARD_NOT_OLD && command->old != kind;
}

/* The bytes that the kernel was told, where it keeps them nowhere else; ~0: the attribute is
 * not where it was. */
static __always_inline __u64 bytes_told(const struct guard_command *command, __u64 attrs)
{
	__u64 copy = copy_of(command, attrs);
	struct uverbs_attribute attribute = {};

	if (!command->length_id || !copy)
		return command->bytes;
	bpf_probe_read_kernel(&attribute, sizeof(attribute),
			      (const void *)(word_at(copy + offset_command_copied) +
					     command->length_at * sizeof(attribute)));
	return attribute.id == command->length_id ? attribute.data : ~0ull;
}

/* The reservation is for this object. */
static __always_inline int is_for(const struct guard_command *command, __u32 kind)
{
	return command->state >= GUARD_RESERVED &&
	       (command->kind == kind || (command->kind == KIND_mr_bytes && kind == KIND_mr));
}

static __always_inline void uncharge(__u64 address)
{
	struct guard_charge *found = bpf_map_lookup_elem(&guard_charges, &address), charge;

	if (!found)
		return;
	charge = *found;
	if (!bpf_map_delete_elem(&guard_charges, &address))
		give_back(charge.slot, charge.kind, charge.bytes);
}

/* What is known at the address of an object that is just being made ended unseen; or somebody
 * who looks for what was missed has found the object before we are done with it. */
static __always_inline void charge_keep(__u64 address, const struct guard_charge *charge)
{
	long failed = bpf_map_update_elem(&guard_charges, &address, charge, BPF_NOEXIST);

	if (failed == -EEXIST) {
		uncharge(address);
		failed = bpf_map_update_elem(&guard_charges, &address, charge, BPF_NOEXIST);
	}
	if (failed == -EEXIST)
		give_back(charge->slot, charge->kind, charge->bytes);
	else if (failed)
		set_afloat(charge->slot, charge->kind, charge->bytes);
}

/* The region that is made has more bytes than the command said that was looked at: what was told
 * is too little, or, where no length was, what is taken away for it. */
static __always_inline int is_longer(const struct guard_command *command, __u64 bytes)
{
	if (command->replaces && !command->sized)
		return command->freed_seen && bytes > command->freed;
	return command->sized && bytes > command->bytes;
}

/* An object that the kernel is at. As in accounting.bpf.c, it is read in two ways. */
struct made {
	__u64 address, file;
	const void *hardware; /* the driver's part */
	__u32 type;
};

static __always_inline struct made made_direct(const struct ib_uobject *uobject)
{
	return (struct made){ (__u64)uobject, (__u64)uobject->ufile, uobject->object,
			      type_number(uobject->uapi_object) };
}

static __always_inline struct made made_copied(const struct ib_uobject *uobject)
{
	return (struct made){ (__u64)uobject, file_of(uobject), BPF_CORE_READ(uobject, object),
			      type_number(BPF_CORE_READ(uobject, uapi_object)) };
}

/* What was reserved is made: charges it, with the bytes that it really has. */
static __always_inline void charge_reserved(const struct guard_head *head,
					    struct guard_command *command, struct made made,
					    __u64 attrs, struct guard_charge *charge)
{
	__u64 bytes;

	charge->bytes = command->bytes;
	if (command->kind == KIND_mr_bytes)
		put(charge->slot, KIND_mr, 1);
	if (charge->kind != KIND_mr)
		return;
	bytes = region_bytes(made.hardware);
	if (!bytes && !is_whole(made.hardware))
		bytes = bytes_told(command, attrs); /* the kernel keeps no length */
	if (bytes > charge->bytes)
		charge->excess = charge_anyway(
			charge->slot, KIND_mr_bytes, bytes - charge->bytes,
			!head->trusting && is_longer(command, bytes) ? made.file : 0);
	else if (bytes < charge->bytes)
		put(charge->slot, KIND_mr_bytes, -(__s64)(charge->bytes - bytes));
	charge->bytes = bytes;
}

/* Something is made that was not reserved: by a way that is not guarded, by a method that
 * nobody knows, or by a command that changed after the look. */
static __always_inline void charge_unforeseen(struct made made, int proven,
					      struct guard_charge *charge)
{
	__u64 file = proven ? made.file : 0;

	charge->bytes = charge->kind == KIND_mr ? region_bytes(made.hardware) : 0;
	place_add_to(charge->slot, GUARD_OBJECTS, 1);
	charge->excess = charge_anyway(charge->slot, charge->kind, 1, file);
	charge->excess |= charge_anyway(charge->slot, KIND_mr_bytes, charge->bytes, file);
}

static __always_inline int on_commit(struct guard_head *head, struct made made, __u64 attrs)
{
	__u32 thread = (__u32)bpf_get_current_pid_tgid();
	struct guard_charge charge = {};
	struct guard_command *command;
	int slot;

	charge.kind = counter_of(made.type);
	if (charge.kind >= KIND_COUNT)
		return 0;
	command = bpf_map_lookup_elem(&guard_commands, &thread);
	if (!command || command->state == GUARD_IDLE) {
		slot = tenant_of_current(head);
		if (slot == UNDECIDED)
			head->incomplete = 1; /* the loader finds it */
		if (slot <= 0)
			return 0;
		charge.slot = (__u32)slot;
		charge_unforeseen(made, 0, &charge);
	} else if (is_for(command, charge.kind)) {
		charge.slot = command->slot;
		charge_reserved(head, command, made, attrs, &charge);
		command->state = GUARD_LOOKED;
	} else {
		charge.slot = command->slot;
		charge_unforeseen(made,
				  !head->trusting && has_changed(command, attrs, charge.kind),
				  &charge);
	}
	charge_keep(made.address, &charge);
	return 0;
}

SEC("fentry/rdma_alloc_commit_uobject")
int BPF_PROG(g_commit, struct ib_uobject *uobject, void *attrs)
{
	struct guard_head *head = the_head();

	return is_armed(head) ? on_commit(head, made_direct(uobject), (__u64)attrs) : 0;
}

SEC("kprobe/rdma_alloc_commit_uobject")
int BPF_KPROBE(k_commit, struct ib_uobject *uobject, void *attrs)
{
	struct guard_head *head = the_head();

	return is_armed(head) ? on_commit(head, made_copied(uobject), (__u64)attrs) : 0;
}

/* A region goes that another one is just taking the place of. */
static __always_inline void note_freed(__u64 address)
{
	__u32 thread = (__u32)bpf_get_current_pid_tgid();
	struct guard_charge *charge = bpf_map_lookup_elem(&guard_charges, &address);
	struct guard_command *command;

	if (!charge || charge->kind != KIND_mr)
		return;
	command = bpf_map_lookup_elem(&guard_commands, &thread);
	if (!command || command->state == GUARD_IDLE || !command->replaces)
		return;
	command->freed = charge->bytes;
	command->freed_seen = 1;
}

/* An object that could not be destroyed is still there. */
SEC("fexit/uverbs_destroy_uobject")
int BPF_PROG(g_destroy, struct ib_uobject *uobject, int reason, void *attrs, int result)
{
	if (result)
		return 0;
	note_freed((__u64)uobject);
	uncharge((__u64)uobject);
	return 0;
}

/* The kernel takes a destroyed object off its cgroup: all but those that are files of their own. */
SEC("kprobe/ib_rdmacg_uncharge")
int BPF_KPROBE(k_destroy, void *charge, void *device, int type)
{
	__u64 address = uobject_of_charge((__u64)charge);

	if (type != CG_OBJECT)
		return 0;
	note_freed(address);
	uncharge(address);
	return 0;
}

/* Such a file, a completion channel, is closed. */
SEC("kprobe/uverbs_uobject_fd_release")
int BPF_KPROBE(k_released, void *inode, struct file *file)
{
	uncharge((__u64)BPF_CORE_READ(file, private_data));
	return 0;
}

/* ---- registered anew, in place */

/* Nothing but the old command for that gives a region another length, or a driver's own method.
 * Where write() is not looked at, what was seen may be an earlier command. */
static __always_inline int is_another(const struct guard_head *head,
				      const struct guard_command *command, __u64 bytes,
				      __u64 before)
{
	if (head->trusting || command->drivers || !(head->ways & GUARD_WRITE))
		return 0;
	if (!command->replaces)
		return bytes > before;
	return bytes > (command->sized ? command->bytes : before);
}

/* A region that was used alone may be another one now; it is the same object. Who has registered
 * it anew is charged for it. */
static __always_inline int on_changed(struct guard_head *head, struct made made)
{
	__u32 thread = (__u32)bpf_get_current_pid_tgid();
	__u64 bytes, before, counted, reserved = 0, file = 0;
	struct guard_command *command;
	struct guard_charge *charge;

	if (made.type != UVERBS_MR)
		return 0;
	charge = bpf_map_lookup_elem(&guard_charges, &made.address);
	bytes = region_bytes(made.hardware);
	if (!charge || !bytes)
		return 0;
	command = bpf_map_lookup_elem(&guard_commands, &thread);
	if (command && command->state == GUARD_IDLE)
		command = NULL;
	if (bytes == charge->bytes)
		return 0; /* what is reserved is given back, or floats, when the command ends */
	if (command && command->slot != charge->slot) {
		give_back(charge->slot, KIND_mr, charge->bytes);
		charge->slot = command->slot;
		charge->bytes = 0;
		place_add_to(charge->slot, GUARD_OBJECTS, 1);
		charge_anyway(charge->slot, KIND_mr, 1, 0);
	}
	before = charge->bytes;
	if (command && is_another(head, command, bytes, before))
		file = made.file;
	if (command && command->state >= GUARD_RESERVED && command->kind == KIND_mr_bytes) {
		reserved = command->bytes;
		command->state = GUARD_LOOKED;
		place_add_to(command->slot, GUARD_OBJECTS, -1); /* the region has one already */
	}
	/* What was reserved, or should have been, counts beside what there was before. */
	counted = reserved || file ? reserved : before;
	if (bytes > counted)
		charge->excess |=
			charge_anyway(charge->slot, KIND_mr_bytes, bytes - counted, file);
	else
		put(charge->slot, KIND_mr_bytes, (__s64)(bytes - counted));
	if (reserved || file)
		put(charge->slot, KIND_mr_bytes, -(__s64)before);
	charge->bytes = bytes;
	return 0;
}

SEC("fentry/rdma_lookup_put_uobject")
int BPF_PROG(g_changed, struct ib_uobject *uobject, int mode)
{
	struct guard_head *head = the_head();

	return mode == LOOKUP_WRITE && is_armed(head) ? on_changed(head, made_direct(uobject)) : 0;
}

SEC("kprobe/rdma_lookup_put_uobject")
int BPF_KPROBE(k_changed, struct ib_uobject *uobject, int mode)
{
	struct guard_head *head = the_head();

	return mode == LOOKUP_WRITE && is_armed(head) ? on_changed(head, made_copied(uobject)) : 0;
}

/* Nobody has it open any more. */
SEC("fentry/ib_uverbs_close")
int BPF_PROG(g_close, void *inode, struct file *file)
{
	struct guard_head *head = the_head();
	__u64 address = (__u64)file->private_data;
	struct guard_closed *closed;

	if (!head || !*(volatile __u64 *)&head->closed)
		return 0;
	closed = bpf_map_lookup_elem(&guard_closed, &address);
	if (closed)
		closed_forget(head, address, closed->slot);
	return 0;
}

/* A command has ended. What it reserved and did not use goes back; unless it made something
 * and that was not seen, or has registered a region anew, which the accounting sees. */
static __always_inline int on_end(long result)
{
	__u32 thread = (__u32)bpf_get_current_pid_tgid();
	struct guard_command *command = bpf_map_lookup_elem(&guard_commands, &thread);

	if (!command)
		return 0;
	if (command->state >= GUARD_RESERVED) {
		if (result < 0)
			give_back(command->slot, command->kind, command->bytes);
		else
			float_up(command);
	}
	command->state = GUARD_IDLE;
	return 0;
}

SEC("fexit/ib_uverbs_ioctl")
int BPF_PROG(g_ioctl_end, struct file *file, unsigned int request, unsigned long argument,
	     long result)
{
	return on_end(result);
}

SEC("fexit/ib_uverbs_write")
int BPF_PROG(g_write_end, struct file *file, const char *buffer, unsigned long count, void *at,
	     long result)
{
	return on_end(result);
}

SEC("kretprobe.multi/ib_uverbs_ioctl")
int BPF_KRETPROBE(k_ioctl_end, long result)
{
	return on_end(result);
}

SEC("kretprobe.multi/ib_uverbs_write")
int BPF_KRETPROBE(k_write_end, long result)
{
	return on_end(result);
}

static __always_inline void thread_forget(__u32 thread)
{
	struct guard_command *last = bpf_map_lookup_elem(&guard_commands, &thread);
	__u32 payer;

	if (!last)
		return;
	float_up(last);
	payer = last->payer;
	if (!bpf_map_delete_elem(&guard_commands, &thread))
		place_add_to(payer, GUARD_RUNNING, -1);
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(g_exit, struct task_struct *task)
{
	thread_forget((__u32)bpf_get_current_pid_tgid());
	return 0;
}

/* A thread that is not the leader takes over the leader's number by exec: nobody ends by the
 * number that it had. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(g_exec, struct task_struct *task, int before)
{
	if ((__u32)before != (__u32)bpf_get_current_pid_tgid())
		thread_forget((__u32)before);
	return 0;
}

/* ---- what was there before, and what was missed */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, struct monitor_object);
} objects SEC(".maps");

/* So much of what floats is this object's: that is counted already. */
static __always_inline __u64 land(__s64 *sought, __u64 amount)
{
	__u64 left = *sought > 0 ? (__u64)*sought : 0, landed = left < amount ? left : amount;

	*sought -= (__s64)landed;
	return landed;
}

/* Charges an object that was found. */
static __always_inline void put_found(__u32 slot, __u32 kind, __u64 bytes)
{
	struct guard_counts *counts = counts_of(slot);

	barrier_var(kind); /* as in take */
	if (!counts || kind >= KIND_COUNT)
		return;
	if (!land(&counts->sought[kind], 1))
		put(slot, kind, 1);
	if (bytes)
		put(slot, KIND_mr_bytes,
		    (__s64)(bytes - land(&counts->sought[KIND_mr_bytes], bytes)));
	if (!land(&counts->sought_places, 1))
		place_add_to(slot, GUARD_OBJECTS, 1);
}

/* Over the objects of the accounting: what no tenant is charged yet, and what is charged too
 * much or too little. Prints the cgroups of which it does not know whose they are: the loader
 * finds out, and asks again. Prints 0 for an object that may just be being made: g_commit
 * charges it, or the next pass does. */
SEC("iter/bpf_map_elem")
int g_adopt(struct bpf_iter__bpf_map_elem *ctx)
{
	struct monitor_object *object = ctx->value;
	struct guard_head *head = the_head();
	struct guard_charge charge = {}, *known;
	struct guard_tenancy *tenancy;
	__u64 *key = ctx->key, address, cgroup;
	long failed;

	__u64 making = 0;

	if (!object || !key || !is_armed(head) || object->counter >= KIND_COUNT ||
	    object->counter == KIND_ctx || object->counter == KIND_cm_id)
		return 0;
	address = *key;
	known = bpf_map_lookup_elem(&guard_charges, &address);
	if (known && known->kind != object->counter) {
		uncharge(address); /* another object was there, and ended unseen */
		known = NULL;
	}
	if (known) {
		if (object->counter == KIND_mr && object->size && known->bytes != object->size) {
			put(known->slot, KIND_mr_bytes, (__s64)(object->size - known->bytes));
			known->bytes = object->size;
		}
		return 0;
	}
	cgroup = object->cgroup;
	tenancy = bpf_map_lookup_elem(&guard_tenancies, &cgroup);
	if (!tenancy || tenancy->epoch != head->epoch || tenancy->ownerless)
		bpf_seq_write(ctx->meta->seq, &cgroup, sizeof(cgroup));
	if (!tenancy || tenancy->epoch != head->epoch || !tenancy->slot ||
	    !is_alive(address, object))
		return 0;
	if (bpf_ktime_get_boot_ns() - object->made_ns < BEING_MADE_NS) {
		bpf_seq_write(ctx->meta->seq, &making, sizeof(making));
		return 0;
	}
	charge.slot = tenancy->slot;
	charge.kind = object->counter;
	charge.bytes = charge.kind == KIND_mr ? object->size : 0;
	put_found(charge.slot, charge.kind, charge.bytes);
	failed = bpf_map_update_elem(&guard_charges, &address, &charge, BPF_NOEXIST);
	if (failed == -EEXIST)
		give_back(charge.slot, charge.kind, charge.bytes);
	else if (failed)
		set_afloat(charge.slot, charge.kind, charge.bytes);
	else if (!bpf_map_lookup_elem(&objects, &address))
		uncharge(address);
	return 0;
}

/* Over the open files of all processes: prints each closed one (struct guard_holder). */
SEC("iter/task_file")
int g_holders(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	struct guard_head *head = the_head();
	struct guard_holder holder = { .fd = ctx->fd };
	struct guard_closed *closed;

	if (!task || !file || !head || !is_uverbs(file))
		return 0;
	holder.file = (__u64)file->private_data;
	closed = closed_find(head, holder.file);
	if (!closed)
		return 0;
	holder.process = (__u32)task->tgid;
	holder.slot = closed->slot;
	bpf_seq_write(ctx->meta->seq, &holder, sizeof(holder));
	return 0;
}

/* Over the charges: prints the objects over a limit (struct guard_excess). One that ends just
 * now has a file or a handle that the loader does not find. */
SEC("iter/bpf_map_elem")
int g_excess(struct bpf_iter__bpf_map_elem *ctx)
{
	struct guard_charge *charge = ctx->value;
	struct guard_excess excess = {};
	struct ib_uobject *uobject;
	__u64 *key = ctx->key;

	if (!key || !charge || !charge->excess)
		return 0;
	uobject = (struct ib_uobject *)*key;
	excess.file = file_of(uobject);
	excess.type = type_number(BPF_CORE_READ(uobject, uapi_object));
	excess.handle = (__u32)BPF_CORE_READ(uobject, id);
	excess.driver = BPF_CORE_READ(uobject, context, device, ops.driver_id);
	bpf_seq_write(ctx->meta->seq, &excess, sizeof(excess));
	return 0;
}

/* Over the charges: prints the addresses of those that the accounting has no object for. */
SEC("iter/bpf_map_elem")
int g_strays(struct bpf_iter__bpf_map_elem *ctx)
{
	__u64 *key = ctx->key, address;

	if (!key || !ctx->value)
		return 0;
	address = *key;
	if (!bpf_map_lookup_elem(&objects, &address))
		bpf_seq_write(ctx->meta->seq, &address, sizeof(address));
	return 0;
}
