/* SPDX-License-Identifier: MIT */
/* Writing a monitor's files; see kernel.h. */
#include "kernel.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "ledger/identity.h"

struct monitor_head *kernel_head;
struct monitor_row *kernel_rows;

static void *file_map(const char *directory, const char *name, size_t bytes, int flags)
{
	char path[PATH_MAX];
	void *memory;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(path, O_RDWR | O_CLOEXEC | flags, 0644);
	if (fd < 0 || (flags & O_CREAT && ftruncate(fd, (off_t)bytes)))
		abort();
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		abort();
	close(fd);
	return memory;
}

static void files_map(const char *directory, const char *end, int flags)
{
	char head[16], rows[16];

	snprintf(head, sizeof(head), "head%s", end);
	snprintf(rows, sizeof(rows), "rows%s", end);
	kernel_rows = file_map(directory, rows, MONITOR_ROWS * sizeof(*kernel_rows), flags);
	kernel_head = file_map(directory, head, sizeof(*kernel_head), flags);
}

static void file_rename(const char *directory, const char *from, const char *to)
{
	char old[PATH_MAX], new[PATH_MAX];

	snprintf(old, sizeof(old), "%s/%s", directory, from);
	snprintf(new, sizeof(new), "%s/%s", directory, to);
	if (rename(old, new))
		abort();
}

void kernel_load(const char *directory, enum monitor_mode mode)
{
	static __u64 loads;
	struct timespec now;

	mkdir(directory, 0755);
	clock_gettime(CLOCK_REALTIME, &now);
	files_map(directory, "~", O_CREAT | O_EXCL);
	*kernel_head = (struct monitor_head){
		.magic = MONITOR_MAGIC,
		.version = MONITOR_VERSION,
		.rows = MONITOR_ROWS,
		.kinds = kinds_signature(),
		.load = (__u64)now.tv_nsec << 8 | ++loads,
		.mode = mode,
		.observed = (1ull << MONITOR_COUNTERS) - 1,
		.seeded_ns = 1,
	};
	kernel_rows[0].generation = 1; /* of nobody */
	/* The rows first: a reader that finds another head opens both anew. */
	file_rename(directory, "rows~", "rows");
	file_rename(directory, "head~", "head");
}

void kernel_open(const char *directory)
{
	files_map(directory, "", 0);
}

void kernel_unload(const char *directory)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/head", directory);
	unlink(path);
	snprintf(path, sizeof(path), "%s/rows", directory);
	unlink(path);
}

unsigned kernel_row(pid_t pid, const char *device, const char *command)
{
	const __u64 tick_ns = 1000000000 / (__u64)sysconf(_SC_CLK_TCK);
	struct monitor_row *row;
	unsigned number = 1;

	if (!pid)
		return 0;
	while (kernel_rows[number].generation & 1)
		number++;
	row = &kernel_rows[number];
	/* Somewhere in its tick, as the kernel would have it. */
	row->start_ns = identity_start(pid) * tick_ns + tick_ns / 3;
	row->pid = (__u32)pid;
	row->device = device[0] ? 1 : MONITOR_NO_DEVICE;
	row->uid = geteuid();
	memset(row->made, 0, sizeof(row->made));
	memset(row->gone, 0, sizeof(row->gone));
	snprintf(row->device_name, sizeof(row->device_name), "%s", device);
	snprintf(row->command, sizeof(row->command), "%s", command);
	__atomic_add_fetch(&row->generation, 1, __ATOMIC_SEQ_CST);
	return number;
}

void kernel_set(unsigned row, unsigned counter, uint64_t amount)
{
	struct monitor_row *at = &kernel_rows[row];
	__u64 now = at->made[counter] - at->gone[counter];

	if (amount > now)
		__atomic_add_fetch(&at->made[counter], amount - now, __ATOMIC_SEQ_CST);
	else
		__atomic_add_fetch(&at->gone[counter], now - amount, __ATOMIC_SEQ_CST);
}

void kernel_clear(unsigned row)
{
	for (unsigned counter = 0; counter < MONITOR_COUNTERS; counter++)
		kernel_set(row, counter, 0);
}

void kernel_free(unsigned row)
{
	__atomic_add_fetch(&kernel_rows[row].generation, 1, __ATOMIC_SEQ_CST);
}
