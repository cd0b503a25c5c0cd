/* SPDX-License-Identifier: MIT */
/* The process at the other end of a connection: who it is, by the kernel's word alone. */
#ifndef COLLECTOR_PEER_H
#define COLLECTOR_PEER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct peer {
	pid_t pid;
	uid_t uid;
	gid_t gid;
	uint64_t start;
	int pidfd; /* the receiver closes it, or gives it to members_join */
};

/* The process as it was when it connected. -ESRCH when it has ended, -EXDEV when it is in a pid
 * namespace that we cannot see into. */
int peer_identify(int connection, uint64_t start, struct peer *ret_peer);

/* A pidfd of a process, whoever has the number now; -errno. */
int peer_pidfd_open(pid_t pid);
/* Whether these events of poll are there now: POLLIN of a pidfd is the end of its process. */
bool peer_fd_has_event(int fd, short events);

#endif
