/* SPDX-License-Identifier: MIT */
/* The sentence of a failure; see problem.h. */
#include "base/problem.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/translation.h"

int problem_set(int error, char problem[PROBLEM_SIZE], const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(problem, PROBLEM_SIZE, _(format), arguments);
	va_end(arguments);
	return error;
}
