/* SPDX-License-Identifier: MIT */
/* Messages to the service manager: which datagrams arrive, and when none is sent. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/notify.h"
#include "harness.h"

/* A socket as the service manager has one, at a path or an abstract name; its name goes into
 * NOTIFY_SOCKET. */
static int manager_open(const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	memcpy(address.sun_path, name, strlen(name));
	if (name[0] == '@')
		address.sun_path[0] = '\0';
	CHECK(!bind(fd, (struct sockaddr *)&address,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name))),
	      "%s: a socket is there", name);
	setenv("NOTIFY_SOCKET", name, 1);
	return fd;
}

/* The next message is this one; NULL: there is no message. */
static bool manager_got(int manager, const char *expected)
{
	char text[2048] = "";
	ssize_t length = recv(manager, text, sizeof(text) - 1, 0);

	return expected ? length >= 0 && !strcmp(text, expected) : length < 0;
}

static void watchdog_set(const char *usec, const char *pid)
{
	if (usec)
		setenv("WATCHDOG_USEC", usec, 1);
	else
		unsetenv("WATCHDOG_USEC");
	if (pid)
		setenv("WATCHDOG_PID", pid, 1);
	else
		unsetenv("WATCHDOG_PID");
}

static void driver(void)
{
	char directory[] = "/tmp/rdma_notify.XXXXXX", path[64], name[64], pid[16];
	int manager;

	CHECK(mkdtemp(directory), "a directory");
	snprintf(path, sizeof(path), "%s/socket", directory);
	snprintf(name, sizeof(name), "@rdma_notify.%d", getpid());
	snprintf(pid, sizeof(pid), "%d", getpid());
	CASE("nobody_asks")
	{
		unsetenv("NOTIFY_SOCKET");
		CHECK(notify_send("READY=1") == 0, "not asked for: nothing is sent");
		setenv("NOTIFY_SOCKET", "", 1);
		CHECK(notify_send("READY=1") == 0, "an empty name");
		setenv("NOTIFY_SOCKET", "relative", 1);
		CHECK(notify_send("READY=1") < 0, "a name that is no socket's");
		setenv("NOTIFY_SOCKET", "/nowhere/socket", 1);
		CHECK(notify_send("READY=1") < 0, "a socket that does not exist");
	}
	CASE("messages")
	{
		for (unsigned i = 0; i < 2; i++) {
			manager = manager_open(i ? name : path);
			CHECK(notify_send("READY=1") == 1, "it is sent");
			CHECK(manager_got(manager, "READY=1"), "and arrives");
			notify_status("a\nREADY=1\tb");
			CHECK(manager_got(manager, "STATUS=a READY=1 b"), "a status is one line");
			close(manager);
			unlink(path);
		}
	}
	CASE("full")
	{
		manager = manager_open(path);
		while (notify_send("READY=1") == 1)
			;
		CHECK(notify_send("READY=1") == -EAGAIN, "a manager that reads nothing is given up");
		CHECK(manager_got(manager, "READY=1"), "and what was sent before is there");
		close(manager);
		unlink(path);
	}
	CASE("alive")
	{
		manager = manager_open(path);
		watchdog_set(NULL, NULL);
		notify_alive();
		CHECK(manager_got(manager, NULL), "no watchdog: no message");
		watchdog_set("3600000000", "1");
		notify_alive();
		CHECK(manager_got(manager, NULL), "the watchdog of another process: no message");
		watchdog_set("3600000000", pid);
		notify_alive();
		CHECK(manager_got(manager, "WATCHDOG=1"), "the first message");
		notify_alive();
		CHECK(manager_got(manager, NULL), "no second one before a third of the time");
		watchdog_set("3", NULL);
		usleep(1);
		notify_alive();
		CHECK(manager_got(manager, "WATCHDOG=1"), "a second one after it");
		close(manager);
		unlink(path);
	}
	rmdir(directory);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
