/* SPDX-License-Identifier: MIT */
/* Columns of lines, events and objects; see print.h. */
#include "monitor/tool/print.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/proc.h"
#include "monitor/kernel/uverbs.h"
#include "output/form.h"
#include "output/memory.h"
#include "output/page.h"

enum { PRINT_WIDTH = 80 }; /* of a table that is not for a terminal */

static const struct screen print_screen; /* without colours, as wide as need be */

/* ---- forms */

/* A process; its number is 0 if nobody knows whose the objects are. */
struct who {
	uint32_t pid;
	uint32_t ended;
};

static void who_show(const struct form *form, const void *field, struct cell *ret_cell)
{
	const struct who *who = field;

	if (who->pid)
		cell_print(ret_cell, NULL, "%u%c", who->pid, who->ended ? '*' : ' ');
	else
		cell_print(ret_cell, NULL, "- ");
}

static json_t *who_json(const struct form *form, const void *field)
{
	const struct who *who = field;

	return who->pid ? form_json_number(who->pid) : json_null();
}

static const struct form form_who = { .show = who_show, .json = who_json, .right = true };
static const struct form form_command = { .show = form_text_show,
					  .json = form_text_json,
					  .nothing = "(unknown)" };

/* A number that may not be known. */
struct tally {
	uint64_t value;
	bool known;
};

static void tally_show(const struct form *form, const void *field, struct cell *ret_cell)
{
	const struct tally *tally = field;

	if (tally->known)
		cell_print(ret_cell, NULL, "%llu", (unsigned long long)tally->value);
	else
		cell_print(ret_cell, NULL, "?");
}

static void tally_show_bytes(const struct form *form, const void *field, struct cell *ret_cell)
{
	const struct tally *tally = field;
	char text[BYTES_TEXT];

	cell_print(ret_cell, NULL, "%s", tally->known ? bytes_text(tally->value, text) : "?");
}

static json_t *tally_json(const struct form *form, const void *field)
{
	const struct tally *tally = field;

	return tally->known ? form_json_number(tally->value) : json_null();
}

static const struct form form_tally = { .show = tally_show, .json = tally_json, .right = true };
static const struct form form_tally_bytes = { .show = tally_show_bytes,
					      .json = tally_json,
					      .right = true };

/* All counters of a line. */
static json_t *counts_json(const struct form *form, const void *field)
{
	const struct tally *counts = field;
	json_t *object = memory_need(json_object());

	for (unsigned i = 0; i < MONITOR_COUNTERS; i++)
		json_object_set_new(object, monitor_counter_names[i], tally_json(form, &counts[i]));
	return object;
}

static const struct form form_counts = { .json = counts_json };

static json_t *rate_json(const struct form *form, const void *field)
{
	return memory_need(json_real(*(const double *)field));
}

static void rate_show(const struct form *form, const void *field, struct cell *ret_cell)
{
	cell_print(ret_cell, NULL, "%.1f", *(const double *)field);
}

static const struct form form_rate = { .show = rate_show, .json = rate_json, .right = true };

/* For people as for programs by RFC 3339, in UTC, since lines of several hosts are compared; to the
 * millisecond. */
static void moment_show(const struct form *form, const void *field, struct cell *ret_cell)
{
	uint64_t ns = *(const uint64_t *)field;
	time_t seconds = (time_t)(ns / CLOCK_SECOND_NS);
	struct tm parts = { 0 };
	char text[32];

	gmtime_r(&seconds, &parts);
	strftime(text, sizeof(text), "%FT%T", &parts);
	cell_print(ret_cell, NULL, "%s.%03uZ", text, (unsigned)(ns / 1000000 % 1000));
}

static json_t *moment_json(const struct form *form, const void *field)
{
	return form_time.json(&form_time, field);
}

static const struct form form_moment = { .show = moment_show, .json = moment_json };

/* A moment of the clock of the programs in the kernel, in ns since 1970. */
static uint64_t moment_of_boot(uint64_t boot_ns)
{
	return clock_ns(CLOCK_REALTIME) - clock_boot_ns() + boot_ns;
}

/* ---- words */

/* The path of a cgroup by its number, below the root; "" for none. To free. */
static char *cgroup_name(__u64 number)
{
	int fd = number ? cgroup_open(number) : -1;
	char path[PATH_MAX] = "", *text;
	bool known = fd >= 0 && cgroup_path(fd, path);

	if (fd >= 0)
		close(fd);
	if (known || !number)
		return memory_need(strdup(path));
	if (asprintf(&text, "(%llu, gone)", (unsigned long long)number) < 0)
		memory_need(NULL);
	return text;
}

/* Its name now, if it lives; it may have called exec since the row was made. */
static void command_now(const struct monitor_row *row, char ret[MONITOR_COMMAND])
{
	if (row->exited || !row->pid ||
	    proc_read((pid_t)row->pid, "comm", ret, MONITOR_COMMAND) <= 0)
		snprintf(ret, MONITOR_COMMAND, "%s", row->command);
	else
		ret[strcspn(ret, "\n")] = '\0';
}

static const char *counter_name(unsigned counter)
{
	return counter < MONITOR_COUNTERS ? monitor_counter_names[counter] : NULL;
}

/* ---- lines */

struct shown_line {
	struct who who;
	uint64_t start;
	char command[MONITOR_COMMAND];
	uint32_t uid;
	char device[NAME_SIZE];
	const char *cgroup;
	uint64_t cgroup_id;
	struct tally counts[MONITOR_COUNTERS];
	uint64_t made, gone;
	double made_rate, gone_rate;
};

#define LINE(field, key, title, form, ...)                                                         \
	COLUMN(struct shown_line, field, key, title, form, __VA_ARGS__)
#define LINE_CGROUP                                                                                \
	LINE(cgroup, "cgroup", "cgroup", form_string, .shrinks = 14),                              \
		LINE(cgroup_id, "cgroup_id", NULL, form_count)
#define LINE_DEVICE LINE(device, "device", "device", form_text)

static const struct column process_columns[] = {
	LINE(who, "pid", "pid", form_who),
	LINE(start, "start", NULL, form_count),
	LINE(command, "command", "command", form_command),
	LINE(uid, "uid", NULL, form_number),
	LINE(who.ended, "ended", NULL, form_flag),
	LINE_DEVICE,
	LINE_CGROUP,
	COLUMNS_END,
};
static const struct column cgroup_columns[] = { LINE_CGROUP, COLUMNS_END };
static const struct column device_columns[] = { LINE_DEVICE, COLUMNS_END };

/* A narrow table does without rates before it does without the first of counters_first. */
enum { RANK_STEP = 2, RANK_RATES = 6 * RANK_STEP + 1, RANK_UNNAMED = 100 };

/* After the counts, which are chosen: see line_columns_choose. */
static const struct column number_columns[] = {
	LINE(counts, "counts", NULL, form_counts),
	LINE(made, "made", NULL, form_count),
	LINE(gone, "gone", NULL, form_count),
	LINE(made_rate, "made_per_second", "made/s", form_rate, .rank = RANK_RATES),
	LINE(gone_rate, "gone_per_second", "gone/s", form_rate, .rank = RANK_RATES),
	COLUMNS_END,
};

static const struct {
	const char *key;
	const struct column *columns;
} print_by[VIEW_BYS] = {
	[VIEW_PROCESS] = { "processes", process_columns },
	[VIEW_CGROUP] = { "cgroups", cgroup_columns },
	[VIEW_DEVICE] = { "devices", device_columns },
};

/* Counters in the order in which a narrow table does without them, the last ones first. Those that are
 * not named go before. */
static const unsigned counters_first[] = { KIND_qp, KIND_mr, KIND_mr_bytes, KIND_cq,   KIND_ctx,
					   KIND_pd, KIND_srq, KIND_cm_id,   KIND_ah, KIND_mw };

static unsigned counter_rank(unsigned counter)
{
	for (unsigned i = 0; i < sizeof(counters_first) / sizeof(counters_first[0]); i++)
		if (counters_first[i] == counter)
			return (i + 1) * RANK_STEP;
	return RANK_UNNAMED + counter;
}

static bool counter_is_bytes(unsigned counter)
{
	return counter < KIND_COUNT && kind_rows[counter].unit == UNIT_BYTES;
}

/* A counter has a column if something is counted by it in any line, or if it was asked for. One that
 * is common and of which the monitor does not see all has one, too: it may not be 0. */
static bool counter_matters(const struct view *view, const struct list *lines, unsigned counter)
{
	if (!filter_takes_counter(&view->filter, counter))
		return false;
	if (view->filter.counters)
		return true;
	for (size_t i = 0; i < lines->count; i++) {
		const struct shown_line *line = list_at(lines, i);

		if (line->counts[counter].value ||
		    (!line->counts[counter].known && counter_rank(counter) < RANK_UNNAMED))
			return true;
	}
	return false;
}

/* To free: a list of struct column. */
static struct list line_columns_choose(const struct view *view, const struct list *lines)
{
	struct list columns = { .size = sizeof(struct column) };

	columns_append(&columns, print_by[view->by].columns, 0);
	for (unsigned i = 0; i < MONITOR_COUNTERS; i++)
		if (counter_matters(view, lines, i))
			*(struct column *)list_add(&columns) = (struct column){
				.title = monitor_counter_names[i],
				.form = counter_is_bytes(i) ? &form_tally_bytes : &form_tally,
				.offset = offsetof(struct shown_line, counts) +
					  i * sizeof(struct tally),
				.rank = counter_rank(i),
			};
	columns_append(&columns, number_columns, 0);
	list_add(&columns);
	return columns;
}

static void shown_line_fill(struct shown_line *shown, const struct view_line *line, __u64 observed)
{
	const struct monitor_row *row = &line->sum;

	*shown = (struct shown_line){ .who = { row->pid, row->exited },
				      .start = monitor_row_start(row),
				      .uid = row->uid,
				      .cgroup = cgroup_name(row->cgroup),
				      .cgroup_id = row->cgroup,
				      .made = line->made,
				      .gone = line->gone,
				      .made_rate = line->made_rate,
				      .gone_rate = line->gone_rate };
	command_now(row, shown->command);
	memcpy(shown->device, row->device_name, sizeof(shown->device) - 1);
	for (unsigned i = 0; i < MONITOR_COUNTERS; i++) {
		__s64 count = (__s64)monitor_row_count(row, i);

		shown->counts[i].value = count < 0 ? 0 : (__u64)count;
		shown->counts[i].known = observed >> i & 1;
	}
}

/* ---- the whole */

static void head_print(struct page *page, const struct monitor_head *head)
{
	json_t *hooks = memory_need(json_object());

	for (unsigned i = 0; i < MONITOR_HOOKS; i++)
		json_object_set_new(hooks, monitor_hook_functions[i], json_boolean(head->hook[i]));
	page_json(page, "mode",
		  form_json_text(head->mode <= MONITOR_NETLINK ? monitor_mode_names[head->mode] :
								 "unknown"));
	page_json(page, "complete", json_boolean(head->seeded_ns));
	page_json(page, "found_at_start", form_json_number(head->seeded));
	page_json(page, "lost_objects", form_json_number(head->lost_objects));
	page_json(page, "lost_rows", form_json_number(head->lost_rows));
	page_json(page, "dropped_events", form_json_number(head->dropped));
	page_json(page, "hooks", hooks);
}

/* Of the terminal, if there is one. */
static unsigned screen_width(void)
{
	struct winsize size;

	return isatty(STDOUT_FILENO) && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col ?
		       size.ws_col :
		       PRINT_WIDTH;
}

void print_view(const struct view *view, const struct monitor_reader *reader, bool json)
{
	const struct screen screen = { .width = screen_width() };
	struct list lines = { .size = sizeof(struct shown_line) };
	const struct monitor_head *head = reader->head;
	struct list columns;
	struct page page;

	for (size_t i = 0; i < view->count; i++)
		shown_line_fill(list_add(&lines), &view->line[i], monitor_reader_observed(reader));
	columns = line_columns_choose(view, &lines);
	page_open(&page, &screen, json);
	head_print(&page, head);
	page_table(&page, print_by[view->by].key, columns.row, &lines);
	free(columns.row);
	if (!lines.count)
		page_sentence(&page, NULL,
			      view->filter.is_set ? "no process has such RDMA objects" :
						    "no process has RDMA objects");
	if (head->lost_objects || head->lost_rows)
		page_sentence(&page, NULL,
			      "not complete: %llu objects had no room, %llu had no row",
			      (unsigned long long)head->lost_objects,
			      (unsigned long long)head->lost_rows);
	page_end(&page);
	fflush(stdout);
	for (size_t i = 0; i < lines.count; i++)
		free((char *)((struct shown_line *)list_at(&lines, i))->cgroup);
	free(lines.row);
}

/* ---- objects and events */

struct shown_object {
	uint64_t time_ns; /* since 1970: of the event, or when the object was made */
	const char *event;
	struct who who;
	char command[MONITOR_COMMAND];
	char device[NAME_SIZE];
	const char *kind;
	char text[128];
	/* Known of some kinds only: */
	const char *type;
	struct tally number, send_wr, recv_wr, cqe, bytes, kernel_type;
};

#define OBJECT(field, key, title, form, ...)                                                       \
	COLUMN(struct shown_object, field, key, title, form, __VA_ARGS__)
#define OBJECT_FIELDS                                                                              \
	OBJECT(who, "pid", "pid", form_who, .least = 9),                                           \
		OBJECT(command, "command", "command", form_command, .least = 15),                  \
		OBJECT(device, "device", "device", form_text, .least = 8),                         \
		OBJECT(kind, "kind", "kind", form_string, .least = 12),                            \
		OBJECT(number, "number", NULL, form_tally),                                        \
		OBJECT(type, "type", NULL, form_string),                                           \
		OBJECT(send_wr, "send_wr", NULL, form_tally),                                      \
		OBJECT(recv_wr, "recv_wr", NULL, form_tally),                                      \
		OBJECT(cqe, "cqe", NULL, form_tally), OBJECT(bytes, "bytes", NULL, form_tally),    \
		OBJECT(kernel_type, "kernel_type", NULL, form_tally),                              \
		OBJECT(text, NULL, "object", form_object_text, .least = 1, .flows = true),         \
		COLUMNS_END

static const struct form form_object_text = { .show = form_text_show, .nothing = "" };

static const struct column event_columns[] = {
	OBJECT(time_ns, "time", "time", form_moment, .least = 24),
	OBJECT(event, "event", "event", form_string, .least = 7),
	OBJECT_FIELDS,
};
static const struct column object_columns[] = {
	OBJECT(time_ns, "made", NULL, form_moment),
	OBJECT_FIELDS,
};

static const char *const event_names[] = {
	[MONITOR_MADE] = "made",
	[MONITOR_GONE] = "gone",
	[MONITOR_CHANGED] = "changed",
	[MONITOR_FOUND] = "found",
};

static const char *queue_type(__u32 type)
{
	switch (type) {
#define QP_TYPE(number, name)                                                                      \
	case number:                                                                               \
		return name;
#include "monitor/kernel/uverbs.def"
	}
	return "?";
}

static void shown_object_fill(struct shown_object *shown, const struct monitor_object *object)
{
	char bytes[BYTES_TEXT];

	shown->kind = counter_name(object->counter);
	switch (object->counter) {
	case KIND_qp:
		shown->type = queue_type(object->subtype);
		shown->number = (struct tally){ object->number, true };
		shown->send_wr = (struct tally){ object->size, true };
		shown->recv_wr = (struct tally){ object->size2, true };
		snprintf(shown->text, sizeof(shown->text),
			 "number %u, %s, send_wr %llu, recv_wr %llu", object->number, shown->type,
			 (unsigned long long)object->size, (unsigned long long)object->size2);
		break;
	case KIND_cq:
		shown->cqe = (struct tally){ object->size, true };
		snprintf(shown->text, sizeof(shown->text), "cqe %llu",
			 (unsigned long long)object->size);
		break;
	case KIND_mr:
		shown->bytes = (struct tally){ object->size, true };
		snprintf(shown->text, sizeof(shown->text), "bytes %s",
			 bytes_text(object->size, bytes));
		break;
	case MONITOR_driver:
	case MONITOR_other:
		shown->kernel_type = (struct tally){ object->type, true };
		shown->bytes = (struct tally){ object->size, true };
		snprintf(shown->text, sizeof(shown->text), "type %#x", object->type);
		break;
	}
}

static void shown_object_print(const struct column *columns, const struct shown_object *shown,
			       bool json)
{
	if (json)
		page_json_line(table_json_record(columns, shown));
	else
		table_print_line(&print_screen, columns, shown);
}

void print_event(const struct monitor_event *event, bool json)
{
	struct shown_object shown = {
		.time_ns = moment_of_boot(event->time_ns),
		.event = event->type < sizeof(event_names) / sizeof(event_names[0]) ?
				 event_names[event->type] :
				 NULL,
		.who = { .pid = event->pid },
	};

	memcpy(shown.command, event->command, sizeof(shown.command) - 1);
	memcpy(shown.device, event->device_name, sizeof(shown.device) - 1);
	shown_object_fill(&shown, &event->object);
	shown_object_print(event_columns, &shown, json);
}

void print_object(const struct monitor_object *object, const struct monitor_row *row, bool json)
{
	struct shown_object shown = {
		.time_ns = moment_of_boot(object->made_ns),
		.who = { .pid = row->pid },
	};

	memcpy(shown.command, row->command, sizeof(shown.command) - 1);
	memcpy(shown.device, row->device_name, sizeof(shown.device) - 1);
	shown_object_fill(&shown, object);
	shown_object_print(object_columns, &shown, json);
}
