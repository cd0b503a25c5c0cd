/* SPDX-License-Identifier: MIT */
/* The table of kinds and look-ups in it; see kinds.h. */
#include "terms/kinds.h"

#include <string.h>

#include "terms/size.h"

/* On a port only the ledger counts. */
#define ON_PORT(port)                                                                              \
	[KIND_COUNT + ((port) - 1) * PORT_KINDS] = { "qp", UNIT_COUNT, FORM_OBJECT, RDMACG_NOT,    \
						     DRIFT_NONE, GUARDED_NO,			   \
						     "queue pairs on port " #port },		   \
	[KIND_COUNT + ((port) - 1) * PORT_KINDS + 1] = { "ah", UNIT_COUNT, FORM_OBJECT,		   \
							 RDMACG_NOT, DRIFT_NONE, GUARDED_NO,	   \
							 "address handles on port " #port }

const struct kind_row kind_rows[KINDS_COUNTED] = {
#define KIND(name, unit, form, rdmacg, kernel, guarded, text)                                      \
	[KIND_##name] = { #name,	    UNIT_##unit,       FORM_##form, RDMACG_##rdmacg,       \
			  DRIFT_##kernel, GUARDED_##guarded, text },
#include "terms/kinds.def"
#undef KIND
	ON_PORT(1), ON_PORT(2), ON_PORT(3), ON_PORT(4),
};

int kind_find(const char *name, size_t length)
{
	for (int kind = 0; kind < KIND_COUNT; kind++)
		if (strlen(kind_rows[kind].name) == length &&
		    !memcmp(kind_rows[kind].name, name, length))
			return kind;
	return -1;
}

int kind_amount_parse(enum kind kind, const char *text, size_t length, uint64_t *ret_amount)
{
	return size_parse(text, length, 1, kind_rows[kind].unit == UNIT_BYTES, ret_amount);
}

uint64_t kinds_guarded(void)
{
	uint64_t guarded = 0;

	for (int kind = 0; kind < KIND_COUNT; kind++)
		guarded |= (uint64_t)kind_rows[kind].guarded << kind;
	return guarded;
}

uint64_t kinds_signature(void)
{
	uint64_t hash = 14695981039346656037u; /* FNV-1a, over names with their final NUL */

	for (int kind = 0; kind < KINDS_COUNTED; kind++) {
		const char *at = kind_rows[kind].name;

		do {
			hash = (hash ^ (unsigned char)*at) * 1099511628211u;
		} while (*at++);
	}
	return hash;
}
