/* SPDX-License-Identifier: MIT */
/*
 * Names of users and groups for the collector, which does not wait for them: a child looks them up
 * (helper.h), and the policy that has them is read once more when they are known. Until then
 * nothing of it is in force. How a policy is read is known to control.c.
 */
#ifndef COLLECTOR_ACCOUNTS_H
#define COLLECTOR_ACCOUNTS_H

#include <stdbool.h>

struct collector;
struct accounts;

/* From now on policies are read by these accounts. */
int accounts_open(struct collector *collector);
void accounts_close(struct collector *collector);

/*
 * After a policy was read: whether it has names that are not known yet. It is to be freed then, and
 * read again when collector_names_known is called; at the start, as long as nobody is served, at
 * once, since this waits for the names.
 */
bool accounts_are_awaited(struct collector *collector);

/* Called before a policy is read for the first time: names that are known from an earlier reading
 * are asked for anew. */
void accounts_forget(struct collector *collector);

/* While set, a group that cannot be looked up is a group of nobody. */
void accounts_do_without(struct collector *collector, bool set);

#endif
