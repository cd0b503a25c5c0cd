/* SPDX-License-Identifier: MIT */
/*
 * What /proc tells of a process. Nothing here is a cancellation point: the library calls it
 * inside of other programs.
 */
#ifndef BASE_PROC_H
#define BASE_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Reads /proc/PID/NAME, at most size - 1 bytes and a NUL: the number of bytes, or -errno. */
ssize_t proc_read(pid_t pid, const char *name, char *text, size_t size);

/* From /proc/PID/stat. */
struct proc_stat {
	char state;
	unsigned long threads;
	uint64_t start; /* clock ticks from boot to its start */
};
/* 0; -ENOENT or -ESRCH if there is no such process, or another -errno. */
int proc_stat_read(pid_t pid, struct proc_stat *ret_stat);

/* A leader that called pthread_exit is a zombie too while its threads live. */
bool proc_stat_has_ended(const struct proc_stat *stat);

/* The length of a clock tick. */
uint64_t proc_tick_ns(void);

#endif
