/* SPDX-License-Identifier: MIT */
/*
 * What the attacks on the collector share. An attack is a row of a table: unprivileged processes
 * of the tenant "attacker" do something hostile, while two processes of the tenant "victim" take
 * their whole quota in turns. The victims must get exactly their quota, at a stated fraction of
 * the rate that they reach without the attack, and afterwards the collector holds no remains.
 */
#ifndef TESTS_DAEMON_ATTACKS_ATTACK_H
#define TESTS_DAEMON_ATTACKS_ATTACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "collector.h"
#include "harness.h"
#include "ledger/leaselayout.h"

#define ADMIN_GROUP "games"
#define DEVICE "rxe0" /* the policy limits the victim on it */
#define OTHER_DEVICE "rxe1"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

enum {
	QUOTA = 16, /* of each of the two tenants; the host's limit is the sum */
	QUOTA_ON_DEVICE = 12,
	ATTACKERS_MAX = 16,
	NOTES_EACH = 4, /* of an attacker, from number * NOTES_EACH on */
	NOTE_HEIR = NOTES_EACH * ATTACKERS_MAX, /* written by split_heir() */
	NOTES,
};

/* ---- stage.c: the collector under attack, and the driver of a table */

/* The two users. Programs that run at once have different ones: shares of a user that the collector
 * finds in /proc would be common to them. */
uid_t victim_uid(void);
uid_t attacker_uid(void);

struct attack {
	const char *name;
	const char *holds; /* besides the victims' rights: printed when an attacker fails */
	unsigned processes; /* of the attacker, at most ATTACKERS_MAX */
	unsigned rounds;    /* the attack goes on until the victims have finished so many ... */
	unsigned turns;	    /* ... and each attacker has called going() so often, or rests */
	/* The victims reach at least 1/slowdown of their calm rate. Fair turns among two users cost
	 * a factor of 2, times the length of the attacker's requests; the rest is slack for other
	 * work on the machine. See the figures that each case prints. */
	unsigned slowdown;
	void (*run)(unsigned number); /* in each of the attacker's processes */
	void (*look)(void);	      /* in the driver, meanwhile; may be NULL */
	void (*after)(void);	      /* in the driver, when they have ended; may be NULL */
};

/* One row, and each row as a case. */
void attack_run(const struct attack *row);
void attacks_run(const struct attack *rows, unsigned count);

/* Opens the stage unless it is open: two users, the shared words, the policy, a collector. The
 * program is skipped without root. A case that is no row of a table begins with it. */
void stage_open(void);
/* Without a collector. */
void stage_prepare(void);
/* Clears the shared words for the next attack. */
void stage_clear(void);
/* At the end of a driver: stops the collector, and reads its log. */
void stage_close(void);

/* Checks that the collector answers, that it has no remains of processes that have ended, and
 * that no limit was exceeded. */
void stage_is_clean(const char *name);

/* For `look`: one user cannot use up the descriptors of the collector, and root is answered. "Now"
 * is for connections that would be dropped later in any case. */
void stage_is_bounded(void);
void stage_is_bounded_now(void);
void stage_answers(void);

/* ---- actors.c: processes of the test, and the words that they share */

/* False when the attack is over. Each call counts as a turn of this attacker. */
bool going(void);
/* Waits for the end of the attack without using the processor. */
void rest(void);
/* This attacker has begun. */
void ready(void);

uint64_t note(unsigned index);
void note_set(unsigned index, uint64_t value);
void note_add(unsigned index);
/* Waits until the note has that value; false if the test stands still before. */
bool note_wait(unsigned index, uint64_t value);

/* Turns into a user without rights, in that group too (NULL: in none). The user may look at
 * its own files below /proc, as a user who logged in may. */
void become(uid_t uid, const char *group);
/* Root of a user namespace of its own; false where that is not permitted. */
bool become_container_root(void);

/* fork(); the child ends with its parent, and leaves by finish(). */
pid_t split(void);
/* The same with clone flags, or with a chosen process number (-1 and errno if not permitted). */
pid_t split_sharing(void);
pid_t split_as(pid_t wanted);
/* A child that outlives its parent: it returns when the parent has ended, and ends with the
 * parent's parent, which must be the driver and reap it (its number is in NOTE_HEIR). */
pid_t split_heir(void);
/* In a child: ends it, with 0 if none of its checks failed. */
void finish(void) __attribute__((noreturn));
/* Waits for the end of a child, and kills it when the test stands still. The status is that of
 * spawn_wait. */
int reap(pid_t pid);
bool has_child_ended(pid_t pid); /* and is still to be reaped */
void end(pid_t pid);

/* For actors.c, stage.c and victims.c only. */
void actors_share(void);
void actors_clear(void);
void actor_is(unsigned number);
unsigned actors_ready(void);
unsigned actor_turns(unsigned number);
void attack_stop(void);
bool attack_is_on(void);

/* ---- talk.c: requests by hand, whole or broken */

struct letter {
	struct proto_header header;
	char body[PROTO_REQUEST_MAX];
};
struct letter letter(enum message type, const void *body);

/* A connection to the collector, or -1. */
int dial(void);
int dial_at(const char *path, int flags);
bool put(int fd, const void *bytes, size_t size);
bool tell(int fd, enum message type, const void *body);
/* The status of the reply, or 1 when the connection ends without a reply. */
int hear(int fd);

/* A member that knows the protocol and follows no rule. */
struct member {
	uint64_t cookie;
	int connection, usage_fd, table_fd;
	struct usage_page *usage;
	const struct lease_table *table;
};
struct proto_hello hello_without_limits(void);
bool join(struct member *member);
void leave(struct member *member);
struct proto_grow_request want(const struct member *member, unsigned kind, uint64_t total);
/* The status of the answer, or -errno. */
int ask(const struct proto_grow_request *need);

/* ---- victims.c: two processes that pass the turn to each other, so that the collector has to
 * take the credit of one back for the other each time */

struct victims_report {
	unsigned rounds;
	unsigned lost;	     /* units of the quota that the collector refused */
	unsigned gained;     /* units beyond it that the collector granted */
	unsigned unanswered; /* calls that the collector did not answer in the library's time */
	double rate;	     /* rounds in a second */
	double ms_half, ms_99, ms_all; /* of calls that had to ask: p50, p99, slowest */
};

/* The rate is that of the first so many rounds; further ones are slow, to spare the processor. */
void victims_start(unsigned rounds, pid_t ret_pid[2]);
unsigned victims_rounds(void);
struct victims_report victims_end(const pid_t pid[2]);
/* Forgets the victims of the calm run or attack before. */
void victims_share(void);

/* For a victim that a test plays by itself: it becomes that user, and registers. */
void victim_enter(void);
unsigned victim_device(const char *name);
/* The result of ledger_charge for one QP, asked again while the collector does not answer. */
int victim_charge(unsigned device);
/* So many units and not one more. Returns how many the collector granted. */
unsigned victim_take(unsigned device, unsigned amount);

#endif
