/* SPDX-License-Identifier: MIT */
/*
 * How a process joins a collector: HELLO, the memory that comes with the answer, and the two
 * descriptors that stay.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ledger/lease.h"

enum {
	HELLO_PATIENCE_MS =
		5000,  /* for a collector that is there and slow, once in a process's life */
	FD_FLOOR = 48, /* a number that programs do not expect to get, and in the first
				   table of 64 that every process has */
};

_Static_assert((int)LEDGER_SOCKET_PATH == PROTO_PATH,
	       "names travel whole");
struct ledger_place descriptor_place(const struct stat *status)
{
	return (struct ledger_place){ status->st_dev, status->st_ino };
}

bool descriptor_is_at(const struct ledger_place *place, const struct stat *status)
{
	return place->device == status->st_dev && place->inode == status->st_ino;
}

/* A descriptor that stays open, out of the way of the program's own numbers; its number. A
 * program that closes it does no harm: the number is used again only after a look at what it
 * leads to. */
static int descriptor_keep(int fd)
{
	int kept = fcntl(fd, F_DUPFD_CLOEXEC, FD_FLOOR);

	if (kept < 0)
		return fd;
	close(fd);
	return kept;
}

/* The collector can be asked over the connection that stays: without a new descriptor, the
 * socket's path or the right to make sockets, which a program may give up after its first verb. */
static void join_keep_connection(struct ledger_lease *lease, const struct proto_welcome *welcome,
				 const struct proto_reply *reply)
{
	int kept = descriptor_keep(reply->connection);
	struct stat status;

	if (!stat("/", &status))
		lease->root = descriptor_place(&status);
	if (!(welcome->flags & WELCOME_STAYS) || !reply->askable || fstat(kept, &status))
		return;
	lease->connection = kept;
	lease->protocol = reply->version;
	lease->connection_place = descriptor_place(&status);
}

/* Maps the beginning of a file of that size. The version is looked at before the size, which
 * another version may have another of. */
static void *join_map(int fd, size_t size, size_t mapped, int protection, uint64_t magic,
		      const char *what, char problem[PROBLEM_SIZE])
{
	struct lease_signature found = { 0 };
	struct stat status;
	void *memory;

	if (syscall(SYS_pread64, fd, &found, sizeof(found), 0) != sizeof(found) ||
	    found.magic != magic || fstat(fd, &status)) {
		problem_set(-EPROTO, problem, "the collector sent an invalid %s (bad signature)",
			    what);
		return NULL;
	}
	if (found.version != LEASE_VERSION || found.kinds != kinds_signature() ||
	    (size_t)status.st_size != size) {
		problem_set(
			-EPROTO, problem,
			"the collector's %s has the layout version %u and %llu bytes, this library "
			"needs version %u, %zu bytes and the same kinds; after an update, restart "
			"the collector and the programs that use it",
			what, found.version, (unsigned long long)status.st_size, LEASE_VERSION,
			size);
		return NULL;
	}
	memory = mmap(NULL, mapped, protection, MAP_SHARED, fd, 0);
	if (memory != MAP_FAILED)
		return memory;
	problem_set(-errno, problem, "the collector's %s: %s", what, strerror(errno));
	return NULL;
}

/* Memory of our own, where the collector gives none. */
static struct usage_page *join_private_page(char problem[PROBLEM_SIZE])
{
	void *page = mmap(NULL, sizeof(struct usage_page), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page != MAP_FAILED)
		return page;
	problem_set(-ENOMEM, problem, "no memory for the counts");
	return NULL;
}

static int join_shared_pages(struct ledger_lease *lease, const struct proto_reply *reply,
			     char problem[PROBLEM_SIZE])
{
	lease->usage = join_map(reply->fd[0], sizeof(*lease->usage), sizeof(*lease->usage),
				PROT_READ | PROT_WRITE, USAGE_MAGIC, "usage page", problem);
	if (!lease->usage)
		return -EPROTO;
	lease->table = join_map(reply->fd[1], sizeof(*lease->table),
				offsetof(struct lease_table, row[LEASE_NEAR_ROWS]), PROT_READ,
				LEASES_MAGIC, "lease table", problem);
	if (!lease->table) {
		munmap(lease->usage, sizeof(*lease->usage));
		return -EPROTO;
	}
	return 0;
}

/*
 * Registers, with as much patience as there is reason for. A socket without anybody at it
 * is a collector that was killed and, most likely, is being started again. One that takes
 * the connection and says nothing has much to do, and without it nothing is counted. But
 * where there is no socket there is no collector, unless somebody insists.
 */
static int join_say_hello(const char *path, const struct proto_hello *hello,
			  struct proto_welcome *ret_welcome, struct proto_reply *ret_reply,
			  const struct ledger_options *options, char problem[PROBLEM_SIZE])
{
	bool may_be_none = options->transport == TRANSPORT_AUTO && !options->again;
	int result = proto_call(path, MESSAGE_HELLO, hello, ret_welcome, ret_reply,
				PROTO_KEEP_CONNECTION, 0, problem);
	bool again = result == -ECONNREFUSED || result == -ECONNRESET ||
		     (result == -ETIMEDOUT && !options->again) ||
		     (result == -ENOENT && !may_be_none);

	if (!again)
		return result;
	return proto_call(path, MESSAGE_HELLO, hello, ret_welcome, ret_reply, PROTO_KEEP_CONNECTION,
			  result == -ETIMEDOUT ? HELLO_PATIENCE_MS : LEASE_PATIENCE_MS, problem);
}

static int join_collector(struct ledger *ledger, const struct ledger_options *options, bool shared,
			  char problem[PROBLEM_SIZE])
{
	struct ledger_lease *lease = &ledger->lease;
	struct proto_hello hello = {
		.flags = shared ? 0 : HELLO_NO_MEMORY,
		.mode = options->own_mode,
		.process_defaults = options->limits->process_defaults,
		.host_defaults = options->limits->host_defaults,
	};
	struct proto_welcome welcome;
	struct proto_reply reply;
	int result = proto_socket_path(options->socket, lease->socket);

	if (result < 0)
		return problem_set(result, problem, "%s: path '%.80s...' too long: expected the path of a socket",
				   PROTO_SOCKET_VARIABLE, options->socket);
	memcpy(hello.process_limit, options->limits->process, sizeof(hello.process_limit));
	memcpy(hello.host_limit, options->limits->host, sizeof(hello.host_limit));
	result = join_say_hello(lease->socket, &hello, &welcome, &reply, options, problem);
	if (result < 0)
		return result;
	if (shared)
		result = join_shared_pages(lease, &reply, problem);
	else
		result = (lease->usage = join_private_page(problem)) ? 0 : -ENOMEM;
	if (reply.fd[1] >= 0)
		close(reply.fd[1]);
	if (result < 0) {
		close(reply.connection);
		if (reply.fd[0] >= 0)
			close(reply.fd[0]);
		return result;
	}
	join_keep_connection(lease, &welcome, &reply);
	if (reply.fd[0] >= 0)
		past_remember(lease->usage, descriptor_keep(reply.fd[0]));
	lease->cookie = welcome.cookie;
	lease->mode = welcome.mode;
	lease->settings = welcome.settings;
	lease->settings.devices[sizeof(lease->settings.devices) - 1] = '\0';
	ledger->settings = shared ? &lease->table->settings : &lease->settings;
	memcpy(lease->tenant, proto_text(welcome.tenant), sizeof(lease->tenant));
	for (unsigned device = 0; device < DEVICES_MAX; device++)
		lease->cap[device] = lease_no_cap;
	ledger->backing = shared ? &lease_backing : &socket_backing;
	ledger->tallies = &lease->usage->tallies;
	if (shared) {
		ledger->rate_leases = &lease->usage->rate_leases;
		ledger->rate_uses = &lease->usage->rate_uses;
	}
	ledger->gauges = (char *)&lease->usage->row[0].gauges;
	ledger->gauges_stride = sizeof(lease->usage->row[0]);
	ledger->classes = lease->usage->classes;
	return 0;
}

/* Sharing memory takes two descriptors more. A process that has none left for that is counted
 * all the same. */
int lease_open(struct ledger *ledger, const struct ledger_options *options,
	       enum transport transport, char problem[PROBLEM_SIZE])
{
	int result = join_collector(ledger, options, transport == TRANSPORT_LEASE, problem);

	if (result == -EMFILE && transport == TRANSPORT_LEASE)
		result = join_collector(ledger, options, false, problem);
	return result;
}
