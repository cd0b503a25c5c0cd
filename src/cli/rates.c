/* SPDX-License-Identifier: MIT */
/* The rates of control verbs; see rates.h. */
#include "cli/rates.h"

#include <inttypes.h>
#include <stdlib.h>

#include "cli/collector.h"
#include "output/form.h"
#include "terms/rates.h"

struct rate_line {
	struct proto_rate given;
	const char *class, *owner, *action;
	char rate[RATE_TEXT], delay[RATE_TEXT];
};

/* Thousandths. */
static void leased_show(const struct form *form, const void *field, struct cell *ret_cell)
{
	uint64_t leased = *(const uint64_t *)field;

	cell_print(ret_cell, NULL, "%" PRIu64 ".%" PRIu64 "/s", leased / 1000, leased / 100 % 10);
}

static json_t *leased_json(const struct form *form, const void *field)
{
	return memory_need(json_real((double)*(const uint64_t *)field / 1000));
}

static const struct form form_leased = { .show = leased_show, .json = leased_json };

static void delayed_show(const struct form *form, const void *field, struct cell *ret_cell)
{
	cell_print(ret_cell, NULL, "%" PRIu64 "ms", *(const uint64_t *)field / 1000000);
}

static json_t *delayed_json(const struct form *form, const void *field)
{
	return memory_need(json_integer((json_int_t)*(const uint64_t *)field));
}

static const struct form form_delayed = { .show = delayed_show, .json = delayed_json };

static const struct column rate_columns[] = {
	COLUMN(struct rate_line, given.tenant, "tenant", "tenant", form_text),
	COLUMN(struct rate_line, given.pid, "pid", "pid", form_pid),
	COLUMN(struct rate_line, class, "class", "class", form_string),
	COLUMN(struct rate_line, owner, "of", "rate of the", form_string),
	COLUMN(struct rate_line, rate, "rate", "rate", form_text),
	COLUMN(struct rate_line, given.per_second, "per_second", NULL, form_number),
	COLUMN(struct rate_line, given.burst, "burst", NULL, form_number),
	COLUMN(struct rate_line, given.leased, "leased", "leased", form_leased),
	COLUMN(struct rate_line, action, "action", "action", form_string),
	COLUMN(struct rate_line, delay, "max_delay", "max delay", form_text),
	COLUMN(struct rate_line, given.throttled, "throttled", "throttled", form_count),
	COLUMN(struct rate_line, given.throttled_ns, "throttled_ns", "for", form_delayed),
	COLUMN(struct rate_line, given.refused, "refused", "refused", form_count),
	COLUMN(struct rate_line, given.tolerated, "tolerated", "tolerated", form_count),
	COLUMNS_END,
};

static int rate_take(const void *row, void *rates)
{
	const struct proto_rate *given = row;
	struct rate_line *line;

	if (given->class >= RATE_CLASSES || given->owner >= RATE_OWNERS ||
	    given->action >= RATE_ACTIONS)
		return 0;
	line = list_add(rates);
	*line = (struct rate_line){ .given = *given,
				    .class = rate_rows[given->class].name,
				    .owner = rate_owner_names[given->owner],
				    .action = rate_action_names[given->action] };
	proto_text(line->given.tenant);
	rate_print(&(const struct rate){ given->per_second, given->burst }, line->rate);
	rate_delay_print(given->max_delay_ns, line->delay);
	return 0;
}

int rates_show(const struct cli *cli, struct page *page, const struct proto_choose *choose)
{
	struct list rates = { .size = sizeof(struct rate_line) };
	int result = collector_rows(cli, MESSAGE_GET_RATES, choose, rate_take, &rates);

	if (!result && (rates.count || page->document))
		page_table(page, "rates", rate_columns, &rates);
	free(rates.row);
	return result;
}
