/* SPDX-License-Identifier: MIT */
/*
 * Symbols: which real function is behind a verb, and what dlsym should
 * answer. Knows the names of the verbs' rows, nothing of what they do.
 */
#ifndef INTERCEPT_DL_H
#define INTERCEPT_DL_H

#include <stdbool.h>

/* For dlhooks.S: the answer, or DL_GO_ON to let the next dlsym answer the
 * application. version is NULL for dlsym. */
#define DL_GO_ON ((void *)-1)
void *dl_decide(void *handle, const char *name, const char *version);

/* Whether the address is code of an RDMA library: one that has verbs of ours, or a provider. */
bool dl_is_verbs(const void *address);

#endif
