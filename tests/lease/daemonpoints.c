/* SPDX-License-Identifier: MIT */
/*
 * The collector as the victim: its parts are called without sockets, on books of the
 * test's own, for members that are real processes. After the kill the files are looked
 * at as they are; then a fresh process does what a collector that is started again
 * does, and must find everything exact: nobody has lost anything, nothing is granted to
 * nobody, and the limits hold to the last unit, then and when all members have ended.
 */
#include <errno.h>
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

#include "daemonscene.h"
#include "family.h"
#include "harness.h"
#include "sides.h"

/* What is to be expected of an operation. */
enum {
	FROM_NOTHING = 1, /* no books before, hence no members */
	CUTS = 2,	  /* the limits are the cut ones */
	REJOINS = 4,	  /* Alice's first membership may have ended */
};

/* ---- what the victims do */

static void prepare_nothing(void)
{
}

static void prepare_open(void)
{
	scene_must(scene_settle(false) == 0);
}

static void prepare_town(void)
{
	prepare_open();
	scene_names_make();
	scene_limits_apply(false);
	for (enum person who = ALICE; who <= CAROL; who++)
		person_join(who);
	scene_lease_use(scene_member[ALICE], scene_page[ALICE], FAKE0, 8, 3);
	scene_lease_use(scene_member[BOB], scene_page[BOB], FAKE0, 6, 2);
	scene_lease_use(scene_member[BOB], scene_page[BOB], FAKE1, 2, 1);
	scene_lease_use(scene_member[CAROL], scene_page[CAROL], FAKE0, 8, 5);
}

static void prepare_spare_tenant(void)
{
	prepare_town();
	scene_must(books_tenant(&scene_books, "gamma") == BETA + 1);
}

/* A newcomer without memory of ours. */
static void prepare_asking(void)
{
	int fd, member;

	prepare_town();
	member = scene_join(scene.pid[NEWCOMER], ALPHA, HELLO_NO_MEMORY, -1, &fd);
	scene_must(member >= 0);
	scene_member[NEWCOMER] = (unsigned)member;
	scene_must(scene_lease_take(scene_member[NEWCOMER], FAKE0) >= 0);
}

static void prepare_cut(void)
{
	prepare_town();
	scene_limits_apply(true);
	grants_enforce(&scene_books);
}

/* A member that has ended, with two leases; nobody has noticed yet. */
static unsigned corpse_make(void)
{
	struct usage_page *own;
	char path[64];
	int fd, member, ends[2];
	pid_t pid;

	scene_must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
	pid = family_fork();
	if (pid == 0)
		for (;;)
			pause();
	close(ends[1]);
	member = scene_join(pid, ALPHA, 0, ends[0], &fd);
	scene_must(member >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	own = scene_page_map(path, PROT_READ | PROT_WRITE);
	scene_must(own != NULL);
	scene_lease_use((unsigned)member, own, FAKE0, 2, 2);
	scene_lease_use((unsigned)member, own, FAKE1, 1, 1);
	munmap(own, sizeof(*own));
	close(fd);
	kill(pid, SIGKILL);
	scene_must(waitpid(pid, NULL, 0) == pid);
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
	scene_books.file->member[dying].state = BOOK_DYING;
	lease = scene_books.member[dying].leases;
	scene_books.view[lease].cap[KIND_qp] = 0;
	scene_books.file->lease[lease].granted[KIND_qp] = 0;
	lease = scene_books.member[scene_member[ALICE]].leases;
	scene_books.view[lease].cap[KIND_qp] = 3;
	scene_books.view[lease].cap[KIND_send_wr] = 0;
	lease = scene_books.member[scene_member[CAROL]].leases;
	scene_books.view[lease].cap[KIND_qp] = 6;
	scene_close();
}

static void run_open(void)
{
	scene_open(false);
}

static void run_names(void)
{
	scene_names_make();
}

static void run_drop(void)
{
	books_tenant_drop(&scene_books, BETA + 1);
}

static void run_join(void)
{
	int fd;

	scene_join(scene.pid[NEWCOMER], ALPHA, 0, -1, &fd);
}

static void run_join_again(void)
{
	int fd;

	scene_join(scene.pid[ALICE], ALPHA, 0, -1, &fd);
}

static void run_lease(void)
{
	scene_lease_take(scene_member[ALICE], FAKE1);
}

static unsigned lease_on(enum person who, unsigned device)
{
	return books_lease_of(&scene_books, scene_member[who], device);
}

static void run_grant(void)
{
	scene_must(scene_need_more(lease_on(ALICE, FAKE0), 10, false) == 0);
}

static void run_grant_sweep(void)
{
	scene_must(scene_need_more(lease_on(BOB, FAKE0), 20, false) == 0);
}

static void run_grant_sweep_device(void)
{
	scene_must(scene_need_more(lease_on(CAROL, FAKE0), 27, false) == 0);
}

static void run_refusal(void)
{
	scene_must(scene_need_more(lease_on(BOB, FAKE0), 22, false) == LEDGER_REFUSED);
}

static void run_exact(void)
{
	scene_must(scene_need_more(lease_on(NEWCOMER, FAKE0), 5, true) == 0);
	scene_must(scene_need_more(lease_on(NEWCOMER, FAKE0), 1, true) == 0);
}

static void run_cut(void)
{
	scene_limits_apply(true);
	grants_enforce(&scene_books);
}

static void run_raise(void)
{
	scene_limits_apply(false);
	grants_enforce(&scene_books);
	scene_must(scene_need_more(lease_on(ALICE, FAKE0), 4, false) == 0);
}

static void run_dispatch(void)
{
	members_dispatch(&scene_members);
	scene_search();
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

		good &= CHECK(!name[0] || !strcmp(name, i <= BETA ? scene_tenants[i] : "gamma"),
			      "tenant %u is called \"%.64s\"", i, name);
		good &= CHECK(!name[0] || frozen.table[i], "tenant %u has no table", i);
	}
	for (unsigned i = 0; i <= FAKE1; i++) {
		const char *name = frozen.file->device[i].name;

		good &= CHECK(!name[0] || !strcmp(name, scene_devices[i]),
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
	own = scene_page_map(path, PROT_READ);
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

	frozen_map(&frozen, scene_directory);
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
	const struct owner *alpha = &scene_books.tenant[ALPHA]->all;
	uint64_t own = grants_used(&scene_books, lease, KIND_qp), rest;
	struct grants_need need = { .lease = lease, .count = 1, .kind = { KIND_qp } };
	bool good = true;

	grants_measure(&scene_books);
	rest = lowest(lowest(left(&alpha->total, KIND_qp), left(&scene_books.host.total, KIND_qp)),
		      left(&scene_books.host.device[FAKE0], KIND_qp));
	need.total[0] = own + rest;
	need.wanted[0] = rest;
	if (rest)
		good = CHECK(grants_need(&scene_books, &need, &scene_refusal) == 0,
			     "%llu more QPs refused: %llu of %llu are granted (scope %d)",
			     (unsigned long long)rest, (unsigned long long)scene_refusal.used,
			     (unsigned long long)scene_refusal.limit, (int)scene_refusal.scope);
	need.total[0]++;
	good = good && CHECK(grants_need(&scene_books, &need, &scene_refusal) == LEDGER_REFUSED,
			     "one more than the limit was granted");
	return good && audit_sums(&scene_books) == 0;
}

static bool cut_is_enforced(void)
{
	const struct scope *alpha = &scene_books.tenant[ALPHA]->all.total;
	bool good;

	grants_enforce(&scene_books);
	grants_measure(&scene_books);
	good = CHECK(alpha->granted[KIND_qp] == alpha->used[KIND_qp] && alpha->used[KIND_qp] == 6,
		     "%llu QPs granted, %llu used", (unsigned long long)alpha->granted[KIND_qp],
		     (unsigned long long)alpha->used[KIND_qp]);
	for (unsigned lease = 0; lease < scene_books.file->leases_high; lease++)
		if (scene_books.view[lease].member != BOOKS_NOBODY &&
		    scene_books.view[lease].tenant == ALPHA)
			good &= CHECK(scene_books.view[lease].cap[KIND_qp] == 0,
				      "a lease of a tenant over its limit has a cap");
	return good && audit_sums(&scene_books) == 0;
}

static bool restart_is_exact(unsigned flags)
{
	bool good;
	int fd;

	if (scene_settle(flags & CUTS) < 0)
		return false;
	scene_names_make();
	scene_limits_apply(flags & CUTS);
	good = audit_sums(&scene_books) == 0 && (flags & CUTS || audit_limits(&scene_books) == 0) &&
	       (!(flags & CUTS) || cut_is_enforced()) && files_are_sound(flags);
	if (good && !(flags & FROM_NOTHING)) {
		scene_member[BOB] = (unsigned)members_of_pid(&scene_members, scene.pid[BOB]);
		good = limit_is_exact(lease_on(BOB, FAKE0)) && files_are_sound(flags) &&
		       CHECK(scene_books.members_count <= PERSONS) &&
		       CHECK(scene_join(scene.pid[NEWCOMER], ALPHA, 0, -1, &fd) >= 0 &&
			     scene_join(scene.pid[ALICE], ALPHA, 0, -1, &fd) >= 0);
		scene_search(); /* for heirs of what Alice was before */
		good = good && CHECK(scene_books.members_count == PERSONS) &&
		       audit_sums(&scene_books) == 0;
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
		members_dispatch(&scene_members);
		scene_search();
	} else {
		scene_close();
		if (!persons_kill() || scene_settle(flags & CUTS) < 0)
			return false;
	}
	if (audit_nothing(&scene_books))
		return false;
	member = scene_join(getpid(), ALPHA, 0, -1, &fd);
	lease = member < 0 ? -1 : scene_lease_take((unsigned)member, FAKE0);
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
		snprintf(path, sizeof(path), "%s/%s", scene_directory, names[i]);
		unlink(path);
	}
	rmdir(scene_directory);
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
		frozen_map(&frozen, scene_directory);
	return frozen_changed(&frozen);
}

static void begin(void)
{
	snprintf(scene_directory, sizeof(scene_directory), "/dev/shm/%s.books", shm_name());
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
