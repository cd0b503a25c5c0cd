/* SPDX-License-Identifier: MIT */
/*
 * Floods: one user asks as much as it can, with as many processes and connections as it can. The
 * collector serves users in turns: before each request of a victim it serves one of the attackers,
 * not all that wait.
 */
#include "attack.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CROWD = 8 }; /* processes of each attacker */

static void flood(unsigned number)
{
	enum { UNREAD = 16 };
	struct proto_choose choose = { 0 };
	struct member member;
	struct proto_grow_request need;
	int fd[UNREAD];

	if (!CHECK(join(&member)))
		return;
	ready();
	memset(fd, -1, sizeof(fd));
	need = want(&member, KIND_qp, QUOTA + 1);
	for (unsigned i = 0; going(); i = (i + 1) % UNREAD) {
		close(fd[i]);
		fd[i] = dial();
		if (number % 4 == 3) {
			tell(fd[i], MESSAGE_GET_PROC_STATS, &choose);
			continue;
		}
		tell(fd[i], number % 4 == 2 ? MESSAGE_STATUS : MESSAGE_GROW, &need);
		hear(fd[i]);
	}
}

/* Registers many processes, and asks for lists of them without reading the lists. */
static void crowd(unsigned number)
{
	enum { UNREAD = 64 };
	pid_t child[CROWD];
	struct proto_choose choose = { 0 };
	int fd[UNREAD];
	struct member member;
	struct proto_grow_request need;

	for (unsigned i = 0; i < CROWD; i++) {
		child[i] = split();
		if (child[i] == 0) {
			CHECK(join(&member));
			need = want(&member, KIND_qp, 0);
			for (need.row = 0; need.row < 4; need.row++)
				ask(&need);
			note_add(number * NOTES_EACH);
			rest();
			finish();
		}
	}
	note_wait(number * NOTES_EACH, CROWD);
	ready();
	memset(fd, -1, sizeof(fd));
	for (unsigned i = 0; going(); i++) {
		close(fd[i % UNREAD]);
		fd[i % UNREAD] = dial();
		tell(fd[i % UNREAD], MESSAGE_GET_PROC_STATS, &choose);
	}
	for (unsigned i = 0; i < CROWD; i++)
		CHECK(reap(child[i]) == 0);
}

/* Takes a lease on every row in many processes: the collector sweeps all for each refusal. */
static void leases(unsigned number)
{
	enum { MEMBERS = 15 };
	pid_t child[MEMBERS];
	struct member member;
	struct proto_grow_request need;

	for (unsigned i = 0; i < MEMBERS; i++) {
		child[i] = split();
		if (child[i] == 0) {
			CHECK(join(&member));
			need = want(&member, KIND_qp, 0);
			for (need.row = 0; need.row < DEVICES_MAX; need.row++)
				CHECK(ask(&need) == 0);
			note_add(number * NOTES_EACH);
			rest();
			finish();
		}
	}
	note_wait(number * NOTES_EACH, MEMBERS);
	CHECK(join(&member));
	need = want(&member, KIND_qp, QUOTA + 1);
	ready();
	while (going())
		CHECK(ask(&need) == PROTO_REFUSED);
	for (unsigned i = 0; i < MEMBERS; i++)
		CHECK(reap(child[i]) == 0);
}

static void storm(unsigned number)
{
	enum { OPEN = 1000 };
	int fd[OPEN];

	ready();
	memset(fd, -1, sizeof(fd));
	for (unsigned i = 0; going(); i++) {
		close(fd[i % OPEN]);
		fd[i % OPEN] = dial_at(collector_socket(), SOCK_NONBLOCK);
	}
}

/* ---- the order in which the collector serves two users */

enum { ASKED = 400, LISTED = 100 }; /* requests of the attacker that wait, and its processes */
enum { NOTE_JOINED, NOTE_ASKED, NOTE_LISTED };

/* Registered processes, which make a list of them long. */
static void listed_start(unsigned count, pid_t *ret_child)
{
	struct member member;

	for (unsigned i = 0; i < count; i++) {
		ret_child[i] = split();
		CHECK(ret_child[i] >= 0, "process %u cannot be made: %s", i, strerror(errno));
		if (ret_child[i])
			continue;
		CHECK(join(&member));
		note_add(NOTE_LISTED);
		rest();
		finish();
	}
	CHECK(note_wait(NOTE_LISTED, count), "%u of %u processes are registered",
	      (unsigned)note(NOTE_LISTED), count);
}

/* Registers, and sends requests that the collector will refuse when it runs again; with lists, each
 * after one for a list that is not read. */
static pid_t asker(uid_t uid, unsigned requests, unsigned lists)
{
	struct proto_choose all = { 0 };
	struct proto_grow_request need;
	struct member member;
	pid_t child = split(), listed[LISTED];
	int fd[ASKED];

	if (child)
		return child;
	become(uid, NULL);
	if (lists)
		listed_start(LISTED, listed);
	if (!CHECK(join(&member)))
		finish();
	need = want(&member, KIND_qp, QUOTA + 1);
	note_add(NOTE_JOINED);
	note_wait(NOTE_ASKED, uid == victim_uid() ? 2 : 1);
	for (unsigned i = 0; i < requests; i++) {
		if (i < lists)
			CHECK(tell(dial(), MESSAGE_GET_PROC_STATS, &all), "list %u", i);
		fd[i] = dial();
		CHECK(tell(fd[i], MESSAGE_GROW, &need), "request %u is not sent", i);
	}
	note_add(NOTE_ASKED);
	for (unsigned i = 0; i < requests; i++)
		CHECK(hear(fd[i]) == PROTO_REFUSED, "request %u", i);
	rest();
	for (unsigned i = 0; lists && i < LISTED; i++)
		CHECK(reap(listed[i]) == 0);
	finish();
}

struct order {
	pid_t victim, attacker;
	unsigned before, after; /* refusals of the attacker, seen from the victim's */
	bool victim_seen;
};

static int order_note(const void *row, void *closure)
{
	const struct proto_event *event = row;
	struct order *order = closure;

	if (event->type != EVENT_REFUSED)
		return 0;
	order->victim_seen |= event->pid == order->victim;
	if (event->pid == order->attacker)
		*(order->victim_seen ? &order->after : &order->before) += (unsigned)event->count;
	return 0;
}

/* All requests wait while the collector is stopped, the victim's is the last of them. The events
 * of the collector then show the order in which it served them. Both users have the same priority:
 * what the victim gets is what the collector gives it. */
static void turns_judge(const char *name, unsigned requests, unsigned lists)
{
	unsigned before_most = requests / 20; /* users share time: a few short ones may come first */
	char problem[PROBLEM_SIZE];
	struct order order = { 0 };

	stage_open();
	stage_clear();
	order.attacker = asker(attacker_uid(), requests, lists);
	order.victim = asker(victim_uid(), 1, 0);
	CHECK(note_wait(NOTE_JOINED, 2));
	kill(collector_pid(), SIGSTOP);
	note_add(NOTE_ASKED);
	CHECK(note_wait(NOTE_ASKED, 3), "the requests are not sent");
	kill(collector_pid(), SIGCONT);
	attack_stop();
	CHECK(reap(order.victim) == 0 && reap(order.attacker) == 0);
	CHECK(proto_rows(collector_socket(), MESSAGE_EVENTS, &(struct proto_choose){ 0 },
			 order_note, &order, 20000, problem) >= 0, "%s", problem);
	printf("%s: %u requests of the attacker were served before the victim's, %u after\n", name,
	       order.before, order.after);
	CHECK(order.victim_seen && order.before + order.after == requests, "events are missing");
	CHECK(order.before <= before_most, "the victim waits for the attacker's requests");
	stage_is_clean(name);
}

static void turns(void)
{
	turns_judge("turns", ASKED, 0);
}

/* 200 lists, and as many short requests of the same user between them. */
static void turns_of_lists(void)
{
	turns_judge("turns_of_lists", ASKED / 2, ASKED / 2);
}

/* ---- the events of one user among those of another */

/* One refusal, then as many registrations and refusals as asked for, of kinds in turn. */
static pid_t noise_maker(uid_t uid, unsigned refusals, unsigned hellos)
{
	static const unsigned kinds[] = { KIND_qp, KIND_mr };
	struct proto_grow_request need;
	struct member member;
	pid_t child = split();

	if (child)
		return child;
	become(uid, NULL);
	for (unsigned i = 0; i <= hellos; i++) {
		if (i)
			leave(&member);
		if (!CHECK(join(&member)))
			finish();
	}
	for (unsigned i = 0; i < refusals; i++) {
		need = want(&member, kinds[i / 2 % 2], QUOTA + 1);
		CHECK(ask(&need) == PROTO_REFUSED, "%u", i);
	}
	finish();
}

struct heard {
	pid_t pid;
	unsigned events, refusals;
};

static int heard_note(const void *row, void *closure)
{
	const struct proto_event *event = row;
	struct heard *heard = closure;

	if (event->pid != heard->pid)
		return 0;
	heard->events++;
	if (event->type == EVENT_REFUSED)
		heard->refusals += (unsigned)event->count;
	return 0;
}

static struct heard heard_of(pid_t pid)
{
	struct heard heard = { .pid = pid };
	char problem[PROBLEM_SIZE];

	CHECK(proto_rows(collector_socket(), MESSAGE_EVENTS, &(struct proto_choose){ 0 },
			 heard_note, &heard, COLLECTOR_PATIENCE_MS, problem) >= 0, "%s", problem);
	return heard;
}

/* Neither registrations nor refusals of a user push out the events of another, and repeats are
 * counted in one event. */
static void noise(void)
{
	enum { QUIET_ONE = 3, LOUD = 3000, HELLOS = 600 };
	struct proto_explanation why;
	pid_t quiet, loud;

	stage_open();
	CHECK(collector_set("tenant attacker", "mr = 1") == 0 &&
	      collector_set("tenant victim", "mr = 1") == 0);
	quiet = noise_maker(victim_uid(), QUIET_ONE, 0);
	CHECK(reap(quiet) == 0);
	loud = noise_maker(attacker_uid(), LOUD, HELLOS);
	CHECK(reap(loud) == 0);
	printf("noise: of the quiet user %u events are kept, of the loud one %u\n",
	       heard_of(quiet).events, heard_of(loud).events);
	CHECK(heard_of(quiet).refusals == QUIET_ONE, "%u", heard_of(quiet).refusals);
	/* Pairs of refusals are one event each. */
	CHECK(heard_of(loud).refusals > heard_of(loud).events);
	/* Each refusal that is kept can be explained by its number. */
	for (unsigned i = 0; i < 4; i++)
		CHECK(collector_call(MESSAGE_EXPLAIN,
				     &(struct proto_ask){ .pid = loud, .number = LOUD - i },
				     &why) == 0 &&
			      why.has_event && why.event.kind == (LOUD - i - 1) / 2 % 2 * KIND_mr +
				      (1 - (LOUD - i - 1) / 2 % 2) * KIND_qp,
		      "%u: kind %u", LOUD - i, why.event.kind);
	CHECK(collector_set("tenant attacker", "mr = unset") == 0 &&
	      collector_set("tenant victim", "mr = unset") == 0);
	stage_is_clean("noise");
}

/* Name, promise, processes, rounds, turns, slowdown, and what runs. The cases turns and
 * turns_of_lists judge the order in which users are served. */
static const struct attack attacks[] = {
	{ "flood", "16 processes ask as fast as they can", 16,
	  40, 100, 100, flood, stage_answers, NULL },
	{ "crowd", "many processes, and lists of them that the attacker does not read", 16,
	  20, 20, 200, crowd, NULL, NULL },
	{ "leases", "7,680 leases that the collector sweeps for each refusal", 16,
	  40, 20, 150, leases, NULL, NULL },
	{ "storm", "16,000 connections, as fast as they can be made", 16,
	  60, 2000, 150, storm, NULL, NULL },
};

static void driver(void)
{
	RUN(turns);
	RUN(turns_of_lists);
	RUN(noise);
	attacks_run(attacks, COUNT_OF(attacks));
	stage_close();
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
