/* SPDX-License-Identifier: MIT */
/* Who is at the other end; see peer.h. */
#include "collector/peer.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ledger/identity.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5 */
#endif

int peer_pidfd_open(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	return fd < 0 ? -errno : fd;
}

bool peer_fd_has_event(int fd, short events)
{
	struct pollfd poll_fd = { .fd = fd, .events = events };

	return poll(&poll_fd, 1, 0) > 0 && poll_fd.revents;
}

/* A pidfd of the peer. Older kernels give only its number, which may be another's by now:
 * it is the peer's if the same process had it before and after, and it has not ended. */
static int peer_pidfd(int connection, pid_t pid, uint64_t *ret_start)
{
	socklen_t size = sizeof(int);
	int fd = -1;

	*ret_start = identity_start(pid);
	if (getsockopt(connection, SOL_SOCKET, SO_PEERPIDFD, &fd, &size)) {
		/* Any other error: it has ended, and the number may be another's. */
		if (errno != ENOPROTOOPT)
			return -ESRCH;
		fd = peer_pidfd_open(pid);
		if (fd < 0)
			return fd;
	}
	if (*ret_start && *ret_start == identity_start(pid) && !peer_fd_has_event(fd, POLLIN))
		return fd;
	close(fd);
	return -ESRCH;
}

int peer_identify(int connection, uint64_t start, struct peer *ret_peer)
{
	struct ucred credentials;
	socklen_t size = sizeof(credentials);

	if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &credentials, &size))
		return -errno;
	if (credentials.pid <= 0)
		return -EXDEV;
	ret_peer->pid = credentials.pid;
	ret_peer->uid = credentials.uid;
	ret_peer->gid = credentials.gid;
	ret_peer->pidfd = peer_pidfd(connection, credentials.pid, &ret_peer->start);
	/* A connection may outlive the one who made it, and its number be another's now. */
	if (ret_peer->pidfd >= 0 && start && start != ret_peer->start) {
		close(ret_peer->pidfd);
		ret_peer->pidfd = -ESRCH;
	}
	return ret_peer->pidfd < 0 ? ret_peer->pidfd : 0;
}
