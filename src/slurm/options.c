/* SPDX-License-Identifier: MIT */
/* Reading of options and writing of limits; see options.h. */
#include "slurm/options.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "terms/terms.h"

enum { ITEM_SIZE = 96 };

void job_limits_init(struct job_limits *limits)
{
	*limits = (struct job_limits){ .pace.per_second = 0 };
	for (unsigned kind = 0; kind < KIND_COUNT; kind++)
		limits->amount[kind] = UNLIMITED;
}

/* ---- reading */

static int option_fail(const struct job_option *option, const char *text, const char *expected,
		       char problem[PROBLEM_SIZE])
{
	return problem_set(-EINVAL, problem, "--%s: invalid value '%.100s': expected %s",
			   option->name, text, expected);
}

static int option_amount_take(const struct job_option *option, enum kind kind, const char *text,
		       struct job_limits *limits, char problem[PROBLEM_SIZE])
{
	uint64_t amount;

	if (kind_amount_parse(kind, text, strlen(text), &amount) < 0)
		return option_fail(option, text,
				   kind_rows[kind].unit == UNIT_BYTES ? "a size such as 512M or 4G" :
							   "a count such as 64",
				   problem);
	if (amount < limits->amount[kind])
		limits->amount[kind] = amount;
	return 0;
}

static int option_amount(const struct job_option *option, const char *text,
			 struct job_limits *limits, char problem[PROBLEM_SIZE])
{
	return option_amount_take(option, option->kind, text, limits, problem);
}

static int option_pace(const struct job_option *option, const char *text, struct job_limits *limits,
		       char problem[PROBLEM_SIZE])
{
	struct pace_rate pace;

	if (pace_rate_parse(text, strlen(text), true, &pace) < 0 || !pace_rate_is_limit(&pace))
		return option_fail(option, text, "a size with /s behind it, such as 100MB/s", problem);
	limits->pace = pace_rate_lower(pace, limits->pace, PACE_BYTES_LEAST);
	return 0;
}

/* The next NAME=VALUE of a list with commas: 1, 0 at the end, -EINVAL. */
static int item_next(const char **list, char ret_item[ITEM_SIZE], char **ret_value)
{
	size_t length = strcspn(*list, ",");

	if (!**list)
		return 0;
	if (length >= ITEM_SIZE)
		return -EINVAL;
	memcpy(ret_item, *list, length);
	ret_item[length] = '\0';
	*list += length + ((*list)[length] == ',');
	*ret_value = strchr(ret_item, '=');
	if (!*ret_value)
		return -EINVAL;
	*(*ret_value)++ = '\0';
	return 1;
}

static int option_limits(const struct job_option *option, const char *text,
			 struct job_limits *limits, char problem[PROBLEM_SIZE])
{
	char item[ITEM_SIZE], *value;
	const char *rest = text;
	int result, kind;

	while ((result = item_next(&rest, item, &value)) > 0) {
		kind = kind_find(item, strlen(item));
		if (kind < 0 || kind >= KIND_COUNT)
			return problem_set(-EINVAL, problem,
					   "--%s: unknown kind '%.60s': expected a kind of resource such "
					   "as qp, cq, srq, mr or ah",
					   option->name, item);
		result = option_amount_take(option, (enum kind)kind, value, limits, problem);
		if (result < 0)
			return result;
	}
	if (result < 0 || !*text)
		return option_fail(option, text, "KIND=AMOUNT with commas between, such as srq=4,ah=100",
				   problem);
	return 0;
}

static int option_rates(const struct job_option *option, const char *text, struct job_limits *limits,
			char problem[PROBLEM_SIZE])
{
	static const char expected[] = "CLASS=CALLS/s with commas between, such as reg_mr=100/s";
	char item[ITEM_SIZE], *value;
	const char *rest = text;
	int result;

	while ((result = item_next(&rest, item, &value)) > 0) {
		enum rate_class class = rate_class_find(item, strlen(item));
		struct rate rate;

		if (class == RATE_NO_CLASS)
			return problem_set(-EINVAL, problem,
					   "--%s: unknown class '%.60s': expected a class of verbs such as "
					   "create_qp, reg_mr, modify_qp or connect",
					   option->name, item);
		if (rate_parse(value, &rate) < 0 || !rate.per_second)
			return option_fail(option, value, expected, problem);
		limits->rate[class] = rate_lower(rate, limits->rate[class]);
	}
	return result < 0 || !*text ? option_fail(option, text, expected, problem) : 0;
}

/* ---- the table */

const struct job_option job_options[] = {
#define OPTION(name, argument, read, kind, help) { name, argument, help, read, kind },
#include "slurm/options.def"
#undef OPTION
};
const unsigned job_options_count = sizeof(job_options) / sizeof(job_options[0]);

int job_option_take(const struct job_option *option, const char *text, struct job_limits *limits,
		    char problem[PROBLEM_SIZE])
{
	struct job_limits taken = *limits;
	int result = option->read(option, text ? text : "", &taken, problem);

	if (result == 0)
		*limits = taken;
	/* The text stands in it, and it stands in the log of slurmd, as one line. */
	for (char *at = problem; result < 0 && *at; at++)
		if (iscntrl((unsigned char)*at))
			*at = '?';
	return result;
}

bool job_limits_are_set(const struct job_limits *limits)
{
	char text[2048];

	return job_limits_print(limits, text, sizeof(text)) < 0 || text[0];
}

/* ---- writing */

int job_limits_print(const struct job_limits *limits, char *ret_text, size_t size)
{
	FILE *file = fmemopen(ret_text, size, "w");
	bool fits;

	if (!file)
		return -errno;
	ret_text[0] = '\0';
	for (unsigned kind = 0; kind < KIND_COUNT; kind++)
		if (limits->amount[kind] != UNLIMITED)
			fprintf(file, "%s = %" PRIu64 "\n", kind_rows[kind].name,
				limits->amount[kind]);
	for (unsigned class = 0; class < RATE_CLASSES; class++) {
		char text[RATE_TEXT];

		if (!limits->rate[class].per_second)
			continue;
		rate_print(&limits->rate[class], text);
		fprintf(file, "rate.%s = %s\n", rate_rows[class].name, text);
	}
	if (pace_rate_is_limit(&limits->pace)) {
		char text[PACE_RATE_TEXT];

		pace_rate_print(&limits->pace, text);
		fprintf(file, "pace.bytes = %s\n", text);
	}
	fits = ftell(file) < (long)size - 1;
	fits = fclose(file) == 0 && fits;
	return fits ? 0 : -E2BIG;
}
