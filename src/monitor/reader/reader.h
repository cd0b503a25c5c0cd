/* SPDX-License-Identifier: MIT */
/*
 * Reading what the kernel's programs have counted, from their pinned maps. Needs no
 * libbpf, and no right but that to open the maps; costs no system call
 * per row. How they came to be there is the loader's business.
 */
#ifndef MONITOR_READER_READER_H
#define MONITOR_READER_READER_H

#include <stdbool.h>

#include "base/problem.h"
#include "monitor/reader/rows.h"

struct monitor_reader {
	const struct monitor_head *head;
	const struct monitor_row *rows;
};

/* Where to look: what the environment names, the pinned maps, or the files in their stead. */
const char *monitor_directory(void);

/*
 * Opens the maps of a directory. 0, or -errno with a sentence:
 * -ENOENT when nothing is loaded, -EPROTO when another version loaded it.
 */
int monitor_reader_open(struct monitor_reader *ret_reader, const char *directory,
			char problem[PROBLEM_SIZE]);
void monitor_reader_close(struct monitor_reader *reader);

/* Whether what was opened is still what the directory holds. */
bool monitor_reader_is_current(const struct monitor_reader *reader, const char *directory);

/* Whether the process with which counting ends has ended. */
bool monitor_reader_is_stale(const struct monitor_reader *reader);

/*
 * A copy of the next row in use, in itself consistent; false at the end. *cursor is 0 at first.
 */
bool monitor_reader_next(const struct monitor_reader *reader, unsigned *cursor,
			 struct monitor_row *ret_row);

/* Bit c: what the rows say of counter c is complete. */
__u64 monitor_reader_observed(const struct monitor_reader *reader);

/* What a row holds now. */
static inline __u64 monitor_row_count(const struct monitor_row *row, unsigned counter)
{
	return row->made[counter] - row->gone[counter];
}

/* The start time as /proc/PID/stat and the ledger have it, in clock ticks. */
__u64 monitor_row_start(const struct monitor_row *row);

extern const char *const monitor_mode_names[];
extern const char *const monitor_counter_names[MONITOR_COUNTERS];
extern const char *const monitor_hook_functions[MONITOR_HOOKS];

#endif
