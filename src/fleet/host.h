/* SPDX-License-Identifier: MIT */
/*
 * This host as a member of the fleet: its lease, the policy that it follows, its shares of quotas, and
 * what it reports. Everything that the collector is told goes through the files of directory.h.
 *
 * A share counts until a moment that is computed from when the lease was asked for, by this host's
 * clock, less a margin; etcd ends the lease later than that, and only then others get the share.
 */
#ifndef FLEET_HOST_H
#define FLEET_HOST_H

#include "fleet/etcd.h"
#include "fleet/records.h"
#include "fleet/usage.h"

enum { HOST_SHARES = 128, HOST_READ_MS = 100, LEASE_MARGIN_PART = 10 };

/* A quota of the fleet, and this host's record in its division. */
struct host_share {
	struct fleet_quota quota;
	struct fleet_record record;
	uint64_t revision; /* of the record; 0: not written yet */
	uint64_t confirmed; /* the revision of a record that the collector keeps to */
	uint64_t refused; /* as the collector counted them last */
	uint64_t demand, held;
	bool overridden; /* somebody on this host has set a higher limit */
	bool is_named, is_recorded; /* by what was read last */
};

struct host {
	const struct fleet_settings *settings;
	const struct log *log;
	struct etcd *etcd;
	char socket[PROTO_PATH];
	struct fleet_usage usage;

	uint64_t lease;	      /* 0: no lease */
	bool is_joining;      /* it has a lease, but has not read what it may use */
	uint64_t until_ns;    /* CLOCK_BOOTTIME: the shares end, before the lease does */
	uint64_t lease_s;     /* as etcd granted it */
	uint64_t keep_at_ns;  /* the times of what comes next, CLOCK_MONOTONIC */
	uint64_t try_at_ns, look_at_ns, divide_at_ns, read_at_ns;
	unsigned failures; /* in a row, for the back-off */

	bool is_told;		/* there is something under PREFIX/all/ */
	bool has_divider, is_divider; /* the fleet, and this host, by what was read last */
	uint64_t policy_revision;  /* of the last one that came, */
	bool policy_is_unwritten;  /* for another reason than a mistake in it */
	uint64_t policy_in_force;  /* and of the last good one */
	char policy_problem[PROBLEM_SIZE];
	struct host_share share[HOST_SHARES];
	unsigned shares;
	bool has_changed;  /* shares: files are to be written */
	uint64_t written_ns; /* when they were, CLOCK_MONOTONIC */
	json_t *reported; /* as it was written last, and when, CLOCK_MONOTONIC */
	uint64_t reported_ns;
	char said[PROBLEM_SIZE]; /* the last problem in the log */
};

/* Does what is due, and returns how many milliseconds nothing is. */
int host_step(struct host *host);

/* Keeps the lease, if it is time: for etcd_pause_set(), with the host as the closure. */
void host_keep_if_due(void *closure);

/* ---- host_report.c */

/* Asks the collector, and notes which shares it keeps to. */
void host_look(struct host *host);

/* Tells etcd, if something has changed or it was long ago. -errno with a problem. */
int host_report(struct host *host, char problem[PROBLEM_SIZE]);

/* ---- host_shares.c */

/* A quota or a record that was read, or is gone (text NULL). */
void host_quota_take(struct host *host, const char *name, const char *text);
void host_record_take(struct host *host, const char *name, const char *text, uint64_t revision);

/* Before and after all keys are read again: those that did not come are gone. */
void host_shares_doubt(struct host *host);
void host_shares_sweep(struct host *host);

/* Writes the files of the shares. -errno with a problem. */
int host_shares_write(struct host *host, char problem[PROBLEM_SIZE]);

#endif
