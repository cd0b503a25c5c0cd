/* SPDX-License-Identifier: MIT */
/*
 * The conditions of match lines as a table, from conditions.def: each with its
 * type (how it is read, written and compared) and with the test of a process.
 */
#ifndef POLICY_CONDITIONS_H
#define POLICY_CONDITIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "policy/policy.h"

struct policy_source;
struct policy_condition;

struct policy_condition_type {
	const char *expected; /* such values */
	/* The text is cut into pieces. 0 or -errno with a problem. */
	int (*parse)(const struct policy_source *source, const struct policy_condition *condition,
		     char *text, void *ret_field);
	void (*print)(FILE *file, const void *field);
	bool (*is_set)(const void *field);
	bool (*is_same)(const void *a, const void *b);
	/* Whether it can be proven that every process that meets narrow meets wide; both are set. */
	bool (*covers)(const void *wide, const void *narrow);
};

/* What is known of a process; labels are "" if there are none. */
struct policy_facts {
	const struct policy_subject *subject;
	const char *cgroup;
	char container[2 * NAME_SIZE];
	char job[NAME_SIZE];
	char pod[POD_SIZE]; /* NAMESPACE/NAME */
	char namespace[NAME_SIZE];
};

struct policy_condition {
	const char *name;
	const struct policy_condition_type *type;
	bool in_kernel;
	const char *help;
	size_t offset, size; /* in struct policy_rule */
	/* Whether a process meets it; only for a field that is set. */
	bool (*is_met)(const void *field, const struct policy_facts *facts);
};

enum {
#define CONDITION(name, type, in_kernel, help) POLICY_CONDITION_NUMBER_##name,
#include "policy/conditions.def"
#undef CONDITION
	POLICY_CONDITIONS
};

extern const struct policy_condition policy_conditions[POLICY_CONDITIONS];

/* In match.c. */
#define CONDITION(name, type, in_kernel, help)                                                     \
	bool policy_meets_##name(const void *field, const struct policy_facts *facts);
#include "policy/conditions.def"
#undef CONDITION

/* The condition's field of a rule; NULL if the rule does not have the condition. */
const void *policy_condition_get(const struct policy_condition *condition,
				 const struct policy_rule *rule);

/* Reads "NAME=VALUE" into the rule. 0 or -errno with a problem. */
int policy_condition_parse(const struct policy_source *source, char *text,
			   struct policy_rule *rule);

bool policy_rule_is_same(const struct policy_rule *a, const struct policy_rule *b);

/* Whether it can be proven that every process that meets narrow meets wide. */
bool policy_rule_covers(const struct policy_rule *wide, const struct policy_rule *narrow);

/* The name of a group of this host as its number. 0 or -errno with a problem. */
int policy_group_resolve(const struct policy_source *source, const char *what, const char *name,
			 uint32_t *ret_id);

#endif
