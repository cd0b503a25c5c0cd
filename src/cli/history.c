/* SPDX-License-Identifier: MIT */
/* history: what tenants used, from the files that rdma_dashboard keeps. */
#include "history/history.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/translation.h"
#include "cli/past_events.h"
#include "history/span.h"
#include "output/form.h"
#include "output/page.h"
#include "view/amount.h"

enum { USUAL_SPAN_S = 3600 };

/* One step of a resource, with the unit of its numbers. */
struct history_line {
	uint64_t time_ns;
	char tenant[NAME_SIZE]; /* "": the host */
	char resource[NAME_SIZE];
	struct amount used, most, limit;
	uint64_t refused;
};

static const struct column history_columns[] = {
	COLUMN(struct history_line, time_ns, "time", "time", form_time),
	COLUMN(struct history_line, tenant, "tenant", "tenant", form_text),
	COLUMN(struct history_line, resource, "resource", "resource", form_text),
	COLUMN(struct history_line, used, "used", "used", form_amount),
	COLUMN(struct history_line, most, "most", "most", form_amount),
	COLUMN(struct history_line, limit, "limit", "limit", form_amount),
	COLUMN(struct history_line, refused, "refused", "refused", form_count),
	COLUMNS_END,
};

static int history_line_take(const char *tenant, const char *resource,
			     const struct history_point *point, void *lines)
{
	/* What is not a kind, such as processes, is counted. */
	static const struct kind_row counted = { .name = "", .unit = UNIT_COUNT };
	int found = kind_find(resource, strlen(resource));
	const struct kind_row *kind = found < 0 ? &counted : &kind_rows[found];
	struct history_line *line = list_add(lines);

	*line = (struct history_line){
		.time_ns = (uint64_t)point->time * CLOCK_SECOND_NS,
		.used = { point->used, kind },
		.most = { point->most, kind },
		.limit = { point->limit, kind },
		.refused = point->refused,
	};
	snprintf(line->tenant, sizeof(line->tenant), "%s", tenant);
	snprintf(line->resource, sizeof(line->resource), "%s", resource);
	return 0;
}

/* Names have no quotation marks or line ends in them: the policy does not let them. */
static void history_print_csv(const struct list *lines)
{
	puts("time,tenant,resource,used,most,limit,refused");
	for (size_t i = 0; i < lines->count; i++) {
		const struct history_line *line = list_at(lines, i);

		printf("%llu,\"%s\",%s,%llu,%llu,", (unsigned long long)(line->time_ns / CLOCK_SECOND_NS),
		       line->tenant, line->resource, (unsigned long long)line->used.value,
		       (unsigned long long)line->most.value);
		if (line->limit.value != UNLIMITED)
			printf("%llu", (unsigned long long)line->limit.value);
		printf(",%llu\n", (unsigned long long)line->refused);
	}
}

static int history_ask(const struct cli *cli, const struct history_query *query, int64_t now,
		       struct list *lines)
{
	struct history *history;
	char path[PATH_MAX];
	int result = past_open(cli, true, path, &history);

	if (result)
		return result;
	result = history_read(history, query, now, history_line_take, lines);
	if (result < 0)
		result = cli_fail(cli, CLI_WRONG, "%s: cannot be read: %s", path,
				  result == -ETIMEDOUT ? _("the result is too large: expected a "
								   "later --since, or one tenant") :
							 history_problem(history));
	history_close(history);
	return result;
}

int command_history(const struct cli *cli)
{
	int64_t now = (int64_t)(clock_ns(CLOCK_REALTIME) / CLOCK_SECOND_NS);
	struct history_query query = { .since = now - USUAL_SPAN_S };
	struct list lines = { .size = sizeof(struct history_line) };
	const char *since = cli_value(&cli->options.since);
	struct page page;
	int result = cli_operands(cli, 0, 1);

	if (result)
		return result;
	if (since && span_parse(since, now, &query.since) < 0)
		return cli_fail(cli, CLI_USAGE, "--since: invalid value '%s': expected " SPAN_EXPECTED,
				since);
	query.tenant = cli->count ? cli->operand[0] : NULL;
	result = history_ask(cli, &query, now, &lines);
	if (!result && query.tenant && !lines.count)
		result = cli_fail(cli, CLI_WRONG,
				  "%s: no usage of a tenant of this name is recorded in that time: "
				  "expected an earlier --since, or another name",
				  query.tenant);
	if (!result && cli->options.csv.count && !cli->options.json.count) {
		history_print_csv(&lines);
	} else if (!result) {
		cli_page_begin(&page, cli);
		page_json(&page, "step", form_json_number((uint64_t)history_step(&query, now)));
		page_table(&page, "history", history_columns, &lines);
		result = page_end(&page);
	}
	free(lines.row);
	return result;
}
