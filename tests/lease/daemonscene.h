/* SPDX-License-Identifier: MIT */
/*
 * The scene in which the collector is killed (daemonpoints.c): members that are real processes, and
 * the collector's parts on books of the test's own, as the victim and the examination use them.
 */
#ifndef TESTS_LEASE_DAEMONSCENE_H
#define TESTS_LEASE_DAEMONSCENE_H

#include "audit.h"
#include "collector/grants.h"
#include "collector/members.h"

enum { FAKE0 = 1, FAKE1 = 2 }; /* devices, and the rows in usage pages where they are counted */
enum { ALPHA, BETA };	       /* tenants */

extern const char *const scene_tenants[], *const scene_devices[];

enum {
	ALPHA_QPS = 24,
	CUT_QPS = 4, /* less than is used */
	HOST_QPS = 40,
	FAKE0_QPS = 32,
	HOST_SENDS = 2000,
	CUT_SENDS = 100,
	ALPHA_RECVS = 900,
};

/* ---- the members: processes that only keep their usage page open */

enum person { ALICE, BOB, CAROL, NEWCOMER, PERSONS };
enum { PERSON_FD = 100 };

extern const unsigned scene_tenant_of[PERSONS];

struct scene {
	pid_t pid[PERSONS];
	int line[PERSONS][2]; /* our end, and the person's */
};
extern struct scene scene;

extern char scene_directory[64]; /* of the books */

/* Ends the process, which has failed, if that is not so. */
void scene_must(bool good);
void persons_start(void);
void persons_end(void);
struct usage_page *scene_page_map(const char *path, int protection);

/* ---- the collector's parts */

extern struct books scene_books;
extern struct members scene_members;
extern struct usage_page *scene_page[PERSONS];
extern unsigned scene_member[PERSONS];
extern struct ledger_refusal scene_refusal;

void scene_limits_apply(bool cut);
/* What a collector does between requests, until nobody is sought any more. */
void scene_search(void);
/* What a collector does when it starts, in its order. */
int scene_open(bool cut);
/* With what it does next: it looks for pages and heirs, longer than can be traced. */
int scene_settle(bool cut);
void scene_close(void);
void scene_names_make(void);
/* Registers a process; its usage page in *ret_fd. Without a connection it is a member as
 * after a restart. */
int scene_join(pid_t pid, unsigned tenant, unsigned flags, int connection, int *ret_fd);
int scene_lease_take(unsigned member, unsigned device);
/* Asks for totals of QPs with 16 send and 8 receive requests each. */
int scene_need_more(unsigned lease, uint64_t qps, bool exact);
/* A lease on which there was more, so that there is credit to take back. */
void scene_lease_use(unsigned member, struct usage_page *in, unsigned device, uint64_t asked,
		     uint64_t used);
void person_join(enum person who);

#endif
