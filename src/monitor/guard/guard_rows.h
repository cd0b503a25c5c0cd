/* SPDX-License-Identifier: MIT */
/*
 * What the guard in the kernel, its loader and the collector say to each other: the layout
 * of the maps guard_* under MONITOR_DIRECTORY. The collector writes what tenants may have
 * and which cgroups they are; the kernel's programs write what they have; no side writes
 * both, so neither can damage the other's. Fixed-size types only.
 */
#ifndef MONITOR_GUARD_GUARD_ROWS_H
#define MONITOR_GUARD_GUARD_ROWS_H

#include <linux/types.h>

#include "terms/kinds.h"
#include "terms/terms.h"

#define GUARD_MAGIC 0x6472617567616d64ull /* "dmaguard" */

enum {
	GUARD_VERSION = 5,
	GUARD_TENANTS = 2048, /* slots, more than a policy has tenants */
	GUARD_HOST = 0, /* the slot of all tenants together; where a tenant's is expected: none */
	GUARD_CGROUPS = 16384,
	GUARD_RULES = 4096,  /* match lines that have a cgroup and nothing else */
	GUARD_PATTERN = 256, /* tokens of one, */
	GUARD_SETS = 4,	     /* and sets of characters in it */
	GUARD_PATH = 1024,   /* characters of a cgroup's path that are looked at */
	GUARD_LOG = 256,
	GUARD_PROBLEM = 256,
	GUARD_COMMAND = 16,
	GUARD_NAME = 64,
	GUARD_DEVICES = 1024, /* uverbs0 and up */
	GUARD_SHUT = 16, /* closed files at which a tenant is refused everything */
};

/* Ways into the kernel that are guarded; bits. */
enum {
	GUARD_IOCTL = 1,
	GUARD_COMPAT = 2, /* ioctl of 32-bit programs */
	GUARD_WRITE = 4,  /* write(), writev() */
};

/* Tables in which every object, or thread, of a guarded process needs a place. What is refused
 * for want of one is refused with ENOMEM. A tenant may have as many places as are left for all
 * others, so that none can use up a table. */
enum guard_table {
	GUARD_OBJECTS, /* guard_charges */
	GUARD_RUNNING, /* guard_commands */
	GUARD_TABLES
};
#define GUARD_RESERVE 16 /* a part of that size is kept for what cannot be refused */

/* Map guard_head, one entry. */
struct guard_head {
	/* Written by the loader: once; */
	__u64 magic;
	__u32 version;
	__u32 tenants; /* GUARD_TENANTS */
	__u64 kinds;   /* kinds_signature() */
	__u64 guarded; /* bit k: kind k can be guarded */
	__u64 most[GUARD_TABLES]; /* places in each */
	/* and as it attaches: */
	__u32 armed; /* not 0 once everything is attached, 0 before anything is detached */
	__u32 ways;  /* GUARD_... that are guarded */
	char problem[GUARD_PROBLEM]; /* why it is not armed, or not in all ways that are wanted */
	/* and as it looks for what was missed; set in the kernel as well: */
	__u64 incomplete; /* not 0: not all objects could be listed, and some may not be charged */
	__u64 counted;	  /* the epoch in which everything was last looked for */
	__u64 tended_ns;  /* when the loader was last here, CLOCK_BOOTTIME */
	/* Written by the collector. */
	__u32 wanted; /* GUARD_... : the ways that it wants guarded; 0: nobody is to be guarded */
	__u32 rules; /* how many there are; the high bit says in which half of guard_rules */
	__u64 epoch; /* +1 when the cgroups of tenants or the rules have changed */
	__u64 root;  /* the inode of the group that paths of rules begin in */
	/* Written by a test of the tests only: what was changed after the look is let pass. */
	__u64 trusting;
	/* Written in the kernel. */
	__u64 logged; /* entries ever written to the log */
	__u64 closed; /* entries of guard_closed */
	__s64 taken[GUARD_TABLES]; /* places, also by what is being made at this moment */
};

/* Map guard_limits, by slot. Written by the collector. */
struct guard_limits {
	__u64 limit[KIND_COUNT]; /* UNLIMITED: none */
	char tenant[GUARD_NAME]; /* by which the next collector finds its slot again; "": none */
	__u64 host_limited; /* not 0: the limits of GUARD_HOST are the tenant's, too */
	__u64 restricted; /* not 0: contexts and objects only on devices that have a bit in */
	__u64 device[GUARD_DEVICES / 64]; /* bit n: uverbsN */
};

/* Map guard_counts, by slot. Written in the kernel. */
struct guard_counts {
	__s64 used[KIND_COUNT];	    /* with what is being made at this moment */
	__s64 floating[KIND_COUNT]; /* of that, what the loader has still to look for */
	__u64 refused[KIND_COUNT];
	__u64 overrun[KIND_COUNT]; /* made beyond a limit, in ways that could not be refused */
	__u64 killed; /* processes, for a command that they changed after the look, or used its file */
	__u64 closed; /* files on which they did, and which somebody still has open */
	__s64 taken[GUARD_TABLES]; /* places */
	__s64 afloat;		   /* of those for objects, what belongs to floating */
	/* Written by the loader before g_adopt runs: of floating and afloat, what is looked for.
	 * What g_adopt finds is taken off: it is charged to its object from then on. */
	__s64 sought[KIND_COUNT], sought_places;
	__u64 crowded[GUARD_TABLES]; /* refused for want of a place */
};

/* Map guard_tenants: a cgroup's inode -> slot (__u32), for the cgroup and all below it that
 * have none of their own. Written by the collector. */

/* Map guard_rules, twice GUARD_RULES, by the order of the policy. Written by the collector, in
 * the half that is not in use. They say whose a cgroup is that has no entry in guard_tenants. */
struct guard_rule {
	__u32 tenant; /* a number of each tenant, also of those that are not guarded; not 0 */
	__u32 slot;   /* 0: not guarded */
	__u16 length; /* of the pattern, in tokens, */
	__u16 first;  /* without a slash before it that was added, */
	__u16 group;  /* and of that what names the group: without a star for what is below */
	__u16 unused;
	__u16 token[GUARD_PATTERN];
	__u8 set[GUARD_SETS][32]; /* a bit for each character */
};
#define GUARD_RULES_HALF 0x80000000u

/* Tokens of a pattern; below these, the character itself. */
enum { GUARD_STAR = 256, GUARD_ANY, GUARD_SET };

enum guard_event {
	GUARD_REFUSED,
	GUARD_OVERRUN,
	GUARD_KILLED,
	GUARD_CROWDED, /* refused for want of a place in a table */
	/* On a file that is closed: */
	GUARD_CLOSED_REFUSED,
	GUARD_CLOSED_KILLED,
	GUARD_HOST_REFUSED, /* the limit of GUARD_HOST was in the way */
};

/* Map guard_log, a ring of GUARD_LOG entries. Written in the kernel; what it says is complete
 * if `number` is the same before and after it was copied. */
struct guard_entry {
	__u64 number;  /* 1 + how many were written before it; 0 while it is written */
	__u64 time_ns; /* CLOCK_BOOTTIME */
	__u32 event;   /* enum guard_event */
	__u32 slot;
	__u32 pid;
	__u32 uid;
	__u32 kind; /* enum kind */
	__u32 device; /* 1 + the number of a device that the tenant may not use; 0: a limit */
	__u64 amount, used, limit; /* asked for, in use then, allowed; of GUARD_CROWDED: places */
	char command[GUARD_COMMAND];
};

/* ---- between the programs and their loader */

/* Map guard_tenancies: a cgroup's inode -> the tenant that it is of in an epoch; slot 0: none. */
struct guard_tenancy {
	__u64 epoch;
	__u32 slot;
	__u32 ownerless; /* not 0: it is gone, and nobody can tell whose its objects are */
};

/* Map guard_charges: an object's address -> what is charged for it. */
struct guard_charge {
	__u64 file;  /* that the object is in, as uverbs knows it */
	__u64 bytes; /* of a memory region */
	__u32 slot;
	__u16 kind;
	__u16 excess; /* not 0: made over a limit by a changed command; the loader destroys it */
};

/* Map guard_closed: a file's address, as uverbs knows it -> why nothing is carried out on it any
 * more. It is this file's as long as that has this context: the next file at the same address
 * begins without one. */
struct guard_closed {
	__u64 context;
	__u32 slot; /* of the tenant that got over a limit by a changed command */
	__u32 kind; /* of the limit */
};

/* What the iterator g_holders prints: a process that has a closed file open. */
struct guard_holder {
	__u64 file; /* as in guard_closed */
	__u32 process, fd;
	__u32 slot; /* of the tenant to blame */
	__u32 unused[3];
};

/* What the iterator g_excess prints: an object over a limit. */
struct guard_excess {
	__u64 file;
	__u32 type; /* enum uverbs_default_objects */
	__u32 handle;
	__u32 driver; /* enum rdma_driver_id */
	__u32 unused[3];
};

enum guard_state {
	GUARD_IDLE,
	GUARD_LOOKED, /* at a command, and nothing is reserved */
	GUARD_RESERVED,
};

/* Map guard_commands: a thread's number -> what it is at: its command, or its last one. */
struct guard_command {
	__u64 cgroup, epoch; /* by which the slot is known */
	__u64 argument;	     /* the address that the program gave */
	__u64 file;	     /* on which, as uverbs knows it */
	__u64 bytes;
	__u32 slot;
	__u32 kind; /* that is reserved */
	__u32 key;  /* the kernel's for the method, by what was seen */
	__u32 old; /* of an old command: the kind that it makes, KIND_COUNT: none; or GUARD_NOT_OLD */
	__u32 state;
	__u16 way;
	__u16 length_id, length_at; /* where the bytes were read, if they are an attribute */
	__u16 sized;		    /* they were read */
	__u16 destroys;		    /* it makes nothing and takes away what is there */
	__u16 drivers;		    /* it is a driver's own: nobody knows what it does */
	__u16 replaces;		    /* it registers a region anew */
	__u16 freed_seen;	    /* the region that it took away, of so many bytes: */
	__u64 freed;
	__u32 payer;		    /* the slot whose place this entry has */
	__u16 opens;		    /* it makes a context, which is not counted here */
	__u16 charged;		    /* what it has made, by the second program that sees that */
};
#define GUARD_NOT_OLD (KIND_COUNT + 1)

_Static_assert(sizeof(struct guard_rule) == 16 + 2 * GUARD_PATTERN + 32 * GUARD_SETS, "rule");
_Static_assert(sizeof(struct guard_head) == 112 + 16 * GUARD_TABLES + GUARD_PROBLEM, "head");
_Static_assert(sizeof(struct guard_counts) == 40 * KIND_COUNT + 32 + 16 * GUARD_TABLES, "counts");
_Static_assert(sizeof(struct guard_entry) == 64 + GUARD_COMMAND, "entry");

#endif
