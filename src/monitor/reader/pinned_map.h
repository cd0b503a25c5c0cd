/* SPDX-License-Identifier: MIT */
/*
 * A map as memory: one that is pinned in the bpf file system, or a file of the same layout, which
 * a polling rdma_monitor writes. Without libbpf.
 */
#ifndef MONITOR_READER_PINNED_MAP_H
#define MONITOR_READER_PINNED_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

union bpf_attr;

/* The system call bpf(): its result, or -errno. */
int pinned_map_call(int command, union bpf_attr *attr);

/* Opens what lies at the path; protection as for mmap(). A descriptor, or -errno. */
int pinned_map_open(const char *path, int protection, bool *ret_is_map);

/* Whether so many bytes can be read there: a shorter file would be SIGBUS, and a map says its own
 * size when it is mapped. */
bool pinned_map_is_whole(const struct stat *file, bool is_map, size_t bytes);

/* Its memory, and the inode of the path (NULL: not wanted). 0, or -errno: -EPROTO if it is too
 * short. */
int pinned_map_memory(const char *path, size_t bytes, int protection, void **ret_memory,
		      ino_t *ret_inode);

#endif
