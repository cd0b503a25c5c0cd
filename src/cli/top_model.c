/* SPDX-License-Identifier: MIT */
/* State of `top`: readings, order, filter, chosen row and keys; see top_model.h. */
#include "cli/top_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/translation.h"

/* ---- readings */

void top_reading_begin(struct top_reading *reading)
{
	*reading = (struct top_reading){
		.hosts = { .size = sizeof(struct proto_row) },
		.tenants = { .size = sizeof(struct proto_row) },
		.processes = { .size = sizeof(struct proto_row) },
		.on_devices = { .size = sizeof(struct proto_row) },
		.details = { .size = sizeof(struct proto_details) },
	};
}

void top_reading_free(struct top_reading *reading)
{
	free(reading->hosts.row);
	free(reading->tenants.row);
	free(reading->processes.row);
	free(reading->on_devices.row);
	free(reading->details.row);
	top_reading_begin(reading);
}

int top_reading_take_row(const void *received, void *closure)
{
	struct top_reading *reading = closure;
	struct list *const lists[] = { [ROW_HOST] = &reading->hosts,
				       [ROW_TENANT] = &reading->tenants,
				       [ROW_PROCESS] = &reading->processes };
	const struct proto_row *given = received;
	struct proto_row *row;

	if (given->scope > ROW_PROCESS || (given->device[0] && given->scope != ROW_PROCESS))
		return 0;
	row = list_add(given->device[0] ? &reading->on_devices : lists[given->scope]);
	*row = *given;
	proto_text(row->tenant);
	proto_text(row->device);
	proto_text(row->command);
	return 0;
}

int top_reading_take_details(const void *received, void *closure)
{
	struct top_reading *reading = closure;
	struct proto_details *details = list_add(&reading->details);

	*details = *(const struct proto_details *)received;
	proto_text(details->device);
	return 0;
}

/* ---- rates */

double top_seconds(const struct top *top)
{
	if (!top->before.time_ns || top->before.status.pid != top->now.status.pid ||
	    top->now.time_ns <= top->before.time_ns)
		return 0;
	return (double)(top->now.time_ns - top->before.time_ns) / 1e9;
}

double top_rate(const struct top *top, uint64_t now, uint64_t before)
{
	double seconds = top_seconds(top);

	return seconds > 0 && now > before ? (double)(now - before) / seconds : 0;
}

/* Rows of a list are the same owner's if nothing of this differs. */
static int row_order(const void *one, const void *other)
{
	const struct proto_row *a = one, *b = other;

	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return strcmp(a->tenant, b->tenant);
}

static const struct list *rows_of_scope(const struct top_reading *reading, uint32_t scope)
{
	return scope == ROW_TENANT  ? &reading->tenants :
	       scope == ROW_PROCESS ? &reading->processes :
				      &reading->hosts;
}

const struct proto_row *top_row_before(const struct top *top, const struct proto_row *row)
{
	const struct list *rows = rows_of_scope(&top->before, row->scope);

	/* top_take has put them into this order. */
	return top_seconds(top) > 0 && rows->count ?
		       bsearch(row, rows->row, rows->count, rows->size, row_order) :
		       NULL;
}

static uint64_t row_refused(const struct proto_row *row)
{
	uint64_t refused = 0;

	for (int kind = 0; kind < KINDS_COUNTED; kind++)
		refused += row->refused[kind];
	return refused;
}

static struct top_line top_line_of(const struct top *top, const struct proto_row *row)
{
	const struct proto_row *before = top_row_before(top, row);
	struct top_line line = { .row = row, .refused = row_refused(row) };

	if (before) {
		line.refused_rate = top_rate(top, line.refused, row_refused(before));
		line.growth = ((double)row->used[top->kind] - (double)before->used[top->kind]) /
			      top_seconds(top);
	}
	return line;
}

/* ---- order */

static double processes_value(const struct top *top, const struct top_line *line)
{
	return line->row->scope == ROW_PROCESS ? (double)line->row->pid :
						 (double)line->row->processes;
}

/* As the books say, or the kernel if that has more. */
static uint64_t row_held(const struct proto_row *row, enum kind kind)
{
	bool known = row->flags & ROW_WATCHED && row->kernel[kind] != PROTO_UNKNOWN;

	return known && row->kernel[kind] > row->used[kind] ? row->kernel[kind] : row->used[kind];
}

static double held_value(const struct top *top, const struct top_line *line)
{
	return (double)row_held(line->row, top->kind);
}

static double part_value(const struct top *top, const struct top_line *line)
{
	uint64_t limit = line->row->limit[top->kind], used = line->row->used[top->kind];

	if (limit == UNLIMITED)
		return -1;
	return limit ? (double)used / (double)limit : used ? 1e9 : 0;
}

static double refused_value(const struct top *top, const struct top_line *line)
{
	return (double)line->refused;
}

static double refused_rate_value(const struct top *top, const struct top_line *line)
{
	return line->refused_rate;
}

static double growth_value(const struct top *top, const struct top_line *line)
{
	return line->growth;
}

const struct top_sort top_sorts[] = {
	{ N_("used"), held_value },
	{ N_("part of the limit"), part_value },
	{ N_("refused"), refused_value },
	{ N_("refused a second"), refused_rate_value },
	{ N_("growth a second"), growth_value },
	{ N_("name"), NULL },
	{ N_("processes or pid"), processes_value },
};
const unsigned top_sorts_count = sizeof(top_sorts) / sizeof(top_sorts[0]);

static int line_order(const void *one, const void *other, void *closure)
{
	const struct top *top = closure;
	const struct top_line *a = one, *b = other;
	const struct top_sort *sort = &top_sorts[top->sort];
	double difference = sort->value ? sort->value(top, b) - sort->value(top, a) : 0;
	const char *name_a = a->row->scope == ROW_PROCESS ? a->row->command : a->row->tenant;
	const char *name_b = b->row->scope == ROW_PROCESS ? b->row->command : b->row->tenant;
	int result = difference > 0 ? 1 : difference < 0 ? -1 : strcmp(name_a, name_b);

	if (!result)
		result = row_order(a->row, b->row);
	return top->reversed ? -result : result;
}

/* ---- filter */

static bool row_is_full(const struct proto_row *row)
{
	for (int kind = 0; kind < KIND_COUNT; kind++)
		if (row->used[kind] && row->used[kind] >= row->limit[kind])
			return true;
	return false;
}

static bool line_is_shown(const struct top *top, const struct top_line *line)
{
	const struct proto_row *row = line->row;
	char pid[16];

	if (top->problems && !line->refused &&
	    !(row->flags & (ROW_UNCOVERED | ROW_DRIFT | ROW_DRAINING)) && !row_is_full(row))
		return false;
	snprintf(pid, sizeof(pid), "%d", (int)row->pid);
	return !*top->filter || strcasestr(row->tenant, top->filter) ||
	       (row->scope == ROW_PROCESS &&
		(strcasestr(row->command, top->filter) || strstr(pid, top->filter)));
}

/* The row that is chosen, as far as there is one. */
static const struct proto_row *row_chosen(const struct top *top)
{
	const struct top_line *line;

	if (top->level == TOP_DETAILS || top->cursor >= top->lines.count)
		return NULL;
	line = list_at(&top->lines, top->cursor);
	return line->row;
}

static void cursor_keep(struct top *top)
{
	size_t count = top->level == TOP_DETAILS || top->help ? top->text.count : top->lines.count;
	size_t page = top->page ? top->page : 1;

	if (top->cursor >= count)
		top->cursor = count ? count - 1 : 0;
	if (top->first > top->cursor)
		top->first = top->cursor;
	if (top->cursor >= top->first + page)
		top->first = top->cursor - page + 1;
	if (top->first + page > count)
		top->first = count > page ? count - page : 0;
}

/* Fills the lines anew; the cursor stays on the owner whose row it was on, if that is shown. */
static void lines_fill(struct top *top, const struct proto_row *chosen)
{
	const struct list *rows =
		top->level == TOP_TENANTS ? &top->now.tenants : &top->now.processes;

	top->lines.count = 0;
	free(top->lines.row);
	top->lines.row = NULL;
	for (size_t i = 0; i < rows->count; i++) {
		struct top_line line = top_line_of(top, list_at(rows, i));

		if (line_is_shown(top, &line) &&
		    (top->level == TOP_TENANTS || !*top->tenant ||
		     !strcmp(top->tenant, line.row->tenant)))
			*(struct top_line *)list_add(&top->lines) = line;
	}
	if (top->lines.count)
		qsort_r(top->lines.row, top->lines.count, top->lines.size, line_order, top);
	for (size_t i = 0; chosen && i < top->lines.count; i++) {
		const struct top_line *line = list_at(&top->lines, i);

		if (!row_order(line->row, chosen)) {
			top->cursor = i;
			break;
		}
	}
	cursor_keep(top);
}

void top_arrange(struct top *top)
{
	const struct proto_row *row = row_chosen(top);
	struct proto_row chosen;

	if (row)
		chosen = *row;
	lines_fill(top, row ? &chosen : NULL);
}

/* ---- life */

void top_begin(struct top *top)
{
	*top = (struct top){ .kind = KIND_qp,
			     .page = 1,
			     .lines = { .size = sizeof(struct top_line) } };
	top_reading_begin(&top->now);
	top_reading_begin(&top->before);
}

void top_free(struct top *top)
{
	top_reading_free(&top->now);
	top_reading_free(&top->before);
	free(top->lines.row);
}

static void rows_sort(struct list *rows)
{
	if (rows->count)
		qsort(rows->row, rows->count, rows->size, row_order);
}

void top_take(struct top *top, struct top_reading *reading)
{
	const struct proto_row *row = row_chosen(top);
	struct proto_row chosen;

	if (row)
		chosen = *row;
	top_reading_free(&top->before);
	top->before = top->now;
	top->now = *reading;
	top_reading_begin(reading);
	rows_sort(&top->now.tenants);
	rows_sort(&top->now.processes);
	top->problem[0] = '\0';
	lines_fill(top, row ? &chosen : NULL);
}

void top_fail(struct top *top, const char *problem)
{
	snprintf(top->problem, sizeof(top->problem), "%s", problem);
}

/* ---- keys */

static void key_quit(struct top *top)
{
	top->ended = true;
}

static void key_help(struct top *top)
{
	top->help = true;
}

static void cursor_move(struct top *top, long by)
{
	/* Text has no chosen line: it is moved as a whole. */
	if (top->level == TOP_DETAILS)
		top->cursor = by < 0 ? top->first : top->first + top->page - 1;
	if (by < 0)
		top->cursor = top->cursor > (size_t)-by ? top->cursor - (size_t)-by : 0;
	else
		top->cursor += (size_t)by;
	cursor_keep(top);
}

static void key_up(struct top *top)
{
	cursor_move(top, -1);
}

static void key_down(struct top *top)
{
	cursor_move(top, 1);
}

static void key_page_up(struct top *top)
{
	cursor_move(top, -(long)top->page);
}

static void key_page_down(struct top *top)
{
	cursor_move(top, (long)top->page);
}

enum { FAR_AWAY = 1 << 28 };

static void key_first(struct top *top)
{
	cursor_move(top, -FAR_AWAY);
}

static void key_last(struct top *top)
{
	cursor_move(top, FAR_AWAY);
}

/* Another level, with nothing chosen yet. */
static void level_set(struct top *top, enum top_level level, const char *tenant, int32_t pid)
{
	const struct proto_row *above = NULL;
	struct proto_row chosen = { .scope = level == TOP_TENANTS ? ROW_TENANT : ROW_PROCESS };

	/* Whoever goes back finds the row that was opened. */
	if (level < top->level) {
		snprintf(chosen.tenant, sizeof(chosen.tenant), "%s", top->tenant);
		chosen.pid = level == TOP_PROCESSES ? top->pid : 0;
		for (size_t i = 0; chosen.pid && i < top->now.processes.count; i++) {
			const struct proto_row *row = list_at(&top->now.processes, i);

			if (row->pid == chosen.pid)
				memcpy(chosen.tenant, row->tenant, sizeof(chosen.tenant));
		}
		above = &chosen;
	}
	if (level != top->level && level != TOP_DETAILS && level > top->level)
		top->filter[0] = '\0';
	top->level = level;
	top->pid = pid;
	if (tenant != top->tenant)
		snprintf(top->tenant, sizeof(top->tenant), "%s", tenant);
	top->cursor = top->first = 0;
	lines_fill(top, above);
}

static void key_open(struct top *top)
{
	const struct proto_row *row = row_chosen(top);
	char tenant[NAME_SIZE];

	if (!row)
		return;
	memcpy(tenant, row->tenant, sizeof(tenant));
	if (top->level == TOP_TENANTS)
		level_set(top, TOP_PROCESSES, tenant, 0);
	else
		level_set(top, TOP_DETAILS, top->tenant, row->pid);
}

static void key_back(struct top *top)
{
	if (*top->filter && top->level != TOP_DETAILS) {
		top->filter[0] = '\0';
		top_arrange(top);
	} else if (top->level == TOP_DETAILS) {
		level_set(top, TOP_PROCESSES, top->tenant, 0);
	} else if (top->level == TOP_PROCESSES) {
		level_set(top, TOP_TENANTS, top->tenant, 0);
		top->tenant[0] = '\0';
	}
}

static void key_tenants(struct top *top)
{
	level_set(top, TOP_TENANTS, "", 0);
}

static void key_processes(struct top *top)
{
	level_set(top, TOP_PROCESSES, "", 0);
}

static void sort_step(struct top *top, unsigned by)
{
	top->sort = (top->sort + by) % top_sorts_count;
	top_arrange(top);
}

static void key_sort(struct top *top)
{
	sort_step(top, 1);
}

static void key_sort_back(struct top *top)
{
	sort_step(top, top_sorts_count - 1);
}

static void key_reverse(struct top *top)
{
	top->reversed = !top->reversed;
	top_arrange(top);
}

/* Whether any tenant or the host has something of the kind, or a limit. */
static bool kind_is_used(const struct top *top, int kind)
{
	const struct list *const lists[] = { &top->now.hosts, &top->now.tenants,
					     &top->now.processes };

	for (unsigned list = 0; list < sizeof(lists) / sizeof(lists[0]); list++)
		for (size_t i = 0; i < lists[list]->count; i++) {
			const struct proto_row *row = list_at(lists[list], i);

			if (row_held(row, kind) || row->limit[kind] != UNLIMITED ||
			    row->refused[kind] || row->tolerated[kind])
				return true;
		}
	return false;
}

static void kind_step(struct top *top, int by)
{
	int kind = top->kind;

	for (int i = 0; i < KIND_COUNT; i++) {
		kind = (kind + by + KIND_COUNT) % KIND_COUNT;
		if (kind_is_used(top, kind))
			break;
	}
	top->kind = (enum kind)kind;
	top_arrange(top);
}

static void key_kind(struct top *top)
{
	kind_step(top, 1);
}

static void key_kind_back(struct top *top)
{
	kind_step(top, -1);
}

static void key_filter(struct top *top)
{
	top->typing = top->level != TOP_DETAILS;
}

static void key_problems(struct top *top)
{
	top->problems = !top->problems;
	top_arrange(top);
}

static void key_pause(struct top *top)
{
	top->paused = !top->paused;
}

const struct top_key_row top_keys[] = {
#define TOP_KEY(key, name, function, help) { key, name, key_##function, help },
#include "cli/top_keys.def"
#undef TOP_KEY
};
const unsigned top_keys_count = sizeof(top_keys) / sizeof(top_keys[0]);

/* A key while the filter is typed. The filter is ASCII. */
static void filter_press(struct top *top, unsigned key)
{
	size_t length = strlen(top->filter);

	if (key == '\n' || key == '\r' || key == TOP_ESCAPE)
		top->typing = false;
	if (key == TOP_ESCAPE)
		top->filter[0] = '\0';
	else if (key == TOP_BACKSPACE && length)
		top->filter[length - 1] = '\0';
	else if (key >= ' ' && key < 127 && length + 1 < sizeof(top->filter))
		snprintf(top->filter + length, sizeof(top->filter) - length, "%c", (int)key);
	top->cursor = top->first = 0;
	lines_fill(top, NULL);
}

void top_press(struct top *top, unsigned key)
{
	if (top->help) {
		top->help = false;
		return;
	}
	if (top->typing) {
		filter_press(top, key);
		return;
	}
	for (unsigned i = 0; i < top_keys_count; i++)
		if (top_keys[i].key == key) {
			top_keys[i].press(top);
			return;
		}
}
