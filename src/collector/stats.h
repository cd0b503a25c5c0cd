/* SPDX-License-Identifier: MIT */
/*
 * The numbers that the collector knows: a visitor over the host, tenants and processes, in total
 * and on each device, with a number for each kind. Knows no wire format; code that shows or
 * sends the numbers reads them here.
 */
#ifndef COLLECTOR_STATS_H
#define COLLECTOR_STATS_H

#include "collector/collector.h"

enum stats_owner { STATS_HOST, STATS_TENANT, STATS_PROCESS, STATS_OWNERS };

/* What is true of an owner, or of a process of it; bits. */
enum stats_flag {
	STATS_DRAINING = 1,   /* more is held than a limit allows, since it was cut */
	STATS_ORPHAN = 2,     /* the process has ended, a child still has its objects */
	STATS_UNATTACHED = 4, /* its usage page was not found again after a restart */
	STATS_SOCKET = 8,     /* it asks at each operation */
	STATS_RUNTIME = 16,   /* a tenant that a command made */
	STATS_REMOVED = 32,   /* a tenant that no policy names any more, with processes left */
	STATS_UNCOVERED = 64, /* has objects in the kernel, and is not registered */
	STATS_DRIFT = 128,    /* kernel and books differ, and not just for a moment */
	STATS_WATCHED = 256,  /* there is a monitor: kernel and drift mean something */
	STATS_INACTIVE = 512, /* uncovered although the library is loaded */
	STATS_FORBIDDEN = 1024, /* of a tenant on a device: it may not use it */
	STATS_PATTERN = 2048,	/* a tenant that a pattern has made */
};

/* One owner, in total or on one device. The strings last until the visitor returns. */
struct stats_row {
	enum stats_owner owner;
	unsigned flags;	       /* enum stats_flag */
	enum mode mode; /* of tenants and processes */
	pid_t pid;	       /* of processes */
	uid_t uid;
	unsigned processes;  /* of hosts and tenants: how many are registered */
	const char *tenant;  /* "" of the host */
	const char *device;  /* "": in total; "-": the nameless one */
	const char *command; /* of processes; otherwise "" */
	uint64_t used[KINDS_COUNTED];
	uint64_t granted[KINDS_COUNTED]; /* used and idle credit */
	uint64_t peak[KINDS_COUNTED];
	uint64_t peak_time[KINDS_COUNTED];     /* of hosts and tenants: seconds since 1970, or 0 */
	uint64_t limit[KINDS_COUNTED];	       /* in force; UNLIMITED */
	uint64_t configured[KINDS_COUNTED];    /* of hosts and tenants: what the policy says */
	uint64_t guarantee[KIND_COUNT];	       /* of tenants, as is */
	uint64_t reason[KIND_COUNT];	       /* of the limit in force: enum fair_reason; */
	uint64_t weight;
	uint64_t process_limit[KINDS_COUNTED]; /* of tenants: for each of their processes */
	struct refusal_counts refusals;
	uint64_t observed;	     /* bit k: it is known what the kernel has of kind k, */
	uint64_t kernel[KIND_COUNT]; /* and this is it */
	int64_t drift[KIND_COUNT];   /* in total: kernel less used, where that lasts */
};

/* What is chosen; "" and 0: all of it. */
struct stats_filter {
	unsigned owners; /* bits: 1 << enum stats_owner */
	const char *tenant;
	const char *device;
	pid_t pid;
};

/* False: no more rows. */
typedef bool stats_visitor(void *closure, const struct stats_row *row);

/* Brings the numbers up to date and visits the rows: the host, each tenant, each registered
 * process, each uncovered one; each of them in total (unless a device is chosen), then on each
 * device that there is something to say of. */
void stats_visit(struct collector *collector, const struct stats_filter *filter,
		 stats_visitor *visitor, void *closure);

#endif
