/* SPDX-License-Identifier: MIT */
/*
 * Which servers the client trusts: its own user's and root's, also from a user namespace, and
 * no other; to those it sends nothing. Needs root.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "family.h"
#include "harness.h"
#include "protoserver.h"

enum { STRANGER = 65533, NOBODY = 65534 };

/* A server of another user, in a child, whose exit status is how many bytes it was sent. */
static void server_of_uid(uid_t uid)
{
	char bytes[256], uid_text[32];
	int ready[2], status, result;
	pid_t child;

	if (pipe2(ready, O_CLOEXEC))
		abort();
	child = family_fork();
	if (child == 0) {
		int listener, connection;

		if (setresuid(uid, uid, uid))
			_exit(201);
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* the change of user has cleared it */
		listener = server_socket();
		if (listen(listener, 4) || write(ready[1], "", 1) != 1)
			_exit(202);
		connection = accept(listener, NULL, NULL);
		_exit((int)recv(connection, bytes, sizeof(bytes), 0));
	}
	close(ready[1]);
	CHECK(read(ready[0], bytes, 1) == 1);
	close(ready[0]);
	result = ping(LONG_MS);
	status = spawn_wait(child);
	CHECK(status == 0, "it was sent %d bytes", status);
	snprintf(uid_text, sizeof(uid_text), "has uid %u: expected", (unsigned)uid);
	CHECK(result == -EPERM && strstr(problem, server_path) && strstr(problem, uid_text),
	      "%d, %s", result, problem);
	unlink(server_path);
}

static void other_users(void)
{
	if (geteuid()) {
		printf("not tried: servers of other users need root\n");
		return;
	}
	server_of_uid(STRANGER);
	server_of_uid(NOBODY);
}

/* A socket of another user's that takes nobody: it is not waited for. */
static void full_queue(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int listener = server_socket(), fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), result;

	memcpy(address.sun_path, server_path, sizeof(address.sun_path));
	if (listen(listener, 0) || connect(fd, (struct sockaddr *)&address, sizeof(address)))
		abort();
	if (!chown(server_path, STRANGER, STRANGER)) {
		result = ping(LONG_MS);
		CHECK(result == -EPERM && strstr(problem, "uid 65533"), "%d, %s", result, problem);
	} else {
		printf("not tried: sockets of other users need root\n");
	}
	close(fd);
	close(listener);
	unlink(server_path);
}

static bool text_write(const char *name, const char *text)
{
	int fd = open(name, O_WRONLY | O_CLOEXEC);
	bool good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return good;
}

/* The host's root has no number in the namespace, and its server is trusted nevertheless. */
static void from_user_namespace(void)
{
	struct server server;
	int steps[2], status;
	char name[64], byte;
	pid_t child;

	if (geteuid()) {
		printf("not tried: a server of the host's root needs root\n");
		return;
	}
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, steps))
		abort();
	server_start(&server, serve_pong);
	child = family_fork();
	if (child == 0) {
		if (unshare(CLONE_NEWUSER) || write(steps[1], "", 1) != 1 ||
		    read(steps[1], &byte, 1) != 1)
			_exit(77);
		if (setresuid(1000, 1000, 1000))
			_exit(203);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(CHECK(ping(LONG_MS) == 0, "%s", problem) ? 0 : 1);
	}
	close(steps[1]);
	snprintf(name, sizeof(name), "/proc/%d/uid_map", (int)child);
	if (read(steps[0], &byte, 1) == 1 && text_write(name, "1000 65533 1"))
		CHECK(write(steps[0], "", 1) == 1);
	close(steps[0]);
	status = spawn_wait(child);
	if (status == 77)
		printf("not tried: user namespaces are not available here\n");
	else
		CHECK(status == 0, "%d", status);
	server_stop(&server);
}

static void driver(void)
{
	server_path_init();
	RUN(other_users);
	RUN(full_queue);
	RUN(from_user_namespace);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
