/* SPDX-License-Identifier: MIT */
/*
 * Devices that a tenant may not use, and the guard's programs, which run here on a stand-in for the
 * kernel: contexts and objects are refused there by ioctl, in both forms of the command; what
 * destroys is not, and nobody else is touched.
 */
#pragma GCC diagnostic ignored "-Wunknown-pragmas"
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#define __bpf__
#include "monitor/guard/guard.bpf.c"
#undef __bpf__

#include "harness.h"

enum { SLOT = 3, CGROUP = 77, PLACES = 1000, MAJOR = 231, MINOR = 192, DYNAMIC = 511 };

static struct inode inode;
static struct file file = { .f_inode = &inode };
static char ufile[128];

static struct {
	struct ib_uverbs_ioctl_hdr header;
	struct ib_uverbs_attr attribute[2];
} call;

static struct guard_limits *limits(void)
{
	__u32 slot = SLOT;

	return bpf_map_lookup_elem(&guard_limits, &slot);
}

static struct guard_counts *counts(void)
{
	__u32 slot = SLOT;

	return bpf_map_lookup_elem(&guard_counts, &slot);
}

static void begin(void)
{
	struct guard_tenancy tenancy = { .slot = SLOT };
	__u64 cgroup = CGROUP;
	struct guard_head *head;
	__u32 zero = 0;

	stand = (struct stand){ .cgroup = CGROUP, .thread = 5ull << 32 | 5 };
	head = bpf_map_lookup_elem(&guard_head, &zero);
	head->armed = 1;
	head->ways = GUARD_IOCTL | GUARD_COMPAT | GUARD_WRITE;
	for (unsigned table = 0; table < GUARD_TABLES; table++)
		head->most[table] = PLACES;
	bpf_map_update_elem(&guard_tenancies, &cgroup, &tenancy, BPF_ANY);
	memset(limits(), 0, sizeof(*limits()));
	memset(limits()->limit, 0xff, sizeof(limits()->limit));
	file.private_data = ufile;
}

/* By the command of an object's method. */
static int method_look(__u16 object, __u16 method)
{
	call.header = (struct ib_uverbs_ioctl_hdr){ .object_id = object, .method_id = method };
	return g_ioctl(&file, UVERBS_IOCTL, (unsigned long)&call);
}

/* By an old command inside the ioctl. */
static int write_look(__u32 number)
{
	static __u64 body[8];

	call.header = (struct ib_uverbs_ioctl_hdr){ .object_id = UVERBS_OBJECT_DEVICE,
						    .method_id = UVERBS_METHOD_INVOKE_WRITE,
						    .num_attrs = 2 };
	call.attribute[0] =
		(struct ib_uverbs_attr){ .attr_id = UVERBS_ATTR_WRITE_CMD, .data = number };
	call.attribute[1] =
		(struct ib_uverbs_attr){ .attr_id = UVERBS_ATTR_CORE_IN, .data = (__u64)body };
	return g_ioctl(&file, UVERBS_IOCTL, (unsigned long)&call);
}

/* Contexts and objects, each in both forms: all pass, or all are refused. */
static void made(int result, const char *what)
{
	CHECK(method_look(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT) == result, "%s", what);
	CHECK(write_look(IB_USER_VERBS_CMD_GET_CONTEXT) == result, "%s", what);
	CHECK(method_look(UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE) == result, "%s", what);
	CHECK(write_look(IB_USER_VERBS_CMD_ALLOC_PD) == result, "%s", what);
	/* Queries and the end of objects pass. */
	CHECK(write_look(IB_USER_VERBS_CMD_QUERY_DEVICE) == 0, "%s", what);
	CHECK(write_look(IB_USER_VERBS_CMD_DEALLOC_PD) == 0, "%s", what);
	CHECK(method_look(UVERBS_OBJECT_QP, UVERBS_METHOD_QP_DESTROY) == 0, "%s", what);
}

static void device_is(unsigned major, unsigned minor)
{
	inode.i_rdev = major << 20 | minor;
}

static void devices(void)
{
	__s64 used;

	begin();
	device_is(MAJOR, MINOR + 1);
	made(0, "a tenant that may use all");
	limits()->device[0] = 1ull << 1;
	limits()->device[1] = 1ull << 6;
	limits()->restricted = 1;
	made(0, "uverbs1 is allowed");
	device_is(DYNAMIC, 38);
	made(0, "uverbs70 is allowed");
	used = counts()->used[KIND_qp];
	device_is(MAJOR, MINOR);
	made(-EACCES, "uverbs0 is not");
	CHECK(counts()->used[KIND_qp] == used, "nothing is charged");
	CHECK(counts()->refused[KIND_ctx] == 2 && counts()->refused[KIND_qp] == 1 &&
	      counts()->refused[KIND_pd] == 1);
	device_is(DYNAMIC, 39);
	made(-EACCES, "uverbs71 is not");
	device_is(DYNAMIC, GUARD_DEVICES + 38);
	made(-EACCES, "nor one beyond all that are known");
	limits()->restricted = 0;
	made(0, "all again");
}

static void driver(void)
{
	RUN(devices);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
