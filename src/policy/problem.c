/* SPDX-License-Identifier: MIT */
/* The one line that says what is wrong with a policy; see problem.h. */
#include "policy/problem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/translation.h"
#include "policy/policy.h"

bool policy_is_control(char byte)
{
	return (unsigned char)byte < ' ' || byte == 0x7f;
}

int policy_fail(const struct policy_source *source, int result, const char *format, ...)
{
	char *at = source->problem, *end = at + PROBLEM_SIZE;
	va_list arguments;

	if (source->file)
		at += snprintf(at, PROBLEM_SIZE, "%.*s:", POLICY_PATH - 1, source->file);
	if (source->file && source->line)
		at += snprintf(at, (size_t)(end - at), "%u:", source->line);
	if (source->file)
		*at++ = ' ';
	va_start(arguments, format);
	vsnprintf(at, (size_t)(end - at), _(format), arguments);
	va_end(arguments);
	/* One line, whatever bytes a file's name has. */
	for (at = source->problem; *at; at++)
		if (policy_is_control(*at))
			*at = '?';
	return result;
}

int policy_fail_errno(const struct policy_source *source, int result)
{
	return policy_fail(source, result, "%s", strerror(-result));
}

void policy_list_add(char *text, size_t size, unsigned number, unsigned count, const char *word)
{
	size_t used = strlen(text);

	snprintf(text + used, size - used, "%s%s",
		 number == 0	     ? "" :
		 number + 1 == count ? _(" or ") :
				       ", ",
		 word);
}
