/* SPDX-License-Identifier: MIT */
/*
 * Attacks on memory that the collector shares with a process: the usage page, which the process
 * writes, and the lease table, which it may only read. Whatever a process does to either of them,
 * only its own counts are wrong.
 */
#include "attack.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- the usage page */

static void usage_memory(unsigned number)
{
	off_t size = sizeof(struct usage_page);
	struct member member;
	struct proto_grow_request need;
	int fd;

	if (!CHECK(join(&member)))
		return;
	ready();
	fd = member.usage_fd;
	need = want(&member, KIND_qp, 1);
	CHECK(ask(&need) == 0);
	CHECK(ftruncate(fd, 0) && errno == EPERM, "shrink");
	CHECK(ftruncate(fd, 4096) && errno == EPERM, "shrink to a page");
	CHECK(ftruncate(fd, 2 * size) && errno == EPERM, "grow");
	CHECK(fallocate(fd, 0, size, 4096) && errno == EPERM, "grow by fallocate");
	CHECK(fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 0, 4096), "collapse");
	CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) && errno == EPERM, "seal");
	CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) && errno == EPERM, "seal");
	/* A hole is read as zeros: the collector must survive to read it. */
	for (unsigned i = 0; going(); i++) {
		need.row = i % DEVICES_MAX;
		need.total[0] = i % (2 * QUOTA);
		fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, size);
		CHECK(ask(&need) >= 0);
		memset(member.usage, 0xff, sizeof(*member.usage));
	}
}

static struct member scribbled;

static void *scribble_thread(void *argument)
{
	uint64_t *word = (uint64_t *)scribbled.usage, random = 88172645463325252u;
	size_t words = sizeof(*scribbled.usage) / sizeof(*word);

	for (unsigned round = 0; attack_is_on(); round++)
		for (size_t i = 0; i < words; i++) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			word[i] = round % 4 == 0 ? 0 :
				  round % 4 == 1 ? UINT64_MAX :
				  round % 4 == 2 ? QUOTA :
						   random;
		}
	return NULL;
}

static void scribble(unsigned number)
{
	pthread_t thread;

	if (!CHECK(join(&scribbled)) || pthread_create(&thread, NULL, scribble_thread, NULL))
		return;
	ready();
	for (unsigned i = 0; going(); i++) {
		struct proto_grow_request need =
			want(&scribbled, i % KIND_COUNT, i % 3 ? i % 100 : 1ull << 62);

		need.row = i % DEVICES_MAX;
		need.flags = i % 7 == 0 ? GROW_EXACT : 0;
		snprintf(need.device, sizeof(need.device), "%s", i % 2 ? DEVICE : OTHER_DEVICE);
		CHECK(ask(&need) >= 0);
	}
	pthread_join(thread, NULL);
}

/* Takes everything that the collector grants, and claims to use far more. */
static void claim_everything(unsigned number)
{
	struct member member;
	struct proto_grow_request need;

	if (!CHECK(join(&member)))
		return;
	memset(member.usage, 0xff, sizeof(*member.usage));
	need = want(&member, KIND_qp, 1);
	while (ask(&need) == 0)
		need.total[0]++;
	ready();
	for (need.total[0] = QUOTA + 1; going(); usleep(100))
		CHECK(ask(&need) == PROTO_REFUSED);
}

static void claim_everything_look(void)
{
	CHECK(collector_tenant("attacker").used[KIND_qp] == QUOTA,
	      "the claim counts up to the amount granted");
}

/* ---- the lease table */

/* Tries every way to a descriptor of the same file that can be written. */
static void table_reopen(int fd, const char *user)
{
	static const int flags[] = { O_RDWR, O_WRONLY, O_WRONLY | O_APPEND, O_RDWR | O_TRUNC };
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	for (unsigned i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		CHECK(open(path, flags[i] | O_CLOEXEC) < 0, "%s opened the table with %x", user,
		      (unsigned)flags[i]);
	CHECK(truncate(path, 0), "%s truncated the table", user);
	CHECK(chmod(path, 0666), "%s changed the table's mode", user);
	CHECK(linkat(AT_FDCWD, path, AT_FDCWD, "/tmp/rdma_attack_link", AT_SYMLINK_FOLLOW),
	      "%s has a name for the table", user);
}

static void table_write(const struct member *member)
{
	size_t size = sizeof(struct lease_table);
	int fd = member->table_fd, memory;
	uint64_t word = UINT64_MAX;
	void *place = (void *)&member->table->row[0].cap[KIND_qp];

	CHECK(ftruncate(fd, 0) && ftruncate(fd, (off_t)(2 * size)), "another size");
	CHECK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)size), "hole");
	CHECK(fallocate(fd, 0, 0, (off_t)(2 * size)), "growth");
	CHECK(write(fd, &word, sizeof(word)) < 0 && pwrite(fd, &word, sizeof(word), 64) < 0,
	      "write");
	CHECK(mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED &&
		      errno == EACCES,
	      "map");
	CHECK(mprotect((void *)member->table, size, PROT_READ | PROT_WRITE) && errno == EACCES,
	      "mprotect");
	memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	CHECK(memory >= 0, "%s", strerror(errno));
	CHECK(pwrite(memory, &word, sizeof(word), (off_t)(uintptr_t)place) < 0, "/proc/self/mem");
	close(memory);
	CHECK(fchmod(fd, 0666) && fchown(fd, attacker_uid(), attacker_uid()), "ownership");
}

static void table_of_container_root(const struct member *member)
{
	char path[64];
	int tree;

	if (!become_container_root()) {
		skip_part("root of a user namespace: user namespaces are not permitted");
		return;
	}
	table_reopen(member->table_fd, "root of a user namespace");
	/* Another mount of the file, without the old one's flags. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", member->table_fd);
	CHECK(mount(path, "/tmp", NULL, MS_BIND, NULL), "mounted");
	tree = (int)syscall(SYS_open_tree, member->table_fd, "", AT_EMPTY_PATH | 1 /* clone */);
	CHECK(tree < 0, "open_tree gave a mount of its own");
}

/* uid 0 of a container without a user namespace: file modes do not bind it, but it cannot mount. */
static void table_of_capable_root(int fd)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2] = { 0 };

	data[0].effective = data[0].permitted = 1u << CAP_DAC_OVERRIDE | 1u << CAP_FOWNER |
						1u << CAP_CHOWN | 1u << CAP_DAC_READ_SEARCH;
	if (syscall(SYS_capset, &header, data))
		abort();
	table_reopen(fd, "root of a container");
}

static void lease_table(unsigned number)
{
	struct lease_signature signature;
	struct member member;
	struct proto_grow_request need;
	pid_t child;

	if (!CHECK(join(&member)))
		return;
	ready();
	need = want(&member, KIND_qp, QUOTA);
	CHECK(ask(&need) == 0);
	signature = member.table->signature;
	table_reopen(member.table_fd, "a user");
	table_write(&member);
	child = split();
	if (child == 0) {
		table_of_container_root(&member);
		finish();
	}
	CHECK(reap(child) == 0);
	/* The two places that were written to; the collector itself may have changed the rest. */
	CHECK(!memcmp(&signature, &member.table->signature, sizeof(signature)), "the signature changed");
	CHECK(member.table->row[0].cap[KIND_qp] <= QUOTA, "the cap changed");
	rest();
}

/* The same table as seen by root with some capabilities only. */
static void lease_table_look(void)
{
	struct member member;
	pid_t child = split();

	if (child == 0) {
		if (strstr(collector_log(), "no read-only mount"))
			skip_part("root of a container: the collector cannot mount");
		else if (CHECK(join(&member)))
			table_of_capable_root(member.table_fd);
		finish();
	}
	CHECK(reap(child) == 0);
}

/* Name, promise, processes, rounds, turns, slowdown, and what runs. */
static const struct attack attacks[] = {
	{ "usage_memory", "its size cannot be changed, and a hole in it harms no other process", 2,
	  200, 50, 50, usage_memory, NULL, NULL },
	{ "lease_table", "no process can write it, nor can root of a container", 1,
	  100, 1, 50, lease_table, lease_table_look, NULL },
	{ "scribble", "only the counts of the scribbler are wrong", 2,
	  200, 500, 50, scribble, NULL, NULL },
	{ "claims", "a claim counts up to the amount granted", 4,
	  200, 100, 50, claim_everything, claim_everything_look, NULL },
};

static void driver(void)
{
	attacks_run(attacks, COUNT_OF(attacks));
	stage_close();
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
