/* SPDX-License-Identifier: MIT */
/*
 * Deaths of members whose descriptors live on in another process. The collector searches for an
 * heir that has a device open; the attacker makes that search long, or changes its goal. The
 * search runs only where there is /dev/infiniband, so this program makes one in a mount namespace
 * of its own.
 */
#include "attack.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define DEVICE_FILE "/dev/infiniband/uverbs0"

/* ---- a device directory */

/* Makes a /dev with an RDMA device in it that only this program sees. The collector looks at names
 * of open files only, so a plain file serves as the device. */
static void device_make(void)
{
	static const struct {
		const char *path;
		unsigned minor;
	} memory[] = { { "/dev/null", 3 }, { "/dev/zero", 5 }, { "/dev/full", 7 },
		       { "/dev/random", 8 }, { "/dev/urandom", 9 } };
	static bool made;
	int fd;

	if (made)
		return;
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tmpfs", "/dev", "tmpfs", 0, "mode=0755"))
		skip("a mount namespace with a /dev of its own is not permitted: %s",
		     strerror(errno));
	umask(0);
	for (unsigned i = 0; i < COUNT_OF(memory); i++)
		if (mknod(memory[i].path, S_IFCHR | 0666, makedev(1, memory[i].minor)))
			skip("%s: device files are not permitted: %s", memory[i].path,
			     strerror(errno));
	if (mkdir("/dev/infiniband", 0755) || mkdir("/dev/shm", 01777))
		abort();
	fd = open(DEVICE_FILE, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	umask(022);
	if (fd < 0)
		abort();
	close(fd);
	made = true;
}

/* ---- members that die and leave their descriptors */

enum { NOTE_USAGE, NOTE_LIFELINE, NOTE_WAIT };

/* Registers, holds a QP, and ends when the attacker permits. It shares the attacker's table of
 * descriptors, so its descriptors stay open. */
static void __attribute__((noreturn)) die_holding(unsigned number)
{
	struct member member;
	struct proto_grow_request need;

	if (!CHECK(join(&member)))
		finish();
	need = want(&member, KIND_qp, 1);
	CHECK(ask(&need) >= 0);
	member.usage->row[0].used[KIND_qp] = 1;
	close(member.table_fd);
	note_set(number * NOTES_EACH + NOTE_LIFELINE, (uint64_t)member.connection);
	note_set(number * NOTES_EACH + NOTE_USAGE, (uint64_t)member.usage_fd);
	while (note(number * NOTES_EACH + NOTE_WAIT))
		usleep(100);
	finish();
}

/* Opens as many descriptors as the system allows: the collector would have to search them at each
 * death. Half of the attackers have a device open, and so are heirs. */
static void heirs(unsigned number)
{
	enum { KEPT = 16 };
	int usage[KEPT], lifeline[KEPT];
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	while (dup(STDOUT_FILENO) >= 0)
		;
	for (int fd = 3; fd < 64; fd++)
		close(fd);
	if (number % 2 == 0)
		CHECK(open(DEVICE_FILE, O_RDWR | O_CLOEXEC) >= 0, "%s", strerror(errno));
	memset(usage, -1, sizeof(usage));
	memset(lifeline, -1, sizeof(lifeline));
	ready();
	for (unsigned i = 0; going(); i = (i + 1) % KEPT) {
		pid_t child = split_sharing();

		if (child == 0)
			die_holding(number);
		CHECK(reap(child) == 0);
		close(usage[i]);
		close(lifeline[i]);
		usage[i] = (int)note(number * NOTES_EACH + NOTE_USAGE);
		lifeline[i] = (int)note(number * NOTES_EACH + NOTE_LIFELINE);
	}
}

/* ---- many that die at once */

enum { MANY = 96 };
enum { NOTE_JOINED, NOTE_VICTIM, NOTE_STEP };

/* Registers, holds a PD, and waits for its end beside the others. */
static void __attribute__((noreturn)) die_together(int until)
{
	struct member member;
	struct proto_grow_request need;
	char byte;

	if (!CHECK(join(&member)))
		finish();
	need = want(&member, KIND_pd, 1);
	CHECK(ask(&need) >= 0);
	member.usage->row[0].used[KIND_pd] = 1;
	close(member.table_fd);
	note_add(NOTE_JOINED);
	(void)!read(until, &byte, 1); /* until its other end is closed */
	finish();
}

/* A user whose members die together; it is the heir of them all, since it shares their descriptors
 * and has a device open. */
static pid_t heir_of_many(void)
{
	int device, ends[2];
	pid_t child[MANY], heir = split();

	if (heir)
		return heir;
	become(attacker_uid(), NULL);
	device = open(DEVICE_FILE, O_RDWR | O_CLOEXEC);
	CHECK(device >= 0 && pipe2(ends, O_CLOEXEC) == 0, "%s", strerror(errno));
	for (unsigned i = 0; i < MANY; i++) {
		child[i] = split_sharing();
		if (child[i] == 0)
			die_together(ends[0]);
	}
	note_wait(NOTE_JOINED, MANY);
	note_wait(NOTE_STEP, 1); /* the collector is stopped */
	close(ends[1]);
	for (unsigned i = 0; i < MANY; i++)
		CHECK(reap(child[i]) == 0);
	note_add(NOTE_STEP);
	rest();
	finish();
}

/* Asks for one more than its quota when the members are dead. */
static pid_t asker(void)
{
	struct proto_grow_request need;
	struct member member;
	pid_t child = split();
	int fd;

	if (child)
		return child;
	become(victim_uid(), NULL);
	if (!CHECK(join(&member)))
		finish();
	need = want(&member, KIND_qp, QUOTA + 1);
	note_add(NOTE_VICTIM);
	note_wait(NOTE_STEP, 2);
	fd = dial();
	CHECK(tell(fd, MESSAGE_GROW, &need));
	note_add(NOTE_STEP);
	CHECK(hear(fd) == PROTO_REFUSED);
	rest();
	finish();
}

struct order {
	pid_t victim;
	unsigned orphans, before; /* all, and those that were found before the victim's answer */
	bool answered;
};

static int order_note(const void *row, void *closure)
{
	const struct proto_event *event = row;
	struct order *order = closure;

	order->orphans += event->type == EVENT_ORPHANED;
	order->before += event->type == EVENT_ORPHANED && !order->answered;
	order->answered |= event->type == EVENT_REFUSED && event->pid == order->victim;
	return 0;
}

static struct order order_of_events(pid_t victim)
{
	struct order order = { .victim = victim };
	char problem[PROBLEM_SIZE];

	CHECK(proto_rows(collector_socket(), MESSAGE_EVENTS, &(struct proto_choose){ 0 },
			 order_note, &order, COLLECTOR_PATIENCE_MS, problem) >= 0, "%s", problem);
	return order;
}

/* Members die while the collector is stopped, then a victim asks. Its answer does not wait for the
 * search for their heirs, and one search finds the heirs of them all. */
static void many_deaths(void)
{
	struct proto_status before, after;
	struct order order;
	unsigned earlier; /* orphans, of cases before */
	pid_t heir, victim;

	device_make();
	stage_open();
	heir = heir_of_many();
	victim = asker();
	CHECK(note_wait(NOTE_JOINED, MANY) && note_wait(NOTE_VICTIM, 1));
	CHECK(collector_call(MESSAGE_STATUS, NULL, &before) == 0);
	earlier = order_of_events(victim).orphans;
	kill(collector_pid(), SIGSTOP);
	note_add(NOTE_STEP);
	CHECK(note_wait(NOTE_STEP, 3), "the victim has not asked");
	kill(collector_pid(), SIGCONT);
	EVENTUALLY(order_of_events(victim).orphans == earlier + MANY);
	CHECK(collector_call(MESSAGE_STATUS, NULL, &after) == 0);
	EVENTUALLY(order_of_events(victim).answered);
	order = order_of_events(victim);
	order.orphans -= earlier;
	order.before -= earlier;
	printf("many_deaths: %u orphans, %u of them found before the victim was answered; "
	       "%llu searches\n",
	       order.orphans, order.before, (unsigned long long)(after.searches - before.searches));
	CHECK(order.before < MANY / 2, "the victim waits for the search");
	CHECK(after.searches - before.searches <= MANY / 8, "deaths are searched for one by one");
	CHECK(collector_tenant("attacker").used[KIND_pd] == MANY, "%llu PDs are charged",
	      (unsigned long long)collector_tenant("attacker").used[KIND_pd]);
	/* The same at a restart, where life lines do not tell. */
	collector_kill();
	collector_start("");
	EVENTUALLY(order_of_events(victim).orphans == MANY);
	CHECK(collector_call(MESSAGE_STATUS, NULL, &after) == 0);
	CHECK(after.searches <= MANY / 8, "%llu searches at the start",
	      (unsigned long long)after.searches);
	CHECK(collector_tenant("attacker").used[KIND_pd] == MANY);
	attack_stop();
	CHECK(reap(heir) == 0 && reap(victim) == 0);
	stage_is_clean("many_deaths");
}

struct flipping {
	int place, page, other;
	bool stop;
};

static void *flip_thread(void *argument)
{
	struct flipping *flipping = argument;

	while (!__atomic_load_n(&flipping->stop, __ATOMIC_RELAXED)) {
		dup3(flipping->other, flipping->place, O_CLOEXEC);
		dup3(flipping->page, flipping->place, O_CLOEXEC);
	}
	return NULL;
}

/* The descriptor is a usage page when the collector looks at it, and, when the collector opens it,
 * a pipe that has no writer. */
static void flip(unsigned number)
{
	struct flipping flipping;
	char path[64];
	int pipe_fd;
	pthread_t thread;

	snprintf(path, sizeof(path), "/tmp/rdma_attack.%d", (int)getpid());
	if (mkfifo(path, 0666))
		abort();
	pipe_fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	unlink(path);
	CHECK(open(DEVICE_FILE, O_RDWR | O_CLOEXEC) >= 0, "%s", strerror(errno));
	ready();
	while (going()) {
		pid_t child;

		note_set(number * NOTES_EACH + NOTE_USAGE, 0);
		note_set(number * NOTES_EACH + NOTE_WAIT, 1);
		child = split_sharing();
		if (child == 0)
			die_holding(number);
		while (!note(number * NOTES_EACH + NOTE_USAGE) && !has_child_ended(child))
			usleep(100);
		flipping = (struct flipping){ .place = (int)note(number * NOTES_EACH + NOTE_USAGE),
					      .other = pipe_fd };
		flipping.page = fcntl(flipping.place, F_DUPFD_CLOEXEC, 200);
		pthread_create(&thread, NULL, flip_thread, &flipping);
		note_set(number * NOTES_EACH + NOTE_WAIT, 0);
		CHECK(reap(child) == 0);
		usleep(20000);
		__atomic_store_n(&flipping.stop, true, __ATOMIC_RELAXED);
		pthread_join(thread, NULL);
		close(flipping.place);
		close(flipping.page);
		close((int)note(number * NOTES_EACH + NOTE_LIFELINE));
	}
}

/* ---- who is an heir */

/* A member that dies, and leaves its descriptors to a child if it has an heir. Returns its number;
 * that of the child is in NOTE_HEIR. */
static pid_t member_with_heir(bool has_device, bool has_heir)
{
	struct proto_grow_request need;
	struct member member;
	pid_t child = split();

	if (child)
		return CHECK(reap(child) == 0) ? child : -1;
	become(attacker_uid(), NULL);
	if (!CHECK(join(&member)))
		finish();
	need = want(&member, KIND_qp, 1);
	CHECK(ask(&need) == 0);
	member.usage->row[0].used[KIND_qp] = 1;
	if (has_device)
		CHECK(open(DEVICE_FILE, O_RDWR | O_CLOEXEC) >= 0, "%s", strerror(errno));
	if (has_heir && split_heir() == 0)
		rest();
	finish();
}

/* The charge of a dead member stays with an heir that has the device, and only with such one. This
 * also proves that the collector searches for heirs here. */
static void heir_has_device(void)
{
	pid_t with, without, last, heir, other;

	device_make();
	stage_open();
	with = member_with_heir(true, true);
	heir = (pid_t)note(NOTE_HEIR);
	without = member_with_heir(false, true);
	other = (pid_t)note(NOTE_HEIR);
	/* The collector learns of deaths in their order. */
	last = member_with_heir(false, false);
	EVENTUALLY(collector_process(last).used[KIND_qp] == 0);
	EVENTUALLY(collector_tenant("attacker").used[KIND_qp] == 1, "%llu QPs are charged",
		   (unsigned long long)collector_tenant("attacker").used[KIND_qp]);
	CHECK(collector_process(with).used[KIND_qp] == 1, "the heir has the device");
	CHECK(collector_process(without).used[KIND_qp] == 0, "the heir has no device");
	CHECK(!has_child_ended(heir) && !has_child_ended(other), "an heir ended too early");
	attack_stop();
	CHECK(reap(heir) == 0 && reap(other) == 0);
	stage_is_clean("heir_has_device");
}

/* ---- a search that is given up */

enum { DROPS = 20, SEARCHED = 12000 };
enum { NOTE_ASKED = 4 * NOTES_EACH, NOTE_ANSWERED };

/* Holds the tenant's whole quota, and ends; its descriptors are left with us. */
static void __attribute__((noreturn)) die_with_quota(void)
{
	struct proto_grow_request need;
	struct member member;

	if (!CHECK(join(&member)))
		finish();
	need = want(&member, KIND_qp, QUOTA);
	CHECK(ask(&need) == 0);
	member.usage->row[0].used[KIND_qp] = QUOTA;
	close(member.table_fd);
	note_set(NOTE_USAGE, (uint64_t)member.usage_fd);
	note_set(NOTE_LIFELINE, (uint64_t)member.connection);
	finish();
}

/* Many descriptors make the search for the heir long. The life line ends while the collector searches
 * and somebody waits for the result. */
static pid_t dropper(void)
{
	struct proto_grow_request need;
	struct member member;
	struct rlimit limit;
	pid_t child = split();

	if (child)
		return child;
	become(attacker_uid(), NULL);
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	CHECK(join(&member));
	for (unsigned i = 0; i < SEARCHED && dup(STDOUT_FILENO) >= 0; i++)
		;
	for (unsigned i = 0; i < DROPS; i++) {
		pid_t holder = split_sharing();
		int fd;

		if (holder == 0)
			die_with_quota();
		CHECK(reap(holder) == 0);
		fd = dial();
		need = want(&member, KIND_qp, 1);
		CHECK(tell(fd, MESSAGE_GROW, &need));
		usleep(1000 * (i % 10)); /* now and then the search goes on by then */
		close((int)note(NOTE_LIFELINE));
		note_add(NOTE_ASKED);
		CHECK(hear(fd) == 0);
		note_add(NOTE_ANSWERED);
		close(fd);
		close((int)note(NOTE_USAGE));
	}
	rest();
	finish();
}

/* Who waits for a search is answered when nothing is left to search for. */
static void search_given_up(void)
{
	pid_t pid;

	device_make();
	stage_open();
	pid = dropper();
	EVENTUALLY(note(NOTE_ANSWERED) == DROPS);
	attack_stop();
	CHECK(reap(pid) == 0);
	stage_is_clean("search_given_up");
}

/* Name, promise, processes, rounds, turns, slowdown, and what runs. */
static const struct attack attacks[] = {
	{ "heirs", "the death of a member causes no long search", 4,
	  100, 30, 100, heirs, NULL, NULL },
	{ "flip", "the collector does not wait for the file that it searches for", 4,
	  100, 30, 100, flip, NULL, NULL },
};

static void driver(void)
{
	RUN(heir_has_device);
	RUN(many_deaths);
	RUN(search_given_up);
	for (unsigned i = 0; i < COUNT_OF(attacks); i++)
		CASE(attacks[i].name) {
			device_make();
			attack_run(&attacks[i]);
		}
	stage_close();
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
