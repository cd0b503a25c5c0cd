/* SPDX-License-Identifier: MIT */
/* Moments; see span.h. */
#include "history/span.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "terms/size.h"

/* What may follow a time: a fraction of a second, which is cut off, and the distance from UTC. */
static bool zone_parse(const char *text, int64_t *ret_ahead)
{
	struct tm zone = { 0 };

	if (*text == '.' && text[1] >= '0' && text[1] <= '9')
		text += 1 + strspn(text + 1, "0123456789");
	*ret_ahead = 0;
	if (!*text || !strcmp(text, "Z"))
		return true;
	text = strptime(text, "%z", &zone);
	*ret_ahead = zone.tm_gmtoff;
	return text && !*text;
}

static bool date_parse(const char *text, int64_t *ret_moment)
{
	static const char *const forms[] = { "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S",
					     "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M", "%Y-%m-%d" };

	for (unsigned i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		struct tm date = { 0 };
		const char *end = strptime(text, forms[i], &date);
		bool has_time = strchr(forms[i], 'H') != NULL;
		int64_t ahead = 0;

		if (!end || (has_time ? !zone_parse(end, &ahead) : *end))
			continue;
		*ret_moment = timegm(&date) - ahead;
		return true;
	}
	return false;
}

int span_parse(const char *text, int64_t now, int64_t *ret_moment)
{
	static const struct {
		char unit;
		int64_t seconds;
	} units[] = { { 's', 1 }, { 'm', 60 }, { 'h', 3600 }, { 'd', 86400 } };
	size_t length = strlen(text);
	uint64_t number;

	if (!length)
		return -EINVAL;
	if (!size_parse(text, length, 1, false, &number)) {
		*ret_moment = number > INT32_MAX * 4ll ? INT32_MAX * 4ll : (int64_t)number;
		return 0;
	}
	for (unsigned i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (text[length - 1] != units[i].unit ||
		    size_parse(text, length - 1, 1, false, &number) < 0 || number > 1000000)
			continue;
		*ret_moment = now - (int64_t)number * units[i].seconds;
		return 0;
	}
	return date_parse(text, ret_moment) ? 0 : -EINVAL;
}
