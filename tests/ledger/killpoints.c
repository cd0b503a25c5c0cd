/* SPDX-License-Identifier: MIT */
/*
 * SIGKILL after every instruction. A victim runs one operation of the ledger under ptrace and is
 * killed after N instructions; then a fresh process joins, and the ledger must be exact: it holds
 * the bystander's amounts and no others, the lock is free, and limits hold to the last unit. Tried
 * are all instructions that change the shared file or the list of held locks, those after system
 * calls, and a sample of the rest, where a kill leaves the same behind as at the one before.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "books.h"
#include "family.h"
#include "harness.h"
#include "ledger/shmfile.h"
#include "points.h"

#define DEVICE "fake_device_0"
#define NEW_DEVICE "fake_device_with_a_long_name_1"

enum {
	HOST_QPS = 10,
	BYSTANDER_QPS = 2,
	CORPSE_QPS = 3,
	UNNOTICED_QPS = 6, /* with those above more than the host allows */
	HOST_MRS = 20,
	DEFAULT_MRS = 50, /* what the bystander proposes without meaning it */
	SEATS_WATCHED = 4, /* more than are ever taken */
};

enum { FROM_NOTHING = 1 }; /* no file, hence no bystander, before the operation */

static pid_t bystander;
static bool scene_is_set;

/* ---- the victim ---- */

static struct ledger own;
static struct ledger_refusal refusal;
static const struct cost cost = { 3, { KIND_qp, KIND_send_wr, KIND_recv_wr }, { 3, 64, 32 } };

static void must(bool good)
{
	if (!good)
		_exit(1);
}

static unsigned device_number(struct ledger *ledger)
{
	return ledger_device(ledger, DEVICE);
}

static void charge(struct ledger *ledger, const struct cost *what)
{
	must(ledger_charge(ledger, device_number(ledger), what, &refusal) == 0);
}

static void prepare_nothing(void)
{
}

static void prepare_member(void)
{
	must(books_join(&own));
	must(device_number(&own) == 1);
}

static void prepare_holder(void)
{
	prepare_member();
	charge(&own, &cost);
}

static void prepare_refunded(void)
{
	prepare_holder();
	ledger_refund(&own, 1, &cost);
}

/* As if the bystander, in the first seat, had charged and refunded, and the sums did not follow yet. */
static void bystander_churn(struct layout_header *header)
{
	struct layout_slot *slot = layout_slot(header, 0);

	slot->device[1].charged[KIND_qp] += UNNOTICED_QPS;
	slot->device[1].returned[KIND_qp] += UNNOTICED_QPS;
	slot->used[KIND_qp] += UNNOTICED_QPS;
	header->used[KIND_qp] += UNNOTICED_QPS;
	header->device[1].used[KIND_qp] += UNNOTICED_QPS;
}

static void prepare_churn(void)
{
	prepare_member();
	bystander_churn(own.embedded.header);
}

/* A process that joins after the victim and ends holding something: the lock, too. */
static void corpse_make(bool locked)
{
	pid_t pid = family_fork();

	if (pid == 0) {
		static struct ledger other;

		must(books_join(&other));
		charge(&other, &COST1(qp, CORPSE_QPS));
		if (locked) {
			must(pthread_mutex_lock(&other.embedded.header->lock) == 0);
			other.embedded.slot->used[KIND_send_wr] += 100;
			other.embedded.slot->device[1].charged[KIND_recv_wr] += 100;
			other.embedded.header->used[KIND_qp] += 100;
			other.embedded.header->device[1].used[KIND_qp] -= 100;
		}
		_exit(0);
	}
	must(waitpid(pid, NULL, 0) == pid);
}

static void prepare_corpse(void)
{
	prepare_member();
	corpse_make(false);
	bystander_churn(own.embedded.header);
}

static void prepare_locked_corpse(void)
{
	prepare_member();
	corpse_make(true);
	bystander_churn(own.embedded.header);
}

static void run_join(void)
{
	books_join(&own);
}

static void run_charge(void)
{
	ledger_charge(&own, 1, &cost, &refusal);
}

static void run_refund(void)
{
	ledger_refund(&own, 1, &cost);
}

static void run_leave(void)
{
	ledger_close(&own);
}

static void run_charge_all(void)
{
	ledger_charge(&own, 1, &COST1(qp, HOST_QPS - BYSTANDER_QPS), &refusal);
}

static void run_name(void)
{
	ledger_device(&own, NEW_DEVICE);
}

static const struct operation operations[] = {
	{ "charge", { prepare_member, run_charge }, 500, 0 },
	{ "charge_after_refund", { prepare_refunded, run_charge }, 500, 0 },
	{ "charge_that_notices", { prepare_churn, run_charge }, 500, 0 },
	{ "refund", { prepare_holder, run_refund }, 500, 0 },
	{ "leave", { prepare_member, run_leave }, 500, 0 },
	{ "name_device", { prepare_member, run_name }, 500, 0 },
	{ "join", { prepare_nothing, run_join }, 500, 0 },
	{ "join_again", { prepare_holder, run_join }, 500, 0 },
	{ "create", { prepare_nothing, run_join }, 500, FROM_NOTHING },
	{ "release_of_dead", { prepare_corpse, run_charge_all }, 500, 0 },
	{ "rebuild", { prepare_locked_corpse, run_charge }, 500, 0 },
};

/* ---- what is watched in the reference run ---- */

static const struct layout_header *watched; /* NULL while there is no file */

/* The file is new in each scene, and in some operations. */
static void watched_renew(void)
{
	static ino_t inode;
	struct stat status = { 0 };
	int fd = open(books_path(), O_RDONLY | O_CLOEXEC);
	void *memory = MAP_FAILED;

	if (fd >= 0 && !fstat(fd, &status) && watched && status.st_ino == inode) {
		close(fd);
		return;
	}
	if (watched)
		munmap((void *)watched, LAYOUT_FILE_SIZE);
	watched = NULL;
	inode = status.st_ino;
	if (fd >= 0 && status.st_size == LAYOUT_FILE_SIZE)
		memory = mmap(NULL, LAYOUT_FILE_SIZE, PROT_READ, MAP_SHARED, fd, 0);
	if (fd >= 0)
		close(fd);
	if (memory != MAP_FAILED) {
		madvise(memory, LAYOUT_FILE_SIZE, MADV_DONTFORK);
		watched = memory;
	}
}

static bool file_changed(pid_t victim, bool files)
{
	static struct memory_copy header, slots;
	bool changed;

	if (files)
		watched_renew();
	changed = memory_changed(&header, watched,
				 watched ? offsetof(struct layout_header, seat[SEATS_WATCHED]) : 0);
	changed |= memory_changed(&slots, (const char *)watched + LAYOUT_HEADER_SIZE,
				  watched ? SEATS_WATCHED * sizeof(struct layout_slot) : 0);
	return changed;
}

/* ---- what must be true afterwards ---- */

static uint64_t expected(unsigned kind, bool nobody, uint64_t more_qps)
{
	if (kind == KIND_qp)
		return (nobody ? 0 : BYSTANDER_QPS) + more_qps;
	if (nobody)
		return 0;
	return kind == KIND_send_wr ? 16 : kind == KIND_recv_wr ? 8 : 0;
}

static bool counts_are(struct layout_header *header, bool nobody, uint64_t more_qps)
{
	bool good = books_drift(header) == 0;

	for (unsigned kind = 0; good && kind < KIND_COUNT; kind++) {
		uint64_t want = expected(kind, nobody, more_qps);
		uint64_t host = header->used[kind], device = header->device[1].used[kind];

		good = CHECK(host == want && device == want, "%s: host %lld, device %lld, not %lld",
			     kind_rows[kind].name, (long long)host, (long long)device,
			     (long long)want);
	}
	return good;
}

static bool limit_is_exact(struct ledger *fresh, bool nobody)
{
	uint64_t left = HOST_QPS - expected(KIND_qp, nobody, 0);
	struct cost rest = COST1(qp, left);
	struct cost one = COST1(qp, 1);
	bool good;

	if (!CHECK(ledger_charge(fresh, 1, &rest, &refusal) == 0, "%llu of %llu QPs are held",
		   (unsigned long long)refusal.used, (unsigned long long)refusal.limit))
		return false;
	good = counts_are(fresh->embedded.header, nobody, left);
	good &= CHECK(ledger_charge(fresh, 1, &one, &refusal) == LEDGER_REFUSED &&
		      refusal.scope == SCOPE_HOST && refusal.used == HOST_QPS);
	ledger_refund(fresh, 1, &rest);
	good &= CHECK(ledger_used(fresh, KIND_qp) == 0);
	return good;
}

static bool device_names_are_whole(struct layout_header *header)
{
	bool good = true;

	for (unsigned device = 0; device < DEVICES_MAX; device++) {
		const char *name = header->device[device].name;

		good &= CHECK(!name[0] || !strcmp(name, device == 1 ? DEVICE : NEW_DEVICE),
			      "device %u is called \"%.64s\"", device, name);
	}
	return good;
}

static bool ledger_is_exact(struct ledger *fresh, bool nobody)
{
	struct layout_header *header = fresh->embedded.header;

	return CHECK(device_number(fresh) == 1) && counts_are(header, nobody, 0) &&
	       limit_is_exact(fresh, nobody) &&
	       CHECK(books_seats_taken(header) == (nobody ? 1 : 2)) &&
	       CHECK(header->limit[KIND_mr] == HOST_MRS, "the limit of MRs is %lld",
		     (long long)header->limit[KIND_mr]) &&
	       device_names_are_whole(header);
}

/* Some things stay for ever, but the next victim shall find what this one found. */
static void history_forget(struct layout_header *header)
{
	header->seats_high = 1;
	memset(header->device[2].name, 0, sizeof(header->device[2].name));
	header->limit[KIND_mr] = DEFAULT_MRS;
	header->defaults |= 1ull << KIND_mr;
	bystander_churn(header);
}

/* A lock that is stuck makes the join fail. */
static bool books_are_exact(bool nobody)
{
	static struct ledger fresh;
	bool good;

	if (!books_join(&fresh))
		return false;
	good = ledger_is_exact(&fresh, nobody);
	ledger_close(&fresh);
	good = good && counts_are(fresh.embedded.header, nobody, 0) &&
	       CHECK(books_seats_taken(fresh.embedded.header) == (nobody ? 0 : 1));
	if (!nobody)
		history_forget(fresh.embedded.header);
	shmfile_unmap(fresh.embedded.header);
	return good;
}

/* ---- the scene ---- */

static void bystander_live(int ready)
{
	static struct ledger ledger;

	books_limits.host[KIND_mr] = DEFAULT_MRS;
	books_limits.host_defaults = 1ull << KIND_mr;
	must(books_join(&ledger));
	charge(&ledger, &COST3(qp, BYSTANDER_QPS, send_wr, 16, recv_wr, 8));
	charge(&ledger, &COST1(qp, UNNOTICED_QPS));
	ledger_refund(&ledger, 1, &COST1(qp, UNNOTICED_QPS));
	must(write(ready, "", 1) == 1);
	for (;;)
		pause();
}

/* A file without history, and the bystander in it. */
static bool scene_make(bool from_nothing)
{
	int ready[2];
	char byte;
	bool good;

	family_kill(&bystander);
	books_remove();
	if (from_nothing)
		return true;
	if (pipe(ready))
		return false;
	bystander = family_fork();
	if (bystander == 0) {
		close(ready[0]);
		bystander_live(ready[1]);
	}
	close(ready[1]);
	good = read(ready[0], &byte, 1) == 1;
	close(ready[0]);
	return CHECK(good, "there is no bystander");
}

/* One scene serves all victims of an operation until one of them leaves it wrong. */
static bool scene_set(const struct operation *operation)
{
	static const struct operation *last;
	bool from_nothing = operation->flags & FROM_NOTHING;

	if (!scene_is_set || last != operation || from_nothing)
		scene_is_set = scene_make(from_nothing);
	last = operation;
	return scene_is_set;
}

static bool is_exact(const struct operation *operation)
{
	scene_is_set = books_are_exact(operation->flags & FROM_NOTHING);
	return scene_is_set;
}

static bool examine(const struct operation *operation, struct victim *victim, unsigned point)
{
	victim_kill(victim);
	return is_exact(operation);
}

static void begin(void)
{
	books_init("killpoints");
	books_limits.host[KIND_qp] = HOST_QPS;
	books_limits.host[KIND_mr] = HOST_MRS;
	ledger_limits_device(&books_limits, DEVICE, strlen(DEVICE))->limit[KIND_qp] = 2 * HOST_QPS;
}

static void end(void)
{
	family_kill(&bystander);
}

static const struct side ledger_side = {
	.name = "a process is killed",
	.operations = operations,
	.count = sizeof(operations) / sizeof(operations[0]),
	.begin = begin,
	.scene = scene_set,
	.changed = file_changed,
	.reference = is_exact,
	.examine = examine,
	.end = end,
};

static void driver(void)
{
	points_run(&ledger_side);
	points_print();
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
