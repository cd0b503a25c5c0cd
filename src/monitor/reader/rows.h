/* SPDX-License-Identifier: MIT */
/*
 * What the programs in the kernel write and everybody else reads: the layout of
 * the maps under MONITOR_DIRECTORY. Compiled into the kernel's programs and into
 * their readers, so it knows fixed-size types only. Words are written in the
 * kernel by atomic additions unless it says otherwise.
 */
#ifndef MONITOR_READER_ROWS_H
#define MONITOR_READER_ROWS_H

#include <linux/types.h>

#include "terms/kinds.h"
#include "terms/terms.h"

/* Where the maps are pinned; and, where there can be none, files of the same layout. */
#define MONITOR_DIRECTORY "/sys/fs/bpf/rdma_intercept"
#define MONITOR_FILES "/run/rdma_intercept/monitor"
#define MONITOR_VARIABLE "RDMA_MONITOR_DIRECTORY" /* names another place for either */
#define MONITOR_MAGIC 0x726f74696e6f6d72ull	  /* "rmonitor" */

enum {
	MONITOR_VERSION = 3,
	MONITOR_ROWS = 8192,
	MONITOR_COMMAND = 16,
};

/* What is counted: the kinds, and what the kernel has beyond them. */
enum monitor_counter {
	MONITOR_driver = KIND_COUNT, /* objects of a driver's own, such as DevX */
	MONITOR_other, /* asynchronous event files, counters, flow actions, device memory */
	MONITOR_COUNTERS
};

/*
 * What one process made on one device while it was in one cgroup. A row lives until its
 * process has ended and its last object with it; a child that holds the descriptors keeps it.
 */
struct monitor_row {
	__u64 generation; /* odd while in use; +1 when taken and when freed, so a copy can be checked */
	__u64 start_ns; /* with the pid: who it is; since boot, as in /proc/PID/stat */
	__u64 cgroup;	/* its inode */
	__s64 live;	/* objects of every kind */
	__u32 pid;	/* 0 in the first row: objects for which no row was left */
	__u32 nth;	/* the process's rows are numbered from 0 */
	__u32 exited;	/* not 0: the process has ended */
	__u32 uid;
	__u32 device; /* the kernel's number of it; MONITOR_NO_DEVICE for identifiers of no device */
	__u32 unused;
	char device_name[NAME_SIZE];
	char command[MONITOR_COMMAND];
	/* Ever made and gone, in objects, bytes and entries; what is there is the difference. */
	__u64 made[MONITOR_COUNTERS];
	__u64 gone[MONITOR_COUNTERS];
};
#define MONITOR_NO_DEVICE 0xffffffffu
#define MONITOR_ROWS_BYTES (MONITOR_ROWS * sizeof(struct monitor_row)) /* of the map rows */

enum monitor_hook {
#define HOOK(name, function, counters) MONITOR_HOOK_##name,
#include "monitor/reader/hooks.def"
#undef HOOK
	MONITOR_HOOKS
};

/* How the kernel is watched, best first. */
enum monitor_mode { MONITOR_NONE, MONITOR_FENTRY, MONITOR_KPROBE, MONITOR_NETLINK };

/* Which rows, objects or events are wanted: those that fit every field. */
struct monitor_filter {
	__u32 is_set;	/* 0: all, the other fields do not count */
	__u32 pid;	/* 0: of any process */
	__u64 cgroup;	/* its inode; 0: of any */
	__u64 counters; /* bit c: counter c; 0: all */
	char device_name[NAME_SIZE]; /* "": any; zeroes follow the name */
};

struct monitor_head {
	/* Written once, by the loader. */
	__u64 magic;
	__u32 version;
	__u32 rows;
	__u64 kinds; /* kinds_signature() */
	__u64 load;  /* a number of this load's own */
	__u32 mode;  /* enum monitor_mode */
	/* Written by the loader as it attaches. */
	__u32 seed_pass; /* number of a pass over the lists of existing objects */
	__u64 hook[MONITOR_HOOKS]; /* rows of hooks.def: the function's address; 0: not attached */
	__u64 observed;		   /* bit c: counter c is complete */
	__u64 modules;		   /* which there were when that was done */
	__u64 seeded_ns; /* CLOCK_BOOTTIME when all that is there was last looked for; 0: not yet */
	__u64 misses;	 /* calls that the programs missed, up to then; see loader.c */
	__u64 beat_ns;	 /* where counting ends with a process: when that was last alive; else 0 */
	/* Written by the loader, for the programs. */
	__u64 uverbs_fops[2], ucm_fops; /* addresses, by which the files are known */
	/* Written by whoever reads the ring: events are wanted until then, CLOCK_BOOTTIME. */
	__u64 events_until;
	struct monitor_filter events_wanted; /* other events are not put into the ring */
	/* Written in the kernel. */
	__u64 lost_objects;    /* no room in the table of objects: these are not counted */
	__u64 lost_rows;       /* counted in the first row */
	__u64 dropped;	       /* events for which the ring had no room */
	__u64 seeded;	       /* objects found when starting, in all passes */
	__u64 seed_unfinished; /* files that a pass has not read to their end; the loader sets 0 */
	__u64 depthless, lengthless; /* objects of which that is not known */
};

#define MONITOR_ANNOUNCED MONITOR_COUNTERS

/* An object; the key is its address in the kernel. */
struct monitor_object {
	__u32 row;
	__u16 counter; /* enum monitor_counter; MONITOR_ANNOUNCED: not made yet */
	__u16 type;    /* the kernel's, for what has none of our kinds */
	__u32 number;  /* of a queue pair */
	__u16 subtype; /* of a queue pair: enum ib_uverbs_qp_type */
	__u16 flags;
	__u64 size; /* bytes of memory, entries of a completion queue, send requests of a queue pair */
	__u64 size2;   /* receive requests of a queue pair */
	__u64 made_ns; /* since boot */
	__u64 file; /* in the kernel, that it was made by: with the address, which object it is */
	__u64 cgroup; /* its inode, that it was made in; also of those that have no row of their own */
};

/* What nobody knows of an object. */
enum {
	MONITOR_DEPTHLESS = 1, /* a queue pair that was there before: its depths */
	MONITOR_LENGTHLESS =
		2, /* a region by 7.x's own ioctl, of which the kernel keeps no length */
};

enum monitor_event_type { MONITOR_MADE, MONITOR_GONE, MONITOR_CHANGED, MONITOR_FOUND };

struct monitor_event {
	__u64 time_ns; /* since boot */
	__u32 type;
	__u32 pid; /* of the owner */
	struct monitor_object object;
	char device_name[NAME_SIZE];
	char command[MONITOR_COMMAND];
};

_Static_assert(sizeof(struct monitor_row) ==
		       56 + NAME_SIZE + MONITOR_COMMAND + 16 * MONITOR_COUNTERS,
	       "row");
_Static_assert(sizeof(struct monitor_filter) == 24 + NAME_SIZE && NAME_SIZE % 8 == 0, "filter");
_Static_assert(MONITOR_COUNTERS <= 64, "each counter has a bit");
_Static_assert(sizeof(struct monitor_head) ==
		       168 + 8 * MONITOR_HOOKS + sizeof(struct monitor_filter),
	       "head");
_Static_assert(sizeof(struct monitor_object) == 56, "object");
_Static_assert(sizeof(struct monitor_event) == 72 + NAME_SIZE + MONITOR_COMMAND, "event");

#endif
