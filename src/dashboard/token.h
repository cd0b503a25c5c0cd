/* SPDX-License-Identifier: MIT */
/* The token that changes need: 64 hexadecimal digits in a file that only its owner can read. */
#ifndef DASHBOARD_TOKEN_H
#define DASHBOARD_TOKEN_H

#include <stdbool.h>

#include "base/problem.h"

enum { TOKEN_TEXT = 65 };

/* Makes the file unless it exists, as the owner of its directory. 0 or -errno with a sentence. */
int token_make(const char *path, char problem[PROBLEM_SIZE]);

/* Reads it, unless others could have written or read it. 0 or -errno with a sentence. */
int token_read(const char *path, char ret_token[TOKEN_TEXT], char problem[PROBLEM_SIZE]);

/* Whether an Authorization header has the token; takes the same time for every wrong one. */
bool token_matches(const char *token, const char *authorization);

#endif
