/* SPDX-License-Identifier: MIT */
/* Any bytes as the shared file: refused with a sentence, or a ledger by its signature. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ledger/layout.h"
#include "ledger/shmfile.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	char name[64], path[96], problem[PROBLEM_SIZE];
	struct shmfile file;
	int fd, result;

	snprintf(name, sizeof(name), "rdma_fuzz.%d", (int)getpid());
	snprintf(path, sizeof(path), "/dev/shm/%s", name);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	close(fd);
	result = shmfile_observe(&file, name, problem);
	if (result == 0) {
		shmfile_close(&file);
		shmfile_unmap(file.header);
	} else if (!strstr(problem, path)) {
		abort();
	}
	unlink(path);
	return 0;
}
