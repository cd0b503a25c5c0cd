/* SPDX-License-Identifier: MIT */
/*
 * The names of the environment variables that the project reads. A variable that looks like one of
 * them and is none is probably misspelt: its user believes in a setting that is not in force.
 */
#ifndef TERMS_VARIABLES_H
#define TERMS_VARIABLES_H

#include <stdbool.h>
#include <stddef.h>

#define VARIABLES_PREFIX "RDMA_INTERCEPT_"

enum { VARIABLE_TEXT = 200 };

/* Whether an entry "NAME=VALUE" of an environment begins with the prefix, or is close to one of the
 * names, and no program of the project reads it. The sentence names it, and the name that was
 * probably meant. */
bool variable_is_unknown(const char *entry, char ret_text[VARIABLE_TEXT]);

#endif
