/* SPDX-License-Identifier: MIT */
/*
 * A command that a second thread changes while the kernel reads it, in each place that this file
 * knows: once checked, it must not make more than was checked.
 */
#include "intruder.h"

#include <signal.h>
#include <sys/wait.h>

enum {
	ENOUGH_BYTES = 2 * LARGE,
	PAUSE = 256, /* at most, between two flips */
};

struct tally *tally;

/* What is called again and again, and the place in it that is changed between calls that
 * make nothing, or little, and those that make an object. */
struct target {
	struct call call;
	struct message message;
	size_t written; /* by write(), so much of the message; 0: by the ioctl */
	void *at;
	unsigned size; /* 2 or 4 */
	__u32 harmless, harmful;
};

static void aim(struct target *target, void *at, unsigned size, __u32 harmless, __u32 harmful)
{
	target->at = at;
	target->size = size;
	target->harmless = harmless;
	target->harmful = harmful;
}

static void aim_method(struct target *target, enum kind kind, __u32 harmless)
{
	struct ib_uverbs_ioctl_hdr *header = &target->call.header;

	rows[kind].native(&target->call, &parts);
	aim(target, &header->method_id, sizeof(header->method_id), harmless, header->method_id);
}

static void aim_object(struct target *target, enum kind kind, __u32 harmless)
{
	struct ib_uverbs_ioctl_hdr *header = &target->call.header;

	rows[kind].native(&target->call, &parts);
	aim(target, &header->object_id, sizeof(header->object_id), harmless, header->object_id);
}

static void aim_native_length(struct target *target, enum kind kind, __u32 harmless)
{
	struct ib_uverbs_attr *attribute = target->call.header.attrs;

	rows[kind].native(&target->call, &parts);
	while (attribute->attr_id != REG_MR_LENGTH)
		attribute++;
	aim(target, &attribute->data, sizeof(__u32), harmless, LARGE);
}

/* The first attribute is the number of the command. */
static struct ib_uverbs_attr *aim_old(struct target *target, enum kind kind)
{
	message_make(&target->message, kind, &parts);
	call_begin(&target->call, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
	call_add_command(&target->call, &rows[kind].make, &target->message);
	return &target->call.header.attrs[0];
}

static void aim_command(struct target *target, enum kind kind, __u32 harmless)
{
	aim(target, &aim_old(target, kind)->data, sizeof(__u32), harmless, rows[kind].make.number);
}

static void aim_attribute(struct target *target, enum kind kind, __u32 harmless)
{
	aim(target, &aim_old(target, kind)->attr_id, sizeof(__u16), harmless,
	    UVERBS_ATTR_WRITE_CMD);
}

static void aim_length(struct target *target, enum kind kind, __u32 harmless)
{
	aim_old(target, kind);
	aim(target, &target->message.request.mr.length, sizeof(__u32), harmless, LARGE);
}

static void aim_written(struct target *target, enum kind kind)
{
	message_make(&target->message, kind, &parts);
	target->written = sizeof(target->message.header) + rows[kind].make.request;
}

static void aim_written_command(struct target *target, enum kind kind, __u32 harmless)
{
	aim_written(target, kind);
	aim(target, &target->message.header.uverbs.command, sizeof(__u32), harmless,
	    rows[kind].make.number);
}

static void aim_written_length(struct target *target, enum kind kind, __u32 harmless)
{
	aim_written(target, kind);
	aim(target, &target->message.request.mr.length, sizeof(__u32), harmless, LARGE);
}

/* What is harmless fails: no kernel knows it, there is no room for its answer, or it is of
 * no length. Of a length that is SMALL, much can be had before any limit. */
static const struct flip {
	const char *name;
	bool native, of_bytes, written;
	__u32 harmless;
	void (*aim)(struct target *target, enum kind kind, __u32 harmless);
} flips[] = {
	{ "method", true, false, false, UNKNOWN, aim_method },
	{ "object", true, false, false, UVERBS_OBJECT_DEVICE, aim_object },
	{ "command", false, false, false, IB_USER_VERBS_CMD_QUERY_DEVICE, aim_command },
	{ "unknown_command", false, false, false, UNKNOWN, aim_command },
	{ "attribute", false, false, false, UNKNOWN, aim_attribute },
	{ "length", false, true, false, SMALL, aim_length },
	{ "no_length", false, true, false, 0, aim_length },
	{ "native_length", true, true, false, SMALL, aim_native_length },
	{ "written_command", false, false, true, IB_USER_VERBS_CMD_QUERY_DEVICE,
	  aim_written_command },
	{ "written_unknown", false, false, true, UNKNOWN, aim_written_command },
	{ "written_length", false, true, true, SMALL, aim_written_length },
};

static int target_run(struct target *target)
{
	ssize_t written;

	if (!target->written)
		return call_run(uverbs, &target->call);
	written = write(uverbs, &target->message.header, target->written);
	return written < 0 ? errno : 0;
}

static void *flip_thread(void *argument)
{
	struct target *target = argument;
	unsigned random = 1;

	for (unsigned turn = 0;; turn++) {
		__u32 value = turn & 1 ? target->harmful : target->harmless;

		if (target->size == sizeof(__u16))
			__atomic_store_n((__u16 *)target->at, (__u16)value, __ATOMIC_RELAXED);
		else
			__atomic_store_n((__u32 *)target->at, value, __ATOMIC_RELAXED);
		random = random * 1664525 + 1013904223;
		for (unsigned i = random >> 16; i % PAUSE; i--)
			pause_briefly();
	}
	return NULL;
}

/* What the kernel says of this process, in bytes. */
static unsigned long pinned(void)
{
	FILE *file = fopen("/proc/self/status", "re");
	unsigned long kilobytes = 0;
	char line[128];

	if (!file)
		fail("/proc/self/status", errno);
	while (fgets(line, sizeof(line), file) && sscanf(line, "VmPin: %lu", &kilobytes) != 1)
		;
	fclose(file);
	return kilobytes << 10;
}

/* With the file and the parts that are there. */
static _Noreturn void flip_on(const struct flip *flip, enum kind kind)
{
	static struct target target;
	unsigned long before = 0;
	int error;

	flip->aim(&target, kind, flip->harmless);
	error = target_run(&target);
	if (error == EPROTONOSUPPORT) {
		tally->absent = true;
		exit(0);
	}
	if (flip->of_bytes)
		before = pinned();
	thread_start(flip_thread, &target);
	for (unsigned long one = 1;; error = target_run(&target)) {
		if (error)
			continue;
		if (flip->of_bytes) {
			unsigned long now = pinned();

			one = now - before >= LARGE ? LARGE : SMALL;
			before = now;
		}
		__atomic_store_n(&tally->made, tally->made + one, __ATOMIC_RELAXED);
	}
}

_Noreturn void flip_first(enum kind kind)
{
	flip_on(&flips[0], kind);
}

static _Noreturn void flip_child(const struct flip *flip, enum kind kind)
{
	parts.memory = memory_share(LARGE);
	if (flip->of_bytes)
		parts.length = SMALL;
	context_prepare(kind);
	flip_on(flip, kind);
}

bool flip_wait(pid_t pid, unsigned seconds, unsigned long enough)
{
	int status;

	for (unsigned i = 0; i < 100 * seconds; i++) {
		if (__atomic_load_n(&tally->made, __ATOMIC_RELAXED) >= enough)
			break;
		if (waitpid(pid, &status, WNOHANG) == pid) {
			if (!tally->absent && (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL))
				fail("a process that flips", ECHILD);
			return !tally->absent;
		}
		usleep(10000);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return false;
}

int flip_run(enum kind kind, bool of_bytes, bool written, unsigned seconds)
{
	unsigned there = 0, killed = 0;
	unsigned long most = 0;

	tally = memory_share(sizeof(*tally));
	for (unsigned i = 0; i < sizeof(flips) / sizeof(flips[0]); i++) {
		const struct flip *flip = &flips[i];
		bool was_killed;
		pid_t pid;

		if (flip->of_bytes != of_bytes || flip->written != written ||
		    (flip->native && !rows[kind].native))
			continue;
		*tally = (struct tally){ 0 };
		pid = child_start();
		if (!pid)
			flip_child(flip, kind);
		was_killed =
			flip_wait(pid, seconds, of_bytes ? ENOUGH_BYTES : ENOUGH);
		if (tally->absent) {
			printf("%s absent\n", flip->name);
			continue;
		}
		printf("%s made %lu killed %s\n", flip->name, tally->made,
		       was_killed ? "yes" : "no");
		there++;
		killed += was_killed;
		if (tally->made > most)
			most = tally->made;
	}
	printf("made %lu killed %s\n", most, !killed ? "no" : killed < there ? "some" : "yes");
	return 0;
}
