/* SPDX-License-Identifier: MIT */
/*
 * What is under which key of etcd, and the JSON documents that are the values. docs/fleet.md has the
 * same for people.
 *
 *	PREFIX/all/policy		the policy of all hosts, as a policy file
 *	PREFIX/all/quota/TENANT/KIND	a quota of the fleet
 *	PREFIX/share/HOST/TENANT/KIND	a host's record in its division; written by the divider only
 *	PREFIX/ledger/TENANT/KIND	what is free of the quota; likewise
 *	PREFIX/alive/HOST		the host has a lease, under which this key is
 *	PREFIX/report/HOST		what the host said last
 *	PREFIX/divider			the host that divides, under its lease
 */
#ifndef FLEET_RECORDS_H
#define FLEET_RECORDS_H

#include "fleet/division.h"
#include "fleet/etcd.h"
#include "terms/kinds.h"
#include "terms/terms.h"

struct fleet_quota {
	char tenant[NAME_SIZE];
	unsigned kind;
	uint64_t amount;
	uint64_t guarantee; /* of each host */
};

/* "TENANT/KIND", as quotas are called in keys and reports. */
enum { QUOTA_NAME = NAME_SIZE + 32 };
void quota_name_print(const struct fleet_quota *quota, char ret_name[QUOTA_NAME]);

/* PREFIX and what follows it. */
void fleet_key_print(const struct fleet_settings *settings, char ret_key[ETCD_KEY],
		     const char *format, ...) __attribute__((format(printf, 3, 4)));

/* What follows PREFIX and `under` in a key; NULL if that is not its beginning. */
const char *fleet_key_rest(const struct fleet_settings *settings, const char *key,
			   const char *under);

/* Names of hosts are those that tenants may have, but longer; with the final NUL. */
enum { FLEET_HOST = 256 };
bool fleet_host_is_valid(const char *name, size_t length);

/* "TENANT/KIND", without the numbers. False if it is no such name. */
bool fleet_quota_name_read(const char *name, struct fleet_quota *ret_quota);

/* False if the name or the value is not in order. */
bool fleet_quota_read(const char *name, const char *value, struct fleet_quota *ret_quota);
char *fleet_quota_write(const struct fleet_quota *quota, const char *author);

/* False if a number is missing or larger than it may be: they become limits of hosts. */
bool fleet_record_read(const char *value, struct fleet_record *ret_record);
char *fleet_record_write(const struct fleet_record *record);

bool fleet_ledger_read(const char *value, uint64_t *ret_quota, int64_t *ret_free);
char *fleet_ledger_write(uint64_t quota, int64_t free);

/* "root@host" of who runs this program. */
void fleet_author_print(char ret_author[PROBLEM_SIZE]);

#endif
