/* SPDX-License-Identifier: MIT */
/*
 * Documents against JSON Schema (draft 2020-12), as far as docs/schemas uses it: $ref, $defs, type,
 * properties, required, additionalProperties, items, enum, pattern, oneOf, and texts that say what
 * something means. A schema with another keyword is refused, and so is an object that does not say what
 * it may have beside its properties: so a field that a program prints and no schema names is found.
 */
#ifndef TESTS_SCHEMA_H
#define TESTS_SCHEMA_H

#include <jansson.h>
#include <stdbool.h>

enum { SCHEMA_PROBLEM = 512 };

/* Whether the document fits DIRECTORY/NAME.schema.json; if not, *ret_problem says where and why. */
bool schema_fits(const char *directory, const char *name, json_t *document,
		 char ret_problem[SCHEMA_PROBLEM]);

#endif
