/* SPDX-License-Identifier: MIT */
/*
 * The collector as the victim: its parts are called without sockets, on books of the
 * test's own, for members that are real processes. After the kill the files are looked
 * at as they are; then a fresh process does what a collector that is started again
 * does, and must find everything exact: nobody has lost anything, nothing is granted to
 * nobody, and the limits hold to the last unit, then and when all members have ended.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
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

#include "audit.h"
#include "collector/grants.h"
#include "collector/members.h"
#include "family.h"
#include "harness.h"
#include "sides.h"
#include "ledger/identity.h"

enum { FAKE0 = 1, FAKE1 = 2 }; /* devices, and the rows in usage pages where they are counted */
enum { ALPHA, BETA };	       /* tenants */

static const char *const tenant_names[] = { "alpha", "beta" };
static const char *const device_names[] = { "", "fake_device_0", "fake_device_1" };

enum {
	ALPHA_QPS = 24,
	CUT_QPS = 4, /* less than is used */
	HOST_QPS = 40,
	FAKE0_QPS = 32,
	HOST_SENDS = 2000,
	CUT_SENDS = 100,
	ALPHA_RECVS = 900,
};

/* What is to be expected of an operation. */
enum {
	FROM_NOTHING = 1, /* no books before, hence no members */
	CUTS = 2,	  /* the limits are the cut ones */
	REJOINS = 4,	  /* Alice's first membership may have ended */
};

/* ---- the members: processes that only keep their usage page open */

enum person { ALICE, BOB, CAROL, NEWCOMER, PERSONS };
enum { PERSON_FD = 100 };

static const unsigned tenant_of[PERSONS] = { ALPHA, ALPHA, BETA, ALPHA };

static struct scene {
	pid_t pid[PERSONS];
	int line[PERSONS][2]; /* our end, and the person's */
} scene;

static char directory[64];
static const struct log no_log = { .level = LOG_OFF };

static void must(bool good)
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
		must(fd >= 0 && dup2(fd, PERSON_FD) == PERSON_FD);
		close(fd);
		must(write(line, "", 1) == 1);
	}
	_exit(0);
}

static void persons_start(void)
{
	for (unsigned i = 0; i < PERSONS; i++) {
		must(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, scene.line[i]) == 0);
		scene.pid[i] = family_fork();
		if (scene.pid[i] == 0)
			person_live(scene.line[i][1]);
		close(scene.line[i][1]);
	}
}

static void persons_end(void)
{
	for (unsigned i = 0; i < PERSONS; i++) {
		if (!scene.pid[i])
			continue;
		family_kill(&scene.pid[i]);
		close(scene.line[i][0]);
	}
}

static struct usage_page *page_map(const char *path, int protection)
{
	int fd = open(path, (protection & PROT_WRITE ? O_RDWR : O_RDONLY) | O_CLOEXEC);
	void *page = fd < 0 ? MAP_FAILED :
			      mmap(NULL, sizeof(struct usage_page), protection, MAP_SHARED, fd, 0);

	if (fd >= 0)
		close(fd);
	return page == MAP_FAILED ? NULL : page;
}

/* ---- the collector's parts, as the victim and the examination use them */

static struct books books;
static struct members members;
static struct usage_page *page[PERSONS];
static unsigned member_of[PERSONS];
static struct ledger_refusal refusal;

static void limits_apply(bool cut)
{
	struct tenant *alpha = books.tenant[ALPHA];

	books.host.total.limit[KIND_qp] = HOST_QPS;
	books.host.total.limit[KIND_send_wr] = cut ? CUT_SENDS : HOST_SENDS;
	books.host.device[FAKE0].limit[KIND_qp] = FAKE0_QPS;
	if (!alpha)
		return;
	alpha->all.total.limit[KIND_qp] = cut ? CUT_QPS : ALPHA_QPS;
	alpha->all.total.limit[KIND_recv_wr] = ALPHA_RECVS;
}

/* What a collector does between requests, until nobody is sought any more. */
static void search_all(void)
{
	while (members_are_sought(&members))
		members_search(&members, UINT64_MAX);
}

/* What a collector does when it starts, in its order. */
static int collector_open(bool cut)
{
	char problem[PROBLEM_SIZE] = "";
	int result = books_open(&books, directory, &no_log, problem);

	if (result == 0)
		result = members_init(&members, &books);
	if (!CHECK(result == 0, "%s", problem))
		return result;
	members_attach(&members);
	limits_apply(cut);
	return 0;
}

/* With what it does next: it looks for pages and heirs, longer than can be traced. */
static int collector_settle(bool cut)
{
	int result = collector_open(cut);

	if (result == 0)
		search_all();
	return result;
}

static void collector_close(void)
{
	members_close(&members);
	books_close(&books);
}

static void names_make(void)
{
	for (unsigned i = ALPHA; i <= BETA; i++)
		must(books_tenant(&books, tenant_names[i]) == (int)i);
	for (unsigned i = FAKE0; i <= FAKE1; i++)
		must(books_device(&books, device_names[i]) == i);
}

/* Registers a process; its usage page in *ret_fd. Without a connection it is a member as
 * after a restart. */
static int join(pid_t pid, unsigned tenant, unsigned flags, int connection, int *ret_fd)
{
	struct proto_hello hello = { .flags = flags };
	struct peer peer = { .pid = pid, .start = identity_start(pid) };
	int member;

	memset(hello.process_limit, 0xff, sizeof(hello.process_limit));
	memset(hello.host_limit, 0xff, sizeof(hello.host_limit));
	peer.pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (peer.pidfd < 0)
		return -errno;
	member = members_join(&members, &peer, tenant, &hello, connection, ret_fd);
	if (member < 0)
		close(peer.pidfd);
	return member;
}

static int lease_take(unsigned member, unsigned device)
{
	int lease = books_lease_row(&books);
	int result = lease < 0 ? lease :
				 books_lease_take(&books, (unsigned)lease, member, device, device);

	return result < 0 ? result : lease;
}

/* Asks for totals of QPs with 16 send and 8 receive requests each. */
static int need_more(unsigned lease, uint64_t qps, bool exact)
{
	struct grants_need need = {
		.lease = lease,
		.count = 3,
		.kind = { KIND_qp, KIND_send_wr, KIND_recv_wr },
		.total = { qps, 16 * qps, 8 * qps },
		.wanted = { 1, 16, 8 },
		.exact = exact,
	};

	return grants_need(&books, &need, &refusal);
}

static void page_use(struct usage_page *in, unsigned device, uint64_t qps)
{
	in->row[device].used[KIND_qp] = qps;
	in->row[device].used[KIND_send_wr] = 16 * qps;
	in->row[device].used[KIND_recv_wr] = 8 * qps;
}

/* A lease on which there was more, so that there is credit to take back. */
static void lease_use(unsigned member, struct usage_page *in, unsigned device, uint64_t asked,
		      uint64_t used)
{
	int lease = lease_take(member, device);

	must(lease >= 0 && need_more((unsigned)lease, asked, false) == 0);
	page_use(in, device, used);
}

static void person_join(enum person who)
{
	struct page_offer offer = { .pid = getpid() };
	char path[64], answer;
	int member = join(scene.pid[who], tenant_of[who], 0, -1, &offer.fd);

	must(member >= 0);
	member_of[who] = (unsigned)member;
	must(write(scene.line[who][0], &offer, sizeof(offer)) == sizeof(offer) &&
	     read(scene.line[who][0], &answer, 1) == 1);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", offer.fd);
	page[who] = page_map(path, PROT_READ | PROT_WRITE);
	close(offer.fd);
	must(page[who] != NULL);
}

/* ---- what the victims do */

static void prepare_nothing(void)
{
}

static void prepare_open(void)
{
	must(collector_settle(false) == 0);
}

static void prepare_town(void)
{
	prepare_open();
	names_make();
	limits_apply(false);
	for (enum person who = ALICE; who <= CAROL; who++)
		person_join(who);
	lease_use(member_of[ALICE], page[ALICE], FAKE0, 8, 3);
	lease_use(member_of[BOB], page[BOB], FAKE0, 6, 2);
	lease_use(member_of[BOB], page[BOB], FAKE1, 2, 1);
	lease_use(member_of[CAROL], page[CAROL], FAKE0, 8, 5);
}

static void prepare_spare_tenant(void)
{
	prepare_town();
	must(books_tenant(&books, "gamma") == BETA + 1);
}

/* A newcomer without memory of ours. */
static void prepare_asking(void)
{
	int fd, member;

	prepare_town();
	member = join(scene.pid[NEWCOMER], ALPHA, HELLO_NO_MEMORY, -1, &fd);
	must(member >= 0);
	member_of[NEWCOMER] = (unsigned)member;
	must(lease_take(member_of[NEWCOMER], FAKE0) >= 0);
}

static void prepare_cut(void)
{
	prepare_town();
	limits_apply(true);
	grants_enforce(&books);
}

/* A member that has ended, with two leases; nobody has noticed yet. */
static unsigned corpse_make(void)
{
	struct usage_page *own;
	char path[64];
	int fd, member, ends[2];
	pid_t pid;

	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
	pid = family_fork();
	if (pid == 0)
		for (;;)
			pause();
	close(ends[1]);
	member = join(pid, ALPHA, 0, ends[0], &fd);
	must(member >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	own = page_map(path, PROT_READ | PROT_WRITE);
	must(own != NULL);
	lease_use((unsigned)member, own, FAKE0, 2, 2);
	lease_use((unsigned)member, own, FAKE1, 1, 1);
	munmap(own, sizeof(*own));
	close(fd);
	kill(pid, SIGKILL);
	must(waitpid(pid, NULL, 0) == pid);
	return (unsigned)member;
}

static void prepare_corpse(void)
{
	prepare_town();
	corpse_make();
}

/* Books as a collector leaves them that is killed at an unfortunate moment: a corpse that
 * nobody noticed, one that is half given back, and caps below what is granted. */
static void prepare_remains(void)
{
	unsigned lease, dying;

	prepare_corpse();
	dying = corpse_make();
	books.file->member[dying].state = BOOK_DYING;
	lease = books.member[dying].leases;
	books.view[lease].cap[KIND_qp] = 0;
	books.file->lease[lease].granted[KIND_qp] = 0;
	lease = books.member[member_of[ALICE]].leases;
	books.view[lease].cap[KIND_qp] = 3;
	books.view[lease].cap[KIND_send_wr] = 0;
	lease = books.member[member_of[CAROL]].leases;
	books.view[lease].cap[KIND_qp] = 6;
	collector_close();
}

static void run_open(void)
{
	collector_open(false);
}

static void run_names(void)
{
	names_make();
}

static void run_drop(void)
{
	books_tenant_drop(&books, BETA + 1);
}

static void run_join(void)
{
	int fd;

	join(scene.pid[NEWCOMER], ALPHA, 0, -1, &fd);
}

static void run_join_again(void)
{
	int fd;

	join(scene.pid[ALICE], ALPHA, 0, -1, &fd);
}

static void run_lease(void)
{
	lease_take(member_of[ALICE], FAKE1);
}

static unsigned lease_on(enum person who, unsigned device)
{
	return books_lease_of(&books, member_of[who], device);
}

static void run_grant(void)
{
	must(need_more(lease_on(ALICE, FAKE0), 10, false) == 0);
}

static void run_grant_sweep(void)
{
	must(need_more(lease_on(BOB, FAKE0), 20, false) == 0);
}

static void run_grant_sweep_device(void)
{
	must(need_more(lease_on(CAROL, FAKE0), 27, false) == 0);
}

static void run_refusal(void)
{
	must(need_more(lease_on(BOB, FAKE0), 22, false) == LEDGER_REFUSED);
}

static void run_exact(void)
{
	must(need_more(lease_on(NEWCOMER, FAKE0), 5, true) == 0);
	must(need_more(lease_on(NEWCOMER, FAKE0), 1, true) == 0);
}

static void run_cut(void)
{
	limits_apply(true);
	grants_enforce(&books);
}

static void run_raise(void)
{
	limits_apply(false);
	grants_enforce(&books);
	must(need_more(lease_on(ALICE, FAKE0), 4, false) == 0);
}

static void run_dispatch(void)
{
	members_dispatch(&members);
	search_all();
}

static const struct operation operations[] = {
	{ "create_books", { prepare_nothing, run_open }, 20, FROM_NOTHING },
	{ "name_tenants_and_devices", { prepare_open, run_names }, 20, FROM_NOTHING },
	{ "drop_tenant", { prepare_spare_tenant, run_drop }, 100, 0 },
	{ "join", { prepare_town, run_join }, 200, 0 },
	{ "join_again", { prepare_town, run_join_again }, 200, REJOINS },
	{ "make_lease", { prepare_town, run_lease }, 200, 0 },
	{ "grant", { prepare_town, run_grant }, 300, 0 },
	{ "grant_after_sweep", { prepare_town, run_grant_sweep }, 200, 0 },
	{ "grant_after_sweep_of_device", { prepare_town, run_grant_sweep_device }, 200, 0 },
	{ "refuse", { prepare_town, run_refusal }, 150, 0 },
	{ "grant_exactly_and_less", { prepare_asking, run_exact }, 200, 0 },
	{ "cut_limits", { prepare_town, run_cut }, 20, CUTS },
	{ "raise_limits", { prepare_cut, run_raise }, 20, 0 },
	{ "death_of_member", { prepare_corpse, run_dispatch }, 300, 0 },
	{ "restart", { prepare_remains, run_open }, 20, 0 },
};

/* ---- the examination, in a process of its own */

static struct frozen frozen;

static bool names_are_whole(void)
{
	bool good = true;

	for (unsigned i = 0; i < FROZEN_TENANTS; i++) {
		const char *name = frozen.file->tenant[i].name;

		good &= CHECK(!name[0] || !strcmp(name, i <= BETA ? tenant_names[i] : "gamma"),
			      "tenant %u is called \"%.64s\"", i, name);
		good &= CHECK(!name[0] || frozen.table[i], "tenant %u has no table", i);
	}
	for (unsigned i = 0; i <= FAKE1; i++) {
		const char *name = frozen.file->device[i].name;

		good &= CHECK(!name[0] || !strcmp(name, device_names[i]),
			      "device %u is called \"%.64s\"", i, name);
	}
	return good;
}

/* The member that a person's page belongs to, among the rows of the files. */
static int member_with_page(pid_t pid, uint64_t inode)
{
	for (unsigned i = 0; i < frozen.file->members_high; i++)
		if (frozen.file->member[i].state == BOOK_TAKEN &&
		    frozen.file->member[i].pid == pid &&
		    frozen.file->member[i].usage_inode == inode)
			return (int)i;
	return -1;
}

/* A person still has its membership, and uses no more than was granted to it. */
static bool person_is_sound(enum person who, bool may_be_gone)
{
	char path[64];
	struct stat status;
	struct usage_page *own;
	bool good;
	int member;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)scene.pid[who], PERSON_FD);
	own = page_map(path, PROT_READ);
	if (!CHECK(own && !stat(path, &status), "no page of person %u", who))
		return false;
	member = member_with_page(scene.pid[who], status.st_ino);
	good = CHECK(member >= 0 || may_be_gone, "person %u is not registered any more", who) &&
	       (member < 0 || frozen_excess(&frozen, (unsigned)member, own) == 0);
	munmap(own, sizeof(*own));
	return good;
}

/* Before anybody repaired anything: no sum is above a limit that was not cut. */
static bool sums_are_sound(void)
{
	wide alpha = frozen_granted(&frozen, ALPHA, BOOKS_NOBODY, KIND_qp);
	wide host = frozen_granted(&frozen, BOOKS_NOBODY, BOOKS_NOBODY, KIND_qp);
	wide fake0 = frozen_granted(&frozen, BOOKS_NOBODY, FAKE0, KIND_qp);

	return CHECK(alpha <= ALPHA_QPS && host <= HOST_QPS && fake0 <= FAKE0_QPS,
		     "%u QPs granted to the tenant, %u on the host, %u on the device",
		     (unsigned)alpha, (unsigned)host, (unsigned)fake0);
}

static bool files_are_sound(unsigned flags)
{
	bool good = true;

	frozen_map(&frozen, directory);
	if (!frozen.file)
		return CHECK(flags & FROM_NOTHING, "the books are gone");
	good = frozen_faults(&frozen) == 0 && sums_are_sound() && names_are_whole();
	for (enum person who = ALICE; good && who <= CAROL && !(flags & FROM_NOTHING); who++)
		good = person_is_sound(who, who == ALICE && flags & REJOINS);
	frozen_unmap(&frozen);
	return good;
}

static uint64_t lowest(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t left(const struct scope *scope, unsigned kind)
{
	return scope->limit[kind] > scope->used[kind] ?
		       (uint64_t)(scope->limit[kind] - scope->used[kind]) :
		       0;
}

/* All that the limits leave can be had, and not one more: nothing is granted to nobody. */
static bool limit_is_exact(unsigned lease)
{
	const struct owner *alpha = &books.tenant[ALPHA]->all;
	uint64_t own = grants_used(&books, lease, KIND_qp), rest;
	struct grants_need need = { .lease = lease, .count = 1, .kind = { KIND_qp } };
	bool good = true;

	grants_measure(&books);
	rest = lowest(lowest(left(&alpha->total, KIND_qp), left(&books.host.total, KIND_qp)),
		      left(&books.host.device[FAKE0], KIND_qp));
	need.total[0] = own + rest;
	need.wanted[0] = rest;
	if (rest)
		good = CHECK(grants_need(&books, &need, &refusal) == 0,
			     "%llu more QPs refused: %llu of %llu are granted (scope %d)",
			     (unsigned long long)rest, (unsigned long long)refusal.used,
			     (unsigned long long)refusal.limit, (int)refusal.scope);
	need.total[0]++;
	good = good && CHECK(grants_need(&books, &need, &refusal) == LEDGER_REFUSED,
			     "one more than the limit was granted");
	return good && audit_sums(&books) == 0;
}

static bool cut_is_enforced(void)
{
	const struct scope *alpha = &books.tenant[ALPHA]->all.total;
	bool good;

	grants_enforce(&books);
	grants_measure(&books);
	good = CHECK(alpha->granted[KIND_qp] == alpha->used[KIND_qp] && alpha->used[KIND_qp] == 6,
		     "%llu QPs granted, %llu used", (unsigned long long)alpha->granted[KIND_qp],
		     (unsigned long long)alpha->used[KIND_qp]);
	for (unsigned lease = 0; lease < books.file->leases_high; lease++)
		if (books.view[lease].member != BOOKS_NOBODY && books.view[lease].tenant == ALPHA)
			good &= CHECK(books.view[lease].cap[KIND_qp] == 0,
				      "a lease of a tenant over its limit has a cap");
	return good && audit_sums(&books) == 0;
}

static bool restart_is_exact(unsigned flags)
{
	bool good;
	int fd;

	if (collector_settle(flags & CUTS) < 0)
		return false;
	names_make();
	limits_apply(flags & CUTS);
	good = audit_sums(&books) == 0 && (flags & CUTS || audit_limits(&books) == 0) &&
	       (!(flags & CUTS) || cut_is_enforced()) && files_are_sound(flags);
	if (good && !(flags & FROM_NOTHING)) {
		member_of[BOB] = (unsigned)members_of_pid(&members, scene.pid[BOB]);
		good = limit_is_exact(lease_on(BOB, FAKE0)) && files_are_sound(flags) &&
		       CHECK(books.members_count <= PERSONS) &&
		       CHECK(join(scene.pid[NEWCOMER], ALPHA, 0, -1, &fd) >= 0 &&
			     join(scene.pid[ALICE], ALPHA, 0, -1, &fd) >= 0);
		search_all(); /* for heirs of what Alice was before */
		good = good && CHECK(books.members_count == PERSONS) && audit_sums(&books) == 0;
	}
	return good;
}

static bool persons_kill(void)
{
	bool good = true;

	for (unsigned i = 0; i < PERSONS; i++) {
		struct pollfd end = { .fd = (int)syscall(SYS_pidfd_open, scene.pid[i], 0),
				      .events = POLLIN };

		kill(scene.pid[i], SIGKILL);
		good &= CHECK(poll(&end, 1, -1) == 1);
		close(end.fd);
	}
	return good;
}

/* All members have ended, and a collector hears of it, or is started after it. */
static bool end_is_exact(bool while_running, unsigned flags)
{
	int fd, member, lease;

	if (while_running) {
		if (!persons_kill())
			return false;
		members_dispatch(&members);
		search_all();
	} else {
		collector_close();
		if (!persons_kill() || collector_settle(flags & CUTS) < 0)
			return false;
	}
	if (audit_nothing(&books))
		return false;
	member = join(getpid(), ALPHA, 0, -1, &fd);
	lease = member < 0 ? -1 : lease_take((unsigned)member, FAKE0);
	return CHECK(lease >= 0) && limit_is_exact((unsigned)lease);
}

static bool examined(const struct operation *operation, unsigned point)
{
	pid_t pid = family_fork();
	int status = 0;

	if (pid == 0)
		_exit(files_are_sound(operation->flags) && restart_is_exact(operation->flags) &&
				      end_is_exact(point % 4, operation->flags) ?
			      0 :
			      1);
	waitpid(pid, &status, 0);
	return CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0,
		     "the collector that was started again: status %#x", (unsigned)status);
}

static bool examine(const struct operation *operation, struct victim *victim, unsigned point)
{
	victim_kill(victim);
	return examined(operation, point);
}

/* ---- the scene */

static void books_remove(void)
{
	static const char *const names[] = { "ledger",	      ".ledger.new",  "tenant-0",
					     "tenant-1",      "tenant-2",     ".tenant-0.new",
					     ".tenant-1.new", ".tenant-2.new" };
	char path[128];

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", directory, names[i]);
		unlink(path);
	}
	rmdir(directory);
}

static bool scene_set(const struct operation *operation)
{
	frozen_unmap(&frozen);
	persons_end();
	books_remove();
	persons_start();
	return true;
}

/* The files are new in each scene, and some of them during the operation. */
static bool files_changed(pid_t victim, bool files)
{
	if (files)
		frozen_map(&frozen, directory);
	return frozen_changed(&frozen);
}

static void begin(void)
{
	snprintf(directory, sizeof(directory), "/dev/shm/%s.books", shm_name());
}

static void end(void)
{
	frozen_unmap(&frozen);
	persons_end();
	books_remove();
}

const struct side daemon_side = {
	.name = "the collector is killed",
	.operations = operations,
	.count = sizeof(operations) / sizeof(operations[0]),
	.begin = begin,
	.scene = scene_set,
	.changed = files_changed,
	.examine = examine,
	.end = end,
};
