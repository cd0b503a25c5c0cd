/* SPDX-License-Identifier: MIT */
/* Rules that count for a time; see when.h. */
#include "policy/when.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/translation.h"
#include "policy/keys.h"
#include "policy/pattern.h"
#include "policy/problem.h"
#include "policy/reader.h"

#define BLANKS " \t"
#define WHEN_EXPECTED "CONDITION : SECTION.KEY = VALUE"

enum { DAYS = 7, DAY_MINUTES = 24 * 60, EVERY_DAY = (1 << DAYS) - 1, PERCENT_MOST = 100 };

static const char *const day_names[DAYS] = { "sun", "mon", "tue", "wed", "thu", "fri", "sat" };

static int when_fail(const struct policy_source *source, const char *what, const char *problem,
		     const char *expected)
{
	return policy_fail(source, -EINVAL, "when: " POLICY_WORD ": %s: expected %s", what, _(problem),
			   _(expected));
}

/* ---- windows of time: [DAY[-DAY][,...]] [HH:MM-HH:MM] */

static int day_parse(const char **at)
{
	for (int day = 0; day < DAYS; day++)
		if (!strncasecmp(*at, day_names[day], 3)) {
			*at += 3;
			return day;
		}
	return -1;
}

/* "mon-fri,sun" up to a blank or the end. */
static bool days_parse(const char **at, unsigned *ret_days)
{
	unsigned days = 0;

	for (;;) {
		int first = day_parse(at), last = first;

		if (first >= 0 && **at == '-') {
			++*at;
			last = day_parse(at);
		}
		if (first < 0 || last < 0)
			return false;
		for (int i = 0; i <= (last - first + DAYS) % DAYS; i++)
			days |= 1u << (first + i) % DAYS;
		if (**at != ',')
			break;
		++*at;
	}
	*ret_days = days;
	return !**at || strchr(BLANKS, **at);
}

/* "HH:MM", from 00:00 to 24:00. */
static bool minutes_parse(const char **at, unsigned *ret_minutes)
{
	const char *text = *at;

	for (int i = 0; i < 5; i++)
		if (i == 2 ? text[i] != ':' : !isdigit((unsigned char)text[i]))
			return false;
	*ret_minutes = (unsigned)((text[0] - '0') * 10 + text[1] - '0') * 60 +
		       (unsigned)((text[3] - '0') * 10 + text[4] - '0');
	*at += 5;
	return text[3] < '6' && *ret_minutes <= DAY_MINUTES;
}

static bool window_parse(const char *text, struct policy_window *ret_window)
{
	struct policy_window window = { .days = EVERY_DAY, .end = DAY_MINUTES };

	if (isalpha((unsigned char)*text) && !days_parse(&text, &window.days))
		return false;
	text += strspn(text, BLANKS);
	if (*text && (!minutes_parse(&text, &window.begin) || *text++ != '-' ||
		      !minutes_parse(&text, &window.end)))
		return false;
	*ret_window = window;
	return !*text;
}

/* Whether a condition can only be meant as a window. */
static bool text_is_window(const char *text)
{
	return isdigit((unsigned char)*text) || day_parse(&text) >= 0;
}

bool policy_when_window_holds(const struct policy_window *window, const struct tm *now)
{
	unsigned minute = (unsigned)(now->tm_hour * 60 + now->tm_min);
	unsigned today = (unsigned)now->tm_wday, yesterday = (today + DAYS - 1) % DAYS;
	bool begins_today = window->days >> today & 1;

	if (window->begin < window->end)
		return begins_today && window->begin <= minute && minute < window->end;
	return (begins_today && minute >= window->begin) ||
	       (window->days >> yesterday & 1 && minute < window->end);
}

/* ---- usage: host.[device.NAME.]KIND or tenant.NAME.[device.NAME.]KIND, > or <, mark */

/* The section that a text begins with, and where the key behind it begins; NULL if there is none.
 * Names of tenants may have dots: the first one behind which `is_key` takes the rest ends it. */
typedef bool key_test(const struct policy_section *section, const char *key);

static const char *section_cut(const char *text, key_test *is_key, char tenant[NAME_SIZE],
			       const struct policy_section **ret_section)
{
	tenant[0] = '\0';
	for (int i = 0; i < POLICY_SECTIONS; i++) {
		const struct policy_section *section = &policy_sections[i];
		size_t length = strlen(section->name);
		const char *key = text + length + 1, *dot = key;

		if (!section->by_command || strncmp(section->name, text, length) ||
		    text[length] != '.')
			continue;
		*ret_section = section;
		if (section->bit != POLICY_IN_TENANT)
			return is_key(section, key) ? key : NULL;
		while ((dot = strchr(dot, '.')) && dot - key < NAME_SIZE) {
			dot++;
			if (!is_key(section, dot))
				continue;
			snprintf(tenant, NAME_SIZE, "%.*s", (int)(dot - 1 - key), key);
			return policy_name_is_valid(tenant) || !policy_pattern_mistake(tenant) ?
				       dot :
				       NULL;
		}
		return NULL;
	}
	return NULL;
}

static bool key_is_setting(const struct policy_section *section, const char *text)
{
	struct policy_place place;

	return policy_key_find(section, text, &place);
}

/* [device.NAME.]KIND: the keys of limits of the owner as a whole, whose name is empty. */
static bool key_is_usage(const struct policy_section *section, const char *text)
{
	struct policy_place place;
	const struct policy_key *key = policy_key_find(section, text, &place);

	return key && key->type == &policy_type_amounts && !key->name[0];
}

static int mark_parse(const struct policy_source *source, const char *text,
		      struct policy_usage_mark *mark)
{
	size_t length = strlen(text);
	bool bytes = kind_rows[mark->kind].unit == UNIT_BYTES;

	mark->percent = length > 1 && text[length - 1] == '%';
	if (mark->percent)
		length--;
	if (size_parse(text, length, 1, bytes && !mark->percent, &mark->mark) < 0 ||
	    mark->mark == UNLIMITED || (mark->percent && mark->mark > PERCENT_MOST))
		return when_fail(source, text, "invalid mark",
				 /* xgettext:no-c-format */
				 bytes ? N_("0% to 100%, or a size in bytes, also with K, M, G or T") :
					 /* xgettext:no-c-format */
					 N_("0% to 100%, or a count"));
	return 0;
}

static int usage_parse(const struct policy_source *source, char *text,
		       struct policy_usage_mark *ret_mark)
{
	char *sign = text + strcspn(text, "<>"), *mark = sign + 1, *end = sign;
	const struct policy_section *section;
	struct policy_usage_mark parsed = { .above = *sign == '>' };
	struct policy_place place;
	const char *key;

	if (!*sign)
		return when_fail(source, text, "invalid condition",
				 "host.KIND > MARK, tenant.NAME.KIND > MARK (or <), or a window such "
				 "as mon-fri 08:00-20:00");
	while (end > text && strchr(BLANKS, end[-1]))
		end--;
	*end = '\0';
	mark += strspn(mark, BLANKS);
	key = section_cut(text, key_is_usage, parsed.tenant, &section);
	if (!key || section->bit == POLICY_IN_DEFAULT)
		return when_fail(source, text, "unknown usage",
				 "host.KIND, host.device.NAME.KIND, tenant.NAME.KIND or "
				 "tenant.NAME.device.NAME.KIND");
	policy_key_find(section, key, &place);
	memcpy(parsed.device, place.device, sizeof(parsed.device));
	parsed.kind = place.kind;
	*ret_mark = parsed;
	return mark_parse(source, mark, ret_mark);
}

bool policy_when_usage_holds(const struct policy_usage_mark *mark, uint64_t used, uint64_t limit,
			     bool held)
{
	/* In hundredths, so that nothing is rounded. */
	unsigned __int128 value = (unsigned __int128)used * 100;
	unsigned __int128 at = (unsigned __int128)mark->mark * (mark->percent ? limit : 100);
	unsigned __int128 margin = held ? (mark->percent ?
						   (unsigned __int128)limit * POLICY_WHEN_MARGIN :
						   at / 100 * POLICY_WHEN_MARGIN) :
					  0;

	if (mark->percent && limit == UNLIMITED)
		return false;
	if (mark->above)
		return value > (at > margin ? at - margin : 0);
	return value < at + margin;
}

/* ---- the change */

/* "SECTION.KEY = VALUE". */
static int change_parse(const struct policy_source *source, char *text, struct policy_when *when)
{
	char *value = strchr(text, '='), *end = value, tenant[NAME_SIZE];
	const struct policy_section *section;
	union policy_value parsed = { .text = "" };
	struct policy_place place;
	const struct policy_key *key;
	const char *name;
	int result;

	if (!value)
		return when_fail(source, text, "invalid change", "SECTION.KEY = VALUE");
	while (end > text && strchr(BLANKS, end[-1]))
		end--;
	*end = '\0';
	value++;
	value += strspn(value, BLANKS);
	name = section_cut(text, key_is_setting, tenant, &section);
	key = name ? policy_key_find(section, name, &place) : NULL;
	if (!key)
		return when_fail(source, text, "unknown key",
				 "host.KEY, default.KEY or tenant.NAME.KEY with a key of that "
				 "section");
	result = key->type->parse(source, key, &place, value, &parsed);
	if (result < 0)
		return result;
	snprintf(when->section, sizeof(when->section), "%s%s%s", section->name,
		 tenant[0] ? " " : "", tenant);
	snprintf(when->change, sizeof(when->change), "%s = %s", name, value);
	return 0;
}

int policy_when_parse(const struct policy_source *source, const char *text,
		      struct policy_when *ret_when)
{
	struct policy_when when = { .next = NULL };
	char copy[POLICY_WHEN_TEXT], *change, *condition = copy, *end;
	int result;

	if (strlen(text) >= sizeof(copy))
		return policy_fail(source, -EINVAL, "when: value too long: expected at most %zu bytes",
				   sizeof(copy) - 1);
	strcpy(copy, text);
	strcpy(when.text, text);
	if (source->file)
		snprintf(when.source, sizeof(when.source), "%.*s:%u", POLICY_PATH - 16, source->file,
			 source->line);
	else
		strcpy(when.source, "command");
	/* Times have colons in them, but no blanks around. */
	change = strstr(condition, " : ");
	if (!change)
		return when_fail(source, text, "invalid rule", WHEN_EXPECTED);
	for (end = change; end > condition && strchr(BLANKS, end[-1]);)
		end--;
	*end = '\0';
	change += 3;
	change += strspn(change, BLANKS);
	when.by_time = text_is_window(condition);
	if (!when.by_time)
		result = usage_parse(source, condition, &when.usage);
	else if (window_parse(condition, &when.window))
		result = 0;
	else
		result = when_fail(source, condition, "invalid window of time",
				   "days and times such as mon-fri 08:00-20:00");
	if (result == 0)
		result = change_parse(source, change, &when);
	if (result == 0)
		*ret_when = when;
	return result;
}

int policy_when_apply(struct policy *policy, const struct policy_when *when,
		      char problem[PROBLEM_SIZE])
{
	char origin[POLICY_ORIGIN];

	snprintf(origin, sizeof(origin), "when %s", when->source);
	return policy_change_from(policy, when->section, when->change, origin, problem);
}

/* ---- the rules of a policy */

int policy_when_add(struct policy *policy, const struct policy_when *when)
{
	struct policy_when **end = &policy->whens, *added;
	unsigned count = 0;

	for (; *end; end = &(*end)->next, count++)
		if (!strcmp((*end)->text, when->text))
			return 0;
	if (count == POLICY_WHENS)
		return -E2BIG;
	added = malloc(sizeof(*added));
	if (!added)
		return -ENOMEM;
	*added = *when;
	added->next = NULL;
	*end = added;
	return 0;
}

void policy_whens_drop(struct policy *policy)
{
	while (policy->whens) {
		struct policy_when *when = policy->whens;

		policy->whens = when->next;
		free(when);
	}
}
