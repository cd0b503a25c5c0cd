/* SPDX-License-Identifier: MIT */
/* What is to be loaded, attached and looked for, and when; see loader.h. */
#include "monitor/accounting/loader.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "monitor/accounting/loader_parts.h"
#include "monitor/kernel/lockfile.h"
#include "monitor/kernel/pins.h"
#include "monitor/reader/reader.h"

#include "monitor/accounting/accounting.skel.h"

enum { FAILURES_MOST = 10 }; /* a module on its way in is not complete at once */

/* What we have of it; what is pinned stays. */
static void loader_forget(struct loader *loader)
{
	for (unsigned i = 0; i < MONITOR_HOOKS; i++) {
		bpf_link__destroy(loader->hook[i].entry);
		bpf_link__destroy(loader->hook[i].link);
	}
	memset(loader->hook, 0, sizeof(loader->hook));
	memset(loader->address, 0, sizeof(loader->address));
	accounting__destroy(loader->object);
	loader->object = NULL;
	if (loader->head)
		munmap(loader->head, sizeof(*loader->head));
	if (loader->rows)
		munmap(loader->rows, MONITOR_ROWS * sizeof(*loader->rows));
	loader->head = NULL;
	loader->rows = NULL;
}

/* Attaches what is there and not attached, where it is now, and lets go what is not there any
 * more; then counts what was missed. */
static int loader_attach_missing(struct loader *loader, char problem[PROBLEM_SIZE])
{
	struct loader_missing missing = { .exit = !loader_exit_holds(loader),
					  .lists = loader->probe.iterates &&
						   !loader_lists_hold(loader) };
	struct accounting *object = loader->object;
	int result = 0;

	for (unsigned i = 0; i < MONITOR_HOOKS; i++)
		missing.hook[i] = loader->probe.hook[i].address && !loader_hook_holds(loader, i);
	if (object && (missing.exit || missing.lists ||
		       memcmp(&loader->loaded, &loader->probe.offsets, sizeof(loader->loaded)))) {
		accounting__destroy(object); /* not all is in it, or it is for other modules */
		object = loader->object = NULL;
	}
	if (!object) {
		result = loader_object_load(loader, &missing, &object, problem);
		loader->loaded = loader->probe.offsets;
	}
	if (result == 0)
		result = loader_object_attach(loader, object, &missing, problem);
	if (loader_keeps_object(loader) && result == 0)
		loader->object = object;
	else if (object != loader->object)
		accounting__destroy(object);
	return result < 0 ? result : loader_catch_up(loader, problem);
}

int loader_tend(struct loader *loader, char problem[PROBLEM_SIZE])
{
	char path[PATH_MAX];
	__u64 modules = probe_modules();
	bool gone = false;
	int lock, result;

	pins_path(loader->directory, "", "head", path);
	if (access(path, F_OK))
		return problem_set(-ENOENT, problem, "%s: another process has unloaded it",
				   loader->directory);
	loader_beat(loader);
	if (modules == loader->modules) {
		/* After a failure it is tried again: counting and the guard must not end with it. */
		if (loader_is_due(loader) && clock_boot_ns() >= loader->retry_ns &&
		    loader_catch_up(loader, problem) < 0)
			loader->retry_ns = clock_boot_ns() + CLOCK_SECOND_NS;
		return 0;
	}
	result = probe_kernel(&loader->probe, &loader->options.probe, problem);
	if (result == -ENODEV) { /* the module is gone: it may come again */
		memset(loader->probe.hook, 0, sizeof(loader->probe.hook));
		result = 0;
	}
	if (result == 0) {
		loader->modules = modules;
		lock = lockfile_take(LOCKFILE_CHANGE, LOCK_EX);
		gone = access(path, F_OK);
		result = gone ? -ENOENT : loader_attach_missing(loader, problem);
		if (lock >= 0)
			close(lock);
	}
	loader->failures = result < 0 ? loader->failures + 1 : 0;
	loader->modules = result < 0 && loader->failures < FAILURES_MOST ? 0 : modules;
	return gone ? -ENOENT : 0;
}

/* Everything is attached as another left it, and no module came or went since. */
static bool loader_is_left_complete(const struct loader *loader, const struct monitor_head *head)
{
	if (head->modules != loader->modules || !head->seeded_ns || !loader_exit_holds(loader) ||
	    head->misses != loader_misses(loader))
		return false;
	/* Another release may have listed what is there by other programs. */
	if (!loader->options.probe.btf && !loader_lists_hold(loader))
		return false;
	for (unsigned i = 0; i < MONITOR_HOOKS; i++)
		if (head->hook[i] && !pins_has_link(loader->directory, loader_hooks[i].name))
			return false;
	return true;
}

/* What is loaded already is taken up as it is. */
static int loader_take_up(struct loader *loader, char problem[PROBLEM_SIZE])
{
	struct monitor_reader reader;
	int result = monitor_reader_open(&reader, loader->directory, problem);

	if (result == -ENOENT)
		return 0;
	if (result < 0)
		return result;
	if (loader->options.probe.mode != MONITOR_NONE &&
	    loader->options.probe.mode != reader.head->mode)
		result = problem_set(-EBUSY, problem,
				     "it is loaded by %s; unload it with: rdma_monitor --unload",
				     monitor_mode_names[reader.head->mode]);
	else if (loader_is_left_complete(loader, reader.head))
		result = 1;
	loader->taken_up = true;
	loader->options.probe.mode = reader.head->mode;
	memcpy(loader->address, reader.head->hook, sizeof(loader->address));
	monitor_reader_close(&reader);
	return result;
}

/* By the best way, or by the next if the kernel does not take that after all. */
static int loader_load(struct loader *loader, char problem[PROBLEM_SIZE])
{
	bool free_choice = loader->options.probe.mode == MONITOR_NONE;

	for (;;) {
		int result = loader_attach_missing(loader, problem);

		if (result == 0)
			return 0;
		pins_remove(loader->directory); /* nothing half done */
		loader_forget(loader);
		if (!free_choice)
			return result;
		snprintf(loader->probe.shortfall, sizeof(loader->probe.shortfall), "%s", problem);
		loader->probe.mode++;
		if (loader->probe.mode == MONITOR_NETLINK)
			return 0;
		result = pins_directory_make(loader->directory, problem);
		if (result < 0)
			return result;
	}
}

static int loader_start(struct loader *loader, char problem[PROBLEM_SIZE])
{
	int result;

	loader->modules = probe_modules();
	result = loader_take_up(loader, problem);
	if (result < 0)
		return result;
	if (result > 0) {
		loader->probe.mode = loader->options.probe.mode;
		return loader_memory_open(loader, problem);
	}
	result = probe_kernel(&loader->probe, &loader->options.probe, problem);
	if (result < 0 || loader->probe.mode == MONITOR_NETLINK)
		return result;
	result = pins_directory_make(loader->directory, problem);
	if (result == 0)
		result = loader->taken_up ? loader_attach_missing(loader, problem) :
					    loader_load(loader, problem);
	loader->options.probe.mode = loader->probe.mode; /* what is loaded stays of one kind */
	return result;
}

int loader_open(struct loader **ret_loader, const struct loader_options *options,
		char problem[PROBLEM_SIZE])
{
	struct loader *loader = calloc(1, sizeof(*loader));
	int result;

	if (!loader)
		return problem_set(-ENOMEM, problem, "no memory");
	loader->options = *options;
	snprintf(loader->directory, sizeof(loader->directory), "%s", options->directory);
	result = loader_start(loader, problem);
	if (result < 0)
		loader_close(loader);
	else
		*ret_loader = loader;
	return result;
}

const struct probe *loader_probe(const struct loader *loader)
{
	return &loader->probe;
}

void loader_attached(struct loader *loader)
{
	loader->attached_ns = clock_boot_ns();
}

void loader_close(struct loader *loader)
{
	if (!loader)
		return;
	loader_forget(loader);
	free(loader);
}
