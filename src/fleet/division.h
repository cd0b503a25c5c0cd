/* SPDX-License-Identifier: MIT */
/*
 * The division of one quota among hosts: a pure function of numbers, without etcd, time or files.
 *
 * A host's record has two pairs of numbers. What it shall keep to: `target` while it has a lease,
 * `floor` without one. What it may still be keeping to: `share` and `kept`, which are lowered only
 * when the host has confirmed the record, or has no lease any more. So whatever a host has read
 * last, it allows itself at most its share; and shares and what is free are the quota, always.
 */
#ifndef FLEET_DIVISION_H
#define FLEET_DIVISION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fleet_record {
	uint64_t share;	 /* of the quota: no other host has it */
	uint64_t kept;	 /* of the share, without a lease */
	uint64_t target; /* the limit in force on the host, at most the share */
	uint64_t floor;	 /* likewise without a lease, at most kept and target */
};

struct division_host {
	struct fleet_record record; /* changed by the division */
	bool alive;	 /* it has a lease */
	bool confirmed;	 /* it keeps to this record, */
	uint64_t held;	 /* and then held so much; of a host that is cut off, the last it said */
	uint64_t demand; /* held, and what was refused lately */
};

struct division {
	uint64_t quota;
	uint64_t guarantee; /* of each host */
	int64_t free;	    /* negative after the quota was cut, until hosts have given back */
	bool keeps_lost;    /* a host that is cut off keeps its share */
};

/* Which of two records goes first into etcd: those that give back. */
bool division_gives_back(const struct fleet_record *before, const struct fleet_record *after);

/* One round: takes back what hosts have given up, then gives. */
void division_round(struct division *division, struct division_host *hosts, size_t count);

#endif
