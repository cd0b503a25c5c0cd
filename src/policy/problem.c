/* SPDX-License-Identifier: MIT */
/* The one line that says what is wrong with a policy; see problem.h. */
#include "policy/problem.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/translation.h"
#include "policy/policy.h"

bool policy_is_control(char byte)
{
	return (unsigned char)byte < ' ' || byte == 0x7f;
}

/* "FILE:LINE: ", and how long that is. */
static size_t source_print(const struct policy_source *source, char *text, size_t size)
{
	if (!source->file)
		return 0;
	if (!source->line)
		return (size_t)snprintf(text, size, "%.*s: ", POLICY_PATH - 1, source->file);
	return (size_t)snprintf(text, size, "%.*s:%u: ", POLICY_PATH - 1, source->file,
				source->line);
}

size_t policy_problem_prefix(const struct policy_source *source)
{
	return source_print(source, NULL, 0);
}

const char *policy_amount_print(unsigned kind, uint64_t amount, char ret_text[POLICY_AMOUNT])
{
	static const char *const units[] = { "", "K", "M", "G", "T" };
	unsigned unit = 0;

	if (kind_rows[kind].unit == UNIT_BYTES)
		while (unit < 4 && amount && amount % 1024 == 0) {
			amount /= 1024;
			unit++;
		}
	snprintf(ret_text, POLICY_AMOUNT, "%" PRIu64 "%s", amount, units[unit]);
	return ret_text;
}

int policy_fail(const struct policy_source *source, int result, const char *format, ...)
{
	char *at = source->problem, *end = at + PROBLEM_SIZE;
	va_list arguments;

	at += source_print(source, at, PROBLEM_SIZE);
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
