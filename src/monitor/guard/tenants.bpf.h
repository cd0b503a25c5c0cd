/* SPDX-License-Identifier: MIT */
/*
 * Which tenant the current process belongs to: by the slots that the collector has given to
 * cgroups, and by the rules for those that it has not seen yet. Knows nothing of counts.
 */
#ifndef MONITOR_GUARD_TENANTS_BPF_H
#define MONITOR_GUARD_TENANTS_BPF_H

#include "monitor/guard/patterns.h"
#include "monitor/guard/state.bpf.h"

enum {
	LEVELS = 32,	 /* of cgroups */
	NAME_MOST = 256, /* bytes of a cgroup's name */
	SEARCHES = 1024, /* at a time */
	UNDECIDED = -1,	 /* in place of a slot */
	NAMES = ~0u,	 /* in place of a number of characters */
};

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

static const struct search blank;

/*
 * Functions that are not static are looked at by the verifier once, by themselves, and not again
 * for every state that a caller may be in. Without that, loading would take a second.
 */

/* The path of the current process's cgroup, from the group on that rules begin in. */
__noinline int search_path_write(struct search *search, __u64 root)
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
	search_path_write(search, root);
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

#endif
