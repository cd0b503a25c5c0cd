/* SPDX-License-Identifier: MIT */
/*
 * The kernel's own list of RDMA objects, asked for over netlink: what "rdma resource
 * show" prints. Needs no BPF. Knows nothing of rows, or of /proc.
 */
#ifndef MONITOR_POLLING_NETLINK_H
#define MONITOR_POLLING_NETLINK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/problem.h"
#include "monitor/reader/rows.h"

struct netlink_object {
	__u64 size;    /* bytes of a memory region, entries of a completion queue */
	__u32 pid;     /* the thread that made it; 0: it has ended, or is of another namespace */
	__u32 device;  /* the kernel's number of it */
	__u32 counter; /* enum monitor_counter */
	__u32 number;  /* what the kernel calls it: no other of the device and counter has it */
	__u32 subtype; /* of a queue pair: enum ib_qp_type */
	/* The context or protection domain in which it lies, of the same device. */
	__u32 parent_counter; /* MONITOR_COUNTERS: not told */
	__u32 parent;	      /* its number */
	__u32 unused;
	char device_name[NAME_SIZE];
};

/* Starts zeroed, and is used again and again. */
struct netlink_list {
	struct netlink_object *objects;
	size_t count, room;
	__u64 observed; /* bit c: counter c is complete */
};

/*
 * Everything that processes hold on all devices that we can see, in place of what the list
 * held before. What the kernel holds itself is left out. What a kernel cannot list is no
 * fault, see observed. 0, or -errno with a sentence.
 */
int netlink_objects(struct netlink_list *list, char problem[PROBLEM_SIZE]);
void netlink_list_free(struct netlink_list *list);

/* ---- the parser, open to tests */

/* In place of a counter: the devices. */
enum { NETLINK_DEVICES = MONITOR_COUNTERS };

/* One question and its answer of many datagrams. */
struct netlink_dump {
	struct netlink_list *list; /* grows */
	__u32 counter;
	__u32 sequence;
	bool interrupted; /* what was listed has changed meanwhile */
};

enum netlink_outcome {
	NETLINK_MORE,
	NETLINK_END,
	NETLINK_AGAIN,	 /* ended, but not complete */
	NETLINK_UNKNOWN, /* this kernel has no such list */
};

/* One datagram. An outcome, or -errno: -EBADMSG when it is not well-formed. */
int netlink_dump_parse(struct netlink_dump *dump, const void *bytes, size_t length);

#endif
