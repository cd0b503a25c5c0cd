/* SPDX-License-Identifier: MIT */
/*
 * Numbers as people write them in settings: counts, and sizes with binary
 * suffixes. Knows nothing of what is being counted.
 */
#ifndef TERMS_SIZE_H
#define TERMS_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "terms/terms.h"

/*
 * Reads all of text[0..length) as a decimal number; 0, or -EINVAL / -ERANGE
 * with *ret_value untouched. A bare number counts `unit`s; with suffixes
 * allowed, K M G T (also Ki, KB, KiB, either case) give powers of 1024 bytes
 * and override the unit. Before a suffix there may be a fraction, as in 1.5G, if the result is
 * a whole number of bytes.
 */
int size_parse(const char *text, size_t length, uint64_t unit, bool suffixes, uint64_t *ret_value);

#endif
