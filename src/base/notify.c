/* SPDX-License-Identifier: MIT */
/* Datagrams to the socket of the service manager; see notify.h. */
#include "base/notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"

enum { PATIENCE = 3 }; /* seconds for which a service manager that reads nothing is waited for */

int notify_send(const char *assignments)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const struct timeval patience = { .tv_sec = PATIENCE };
	size_t length = path ? strlen(path) : 0;
	ssize_t sent;
	int fd, error;

	if (!length)
		return 0;
	if ((path[0] != '/' && path[0] != '@') || length >= sizeof(address.sun_path))
		return -EINVAL;
	memcpy(address.sun_path, path, length);
	if (path[0] == '@') /* an abstract name */
		address.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	sent = sendto(fd, assignments, strlen(assignments), MSG_NOSIGNAL, (struct sockaddr *)&address,
		      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length));
	error = sent < 0 ? -errno : 1;
	close(fd);
	return error;
}

void notify_status(const char *text)
{
	char assignment[1024];

	snprintf(assignment, sizeof(assignment), "STATUS=%s", text);
	for (char *at = assignment; *at; at++)
		if ((unsigned char)*at < ' ') /* a new line would begin another assignment */
			*at = ' ';
	notify_send(assignment);
}

/* In nanoseconds; 0: no watchdog waits for this process. */
static uint64_t watchdog_patience(void)
{
	const char *patience = getenv("WATCHDOG_USEC"), *process = getenv("WATCHDOG_PID");

	if (!patience || (process && strtol(process, NULL, 10) != getpid()))
		return 0;
	return strtoull(patience, NULL, 10) * 1000;
}

void notify_alive(void)
{
	static uint64_t told_ns;
	uint64_t patience = watchdog_patience(), now = clock_now_ns();

	if (!patience || (told_ns && now - told_ns < patience / 3))
		return;
	told_ns = now;
	notify_send("WATCHDOG=1");
}
