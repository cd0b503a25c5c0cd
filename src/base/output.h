/* SPDX-License-Identifier: MIT */
/*
 * Writing inside a guarded program. No function here raises a signal in it, waits for a
 * reader, writes into a file that is not meant, is a cancellation point or changes errno.
 * A text that cannot be written so is dropped.
 */
#ifndef BASE_OUTPUT_H
#define BASE_OUTPUT_H

#include <stddef.h>
#include <sys/types.h>

/* write(), without SIGPIPE, SIGXFSZ and SIGTTOU. The number of bytes, or -errno. */
ssize_t output_write(int fd, const void *data, size_t size);

/* A line, of at most a page, to what descriptor 2 led to when the program began. */
void output_stderr(const void *line, size_t size);

#endif
