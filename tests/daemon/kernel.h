/* SPDX-License-Identifier: MIT */
/*
 * A kernel that has what the test says: the files of a monitor, as rdma_monitor leaves
 * them, for the collector to read. Knows the layout and nothing of who reads it.
 */
#ifndef TESTS_DAEMON_KERNEL_H
#define TESTS_DAEMON_KERNEL_H

#include <sys/types.h>

#include "monitor/reader/rows.h"

extern struct monitor_head *kernel_head;
extern struct monitor_row *kernel_rows;

/* New files in a directory, made if need be, in place of those that are there: everything
 * is observed, nothing lost, and there is nothing. Each load has another number. */
void kernel_load(const char *directory, enum monitor_mode mode);

/* Those that somebody else has made. */
void kernel_open(const char *directory);

void kernel_unload(const char *directory);

/* A row for a living process on a device; pid 0: the first row. Empty. */
unsigned kernel_row(pid_t pid, const char *device, const char *command);

/* It has so much of a counter now. */
void kernel_set(unsigned row, unsigned counter, uint64_t amount);

/* All of it is gone; and so is the row. */
void kernel_clear(unsigned row);
void kernel_free(unsigned row);

#endif
