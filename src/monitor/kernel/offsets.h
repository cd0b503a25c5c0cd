/* SPDX-License-Identifier: MIT */
/* The rows of offsets.def as a structure, which the loader fills in for the programs. */
#ifndef MONITOR_KERNEL_OFFSETS_H
#define MONITOR_KERNEL_OFFSETS_H

#include <linux/types.h>

struct kernel_offsets {
#define OFFSET(name, structure, member, old) __u32 name;
#include "monitor/kernel/offsets.def"
#undef OFFSET
};

#endif
