/* SPDX-License-Identifier: MIT */
/* Names of users, looked up by a child process; see users.h. */
#include "cli/users.h"

#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

struct user {
	uint32_t uid;
	char name[NAME_SIZE];
};

/* In the child: answers until the parent closes the connection. */
static void __attribute__((noreturn)) users_serve(int connection)
{
	struct user user;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(connection, &user.uid, sizeof(user.uid)) == sizeof(user.uid)) {
		const struct passwd *found = getpwuid(user.uid);

		memset(user.name, 0, sizeof(user.name));
		if (found)
			snprintf(user.name, sizeof(user.name), "%s", found->pw_name);
		if (write(connection, &user, sizeof(user)) != sizeof(user))
			break;
	}
	_exit(0);
}

static void users_stop(struct users *users)
{
	if (users->connection < 0)
		return;
	close(users->connection);
	users->connection = -1;
	if (users->child <= 0)
		return;
	kill(users->child, SIGKILL);
	/* One that the signal does not end at once is left to init. */
	waitpid(users->child, NULL, WNOHANG);
}

static void users_start(struct users *users)
{
	int pair[2];

	users->deadline_ns = clock_now_ns() + USERS_PATIENCE_MS * 1000000ull;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return;
	users->child = fork();
	if (!users->child) {
		close(pair[0]);
		users_serve(pair[1]);
	}
	close(pair[1]);
	users->connection = pair[0];
	if (users->child < 0)
		users_stop(users);
}

/* Whether the answer is there in time. */
static bool users_await(const struct users *users)
{
	struct pollfd answer = { .fd = users->connection, .events = POLLIN };
	uint64_t now;

	while ((now = clock_now_ns()) < users->deadline_ns)
		if (poll(&answer, 1, (int)((users->deadline_ns - now) / 1000000) + 1) > 0)
			return true;
	return false;
}

void users_begin(struct users *users)
{
	*users = (struct users){ .known = { .size = sizeof(struct user) }, .connection = -1 };
}

void users_name(struct users *users, uint32_t uid, char ret_name[NAME_SIZE])
{
	struct user *user;

	for (size_t i = 0; i < users->known.count; i++) {
		user = list_at(&users->known, i);
		if (user->uid == uid) {
			memcpy(ret_name, user->name, NAME_SIZE);
			return;
		}
	}
	user = list_add(&users->known);
	user->uid = uid;
	if (!users->deadline_ns)
		users_start(users);
	/* A child that did not answer would give this answer to the next question. */
	if (users->connection >= 0 &&
	    (send(users->connection, &uid, sizeof(uid), MSG_NOSIGNAL) < 0 || !users_await(users) ||
	     recv(users->connection, user, sizeof(*user), 0) != sizeof(*user))) {
		*user = (struct user){ .uid = uid };
		users_stop(users);
	}
	memcpy(ret_name, user->name, NAME_SIZE);
}

void users_end(struct users *users)
{
	users_stop(users);
	free(users->known.row);
	users->known = (struct list){ .size = sizeof(struct user) };
}
