/* SPDX-License-Identifier: MIT */
/*
 * Owners of resources as the collector describes them (the host, tenants,
 * processes, each in total or on one device), turned so that a kind with all its
 * numbers is one thing, and the columns that show them. Whatever there is to say
 * of a kind comes from the rows of kinds.def.
 */
#ifndef VIEW_OWNER_H
#define VIEW_OWNER_H

#include "output/form.h"
#include "output/page.h"
#include "proto/messages.h"
#include "view/amount.h"

/* What an owner has and may have of one kind. */
struct share {
	const char *kind;
	char place[NAME_SIZE + 4]; /* a device, or a port of one; "": in total */
	struct amount used;
	struct amount kernel; /* of no kind: nobody watches it */
	int64_t drift;	      /* kernel less used, where that lasts */
	bool uncovered;	      /* what the kernel has is not all in the books */
	struct amount leased;
	struct amount peak;
	uint64_t peak_ns; /* CLOCK_REALTIME: when it first was that; 0: never */
	struct amount limit;	  /* in force */
	struct amount configured; /* by the policy */
	struct amount guarantee;
	uint32_t reason; /* enum fair_reason: why the limit in force is what it is */
	struct amount process_limit;
	uint64_t refused;
	struct amount tolerated; /* a count: would have been refused */
};

enum { OWNER_SCOPES = ROW_PROCESS + 1 };

struct owner {
	struct proto_row row;
	char user[NAME_SIZE]; /* the name of row.uid, where somebody looked it up; "" */
	struct share share[KINDS_COUNTED]; /* on a device also those on its ports (kinds.h) */
};

void owner_read(struct owner *owner, const struct proto_row *given);

extern const struct column host_columns[];
extern const struct column tenant_columns[];
extern const struct column process_columns[];
extern const struct column device_columns[];

/* What one question brought: lists of struct owner, by scope. */
struct owners {
	struct list in_total[OWNER_SCOPES];
	struct list on_devices[OWNER_SCOPES];
};

/* No owners yet; owners_free gives back what owners_take took. */
void owners_clear(struct owners *owners);
/* A proto_row_function: one row of GET_STATS or GET_PROC_STATS into struct owners. */
int owners_take(const void *row, void *owners);
/* What is on devices by their names, mlx5_9 before mlx5_10. */
void owners_sort(struct owners *owners);
void owners_free(struct owners *owners);

/* Whether there is something to say of a kind: it is held, was refused, or has a limit. */
bool share_matters(const struct share *share);

/* A struct share in one cell: "! 4/5", with the mark of a share that is full or nearly. */
extern const struct form form_share;

/* Whether there is something to say of a kind on a port: not if there is only idle credit. */
bool share_on_port_matters(const struct share *share);

/* One line for each owner: the columns, and one more for each kind that matters to any. */
void owners_show(struct page *page, const char *key, const struct column *columns,
		 const struct list *owners);

/* All about one owner: the columns, its shares, and those on devices (NULL: it is on one). */
void owner_show(struct page *page, const char *key, const struct column *columns,
		const struct owner *owner, const struct list *on_devices);

/* The limits in force that are not the configured ones, and why; nothing if there are none. */
void owners_show_shares(struct page *page, const struct owners *owners);

/* Who has how much of one kind, the largest first. */
void owners_show_kind(struct page *page, const char *key, const struct column *columns,
		      const struct list *owners, enum kind kind);

#endif
