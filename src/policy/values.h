/* SPDX-License-Identifier: MIT */
/* The types that values of keys have: how one value is read and written. */
#ifndef POLICY_VALUES_H
#define POLICY_VALUES_H

#include <stdio.h>

#include "policy/policy.h"

struct policy_source;
struct policy_key;
struct policy_place;

/* How many values a field has. */
enum policy_shape {
	POLICY_SINGLE,	 /* one */
	POLICY_PER_KIND, /* one for each kind, in total and on each device: struct policy_limits */
	POLICY_LINES,	 /* no field: each line adds one to a list of the whole policy */
};

struct policy_type {
	enum policy_shape shape;
	const char *expected; /* such values */
	const void *unset;    /* a value that stands for none */
	/* 0; -errno with a problem, and the value untouched. */
	int (*parse)(const struct policy_source *source, const struct policy_key *key,
		     const struct policy_place *place, const char *text, void *ret_value);
	void (*print)(FILE *file, const void *value);
};

/* Room for a value of any type. */
union policy_value {
	enum mode mode;
	enum policy_switch position;
	uint64_t amount;
	char text[POLICY_PATH];
	struct policy_group group;
};

extern const struct policy_type policy_type_mode, policy_type_switch, policy_type_amounts,
	policy_type_path, policy_type_socket_path, policy_type_group, policy_type_patterns,
	policy_type_rule, policy_type_when;

#endif
