/* SPDX-License-Identifier: MIT */
/*
 * Where each value of a policy was set: a line of a file, a command, a variable of the collector's
 * environment, or a when line that is in force. Values and origins are kept apart, since most
 * readers of a policy look at values only.
 */
#ifndef POLICY_ORIGINS_H
#define POLICY_ORIGINS_H

#include "policy/keys.h"
#include "policy/problem.h"

struct policy_origin {
	struct policy_origin *next;
	const struct policy_key *key;
	struct policy_place place;
	char source[]; /* "FILE:LINE", POLICY_COMMAND, "environment VARIABLE" or "when FILE:LINE" */
};

/* The list that belongs to the values of a section: of the tenant (NULL: of the host). */
struct policy_origin **policy_origins(struct policy *policy, struct policy_tenant *owner);

/* Notes the origin of a value; NULL: the value is unset. -ENOMEM. */
int policy_origin_set(struct policy_origin **origins, const struct policy_key *key,
		      const struct policy_place *place, const char *source);

/* Copies the origin of one value, if it has one. -ENOMEM. */
int policy_origin_copy(struct policy_origin **origins, const struct policy_origin *from,
		       const struct policy_key *key, const struct policy_place *place);

/* "" if there is none. */
const char *policy_origin_find(const struct policy_origin *origins, const struct policy_key *key,
			       const struct policy_place *place);

/* Of the value in force: see policy_limit_origin in policy.h. */
void policy_value_origin(const struct policy *policy, const struct policy_tenant *tenant,
			 const struct policy_key *key, const struct policy_place *place,
			 char ret_source[POLICY_ORIGIN]);

void policy_origins_drop(struct policy_origin **origins);

#endif
