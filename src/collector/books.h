/* SPDX-License-Identifier: MIT */
/*
 * The collector's books: who is registered, which leases there are, and how much
 * was granted on each. They lie in a file that survives the collector's death; sums
 * and limits are kept in memory beside it and made anew at each start. The books
 * hold the memory; what may be granted is decided in grants.c, and who comes and
 * goes in members.c. Only one thread works on the books.
 *
 * A lease is what one process may hold on one device, counted in one row of its usage
 * page. Its number is its row in the
 * books and in its tenant's lease table, and it never moves.
 */
#ifndef COLLECTOR_BOOKS_H
#define COLLECTOR_BOOKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "base/problem.h"
#include "collector/statefile.h"
#include "ledger/leaselayout.h"
#include "ledger/ledger.h"

#define BOOKS_MAGIC 0x736b6f6f62616d64u /* "dmabooks" */

enum {
	BOOKS_VERSION = 6,
	BOOKS_MEMBERS = 8192,
	BOOKS_TENANTS = 1024,
	BOOKS_NOBODY = UINT32_MAX >> 1, /* no member, no lease, no tenant */
};

/* ---- the file: every word is written by the collector alone */

/* A word of it is written whole: the collector may be killed at any instruction. */
#define BOOKS_STORE(word, value) __atomic_store_n(&(word), (value), __ATOMIC_RELAXED)

enum book_state { BOOK_FREE, BOOK_TAKEN, BOOK_DYING };

enum {
	MEMBER_ASKS = 1,     /* has no memory of ours: asks at each operation */
	MEMBER_EXECUTED = 2, /* an orphan; the process lives, but is another program since */
};

struct book_member {
	uint32_t state;	     /* stored last when taken; DYING before anything is undone */
	uint32_t generation; /* counts the owners of this row; +1 when freed */
	int32_t pid;
	uint32_t flags;
	uint64_t start; /* with the pid: who it is */
	uint64_t cookie;
	uint64_t usage_inode; /* of its usage page, by which that is found again */
	uint32_t tenant;
	uint32_t uid;
	uint32_t gid;
	uint32_t refusals; /* numbers them */
	uint32_t own_mode; /* enum mode: at the limits of its environment */
	uint32_t unused;
	uint64_t process_limit[KINDS_COUNTED]; /* requested by its environment */
	uint64_t host_limit[KINDS_COUNTED];
	uint64_t process_defaults;
	uint64_t host_defaults;
};

struct book_lease {
	uint32_t state; /* stored last, when taken and when freed */
	uint32_t member;
	uint32_t device;
	uint32_t usage_row;
	uint64_t granted[KINDS_COUNTED];	   /* never below what the lease table says */
	uint64_t device_limit[KINDS_COUNTED]; /* requested by the member's environment */
};

struct book_name {
	char name[NAME_SIZE]; /* "" = free; the first letter is stored last */
};

struct book_signature {
	uint64_t magic;
	uint32_t version;
	uint32_t members;
	uint32_t leases;
	uint32_t tenants;
	uint64_t kinds;
	uint64_t size;
};

struct book_file {
	struct book_signature signature;
	uint32_t members_high; /* rows ever taken, and with memory behind them */
	uint32_t leases_high;
	struct book_name device[DEVICES_MAX]; /* the first is the nameless device */
	struct book_name tenant[BOOKS_TENANTS];
	struct book_name pattern[BOOKS_TENANTS]; /* by which the tenant was made, so that it ends
						    with its last process; "": by none */
	uint32_t tolerant[BOOKS_TENANTS]; /* limits were not enforced, and members' pages may have
					     more than is granted */
	_Alignas(4096) struct book_member member[BOOKS_MEMBERS];
	_Alignas(4096) struct book_lease lease[LEASES_MAX];
};

/* ---- beside it, in memory */

/* Sums of what hostile members asked for must not wrap around where nothing limits them. */
typedef unsigned __int128 wide;

static inline uint64_t books_clamp(wide sum)
{
	return sum > UINT64_MAX ? UINT64_MAX : (uint64_t)sum;
}

/* What the guard in the kernel does for a tenant, of one kind. */
enum guarding {
	GUARDING_NOTHING,
	GUARDING_PART,	/* it counts some of its processes: others have another match line; or it
			   is not attached at this moment, and counts none */
	GUARDING_COUNTS, /* it counts all of them, but refuses nothing, or has still to count */
	GUARDING_HOLDS,	/* it counts all of them, and keeps the limits */
};

/* As in struct proto_row. */
struct refusal_counts {
	uint64_t refused[KINDS_COUNTED], tolerated[KINDS_COUNTED];
	uint64_t refused_here[KINDS_COUNTED], tolerated_here[KINDS_COUNTED];
};

/* What one owner holds together, and may: of the host or a tenant, on a device or in total. */
struct scope {
	uint64_t configured[KINDS_COUNTED]; /* by the policy; written by limits.c, */
	uint64_t limit[KINDS_COUNTED];	    /* as is what comes of it and is in force */
	bool forbidden; /* likewise: the tenant may not use the device, and every limit is 0 */
	/* Of a tenant, likewise: what is reserved for it, and the limit that it has as its share of
	 * the host's or the device's, and why (enum fair_reason; 0: it has no share). */
	uint64_t guarantee[KINDS_COUNTED];
	uint64_t share[KINDS_COUNTED];
	uint8_t reason[KINDS_COUNTED];
	/* Of a tenant in total: what the guard does (enum guarding), and what it counted last, of
	 * processes without the library, too; written by fairness_kernel.c. */
	uint8_t guarding[KINDS_COUNTED];
	uint64_t guarded[KINDS_COUNTED];
	wide granted[KINDS_COUNTED];
	wide used[KINDS_COUNTED]; /* as grants_measure found it last, */
	wide peak[KINDS_COUNTED]; /* and the most that it found, */
	uint32_t peak_time[KINDS_COUNTED]; /* first at this time, in seconds since 1970 */
	struct refusal_counts refusals;
};

struct owner {
	struct scope total;
	struct scope device[DEVICES_MAX];
};

struct tenant {
	struct owner all;
	struct {
		uint64_t total[KINDS_COUNTED];
		uint64_t device[DEVICES_MAX][KINDS_COUNTED];
	} process_limit;
	struct lease_table *table;
	int table_fd;	   /* for us, */
	int table_read_fd; /* and to be handed over */
	unsigned members;
	/* What processes that have ended had counted; written by tenant_tallies.c. */
	struct tallies ended;
	struct posted ended_posted;
	bool any_ended; /* there were such processes */
	uint32_t weight; /* where tenants share a limit; written by limits.c */
	uint32_t leases; /* the first, chained */
};

/* What a member was given last. While its page has the number of the question, it is about
 * to take that. */
struct promise {
	uint64_t question; /* 0: none */
	uint32_t lease;
	unsigned count;
	unsigned kind[COST_KINDS];
	uint64_t total[COST_KINDS];
};

/* What is known of a member besides its row in the file. */
struct member {
	const struct usage_page *usage; /* NULL: its used is what was granted */
	int pidfd;
	int lifeline;	 /* the connection of its HELLO; -1 after a restart */
	uint32_t leases; /* the first, chained */
	uint32_t next_of_pid;
	uint8_t seeks; /* for the usage page of one that lives */
	struct promise promise;
	bool orphan;		   /* has ended, but a child still has its descriptors */
	bool orphan_told;	   /* and everybody knows */
	uint8_t nothing;	   /* so often in a row the kernel had nothing of it any more */
	uint64_t ended_ns;	   /* of an orphan; CLOCK_MONOTONIC */
	wide granted[KINDS_COUNTED];  /* over its leases */
	uint64_t used[KINDS_COUNTED]; /* as in struct scope */
	uint64_t peak[KINDS_COUNTED];
	struct refusal_counts refusals;
};

/* A lease's way to its words, kept together for the sweep. */
struct lease_view {
	const uint64_t *used; /* NULL: what was granted */
	uint64_t *cap;	      /* NULL: the member has no table */
	uint32_t member;      /* BOOKS_NOBODY: the lease is free */
	uint32_t tenant;
	uint32_t device;
	uint32_t next_of_member;
	uint32_t next_of_tenant, previous_of_tenant;
};

struct books {
	const struct log *log;
	int directory, read_directory; /* the same one; through the second nothing can be written */
	int fd;
	struct book_file *file;
	struct owner host;
	struct tenant *tenant[BOOKS_TENANTS];
	struct member *member;	 /* BOOKS_MEMBERS of them */
	struct lease_view *view; /* LEASES_MAX of them */
	uint32_t *free_leases, *free_members;
	unsigned free_leases_count, free_members_count;
	unsigned members_count, leases_count;
	bool attached; /* members_attach is done */
	/* Some of the limit of the host (0) or of a device is reserved, or used by processes that
	 * are not registered: written by fairness.c. */
	bool reserving[DEVICES_MAX][KINDS_COUNTED];
	/* Of the limit of the host, what the guard may let its tenants have without a question;
	 * written by fairness_kernel.c. */
	uint64_t guard_room[KINDS_COUNTED];
	uint32_t by_pid[4096];
};

/*
 * Opens the books below the directory, made if need be; sums are rebuilt, but the
 * members are still to be looked up (members_attach). -EBUSY when another
 * collector has them open; every failure with a sentence that names the thing.
 */
int books_open(struct books *books, const char *directory, const struct log *log,
	       char problem[PROBLEM_SIZE]);
void books_close(struct books *books);

/* What the host or a tenant has in a place: in total (0), or on a device. */
static inline struct scope *books_scope(struct owner *owner, unsigned place)
{
	return place ? &owner->device[place] : &owner->total;
}

/* What a tenant has or may take without the guard's knowledge or consent. */
static inline uint64_t books_outside_guard(const struct scope *scope, unsigned kind)
{
	uint64_t granted = books_clamp(scope->granted[kind]);

	switch ((enum guarding)scope->guarding[kind]) {
	case GUARDING_HOLDS:
		return 0;
	case GUARDING_COUNTS:
		return granted > scope->guarded[kind] ? granted - scope->guarded[kind] : 0;
	default:
		return granted;
	}
}

/* What it has or may take of what the guard's tenants have together. */
static inline uint64_t books_inside_guard(const struct scope *scope, unsigned kind)
{
	uint64_t granted = books_clamp(scope->granted[kind]), guarded = scope->guarded[kind];

	return scope->guarding[kind] == GUARDING_HOLDS && granted > guarded ? granted : guarded;
}

/* What a tenant holds there, credit included; and processes that are not registered. */
static inline uint64_t books_taken(const struct scope *scope, unsigned kind)
{
	return books_clamp((wide)books_outside_guard(scope, kind) +
			   books_inside_guard(scope, kind));
}

/* What of its guarantee it does not use. */
static inline uint64_t books_unused_guarantee(const struct scope *scope, unsigned kind)
{
	uint64_t taken = books_taken(scope, kind);

	return scope->guarantee[kind] > taken ? scope->guarantee[kind] - taken : 0;
}

/* Number of the tenant of that name, made with its table if new; -errno. */
int books_tenant(struct books *books, const char *name);
/* The same of one that a pattern of the policy makes ("": none does); for a new one. */
int books_tenant_make(struct books *books, const char *name, const char *pattern);
/* By which pattern a tenant was made, or "". */
const char *books_tenant_pattern(const struct books *books, unsigned tenant);
void books_tenant_mark(struct books *books, unsigned tenant, const char *pattern);
/* Its number if it is there, or -1. */
int books_tenant_find(const struct books *books, const char *name);
/* Forgets a tenant without members. */
void books_tenant_drop(struct books *books, unsigned tenant);
/* Gives the row and the table of a tenant without members to another one. Cannot fail. */
void books_tenant_rename(struct books *books, unsigned tenant, const char *name);
/* Whether every row has a tenant. */
bool books_tenants_are_full(const struct books *books);

/* Number of the device, made if new; LEDGER_NAMELESS for "" and when there is no room. */
unsigned books_device(struct books *books, const char *name);
/* Its name; NULL if the number is free, or that of the nameless device. */
const char *books_device_name(const struct books *books, unsigned device);
/* Whether no device has this number. */
bool books_device_is_free(const struct books *books, unsigned device);

/* Nothing is known of a member besides its row. Those that nobody ever took are not even
 * cleared: most of that memory is never touched. */
void books_member_clear(struct member *member);

/* A free row, with memory behind it; -ENOSPC. It is free until somebody takes it. */
int books_member_row(struct books *books);
int books_lease_row(struct books *books);

/* Takes a free lease row for a member; it is empty. -ENOSPC when its table has no memory. */
int books_lease_take(struct books *books, unsigned lease, unsigned member, unsigned device,
		     unsigned usage_row);

/* Makes a lease free that nothing was ever granted on, and that its member does not know of. */
void books_lease_drop(struct books *books, unsigned lease);

/* The member's lease for a row of its usage page, or BOOKS_NOBODY. */
unsigned books_lease_of(const struct books *books, unsigned member, unsigned usage_row);

/* Puts the lease's view and sums in order after its row or its member's page changed. */
void books_lease_view(struct books *books, unsigned lease);

/* The most that is granted on one lease. */
#define BOOKS_GRANT_MOST (1ull << 63)

/* Writes how much is granted, here and in every sum. The file first or the cap first is
 * the caller's affair. */
void books_grant(struct books *books, unsigned lease, unsigned kind, uint64_t granted);

/* Makes all of a member's leases and then its row free. May be repeated at any point. */
void books_member_free(struct books *books, unsigned member);

#endif
