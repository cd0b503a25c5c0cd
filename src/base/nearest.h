/* SPDX-License-Identifier: MIT */
/* The word that a misspelt one was probably meant to be. */
#ifndef BASE_NEAREST_H
#define BASE_NEAREST_H

#include <stddef.h>

/* The best of the words offered so far; begin with { .word = the misspelt one }. */
struct nearest {
	const char *word;
	const char *best; /* NULL: none is near */
	size_t length;	  /* of best, which may be the beginning of a longer text */
	unsigned distance;
};

/* Offers the first `length` characters of a text. */
void nearest_offer(struct nearest *nearest, const char *text, size_t length);

#endif
