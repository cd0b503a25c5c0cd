/* SPDX-License-Identifier: MIT */
/*
 * The rows, brought up to date from lists of objects; see polling.h.
 *
 * The kernel names the thread that made an object, and nobody once that has ended. So each
 * object is remembered with its row from step to step: what a thread made stays with its
 * process, and what a process made stays with its row while a child holds it. An object
 * whose maker had ended before it was first seen goes with its protection domain or context,
 * and if nobody is known for that either, to the first row.
 */
#include "monitor/polling/polling.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "base/clock.h"
#include "monitor/polling/files.h"
#include "monitor/polling/netlink.h"
#include "monitor/polling/process.h"

enum {
	NOBODY = 0, /* the first row */
	SEATS = 4096,
};

/* What a row holds by the list at hand. */
struct sum {
	__u64 now[MONITOR_COUNTERS];
	__s64 live;
	bool listed; /* by a thread that lives */
};

/* An object of the last step. */
struct known {
	__u32 device, counter, number, row;
};

/* The row of a thread on a device, so that /proc is read once in a step. */
struct seat {
	__u64 step;
	__u32 task, device, row;
};

struct polling {
	struct monitor_head *head;
	struct monitor_row *rows;
	int directory;
	struct stat identity; /* of the file head */
	unsigned top;	      /* rows beyond were never used */
	__u64 step;
	struct netlink_list list;
	struct known *known, *next; /* by device, counter and number */
	size_t known_count, known_room;
	struct sum sums[MONITOR_ROWS];
	bool used[MONITOR_ROWS]; /* odd generations follow when a row is complete */
	struct seat seats[SEATS];
};

/* ---- rows */

/* Readers see it when row_settle has completed it. */
static void row_start(struct polling *polling, __u32 number, const struct process *process,
		      __u32 device, const char *device_name, __u32 nth)
{
	struct monitor_row *row = &polling->rows[number];
	char command[64] = "";

	polling->used[number] = true;
	polling->sums[number] = (struct sum){ 0 };
	if (number >= polling->top)
		polling->top = number + 1;
	process_command(process->pid, command, sizeof(command));
	row->start_ns = process->start_ns;
	row->cgroup = process->pid ? cgroup_of_process((pid_t)process->pid) : 0;
	row->live = 0;
	row->pid = process->pid;
	row->nth = nth;
	row->exited = 0;
	row->uid = process->uid;
	row->device = device;
	row->unused = 0;
	memset(row->device_name, 0, sizeof(row->device_name));
	memcpy(row->device_name, device_name, strnlen(device_name, NAME_SIZE - 1));
	memset(row->command, 0, sizeof(row->command));
	memcpy(row->command, command, strnlen(command, MONITOR_COMMAND - 1));
	memset(row->made, 0, sizeof(row->made));
	memset(row->gone, 0, sizeof(row->gone));
}

static void row_free(struct polling *polling, __u32 number)
{
	struct monitor_row *row = &polling->rows[number];

	polling->used[number] = false;
	__atomic_store_n(&row->generation, row->generation + 1, __ATOMIC_RELEASE);
	/* What the next to take it writes must not be seen before. */
	__sync_synchronize();
}

static __u32 row_of_nobody(struct polling *polling)
{
	static const struct process nobody = { .uid = (__u32)-1 };

	if (!polling->used[NOBODY])
		row_start(polling, NOBODY, &nobody, MONITOR_NO_DEVICE, "", 0);
	return NOBODY;
}

/* The row of a process on a device; a new one if need be. */
static __u32 row_of_process(struct polling *polling, const struct process *process,
			    const struct netlink_object *object)
{
	__u32 free_row = polling->top, nth = 0;

	for (unsigned i = polling->top; i-- > 1;) {
		const struct monitor_row *row = &polling->rows[i];

		if (!polling->used[i]) {
			free_row = i;
		} else if (row->pid == process->pid && row->start_ns == process->start_ns) {
			if (row->device == object->device)
				return i;
			if (row->nth >= nth)
				nth = row->nth + 1;
		}
	}
	if (free_row == MONITOR_ROWS)
		return row_of_nobody(polling);
	row_start(polling, free_row, process, object->device, object->device_name, nth);
	return free_row;
}

/* hint: the row that it was in, or that of its parent; NOBODY: none. */
static __u32 row_of_object(struct polling *polling, const struct netlink_object *object, __u32 hint)
{
	struct process process;
	struct seat *seat;

	if (!object->pid)
		return hint == NOBODY ? row_of_nobody(polling) : hint;
	seat = &polling->seats[(object->pid * 31 + object->device) % SEATS];
	if (seat->step == polling->step && seat->task == object->pid &&
	    seat->device == object->device)
		return seat->row;
	if (!process_of(object->pid, &process) && hint != NOBODY)
		return hint;
	*seat = (struct seat){ polling->step, object->pid, object->device,
			       row_of_process(polling, &process, object) };
	polling->sums[seat->row].listed = true;
	return seat->row;
}

static void sum_add(struct sum *sum, const struct netlink_object *object)
{
	sum->live++;
	sum->now[object->counter]++;
	if (object->counter == KIND_mr)
		sum->now[KIND_mr_bytes] += object->size;
	if (object->counter == KIND_cq)
		sum->now[KIND_cqe] += object->size;
}

/* What has changed since the last step. A reader looks at gone first, then at made. */
static void row_settle(struct polling *polling, __u32 number)
{
	struct monitor_row *row = &polling->rows[number];
	const struct sum *sum = &polling->sums[number];
	bool ended;

	for (unsigned i = 0; i < MONITOR_COUNTERS; i++) {
		__u64 before = row->made[i] - row->gone[i];

		if (sum->now[i] > before)
			__atomic_store_n(&row->made[i], row->made[i] + (sum->now[i] - before),
					 __ATOMIC_RELEASE);
		else if (sum->now[i] < before)
			__atomic_store_n(&row->gone[i], row->gone[i] + (before - sum->now[i]),
					 __ATOMIC_RELEASE);
	}
	if (number == NOBODY && sum->live > row->live)
		__atomic_store_n(&polling->head->lost_rows,
				 polling->head->lost_rows + (__u64)(sum->live - row->live),
				 __ATOMIC_RELAXED);
	__atomic_store_n(&row->live, sum->live, __ATOMIC_RELAXED);
	ended = number == NOBODY || (!sum->listed && process_has_ended(row->pid, row->start_ns));
	__atomic_store_n(&row->exited, number != NOBODY && ended, __ATOMIC_RELAXED);
	if (!(row->generation & 1))
		__atomic_store_n(&row->generation, row->generation + 1, __ATOMIC_RELEASE);
	if (ended && !sum->live)
		row_free(polling, number);
}

/* ---- a step */

static int known_compare(const struct known *a, const struct known *b)
{
	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	if (a->counter != b->counter)
		return a->counter < b->counter ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

static struct known known_of(const struct netlink_object *object)
{
	return (struct known){ object->device, object->counter, object->number, NOBODY };
}

static int object_compare(const void *left, const void *right)
{
	struct known a = known_of(left), b = known_of(right);

	return known_compare(&a, &b);
}

/* The row of what it lies in. Parents come first in the order of objects. */
static __u32 row_of_parent(const struct known *placed, size_t count,
			   const struct netlink_object *object)
{
	struct known parent = { object->device, object->parent_counter, object->parent, NOBODY };
	size_t from = 0;

	while (from < count) {
		size_t middle = from + (count - from) / 2;
		int order = known_compare(&placed[middle], &parent);

		if (!order)
			return placed[middle].row;
		if (order < 0)
			from = middle + 1;
		else
			count = middle;
	}
	return NOBODY;
}

static int known_reserve(struct polling *polling, size_t count)
{
	size_t room = polling->known_room ? polling->known_room : 256;
	struct known *larger;

	while (room < count)
		room *= 2;
	if (room == polling->known_room)
		return 0;
	larger = reallocarray(polling->known, room, sizeof(*larger));
	if (!larger)
		return -ENOMEM;
	polling->known = larger;
	larger = reallocarray(polling->next, room, sizeof(*larger));
	if (!larger)
		return -ENOMEM;
	polling->next = larger;
	polling->known_room = room;
	return 0;
}

/* Each object to its row. */
static void objects_place(struct polling *polling, const struct netlink_object *objects,
			  size_t count)
{
	struct known *known = polling->known;
	struct known *end = known + polling->known_count;
	size_t placed = 0;

	for (size_t i = 0; i < count; i++) {
		const struct netlink_object *object = &objects[i];
		struct known here = known_of(object);

		/* The kernel counts its way through a list that may grow before it goes on. */
		if (placed && !known_compare(&polling->next[placed - 1], &here))
			continue;
		while (known < end && known_compare(known, &here) < 0)
			known++;
		if (known < end && !known_compare(known, &here))
			here.row = known->row;
		if (here.row == NOBODY)
			here.row = row_of_parent(polling->next, placed, object);
		here.row = row_of_object(polling, object, here.row);
		sum_add(&polling->sums[here.row], object);
		polling->next[placed++] = here;
	}
	known = polling->known;
	polling->known = polling->next;
	polling->next = known;
	polling->known_count = placed;
}

int polling_update(struct polling *polling, struct netlink_object *objects, size_t count,
		   __u64 observed)
{
	struct monitor_head *head = polling->head;
	int result = known_reserve(polling, count);

	if (result < 0)
		return result;
	polling->step++;
	memset(polling->sums, 0, polling->top * sizeof(polling->sums[0]));
	if (count)
		qsort(objects, count, sizeof(*objects), object_compare);
	objects_place(polling, objects, count);
	for (unsigned i = 0; i < polling->top; i++)
		if (polling->used[i])
			row_settle(polling, i);
	__atomic_store_n(&head->observed, observed, __ATOMIC_RELAXED);
	if (!head->seeded_ns)
		head->seeded = polling->known_count;
	__atomic_store_n(&head->beat_ns, clock_boot_ns(), __ATOMIC_RELAXED);
	__atomic_store_n(&head->seeded_ns, head->beat_ns, __ATOMIC_RELEASE);
	return 0;
}

static bool polling_is_current(const struct polling *polling)
{
	struct stat there;

	return !fstatat(polling->directory, "head", &there, AT_SYMLINK_NOFOLLOW) &&
	       there.st_ino == polling->identity.st_ino && there.st_dev == polling->identity.st_dev;
}

int polling_step(struct polling *polling, char problem[PROBLEM_SIZE])
{
	int result;

	if (!polling_is_current(polling))
		return problem_set(-ESTALE, problem,
				   "another rdma_monitor has taken over, or the files are gone");
	result = netlink_objects(&polling->list, problem);
	if (result < 0)
		return result;
	result = polling_update(polling, polling->list.objects, polling->list.count,
				polling->list.observed);
	if (result < 0)
		problem_set(result, problem, "%s", strerror(-result));
	return result;
}

/* ---- opening and closing */

static void polling_head_fill(struct monitor_head *head)
{
	head->magic = MONITOR_MAGIC;
	head->version = MONITOR_VERSION;
	head->rows = MONITOR_ROWS;
	head->kinds = kinds_signature();
	head->mode = MONITOR_NETLINK;
	if (getrandom(&head->load, sizeof(head->load), GRND_NONBLOCK) != sizeof(head->load))
		head->load = clock_boot_ns();
}

int polling_open(struct polling **ret_polling, const char *directory, char problem[PROBLEM_SIZE])
{
	struct polling *polling = calloc(1, sizeof(*polling));
	struct stat rows_identity;
	void *memory = NULL;
	int result;

	if (!directory || !directory[0])
		directory = MONITOR_FILES;
	if (!polling)
		return problem_set(-ENOMEM, problem, "%s", strerror(ENOMEM));
	polling->directory = -1;
	polling->top = 1;
	result = files_open(directory, &polling->directory, problem);
	if (result < 0)
		goto out;
	result =
		files_make(polling->directory, "rows", MONITOR_ROWS_BYTES, &memory, &rows_identity);
	if (result == 0) {
		polling->rows = memory;
		result = files_make(polling->directory, "head", sizeof(*polling->head), &memory,
				    &polling->identity);
	}
	if (result == 0) {
		polling->head = memory;
		polling_head_fill(polling->head);
		/* Readers look for the head first. */
		result = files_name(polling->directory, "rows");
	}
	if (result == 0)
		result = files_name(polling->directory, "head");
	if (result < 0)
		problem_set(result, problem, "%s: %s", directory, strerror(-result));
out:
	if (result < 0) {
		if (polling->directory >= 0) {
			files_discard(polling->directory, "rows");
			files_discard(polling->directory, "head");
		}
		polling_close(polling, false);
	} else {
		*ret_polling = polling;
	}
	return result;
}

void polling_close(struct polling *polling, bool remove)
{
	if (remove && polling_is_current(polling)) {
		unlinkat(polling->directory, "head", 0);
		unlinkat(polling->directory, "rows", 0);
	}
	if (polling->head)
		munmap(polling->head, sizeof(*polling->head));
	if (polling->rows)
		munmap(polling->rows, MONITOR_ROWS_BYTES);
	if (polling->directory >= 0)
		close(polling->directory);
	netlink_list_free(&polling->list);
	free(polling->known);
	free(polling->next);
	free(polling);
}
