/* SPDX-License-Identifier: MIT */
/*
 * What the kernel makes of a command: the reservation becomes the charge of an object, is given
 * back, or floats. A command that changed after the look is found here.
 */
#ifndef MONITOR_GUARD_CHARGES_BPF_H
#define MONITOR_GUARD_CHARGES_BPF_H

#include "monitor/guard/look.bpf.h"

/* The kernel's copy of the command, if the kernel is at this one. */
static __always_inline __u64 command_copy(const struct guard_command *command, __u64 attrs)
{
	__u64 copy = attrs - offsets.command_bundle;

	return word_at(copy + offsets.command_attributes) ==
			       command->argument + sizeof(struct ib_uverbs_ioctl_hdr) ?
		       copy :
		       0;
}

/* What the kernel is at is another command than was looked at. */
static __always_inline int command_has_changed(const struct guard_command *command, __u64 attrs,
					       __u32 kind)
{
	if (command->way == GUARD_IOCTL) {
		__u64 copy = command_copy(command, attrs);

		if (!copy)
			return 0;
		if ((__u32)word_at(copy + offsets.command_key) != command->key)
			return 1;
	}
	return command->old != GUARD_NOT_OLD && command->old != kind;
}

/* The bytes that the kernel was told, where it keeps them nowhere else; ~0: the attribute is
 * not where it was. */
static __always_inline __u64 command_bytes_told(const struct guard_command *command, __u64 attrs)
{
	__u64 copy = command_copy(command, attrs);
	struct ib_uverbs_attr attribute = {};

	if (!command->length_id || !copy)
		return command->bytes;
	bpf_probe_read_kernel(&attribute, sizeof(attribute),
			      (const void *)(word_at(copy + offsets.command_copied) +
					     command->length_at * sizeof(attribute)));
	return attribute.attr_id == command->length_id ? attribute.data : ~0ull;
}

/* The reservation is for this object. */
static __always_inline int command_is_for(const struct guard_command *command, __u32 kind)
{
	return command->state >= GUARD_RESERVED &&
	       (command->kind == kind || (command->kind == KIND_mr_bytes && kind == KIND_mr));
}

/* What is known at the address of an object that is just being made ended unseen; or somebody
 * who looks for what was missed has found the object before we are done with it. */
static __always_inline void charge_keep(__u64 address, const struct guard_charge *charge)
{
	long failed = bpf_map_update_elem(&guard_charges, &address, charge, BPF_NOEXIST);

	if (failed == -EEXIST) {
		charge_drop(address);
		failed = bpf_map_update_elem(&guard_charges, &address, charge, BPF_NOEXIST);
	}
	if (failed == -EEXIST)
		count_give_back(charge->slot, charge->kind, charge->bytes);
	else if (failed)
		count_set_afloat(charge->slot, charge->kind, charge->bytes);
}

/* The region that is made has more bytes than the command said that was looked at: what was told
 * is too little, or, where no length was, what is taken away for it. */
static __always_inline int command_is_longer(const struct guard_command *command, __u64 bytes)
{
	if (command->replaces && !command->sized)
		return command->freed_seen && bytes > command->freed;
	return command->sized && bytes > command->bytes;
}

/* An object that the kernel is at. As in accounting.bpf.c, it is read in two ways. */
struct made {
	__u64 address, file;
	const void *hardware; /* the driver's part */
	__u32 type;
};

static __always_inline struct made made_direct(const struct ib_uobject *uobject)
{
	return (struct made){ (__u64)uobject, (__u64)uobject->ufile, uobject->object,
			      type_number(uobject->uapi_object) };
}

static __always_inline struct made made_copied(const struct ib_uobject *uobject)
{
	return (struct made){ (__u64)uobject, uobject_file(uobject), BPF_CORE_READ(uobject, object),
			      type_number(BPF_CORE_READ(uobject, uapi_object)) };
}

/* What was reserved is made: charges it, with the bytes that it really has. */
static __always_inline void charge_reserved(const struct guard_head *head,
					    struct guard_command *command, struct made made,
					    __u64 attrs, struct guard_charge *charge)
{
	__u64 bytes;

	charge->bytes = command->bytes;
	if (command->kind == KIND_mr_bytes)
		count_put(charge->slot, KIND_mr, 1);
	if (charge->kind != KIND_mr)
		return;
	bytes = region_bytes(made.hardware);
	if (!bytes && !region_is_whole(made.hardware))
		bytes = command_bytes_told(command, attrs); /* the kernel keeps no length */
	if (bytes > charge->bytes)
		charge->excess = charge_forced(
			charge->slot, KIND_mr_bytes, bytes - charge->bytes,
			!head->trusting && command_is_longer(command, bytes) ? made.file : 0);
	else if (bytes < charge->bytes)
		count_put(charge->slot, KIND_mr_bytes, -(__s64)(charge->bytes - bytes));
	charge->bytes = bytes;
}

/* Something is made that was not reserved: by a way that is not guarded, by a method that
 * nobody knows, or by a command that changed after the look. */
static __always_inline void charge_unforeseen(struct made made, int proven,
					      struct guard_charge *charge)
{
	__u64 file = proven ? made.file : 0;

	charge->bytes = charge->kind == KIND_mr ? region_bytes(made.hardware) : 0;
	table_place_add_to(charge->slot, GUARD_OBJECTS, 1);
	charge->excess = charge_forced(charge->slot, charge->kind, 1, file);
	charge->excess |= charge_forced(charge->slot, KIND_mr_bytes, charge->bytes, file);
}

static __always_inline int charge_on_commit(struct guard_head *head, struct made made, __u64 attrs)
{
	__u32 thread = (__u32)bpf_get_current_pid_tgid();
	struct guard_charge charge = { .file = made.file };
	struct guard_command *command;
	int slot;

	charge.kind = counter_of(made.type);
	if (charge.kind >= KIND_COUNT)
		return 0;
	command = bpf_map_lookup_elem(&guard_commands, &thread);
	if (!command || command->state == GUARD_IDLE) {
		slot = tenant_of_current(head);
		if (slot == UNDECIDED)
			head->incomplete = 1; /* the loader finds it */
		if (slot <= 0)
			return 0;
		charge.slot = (__u32)slot;
		charge_unforeseen(made, 0, &charge);
	} else if (command_is_for(command, charge.kind)) {
		charge.slot = command->slot;
		charge_reserved(head, command, made, attrs, &charge);
		command->state = GUARD_LOOKED;
	} else if (command->charged) {
		return 0; /* by charge_on_commit_too */
	} else {
		charge.slot = command->slot;
		charge_unforeseen(
			made, !head->trusting && command_has_changed(command, attrs, charge.kind),
			&charge);
	}
	charge_keep(made.address, &charge);
	return 0;
}

/* For the second of two programs that see a commit, where the kernel skips the first now and then:
 * charges what is reserved, if that was not done. */
static __always_inline int charge_on_commit_too(const struct guard_head *head, struct made made,
						__u64 attrs)
{
	__u32 thread = (__u32)bpf_get_current_pid_tgid();
	struct guard_command *command = bpf_map_lookup_elem(&guard_commands, &thread);
	struct guard_charge charge = { .file = made.file, .kind = counter_of(made.type) };

	if (!command || charge.kind >= KIND_COUNT || !command_is_for(command, charge.kind))
		return 0;
	charge.slot = command->slot;
	charge_reserved(head, command, made, attrs, &charge);
	command->charged = 1;
	command->state = GUARD_LOOKED;
	charge_keep(made.address, &charge);
	return 0;
}

/* A region goes that another one is just taking the place of. */
static __always_inline void command_note_freed(__u64 address)
{
	__u32 thread = (__u32)bpf_get_current_pid_tgid();
	struct guard_charge *charge = bpf_map_lookup_elem(&guard_charges, &address);
	struct guard_command *command;

	if (!charge || charge->kind != KIND_mr)
		return;
	command = bpf_map_lookup_elem(&guard_commands, &thread);
	if (!command || command->state == GUARD_IDLE || !command->replaces)
		return;
	command->freed = charge->bytes;
	command->freed_seen = 1;
}

/* Nothing but the old command for that gives a region another length, or a driver's own method.
 * Where write() is not looked at, what was seen may be an earlier command. */
static __always_inline int command_is_another(const struct guard_head *head,
					      const struct guard_command *command, __u64 bytes,
					      __u64 before)
{
	if (head->trusting || command->drivers || !(head->ways & GUARD_WRITE))
		return 0;
	if (!command->replaces)
		return bytes > before;
	return bytes > (command->sized ? command->bytes : before);
}

/* A region that was used alone may be another one now; it is the same object. Who has registered
 * it anew is charged for it. */
static __always_inline int charge_on_change(struct guard_head *head, struct made made)
{
	__u32 thread = (__u32)bpf_get_current_pid_tgid();
	__u64 bytes, before, counted, reserved = 0, file = 0;
	struct guard_command *command;
	struct guard_charge *charge;

	if (made.type != UVERBS_OBJECT_MR)
		return 0;
	charge = bpf_map_lookup_elem(&guard_charges, &made.address);
	bytes = region_bytes(made.hardware);
	if (!charge || !bytes)
		return 0;
	command = bpf_map_lookup_elem(&guard_commands, &thread);
	if (command && command->state == GUARD_IDLE)
		command = NULL;
	if (bytes == charge->bytes)
		return 0; /* what is reserved is given back, or floats, when the command ends */
	if (command && command->slot != charge->slot) {
		count_give_back(charge->slot, KIND_mr, charge->bytes);
		charge->slot = command->slot;
		charge->bytes = 0;
		table_place_add_to(charge->slot, GUARD_OBJECTS, 1);
		charge_forced(charge->slot, KIND_mr, 1, 0);
	}
	before = charge->bytes;
	if (command && command_is_another(head, command, bytes, before))
		file = made.file;
	if (command && command->state >= GUARD_RESERVED && command->kind == KIND_mr_bytes) {
		reserved = command->bytes;
		command->state = GUARD_LOOKED;
		table_place_add_to(command->slot, GUARD_OBJECTS,
				   -1); /* the region has one already */
	}
	/* What was reserved, or should have been, counts beside what there was before. */
	counted = reserved || file ? reserved : before;
	if (bytes > counted)
		charge->excess |= charge_forced(charge->slot, KIND_mr_bytes, bytes - counted, file);
	else
		count_put(charge->slot, KIND_mr_bytes, (__s64)(bytes - counted));
	if (reserved || file)
		count_put(charge->slot, KIND_mr_bytes, -(__s64)before);
	charge->bytes = bytes;
	return 0;
}

/* A command has ended. What it reserved and did not use goes back; unless it made something
 * and that was not seen, or has registered a region anew, which the accounting sees. */
static __always_inline int command_ended(long result)
{
	__u32 thread = (__u32)bpf_get_current_pid_tgid();
	struct guard_command *command = bpf_map_lookup_elem(&guard_commands, &thread);

	if (!command)
		return 0;
	if (command->state >= GUARD_RESERVED && !command_settle(command)) {
		if (result < 0)
			count_give_back(command->slot, command->kind, command->bytes);
		else
			command_float(command);
	}
	command->state = GUARD_IDLE;
	return 0;
}

static __always_inline void command_forget(__u32 thread)
{
	struct guard_command *last = bpf_map_lookup_elem(&guard_commands, &thread);
	__u32 payer;

	if (!last)
		return;
	command_float(last);
	payer = last->payer;
	if (!bpf_map_delete_elem(&guard_commands, &thread))
		table_place_add_to(payer, GUARD_RUNNING, -1);
}

#endif
