/* SPDX-License-Identifier: MIT */
/*
 * The numbers of users and groups by their names. The host's data bases may be a directory in
 * the network that does not answer: a program that must not wait sets another way to find names.
 */
#ifndef POLICY_ACCOUNTS_H
#define POLICY_ACCOUNTS_H

#include <stdint.h>

enum policy_account { POLICY_USER, POLICY_GROUP };

/* 0; -ENOENT: there is no such name; or another -errno. */
typedef int policy_account_find(void *closure, enum policy_account which, const char *name,
				uint32_t *ret_id);

/* Asks the data bases of this host, for as long as they take. */
policy_account_find policy_account_ask;

/* By which function names are found from now on; policy_account_ask if nobody says otherwise. */
void policy_accounts_by(policy_account_find *find, void *closure);

/* By that function. */
int policy_account_number(enum policy_account which, const char *name, uint32_t *ret_id);

#endif
