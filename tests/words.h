/* SPDX-License-Identifier: MIT */
/* The page that a driver and its children share, as the harness makes it. harness.h has the words. */
#ifndef TESTS_WORDS_H
#define TESTS_WORDS_H

#include <stdint.h>

void words_map(const char *path);

/* Behind the words of tests: whether a case was skipped, by its children, too. */
uint64_t *words_skipped(void);

#endif
