/* SPDX-License-Identifier: MIT */
/* Parsing of counts and sizes; see size.h. */
#include "terms/size.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

static bool is_word(const char *text, size_t length, const char *word)
{
	return length == strlen(word) && !strncasecmp(text, word, length);
}

static int suffix_parse(const char *text, size_t length, uint64_t *ret_unit)
{
	static const char letters[] = "KMGT";
	uint64_t unit = 1;

	if (length == 0)
		return -EINVAL;
	for (const char *letter = letters; *letter; letter++) {
		unit *= 1024;
		if (strncasecmp(text, letter, 1))
			continue;
		if (length == 1 || is_word(text + 1, length - 1, "i") ||
		    is_word(text + 1, length - 1, "B") || is_word(text + 1, length - 1, "iB")) {
			*ret_unit = unit;
			return 0;
		}
	}
	return -EINVAL;
}

/*
 * Value and fraction in units: fraction is the digits behind the point. Exact: what is not a whole
 * number of bytes is refused, as a limit that is rounded is another limit.
 */
static int fraction_add(const char *digits, size_t count, uint64_t unit, uint64_t *value)
{
	uint64_t part = 0, scale = 1, bytes;

	while (count > 0 && digits[count - 1] == '0')
		count--;
	for (size_t i = 0; i < count; i++)
		if (__builtin_mul_overflow(scale, (uint64_t)10, &scale) ||
		    __builtin_mul_overflow(part, (uint64_t)10, &part) ||
		    __builtin_add_overflow(part, (uint64_t)(digits[i] - '0'), &part))
			return -EINVAL;
	if (__builtin_mul_overflow(part, unit, &bytes) || bytes % scale)
		return -EINVAL;
	return __builtin_add_overflow(*value, bytes / scale, value) ? -ERANGE : 0;
}

int size_parse(const char *text, size_t length, uint64_t unit, bool suffixes, uint64_t *ret_value)
{
	uint64_t value = 0;
	size_t at = 0, fraction = 0, digits = 0;
	int result;

	if (is_word(text, length, "unlimited") || is_word(text, length, "max")) {
		*ret_value = UNLIMITED;
		return 0;
	}
	for (; at < length && text[at] >= '0' && text[at] <= '9'; at++) {
		if (__builtin_mul_overflow(value, (uint64_t)10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(text[at] - '0'), &value))
			return -ERANGE;
	}
	if (at == 0)
		return -EINVAL;
	if (suffixes && at < length && text[at] == '.') {
		for (fraction = ++at; at < length && text[at] >= '0' && text[at] <= '9'; at++)
			digits++;
		/* Without a suffix nobody can tell of what it is a fraction. */
		if (digits == 0 || at == length)
			return -EINVAL;
	}
	if (at < length) {
		if (!suffixes || suffix_parse(text + at, length - at, &unit) < 0)
			return -EINVAL;
	}
	if (__builtin_mul_overflow(value, unit, &value))
		return -ERANGE;
	result = digits ? fraction_add(text + fraction, digits, unit, &value) : 0;
	if (result < 0)
		return result;
	if (value >= UNLIMITED - 1)
		return -ERANGE;
	*ret_value = value;
	return 0;
}
