/* SPDX-License-Identifier: MIT */
/*
 * The keys of a policy as a table, from keys.def, and one way to all of their values:
 * reader, writer, merge and comparison walk over the rows and know no key by name.
 */
#ifndef POLICY_KEYS_H
#define POLICY_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "policy/policy.h"
#include "policy/values.h"

/* Names of tenants and of devices. */
#define POLICY_NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"
#define POLICY_NAME_EXPECTED "1 to 63 of the characters A-Z a-z 0-9 _ . -"

enum { POLICY_KEY_NAME = 192 }; /* room for "process.device.NAME.KIND" */

enum policy_sections {
	POLICY_IN_COLLECTOR = 1,
	POLICY_IN_HOST = 2,
	POLICY_IN_DEFAULT = 4,
	POLICY_IN_TENANT = 8,
	/* Whose values are in struct policy, and in struct policy_tenant. */
	POLICY_OF_POLICY = POLICY_IN_COLLECTOR | POLICY_IN_HOST,
	POLICY_OF_TENANT = POLICY_IN_DEFAULT | POLICY_IN_TENANT,
};

struct policy_section {
	const char *name;
	const char *title; /* as it stands in a file */
	enum policy_sections bit;
	bool by_command; /* commands may change it */
};

enum { POLICY_SECTIONS = 4 };
extern const struct policy_section policy_sections[POLICY_SECTIONS];

struct policy_key {
	const char *name;
	unsigned sections; /* that have it: a set of enum policy_sections */
	const struct policy_type *type;
	size_t offset, size; /* of the field; size is that of one value */
	const void *initial; /* what counts if no section sets it: a value of the type */
	const char *help;
};

enum policy_key_number {
#define KEY_COLLECTOR(field, name, type, initial, help) POLICY_KEY_##field,
#define KEY_HOST(field, name, type, initial, help) POLICY_KEY_##field,
#define KEY_TENANT(field, name, type, initial, help) POLICY_KEY_##field,
#include "policy/keys.def"
	POLICY_KEY_match,
	POLICY_KEY_when,
	POLICY_KEYS
};

extern const struct policy_key policy_keys[POLICY_KEYS];

/* One of the values that a field can have: for a key of one value, nothing is said. */
struct policy_place {
	unsigned next;			 /* for policy_key_next */
	char device[NAME_SIZE]; /* "": in total */
	enum kind kind;
};

/* Below, `structure` is a struct policy or a struct policy_tenant, as the key's sections say. */

/* The value in a place; NULL if it is unset. */
const void *policy_key_get(const struct policy_key *key, const void *structure,
			   const struct policy_place *place);

/* Sets or, with NULL, unsets a value. 0; -ENOMEM; -E2BIG past POLICY_DEVICES. */
int policy_key_set(const struct policy_key *key, void *structure, const struct policy_place *place,
		   const void *value);

/* Walks over the values that are set, beginning with a place of zeros: the next one, and its place;
 * NULL at the end. */
const void *policy_key_next(const struct policy_key *key, const void *structure,
			    struct policy_place *place);

/* The key as it is written for a value. */
void policy_key_print(const struct policy_key *key, const struct policy_place *place,
		      char ret_name[POLICY_KEY_NAME]);

/* The ways to write a key, such as "process.KIND": the one with this number, or NULL. */
const char *policy_key_form(const struct policy_key *key, unsigned number,
			    char ret_form[POLICY_KEY_NAME]);

/* Which value of which key of a section a text names. 0, or -EINVAL with a problem. */
int policy_key_parse(const struct policy_source *source, const struct policy_section *section,
		     const char *text, const struct policy_key **ret_key,
		     struct policy_place *ret_place);

/* The same, without a problem: NULL if a section has no such value. */
const struct policy_key *policy_key_find(const struct policy_section *section, const char *text,
					 struct policy_place *ret_place);

/* All fields of a new structure as unset; and their memory given back. */
void policy_keys_unset(unsigned sections, void *structure);
void policy_keys_release(unsigned sections, void *structure);

bool policy_name_is_valid(const char *name);

#endif
