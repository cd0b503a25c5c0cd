/* SPDX-License-Identifier: MIT */
/* Amounts of a kind, as the protocol has them: a number, or no limit. */
#ifndef VIEW_AMOUNT_H
#define VIEW_AMOUNT_H

#include <stdint.h>

#include "terms/kinds.h"
#include "output/form.h"

/* An amount of a kind. The kind is NULL if the amount is not known. */
struct amount {
	uint64_t value; /* UNLIMITED: no limit */
	const struct kind_row *kind;
};

/* The amount as people write it: "12", "1.5G", "-". */
enum { AMOUNT_TEXT = BYTES_TEXT };
const char *amount_text(const struct amount *amount, char ret_text[AMOUNT_TEXT]);

extern const struct form form_amount; /* struct amount */

#endif
