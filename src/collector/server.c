/* SPDX-License-Identifier: MIT */
/* The server as a whole, and what a request may ask of its connection; see server.h. */
#include "collector/server_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int server_keep(const struct request *request)
{
	struct connection *connection = request->connection;
	int fd = connection->broken ? -1 : fcntl(connection->fd, F_DUPFD_CLOEXEC, 0);

	connection->kept = fd >= 0;
	return fd;
}

bool server_is_admin(const struct request *request, const gid_t *group)
{
	gid_t groups[256];
	socklen_t size = sizeof(groups);

	if (request->uid == 0 || request->uid == geteuid())
		return true;
	if (!group)
		return false;
	if (request->gid == *group)
		return true;
	if (getsockopt(request->fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size))
		return false;
	for (unsigned i = 0; i < size / sizeof(groups[0]); i++)
		if (groups[i] == *group)
			return true;
	return false;
}

int server_new(struct server **ret_server, sd_event *event, const char *path, const struct log *log,
	       server_function *answer, void *closure, char problem[PROBLEM_SIZE])
{
	struct server *server;
	int result;

	if (strlen(path) >= sizeof(server->path))
		return problem_set(-ENAMETOOLONG, problem,
				   "socket %.100s...: path too long: expected at most %zu bytes",
				   path, sizeof(server->path) - 1);
	server = calloc(1, sizeof(*server));
	if (!server)
		return problem_set(-ENOMEM, problem, "no memory");
	server->event = sd_event_ref(event);
	server->log = log;
	server->answer = answer;
	server->closure = closure;
	server->fd = server->spare = server->epoll = -1;
	strcpy(server->path, path);
	result = listener_open(server, problem);
	if (result >= 0) {
		result = connections_open(server);
		if (result >= 0)
			result = turns_open(server);
		if (result < 0)
			problem_set(result, problem, "event loop: %s", strerror(-result));
	}
	if (result < 0) {
		server_free(server);
		return result;
	}
	*ret_server = server;
	return 0;
}

void server_free(struct server *server)
{
	connections_close(server);
	turns_close(server);
	listener_close(server);
	sd_event_unref(server->event);
	free(server);
}
