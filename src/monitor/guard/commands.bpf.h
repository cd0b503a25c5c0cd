/* SPDX-License-Identifier: MIT */
/*
 * The commands of uverbs, as a program writes them: which of them make an object, of which
 * kind, and where the size of a memory region stands. For the guard's programs only.
 */
#ifndef MONITOR_GUARD_COMMANDS_BPF_H
#define MONITOR_GUARD_COMMANDS_BPF_H

#include "monitor/guard/guard_rows.h"
#include "monitor/kernel/uobject.bpf.h"

enum {
	ATTRIBUTES = 16, /* at most, of a command that is understood */

	E2BIG = 7,
	EFAULT = 14,
};

/* ---- what they make */

/* The number by which the kernel knows a method of an object (uverbs_ioctl.h). */
enum {
	INVOKE_WRITE = 0,    /* of the device */
	NAMESPACE = 1 << 12, /* a driver's */
	OBJECTS_CORE = 20,
	METHODS_CORE = 22,
	METHOD_SHIFT = 6,
	OBJECT_SHIFT = 11,
};

static __always_inline __u32 key_of(__u16 object, __u16 method)
{
	__u32 first = object & NAMESPACE ? (object & ~NAMESPACE) + OBJECTS_CORE : object;
	__u32 second = method & NAMESPACE ? (method & ~NAMESPACE) + METHODS_CORE : method + 1;

	return first << OBJECT_SHIFT | second << METHOD_SHIFT;
}

/* The old commands; those of the second kind have the flag. */
enum {
	EXTENDED = 1u << 31,
	OLD_REG_MR = 9,
	OLD_REREG_MR = 11,
	OLD_LENGTH_AT = 16,	 /* of the region, in the command's body */
	OLD_REREG_FLAGS_AT = 12, /* and in that of the second, */
	OLD_REREG_LENGTH_AT = 24,
	REREG_TRANSLATION = 1,
};

/* The kind that an old command makes; KIND_COUNT: none. There will be no new ones. */
static __always_inline __u32 kind_of_old(__u32 command)
{
	switch (command) {
	case 3:
		return KIND_pd;
	case 5:
		return KIND_ah;
	case OLD_REG_MR:
	case OLD_REREG_MR:
		return KIND_mr;
	case 14:
		return KIND_mw;
	case 17:
		return KIND_comp_channel;
	case 18:
	case 18 | EXTENDED:
		return KIND_cq;
	case 24:
	case 24 | EXTENDED:
	case 40:
		return KIND_qp;
	case 32:
	case 39:
		return KIND_srq;
	case 37:
		return KIND_xrcd;
	case 50 | EXTENDED:
		return KIND_flow;
	case 52 | EXTENDED:
		return KIND_wq;
	case 55 | EXTENDED:
		return KIND_rwq_table;
	}
	return KIND_COUNT;
}

/* Creating is the first method of each of these. Regions have several. */
static __always_inline __u32 kind_of_method(__u16 object, __u16 method, __u32 *ret_length)
{
	enum { DM_MR = 0, DMABUF_MR = 4, ANY_MR = 5 };
	enum { DMABUF_LENGTH = 3, ANY_LENGTH = 5 };
	__u16 counter = counter_of(object);

	*ret_length = 0;
	if (object == UVERBS_MR) {
		*ret_length = method == DMABUF_MR ? DMABUF_LENGTH :
			      method == ANY_MR	  ? ANY_LENGTH :
						    0;
		return method == DM_MR || method == DMABUF_MR || method == ANY_MR ? KIND_mr :
										    KIND_COUNT;
	}
	switch (object) {
	case UVERBS_CQ:
	case UVERBS_QP:
	case UVERBS_SRQ:
	case UVERBS_WQ:
		return method == 0 ? counter : KIND_COUNT;
	}
	return KIND_COUNT;
}

/* Whether a method takes away what is there. By destroying, an object that nobody wants goes;
 * by the others it is used. */
static __always_inline int is_destroying(__u16 object, __u16 method)
{
	switch (object) {
	case UVERBS_PD:
	case UVERBS_AH:
	case UVERBS_MW:
	case UVERBS_FLOW:
	case UVERBS_XRCD:
	case UVERBS_RWQ_TABLE:
		return method == 0;
	case UVERBS_CQ:
	case UVERBS_QP:
	case UVERBS_SRQ:
	case UVERBS_MR:
	case UVERBS_WQ:
	case UVERBS_FLOW_ACTION:
	case UVERBS_DM:
		return method == 1;
	}
	return 0;
}

static __always_inline int is_destroying_old(__u32 command)
{
	switch (command) {
	case 4:		    /* PD */
	case 8:		    /* AH */
	case 13:	    /* MR */
	case 16:	    /* MW */
	case 20:	    /* CQ */
	case 27:	    /* QP */
	case 35:	    /* SRQ */
	case 38:	    /* XRCD */
	case 51 | EXTENDED: /* flow */
	case 54 | EXTENDED: /* WQ */
	case 56 | EXTENDED: /* table of WQs */
		return 1;
	}
	return 0;
}

/* ---- reading one */

/* The user's memory is read in two ways; only one may sleep until it is there. */
static __always_inline long read_user(int sleeps, void *to, __u32 size, __u64 from)
{
	return sleeps ? bpf_copy_from_user(to, size, (const void *)from) :
			bpf_probe_read_user(to, size, (const void *)from);
}

/* What an old command makes, by its number and its body. */
static __always_inline int old_read(int sleeps, struct guard_command *command, __u32 old,
				    __u64 body)
{
	__u64 length = 0;
	__u32 flags = 0;

	command->kind = command->old = kind_of_old(old);
	command->destroys = is_destroying_old(old);
	if (old == OLD_REG_MR) {
		command->sized = 1;
		return read_user(sleeps, &command->bytes, sizeof(command->bytes),
				 body + OLD_LENGTH_AT) ?
			       -EFAULT :
			       0;
	}
	if (old != OLD_REREG_MR)
		return 0;
	/* A region takes another's place: none more, but both memories at once. */
	command->kind = KIND_mr_bytes;
	command->replaces = 1;
	if (read_user(sleeps, &flags, sizeof(flags), body + OLD_REREG_FLAGS_AT) ||
	    read_user(sleeps, &length, sizeof(length), body + OLD_REREG_LENGTH_AT))
		return -EFAULT;
	command->sized = flags & REREG_TRANSLATION;
	command->bytes = command->sized ? length : 0;
	return 0;
}

/* Of the attributes, those that matter: all or a negative error. */
static __always_inline int attributes_read(int sleeps, struct guard_command *command,
					   const struct uverbs_header *header, __u32 wanted_length)
{
	enum { CORE_IN = 0, WRITE_COMMAND = 2 }; /* of INVOKE_WRITE */
	struct uverbs_attribute attribute[ATTRIBUTES] = {};
	__u32 count = header->attributes, old = ~0u;
	__u64 body = 0;
	int is_old = wanted_length == 0;

	/* No command has so many, and one that is not read to its end is not understood. */
	if (count > ATTRIBUTES)
		return -E2BIG;
	if (read_user(sleeps, attribute, count * sizeof(attribute[0]),
		      command->argument + sizeof(*header)))
		return -EFAULT;
	for (__u32 i = 0; i < ATTRIBUTES; i++) {
		if (i >= count)
			break;
		if (is_old && attribute[i].id == WRITE_COMMAND)
			old = (__u32)attribute[i].data;
		else if (is_old && attribute[i].id == CORE_IN)
			body = attribute[i].data;
		else if (!is_old && attribute[i].id == wanted_length) {
			command->bytes = attribute[i].data;
			command->length_id = wanted_length;
			command->length_at = i;
			command->sized = 1;
		}
	}
	if (!is_old)
		return 0;
	return old_read(sleeps, command, old, body);
}

#endif
