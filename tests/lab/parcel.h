/* SPDX-License-Identifier: MIT */
/* A message of one byte with room for a descriptor, for programs that pass files over sockets. */
#ifndef LAB_PARCEL_H
#define LAB_PARCEL_H

#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

struct parcel {
	struct msghdr header;
	struct iovec piece;
	char byte;
	union {
		struct cmsghdr aligned;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
};

/* To be received. */
static inline void parcel_wrap(struct parcel *parcel)
{
	memset(parcel, 0, sizeof(*parcel));
	parcel->piece = (struct iovec){ &parcel->byte, 1 };
	parcel->header.msg_iov = &parcel->piece;
	parcel->header.msg_iovlen = 1;
	parcel->header.msg_control = parcel->control.room;
	parcel->header.msg_controllen = sizeof(parcel->control.room);
}

/* To be sent, with a descriptor. */
static inline void parcel_wrap_file(struct parcel *parcel, int fd)
{
	struct cmsghdr *control;

	parcel_wrap(parcel);
	control = CMSG_FIRSTHDR(&parcel->header);
	control->cmsg_level = SOL_SOCKET;
	control->cmsg_type = SCM_RIGHTS;
	control->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(control), &fd, sizeof(fd));
}

#endif
