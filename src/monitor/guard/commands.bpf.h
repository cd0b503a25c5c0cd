/* SPDX-License-Identifier: MIT */
/*
 * The commands of uverbs, as a program writes them: which of them make an object, of which
 * kind, and where the size of a memory region stands. The table is kernel/uverbs.def. For the
 * guard's programs only.
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

/* The number by which the kernel knows a method of an object; the kernel's own uverbs_ioctl.h has
 * it, which is for no user. */
enum {
	KEY_OBJECTS = 20, /* a driver's objects and methods follow those of the core */
	KEY_METHODS = 22,
	KEY_METHOD_SHIFT = 6,
	KEY_OBJECT_SHIFT = 11,
};

static __always_inline __u32 command_key(__u16 object, __u16 method)
{
	__u32 first = object & UVERBS_DRIVER ? (object & ~UVERBS_DRIVER) + KEY_OBJECTS : object;
	__u32 second = method & UVERBS_DRIVER ? (method & ~UVERBS_DRIVER) + KEY_METHODS :
						method + 1;

	return first << KEY_OBJECT_SHIFT | second << KEY_METHOD_SHIFT;
}

/* The kind that an old command makes; KIND_COUNT: none. */
static __always_inline __u32 write_kind(__u32 command)
{
	switch (command) {
#define WRITE_MAKE(number, kind)                                                                   \
	case number:                                                                               \
		return kind;
#include "monitor/kernel/uverbs.def"
	}
	return KIND_COUNT;
}

/* The kind that a method makes; KIND_COUNT: none. And the attribute with the bytes of a region. */
static __always_inline __u32 method_kind(__u16 object, __u16 method, __u32 *ret_length)
{
	*ret_length = 0;
	switch ((__u32)object << 16 | method) {
#define UOBJECT_MAKE(made_object, made_method, kind, length)                                       \
	case made_object << 16 | made_method:                                                      \
		*ret_length = length;                                                              \
		return kind;
#include "monitor/kernel/uverbs.def"
	}
	return KIND_COUNT;
}

/* Numbers as bits of a word, which are a constant: short code, since each command is looked at. */
#define BIT_IF(condition, number) ((__u64)((condition) != 0) << ((number) % 64))

#define UOBJECT_DESTROY(object, method, response)                                                  \
	_Static_assert(object < 64 && method < 2, #object);
#define WRITE_DESTROY(number)                                                                      \
	_Static_assert(((number) & ~IB_USER_VERBS_CMD_FLAG_EXTENDED) < 64, #number);
#include "monitor/kernel/uverbs.def"

/* Whether a method takes away what is there. By destroying, an object that nobody wants goes;
 * by the others it is used. */
static __always_inline int method_destroys(__u16 object, __u16 method)
{
	const __u64 by_first = 0
#define UOBJECT_DESTROY(gone, by, response) | BIT_IF((by) == 0, gone)
#include "monitor/kernel/uverbs.def"
		;
	const __u64 by_second = 0
#define UOBJECT_DESTROY(gone, by, response) | BIT_IF((by) == 1, gone)
#include "monitor/kernel/uverbs.def"
		;

	if (object >= 64 || method > 1)
		return 0;
	return (method ? by_second : by_first) >> object & 1;
}

static __always_inline int write_destroys(__u32 command)
{
	const __u64 plain = 0
#define WRITE_DESTROY(number) | BIT_IF(!((number)&IB_USER_VERBS_CMD_FLAG_EXTENDED), number)
#include "monitor/kernel/uverbs.def"
		;
	const __u64 extended = 0
#define WRITE_DESTROY(number) | BIT_IF((number)&IB_USER_VERBS_CMD_FLAG_EXTENDED, number)
#include "monitor/kernel/uverbs.def"
		;
	__u32 number = command & ~IB_USER_VERBS_CMD_FLAG_EXTENDED;

	if (number >= 64)
		return 0;
	return (number == command ? plain : extended) >> number & 1;
}

/* ---- reading one */

/* The user's memory is read in two ways; only one may sleep until it is there. */
static __always_inline long user_read(int sleeps, void *to, __u32 size, __u64 from)
{
	return sleeps ? bpf_copy_from_user(to, size, (const void *)from) :
			bpf_probe_read_user(to, size, (const void *)from);
}

/* What an old command makes, by its number and its body. */
static __always_inline int write_read(int sleeps, struct guard_command *command, __u32 old,
				      __u64 body)
{
	__u64 length = 0;
	__u32 flags = 0;

	command->kind = command->old = write_kind(old);
	command->opens = old == IB_USER_VERBS_CMD_GET_CONTEXT;
	command->destroys = write_destroys(old);
	if (old == IB_USER_VERBS_CMD_REG_MR) {
		command->sized = 1;
		return user_read(sleeps, &command->bytes, sizeof(command->bytes),
				 body + __builtin_offsetof(struct ib_uverbs_reg_mr, length)) ?
			       -EFAULT :
			       0;
	}
	if (old != IB_USER_VERBS_CMD_REREG_MR)
		return 0;
	/* A region takes another's place: none more, but both memories at once. */
	command->kind = KIND_mr_bytes;
	command->replaces = 1;
	if (user_read(sleeps, &flags, sizeof(flags),
		      body + __builtin_offsetof(struct ib_uverbs_rereg_mr, flags)) ||
	    user_read(sleeps, &length, sizeof(length),
		      body + __builtin_offsetof(struct ib_uverbs_rereg_mr, length)))
		return -EFAULT;
	command->sized = flags & UVERBS_REREG_TRANSLATION;
	command->bytes = command->sized ? length : 0;
	return 0;
}

/* Of the attributes, those that matter: all or a negative error. */
static __always_inline int attributes_read(int sleeps, struct guard_command *command,
					   const struct ib_uverbs_ioctl_hdr *header,
					   __u32 wanted_length)
{
	struct ib_uverbs_attr attribute[ATTRIBUTES] = {};
	__u32 count = header->num_attrs, old = ~0u;
	__u64 body = 0;
	int is_old = wanted_length == 0;

	/* No command has so many, and one that is not read to its end is not understood. */
	if (count > ATTRIBUTES)
		return -E2BIG;
	if (user_read(sleeps, attribute, count * sizeof(attribute[0]),
		      command->argument + sizeof(*header)))
		return -EFAULT;
	for (__u32 i = 0; i < ATTRIBUTES; i++) {
		if (i >= count)
			break;
		if (is_old && attribute[i].attr_id == UVERBS_ATTR_WRITE_CMD)
			old = (__u32)attribute[i].data;
		else if (is_old && attribute[i].attr_id == UVERBS_ATTR_CORE_IN)
			body = attribute[i].data;
		else if (!is_old && attribute[i].attr_id == wanted_length) {
			command->bytes = attribute[i].data;
			command->length_id = wanted_length;
			command->length_at = i;
			command->sized = 1;
		}
	}
	if (!is_old)
		return 0;
	return write_read(sleeps, command, old, body);
}

#endif
