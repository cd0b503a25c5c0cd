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
	/* Such keys are one for each word of a list, which ends their names; NULL: they are not. */
	const char *family;
	bool by_port;	      /* of a value for each kind: kinds on ports have one, too */
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
	uint32_t number;
	struct pace_rate pace_rate;
	enum policy_priority priority;
	char text[POLICY_PATH];
	struct policy_group group;
	struct rate rate;
	enum rate_action rate_action;
};

extern const struct policy_type policy_type_mode, policy_type_switch, policy_type_amounts,
	policy_type_path, policy_type_tenant, policy_type_socket_path, policy_type_group, policy_type_patterns,
	policy_type_guarantees, policy_type_percent, policy_type_weight, policy_type_rate,
	policy_type_rate_action, policy_type_delay, policy_type_rule, policy_type_when,
	policy_type_traffic_class, policy_type_service_level, policy_type_post_rate,
	policy_type_byte_rate, policy_type_pace_delay, policy_type_priority;

#endif
