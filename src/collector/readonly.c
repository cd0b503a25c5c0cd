/* SPDX-License-Identifier: MIT */
/*
 * The read-only mount; see readonly.h. It is made in a mount namespace of a
 * child that then ends, so that the host never sees it; the descriptor that the
 * child sends back keeps it alive.
 */
#include "collector/readonly.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/descriptors.h"

/* One descriptor over a socket; fd -1: none, and the error number instead. */
static void fd_send(int socket, int fd, int error)
{
	union descriptors control;
	struct iovec text = { &error, sizeof(error) };
	struct msghdr message = { .msg_iov = &text, .msg_iovlen = 1 };

	descriptors_attach(&message, &control, &fd, fd >= 0);
	sendmsg(socket, &message, MSG_NOSIGNAL);
}

static int fd_receive(int socket)
{
	union descriptors control;
	int error = EIO, fds[DESCRIPTORS_MAX];
	struct iovec text = { &error, sizeof(error) };
	struct msghdr message = { .msg_iov = &text, .msg_iovlen = 1 };
	unsigned count = 0;

	descriptors_expect(&message, &control);
	if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != sizeof(error) ||
	    descriptors_take(&message, fds, &count) < 0 || count != 1)
		return error ? -error : -EIO;
	return fds[0];
}

/* In the child, which is alone in its mount namespace. */
static int mount_read_only(int directory)
{
	char link[40], path[PATH_MAX];
	ssize_t length;

	/* By its name: what is mounted on it is not seen through /proc/self/fd. */
	snprintf(link, sizeof(link), "/proc/self/fd/%d", directory);
	length = readlink(link, path, sizeof(path) - 1);
	if (length < 0)
		return -errno;
	path[length] = '\0';
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount(path, path, NULL, MS_BIND, NULL) ||
	    mount(NULL, path, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL))
		return -errno;
	directory = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return directory < 0 ? -errno : directory;
}

int readonly_directory(int directory, const struct log *log)
{
	int pair[2], result;
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	child = fork();
	if (child == 0) {
		result = mount_read_only(directory);
		fd_send(pair[1], result, result < 0 ? -result : 0);
		_exit(0);
	}
	close(pair[1]);
	result = child < 0 ? -errno : fd_receive(pair[0]);
	close(pair[0]);
	if (child > 0)
		while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
			;
	if (result >= 0)
		return result;
	if (geteuid() == 0)
		log_write(log, LOG_WARN,
			  "cannot make a read-only mount (%s): a client that is root in a "
			  "container could write its own lease table",
			  strerror(-result));
	result = fcntl(directory, F_DUPFD_CLOEXEC, 0);
	return result < 0 ? -errno : result;
}
