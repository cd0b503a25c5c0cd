/* SPDX-License-Identifier: MIT */
/*
 * Where a text of a policy comes from, and what is wrong with it, as one line
 * "FILE:LINE: WHAT: problem: expected ...". Only this file writes such lines.
 */
#ifndef POLICY_PROBLEM_H
#define POLICY_PROBLEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/problem.h"

/* How much of a word a message repeats. */
#define POLICY_WORD "'%.64s'"

struct policy_source {
	const char *file; /* NULL: lines of a command */
	unsigned line;	  /* 0: the file as a whole */
	char *problem;	  /* of PROBLEM_SIZE bytes; written only on failure */
	const char *what; /* where conditions stand; NULL: in a match line */
};

/* Bytes that no line of text has. */
bool policy_is_control(char byte);

/* Writes the problem, and returns the result. */
int policy_fail(const struct policy_source *source, int result, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
int policy_fail_errno(const struct policy_source *source, int result);

/* How many bytes of the problem are "FILE:LINE: ". */
size_t policy_problem_prefix(const struct policy_source *source);

/* An amount of a kind as policies have it: sizes with a unit, if it is one without a rest. */
enum { POLICY_AMOUNT = 32 };
const char *policy_amount_print(unsigned kind, uint64_t amount, char ret_text[POLICY_AMOUNT]);

/* Adds a word to a text "a, b or c": the one with this number, of so many. */
void policy_list_add(char *text, size_t size, unsigned number, unsigned count, const char *word);

#endif
