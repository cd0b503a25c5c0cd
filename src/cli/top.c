/* SPDX-License-Identifier: MIT */
/* top: who uses what at this moment, again and again on a terminal, otherwise once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/collector.h"
#include "cli/top_model.h"
#include "cli/top_screen.h"
#include "cli/users.h"
#include "output/form.h"
#include "view/owner.h"
#include "view/status.h"

enum {
	TOP_PLAIN_COLUMNS = 120, /* of a text that is not for a terminal */
	TOP_DELAY_MS = 1000,
	/* The collector gets at most this part of the time to answer us. */
	TOP_PATIENCE = 20,
};

/* ---- asking */

/* What the level shows. */
static int processes_read(const char *path, const struct top *top, struct top_reading *reading,
			  char problem[PROBLEM_SIZE])
{
	struct proto_choose choose = { .flags = CHOOSE_PROCESSES };
	int result;

	if (top->level == TOP_TENANTS)
		return 0;
	snprintf(choose.tenant, sizeof(choose.tenant), "%s", top->tenant);
	choose.pid = top->level == TOP_DETAILS ? top->pid : 0;
	result = proto_rows(path, MESSAGE_GET_PROC_STATS, &choose, top_reading_take_row, reading, 0,
			    problem);
	if (result >= 0 && choose.pid)
		result = proto_rows(path, MESSAGE_GET_DETAILS, &choose, top_reading_take_details,
				    reading, 0, problem);
	return result;
}

/* 0, or -errno with a sentence. */
static int reading_ask(const char *path, const struct top *top, struct top_reading *ret_reading,
		       char problem[PROBLEM_SIZE])
{
	const struct proto_choose owners = { .flags = CHOOSE_HOST | CHOOSE_TENANTS };
	int result;

	top_reading_begin(ret_reading);
	result = proto_call(path, MESSAGE_STATUS, NULL, &ret_reading->status, NULL, 0, 0, problem);
	if (result >= 0)
		result = proto_rows(path, MESSAGE_GET_STATS, &owners, top_reading_take_row,
				    ret_reading, 0, problem);
	if (result >= 0)
		result = processes_read(path, top, ret_reading, problem);
	if (result < 0) {
		top_reading_free(ret_reading);
		return result;
	}
	status_read(&ret_reading->status);
	ret_reading->time_ns = clock_now_ns();
	return 0;
}

/* ---- once */

static void canvas_print(const struct canvas *canvas)
{
	size_t size = (size_t)canvas->columns * MB_CUR_MAX + 1;
	char *text = memory_need(malloc(size));

	for (unsigned line = 0; line < canvas->lines; line++) {
		canvas_line_text(canvas, line, text, size);
		puts(text);
	}
	free(text);
}

static void level_print(struct top *top, unsigned columns, enum top_level level)
{
	enum { ABOVE = 5 }; /* lines above the rows */
	struct canvas canvas = { .lines = 0 };

	top->level = level;
	top_arrange(top);
	canvas_clear(&canvas, (unsigned)top->lines.count + ABOVE, columns);
	top_draw(top, &canvas);
	canvas_print(&canvas);
	canvas_free(&canvas);
}

static json_t *per_second_json(const struct top *top, const struct proto_row *row)
{
	const struct proto_row *before = top_row_before(top, row);
	json_t *rates = memory_need(json_object()), *kinds = memory_need(json_object());
	double refused = 0;

	for (int kind = 0; before && kind < KIND_COUNT; kind++) {
		refused += top_rate(top, row->refused[kind], before->refused[kind]);
		json_object_set_new(kinds, kind_rows[kind].name,
				    json_real(((double)row->used[kind] - (double)before->used[kind]) /
					      top_seconds(top)));
	}
	json_object_set_new(rates, "refused", before ? json_real(refused) : json_null());
	json_object_set_new(rates, "growth", kinds);
	return rates;
}

static json_t *owners_json(const struct top *top, const struct list *rows,
			   const struct column *columns)
{
	json_t *array = memory_need(json_array());
	struct users users;

	users_begin(&users);
	for (size_t i = 0; i < rows->count; i++) {
		const struct proto_row *row = list_at(rows, i);
		struct owner owner;
		json_t *record;

		owner_read(&owner, row);
		if (row->scope == ROW_PROCESS)
			users_name(&users, row->uid, owner.user);
		record = table_json_record(columns, &owner);
		json_object_set_new(record, "per_second", per_second_json(top, row));
		json_array_append_new(array, record);
	}
	users_end(&users);
	return array;
}

static int document_print(const struct cli *cli, const struct top *top, const char *path)
{
	struct collector_view collector = { .status = top->now.status };
	struct page page;

	snprintf(collector.socket, sizeof(collector.socket), "%s", path);
	cli_page_begin(&page, cli);
	page_json(&page, "collector", table_json_record(collector_columns, &collector));
	page_json(&page, "interval_seconds", memory_need(json_real(top_seconds(top))));
	page_json(&page, "tenants", owners_json(top, &top->now.tenants, tenant_columns));
	page_json(&page, "processes", owners_json(top, &top->now.processes, process_columns));
	return page_end(&page);
}

/* Two readings, for what happens in between. */
static int top_once(const struct cli *cli, struct top *top, const char *path, int delay_ms)
{
	const struct timespec wait = { delay_ms / 1000, delay_ms % 1000 * 1000000l };
	unsigned columns = cli->screen.width ? cli->screen.width : TOP_PLAIN_COLUMNS;
	char problem[PROBLEM_SIZE];
	struct top_reading reading;
	int result = 0;

	top->level = TOP_PROCESSES;
	top->plain = true;
	for (int i = 0; !result && i < 2; i++) {
		if (i)
			nanosleep(&wait, NULL);
		result = reading_ask(path, top, &reading, problem);
		if (!result)
			top_take(top, &reading);
	}
	if (result)
		return collector_fail(cli, path, result, problem);
	if (cli->options.json.count)
		return document_print(cli, top, path);
	level_print(top, columns, TOP_TENANTS);
	if (top->now.processes.count) {
		putchar('\n');
		level_print(top, columns, TOP_PROCESSES);
	}
	return CLI_OK;
}

/* ---- again and again */

static void clock_write(struct top *top)
{
	time_t now = time(NULL);
	struct tm parts;

	if (localtime_r(&now, &parts))
		strftime(top->clock, sizeof(top->clock), "%H:%M:%S", &parts);
}

/* When to read again: an answer that takes long is asked for less often. */
static uint64_t next_reading_ns(uint64_t begun, int delay_ms)
{
	uint64_t now = clock_now_ns(), delay = (uint64_t)delay_ms * 1000000u;
	uint64_t rest = (now - begun) * TOP_PATIENCE;

	return now + (rest > delay ? rest : delay);
}

static void top_follow(struct top *top, const char *path, int delay_ms)
{
	struct canvas canvas = { .lines = 0 };
	char problem[PROBLEM_SIZE];
	struct top_reading reading;
	uint64_t next = 0;
	unsigned lines, columns;

	while (!top->ended) {
		uint64_t now = clock_now_ns();
		enum top_level level = top->level;
		int key;

		if (now >= next && !(top->paused && top->now.time_ns)) {
			if (reading_ask(path, top, &reading, problem) < 0)
				top_fail(top, problem);
			else
				top_take(top, &reading);
			next = next_reading_ns(now, delay_ms);
		}
		clock_write(top);
		screen_size(&lines, &columns);
		canvas_clear(&canvas, lines, columns);
		top_draw(top, &canvas);
		screen_show(&canvas);
		now = clock_now_ns();
		key = screen_wait(next > now ? (int)((next - now) / 1000000u) + 1 : top->paused ? delay_ms : 0);
		if (key == SCREEN_ENDED)
			top->ended = true;
		else if (key != SCREEN_NOTHING)
			top_press(top, (unsigned)key);
		/* Another level shows what was not asked for yet. */
		if (top->level != level)
			next = 0;
	}
	canvas_free(&canvas);
}

/* On a terminal a collector that does not run is waited for, and one that will never answer us is not:
 * another user's, or one of another version. An exit status. */
static int collector_expect(const struct cli *cli, const char *path)
{
	struct proto_status status;
	char problem[PROBLEM_SIZE];
	int result = proto_call(path, MESSAGE_STATUS, NULL, &status, NULL, 0, 0, problem);

	return result < 0 && !collector_may_come(result) ?
		       collector_fail(cli, path, result, problem) :
		       CLI_OK;
}

/* The option -d as milliseconds; an exit status. */
static int delay_read(const struct cli *cli, int *ret_ms)
{
	const char *text = cli_value(&cli->options.delay);
	char *end;
	double seconds;

	*ret_ms = TOP_DELAY_MS;
	if (!text)
		return CLI_OK;
	seconds = strtod(text, &end);
	if (end == text || *end || !(seconds >= 0.1 && seconds <= 3600))
		return cli_fail(cli, CLI_USAGE,
				"--delay: invalid value '%s': expected 0.1 to 3600 seconds", text);
	*ret_ms = (int)(seconds * 1000);
	return CLI_OK;
}

int command_top(const struct cli *cli)
{
	bool once = cli->options.once.count || cli->options.json.count || !isatty(STDOUT_FILENO) ||
		    !isatty(STDIN_FILENO);
	char path[PROTO_PATH], problem[PROBLEM_SIZE];
	struct top top;
	int delay_ms, result = cli_operands(cli, 0, 0);

	if (!result)
		result = delay_read(cli, &delay_ms);
	if (!result)
		result = collector_path(cli, path);
	if (!result && !once)
		result = collector_expect(cli, path);
	if (result)
		return result;
	if (!once && screen_open(cli->screen.colour, problem) < 0) {
		fprintf(stderr, "%s: %s\n", CLI_NAME, problem);
		once = true;
	}
	top_begin(&top);
	if (once) {
		result = top_once(cli, &top, path, delay_ms);
	} else {
		top_follow(&top, path, delay_ms);
		screen_close();
	}
	top_free(&top);
	screen_raise();
	return result;
}
