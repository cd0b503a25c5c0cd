/* SPDX-License-Identifier: MIT */
/* The keys that are set in the policy in force, and where each was set: asked of the collector. */
#ifndef CLI_ORIGINS_H
#define CLI_ORIGINS_H

#include "cli/cli.h"
#include "output/page.h"
#include "proto/messages.h"

enum { ORIGIN_TEXT = PROTO_ORIGIN + 16 };

/* All keys, as a list of struct proto_key; to be freed by free(row). An exit status. */
int origins_ask(const struct cli *cli, struct list *ret_keys);

/* Where the value of a key was set that counts for a section; "" if the policy does not set it. */
void origins_find(const struct list *keys, const char *section, const char *key,
		  char ret_origin[ORIGIN_TEXT]);

/* Everything but limits that counts for sections of the list (const char *[]): mode, weight, classes,
 * rates and so on. */
void origins_show_settings(struct page *page, const struct list *keys, const struct list *sections);

#endif
