/* SPDX-License-Identifier: MIT */
/*
 * The sentence that says why something failed. A function that has one takes problem as its last
 * argument and returns -errno; it writes the sentence when it fails, and never before.
 */
#ifndef BASE_PROBLEM_H
#define BASE_PROBLEM_H

enum { PROBLEM_SIZE = 640 };

/* Writes the sentence, and returns the error. A sentence that is too long is cut. */
int problem_set(int error, char problem[PROBLEM_SIZE], const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
