/* SPDX-License-Identifier: MIT */
/*
 * Descriptors that travel with a message over a local socket. Nothing here is a cancellation
 * point: the library calls it inside of other programs.
 */
#ifndef BASE_DESCRIPTORS_H
#define BASE_DESCRIPTORS_H

#include <sys/socket.h>

enum { DESCRIPTORS_MAX = 2 }; /* with one message */

/* Memory for the part of a message that carries the descriptors. */
union descriptors {
	struct cmsghdr header;
	char space[CMSG_SPACE(DESCRIPTORS_MAX * sizeof(int))];
};

/* Adds descriptors to a message that will be sent; the memory must live until then. */
void descriptors_attach(struct msghdr *message, union descriptors *memory, const int *fds,
			unsigned count);

/* Makes a message ready to receive descriptors. */
void descriptors_expect(struct msghdr *message, union descriptors *memory);

/* Appends the descriptors of a received message to those in fds, up to DESCRIPTORS_MAX, and closes
 * the rest. 0, or -EMFILE if some were closed, or dropped by the kernel. */
int descriptors_take(struct msghdr *message, int fds[DESCRIPTORS_MAX], unsigned *count);

#endif
