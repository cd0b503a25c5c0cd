/* SPDX-License-Identifier: MIT */
/*
 * Owners of resources as the collector describes them (the host, tenants,
 * processes, each in total or on one device), turned so that a kind with all its
 * numbers is one thing, and the columns that show them. Whatever there is to say
 * of a kind comes from the rows of kinds.def.
 */
#ifndef CLI_OWNER_H
#define CLI_OWNER_H

#include "cli/amount.h"
#include "cli/cli.h"
#include "output/form.h"
#include "output/page.h"
#include "proto/messages.h"

/* What an owner has and may have of one kind. */
struct share {
	const char *kind;
	const char *device; /* NULL: in total */
	struct amount used;
	struct amount kernel; /* of no kind: nobody watches it */
	int64_t drift;	      /* kernel less used, where that lasts */
	bool uncovered;	      /* what the kernel has is not all in the books */
	struct amount leased;
	struct amount peak;
	struct amount limit;
	struct amount process_limit;
	uint64_t refused;
};

enum { OWNER_SCOPES = ROW_PROCESS + 1 };

struct owner {
	struct proto_row row;
	struct share share[KIND_COUNT];
};

extern const struct column host_columns[];
extern const struct column tenant_columns[];
extern const struct column process_columns[];
extern const struct column device_columns[];

/* What one question brought: lists of struct owner, by scope. */
struct owners {
	struct list in_total[OWNER_SCOPES];
	struct list on_devices[OWNER_SCOPES];
};

/* All of them if choose is NULL. An exit status; whatever it is, owners_free gives back what
 * was taken. */
int owners_ask(const struct cli *cli, enum message type, const struct proto_choose *choose,
	       struct owners *ret_owners);
/* The same, or from the embedded ledger if no collector runs; that has no tenants. */
int owners_ask_anywhere(const struct cli *cli, enum message type,
			const struct proto_choose *choose, struct owners *ret_owners);
void owners_free(struct owners *owners);

/* One line for each owner: the columns, and one more for each kind that matters to any. */
void owners_show(struct page *page, const char *key, const struct column *columns,
		 const struct list *owners);

/* All about one owner: the columns, its shares, and those on devices (NULL: it is on one). */
void owner_show(struct page *page, const char *key, const struct column *columns,
		const struct owner *owner, const struct list *on_devices);

/* Who has how much of one kind, the largest first. */
void owners_show_kind(struct page *page, const char *key, const struct column *columns,
		      const struct list *owners, enum kind kind);

#endif
