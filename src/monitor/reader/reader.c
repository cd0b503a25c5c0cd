/* SPDX-License-Identifier: MIT */
/* The maps as memory; see reader.h. */
#include "monitor/reader/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/bpf.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"

enum { STALE_SECONDS = 5 };

const char *const monitor_mode_names[] = {
	[MONITOR_NONE] = "none",
	[MONITOR_FENTRY] = "fentry",
	[MONITOR_KPROBE] = "kprobe",
	[MONITOR_NETLINK] = "netlink",
};

const char *const monitor_counter_names[MONITOR_COUNTERS] = {
#define KIND(name, unit, form, rdmacg, kernel, guarded, text) #name,
#include "terms/kinds.def"
#undef KIND
	[MONITOR_driver] = "driver",
	[MONITOR_other] = "other",
};

const char *monitor_directory(void)
{
	const char *named = getenv(MONITOR_VARIABLE);

	if (named && named[0])
		return named;
	return access(MONITOR_DIRECTORY "/head", F_OK) && !access(MONITOR_FILES "/head", F_OK) ?
		       MONITOR_FILES :
		       MONITOR_DIRECTORY;
}

const char *const monitor_hook_functions[MONITOR_HOOKS] = {
#define HOOK(name, function, counters) #function,
#include "monitor/reader/hooks.def"
#undef HOOK
};

static int reader_map_open(const char *path)
{
	union bpf_attr attr;
	int fd;

	/* For writing too: the kernel maps no map that was opened for reading only. The
	 * mapping is read-only, and the descriptor is closed at once. */
	memset(&attr, 0, sizeof(attr)); /* all of it: the kernel looks */
	attr.pathname = (__u64)(uintptr_t)path;
	fd = (int)syscall(SYS_bpf, BPF_OBJ_GET, &attr, sizeof(attr));
	return fd < 0 ? -errno : fd;
}

/* Read-only memory of what lies there: a pinned map, or a file of the same layout. */
static const void *reader_map(const char *directory, const char *name, size_t bytes, int *ret_error)
{
	char path[PATH_MAX];
	struct statfs where;
	struct stat file;
	void *found = MAP_FAILED;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	if (statfs(path, &where)) {
		*ret_error = -errno;
		return NULL;
	}
	if (where.f_type == BPF_FS_MAGIC)
		fd = reader_map_open(path);
	else if ((fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
		fd = -errno;
	*ret_error = fd;
	if (fd < 0)
		return NULL;
	/* A shorter file would be SIGBUS; a map says its own size when it is mapped. */
	if (where.f_type != BPF_FS_MAGIC && (fstat(fd, &file) || (size_t)file.st_size < bytes))
		errno = EPROTO;
	else
		found = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
	*ret_error = found == MAP_FAILED ? -errno : 0;
	close(fd);
	return found == MAP_FAILED ? NULL : found;
}

int monitor_reader_open(struct monitor_reader *ret_reader, const char *directory, char *problem,
			size_t size)
{
	const struct monitor_head *head;
	struct monitor_reader reader;
	int result;

	head = reader_map(directory, "head", sizeof(*head), &result);
	if (!head) {
		snprintf(problem, size,
			 result == -ENOENT ? "%s: no rdma_monitor is loaded" : "%s/head: %s",
			 directory, strerror(-result));
		return result;
	}
	if (!__atomic_load_n(&head->magic, __ATOMIC_ACQUIRE)) {
		snprintf(problem, size, "%s: rdma_monitor is just being loaded", directory);
		munmap((void *)head, sizeof(*head));
		return -ENOENT;
	}
	if (head->magic != MONITOR_MAGIC || head->version != MONITOR_VERSION ||
	    head->rows != MONITOR_ROWS || head->kinds != kinds_signature()) {
		snprintf(problem, size,
			 "%s: another version of rdma_monitor is loaded (layout %u, this is %u%s); "
			 "take it out with: rdma_monitor --unload",
			 directory, head->version, MONITOR_VERSION,
			 head->version == MONITOR_VERSION ? ", other kinds or sizes" : "");
		munmap((void *)head, sizeof(*head));
		return -EPROTO;
	}
	reader.head = head;
	reader.rows = reader_map(directory, "rows", MONITOR_ROWS_BYTES, &result);
	if (!reader.rows) {
		snprintf(problem, size, "%s/rows: %s", directory, strerror(-result));
		munmap((void *)head, sizeof(*head));
		return result;
	}
	*ret_reader = reader;
	return 0;
}

void monitor_reader_close(struct monitor_reader *reader)
{
	munmap((void *)reader->head, sizeof(*reader->head));
	munmap((void *)reader->rows, MONITOR_ROWS_BYTES);
}

/* Each load has a number of its own. */
bool monitor_reader_is_current(const struct monitor_reader *reader, const char *directory)
{
	const struct monitor_head *now;
	bool same;
	int result;

	now = reader_map(directory, "head", sizeof(*now), &result);
	if (!now)
		return false;
	same = now->load == reader->head->load;
	munmap((void *)now, sizeof(*now));
	return same;
}

bool monitor_reader_is_stale(const struct monitor_reader *reader)
{
	__u64 beat = __atomic_load_n(&reader->head->beat_ns, __ATOMIC_RELAXED);

	return beat && beat + STALE_SECONDS * 1000000000ull < clock_boot_ns();
}

__u64 monitor_reader_observed(const struct monitor_reader *reader)
{
	__u64 observed = __atomic_load_n(&reader->head->observed, __ATOMIC_RELAXED);

	if (__atomic_load_n(&reader->head->depthless, __ATOMIC_RELAXED))
		observed &= ~(1ull << KIND_send_wr | 1ull << KIND_recv_wr);
	if (__atomic_load_n(&reader->head->lengthless, __ATOMIC_RELAXED))
		observed &= ~(1ull << KIND_mr_bytes);
	return observed;
}

/* A row may be freed and taken while it is copied: its generation tells. */
static bool row_copy(const struct monitor_row *row, struct monitor_row *ret_row)
{
	__u64 before = __atomic_load_n(&row->generation, __ATOMIC_ACQUIRE);

	if (!(before & 1))
		return false;
	memcpy(ret_row, row, sizeof(*row));
	/* Freed first, made later: a difference is never negative. */
	for (unsigned i = 0; i < MONITOR_COUNTERS; i++) {
		ret_row->gone[i] = __atomic_load_n(&row->gone[i], __ATOMIC_ACQUIRE);
		ret_row->made[i] = __atomic_load_n(&row->made[i], __ATOMIC_ACQUIRE);
	}
	__sync_synchronize(); /* what was copied was read before this */
	return __atomic_load_n(&row->generation, __ATOMIC_RELAXED) == before;
}

bool monitor_reader_next(const struct monitor_reader *reader, unsigned *cursor,
			 struct monitor_row *ret_row)
{
	while (*cursor < MONITOR_ROWS)
		if (row_copy(&reader->rows[(*cursor)++], ret_row))
			return true;
	return false;
}

__u64 monitor_row_start(const struct monitor_row *row)
{
	return row->start_ns / (1000000000 / (__u64)sysconf(_SC_CLK_TCK));
}
