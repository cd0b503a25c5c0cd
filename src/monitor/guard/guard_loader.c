/* SPDX-License-Identifier: MIT */
/* The guard's maps, and what is to be done with its programs, and when; see guard_loader.h. */
#include "monitor/guard/guard_loader.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "monitor/guard/guard_loader_parts.h"
#include "monitor/guard/guard_maps.h"
#include "monitor/kernel/pins.h"
#include "monitor/kernel/uverbs.h"

#include "monitor/guard/guard.skel.h"

enum {
	PATIENCE = 25, /* times that it is tended */
	OBJECTS_OF_THREAD = 4,
};

_Static_assert((1ull << KIND_mr_bytes
#define UOBJECT(object, kind) | 1ull << kind
#include "monitor/kernel/uverbs.def"
		) == (0ull
#define KIND(name, unit, form, rdmacg, kernel, guarded, text)                                      \
	| (unsigned long long)GUARDED_##guarded << KIND_##name
#include "terms/kinds.def"
#undef KIND
		     ),
	       "the guard knows the objects of the kinds that can be guarded, and no others");

/* ---- maps */

/* Those that have a place for each object or thread. */
static void tables_size(struct guard_loader *loader, struct guard *object)
{
	struct bpf_map *const tables[GUARD_TABLES] = {
		[GUARD_OBJECTS] = object->maps.guard_charges,
		[GUARD_RUNNING] = object->maps.guard_commands,
	};
	const unsigned wanted[GUARD_TABLES] = {
		[GUARD_OBJECTS] = loader->places,
		[GUARD_RUNNING] = loader->places / OBJECTS_OF_THREAD,
	};

	for (unsigned i = 0; i < GUARD_TABLES; i++)
		loader->most[i] = pins_size(loader->directory, tables[i], wanted[i]);
}

int guard_loader_object_open(struct guard_loader *loader, struct guard **ret_object,
			     char problem[PROBLEM_SIZE])
{
	const char *directory = loader->directory;
	static const char *const shared[] = { "objects" };
	struct guard *object = guard__open();

	if (!object)
		return problem_set(-errno, problem, "the guard's programs cannot be read: %s",
				   strerror(errno));
	pins_object(directory, object->obj);
	tables_size(loader, object);
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
			return problem_set(result, problem, "%s/%s: %s", directory, shared[i],
					   strerror(-result));
		}
	}
	*ret_object = object;
	return 0;
}

static int maps_make(struct guard_loader *loader, char problem[PROBLEM_SIZE])
{
	struct guard *object = NULL;
	int result = guard_loader_object_open(loader, &object, problem);

	if (result < 0)
		return result;
	result = pins_load(object->obj, problem);
	guard__destroy(object);
	return result;
}

static int guard_head_fill(struct guard_loader *loader, char problem[PROBLEM_SIZE])
{
	struct guard_head *head = loader->head;
	struct guard_limits *limits =
		pins_memory(loader->directory, "guard_limits", GUARD_TENANTS * sizeof(*limits));

	if (!limits)
		return problem_set(-errno, problem, "the guard's limits: %s", strerror(errno));
	for (unsigned slot = 0; slot < GUARD_TENANTS; slot++)
		for (unsigned kind = 0; kind < KIND_COUNT; kind++)
			limits[slot].limit[kind] = UNLIMITED;
	munmap(limits, GUARD_TENANTS * sizeof(*limits));
	head->version = GUARD_VERSION;
	head->tenants = GUARD_TENANTS;
	head->kinds = kinds_signature();
	head->guarded = kinds_guarded();
	for (unsigned i = 0; i < GUARD_TABLES; i++)
		head->most[i] = loader->most[i];
	__atomic_store_n(&head->magic, GUARD_MAGIC, __ATOMIC_RELEASE);
	return 0;
}

static int guard_memory_open(struct guard_loader *loader, char problem[PROBLEM_SIZE])
{
	loader->head = pins_memory(loader->directory, "guard_head", sizeof(*loader->head));
	loader->counts = pins_memory(loader->directory, "guard_counts",
				     GUARD_TENANTS * sizeof(*loader->counts));
	loader->rules = pins_memory(loader->directory, "guard_rules",
				    2 * GUARD_RULES * sizeof(*loader->rules));
	loader->monitor = pins_memory(loader->directory, "head", sizeof(*loader->monitor));
	loader->owners =
		pins_memory(loader->directory, "rows", MONITOR_ROWS * sizeof(*loader->owners));
	if (!loader->head || !loader->counts || !loader->rules || !loader->monitor ||
	    !loader->owners)
		return problem_set(-errno, problem, "the guard's maps cannot be mapped: %s",
				   strerror(errno));
	return loader->head->magic ? 0 : guard_head_fill(loader, problem);
}

int guard_loader_open(struct guard_loader **ret_loader, const char *directory, unsigned places,
		      char problem[PROBLEM_SIZE])
{
	struct guard_loader *loader = calloc(1, sizeof(*loader));
	int result;

	if (!loader)
		return problem_set(-ENOMEM, problem, "no memory");
	snprintf(loader->directory, sizeof(loader->directory), "%s", directory);
	loader->places = places;
	/* Before maps of another layout are taken up. */
	result = monitor_guard_check(directory, problem);
	if (result == 0)
		result = maps_make(loader, problem);
	if (result == 0)
		result = guard_memory_open(loader, problem);
	if (result < 0)
		guard_loader_close(loader);
	else
		*ret_loader = loader;
	return result;
}

void guard_loader_close(struct guard_loader *loader)
{
	if (!loader)
		return;
	if (loader->head)
		munmap(loader->head, sizeof(*loader->head));
	if (loader->counts)
		munmap(loader->counts, GUARD_TENANTS * sizeof(*loader->counts));
	if (loader->rules)
		munmap(loader->rules, 2 * GUARD_RULES * sizeof(*loader->rules));
	if (loader->monitor)
		munmap(loader->monitor, sizeof(*loader->monitor));
	if (loader->owners)
		munmap(loader->owners, MONITOR_ROWS * sizeof(*loader->owners));
	free(loader);
}

void guard_loader_disarm(const char *directory)
{
	struct guard_head *head = pins_memory(directory, "guard_head", sizeof(*head));

	if (!head)
		return;
	__atomic_store_n(&head->armed, 0, __ATOMIC_SEQ_CST);
	munmap(head, sizeof(*head));
}

/* ---- the whole */

/* One of the ways; failing is said in the head. True if something was attached or detached. */
static bool ways_match(struct guard_loader *loader, const struct probe_options *options, __u32 way,
		       bool wanted)
{
	struct guard_head *head = loader->head;
	char problem[PROBLEM_SIZE];

	if (head->ways & way && !wanted) {
		head->ways &= ~way;
		guard_detach(loader, way);
		return true;
	}
	if (!wanted || head->ways & way || loader->tried & way)
		return false;
	if (guard_attach(loader, options, way, problem) < 0) {
		guard_detach(loader, way);
		loader->tried |= way;
		loader->patience = PATIENCE;
		snprintf(head->problem, sizeof(head->problem), "%.255s", problem);
		return true;
	}
	head->ways |= way;
	return true;
}

/* All ways in one go, which costs the kernel and us little more than one. If that fails, each is
 * tried alone, and says why. */
static bool ways_attach_together(struct guard_loader *loader, const struct probe_options *options,
				 __u32 wanted)
{
	const __u32 every = GUARD_IOCTL | GUARD_COMPAT | GUARD_WRITE;
	struct guard_head *head = loader->head;
	char problem[PROBLEM_SIZE];

	if (head->ways || loader->tried || (wanted & every) != every)
		return false;
	if (guard_attach(loader, options, every, problem) < 0) {
		guard_detach(loader, every);
		return false;
	}
	head->ways |= every;
	return true;
}

/* What is in force is only given up by --unload, but write() as soon as nobody wants it. */
bool guard_loader_tend(struct guard_loader *loader, const struct probe_options *options)
{
	struct guard_head *head = loader->head;
	__u32 wanted = __atomic_load_n(&head->wanted, __ATOMIC_ACQUIRE);
	bool changed;

	__atomic_store_n(&head->tended_ns, clock_boot_ns(), __ATOMIC_RELAXED);
	if (loader->patience && --loader->patience == 0)
		loader->tried = 0;
	changed = ways_attach_together(loader, options, wanted);
	changed |= ways_match(loader, options, GUARD_IOCTL | GUARD_COMPAT, wanted || head->ways);
	if (head->ways)
		changed |= ways_match(loader, options, GUARD_WRITE, wanted & GUARD_WRITE);
	if ((wanted & ~head->ways) == 0)
		head->problem[0] = '\0';
	__atomic_store_n(&head->armed, head->ways != 0, __ATOMIC_SEQ_CST);
	guard_recount_tend(loader);
	return changed;
}
