/* SPDX-License-Identifier: MIT */
/* Pinned maps, opened and mapped; see pinned_map.h. */
#include "monitor/reader/pinned_map.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/magic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

int pinned_map_call(int command, union bpf_attr *attr)
{
	int result = (int)syscall(SYS_bpf, command, attr, sizeof(*attr));

	return result < 0 ? -errno : result;
}

int pinned_map_open(const char *path, int protection, bool *ret_is_map)
{
	union bpf_attr attr;
	struct statfs where;
	int fd;

	if (statfs(path, &where))
		return -errno;
	*ret_is_map = where.f_type == BPF_FS_MAGIC;
	if (*ret_is_map) {
		/* Always for writing, too: the kernel maps no map that was opened for reading
		 * only. */
		memset(&attr, 0, sizeof(attr)); /* all of it: the kernel looks */
		attr.pathname = (__u64)(uintptr_t)path;
		return pinned_map_call(BPF_OBJ_GET, &attr);
	}
	fd = open(path, (protection & PROT_WRITE ? O_RDWR : O_RDONLY) | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

bool pinned_map_is_whole(const struct stat *file, bool is_map, size_t bytes)
{
	return is_map || (size_t)file->st_size >= bytes;
}

int pinned_map_memory(const char *path, size_t bytes, int protection, void **ret_memory,
		      ino_t *ret_inode)
{
	void *memory = MAP_FAILED;
	struct stat file;
	bool is_map = false;
	int result, fd;

	/* Before it is opened: what takes its place meanwhile is noticed later. */
	if (stat(path, &file))
		return -errno;
	fd = pinned_map_open(path, protection, &is_map);
	if (fd < 0)
		return fd;
	if ((is_map || !fstat(fd, &file)) && pinned_map_is_whole(&file, is_map, bytes))
		memory = mmap(NULL, bytes, protection, MAP_SHARED, fd, 0);
	else
		errno = EPROTO;
	result = memory == MAP_FAILED ? -errno : 0;
	close(fd);
	if (result < 0)
		return result;
	*ret_memory = memory;
	if (ret_inode)
		*ret_inode = file.st_ino;
	return 0;
}
