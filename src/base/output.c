/* SPDX-License-Identifier: MIT */
/*
 * Writing that the program around us does not notice; see output.h. System calls whose libc
 * wrappers are cancellation points are raw.
 */
#include "base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/time_types.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef RWF_NOWAIT
#define RWF_NOWAIT 8
#endif

/* ---- without signals */

/* A thread's mask as the kernel has it. */
#define BIT(number) (1ull << ((number)-1))

struct hush {
	uint64_t mask, pending; /* before */
};

/* The signals that a write may raise reach only the thread that writes: it blocks them. */
static bool hush_begin(struct hush *hush)
{
	const uint64_t quiet = BIT(SIGPIPE) | BIT(SIGXFSZ) | BIT(SIGTTOU);

	hush->pending = 0;
	return !syscall(SYS_rt_sigprocmask, SIG_BLOCK, &quiet, &hush->mask, sizeof(quiet)) &&
	       !syscall(SYS_rt_sigpending, &hush->pending, sizeof(hush->pending));
}

/* The result of a system call as -errno; and the signal that came with it is taken back. */
static ssize_t hush_end(const struct hush *hush, long result)
{
	int error = result < 0 ? errno : 0;
	uint64_t raised = error == EPIPE ? BIT(SIGPIPE) : error == EFBIG ? BIT(SIGXFSZ) : 0;
	struct __kernel_old_timespec at_once = { 0 };

	raised &= ~hush->pending;
	if (raised)
		syscall(SYS_rt_sigtimedwait, &raised, NULL, &at_once, sizeof(raised));
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &hush->mask, NULL, sizeof(hush->mask));
	return error ? -error : result;
}

ssize_t output_write(int fd, const void *data, size_t size)
{
	int saved = errno;
	struct hush hush;
	ssize_t result;

	if (!hush_begin(&hush)) {
		errno = saved;
		return -EPERM; /* a filter of system calls */
	}
	result = hush_end(&hush, syscall(SYS_write, fd, data, size));
	errno = saved;
	return result;
}

/* ---- standard error */

struct place {
	mode_t type; /* 0: not open */
	dev_t device;
	ino_t inode;
};

static struct place place_of(int fd)
{
	struct stat status;

	if (fstat(fd, &status))
		return (struct place){ 0 };
	return (struct place){ status.st_mode & S_IFMT, status.st_dev, status.st_ino };
}

static bool place_is(const struct place *a, const struct place *b)
{
	return a->type && a->type == b->type && a->device == b->device && a->inode == b->inode;
}

/* What number 2 led to when the program began: later it may be any file of the program's. */
static struct place stderr_place;

static __attribute__((constructor)) void stderr_remember(void)
{
	int saved = errno;

	stderr_place = place_of(STDERR_FILENO);
	errno = saved;
}

/* A connection of a network service, as inetd gives it, is not for our words. */
static void socket_send(const void *line, size_t size)
{
	int domain = 0;
	socklen_t length = sizeof(domain);

	if (!getsockopt(STDERR_FILENO, SOL_SOCKET, SO_DOMAIN, &domain, &length) &&
	    domain == AF_UNIX)
		syscall(SYS_sendto, STDERR_FILENO, line, size, MSG_NOSIGNAL | MSG_DONTWAIT, NULL,
			0);
}

/* By a descriptor of our own that does not wait; false if standard error cannot be opened again. */
static bool again_write(const void *line, size_t size)
{
	int fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/fd/2",
			      O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct place opened;

	if (fd < 0)
		return false;
	opened = place_of(fd);
	if (place_is(&opened, &stderr_place))
		output_write(fd, line, size);
	syscall(SYS_close, fd);
	return true;
}

/*
 * Others write to the same pipe, so a look whether there is room tells nothing, and its flags
 * are theirs, too. Kernels before 6.4 write to a pipe without waiting only by giving it pages.
 */
static void pipe_write(const void *line, size_t size)
{
	struct iovec part = { (void *)line, size };
	struct hush hush;
	ssize_t result;
	void *page;

	if (!hush_begin(&hush))
		return;
	result = hush_end(&hush,
			  syscall(SYS_pwritev2, STDERR_FILENO, &part, 1, -1l, -1l, RWF_NOWAIT));
	if (result >= 0 || result == -EAGAIN || result == -EPIPE || !hush_begin(&hush))
		return;
	page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page != MAP_FAILED) {
		part.iov_base = memcpy(page, line, size);
		result = syscall(SYS_vmsplice, STDERR_FILENO, &part, 1, SPLICE_F_NONBLOCK);
	} else {
		result = -1;
	}
	result = hush_end(&hush, result);
	if (page != MAP_FAILED)
		munmap(page, size);
	/* Container engines have filters of system calls that refuse vmsplice. */
	if (result == -EPERM || result == -ENOSYS)
		again_write(line, size);
}

/* The terminal may be stopped. One that was opened for another user cannot be opened again: then
 * the line is written if the terminal takes something now. */
static void terminal_write(const void *line, size_t size)
{
	struct pollfd ready = { .fd = STDERR_FILENO, .events = POLLOUT };
	struct __kernel_old_timespec at_once = { 0 };

	if (!again_write(line, size) &&
	    syscall(SYS_ppoll, &ready, 1, &at_once, NULL, 0) == 1 && ready.revents & POLLOUT) {
		output_write(STDERR_FILENO, line, size);
	}
}

void output_stderr(const void *line, size_t size)
{
	struct place now;
	int saved = errno;

	now = place_of(STDERR_FILENO);
	if (place_is(&now, &stderr_place)) {
		if (S_ISREG(now.type))
			output_write(STDERR_FILENO, line, size);
		else if (S_ISSOCK(now.type))
			socket_send(line, size);
		else if (S_ISFIFO(now.type))
			pipe_write(line, size);
		else if (S_ISCHR(now.type))
			terminal_write(line, size);
	}
	errno = saved;
}
