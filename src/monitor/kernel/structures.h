/* SPDX-License-Identifier: MIT */
/*
 * The kernel's structures, as much of them as is read. Where a field really lies
 * is put right when the programs are loaded (CO-RE), so order and gaps mean nothing
 * here. Structures that only modules know are not here: their fields are in
 * offsets.def. For programs in the kernel only.
 */
#ifndef MONITOR_KERNEL_STRUCTURES_H
#define MONITOR_KERNEL_STRUCTURES_H

#include "monitor/kernel/uverbs.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct list_head {
	struct list_head *next, *prev;
};

struct kernfs_node {
	__u64 id;
	const char *name;
};

struct cgroup {
	struct kernfs_node *kn;
	int level;
	struct cgroup *ancestors[]; /* by level, with itself at the end; 6.1 and later */
};

struct css_set {
	struct cgroup *dfl_cgrp;
};

typedef struct {
	int counter;
} atomic_t;

struct signal_struct {
	atomic_t live;
};

typedef struct {
	__u32 val;
} kuid_t;

struct user_namespace {
	int level;
};

typedef struct {
	__u32 cap[2]; /* one word of 64 bits on newer kernels, with the same bits */
} kernel_cap_t;

struct cred {
	kuid_t uid;
	kernel_cap_t cap_effective;
	struct user_namespace *user_ns;
};

struct thread_info {
	__u64 flags;
	__u32 status; /* x86 */
};

struct task_struct {
	struct thread_info thread_info;
	int tgid;
	__u64 start_boottime;
	struct task_struct *group_leader;
	struct css_set *cgroups;
	struct signal_struct *signal;
	const struct cred *cred;
	char comm[16];
};

struct inode {
	__u32 i_rdev;
};

struct file {
	const void *f_op;
	struct inode *f_inode;
	void *private_data;
};

struct ib_device_ops {
	enum rdma_driver_id driver_id;
};

struct ib_device {
	struct ib_device_ops ops;
	char name[64];
	__u32 index;
};

struct ib_rdmacg_object {
	void *cg;
};

struct ib_ucontext {
	struct ib_device *device;
	void *ufile;
	struct ib_rdmacg_object cg_obj;
};

struct ib_uobject {
	void *ufile;
	struct ib_ucontext *context;
	void *object;
	struct list_head list;
	struct ib_rdmacg_object cg_obj;
	int id;
	const void *uapi_object;
};

enum ib_qp_type { IB_QPT_SMI };

struct ib_qp {
	__u32 qp_num;
	enum ib_qp_type qp_type;
};

struct ib_cq {
	int cqe;
};

struct ib_mr {
	__u64 length;
};

struct ib_dm {
	__u32 length;
};

struct ib_qp_cap {
	__u32 max_send_wr, max_recv_wr;
};

struct ib_qp_init_attr {
	struct ib_qp_cap cap;
};

struct bpf_map;
struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	__u32 fd;
	struct file *file;
};

struct bpf_iter__bpf_map_elem {
	struct bpf_iter_meta *meta;
	struct bpf_map *map;
	void *key;
	void *value;
};

#pragma clang attribute pop

enum { LOOKUP_WRITE = 1 };	 /* enum rdma_lookup_mode */
enum { CG_HANDLE, CG_OBJECT };	 /* enum rdmacg_resource_type: a context, an object */
enum { CM_CONNECT_REQUEST = 4 }; /* enum rdma_cm_event_type */

#endif
