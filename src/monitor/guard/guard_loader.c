/* SPDX-License-Identifier: MIT */
/* Loading and looking after the guard; see guard_loader.h. */
#include "monitor/guard/guard_loader.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "monitor/guard/excess.h"
#include "monitor/guard/guard.skel.h"
#include "monitor/guard/guard_maps.h"
#include "monitor/kernel/pins.h"
#include "monitor/kernel/uverbs.h"
#include "monitor/reader/rows.h"

enum {
	NAMES = 512,   /* bytes, of security modules */
	PATIENCE = 25, /* times that it is tended */
	OBJECTS_OF_THREAD = 4,
	ADOPT_PASSES = 8,
	LIST_PASSES = 4096,
	REST = 4,	   /* times as long as it took to look for objects, */
	THREADS_REST = 20, /* and for threads */
};

/* In the order of attaching: ends before beginnings, and what refuses last. */
static const struct part {
	const char *program;
	unsigned ways;						 /* that need it */
	enum { ALWAYS, COMPAT, PREEMPTED, NOT_PREEMPTED } where; /* by what the kernel has */
	bool skipped;						 /* now and then, see pins_misses */
} parts[] = {
	{ "g_destroy", GUARD_IOCTL, NOT_PREEMPTED, true },
	{ "k_destroy", GUARD_IOCTL, PREEMPTED, true },
	{ "k_released", GUARD_IOCTL, PREEMPTED, true },
	{ "g_exit", GUARD_IOCTL, ALWAYS, true },
	{ "g_close", GUARD_IOCTL, ALWAYS, false },
	{ "g_changed", GUARD_IOCTL, NOT_PREEMPTED, true },
	{ "k_changed", GUARD_IOCTL, PREEMPTED, true },
	{ "g_exec", GUARD_IOCTL, ALWAYS, true },
	{ "g_ioctl_end", GUARD_IOCTL, NOT_PREEMPTED, true },
	{ "k_ioctl_end", GUARD_IOCTL, PREEMPTED, true },
	{ "g_commit", GUARD_IOCTL, NOT_PREEMPTED, true },
	{ "k_commit", GUARD_IOCTL, PREEMPTED, true },
	{ "g_write_end", GUARD_WRITE, NOT_PREEMPTED, true },
	{ "k_write_end", GUARD_WRITE, PREEMPTED, true },
	{ "g_write", GUARD_WRITE, ALWAYS, false },
	{ "g_ioctl_compat", GUARD_IOCTL, COMPAT, false },
	{ "g_ioctl", GUARD_IOCTL, ALWAYS, false },
};
enum { PARTS = sizeof(parts) / sizeof(parts[0]) };

/* Kinds that are objects with a life of their own in the verbs, and the bytes of regions. */
static const __u64 kinds_guarded = 1ull << KIND_mr_bytes
#define UOBJECT(object, kind) | 1ull << kind
#include "monitor/kernel/uverbs.def"
	;

struct guardian {
	char directory[PATH_MAX];
	unsigned places;	     /* for objects, in tables that are made */
	unsigned most[GUARD_TABLES]; /* places that there are */
	struct guard_head *head;
	struct guard_counts *counts;
	struct guard_rule *rules;
	struct monitor_head *monitor; /* of the accounting, */
	struct monitor_row *owners;   /* and its rows */
	__u32 tried;		      /* ways that were tried, and not had */
	unsigned patience;	      /* times until they are tried again */
	/* When all was last looked for: */
	__u64 misses; /* of the programs */
	__u64 epoch, seeded_ns;
	/* Until then it is not done again for the same reason; likewise of threads. */
	__u64 rest_ns, threads_rest_ns;
};

/* ---- maps */

/* Those that have a place for each object or thread. */
static void tables_size(struct guardian *guardian, struct guard *object)
{
	struct bpf_map *const tables[GUARD_TABLES] = {
		[GUARD_OBJECTS] = object->maps.guard_charges,
		[GUARD_RUNNING] = object->maps.guard_commands,
	};
	const unsigned wanted[GUARD_TABLES] = {
		[GUARD_OBJECTS] = guardian->places,
		[GUARD_RUNNING] = guardian->places / OBJECTS_OF_THREAD,
	};

	for (unsigned i = 0; i < GUARD_TABLES; i++)
		guardian->most[i] = pins_size(guardian->directory, tables[i], wanted[i]);
}

static int object_open(struct guardian *guardian, struct guard **ret_object, char *problem,
		       size_t size)
{
	const char *directory = guardian->directory;
	static const char *const shared[] = { "objects" };
	struct guard *object = guard__open();

	if (!object)
		return pins_fail(-errno, problem, size, "the guard's programs cannot be read: %s",
				 strerror(errno));
	pins_object(directory, object->obj);
	tables_size(guardian, object);
	/* The accounting's maps are as large as its loader made them. */
	for (unsigned i = 0; i < sizeof(shared) / sizeof(shared[0]); i++) {
		int fd = pins_open(directory, shared[i]), result;

		result = fd < 0 ? fd :
				  bpf_map__reuse_fd(
					  bpf_object__find_map_by_name(object->obj, shared[i]), fd);
		if (fd >= 0)
			close(fd);
		if (result < 0) {
			guard__destroy(object);
			return pins_fail(result, problem, size, "%s/%s: %s", directory, shared[i],
					 strerror(-result));
		}
	}
	*ret_object = object;
	return 0;
}

static int maps_make(struct guardian *guardian, char *problem, size_t size)
{
	struct guard *object;
	int result = object_open(guardian, &object, problem, size);

	if (result < 0)
		return result;
	result = pins_load(object->obj, problem, size);
	guard__destroy(object);
	return result;
}

static int head_make(struct guardian *guardian, char *problem, size_t size)
{
	struct guard_head *head = guardian->head;
	struct guard_limits *limits =
		pins_memory(guardian->directory, "guard_limits", GUARD_TENANTS * sizeof(*limits));

	if (!limits)
		return pins_fail(-errno, problem, size, "the guard's limits: %s", strerror(errno));
	for (unsigned slot = 0; slot < GUARD_TENANTS; slot++)
		for (unsigned kind = 0; kind < KIND_COUNT; kind++)
			limits[slot].limit[kind] = GUARD_UNLIMITED;
	munmap(limits, GUARD_TENANTS * sizeof(*limits));
	head->version = GUARD_VERSION;
	head->tenants = GUARD_TENANTS;
	head->kinds = kinds_signature();
	head->guarded = kinds_guarded;
	for (unsigned i = 0; i < GUARD_TABLES; i++)
		head->most[i] = guardian->most[i];
	__atomic_store_n(&head->magic, GUARD_MAGIC, __ATOMIC_RELEASE);
	return 0;
}

static int memory_open(struct guardian *guardian, char *problem, size_t size)
{
	guardian->head = pins_memory(guardian->directory, "guard_head", sizeof(*guardian->head));
	guardian->counts = pins_memory(guardian->directory, "guard_counts",
				       GUARD_TENANTS * sizeof(*guardian->counts));
	guardian->rules = pins_memory(guardian->directory, "guard_rules",
				      2 * GUARD_RULES * sizeof(*guardian->rules));
	guardian->monitor = pins_memory(guardian->directory, "head", sizeof(*guardian->monitor));
	guardian->owners =
		pins_memory(guardian->directory, "rows", MONITOR_ROWS * sizeof(*guardian->owners));
	if (!guardian->head || !guardian->counts || !guardian->rules || !guardian->monitor ||
	    !guardian->owners)
		return pins_fail(-errno, problem, size, "the guard's maps cannot be mapped: %s",
				 strerror(errno));
	if (!guardian->head->magic)
		return head_make(guardian, problem, size);
	if (guardian->head->version != GUARD_VERSION || guardian->head->kinds != kinds_signature())
		return pins_fail(-EPROTO, problem, size, "the guard is of another version");
	return 0;
}

int guardian_open(struct guardian **ret_guardian, const char *directory, unsigned places,
		  char *problem, size_t size)
{
	struct guardian *guardian = calloc(1, sizeof(*guardian));
	int result;

	if (!guardian)
		return pins_fail(-ENOMEM, problem, size, "no memory");
	snprintf(guardian->directory, sizeof(guardian->directory), "%s", directory);
	guardian->places = places;
	result = maps_make(guardian, problem, size);
	if (result == 0)
		result = memory_open(guardian, problem, size);
	if (result < 0)
		guardian_close(guardian);
	else
		*ret_guardian = guardian;
	return result;
}

void guardian_close(struct guardian *guardian)
{
	if (!guardian)
		return;
	if (guardian->head)
		munmap(guardian->head, sizeof(*guardian->head));
	if (guardian->counts)
		munmap(guardian->counts, GUARD_TENANTS * sizeof(*guardian->counts));
	if (guardian->rules)
		munmap(guardian->rules, 2 * GUARD_RULES * sizeof(*guardian->rules));
	if (guardian->monitor)
		munmap(guardian->monitor, sizeof(*guardian->monitor));
	if (guardian->owners)
		munmap(guardian->owners, MONITOR_ROWS * sizeof(*guardian->owners));
	free(guardian);
}

void guardian_disarm(const char *directory)
{
	struct guard_head *head = pins_memory(directory, "guard_head", sizeof(*head));

	if (!head)
		return;
	__atomic_store_n(&head->armed, 0, __ATOMIC_SEQ_CST);
	munmap(head, sizeof(*head));
}

/* ---- what this kernel has */

/* The security modules in force, "a,b,c". */
static int security_modules(char *ret_names, size_t size)
{
	int fd = ground_file("securityfs", "/sys/kernel/security", "lsm");
	ssize_t length = fd < 0 ? -1 : read(fd, ret_names, size - 1);

	if (fd >= 0)
		close(fd);
	ret_names[length > 0 ? length : 0] = '\0';
	ret_names[strcspn(ret_names, "\n")] = '\0';
	return length > 0 ? 0 : -ENOENT;
}

/* Attached where it is not in force, a program is simply never asked. */
static int ask_security(char *problem, size_t size)
{
	char names[NAMES], *rest = names, *name;

	if (security_modules(names, sizeof(names)) < 0)
		return pins_fail(-ENOTSUP, problem, size,
				 "this kernel does not say which security modules are in force");
	snprintf(problem, size, "BPF LSM is not in force; boot with lsm=%.150s%sbpf", names,
		 names[0] ? "," : "");
	while ((name = strsep(&rest, ",")))
		if (!strcmp(name, "bpf"))
			return 0;
	return -ENOTSUP;
}

/* ---- attaching */

static bool is_wanted(const struct part *part, __u32 ways)
{
	return part->ways & ways;
}

static bool is_possible(const struct part *part, const struct ground *ground)
{
	switch (part->where) {
	case ALWAYS:
		return true;
	case COMPAT: /* older kernels ask g_ioctl instead */
		return ground->asks_compat;
	case PREEMPTED:
		return ground->preempts;
	case NOT_PREEMPTED:
		return !ground->preempts;
	}
	return false;
}

static bool is_had(const struct guardian *guardian, const struct part *part)
{
	return pins_has_link(guardian->directory, part->program);
}

static void offsets_write(struct guard *object, const struct ground *ground)
{
#define OFFSET(name, structure, member, old)                                                       \
	object->rodata->offset_##name = ground->offset[OFFSET_##name];
#include "monitor/kernel/offsets.def"
#undef OFFSET
}

/* Loads and attaches what these ways need and is not there yet. */
static int attach(struct guardian *guardian, struct guard *object, const struct ground *ground,
		  __u32 ways, char *problem, size_t size)
{
	const struct {
		struct bpf_program *program;
		const struct bpf_map *map; /* NULL: over the open files of all processes */
	} iterators[] = {
		{ object->progs.g_adopt, object->maps.objects },
		{ object->progs.g_strays, object->maps.guard_charges },
		{ object->progs.g_excess, object->maps.guard_charges },
		{ object->progs.g_holders, NULL },
	};
	enum { ITERATORS = sizeof(iterators) / sizeof(iterators[0]) };
	bool loaded[PARTS] = { false };
	int result;

	for (unsigned i = 0; i < PARTS; i++) {
		struct bpf_program *prog =
			bpf_object__find_program_by_name(object->obj, parts[i].program);

		loaded[i] = is_wanted(&parts[i], ways) && !is_had(guardian, &parts[i]) &&
			    is_possible(&parts[i], ground);
		bpf_program__set_autoload(prog, loaded[i]);
	}
	for (unsigned i = 0; i < ITERATORS; i++)
		bpf_program__set_autoload(iterators[i].program, true);
	result = pins_load(object->obj, problem, size);
	for (unsigned i = 0; i < ITERATORS && result == 0; i++)
		result = pins_iterator(guardian->directory, iterators[i].program, iterators[i].map,
				       problem, size);
	for (unsigned i = 0; i < PARTS && result == 0; i++) {
		struct bpf_link *link = NULL;

		if (!loaded[i])
			continue;
		result =
			pins_attach(guardian->directory,
				    bpf_object__find_program_by_name(object->obj, parts[i].program),
				    parts[i].program, &link, problem, size);
		if (link) {
			bpf_link__destroy(link);
			result = pins_fail(-ENOTSUP, problem, size, "%s cannot be pinned",
					   parts[i].program);
		}
	}
	return result;
}

static void detach(struct guardian *guardian, __u32 ways)
{
	/* What refuses goes first. */
	for (unsigned i = PARTS; i-- > 0;)
		if (is_wanted(&parts[i], ways))
			pins_unlink(guardian->directory, parts[i].program);
}

static int bring(struct guardian *guardian, const struct ground_wish *wish, __u32 ways,
		 char *problem, size_t size)
{
	struct guard *object = NULL;
	struct ground ground = { 0 };
	int result = ask_security(problem, size);

	if (result == 0)
		result = ground_survey(&ground, wish, problem, size);
	if (result == 0 && ground.mode != MONITOR_FENTRY)
		result = pins_fail(-ENOTSUP, problem, size, "it needs fentry, but %s",
				   ground.shortfall);
	if (result == 0 && !ground.offset[OFFSET_command_bundle])
		result = pins_fail(-ENOTSUP, problem, size,
				   "nobody describes this kernel's struct bundle_priv");
	if (result == 0)
		result = object_open(guardian, &object, problem, size);
	if (result < 0)
		return result;
	offsets_write(object, &ground);
	object->rodata->uverbs_fops[0] = ground.uverbs_fops[0].address;
	object->rodata->uverbs_fops[1] = ground.uverbs_fops[1].address;
	result = attach(guardian, object, &ground, ways, problem, size);
	guard__destroy(object);
	return result;
}

/* ---- what was there before, and what was missed */

static __u64 misses(const struct guardian *guardian)
{
	__u64 sum = 0;

	for (unsigned i = 0; i < PARTS; i++)
		if (parts[i].skipped)
			sum += pins_misses(guardian->directory, parts[i].program);
	return sum;
}

static bool any_floats(const struct guardian *guardian)
{
	for (unsigned slot = 1; slot < GUARD_TENANTS; slot++)
		if (__atomic_load_n(&guardian->counts[slot].afloat, __ATOMIC_RELAXED))
			return true;
	return false;
}

/* Threads whose end was not seen have places, too: one that is not the first of its process and
 * calls exec goes on under another number. They are looked for before a tenant has its share. */
static bool is_crowded(const struct guardian *guardian)
{
	return __atomic_load_n(&guardian->head->taken[GUARD_RUNNING], __ATOMIC_RELAXED) >
	       (__s64)guardian->head->most[GUARD_RUNNING] / 4;
}

static struct tenancy tenancy_open(const struct guardian *guardian)
{
	return (struct tenancy){ guardian->head, guardian->rules,
				 pins_open(guardian->directory, "guard_tenants") };
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
static bool adopt(const struct guardian *guardian, bool *ret_ownerless)
{
	struct adoption adoption = {
		.tenancy = tenancy_open(guardian),
		.tenancies = pins_open(guardian->directory, "guard_tenancies"),
		.rows = guardian->owners,
		.unknown = 1,
	};

	for (unsigned pass = 0; pass < ADOPT_PASSES && adoption.unknown; pass++) {
		adoption.unknown = 0;
		if (adoption.tenancy.tenants < 0 || adoption.tenancies < 0 ||
		    pins_iterate(guardian->directory, "g_adopt", sizeof(__u64), tenancy_write,
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
static bool list(const struct guardian *guardian)
{
	struct monitor_head *monitor = guardian->monitor;
	__u64 lost = __atomic_load_n(&monitor->lost_objects, __ATOMIC_SEQ_CST);

	for (unsigned pass = 0; pass < LIST_PASSES; pass++) {
		__atomic_store_n(&monitor->seed_unfinished, 0, __ATOMIC_SEQ_CST);
		if (pins_iterate(guardian->directory, "seed", sizeof(__u64), NULL, NULL) < 0)
			return false;
		if (!__atomic_load_n(&monitor->seed_unfinished, __ATOMIC_SEQ_CST))
			return __atomic_load_n(&monitor->lost_objects, __ATOMIC_SEQ_CST) == lost;
	}
	return false;
}

static void places_put(const struct guardian *guardian, __u32 slot, enum guard_table table,
		       __s64 amount)
{
	__atomic_fetch_sub(&guardian->head->taken[table], amount, __ATOMIC_SEQ_CST);
	__atomic_fetch_sub(&guardian->counts[slot].taken[table], amount, __ATOMIC_SEQ_CST);
}

struct strays {
	const struct guardian *guardian;
	int charges; /* the map */
};

/* As in the kernel, whoever deletes the key has the rest to do. */
static void stray_remove(void *closure, const void *record)
{
	const struct strays *strays = closure;
	__u64 address = *(const __u64 *)record;
	struct guard_charge charge;
	struct guard_counts *counts;

	if (bpf_map_lookup_and_delete_elem(strays->charges, &address, &charge) ||
	    charge.slot >= GUARD_TENANTS || charge.kind >= KIND_COUNT)
		return;
	counts = &strays->guardian->counts[charge.slot];
	__atomic_fetch_sub(&counts->used[charge.kind], 1, __ATOMIC_SEQ_CST);
	if (charge.kind == KIND_mr)
		__atomic_fetch_sub(&counts->used[KIND_mr_bytes], (__s64)charge.bytes,
				   __ATOMIC_SEQ_CST);
	places_put(strays->guardian, charge.slot, GUARD_OBJECTS, 1);
}

/* When to look again, after so many times as long as the look took. */
static __u64 rest_ns(__u64 begun_ns, unsigned times)
{
	__u64 now_ns = pins_now_ns();

	return now_ns + times * (now_ns - begun_ns);
}

/* A thread whose end was not seen. What it was at floats. */
static void thread_forget(const struct guardian *guardian, int commands, __u32 thread)
{
	struct guard_command last;
	struct guard_counts *counts;

	if (!kill((pid_t)thread, 0) || errno != ESRCH ||
	    bpf_map_lookup_and_delete_elem(commands, &thread, &last))
		return;
	if (last.payer < GUARD_TENANTS)
		places_put(guardian, last.payer, GUARD_RUNNING, 1);
	if (last.state < GUARD_RESERVED || last.slot >= GUARD_TENANTS || last.kind >= KIND_COUNT)
		return;
	counts = &guardian->counts[last.slot];
	__atomic_fetch_add(&counts->afloat, 1, __ATOMIC_SEQ_CST);
	if (last.kind != KIND_mr_bytes)
		__atomic_fetch_add(&counts->floating[last.kind], 1, __ATOMIC_SEQ_CST);
	if (last.kind == KIND_mr || last.kind == KIND_mr_bytes)
		__atomic_fetch_add(&counts->floating[KIND_mr_bytes], (__s64)last.bytes,
				   __ATOMIC_SEQ_CST);
}

static void threads_forget(struct guardian *guardian)
{
	int commands = pins_open(guardian->directory, "guard_commands");
	__u64 begun_ns = pins_now_ns();
	__u32 thread, before, *at = NULL;

	while (commands >= 0 && !bpf_map_get_next_key(commands, at, &thread)) {
		if (at) /* only now: from it the next one was found */
			thread_forget(guardian, commands, before);
		before = thread;
		at = &before;
	}
	if (at)
		thread_forget(guardian, commands, before);
	if (commands >= 0)
		close(commands);
	guardian->threads_rest_ns = rest_ns(begun_ns, THREADS_REST);
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
static void afloat_settle(const struct guardian *guardian, __u32 slot, const struct afloat *afloat,
			  bool complete)
{
	struct guard_counts *counts = &guardian->counts[slot];
	__s64 lost = counts->sought_places;

	for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
		__s64 left = counts->sought[kind];

		/* In this order: if we are killed in between, too much counts, not too little. */
		if (afloat->amount[kind])
			__atomic_fetch_sub(&counts->floating[kind],
					   afloat->amount[kind] - (complete ? 0 : left),
					   __ATOMIC_SEQ_CST);
		if (complete && left)
			__atomic_fetch_sub(&counts->used[kind], left, __ATOMIC_SEQ_CST);
		counts->sought[kind] = 0;
	}
	counts->sought_places = 0;
	if (!afloat->places)
		return;
	if (complete)
		places_put(guardian, slot, GUARD_OBJECTS, lost);
	__atomic_fetch_sub(&counts->afloat, afloat->places - (complete ? 0 : lost),
			   __ATOMIC_SEQ_CST);
}

/*
 * Charges what the accounting has found and nobody is charged for, and forgets what is there
 * no more. What floated before that is either found now, or it is not there: it floats no more.
 * Unless not everything could be listed: then all stays as it is, and the head says so.
 */
static void count_anew(struct guardian *guardian)
{
	static struct afloat afloat[GUARD_TENANTS];
	struct strays strays = { guardian, pins_open(guardian->directory, "guard_charges") };
	__u64 begun_ns = pins_now_ns();
	bool complete, ownerless;

	if (strays.charges < 0)
		return;
	/* What comes after this is for the next time. */
	guardian->misses = misses(guardian);
	guardian->epoch = guardian->head->epoch;
	guardian->seeded_ns = guardian->monitor->seeded_ns;
	threads_forget(guardian);
	for (unsigned slot = 0; slot < GUARD_TENANTS; slot++)
		afloat_seek(&guardian->counts[slot], &afloat[slot]);
	complete = list(guardian);
	complete &= adopt(guardian, &ownerless);
	/* A charge without an object is stale; unless there was no room for objects. */
	if (complete && !guardian->monitor->lost_objects)
		pins_iterate_twice(guardian->directory, "g_strays", sizeof(__u64), stray_remove,
				   &strays);
	for (unsigned slot = 0; slot < GUARD_TENANTS; slot++)
		afloat_settle(guardian, slot, &afloat[slot], complete);
	__atomic_store_n(&guardian->head->incomplete, (__u64)(!complete || ownerless),
			 __ATOMIC_SEQ_CST);
	__atomic_store_n(&guardian->head->counted, guardian->epoch, __ATOMIC_SEQ_CST);
	guardian->rest_ns = rest_ns(begun_ns, REST);
	close(strays.charges);
}

/* Of files that are closed: see excess.h. */
static void excess_tend(struct guardian *guardian)
{
	struct tenancy tenancy;

	if (!__atomic_load_n(&guardian->head->closed, __ATOMIC_RELAXED))
		return;
	tenancy = tenancy_open(guardian);
	if (tenancy.tenants >= 0)
		excess_end(guardian->directory, &tenancy, guardian->counts);
	tenancy_close(&tenancy);
}

/* With the accounting, which looks often while calls may be under way that began before
 * something was attached. */
static bool is_due(const struct guardian *guardian)
{
	return guardian->head->epoch != guardian->epoch ||
	       guardian->monitor->seeded_ns != guardian->seeded_ns ||
	       misses(guardian) != guardian->misses ||
	       (pins_now_ns() > guardian->rest_ns &&
		(guardian->head->incomplete || any_floats(guardian)));
}

/* ---- the whole */

/* One of the ways; failing is said in the head. True if something was attached or detached. */
static bool match(struct guardian *guardian, const struct ground_wish *wish, __u32 way, bool wanted)
{
	struct guard_head *head = guardian->head;
	char problem[GUARD_PROBLEM] = "";

	if (head->ways & way && !wanted) {
		head->ways &= ~way;
		detach(guardian, way);
		return true;
	}
	if (!wanted || head->ways & way || guardian->tried & way)
		return false;
	if (bring(guardian, wish, way, problem, sizeof(problem)) < 0) {
		detach(guardian, way);
		guardian->tried |= way;
		guardian->patience = PATIENCE;
		memcpy(head->problem, problem, sizeof(problem));
		return true;
	}
	head->ways |= way;
	return true;
}

/* What is in force is only given up by --unload, but write() as soon as nobody wants it. */
bool guardian_tend(struct guardian *guardian, const struct ground_wish *wish)
{
	struct guard_head *head = guardian->head;
	__u32 wanted = __atomic_load_n(&head->wanted, __ATOMIC_ACQUIRE);
	bool changed;

	__atomic_store_n(&head->tended_ns, pins_now_ns(), __ATOMIC_RELAXED);
	if (guardian->patience && --guardian->patience == 0)
		guardian->tried = 0;
	changed = match(guardian, wish, GUARD_IOCTL | GUARD_COMPAT, wanted || head->ways);
	if (head->ways)
		changed |= match(guardian, wish, GUARD_WRITE, wanted & GUARD_WRITE);
	if ((wanted & ~head->ways) == 0)
		head->problem[0] = '\0';
	__atomic_store_n(&head->armed, head->ways != 0, __ATOMIC_SEQ_CST);
	if (head->armed)
		excess_tend(guardian);
	if (head->armed && is_due(guardian))
		count_anew(guardian);
	else if (is_crowded(guardian) && pins_now_ns() > guardian->threads_rest_ns)
		threads_forget(guardian);
	return changed;
}
