/* SPDX-License-Identifier: MIT */
/* The programs of the guard, brought to where the kernel asks them; see guard_loader_parts.h. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/security_modules.h"
#include "monitor/guard/guard_loader_parts.h"
#include "monitor/kernel/pins.h"

#include "monitor/guard/guard.skel.h"

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
	{ "g_ioctl_end", GUARD_IOCTL, ALWAYS, true },
	{ "k_ioctl_end", GUARD_IOCTL, PREEMPTED, true },
	{ "g_commit", GUARD_IOCTL, NOT_PREEMPTED, true },
	{ "k_commit", GUARD_IOCTL, PREEMPTED, true },
	{ "g_commit_too", GUARD_IOCTL, PREEMPTED, true },
	{ "g_write_end", GUARD_WRITE, ALWAYS, true },
	{ "k_write_end", GUARD_WRITE, PREEMPTED, true },
	{ "g_write", GUARD_WRITE, ALWAYS, false },
	{ "g_ioctl_compat", GUARD_IOCTL, COMPAT, false },
	{ "g_ioctl", GUARD_IOCTL, ALWAYS, false },
};
enum { PARTS = sizeof(parts) / sizeof(parts[0]) };

/* Attached where it is not in force, a program is simply never asked. */
static int security_check(char problem[PROBLEM_SIZE])
{
	int fd = probe_file("securityfs", SECURITY_MODULES_MOUNT, SECURITY_MODULES_NAME);
	char modules[512], boot[SECURITY_MODULES_BOOT];
	ssize_t length = fd < 0 ? -1 : read(fd, modules, sizeof(modules) - 1);

	if (fd >= 0)
		close(fd);
	if (length <= 0)
		return problem_set(-ENOTSUP, problem,
				   "this kernel does not list its active security modules");
	modules[length] = '\0';
	if (security_modules_have_bpf(modules, boot))
		return 0;
	return problem_set(-ENOTSUP, problem, "BPF LSM is not active: boot with %s", boot);
}

/* ---- attaching */

static bool part_is_wanted(const struct part *part, __u32 ways)
{
	return part->ways & ways;
}

static bool part_is_possible(const struct part *part, const struct probe *probe)
{
	switch (part->where) {
	case ALWAYS:
		return true;
	case COMPAT: /* older kernels ask g_ioctl instead */
		return probe->asks_compat;
	case PREEMPTED:
		return probe->preempts;
	case NOT_PREEMPTED:
		return !probe->preempts;
	}
	return false;
}

static bool part_is_attached(const struct guard_loader *loader, const struct part *part)
{
	return pins_has_link(loader->directory, part->program);
}

/* Loads and attaches what these ways need and is not there yet. */
static int programs_attach(struct guard_loader *loader, struct guard *object,
			   const struct probe *probe, __u32 ways, char problem[PROBLEM_SIZE])
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

		loaded[i] = part_is_wanted(&parts[i], ways) &&
			    !part_is_attached(loader, &parts[i]) &&
			    part_is_possible(&parts[i], probe);
		bpf_program__set_autoload(prog, loaded[i]);
	}
	for (unsigned i = 0; i < ITERATORS; i++)
		bpf_program__set_autoload(iterators[i].program, true);
	result = pins_load(object->obj, problem);
	for (unsigned i = 0; i < ITERATORS && result == 0; i++)
		result = pins_iterator(loader->directory, iterators[i].program, iterators[i].map,
				       problem);
	for (unsigned i = 0; i < PARTS && result == 0; i++) {
		struct bpf_link *link = NULL;

		if (!loaded[i])
			continue;
		result =
			pins_attach(loader->directory,
				    bpf_object__find_program_by_name(object->obj, parts[i].program),
				    parts[i].program, &link, problem);
		if (link) {
			bpf_link__destroy(link);
			result = problem_set(-ENOTSUP, problem, "%s cannot be pinned",
					     parts[i].program);
		}
	}
	return result;
}

void guard_detach(struct guard_loader *loader, __u32 ways)
{
	/* What refuses goes first. */
	for (unsigned i = PARTS; i-- > 0;)
		if (part_is_wanted(&parts[i], ways))
			pins_unlink(loader->directory, parts[i].program);
}

int guard_attach(struct guard_loader *loader, const struct probe_options *options, __u32 ways,
		 char problem[PROBLEM_SIZE])
{
	struct guard *object = NULL;
	struct probe probe = { 0 };
	int result = security_check(problem);

	if (result == 0)
		result = probe_kernel(&probe, options, problem);
	if (result == 0 && probe.mode != MONITOR_FENTRY)
		result = problem_set(-ENOTSUP, problem, "it needs fentry, but %s", probe.shortfall);
	if (result == 0 && !probe.offsets.command_bundle)
		result = problem_set(-ENOTSUP, problem,
				     "no BTF describes this kernel's struct bundle_priv");
	if (result == 0)
		result = guard_loader_object_open(loader, &object, problem);
	if (result < 0)
		return result;
	object->rodata->offsets = probe.offsets;
	object->rodata->skips_programs = probe.preempts;
	object->rodata->uverbs_fops[0] = probe.uverbs_fops[0].address;
	object->rodata->uverbs_fops[1] = probe.uverbs_fops[1].address;
	result = programs_attach(loader, object, &probe, ways, problem);
	guard__destroy(object);
	return result;
}

__u64 guard_misses(const struct guard_loader *loader)
{
	__u64 sum = 0;

	for (unsigned i = 0; i < PARTS; i++)
		if (parts[i].skipped)
			sum += pins_misses(loader->directory, parts[i].program);
	return sum;
}
