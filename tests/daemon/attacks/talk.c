/* SPDX-License-Identifier: MIT */
/*
 * Requests to the collector by hand, whole or broken, and a member that follows no rule; see
 * attack.h. This file speaks the protocol only; it does not know who attacks.
 */
#include "attack.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* No promise of the collector: only a test that hangs waits so long. */
enum { PATIENCE_MS = 120000 };

int dial_at(const char *path, int flags)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

int dial(void)
{
	return dial_at(collector_socket(), 0);
}

struct letter letter(enum message type, const void *body)
{
	size_t size = proto_message(type)->request;
	struct letter letter = { .header = proto_header(type, 0, size) };

	if (body)
		memcpy(letter.body, body, size);
	return letter;
}

bool put(int fd, const void *bytes, size_t size)
{
	return send(fd, bytes, size, MSG_NOSIGNAL) == (ssize_t)size;
}

bool tell(int fd, enum message type, const void *body)
{
	struct letter whole = letter(type, body);

	return put(fd, &whole, whole.header.length);
}

int hear(int fd)
{
	struct waiting waiting = { .for_what = "a reply", .file = __FILE__, .line = __LINE__ };
	struct pollfd reply = { .fd = fd, .events = POLLIN };
	struct proto_header header;

	while (fd >= 0 && poll(&reply, 1, 1000) == 0)
		if (!waiting_goes_on(&waiting))
			return 1;
	return recv(fd, &header, sizeof(header), MSG_WAITALL) == sizeof(header) ? header.status : 1;
}

/* ---- members */

struct proto_hello hello_without_limits(void)
{
	struct proto_hello hello = { 0 };

	memset(hello.process_limit, 0xff, sizeof(hello.process_limit));
	memset(hello.host_limit, 0xff, sizeof(hello.host_limit));
	return hello;
}

bool join(struct member *member)
{
	struct proto_hello hello = hello_without_limits();
	struct proto_welcome welcome;
	struct proto_reply reply;
	char problem[PROBLEM_SIZE];
	int result = proto_call(collector_socket(), MESSAGE_HELLO, &hello, &welcome, &reply,
				PROTO_KEEP_CONNECTION, PATIENCE_MS, problem);

	if (result < 0) {
		printf("HELLO: %s\n", problem);
		return false;
	}
	*member = (struct member){ .cookie = welcome.cookie,
				   .connection = reply.connection,
				   .usage_fd = reply.fd[0],
				   .table_fd = reply.fd[1] };
	member->usage = mmap(NULL, sizeof(*member->usage), PROT_READ | PROT_WRITE, MAP_SHARED,
			     member->usage_fd, 0);
	member->table =
		mmap(NULL, sizeof(*member->table), PROT_READ, MAP_SHARED, member->table_fd, 0);
	return member->usage != MAP_FAILED && member->table != MAP_FAILED;
}

void leave(struct member *member)
{
	munmap(member->usage, sizeof(*member->usage));
	munmap((void *)member->table, sizeof(*member->table));
	close(member->usage_fd);
	close(member->table_fd);
	close(member->connection);
}

struct proto_grow_request want(const struct member *member, unsigned kind, uint64_t total)
{
	struct proto_grow_request need = { .cookie = member->cookie,
				   .count = 1,
				   .kind = { kind },
				   .total = { total },
				   .wanted = { total } };

	memset(need.device_limit, 0xff, sizeof(need.device_limit));
	return need;
}

int ask(const struct proto_grow_request *need)
{
	char problem[PROBLEM_SIZE];
	struct proto_grow_reply give;
	struct proto_reply reply;
	int result = proto_call(collector_socket(), MESSAGE_GROW, need, &give, &reply, 0,
				PATIENCE_MS, problem);

	return result < 0 ? result : reply.status;
}
