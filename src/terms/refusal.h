/* SPDX-License-Identifier: MIT */
/*
 * The words of a refusal at a limit: the same in the library's line, in the list of events and in
 * an explanation. Numbers are whole, so that a limit can be set by them.
 */
#ifndef TERMS_REFUSAL_H
#define TERMS_REFUSAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { REFUSAL_TEXT = 320 };

struct refusal_words {
	const char *kind, *scope;
	uint64_t used, limit, wanted;
	bool own; /* the program's own environment sets the limit */
	uint64_t configured; /* by the policy, if that is more than the limit; otherwise 0: */
	bool share;	     /* the limit is the tenant's share; otherwise the rest is reserved */
	const char *origin;  /* where the limit was set; NULL or "": that is not known */
};

/* "qp used 2/2, wanted 1 more, limit of the process, from policy.conf:7". Returns the text. */
const char *refusal_text(const struct refusal_words *words, char ret_text[REFUSAL_TEXT]);

#endif
