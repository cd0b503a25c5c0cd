/* SPDX-License-Identifier: MIT */
/* The scene in which the collector is killed; see daemonscene.h. */
#include "daemonscene.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "family.h"
#include "harness.h"
#include "ledger/identity.h"

const char *const scene_tenants[] = { "alpha", "beta" };
const char *const scene_devices[] = { "", "fake_device_0", "fake_device_1" };

/* ---- the members */

const unsigned scene_tenant_of[PERSONS] = { ALPHA, ALPHA, BETA, ALPHA };

struct scene scene;

char scene_directory[64];
static const struct log no_log = { .level = LOG_OFF };

void scene_must(bool good)
{
	if (!good)
		_exit(1);
}

struct page_offer {
	pid_t pid;
	int fd;
};

/* Keeps the last page that it was offered, until it is killed. */
static void person_live(int line)
{
	struct page_offer offer;
	char path[64];
	int fd;

	while (read(line, &offer, sizeof(offer)) == sizeof(offer)) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)offer.pid, offer.fd);
		fd = open(path, O_RDWR);
		scene_must(fd >= 0 && dup2(fd, PERSON_FD) == PERSON_FD);
		close(fd);
		scene_must(write(line, "", 1) == 1);
	}
	_exit(0);
}

void persons_start(void)
{
	for (unsigned i = 0; i < PERSONS; i++) {
		scene_must(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, scene.line[i]) ==
			   0);
		scene.pid[i] = family_fork();
		if (scene.pid[i] == 0)
			person_live(scene.line[i][1]);
		close(scene.line[i][1]);
	}
}

void persons_end(void)
{
	for (unsigned i = 0; i < PERSONS; i++) {
		if (!scene.pid[i])
			continue;
		family_kill(&scene.pid[i]);
		close(scene.line[i][0]);
	}
}

struct usage_page *scene_page_map(const char *path, int protection)
{
	int fd = open(path, (protection & PROT_WRITE ? O_RDWR : O_RDONLY) | O_CLOEXEC);
	void *page = fd < 0 ? MAP_FAILED :
			      mmap(NULL, sizeof(struct usage_page), protection, MAP_SHARED, fd, 0);

	if (fd >= 0)
		close(fd);
	return page == MAP_FAILED ? NULL : page;
}

/* ---- the collector's parts */

struct books scene_books;
struct members scene_members;
struct usage_page *scene_page[PERSONS];
unsigned scene_member[PERSONS];
struct ledger_refusal scene_refusal;

void scene_limits_apply(bool cut)
{
	struct tenant *alpha = scene_books.tenant[ALPHA];

	scene_books.host.total.limit[KIND_qp] = HOST_QPS;
	scene_books.host.total.limit[KIND_send_wr] = cut ? CUT_SENDS : HOST_SENDS;
	scene_books.host.device[FAKE0].limit[KIND_qp] = FAKE0_QPS;
	if (!alpha)
		return;
	alpha->all.total.limit[KIND_qp] = cut ? CUT_QPS : ALPHA_QPS;
	alpha->all.total.limit[KIND_recv_wr] = ALPHA_RECVS;
}

void scene_search(void)
{
	while (members_are_sought(&scene_members))
		members_search(&scene_members, UINT64_MAX);
}

int scene_open(bool cut)
{
	char problem[PROBLEM_SIZE] = "";
	int result = books_open(&scene_books, scene_directory, &no_log, problem);

	if (result == 0)
		result = members_init(&scene_members, &scene_books);
	if (!CHECK(result == 0, "%s", problem))
		return result;
	members_attach(&scene_members);
	scene_limits_apply(cut);
	return 0;
}

int scene_settle(bool cut)
{
	int result = scene_open(cut);

	if (result == 0)
		scene_search();
	return result;
}

void scene_close(void)
{
	members_close(&scene_members);
	books_close(&scene_books);
}

void scene_names_make(void)
{
	for (unsigned i = ALPHA; i <= BETA; i++)
		scene_must(books_tenant(&scene_books, scene_tenants[i]) == (int)i);
	for (unsigned i = FAKE0; i <= FAKE1; i++)
		scene_must(books_device(&scene_books, scene_devices[i]) == i);
}

int scene_join(pid_t pid, unsigned tenant, unsigned flags, int connection, int *ret_fd)
{
	struct proto_hello hello = { .flags = flags };
	struct peer peer = { .pid = pid, .start = identity_start(pid) };
	int member;

	memset(hello.process_limit, 0xff, sizeof(hello.process_limit));
	memset(hello.host_limit, 0xff, sizeof(hello.host_limit));
	peer.pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (peer.pidfd < 0)
		return -errno;
	member = members_join(&scene_members, &peer, tenant, &hello, connection, ret_fd);
	if (member < 0)
		close(peer.pidfd);
	return member;
}

int scene_lease_take(unsigned member, unsigned device)
{
	int lease = books_lease_row(&scene_books);
	int result =
		lease < 0 ? lease :
			    books_lease_take(&scene_books, (unsigned)lease, member, device, device);

	return result < 0 ? result : lease;
}

int scene_need_more(unsigned lease, uint64_t qps, bool exact)
{
	struct grants_need need = {
		.lease = lease,
		.count = 3,
		.kind = { KIND_qp, KIND_send_wr, KIND_recv_wr },
		.total = { qps, 16 * qps, 8 * qps },
		.wanted = { 1, 16, 8 },
		.exact = exact,
	};

	return grants_need(&scene_books, &need, &scene_refusal);
}

static void page_use(struct usage_page *in, unsigned device, uint64_t qps)
{
	in->row[device].used[KIND_qp] = qps;
	in->row[device].used[KIND_send_wr] = 16 * qps;
	in->row[device].used[KIND_recv_wr] = 8 * qps;
}

void scene_lease_use(unsigned member, struct usage_page *in, unsigned device, uint64_t asked,
		      uint64_t used)
{
	int lease = scene_lease_take(member, device);

	scene_must(lease >= 0 && scene_need_more((unsigned)lease, asked, false) == 0);
	page_use(in, device, used);
}

void person_join(enum person who)
{
	struct page_offer offer = { .pid = getpid() };
	char path[64], answer;
	int member = scene_join(scene.pid[who], scene_tenant_of[who], 0, -1, &offer.fd);

	scene_must(member >= 0);
	scene_member[who] = (unsigned)member;
	scene_must(write(scene.line[who][0], &offer, sizeof(offer)) == sizeof(offer) &&
		   read(scene.line[who][0], &answer, 1) == 1);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", offer.fd);
	scene_page[who] = scene_page_map(path, PROT_READ | PROT_WRITE);
	close(offer.fd);
	scene_must(scene_page[who] != NULL);
}
