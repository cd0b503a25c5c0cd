/* SPDX-License-Identifier: MIT */
/* Descriptors in the control part of a message; see descriptors.h. */
#include "base/descriptors.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

void descriptors_attach(struct msghdr *message, union descriptors *memory, const int *fds,
			unsigned count)
{
	if (!count)
		return;
	memset(memory, 0, sizeof(*memory));
	memory->header.cmsg_level = SOL_SOCKET;
	memory->header.cmsg_type = SCM_RIGHTS;
	memory->header.cmsg_len = CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(&memory->header), fds, count * sizeof(int));
	message->msg_control = memory;
	message->msg_controllen = CMSG_SPACE(count * sizeof(int));
}

void descriptors_expect(struct msghdr *message, union descriptors *memory)
{
	message->msg_control = memory;
	message->msg_controllen = sizeof(*memory);
}

int descriptors_take(struct msghdr *message, int fds[DESCRIPTORS_MAX], unsigned *count)
{
	int result = message->msg_flags & MSG_CTRUNC ? -EMFILE : 0;

	for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part;
	     part = CMSG_NXTHDR(message, part)) {
		size_t length = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		int fd;

		if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < length; i++) {
			memcpy(&fd, CMSG_DATA(part) + i * sizeof(fd), sizeof(fd));
			if (*count < DESCRIPTORS_MAX) {
				fds[(*count)++] = fd;
			} else {
				syscall(SYS_close, fd);
				result = -EMFILE;
			}
		}
	}
	return result;
}
