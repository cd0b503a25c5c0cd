/* SPDX-License-Identifier: MIT */
/*
 * What this kernel supports: which functions exist and in which module, where BTF
 * describes the types, and so which way of watching is the best that works. It only
 * reads and loads no program.
 */
#ifndef MONITOR_KERNEL_PROBE_H
#define MONITOR_KERNEL_PROBE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/problem.h"
#include "monitor/kernel/offsets.h"
#include "monitor/reader/rows.h"

enum {
	PROBE_MODULE = 64,
	PROBE_TEXT = 512,
};

struct probe_function {
	__u64 address; /* 0: there is none */
	char module[PROBE_MODULE];
};

struct probe {
	enum monitor_mode mode;
	struct probe_function hook[MONITOR_HOOKS];
	struct probe_function uverbs_fops[2], ucm_fops;
	struct kernel_offsets offsets;
	bool iterates;	  /* what is there can be listed: needs the kernel's own types */
	bool allocates;	  /* a table may grow from a traced function (since 6.1) */
	bool asks_compat; /* security modules are asked about 32-bit ioctls apart */
	/* Threads are preempted in the kernel. There it skips programs of fentry and fexit (see
	 * pins_misses), but none of kprobes, which it runs with preemption disabled. */
	bool preempts;
	char shortfall[PROBE_TEXT]; /* why it is not a better mode; "" for the best */
};

struct probe_options {
	enum monitor_mode mode; /* MONITOR_NONE: the best */
	const char *btf;	/* a description of the kernel's types; NULL: its own */
};

/*
 * 0, or -errno with a sentence: -ENODEV without RDMA,
 * -ENOTSUP when the mode that is asked for is not possible.
 */
int probe_kernel(struct probe *ret_probe, const struct probe_options *options,
		 char problem[PROBLEM_SIZE]);

/* A file of one of the kernel's file systems, which need not be mounted: its descriptor, or
 * -errno. */
int probe_file(const char *system, const char *mount_point, const char *name);

/* Whether we may at all: 0 or -EPERM with a sentence. */
int probe_rights(char problem[PROBLEM_SIZE]);

/* A number that changes when modules come or go; cheap. */
__u64 probe_modules(void);

#endif
