/* SPDX-License-Identifier: MIT */
/* The kernel's counts, by process; see kernel_usage.h. */
#include "collector/kernel_usage.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include "base/clock.h"

/* The inode of the first pid namespace, the same on every Linux. */
#define FIRST_PID_NAMESPACE 0xeffffffcu

enum { BUCKETS = 4096 };

struct kernel_sample {
	unsigned processes, parts;
	uint64_t unowned[KIND_COUNT]; /* of processes for which the monitor had no row left */
	uint32_t bucket[BUCKETS];
	struct kernel_process process[MONITOR_ROWS];
	struct kernel_part part[MONITOR_ROWS];
};

/* ---- the monitor */

bool kernel_is_exact(const struct kernel_usage *usage)
{
	return usage->mode == MONITOR_FENTRY || usage->mode == MONITOR_KPROBE;
}

bool kernel_is_complete(const struct kernel_usage *usage)
{
	const struct monitor_head *head = usage->reader.head;

	return kernel_is_exact(usage) && __atomic_load_n(&head->seeded_ns, __ATOMIC_ACQUIRE) &&
	       !__atomic_load_n(&head->lost_objects, __ATOMIC_RELAXED) &&
	       !__atomic_load_n(&head->lost_rows, __ATOMIC_RELAXED);
}

uint64_t kernel_observed(const struct kernel_usage *usage)
{
	uint64_t observed = usage->reader.head ? monitor_reader_observed(&usage->reader) : 0;

	return observed & ((1ull << KIND_COUNT) - 1);
}

static int sample_memory(struct kernel_usage *usage)
{
	if (!usage->now)
		usage->now = calloc(1, sizeof(*usage->now));
	if (!usage->spare)
		usage->spare = calloc(1, sizeof(*usage->spare));
	return usage->now && usage->spare ? 0 : -ENOMEM;
}

static void sample_clear(struct kernel_sample *sample)
{
	sample->processes = sample->parts = 0;
	memset(sample->unowned, 0, sizeof(sample->unowned));
	memset(sample->bucket, 0xff, sizeof(sample->bucket));
}

/* What another monitor, or none, has counted says nothing any more. */
static void kernel_forget(struct kernel_usage *usage)
{
	if (usage->reader.head)
		monitor_reader_close(&usage->reader);
	usage->reader = (struct monitor_reader){ NULL, NULL };
	usage->generation++;
	usage->mode = MONITOR_NONE;
	usage->taken_ns = 0;
	if (usage->now)
		sample_clear(usage->now);
	memset(usage->device, 0, sizeof(usage->device));
}

void kernel_close(struct kernel_usage *usage)
{
	kernel_forget(usage);
	free(usage->now);
	free(usage->spare);
	*usage = (struct kernel_usage){ .looked = false };
}

/* A file that was cut while we have it mapped would be our SIGBUS. Maps cannot be. */
static bool monitor_rows_are_whole(const char *directory)
{
	char path[PATH_MAX + 8];
	struct statfs where;
	struct stat status;

	snprintf(path, sizeof(path), "%s/rows", directory);
	if (statfs(path, &where) || stat(path, &status))
		return false;
	return where.f_type == BPF_FS_MAGIC ||
	       (size_t)status.st_size >= MONITOR_ROWS * sizeof(struct monitor_row);
}

/* Programs in the kernel count by the numbers that processes have on the host. */
static bool monitor_numbers_are_ours(const char *directory)
{
	struct stat status;

	return strcmp(directory, MONITOR_DIRECTORY) || stat("/proc/self/ns/pid", &status) ||
	       status.st_ino == FIRST_PID_NAMESPACE;
}

/* Opens what is there; 0, or -errno with a sentence. */
static int monitor_open(struct kernel_usage *usage, char problem[PROBLEM_SIZE])
{
	int result = monitor_reader_open(&usage->reader, usage->directory, problem);

	if (result < 0)
		return result;
	usage->mode = usage->reader.head->mode;
	if (!monitor_numbers_are_ours(usage->directory)) {
		result = problem_set(
			-EXDEV, problem,
			"%.100s: counts processes of the host, and the collector is in a pid "
			"namespace of its own",
			usage->directory);
	} else if (usage->mode == MONITOR_NONE || usage->mode > MONITOR_NETLINK) {
		result = problem_set(-ENODATA, problem,
				     "%.100s: rdma_monitor is loaded, and its programs are not attached",
				     usage->directory);
	} else if (monitor_reader_is_stale(&usage->reader)) {
		result = problem_set(-ESTALE, problem,
				     "%.100s: the rdma_monitor that counted by %s has ended",
				     usage->directory, monitor_mode_names[usage->mode]);
	} else {
		result = sample_memory(usage);
		if (result < 0)
			problem_set(result, problem, "no memory for what the monitor counts");
	}
	if (result < 0)
		kernel_forget(usage);
	return result;
}

/* Each load is another one. */
void kernel_find(struct kernel_usage *usage, const struct log *log)
{
	char problem[PROBLEM_SIZE] = "";
	int result;

	usage->looked = true;
	if (usage->reader.head && monitor_rows_are_whole(usage->directory) &&
	    !strcmp(usage->directory, monitor_directory()) &&
	    monitor_reader_is_current(&usage->reader, usage->directory) &&
	    !monitor_reader_is_stale(&usage->reader))
		return;
	kernel_forget(usage);
	snprintf(usage->directory, sizeof(usage->directory), "%s", monitor_directory());
	result = monitor_open(usage, problem);
	if (result == 0)
		log_write(log, LOG_INFO, "%s: rdma_monitor watches the kernel by %s", usage->directory,
			  monitor_mode_names[usage->mode]);
	else if (strcmp(problem, usage->problem))
		log_write(log, result == -ENOENT ? LOG_INFO : LOG_WARN, "%s", problem);
	memcpy(usage->problem, problem, sizeof(problem));
}

/* ---- a sample: the rows, by process */

static uint32_t *sample_bucket(struct kernel_sample *sample, pid_t pid, uint64_t start)
{
	return &sample->bucket[((uint64_t)pid * 2654435761u ^ start) % BUCKETS];
}

static struct kernel_process *sample_process(struct kernel_sample *sample, pid_t pid,
					     uint64_t start)
{
	uint32_t at = *sample_bucket(sample, pid, start);

	while (at != UINT32_MAX &&
	       (sample->process[at].pid != pid || sample->process[at].start != start))
		at = sample->process[at].next;
	return at == UINT32_MAX ? NULL : &sample->process[at];
}

/* One that was there before keeps what was found out about it. */
static struct kernel_process *sample_process_add(struct kernel_sample *sample,
						 struct kernel_sample *before,
						 const struct monitor_row *row)
{
	uint64_t start = monitor_row_start(row);
	struct kernel_process *process = &sample->process[sample->processes],
			      *old = sample_process(before, (pid_t)row->pid, start);
	uint32_t *bucket = sample_bucket(sample, (pid_t)row->pid, start);

	*process = old ? *old :
			 (struct kernel_process){ .start = start,
						  .pid = (pid_t)row->pid,
						  .uid = row->uid };
	memcpy(process->command, row->command, sizeof(process->command));
	process->command[sizeof(process->command) - 1] = '\0';
	process->holds = process->driver = false;
	memset(process->kernel, 0, sizeof(process->kernel));
	memset(process->moves, 0, sizeof(process->moves));
	process->parts = UINT32_MAX;
	process->next = *bucket;
	*bucket = sample->processes++;
	return process;
}

static void process_add_row(struct kernel_process *process, const struct monitor_row *row)
{
	for (unsigned i = 0; i < MONITOR_COUNTERS; i++)
		process->holds |= monitor_row_count(row, i) != 0;
	process->driver |= monitor_row_count(row, MONITOR_driver) != 0;
	for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
		process->kernel[kind] += monitor_row_count(row, kind);
		process->moves[kind] += row->made[kind] + row->gone[kind];
	}
}

unsigned kernel_device_find(const struct kernel_usage *usage, const char *name)
{
	unsigned device = LEDGER_NAMELESS + 1;

	if (!name[0])
		return LEDGER_NAMELESS;
	while (device < DEVICES_MAX && strcmp(usage->device[device], name))
		device++;
	return device;
}

/* The number of a row's device, given to it if it is new. */
static unsigned row_device(struct kernel_usage *usage, struct monitor_row *row)
{
	unsigned device;

	row->device_name[sizeof(row->device_name) - 1] = '\0';
	if (row->device == MONITOR_NO_DEVICE)
		return LEDGER_NAMELESS;
	device = kernel_device_find(usage, row->device_name);
	if (device < DEVICES_MAX)
		return device;
	for (device = LEDGER_NAMELESS + 1; device < DEVICES_MAX; device++)
		if (!usage->device[device][0]) {
			snprintf(usage->device[device], sizeof(usage->device[device]), "%s",
				 row->device_name);
			return device;
		}
	return LEDGER_NAMELESS;
}

static void process_add_part(struct kernel_usage *usage, struct kernel_sample *sample,
			     struct kernel_process *process, struct monitor_row *row,
			     unsigned number)
{
	struct kernel_part *part = &sample->part[sample->parts];

	*part = (struct kernel_part){ .next = process->parts,
				      .row = number,
				      .device = row_device(usage, row) };
	for (unsigned kind = 0; kind < KIND_COUNT; kind++)
		part->kernel[kind] = monitor_row_count(row, kind);
	process->parts = sample->parts++;
}

void kernel_sample(struct kernel_usage *usage)
{
	struct kernel_sample *sample = usage->spare, *before = usage->now;
	struct kernel_process *process;
	struct monitor_row row;
	unsigned cursor = 0;

	usage->taken_ns = clock_now_ns();
	if (!before->processes)
		sample_clear(before);
	sample_clear(sample);
	while (monitor_reader_next(&usage->reader, &cursor, &row)) {
		/* Where not even the time of the start is known, the number may be anybody's. */
		if (!row.pid || !row.start_ns) {
			for (unsigned kind = 0; kind < KIND_COUNT; kind++)
				sample->unowned[kind] += monitor_row_count(&row, kind);
			continue;
		}
		process = sample_process(sample, (pid_t)row.pid, monitor_row_start(&row));
		if (!process)
			process = sample_process_add(sample, before, &row);
		process_add_row(process, &row);
		process_add_part(usage, sample, process, &row, cursor - 1);
	}
	/* The sample before gives its memory to the next one. */
	usage->now = sample;
	usage->spare = before;
}

/* ---- what was found */

unsigned kernel_processes(const struct kernel_usage *usage)
{
	return usage->taken_ns ? usage->now->processes : 0;
}

struct kernel_process *kernel_process_at(const struct kernel_usage *usage, unsigned number)
{
	return &usage->now->process[number];
}

struct kernel_process *kernel_process_of(const struct kernel_usage *usage, pid_t pid,
					 uint64_t start)
{
	return usage->taken_ns ? sample_process(usage->now, pid, start) : NULL;
}

const struct kernel_part *kernel_part_next(const struct kernel_usage *usage,
					   const struct kernel_process *process,
					   const struct kernel_part *part)
{
	uint32_t next = part ? part->next : process->parts;

	return next == UINT32_MAX ? NULL : &usage->now->part[next];
}

const uint64_t *kernel_unowned(const struct kernel_usage *usage)
{
	static const uint64_t nothing[KIND_COUNT];

	return usage->taken_ns ? usage->now->unowned : nothing;
}

uint32_t kernel_devices_of(const struct kernel_usage *usage, const struct kernel_process *process,
			   uint64_t ret_kernel[DEVICES_MAX][KIND_COUNT])
{
	uint32_t found = 0;

	for (uint32_t at = process->parts; at != UINT32_MAX; at = usage->now->part[at].next) {
		const struct kernel_part *part = &usage->now->part[at];
		uint64_t *sum = ret_kernel[part->device];

		for (unsigned kind = 0; kind < KIND_COUNT; kind++)
			sum[kind] =
				(found >> part->device & 1 ? sum[kind] : 0) + part->kernel[kind];
		found |= 1u << part->device;
	}
	return found;
}

void kernel_look_again(const struct kernel_usage *usage, const struct kernel_process *process,
		       struct kernel_process *ret_process)
{
	*ret_process = (struct kernel_process){ .parts = UINT32_MAX };
	for (uint32_t at = process ? process->parts : UINT32_MAX; at != UINT32_MAX;
	     at = usage->now->part[at].next) {
		unsigned number = usage->now->part[at].row, cursor = number;
		struct monitor_row row;

		if (monitor_reader_next(&usage->reader, &cursor, &row) && cursor == number + 1 &&
		    (pid_t)row.pid == process->pid && monitor_row_start(&row) == process->start)
			process_add_row(ret_process, &row);
	}
}
