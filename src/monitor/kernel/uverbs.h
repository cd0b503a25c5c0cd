/* SPDX-License-Identifier: MIT */
/* The user interface of uverbs, as much of it as is needed here (rdma_user_ioctl_cmds.h and
 * ib_user_ioctl_cmds.h of the kernel): types of objects, and what an ioctl consists of. */
#ifndef MONITOR_KERNEL_UVERBS_H
#define MONITOR_KERNEL_UVERBS_H

#include <linux/types.h>

enum uverbs_type {
	UVERBS_DEVICE,
	UVERBS_PD,
	UVERBS_COMP_CHANNEL,
	UVERBS_CQ,
	UVERBS_QP,
	UVERBS_SRQ,
	UVERBS_AH,
	UVERBS_MR,
	UVERBS_MW,
	UVERBS_FLOW,
	UVERBS_XRCD,
	UVERBS_RWQ_TABLE,
	UVERBS_WQ,
	UVERBS_FLOW_ACTION,
	UVERBS_DM,
	UVERBS_DRIVER = 0x1000, /* and above: a driver's own */
};

#define UVERBS_IOCTL 0xc0181b01u /* RDMA_VERBS_IOCTL */

/* A header, with its attributes behind it. */
struct uverbs_header {
	__u16 length, object, method, attributes;
	__u64 reserved;
	__u32 driver, reserved2;
};

struct uverbs_attribute {
	__u16 id, length, flags, data16;
	__u64 data;
};
#define UVERBS_MANDATORY 1 /* a flag of an attribute */

#endif
