/* SPDX-License-Identifier: MIT */
/*
 * Files as a whole: reading a small one, replacing one, making directories. For
 * programs of our own only: the preloaded library does not use them.
 */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

/* Reads until the file ends or the memory is full; how many bytes, or -errno. */
ssize_t file_read(int fd, char *memory, size_t size);

/* Reads the beginning of a file, at most size - 1 bytes, and ends it with a NUL. Its length, or
 * -errno with an empty text. */
ssize_t file_read_small(const char *path, char *text, size_t size);

/*
 * Replaces a file by what write() prints: a reader finds the old file or the whole new one. write()
 * returns 0 or -errno. The new file has the mode 0600. On failure (-errno) the old file stays.
 */
int file_replace(const char *path, int (*write)(FILE *file, const void *closure),
		 const void *closure);

/*
 * Makes a directory and those above it, as far as they do not exist. The modes are of those that it
 * makes: above, and of the directory itself; the umask applies unless `exactly`. 0 or -errno.
 */
int file_make_directories(const char *path, mode_t above, mode_t mode, bool exactly);

#endif
