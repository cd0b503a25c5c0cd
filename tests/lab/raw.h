/* SPDX-License-Identifier: MIT */
/*
 * RDMA objects by system calls alone: the ioctl's own methods, the old commands inside that
 * ioctl, the old commands by write() or by writev(). It knows the headers of the kernel and no
 * library of RDMA. The programs that use it choose which objects are made, and how many.
 */
#ifndef LAB_RAW_H
#define LAB_RAW_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_cm.h>
#include <rdma/rdma_user_ioctl_cmds.h>

enum {
	BATCH = 64, /* messages in one writev() */
	RESPONSE = 64,
	ATTRIBUTES = 64,
	PAGE = 4096,
};
#define NO_CHANNEL UINT32_MAX

/* In the order of making; destroyed in the opposite one. */
enum kind { PD, COMP_CHANNEL, CQ, SRQ, QP, MR, MW, AH, CM_ID, KINDS };

/* Since 6.17, so older headers do not have them. */
enum { METHOD_REG_MR = UVERBS_METHOD_REG_DMABUF_MR + 1 };
enum {
	REG_MR_HANDLE,
	REG_MR_PD_HANDLE,
	REG_MR_DMA_HANDLE,
	REG_MR_IOVA,
	REG_MR_ADDR,
	REG_MR_LENGTH,
	REG_MR_ACCESS_FLAGS,
	REG_MR_FD,
	REG_MR_FD_OFFSET,
	REG_MR_RESP_LKEY,
	REG_MR_RESP_RKEY,
};

/* For a moment, without the kernel. */
static inline void pause_briefly(void)
{
#ifdef __aarch64__
	__asm__ volatile("yield");
#else
	__asm__ volatile("pause");
#endif
}

/* What an object is made of; which of it depends on the kind. */
struct parts {
	__u32 pd, cq;
	__u32 channel; /* NO_CHANNEL: the CQ has none */
	const void *memory;
	__u64 length;
	__u64 number; /* what the program calls it */
};

_Noreturn void fail(const char *what, int error);
__u64 address(const void *at);

/* An old command: the sizes of its request, of the core's answer and of the driver's. */
struct command {
	const char *name;
	__u32 number;
	__u16 request, response, driver;
};

/* Header and request are one piece for the kernel. The answer of the core starts with
 * the handle, that of the driver follows it. */
struct message {
	_Alignas(8) __u8 response[RESPONSE];
	union {
		struct ib_uverbs_cmd_hdr uverbs;
		struct rdma_ucm_cmd_hdr cm;
	} header;
	union {
		__aligned_u64 response; /* in front of every request to uverbs that is answered */
		struct ib_uverbs_reg_mr mr;
		struct ib_uverbs_alloc_mw mw;
		struct ib_uverbs_create_cq cq;
		struct ib_uverbs_create_qp qp;
		struct ib_uverbs_create_srq srq;
		struct ib_uverbs_create_ah ah;
		struct ib_uverbs_dealloc_pd bare;     /* as for MR, MW and AH */
		struct ib_uverbs_destroy_cq answered; /* as for QP and SRQ, and a CM id */
		struct rdma_ucm_create_id cm_id;
	} request;
};
void message_begin(struct message *message, const struct command *command, enum kind kind);
void message_make(struct message *message, enum kind kind, const struct parts *parts);
void message_destroy(struct message *message, enum kind kind, __u32 handle);
/* The first word of the answer. */
__u32 answer(const struct message *message);

/* One call of the ioctl; the attributes follow the header. What the attributes point to is
 * in it as well, so that it can be made later, and again. */
struct call {
	union {
		struct ib_uverbs_ioctl_hdr header;
		__u8 room[sizeof(struct ib_uverbs_ioctl_hdr) +
			  ATTRIBUTES * sizeof(struct ib_uverbs_attr)];
	};
	struct ib_uverbs_qp_cap wanted, given;
	__u32 answer[2];
	__u8 driver[RESPONSE];
};
void call_begin(struct call *call, __u16 object, __u16 method);
struct ib_uverbs_attr *call_add(struct call *call, __u16 id, size_t size);
/* Without the header, and with the two parts of the answer as two attributes. */
void call_add_command(struct call *call, const struct command *command, struct message *message);
/* Both return an errno, or 0. */
int call_run(int file, struct call *call);
int call_make(int file, struct call *call, __u32 *ret_handle);
int destroy_native(int file, enum kind kind, __u32 handle);

/* The senders return how many messages the kernel took; errno is about the next one. */
typedef unsigned sender(int file, const struct command *command, struct message *batch, unsigned n);
sender by_write, by_ioctl;

/* CM ids have no ioctl. */
struct path {
	const char *name;
	bool native;
	sender *send, *send_cm;
};
enum { PATHS = 4 };
extern const struct path paths[PATHS];
/* NULL if there is no path of that name. */
const struct path *path_find(const char *name);

struct row {
	const char *name;
	struct command make, destroy; /* no name: destroyed by closing it */
	void (*fill)(struct message *message, const struct parts *parts); /* NULL: nothing to say */

	/* NULL: no kernel up to 7.2 has a method that makes one, so the path "ioctl" takes
	 * INVOKE_WRITE for it. The same if this kernel is too old for the method (an MR). */
	const char *native_name;
	void (*native)(struct call *call, const struct parts *parts);

	/* The handle is attribute 0 of all of these, and the answer, if any, attribute 1. */
	struct {
		const char *name;
		__u16 object, method, response;
	} native_destroy;

	/* Soft-RoCE has had memory windows since 5.14. To a command that the driver cannot
	 * fulfil the core answers EOPNOTSUPP, by every path. */
	bool may_lack;
};
extern const struct row rows[KINDS];

/* Makes a context; returns the file of its asynchronous events. *ret_native: by the method. */
int context_make(int file, const struct path *path, bool *ret_native);

/* Opens uverbs0, which must be the device of the lab, and reads the GID of the device. */
int device_open(void);
int open_device(const char *name);

#endif
