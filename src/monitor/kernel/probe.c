/* SPDX-License-Identifier: MIT */
/* The survey; see probe.h. */
#include "monitor/kernel/probe.h"

#include <bpf/btf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/mount.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/file.h"
#include "monitor/reader/reader.h"

#define KERNEL_BTF "/sys/kernel/btf/"

static const struct {
	const char *structure, *member;
	__u32 old;
	size_t at; /* in struct kernel_offsets */
} offset_rows[] = {
#define OFFSET(name, structure, member, old)                                                       \
	{ #structure, #member, old, offsetof(struct kernel_offsets, name) },
#include "monitor/kernel/offsets.def"
#undef OFFSET
};

/* ---- rights */

static bool capability_is_held(unsigned capability)
{
	unsigned long long effective = 0;
	char line[128];
	FILE *status = fopen("/proc/self/status", "re");

	while (status && fgets(line, sizeof(line), status))
		if (sscanf(line, "CapEff: %llx", &effective) == 1)
			break;
	if (status)
		fclose(status);
	return effective >> capability & 1;
}

int probe_rights(char problem[PROBLEM_SIZE])
{
	if (capability_is_held(CAP_SYS_ADMIN))
		return 0;
	return problem_set(-EPERM, problem, "watching the kernel needs root (CAP_SYS_ADMIN)");
}

/* ---- functions */

static void function_note(struct probe_function *function, const char *module, __u64 address)
{
	function->address = address;
	snprintf(function->module, sizeof(function->module), "%s", module[0] ? module : "vmlinux");
}

static void symbol_note(struct probe *probe, const char *name, const char *module, __u64 address)
{
	for (unsigned i = 0; i < MONITOR_HOOKS; i++)
		if (!strcmp(name, monitor_hook_functions[i]))
			function_note(&probe->hook[i], module, address);
	if (!strcmp(name, "uverbs_fops"))
		function_note(&probe->uverbs_fops[0], module, address);
	else if (!strcmp(name, "uverbs_mmap_fops"))
		function_note(&probe->uverbs_fops[1], module, address);
	else if (!strcmp(name, "ucma_fops"))
		function_note(&probe->ucm_fops, module, address);
}

/* "ffffffffc0526240 t NAME" or "... NAME<tab>[MODULE]" */
static void symbol_parse(struct probe *probe, char *line)
{
	enum { NAME_AT = 19 };
	char *name = line + NAME_AT, *module, *end;

	/* All but a few of the kernel's hundred thousand end here. */
	if (strlen(line) <= NAME_AT || !strchr("_iru", name[0]))
		return;
	end = name + strcspn(name, "\t\n");
	module = *end == '\t' ? end + 2 : end;
	module[strcspn(module, "]\n")] = '\0';
	*end = '\0';
	symbol_note(probe, name, module, strtoull(line, NULL, 16));
}

static int symbols_read(struct probe *probe, char problem[PROBLEM_SIZE])
{
	FILE *symbols = fopen("/proc/kallsyms", "re");
	char line[1024];

	if (!symbols)
		return problem_set(-errno, problem, "/proc/kallsyms: %s", strerror(errno));
	while (fgets(line, sizeof(line), symbols))
		symbol_parse(probe, line);
	fclose(symbols);
	return 0;
}

/* ---- the kernel's file systems */

int probe_file(const char *system, const char *mount_point, const char *name)
{
	char path[PATH_MAX];
	int fd, context, mounted = -1;

	snprintf(path, sizeof(path), "%s/%s", mount_point, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	/* By number: glibc has had functions of these names since 2.36 only. */
	context = (int)syscall(__NR_fsopen, system, FSOPEN_CLOEXEC);
	if (context >= 0 && !syscall(__NR_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		mounted = (int)syscall(__NR_fsmount, context, FSMOUNT_CLOEXEC, 0);
	if (mounted >= 0)
		fd = openat(mounted, name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		fd = -errno;
	if (mounted >= 0)
		close(mounted);
	if (context >= 0)
		close(context);
	return fd;
}

/* ---- modules */

/* Built outside the kernel's tree: its structures need not be those that are described. */
static bool module_is_foreign(const char *module)
{
	char path[128], taint[32];

	snprintf(path, sizeof(path), "/sys/module/%s/taint", module);
	return file_read_small(path, taint, sizeof(taint)) > 0 && strchr(taint, 'O');
}

static const char *module_find_foreign(const struct probe *probe)
{
	for (unsigned i = 0; i < MONITOR_HOOKS; i++)
		if (probe->hook[i].address && module_is_foreign(probe->hook[i].module))
			return probe->hook[i].module;
	return NULL;
}

__u64 probe_modules(void)
{
	__u64 hash = 14695981039346656037ull; /* FNV-1a */
	char line[512], name[128], address[32];
	FILE *modules = fopen("/proc/modules", "re");

	while (modules && fgets(line, sizeof(line), modules)) {
		/* Without the use counts, which change all the time. */
		if (sscanf(line, "%127s %*s %*s %*s %*s %31s", name, address) != 2)
			continue;
		for (const char *at = name; *at; at++)
			hash = (hash ^ (unsigned char)*at) * 1099511628211ull;
		for (const char *at = address; *at; at++)
			hash = (hash ^ (unsigned char)*at) * 1099511628211ull;
	}
	if (modules)
		fclose(modules);
	return hash;
}

/* ---- types */

struct types {
	struct btf *kernel; /* its own, or what was given; NULL: nobody describes them */
	struct btf *module[MONITOR_HOOKS];
	unsigned modules;
};

/* The kernel's own stay: they do not change, and are large. */
static void types_close(struct types *types)
{
	for (unsigned i = 0; i < types->modules; i++)
		btf__free(types->module[i]);
}

static struct btf *types_of_kernel(const char *path)
{
	static struct btf *known;

	if (!known)
		known = btf__parse(path, NULL);
	return known;
}

/* Descriptions of the modules that our functions are in; none before 5.11. */
static void types_of_modules(struct types *types, const struct probe *probe)
{
	for (unsigned i = 0; i < MONITOR_HOOKS; i++) {
		const char *module = probe->hook[i].module;
		struct btf *btf;
		bool known = !module[0] || !strcmp(module, "vmlinux");

		for (unsigned j = 0; j < i && !known; j++)
			known = !strcmp(module, probe->hook[j].module);
		if (known)
			continue;
		btf = btf__load_module_btf(module, types->kernel);
		if (btf)
			types->module[types->modules++] = btf;
	}
}

static const struct btf_type *type_among(const struct btf *btf, __u32 first, const char *name,
					 unsigned kind)
{
	for (__u32 i = first; i < btf__type_cnt(btf); i++) {
		const struct btf_type *type = btf__type_by_id(btf, i);

		if (btf_kind(type) == kind &&
		    !strcmp(btf__name_by_offset(btf, type->name_off), name))
			return type;
	}
	return NULL;
}

/* In the modules first, which are small; each also contains all of the kernel. */
static const struct btf_type *type_find(const struct types *types, const char *name, unsigned kind,
					const struct btf **ret_btf)
{
	const struct btf_type *type = NULL;

	for (unsigned i = 0; i < types->modules && !type; i++) {
		*ret_btf = types->module[i];
		type = type_among(*ret_btf, btf__type_cnt(types->kernel), name, kind);
	}
	if (!type) {
		*ret_btf = types->kernel;
		type = type_among(*ret_btf, 1, name, kind);
	}
	return type;
}

/* Where a member of a structure lies, also one inside of nameless parts, in bytes; -ENOENT. */
static int member_within(const struct btf *btf, const struct btf_type *type, const char *member)
{
	const struct btf_member *members = btf_members(type);

	for (unsigned i = 0; i < btf_vlen(type); i++) {
		const char *name = btf__name_by_offset(btf, members[i].name_off);
		const struct btf_type *part = btf__type_by_id(btf, members[i].type);
		int offset = (int)(btf_member_bit_offset(type, i) / 8), inside = 0;

		if (!name[0] && btf_is_composite(part))
			inside = member_within(btf, part, member);
		else if (strcmp(name, member))
			continue;
		if (inside >= 0)
			return offset + inside;
	}
	return -ENOENT;
}

static int member_offset(const struct types *types, const char *structure, const char *member)
{
	const struct btf *btf;
	const struct btf_type *type = type_find(types, structure, BTF_KIND_STRUCT, &btf);

	return type ? member_within(btf, type, member) : -ENOENT;
}

/* As the kernel was booted, "none voluntary (full) lazy"; or, if it has no choice, as it was
 * built. */
static bool kernel_is_preempted(void)
{
	char modes[64] = "";
	struct utsname name;
	int fd = probe_file("debugfs", "/sys/kernel/debug", "sched/preempt");

	if (fd >= 0) {
		ssize_t length = read(fd, modes, sizeof(modes) - 1);

		modes[length > 0 ? length : 0] = '\0';
		close(fd);
	}
	if (modes[0])
		return strstr(modes, "(full)") || strstr(modes, "(lazy)");
	return !uname(&name) && strstr(name.version, "PREEMPT");
}

static bool kernel_is_5_10(void)
{
	struct utsname name;

	return !uname(&name) && !strncmp(name.release, "5.10.", 5);
}

/* Every offset from whoever describes it; 5.10's are known. Those of modules that are not
 * loaded may be missing: what needs them is not there either. */
static int offsets_find(struct probe *probe, const struct types *types, char problem[PROBLEM_SIZE])
{
	const size_t last_needed = offsetof(struct kernel_offsets, bundle_context);

	for (unsigned i = 0; i < sizeof(offset_rows) / sizeof(offset_rows[0]); i++) {
		int found = member_offset(types, offset_rows[i].structure, offset_rows[i].member);
		__u32 offset = found < 0 ? offset_rows[i].old : (__u32)found;

		if (found < 0 && !kernel_is_5_10() && offset_rows[i].at <= last_needed)
			return problem_set(
				-ENOTSUP, problem,
				"no BTF describes struct %s of this kernel's modules",
				offset_rows[i].structure);
		memcpy((char *)&probe->offsets + offset_rows[i].at, &offset, sizeof(offset));
	}
	return 0;
}

/* ---- the choice */

static int probe_kprobe(struct probe *probe, struct types *types,
			const struct probe_options *options, char problem[PROBLEM_SIZE])
{
	const char *foreign = module_find_foreign(probe);

	if (foreign)
		return problem_set(
			-ENOTSUP, problem,
			"module %s is out of tree (as OFED's are): the kernel's BTF does not "
			"describe its structures",
			foreign);
	types->kernel = types_of_kernel(options->btf ? options->btf : KERNEL_BTF "vmlinux");
	probe->iterates = !options->btf;
	if (!types->kernel)
		return problem_set(
			-ENOTSUP, problem, "%s: %s",
			options->btf ? options->btf : KERNEL_BTF "vmlinux",
			errno == ENOENT && !options->btf ?
				"this kernel has no BTF: name a BTF file with --btf" :
				strerror(errno));
	if (!probe->hook[MONITOR_HOOK_commit].address ||
	    !probe->hook[MONITOR_HOOK_destroy].address) {
		return problem_set(-ENOTSUP, problem, "the kernel has no function %s",
				   monitor_hook_functions[probe->hook[MONITOR_HOOK_commit].address ?
								  MONITOR_HOOK_destroy :
								  MONITOR_HOOK_commit]);
	}
	probe->allocates = type_among(types->kernel, 1, "bpf_mem_alloc", BTF_KIND_STRUCT);
	probe->asks_compat =
		type_among(types->kernel, 1, "bpf_lsm_file_ioctl_compat", BTF_KIND_FUNC);
	/* Before 6.14 (struct fprobe_hlist), the return of a function is skipped if too many
	 * threads are in it, and that is not counted. */
	probe->preempts = type_among(types->kernel, 1, "fprobe_hlist", BTF_KIND_STRUCT) &&
			  kernel_is_preempted() && probe->hook[MONITOR_HOOK_uncharged].address &&
			  probe->hook[MONITOR_HOOK_released].address;
	types_of_modules(types, probe);
	return offsets_find(probe, types, problem);
}

/* After try_kprobe: everything that it needs, and more. */
static int probe_fentry(const struct probe *probe, const struct types *types,
			const struct probe_options *options, char problem[PROBLEM_SIZE])
{
	const struct btf *btf;

	if (options->btf)
		return problem_set(-ENOTSUP, problem,
				   "fentry needs the kernel's own BTF, and --btf names another");
	for (unsigned i = 0; i < MONITOR_HOOKS; i++)
		if (probe->hook[i].address &&
		    !type_find(types, monitor_hook_functions[i], BTF_KIND_FUNC, &btf)) {
			return problem_set(-ENOTSUP, problem,
					   "no BTF describes the function %s of %s",
					   monitor_hook_functions[i], probe->hook[i].module);
		}
	return 0;
}

int probe_kernel(struct probe *ret_probe, const struct probe_options *options,
		 char problem[PROBLEM_SIZE])
{
	struct probe probe = { .mode = MONITOR_NONE };
	struct types types = { 0 };
	int result;

	result = symbols_read(&probe, problem);
	if (result < 0)
		return result;
	if (access("/sys/class/infiniband_verbs", F_OK))
		return problem_set(
			-ENODEV, problem,
			"this kernel has no RDMA: module ib_uverbs is not loaded: load it with modprobe ib_uverbs");
	if (options->mode != MONITOR_NETLINK) {
		result = probe_kprobe(&probe, &types, options, problem);
		if (result == 0)
			probe.mode = MONITOR_KPROBE;
		if (result == 0 && options->mode != MONITOR_KPROBE) {
			result = probe_fentry(&probe, &types, options, problem);
			if (result == 0)
				probe.mode = MONITOR_FENTRY;
		}
		types_close(&types);
		if (result < 0 && options->mode != MONITOR_NONE)
			return result;
		if (result < 0)
			snprintf(probe.shortfall, sizeof(probe.shortfall), "%s", problem);
	}
	if (probe.mode == MONITOR_NONE)
		probe.mode = MONITOR_NETLINK;
	*ret_probe = probe;
	return 0;
}
