/* SPDX-License-Identifier: MIT */
/* The programs of the accounting, brought to the functions that they watch; see loader_parts.h. */
#include "monitor/accounting/loader_parts.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "monitor/kernel/pins.h"

#include "monitor/accounting/accounting.skel.h"

enum {
	PLACES_FIXED = 1 << 18, /* where memory is taken at once: 30 MB */
	OBJECTS_OF_ROW = 32,	/* where tables are small */
};

const struct loader_hook loader_hooks[MONITOR_HOOKS] = {
#define HOOK(name, function, counters) { #name, counters },
#include "monitor/reader/hooks.def"
#undef HOOK
};

/* ---- the object: the programs, opened for a change */

static struct bpf_program *hook_program_find(const struct accounting *object, char way,
					     unsigned hook, const char *which)
{
	char name[64];

	snprintf(name, sizeof(name), "%c_%s%s", way, loader_hooks[hook].name, which);
	return bpf_object__find_program_by_name(object->obj, name);
}

/* See hooks.def. */
static bool hook_is_entry(const struct bpf_program *by_kprobe)
{
	return !strncmp(bpf_program__section_name(by_kprobe), "kprobe/", 7);
}

static struct bpf_program *hook_program(const struct accounting *object, const struct probe *probe,
					unsigned hook, const char *which)
{
	bool by_kprobe =
		probe->mode == MONITOR_KPROBE ||
		(probe->preempts && hook_is_entry(hook_program_find(object, 'k', hook, "")));

	return hook_program_find(object, by_kprobe ? 'k' : 'f', hook, which);
}

static int object_open(const struct loader *loader, struct accounting **ret_object,
		       char problem[PROBLEM_SIZE])
{
	LIBBPF_OPTS(bpf_object_open_opts, options, .btf_custom_path = loader->options.probe.btf);
	struct accounting *object = accounting__open_opts(&options);

	if (!object)
		return problem_set(-errno, problem, "the programs cannot be read: %s",
				   strerror(errno));
	object->rodata->offsets = loader->probe.offsets;
	pins_size(loader->directory, object->maps.objects,
		  loader->options.tables  ? 2 * loader->options.tables :
		  loader->probe.allocates ? pins_places() :
					    PLACES_FIXED);
	if (loader->probe.allocates)
		bpf_map__set_map_flags(object->maps.objects, BPF_F_NO_PREALLOC);
	pins_object(loader->directory, object->obj);
	*ret_object = object;
	return 0;
}

/* ---- memory that is shared with the kernel */

static int loader_head_fill(struct loader *loader, char problem[PROBLEM_SIZE])
{
	struct monitor_head *head = loader->head;
	int vacant = pins_open(loader->directory, "vacant"), result = 0;
	__u32 left, rows = MONITOR_ROWS;

	if (loader->options.tables && loader->options.tables / OBJECTS_OF_ROW < MONITOR_ROWS)
		rows = loader->options.tables / OBJECTS_OF_ROW;
	/* Somebody may have been killed here before. */
	while (!bpf_map_lookup_and_delete_elem(vacant, NULL, &left))
		;
	/* The first row is nobody's, and always there. */
	for (__u32 row = rows - 1; row > 0 && result == 0; row--)
		if (bpf_map_update_elem(vacant, NULL, &row, BPF_ANY))
			result = problem_set(-errno, problem, "vacant rows: %s", strerror(errno));
	if (vacant >= 0)
		close(vacant);
	if (result < 0)
		return result;
	loader->rows[0].generation = 1;
	loader->rows[0].device = MONITOR_NO_DEVICE;
	head->version = MONITOR_VERSION;
	head->rows = MONITOR_ROWS;
	head->kinds = kinds_signature();
	head->mode = loader->probe.mode;
	if (getrandom(&head->load, sizeof(head->load), 0) != sizeof(head->load))
		head->load = clock_boot_ns();
	/* Last: who reads it finds the rest. */
	__atomic_store_n(&head->magic, MONITOR_MAGIC, __ATOMIC_RELEASE);
	return 0;
}

int loader_memory_open(struct loader *loader, char problem[PROBLEM_SIZE])
{
	if (!loader->head) {
		loader->head = pins_memory(loader->directory, "head", sizeof(*loader->head));
		loader->rows = pins_memory(loader->directory, "rows",
					   MONITOR_ROWS * sizeof(*loader->rows));
	}
	if (!loader->head || !loader->rows)
		return problem_set(-errno, problem, "the maps cannot be mapped: %s",
				   strerror(errno));
	return loader->head->magic ? 0 : loader_head_fill(loader, problem);
}

/* ---- attaching */

static int hook_attach(struct loader *loader, const struct accounting *object, unsigned hook,
		       char problem[PROBLEM_SIZE])
{
	struct bpf_program *entry = hook_program(object, &loader->probe, hook, "_entry");
	struct loader_attached *attached = &loader->hook[hook];
	char name[64];
	int result = 0;

	snprintf(name, sizeof(name), "%s_entry", loader_hooks[hook].name);
	if (entry)
		result = pins_attach(loader->directory, entry, name, &attached->entry, problem);
	if (result == 0)
		result = pins_attach(loader->directory,
				     hook_program(object, &loader->probe, hook, ""),
				     loader_hooks[hook].name, &attached->link, problem);
	if (result < 0)
		return result;
	loader->address[hook] = loader->head->hook[hook] = loader->probe.hook[hook].address;
	return 0;
}

static void hook_detach(struct loader *loader, unsigned hook)
{
	char name[64];

	snprintf(name, sizeof(name), "%s_entry", loader_hooks[hook].name);
	pins_unlink(loader->directory, name);
	pins_unlink(loader->directory, loader_hooks[hook].name);
	bpf_link__destroy(loader->hook[hook].entry);
	bpf_link__destroy(loader->hook[hook].link);
	loader->hook[hook] = (struct loader_attached){ 0 };
	loader->address[hook] = loader->head->hook[hook] = 0;
}

/* Attached where the function is now. */
bool loader_hook_holds(const struct loader *loader, unsigned hook)
{
	return loader->address[hook] && loader->address[hook] == loader->probe.hook[hook].address &&
	       (loader->hook[hook].link ||
		pins_has_link(loader->directory, loader_hooks[hook].name));
}

bool loader_exit_holds(const struct loader *loader)
{
	return pins_has_link(loader->directory, LOADER_EXIT_LINK);
}

/* A counter is complete if all that it needs is attached. */
static void observed_write(struct loader *loader)
{
	__u64 observed = (1ull << MONITOR_COUNTERS) - 1;

	for (unsigned i = 0; i < MONITOR_HOOKS; i++)
		if (!loader->head->hook[i])
			observed &= ~loader_hooks[i].counters;
	loader->head->observed = observed;
	loader->head->modules = loader->modules;
	loader->head->uverbs_fops[0] = loader->probe.uverbs_fops[0].address;
	loader->head->uverbs_fops[1] = loader->probe.uverbs_fops[1].address;
	loader->head->ucm_fops = loader->probe.ucm_fops.address;
}

/* Programs of kprobes are of no module, and hold none: loaded once, they can be attached
 * whenever their functions come back. Loading is most of the time that this takes. */
bool loader_keeps_object(const struct loader *loader)
{
	return loader->probe.mode == MONITOR_KPROBE;
}

int loader_object_load(const struct loader *loader, const struct loader_missing *missing,
		       struct accounting **ret_object, char problem[PROBLEM_SIZE])
{
	struct accounting *object = NULL;
	int result = object_open(loader, &object, problem);

	if (result < 0)
		return result;
	for (unsigned i = 0; i < MONITOR_HOOKS; i++) {
		struct bpf_program *entry = hook_program(object, &loader->probe, i, "_entry");
		bool wanted = missing->hook[i] || loader_keeps_object(loader);

		bpf_program__set_autoload(hook_program(object, &loader->probe, i, ""), wanted);
		if (entry)
			bpf_program__set_autoload(entry, wanted);
	}
	bpf_program__set_autoload(object->progs.process_exit, missing->exit);
	bpf_program__set_autoload(object->progs.seed, missing->lists);
	bpf_program__set_autoload(object->progs.stale_list, missing->lists);
	bpf_program__set_autoload(object->progs.stale_remove, missing->lists);
	result = pins_load(object->obj, problem);
	if (result < 0)
		accounting__destroy(object);
	else
		*ret_object = object;
	return result;
}

int loader_object_attach(struct loader *loader, const struct accounting *object,
			 const struct loader_missing *missing, char problem[PROBLEM_SIZE])
{
	int result = loader_memory_open(loader, problem);

	if (result == 0 && missing->exit) {
		struct bpf_link *link;

		result = pins_attach(loader->directory, object->progs.process_exit,
				     LOADER_EXIT_LINK, &link, problem);
	}
	for (unsigned i = 0; i < MONITOR_HOOKS && result == 0; i++) {
		if (missing->hook[i] || !loader->probe.hook[i].address)
			hook_detach(loader, i); /* from a module that is gone */
		if (missing->hook[i])
			result = hook_attach(loader, object, i, problem);
	}
	if (result == 0) {
		observed_write(loader);
		loader_beat(loader);
		loader->attached_ns = clock_boot_ns();
	}
	if (result == 0 && missing->lists)
		result = pins_program(loader->directory, object->progs.stale_remove, problem);
	if (result == 0 && missing->lists)
		result = pins_iterator(loader->directory, object->progs.seed, NULL, problem);
	if (result == 0 && missing->lists)
		result = pins_iterator(loader->directory, object->progs.stale_list,
				       object->maps.objects, problem);
	if (result == 0 && missing->lists)
		loader->listed = loader->probe.offsets;
	return result;
}

/* Links that are ours end with us. */
void loader_beat(struct loader *loader)
{
	for (unsigned i = 0; i < MONITOR_HOOKS; i++)
		if (loader->hook[i].link) {
			loader->head->beat_ns = clock_boot_ns();
			return;
		}
}
