/* SPDX-License-Identifier: MIT */
/*
 * A guard of files for tests: the maps that the collector writes and reads, cgroups and devices that
 * are directories, and the words of collector and command about it.
 */
#ifndef TESTS_DAEMON_GUARDFILES_H
#define TESTS_DAEMON_GUARDFILES_H

#include <stdio.h>

#include "collector.h"
#include "monitor/guard/guard_maps.h"

/* The collector looks every second, give or take a quarter. */
#define SAMPLE 1.25

#define PLACES 1024 /* in each table */

#define GUARDED (1ull << KIND_pd | 1ull << KIND_qp | 1ull << KIND_mr | 1ull << KIND_mr_bytes)

/* Where the maps, the cgroups and the devices are, the list of security modules, and the
 * collector's variables that say so. */
extern char guard_directory[128], guard_cgroups[128], guard_devices[128], guard_lsm[128];
extern char guard_variables[1024];

/* The maps of the guard that was loaded last. */
extern struct guard_head *guard_head;
extern struct guard_limits *guard_limits;
extern struct guard_counts *guard_counts;
extern struct guard_entry *guard_entries;
extern struct guard_cgroup *guard_tenants;

/* Called first in a driver, whose cases run at once: directories, and the cgroups /a and /b. */
void guard_files_prepare(void);

/* Of the right version, and armed. */
struct guard_head guard_usual(void);

/* A new one in place of what is there: nobody is known. */
void guard_load(struct guard_head wanted);

void guard_unload(void);

/* As the programs in the kernel do it. */
void guard_log(enum guard_event event, __u32 slot, pid_t pid, enum kind kind, __u64 used);

/* ---- cgroups */

const char *cgroup_path(const char *name);

void cgroup_make(const char *name);

__u64 cgroup_inode(const char *name);

/* Which slot a cgroup has in the kernel; 0: none. */
__u32 guard_inode_slot(__u64 inode);

__u32 guard_slot(const char *name);

/* Which slot the rules give a cgroup that need not exist; 0: none. */
__u32 guard_rule_slot(const char *path);

unsigned guard_mapped(void);

__u64 guard_limit(const char *name, enum kind kind);

/* ---- the collector's word */

/* Of a tenant; NULL: the guard itself. */
struct proto_guard guard_row(const char *tenant);

bool guard_is(const char *tenant, enum proto_guarantee guarantee, const char *reason);

/* What the command says, with its arguments as a shell takes them. */
FILE *command_begin(const char *arguments);

/* What it prints, once it has ended with that status. */
const char *command_end(FILE *output, int status);

const char *command_output(const char *arguments);

/* A guard and a collector with this policy. */
void guard_fresh(const char *policy);

struct told {
	pid_t pid;
	unsigned count;
	struct proto_event last;
};

/* The events of a process in the kernel's log. */
struct told told_of(pid_t pid);

#endif
