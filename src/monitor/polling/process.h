/* SPDX-License-Identifier: MIT */
/* Processes, as /proc shows them to the one who asks the kernel for its list. */
#ifndef MONITOR_POLLING_PROCESS_H
#define MONITOR_POLLING_PROCESS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

struct process {
	__u64 start_ns; /* 0: cannot be told */
	__u32 pid;
	__u32 uid;
};

/* The process that a thread belongs to. False: it has just ended, or is hidden from us. */
bool process_of(__u32 task, struct process *ret_process);

/* A process with this start time; 0: that is not known. */
bool process_has_ended(__u32 pid, __u64 start_ns);


/* Its name; "" where that cannot be told. */
void process_command(__u32 pid, char *ret_command, size_t size);

#endif
