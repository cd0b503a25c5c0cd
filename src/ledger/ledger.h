/* SPDX-License-Identifier: MIT */
/*
 * The ledger: what each process holds of each kind, per device and in total,
 * against limits of the process, the device and the host. A charge is a
 * vector of kinds, all or nothing. The interface hides where the numbers live
 * (struct ledger_backing): in a file that processes share (embedded.c), in leases
 * that a collector hands out, or with the collector alone (lease.c).
 *
 * Charging, refunding and counting leave errno alone.
 * Results: 0 is success, negative is -errno, positive is a documented outcome.
 */
#ifndef LEDGER_LEDGER_H
#define LEDGER_LEDGER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/lock.h"
#include "base/log.h"
#include "base/problem.h"
#include "terms/size.h"
#include "terms/kinds.h"
#include "terms/settings.h"
#include "terms/tallies.h"
#include "terms/terms.h"
#include "terms/verdict.h"

enum {
	LEDGER_NAMELESS = 0,
	LEDGER_SOCKET_PATH = 108,
	LEDGER_REFUSED = 1,
	LEDGER_UNANSWERED = 2, /* refused: beyond the lease, and no collector answers */
	LEDGER_TOLERATED = 3,  /* taken, although it is over a limit: one that is not enforced */
	LEDGER_LATER = 4,      /* a collector is there, and cannot be joined at the moment */
	LEDGER_ALONE = 5,      /* joined, but the process counts in memory of its own */
	LEDGER_ORIGIN = 64,
};

struct ledger_limits {
	uint64_t process[KINDS_COUNTED];
	uint64_t host[KINDS_COUNTED];
	uint64_t process_defaults; /* bit k: process[k] is a default that nobody named */
	uint64_t host_defaults;	   /* likewise for host[k] */
	unsigned devices;
	struct ledger_device_limits {
		char name[NAME_SIZE];
		uint64_t limit[KINDS_COUNTED];
	} device[DEVICES_MAX];
};

void ledger_limits_clear(struct ledger_limits *limits);

/* The limits of the device called name[0..length), added if new; NULL if full or ill-named. */
struct ledger_device_limits *ledger_limits_device(struct ledger_limits *limits, const char *name,
						  size_t length);

/* Which limit a charge met. */
struct ledger_refusal {
	enum limit_scope scope;
	enum kind kind;
	uint64_t used;
	uint64_t wanted;
	uint64_t limit;
	uint64_t configured; /* by the policy, if that is more than the limit; otherwise 0 */
	enum verdict verdict;	/* on the charge */
	bool unanswered;	/* no collector says which limit it is, */
	bool unregistered;	/* or it answers, but knows nothing of us, */
	bool no_lease;	/* or has no lease left for us */
	const char *obstacle; /* likewise: why it could not be asked at all; NULL: it was */
	bool forbidden;	/* the tenant's policy does not allow it the device */
	bool own;	/* a limit of the process's own environment, not of its tenant's policy */
	uint64_t event; /* the collector's number for this refusal; 0 without a collector */
	char origin[LEDGER_ORIGIN]; /* where the policy sets the limit; "": the collector did not say */
};

struct ledger_options {
	enum transport transport;
	const char *socket; /* of the collector; NULL: where one is usually found */
	bool again;  /* an earlier attempt to join ended with LEDGER_LATER: wait less */
	bool closed; /* no other place will do than the collector that is there, or the file */
	enum mode own_mode; /* at the limits below */
	const char *name;   /* of the embedded file below /dev/shm */
	mode_t mode;	    /* of a file that has to be created */
	bool shared;	    /* the mode was an explicit choice: a file of another user will do */
	const char *no_lock; /* why no process-shared lock can be had here, or NULL */
	const struct ledger_limits *limits; /* must outlive the ledger */
	const struct log *log;		    /* likewise */
};

struct ledger_backing;
struct layout_header;
struct layout_slot;
struct lease_share;
struct lease_table;
struct usage_page;
struct tallies;

/* Of embedded.c. */
struct ledger_embedded {
	struct layout_header *header;
	struct layout_slot *slot;
	unsigned seat;
	pid_t pid; /* these three say who we are (identity.h) */
	uint64_t start, view;
	uint32_t unusual; /* LEDGER_DEFERRED, LEDGER_LEFT; 0 on the common path */
	uint64_t deferred[DEVICES_MAX][KINDS_COUNTED]; /* charges that could not be written */
};

/* Of lease.h. */
struct ledger_lease {
	struct usage_page *usage;
	const struct lease_table *table;     /* its first rows; NULL: asks at each operation */
	const uint64_t *cap[DEVICES_MAX]; /* in its rows; zeros until there is a lease, */
	uint32_t number[DEVICES_MAX];     /* which has this number */
	uint64_t cookie;
	struct lock asking;    /* one thread at a time; it may take seconds */
	uint64_t questions;    /* ever asked; under `asking` */
	uint64_t unanswered_ns; /* when the collector last failed to answer; 0 = it answers */
	uint64_t logged_ns;	/* when the log was last told of a question without an answer */
	int connection;	       /* over which it is asked; 0: over new ones */
	unsigned protocol;     /* its version there */
	struct ledger_place {
		uint64_t device, inode;
	} connection_place, root; /* what the descriptor leads to, and "/" did when we joined */
	enum mode mode; /* of the tenant, when there is no table to say so; */
	struct tenant_settings settings; /* likewise */
	char tenant[NAME_SIZE];
	char socket[LEDGER_SOCKET_PATH];
};

/* One process's membership. Lives in memory of the caller; no allocation. */
struct ledger {
	const struct ledger_backing *backing;
	const struct ledger_limits *limits;
	enum mode own_mode; /* at these limits */
	const struct log *log;
	struct tallies *tallies;
	const struct tenant_settings *settings;
	const struct rate_leases *rate_leases; /* NULL: no collector leases rates to this process */
	struct rate_uses *rate_uses;	       /* likewise */
	char *gauges; /* of the first device; a stride further those of the next */
	size_t gauges_stride;
	struct class_gauges *classes; /* by device; NULL without a collector */
	union {
		struct ledger_embedded embedded;
		struct ledger_lease lease;
	};
};

/* Charges wait in `deferred`; or this process has left, and joins again to charge. */
enum { LEDGER_DEFERRED = 1, LEDGER_LEFT = 2 };

/*
 * Joins. On failure -errno, with a sentence that names the thing in problem. A forked
 * child joins by its parent's transport, whose device numbers it may go on using.
 * LEDGER_LATER, with a sentence, too: somebody serves the collector's socket, or served
 * the parent of this process. Then nobody is free to count elsewhere, or not at all.
 * LEDGER_ALONE, likewise: the file cannot be used, and the limits hold for this process by
 * itself.
 */
int ledger_open(struct ledger *ledger, const struct ledger_options *options,
		char problem[PROBLEM_SIZE]);

/*
 * Where the process before this one, of which it was forked, has its charges: usage is NULL
 * unless it has a lease. To be asked before ledger_open, once.
 */
struct ledger_past {
	struct usage_page *usage;
	int fd; /* of the page, if it is still that */
	uint64_t inode;
	pid_t pid; /* these three say who it was (identity.h) */
	uint64_t start, view;
};

struct ledger_past ledger_past(void);
/* Whether it has certainly ended, and somebody else may change its charges. */
bool ledger_past_is_over(const struct ledger_past *past);
void ledger_past_refund(const struct ledger_past *past, unsigned device, const struct cost *cost);
/* This process has nothing of it any more: it is not to be found as its heir. */
void ledger_past_leave(struct ledger_past *past);

/* Leaves, if nothing is held; otherwise the death of the process will tell. A charge after
 * this joins again. */
void ledger_close(struct ledger *ledger);

/* Number of the device, for the calls below: LEDGER_NAMELESS when the table is full,
 * -errno when the ledger is out of order. */
int ledger_device(struct ledger *ledger, const char *name);

/* The name of a number; "-" for the nameless device. */
const char *ledger_device_name(const struct ledger *ledger, unsigned device);

/* Whose the process is, what is done there at a limit, and where the numbers live. The mode is for
 * those who read; what becomes of a charge, ledger_charge says. */
const char *ledger_tenant(const struct ledger *ledger);
enum mode ledger_mode(const struct ledger *ledger);
/* Whether what the tenant's policy forbids is refused. */
bool ledger_enforces(const struct ledger *ledger);
enum transport ledger_transport(const struct ledger *ledger);

/* What the tenant's processes follow besides limits: to be read with settings_read. Without a
 * collector they are settings_none; over a socket those of the moment of joining. */
const struct tenant_settings *ledger_settings(const struct ledger *ledger);

/*
 * Takes the cost. LEDGER_REFUSED with *ret_refusal filled when it would go over
 * a limit, even after everything that dead processes held was given back, or LEDGER_UNANSWERED
 * when no collector says whether it would. LEDGER_TOLERATED likewise, but it was taken. This is
 * final: modes are taken into account. -errno when the ledger is out of order. A forced charge is
 * never refused.
 */
int ledger_charge(struct ledger *ledger, unsigned device, const struct cost *cost,
		  struct ledger_refusal *ret_refusal);
int ledger_charge_forced(struct ledger *ledger, unsigned device, const struct cost *cost);

/* Gives the cost back. Waits for nobody and cannot fail. */
void ledger_refund(struct ledger *ledger, unsigned device, const struct cost *cost);

/* Books a charge for the next time that the ledger can be written. */
void ledger_defer_charge(struct ledger *ledger, unsigned device, const struct cost *cost);

/* The gauges of QPs by type, state and port; QP_NONE is no row. */
enum { QP_NONE = -1 };
void ledger_qp_appears(struct ledger *ledger, unsigned device, int type, int state);
void ledger_qp_vanishes(struct ledger *ledger, unsigned device, int type, int state, int port);
void ledger_qp_moves(struct ledger *ledger, unsigned device, int from_state, int to_state,
		     int from_port, int to_port);

/* The same by class; QP_NONE is ignored. */
void ledger_qp_class_moves(struct ledger *ledger, unsigned device, int from_class, int to_class,
			   int from_level, int to_level);

void ledger_count(struct ledger *ledger, enum tally_counter counter, uint64_t amount);
void ledger_count_max(struct ledger *ledger, enum tally_counter counter, uint64_t value);
void ledger_count_cm_event(struct ledger *ledger, unsigned event);
void ledger_count_refused(struct ledger *ledger, enum kind kind, bool tolerated);
void ledger_count_rate(struct ledger *ledger, enum rate_tally tally, enum rate_class class,
		       uint64_t amount);

/* Where posts on a device are counted; and what of the tenant's paces this process has there, NULL
 * while no collector has said. */
struct posted *ledger_posted(struct ledger *ledger, unsigned device);
const struct lease_share *ledger_share(const struct ledger *ledger, unsigned device);

/* What this process holds in total. */
uint64_t ledger_used(struct ledger *ledger, enum kind kind);

#endif
