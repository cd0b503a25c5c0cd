/* SPDX-License-Identifier: MIT */
/* The when lines of the policy, and which of them are in force: a part of `status`. */
#ifndef CLI_RULES_H
#define CLI_RULES_H

#include "cli/cli.h"
#include "output/page.h"

/* Rows of the collector; to be freed with rules_free. An exit status. */
int rules_ask(const struct cli *cli, struct list *ret_rules);
void rules_show(struct page *page, const struct list *rules);
void rules_free(struct list *rules);

#endif
