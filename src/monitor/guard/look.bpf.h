/* SPDX-License-Identifier: MIT */
/*
 * The look at a command before anybody else reads it: whose it is, what it makes, and whether that
 * may be. Reserves what it makes, or refuses it.
 */
#ifndef MONITOR_GUARD_LOOK_BPF_H
#define MONITOR_GUARD_LOOK_BPF_H

#include "monitor/guard/call.bpf.h"
#include "monitor/guard/closed.bpf.h"
#include "monitor/guard/commands.bpf.h"
#include "monitor/guard/stale.bpf.h"
#include "monitor/guard/tenants.bpf.h"

/* The number of a device, as in uverbsN, by that of its file: the first ones have numbers of
 * their own, the others follow in a range that the kernel chose. */
static __always_inline __u32 device_number(const struct file *file)
{
	enum { UVERBS_MAJOR = 231, UVERBS_MINOR = 192, UVERBS_FIXED = 32, MINOR_BITS = 20 };
	__u32 number = BPF_CORE_READ(file, f_inode, i_rdev);
	__u32 minor = number & ((1u << MINOR_BITS) - 1);

	return number >> MINOR_BITS == UVERBS_MAJOR ? minor - UVERBS_MINOR : minor + UVERBS_FIXED;
}

static __always_inline int device_is_restricted(__u32 slot)
{
	struct guard_limits *limits = bpf_map_lookup_elem(&guard_limits, &slot);

	return limits && *(volatile __u64 *)&limits->restricted;
}

/* Of a tenant that may use some devices only: 0, or EACCES for who makes something elsewhere. Looked
 * at by the verifier by itself. */
__noinline int look_refuse_device(__u32 slot, __u32 device, __u32 kind)
{
	struct guard_limits *limits = bpf_map_lookup_elem(&guard_limits, &slot);
	struct guard_counts *counts = guard_counts_find(slot);
	__u64 bits;

	if (!limits || !counts)
		return 0;
	if (device < GUARD_DEVICES) {
		bits = *(volatile __u64 *)&limits->device[device / 64];
		if (bits >> (device % 64) & 1)
			return 0;
	}
	if (kind >= KIND_COUNT)
		kind = KIND_ctx;
	ADD(counts->refused[kind], 1);
	log_note_device(GUARD_REFUSED, slot, kind, 1, 0, 0, device + 1);
	return EACCES;
}

/* Where programs are skipped: gives a reservation to the object that the command made, or back. */
static __always_inline int command_settle(const struct guard_command *command)
{
	return skips_programs && reservation_settle(command->file, command->slot, command->kind,
						    command->bytes);
}

/* A command whose end was not seen. */
static __always_inline void command_float(const struct guard_command *command)
{
	if (command->state >= GUARD_RESERVED && !command_settle(command))
		count_set_afloat(command->slot, command->kind, command->bytes);
}

/* A thread comes with another command. Fills in whose it is; 0: nobody's; -ENOMEM: nobody can
 * tell. */
static __always_inline int look_begin(const struct guard_head *head, struct guard_command *last,
				      struct guard_command *command)
{
	__u64 epoch = head->epoch;
	int slot;

	command->cgroup = bpf_get_current_cgroup_id();
	command->epoch = epoch;
	if (last && last->cgroup == command->cgroup && last->epoch == epoch) {
		slot = (int)last->slot;
	} else {
		slot = tenant_of_current(head);
	}
	if (last) {
		command_float(last);
		last->state = GUARD_IDLE;
	}
	command->slot = (__u32)slot;
	return slot == UNDECIDED ? -ENOMEM : slot != 0;
}

/* Reserves for a command that was understood, and keeps what was seen of it. */
static __always_inline int look_admit(struct guard_command *last, struct guard_command *command)
{
	__u32 thread = (__u32)bpf_get_current_pid_tgid();
	int result;

	/* All memory, paged in as it is used, is not registered. */
	if (command->bytes == ~0ull)
		command->bytes = 0;
	command->state = GUARD_LOOKED;
	command->payer = last ? last->payer : command->slot;
	if (command->kind < KIND_COUNT) {
		result = reserve_with_place(command->slot, command->kind, command->bytes);
		if (result)
			return result == EDQUOT ? -EDQUOT : -ENOMEM;
		command->state = GUARD_RESERVED;
	}
	if (last) {
		*last = *command;
		return 0;
	}
	result = table_place_take(command->slot, GUARD_RUNNING, command->kind);
	if (!result) {
		if (!bpf_map_update_elem(&guard_commands, &thread, command, BPF_ANY))
			return 0;
		table_place_add_to(command->slot, GUARD_RUNNING, -1);
		result = -ENOMEM;
	}
	if (command->state == GUARD_RESERVED)
		count_give_back(command->slot, command->kind, command->bytes);
	return result;
}

/* Reads a command: 0; NOT_THERE: the kernel will not be able to read it either; or -errno. */
enum { NOT_THERE = 1 };

static __always_inline int look_read(struct guard_command *command, int sleeps)
{
	struct ib_uverbs_ioctl_hdr header;
	__u32 length = 0;
	int result;

	/* Read with patience, it is not there. Read without, nobody knows. */
	if (user_read(sleeps, &header, sizeof(header), command->argument))
		return sleeps ? NOT_THERE : -EFAULT;
	command->key = command_key(header.object_id, header.method_id);
	if (header.object_id == UVERBS_OBJECT_DEVICE &&
	    header.method_id == UVERBS_METHOD_INVOKE_WRITE) {
		result = attributes_read(sleeps, command, &header, 0);
	} else {
		command->kind = method_kind(header.object_id, header.method_id, &length);
		command->destroys = method_destroys(header.object_id, header.method_id);
		command->opens = header.object_id == UVERBS_OBJECT_DEVICE &&
				 header.method_id == UVERBS_METHOD_GET_CONTEXT;
		command->drivers = !!((header.object_id | header.method_id) & UVERBS_DRIVER);
		result = length ? attributes_read(sleeps, command, &header, length) : 0;
	}
	if (result != -EFAULT || !sleeps)
		return result;
	command->key = 0;
	command->kind = KIND_COUNT;
	return 0;
}

/* Functions of their own: a stack has no room for a command's attributes and for a search. */
static __noinline int look_read_patiently(struct guard_command *command)
{
	return look_read(command, 1);
}

static __noinline int look_read_at_once(struct guard_command *command)
{
	return look_read(command, 0);
}

static __always_inline int look_at_ioctl(struct file *file, __u64 argument, int sleeps)
{
	struct guard_head *head = guard_head_find();
	struct guard_closed closed = { .slot = GUARD_TENANTS };
	__u32 thread;
	struct guard_command command = {
		.argument = argument, .kind = KIND_COUNT, .old = GUARD_NOT_OLD, .way = GUARD_IOCTL
	};
	struct guard_command *last;
	int result;

	if (!guard_is_armed(head) || !file_is_uverbs(file))
		return 0;
	thread = (__u32)bpf_get_current_pid_tgid();
	command.file = (__u64)file->private_data;
	last = bpf_map_lookup_elem(&guard_commands, &thread);
	result = look_begin(head, last, &command);
	if (result < 0)
		return result;
	if (!closed_applies(head, file, command.slot, &closed) && !command.slot)
		return 0;
	result = sleeps ? look_read_patiently(&command) : look_read_at_once(&command);
	if (closed.slot < GUARD_TENANTS && result != NOT_THERE)
		return closed_refuse(command.slot, closed.slot, closed.kind, command.destroys);
	if (closed.slot < GUARD_TENANTS)
		return -EFAULT;
	if (!result && (command.kind < KIND_COUNT || command.opens) &&
	    device_is_restricted(command.slot) &&
	    look_refuse_device(command.slot, device_number(file), command.kind))
		return -EACCES;
	return result < 0 ? result : look_admit(last, &command);
}

/* Where the message lies that the current call writes: in one piece. */
static __always_inline int look_message_of_call(__u64 *ret_message)
{
	struct write_call call = write_call_current();
	__u64 base = 0;

	if (call.is_write) {
		*ret_message = call.buffer;
		return 0;
	}
	if (!call.is_writev || call.count != 1)
		return -EOPNOTSUPP;
	/* An address of 32 bits is the lower half of the word. */
	if (bpf_probe_read_user(&base, call.narrow ? sizeof(__u32) : sizeof(base),
				(const void *)call.buffer))
		return -EFAULT;
	*ret_message = base;
	return 0;
}

/* Apart from its caller, whose frame would else be made ready for it each time. */
static __noinline int look_at_write(struct file *file)
{
	struct guard_head *head = guard_head_find();
	__u32 thread = (__u32)bpf_get_current_pid_tgid();
	struct guard_command command = { .kind = KIND_COUNT, .way = GUARD_WRITE }, *last;
	struct guard_closed closed = { .slot = GUARD_TENANTS };
	struct ib_uverbs_cmd_hdr header;
	int result;

	if (!guard_is_armed(head))
		return 0;
	command.file = (__u64)file->private_data;
	last = bpf_map_lookup_elem(&guard_commands, &thread);
	result = look_begin(head, last, &command);
	if (result < 0)
		return result;
	if (!closed_applies(head, file, command.slot, &closed) && !command.slot)
		return 0;
	result = look_message_of_call(&command.argument);
	if (result < 0)
		return result;
	if (user_read(0, &header, sizeof(header), command.argument))
		return -EFAULT;
	/* The body of an extended command follows a second header, but none that is read is one. */
	result = write_read(0, &command, header.command, command.argument + sizeof(header));
	if (closed.slot < GUARD_TENANTS)
		return closed_refuse(command.slot, closed.slot, closed.kind, command.destroys);
	if (!result && (command.kind < KIND_COUNT || command.opens) &&
	    device_is_restricted(command.slot) &&
	    look_refuse_device(command.slot, device_number(file), command.kind))
		return -EACCES;
	return result < 0 ? result : look_admit(last, &command);
}

#endif
