/* SPDX-License-Identifier: MIT */
/*
 * The user interface of uverbs: the kernel's own headers, and the few numbers that those of 6.1
 * do not have. The only file of the room that includes them, but for netlink's; uverbs.def is the
 * table that is made of them. For programs in the kernel and for others.
 */
#ifndef MONITOR_KERNEL_UVERBS_H
#define MONITOR_KERNEL_UVERBS_H

#include <linux/types.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#define UVERBS_IOCTL ((__u32)RDMA_VERBS_IOCTL)

/* A command of write() of the second generation, as it is written. */
#define UVERBS_EXTENDED(command) ((__u32)(command) | IB_USER_VERBS_CMD_FLAG_EXTENDED)

enum {
	/* Objects and methods from here on are a driver's own. */
	UVERBS_DRIVER = 1 << UVERBS_ID_NS_SHIFT,
	/* Of 7.x: regions of every sort by one method. */
	UVERBS_7_METHOD_REG_MR = UVERBS_METHOD_REG_DMABUF_MR + 1,
	UVERBS_7_ATTR_REG_MR_LENGTH = 5,
	/* Of IB_USER_VERBS_CMD_REREG_MR, a flag that is in no user header: other memory. */
	UVERBS_REREG_TRANSLATION = 1,
	/* Attributes of all methods that destroy: the handle, and the answer where there is one. */
	UVERBS_DESTROY_HANDLE = UVERBS_ATTR_DESTROY_CQ_HANDLE,
	UVERBS_DESTROY_RESPONSE = UVERBS_ATTR_DESTROY_CQ_RESP,
};

_Static_assert(UVERBS_IOCTL == 0xc0181b01u && sizeof(struct ib_uverbs_ioctl_hdr) == 24 &&
		       sizeof(struct ib_uverbs_attr) == 16,
	       "commands are the same for all programs");

#endif
