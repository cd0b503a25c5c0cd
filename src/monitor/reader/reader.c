/* SPDX-License-Identifier: MIT */
/* The maps as memory; see reader.h. */
#include "monitor/reader/reader.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "monitor/reader/pinned_map.h"

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

static int reader_map(const char *directory, const char *name, size_t bytes, void **ret_memory)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	return pinned_map_memory(path, bytes, PROT_READ, ret_memory, NULL);
}

int monitor_reader_open(struct monitor_reader *ret_reader, const char *directory,
			char problem[PROBLEM_SIZE])
{
	const struct monitor_head *head;
	void *memory;
	int result = reader_map(directory, "head", sizeof(*head), &memory);

	if (result < 0)
		return problem_set(result, problem,
				   result == -ENOENT ? "%s: no rdma_monitor is loaded" :
						       "%s/head: %s",
				   directory, strerror(-result));
	head = memory;
	if (!__atomic_load_n(&head->magic, __ATOMIC_ACQUIRE)) {
		munmap(memory, sizeof(*head));
		return problem_set(-ENOENT, problem, "%s: rdma_monitor is just being loaded",
				   directory);
	}
	if (head->magic != MONITOR_MAGIC || head->version != MONITOR_VERSION ||
	    head->rows != MONITOR_ROWS || head->kinds != kinds_signature()) {
		problem_set(-EPROTO, problem,
			    "%s: another version of rdma_monitor is loaded (layout %u, this is "
			    "%u%s); unload it with: rdma_monitor --unload",
			    directory, head->version, MONITOR_VERSION,
			    head->version == MONITOR_VERSION ? ", other kinds or sizes" : "");
		munmap(memory, sizeof(*head));
		return -EPROTO;
	}
	result = reader_map(directory, "rows", MONITOR_ROWS_BYTES, &memory);
	if (result < 0) {
		munmap((void *)head, sizeof(*head));
		return problem_set(result, problem, "%s/rows: %s", directory, strerror(-result));
	}
	*ret_reader = (struct monitor_reader){ .head = head, .rows = memory };
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
	struct monitor_head *now;
	void *memory;
	bool same;

	if (reader_map(directory, "head", sizeof(*now), &memory) < 0)
		return false;
	now = memory;
	same = now->load == reader->head->load;
	munmap(now, sizeof(*now));
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
