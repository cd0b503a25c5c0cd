/* SPDX-License-Identifier: MIT */
/* What the parts of the guard's owner share (guards.c and guard_*.c), and nobody else. */
#ifndef COLLECTOR_GUARD_PARTS_H
#define COLLECTOR_GUARD_PARTS_H

#include "collector/collector.h"
#include "collector/limits.h"

/* A tenant whose guard is on, or was and has cgroups with a slot. */
struct guards_tenant {
	struct guards_tenant *next;
	char name[NAME_SIZE];
	int number;		   /* on the books; -1: it is not there */
	const struct scope *scope; /* its limits; NULL: likewise */
	enum mode mode;
	bool on;
	bool enforced;	/* on, and nothing is merely watched */
	__u32 slot;	/* 0: none */
	unsigned rules; /* that have only a cgroup, */
	unsigned found; /* and how many there are by them; */
	unsigned other; /* rules that have more */
	unsigned cgroups, mapped, with_rdmacg;
	int error; /* it, or a cgroup of which the rules say nothing, found no place in the kernel */
	int late;  /* a line that cannot be a rule there: its new cgroups are found by looking */
	__u64 since;  /* the epoch that it got its slot in: 0 when it has none */
	bool pending; /* rdma_monitor has still something to do for it */
	enum proto_guarantee guarantee;
	char reason[GUARDS_REASON];
};

/* A cgroup that is, or was, of such a tenant. */
struct guards_cgroup {
	struct guards_cgroup *next;
	struct guards_tenant *owner; /* by the first rule that names it; NULL: no rule does */
	__u64 inode;
	__u32 slot;	      /* that it has in the kernel; 0: none */
	bool has_rdmacg;      /* the collector has set its rdma.max */
	bool rdmacg_in_force; /* and has the limits that the policy sets */
	char path[];	      /* whole */
};

/* ---- guards.c */

/* Where the unified hierarchy of cgroups is. */
const char *guards_hierarchy(void);

struct guards_tenant *guards_tenant_find(const struct guards *guards, const char *name);
struct guards_tenant *guards_tenant_of_slot(const struct guards *guards, __u32 slot);
/* The one that is there, or a new one; NULL when there is no memory. */
struct guards_tenant *guards_tenant_add(struct guards *guards, const char *name);

/* ---- guard_cgroups.c */

/* The one that is there, or a new one; NULL when there is no memory. */
struct guards_cgroup *guards_cgroup_add(struct guards *guards, const char *path, __u64 inode);

/* The kernel's rules do not say whose it is. */
bool guards_needs_entry(const struct guards_cgroup *cgroup);
/* Tells the kernel which slot a cgroup has; 0: none. */
void guards_slot_set(struct guards *guards, struct guards_cgroup *cgroup, __u32 slot);
/* Removes cgroups from the list: those that do not exist any more, and, once the owners are known,
 * those without a guarded owner, slot and rdma.max. */
void guards_cgroups_sift(struct guards *guards, bool owners_known);
void guards_cgroups_free(struct guards *guards);

/* Whether the kernel can hold a match line. */
bool guards_has_cgroup_only(const struct policy_rule *rule);
/* Finds the cgroups of all guarded tenants; false if no tenant is guarded, or was. */
bool guards_resolve(struct collector *collector);

/* ---- guard_writer.c */

void guards_write(struct collector *collector);
/* Whether something is charged there. */
bool guards_slot_holds(const struct guards *guards, __u32 slot);

/* ---- guard_devices.c */

/* The name of the device with this number, as in uverbsN; "" if no device has it. */
const char *guards_device_name(unsigned number);
/* The patterns that the kernel is to keep a tenant to; "*" for NULL and where nothing is enforced. */
const char *guards_tenant_devices(const struct collector *collector,
				  const struct guards_tenant *tenant);
/* of_slot[i] is NULL if no tenant uses slot i. */
void guards_devices_write(struct collector *collector,
			  const struct guards_tenant *of_slot[GUARD_TENANTS]);

/* ---- guard_rdmacg.c */

/* Which are an earlier collector's. */
void guards_rdmacg_recall(struct collector *collector);
void guards_rdmacg_write(struct collector *collector);

/* ---- guard_report.c */

/* What is guaranteed to each tenant now; a change is logged. */
void guards_conclude(struct collector *collector);

#endif
