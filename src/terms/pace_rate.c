/* SPDX-License-Identifier: MIT */
/* Rates as text and as numbers; see pace_rate.h. */
#include "terms/pace_rate.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "terms/size.h"
#include "terms/terms.h"

/* Larger ones would overflow in sums with times. */
#define PACE_RATE_MOST (1ull << 50)

static size_t blanks(const char *text, size_t length)
{
	size_t count = 0;

	while (count < length && (text[count] == ' ' || text[count] == '\t'))
		count++;
	return count;
}

/* A number of at least 1. */
static int pace_rate_number_parse(const char *text, size_t length, bool bytes, uint64_t *ret_number)
{
	uint64_t number;
	int result = size_parse(text, length, 1, bytes, &number);

	if (result == 0 && number == 0)
		return -EINVAL;
	if (result == 0 && number > PACE_RATE_MOST)
		return number == UNLIMITED ? -EINVAL : -ERANGE;
	if (result == 0)
		*ret_number = number;
	return result;
}

int pace_rate_parse(const char *text, size_t length, bool bytes, struct pace_rate *ret_rate)
{
	const char *slash = memchr(text, '/', length), *end = text + length;
	struct pace_rate rate = { .burst = 0 };
	int result;

	if (length == strlen("unlimited") && !strncasecmp(text, "unlimited", length)) {
		*ret_rate = (struct pace_rate){ .per_second = UNLIMITED };
		return 0;
	}
	if (!slash || end - slash < 2 || (slash[1] != 's' && slash[1] != 'S'))
		return -EINVAL;
	result = pace_rate_number_parse(text, (size_t)(slash - text), bytes, &rate.per_second);
	if (result < 0)
		return result;
	text = slash + 2;
	length = (size_t)(end - text);
	if (length > 0) {
		size_t skip = blanks(text, length);

		if (skip == 0 || length - skip < 6 || strncasecmp(text + skip, "burst", 5))
			return -EINVAL;
		text += skip + 5;
		length -= skip + 5;
		skip = blanks(text, length);
		if (skip == 0)
			return -EINVAL;
		result = pace_rate_number_parse(text + skip, length - skip, bytes, &rate.burst);
	}
	if (result == 0)
		*ret_rate = rate;
	return result;
}

void pace_rate_print(const struct pace_rate *rate, char ret_text[PACE_RATE_TEXT])
{
	if (rate->per_second == UNLIMITED)
		snprintf(ret_text, PACE_RATE_TEXT, "unlimited");
	else if (rate->burst)
		snprintf(ret_text, PACE_RATE_TEXT, "%" PRIu64 "/s burst %" PRIu64, rate->per_second,
			 rate->burst);
	else
		snprintf(ret_text, PACE_RATE_TEXT, "%" PRIu64 "/s", rate->per_second);
}

uint64_t pace_rate_burst(const struct pace_rate *rate, uint64_t least)
{
	uint64_t chosen = rate->per_second / 20;

	if (rate->burst)
		return rate->burst;
	return chosen > least ? chosen : least;
}

struct pace_rate pace_rate_lower(struct pace_rate a, struct pace_rate b, uint64_t least)
{
	bool a_limits = pace_rate_is_limit(&a), b_limits = pace_rate_is_limit(&b);
	uint64_t burst_a = pace_rate_burst(&a, least), burst_b = pace_rate_burst(&b, least);
	struct pace_rate lower = a.per_second <= b.per_second ? a : b;

	if (!a_limits || !b_limits)
		return b_limits ? b : a;
	if (a.burst || b.burst)
		lower.burst = burst_a < burst_b ? burst_a : burst_b;
	return lower;
}
