/* SPDX-License-Identifier: MIT */
/*
 * The listening socket: its path, where it replaces no socket that is in use, and the clients
 * that connect to it. Knows no frames.
 */
#include "collector/server_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum {
	BACKLOG = 512, /* all users share it, so it is short, and emptied before all else */
	ACCEPTS_AT_ONCE = 2 * BACKLOG, /* before others have their turn */
};

/* ---- clients */

static void client_welcome(struct server *server, int fd)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);
	struct connection *connection = NULL;

	/* The cheapest comes first: a flood ends here. */
	if (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) &&
	    line_of_user(server, peer.uid)->count < LINE_MOST)
		connection = connection_new(server, fd, &peer);
	/* What it says is read in its user's turn: all others wait while the queue is emptied. */
	if (connection)
		line_join(connection);
	else
		close(fd);
}

/* No descriptor is left: this one client is turned away, rather than all of them left waiting. */
static void client_turn_away(struct server *server)
{
	int fd;

	close(server->spare);
	fd = accept4(server->fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0)
		close(fd);
	server->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	log_seldom(server->log, &server->turned_away, LOG_WARN,
		   "no descriptor is left for another client");
}

static int clients_accept(sd_event_source *source, int listener, uint32_t events, void *closure)
{
	struct server *server = closure;

	for (int i = 0; i < ACCEPTS_AT_ONCE; i++) {
		int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd >= 0)
			client_welcome(server, fd);
		else if (errno == EMFILE || errno == ENFILE)
			client_turn_away(server);
		else if (errno == EAGAIN)
			break;
	}
	return 0;
}

static bool kernel_knows_peers(void)
{
	int pair[2], fd = -1;
	socklen_t size = sizeof(fd);
	bool knows;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return false;
	knows = !getsockopt(pair[0], SOL_SOCKET, SO_PEERPIDFD, &fd, &size);
	if (fd >= 0)
		close(fd);
	close(pair[0]);
	close(pair[1]);
	return knows;
}

/* ---- the path */

static struct sockaddr_un socket_address(const char *path)
{
	struct sockaddr_un result = { .sun_family = AF_UNIX };

	strcpy(result.sun_path, path);
	return result;
}

/* What is at the path of a socket. */
enum path_state { PATH_FREE, PATH_DEAD, PATH_PLANTED };

/* Where everybody may make files, the name is no other user's to have: root takes it. */
static bool path_is_planted(const char *path, const struct stat *status)
{
	const char *slash = strrchr(path, '/');
	char directory[sizeof(((struct sockaddr_un *)0)->sun_path)];
	struct stat above;

	snprintf(directory, sizeof(directory), "%.*s", slash ? (int)(slash - path + 1) : 1,
		 slash ? path : ".");
	return geteuid() == 0 && status->st_uid != 0 && !stat(directory, &above) &&
	       above.st_uid == 0 && above.st_mode & S_ISVTX;
}

/* An enum path_state: only a dead socket of our own, or what a stranger planted, is replaced. */
static int path_check(const char *path, char problem[PROBLEM_SIZE])
{
	struct sockaddr_un there = socket_address(path);
	struct stat status;
	int fd, answers;

	if (lstat(path, &status)) {
		if (errno == ENOENT)
			return PATH_FREE;
		return problem_set(-errno, problem, "socket %s: %s", path, strerror(errno));
	}
	if (path_is_planted(path, &status))
		return PATH_PLANTED;
	if (!S_ISSOCK(status.st_mode) || status.st_uid != geteuid())
		return problem_set(-EEXIST, problem,
				   "socket %s: the path is %s: remove it, or choose another path",
				   path,
				   !S_ISSOCK(status.st_mode) ? "a file that is not a socket" :
							       "another user's socket");
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	answers = fd >= 0 && (!connect(fd, (struct sockaddr *)&there, sizeof(there)) ||
			      errno == EAGAIN || errno == EINPROGRESS);
	if (fd >= 0)
		close(fd);
	if (answers)
		return problem_set(-EADDRINUSE, problem, "socket %s: another collector serves it: stop that collector, or choose another "
				   "path by --socket",
				   path);
	return PATH_DEAD;
}

/* Binds to a name in the directory that nobody else has. Through /proc, so that the name
 * may be longer than the socket's own. */
static int socket_bind_beside(int socket, int directory, char ret_name[16])
{
	/* Everybody may connect. The mode comes with the name: a chmod would follow a link that
	 * somebody put there meanwhile. */
	mode_t before = umask(0111);
	int result = -EADDRINUSE;

	for (int attempt = 0; attempt < 8; attempt++) {
		struct sockaddr_un there = { .sun_family = AF_UNIX };
		uint32_t number;

		if (getrandom(&number, sizeof(number), 0) != sizeof(number)) {
			result = -EIO;
			break;
		}
		snprintf(ret_name, 16, ".rdma%08x", number);
		snprintf(there.sun_path, sizeof(there.sun_path), "/proc/self/fd/%d/%s", directory,
			 ret_name);
		result = bind(socket, (struct sockaddr *)&there, sizeof(there)) ? -errno : 0;
		if (result != -EADDRINUSE)
			break;
	}
	umask(before);
	return result;
}

/* A file or a directory may be dear to somebody, and is kept beside the socket. */
static void planted_remove(struct server *server, int directory, const char *temporary)
{
	struct stat status;

	if (fstatat(directory, temporary, &status, AT_SYMLINK_NOFOLLOW))
		return;
	if (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)) {
		log_write(server->log, LOG_WARN,
			  "socket %s: renamed the file of user %u at this path to %s",
			  server->path, (unsigned)status.st_uid, temporary);
		return;
	}
	log_write(server->log, LOG_WARN, "socket %s: removed the file of user %u at this path",
		  server->path, (unsigned)status.st_uid);
	unlinkat(directory, temporary, 0);
}

/* Listens under a new name and gives it that of the path: who connects finds the old socket
 * or the new one, never none. Where nothing was, nothing is replaced either. */
static int socket_listen(struct server *server, int directory, const char *name,
			 enum path_state old)
{
	static const unsigned how[] = {
		[PATH_FREE] = RENAME_NOREPLACE, [PATH_DEAD] = 0, [PATH_PLANTED] = RENAME_EXCHANGE
	};
	char temporary[16];
	int result;

	server->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (server->fd < 0)
		return -errno;
	result = socket_bind_beside(server->fd, directory, temporary);
	if (result < 0)
		return result;
	if (!listen(server->fd, BACKLOG) &&
	    !renameat2(directory, temporary, directory, name, how[old]) &&
	    !fstatat(directory, name, &server->place, AT_SYMLINK_NOFOLLOW)) {
		if (old == PATH_PLANTED)
			planted_remove(server, directory, temporary);
		return 0;
	}
	result = -errno;
	unlinkat(directory, temporary, 0);
	return result;
}

static int path_take(struct server *server, char problem[PROBLEM_SIZE])
{
	char directory_path[sizeof(server->path)];
	const char *slash = strrchr(server->path, '/');
	int directory, result, old = path_check(server->path, problem);

	if (old < 0)
		return old;
	snprintf(directory_path, sizeof(directory_path), "%.*s",
		 slash ? (int)(slash - server->path + 1) : 1, slash ? server->path : ".");
	directory = open(directory_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (directory >= 0) {
		result = socket_listen(server, directory, slash ? slash + 1 : server->path,
				       (enum path_state)old);
		close(directory);
	} else {
		result = -errno;
	}
	if (result < 0)
		problem_set(result, problem, "socket %s: %s", server->path, strerror(-result));
	return result;
}

int listener_open(struct server *server, char problem[PROBLEM_SIZE])
{
	int result = path_take(server, problem);

	if (result < 0)
		return result;
	server->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	server->knows_peers = kernel_knows_peers();
	result = sd_event_add_io(server->event, &server->listener, server->fd, EPOLLIN,
				 clients_accept, server);
	return result < 0 ? problem_set(result, problem, "event loop: %s", strerror(-result)) : 0;
}

void listener_close(struct server *server)
{
	struct stat status;

	sd_event_source_disable_unref(server->listener);
	if (server->place.st_ino && !lstat(server->path, &status) &&
	    status.st_ino == server->place.st_ino && status.st_dev == server->place.st_dev)
		unlink(server->path);
	if (server->fd >= 0)
		close(server->fd);
	if (server->spare >= 0)
		close(server->spare);
}
