/* SPDX-License-Identifier: MIT */
/*
 * Numbers of the users and groups that a policy, or a person, names. The sources of names
 * (nsswitch.conf) may be in the network and answer late or never, so child processes ask them, and
 * all look-ups of the command together get USERS_PATIENCE_MS.
 */
#ifndef CLI_NAMES_H
#define CLI_NAMES_H

#include "policy/accounts.h"

/* A policy_account_find: -ETIMEDOUT if no answer came in time. */
int name_ask(void *closure, enum policy_account which, const char *name, uint32_t *ret_id);

#endif
