/* SPDX-License-Identifier: MIT */
/*
 * What this kernel offers to stand on: which functions there are and in which module,
 * who describes the types, and so which way of watching is the best that works. Only
 * looks; loads nothing.
 */
#ifndef MONITOR_KERNEL_PROBE_H
#define MONITOR_KERNEL_PROBE_H

#include <stdbool.h>
#include <stddef.h>

#include "monitor/reader/rows.h"

enum {
	GROUND_MODULE = 64,
	GROUND_TEXT = 512,
};

enum ground_offset {
#define OFFSET(name, structure, member, old) OFFSET_##name,
#include "monitor/kernel/offsets.def"
#undef OFFSET
	GROUND_OFFSETS
};

struct ground_function {
	__u64 address; /* 0: there is none */
	char module[GROUND_MODULE];
};

struct ground {
	enum monitor_mode mode;
	struct ground_function hook[MONITOR_HOOKS];
	struct ground_function uverbs_fops[2], ucm_fops;
	__u32 offset[GROUND_OFFSETS];
	bool iterates;	  /* what is there can be listed: needs the kernel's own types */
	bool allocates;	  /* a table may grow from a traced function (since 6.1) */
	bool asks_compat; /* security modules are asked about 32-bit ioctls apart */
	/* Threads are preempted in the kernel. There it skips programs of fentry and fexit (see
	 * pins_misses), but none of kprobes, which it runs with preemption disabled. */
	bool preempts;
	char shortfall[GROUND_TEXT]; /* why it is not a better mode; "" for the best */
};

struct ground_wish {
	enum monitor_mode mode; /* MONITOR_NONE: the best */
	const char *btf;	/* a description of the kernel's types; NULL: its own */
};

/*
 * 0, or -errno with a sentence: -ENODEV without RDMA,
 * -ENOTSUP when the wished mode cannot be.
 */
int ground_survey(struct ground *ret_ground, const struct ground_wish *wish, char *problem,
		  size_t size);

/* A file of one of the kernel's file systems, which need not be mounted: a descriptor, or -errno. */
int ground_file(const char *system, const char *mount_point, const char *name);

/* Whether we may at all: 0 or -EPERM with a sentence. */
int ground_rights(char *problem, size_t size);

/* A number that changes when modules come or go; cheap. */
__u64 ground_modules(void);

#endif
