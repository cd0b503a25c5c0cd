/* SPDX-License-Identifier: MIT */
/*
 * The memory that a collector and a process share. A lease is what one process
 * may hold on one device. There are two pieces, and each word has one writing
 * process, so that nothing needs a lock and a death at any instruction leaves
 * nothing to repair:
 *
 *   usage page   a memfd per process: how much is used. Written by the process; only the rates
 *                that are leased to it (terms/rates.h) are written by the collector.
 *   lease table  a file per tenant: how much may be used. Written by the collector,
 *                mapped read-only by the tenant's processes.
 *
 * A process adds to `used` first and then looks at `cap`; the collector, to take
 * credit back, lowers `cap` first and then looks at `used`. All of it is sequentially
 * consistent, so one of the two sees the other; tests/model checks it. What was given
 * in answer to a question stays while the process says that the question is not done.
 */
#ifndef LEDGER_LEASELAYOUT_H
#define LEDGER_LEASELAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "terms/kinds.h"
#include "ledger/ledger.h"
#include "terms/rates.h"
#include "terms/settings.h"
#include "terms/tallies.h"

#define USAGE_MAGIC 0x6567617375616d64u	 /* "dmausage" */
#define LEASES_MAGIC 0x7365736165616d64u /* "dmaeases" */

enum {
	LEASE_VERSION = 5,
	USAGE_ALLOCATED = 8192, /* bytes of a usage page that have memory from the beginning */
	LEASES_MAX = 16384, /* rows of a table */
};

/* Written by the collector before anybody else has it; never changed. */
struct lease_signature {
	uint64_t magic;
	uint32_t version;
	uint32_t rows;
	uint64_t kinds;
};

struct usage_row {
	uint64_t used[KINDS_COUNTED]; /* the process's threads, by seq_cst operations */
	struct gauges gauges;
};

/* A row per device; the first device is the nameless one. What follows the first
 * USAGE_ALLOCATED bytes has memory only where a process uses that many devices. */
struct usage_page {
	struct lease_signature signature;
	uint64_t question; /* the process: number of its question from before it is asked until
			      what was given is taken, by seq_cst operations; 0 = none */
	struct tallies tallies;
	struct rate_uses rate_uses;	/* the process's threads */
	struct rate_leases rate_leases; /* the collector: the one thing on the page that it writes */
	struct usage_row row[DEVICES_MAX];
	struct class_gauges classes[DEVICES_MAX]; /* like the row's gauges */
};

/* What of its tenant's paces a lease has, so much a second; 0: the collector has not said. */
struct lease_share {
	uint64_t bytes;	     /* the collector */
	uint64_t operations; /* likewise */
	uint64_t floor;	     /* likewise: bytes, where the device is held */
};

struct lease_row {
	_Alignas(64) uint64_t cap[KINDS_COUNTED]; /* the collector; 0 = ask for everything */
	struct lease_share share;
};

struct lease_table {
	struct lease_signature signature;
	uint32_t mode; /* the collector: enum mode of the tenant */
	struct tenant_settings settings; /* the collector */
	struct lease_row row[LEASES_MAX];
};

_Static_assert(sizeof(struct lease_signature) == 24, "no padding in what is compared");
_Static_assert(offsetof(struct usage_page, row[1]) <= USAGE_ALLOCATED,
	       "what the collector writes, and every process, has memory from the beginning");
_Static_assert(sizeof(struct lease_row) % 64 == 0, "no two leases in one cache line");

#endif
