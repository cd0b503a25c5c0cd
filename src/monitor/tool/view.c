/* SPDX-License-Identifier: MIT */
/* Gathering and printing; see view.h. */
#include "monitor/tool/view.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "monitor/kernel/uverbs.h"

#define CGROUPS "/sys/fs/cgroup"

const char *const view_by_names[VIEW_BYS] = { "process", "cgroup", "device" };

/* One line: rows that are the same by what is asked for. */
struct line {
	struct monitor_row sum; /* of the fields that they have in common, the first's */
	__u64 made, gone;	/* objects ever, for the rates */
	double made_rate, gone_rate;
};

struct view {
	enum view_by by;
	struct line *line, *before;
	size_t count, before_count, room, before_room;
	double time, before_time;
};

/* The columns of the table. */
static const struct {
	unsigned counter;
	const char *title;
	bool bytes;
} columns[] = {
	{ KIND_ctx, "CTX", false },
	{ KIND_pd, "PD", false },
	{ KIND_cq, "CQ", false },
	{ KIND_qp, "QP", false },
	{ KIND_srq, "SRQ", false },
	{ KIND_mr, "MR", false },
	{ KIND_mr_bytes, "MR_BYTES", true },
	{ KIND_mw, "MW", false },
	{ KIND_ah, "AH", false },
	{ KIND_cm_id, "CM_ID", false },
};

enum { COLUMNS = sizeof(columns) / sizeof(columns[0]) };

struct view *view_new(enum view_by by)
{
	struct view *view = calloc(1, sizeof(*view));

	if (view)
		view->by = by;
	return view;
}

void view_free(struct view *view)
{
	if (!view)
		return;
	free(view->line);
	free(view->before);
	free(view);
}

static bool same(enum view_by by, const struct monitor_row *a, const struct monitor_row *b)
{
	switch (by) {
	case VIEW_CGROUP:
		return a->cgroup == b->cgroup;
	case VIEW_DEVICE:
		return a->device == b->device;
	default:
		return a->pid == b->pid && a->start_ns == b->start_ns && a->device == b->device &&
		       a->cgroup == b->cgroup;
	}
}

static struct line *line_for(struct view *view, const struct monitor_row *row)
{
	struct line *line;

	for (size_t i = view->count; i-- > 0;)
		if (same(view->by, &view->line[i].sum, row))
			return &view->line[i];
	if (view->count == view->room) {
		size_t room = view->room ? 2 * view->room : 64;
		struct line *grown = realloc(view->line, room * sizeof(*grown));

		if (!grown)
			return NULL;
		view->line = grown;
		view->room = room;
	}
	line = &view->line[view->count++];
	*line = (struct line){ .sum = *row };
	memset(line->sum.made, 0, sizeof(line->sum.made));
	memset(line->sum.gone, 0, sizeof(line->sum.gone));
	line->sum.live = 0;
	return line;
}

static bool counts_objects(unsigned counter)
{
	switch (counter) {
	case KIND_mr_bytes:
	case KIND_dm_bytes:
	case KIND_cqe:
	case KIND_send_wr:
	case KIND_recv_wr:
		return false;
	}
	return true;
}

static void line_add(struct line *line, const struct monitor_row *row)
{
	line->sum.live += row->live;
	for (unsigned i = 0; i < MONITOR_COUNTERS; i++) {
		line->sum.made[i] += row->made[i];
		line->sum.gone[i] += row->gone[i];
		if (counts_objects(i)) {
			line->made += row->made[i];
			line->gone += row->gone[i];
		}
	}
}

static int line_compare(const void *a, const void *b)
{
	const struct line *first = a, *second = b;

	if (first->sum.live != second->sum.live)
		return first->sum.live < second->sum.live ? 1 : -1;
	return (first->sum.pid > second->sum.pid) - (first->sum.pid < second->sum.pid);
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void rates(struct view *view)
{
	double span = view->time - view->before_time;

	for (size_t i = 0; i < view->count; i++) {
		struct line *line = &view->line[i];
		__u64 made = 0, gone = 0;

		if (!view->before_time || span <= 0)
			continue;
		for (size_t j = 0; j < view->before_count; j++)
			if (same(view->by, &view->before[j].sum, &line->sum)) {
				made = view->before[j].made;
				gone = view->before[j].gone;
				break;
			}
		/* Of a cgroup or device, a process may have left with its past. */
		line->made_rate = line->made > made ? (double)(line->made - made) / span : 0;
		line->gone_rate = line->gone > gone ? (double)(line->gone - gone) / span : 0;
	}
}

int view_refresh(struct view *view, const struct monitor_reader *reader)
{
	struct line *line = view->before;
	size_t room = view->before_room;
	struct monitor_row row;
	unsigned cursor = 0;

	view->before = view->line;
	view->before_count = view->count;
	view->before_room = view->room;
	view->before_time = view->time;
	view->line = line;
	view->room = room;
	view->count = 0;
	view->time = seconds();
	while (monitor_reader_next(reader, &cursor, &row)) {
		struct line *sum;

		if (!row.pid && !row.live) /* nobody's row, empty as it should be */
			continue;
		sum = line_for(view, &row);
		if (!sum)
			return -ENOMEM;
		line_add(sum, &row);
	}
	rates(view);
	if (view->count)
		qsort(view->line, view->count, sizeof(*view->line), line_compare);
	return 0;
}

/* ---- words */

/* The path of a cgroup by its number, below the root. */
static void cgroup_path(__u64 number, char *ret, size_t size)
{
	struct {
		struct file_handle handle;
		__u64 number;
	} name = { { .handle_bytes = sizeof(__u64), .handle_type = 0xfe }, number };
	char link[64], path[PATH_MAX];
	int root = open(CGROUPS, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd;
	ssize_t length = -1;

	fd = root < 0 ? -1 : open_by_handle_at(root, &name.handle, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		length = readlink(link, path, sizeof(path) - 1);
		close(fd);
	}
	if (root >= 0)
		close(root);
	if (length < 0 || (size_t)length < strlen(CGROUPS)) {
		snprintf(ret, size, "(%llu, gone)", (unsigned long long)number);
		return;
	}
	path[length] = '\0';
	snprintf(ret, size, "%s", path[strlen(CGROUPS)] ? path + strlen(CGROUPS) : "/");
}

/* Its name now, if it lives; it may have called exec since the row was made. */
static void command_of(const struct monitor_row *row, char ret[MONITOR_COMMAND])
{
	char path[64];
	FILE *file;

	snprintf(ret, MONITOR_COMMAND, "%s", row->command);
	if (row->exited || !row->pid)
		return;
	snprintf(path, sizeof(path), "/proc/%u/comm", row->pid);
	file = fopen(path, "re");
	if (!file)
		return;
	if (fgets(ret, MONITOR_COMMAND, file))
		ret[strcspn(ret, "\n")] = '\0';
	fclose(file);
}

/* No terminal's or reader's business: a process names itself as it likes. */
static void printable(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			*text = '?';
}

static void size_text(__u64 bytes, char ret[static 16])
{
	static const char *const units[] = { "", "K", "M", "G", "T", "P", "E" };
	unsigned unit = 0;
	double value = (double)bytes;

	while (value >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0])) {
		value /= 1024;
		unit++;
	}
	snprintf(ret, 16, unit && value < 10 ? "%.1f%s" : "%.0f%s", value, units[unit]);
}

static const char *device_of(const struct monitor_row *row)
{
	return row->device_name[0] ? row->device_name : "-";
}

static __u64 count_of(const struct monitor_row *row, unsigned counter)
{
	__s64 count = (__s64)monitor_row_count(row, counter);

	return count < 0 ? 0 : (__u64)count;
}

/* ---- the table */

static void print_who(const struct view *view, const struct line *line, FILE *out)
{
	char command[MONITOR_COMMAND], cgroup[PATH_MAX];

	cgroup_path(line->sum.cgroup, cgroup, sizeof(cgroup));
	printable(cgroup);
	switch (view->by) {
	case VIEW_CGROUP:
		fprintf(out, "%-40s", cgroup);
		return;
	case VIEW_DEVICE:
		fprintf(out, "%-16s", device_of(&line->sum));
		return;
	default:
		command_of(&line->sum, command);
		printable(command);
		if (!line->sum.pid)
			fprintf(out, "%8s %-15s %-8s %-24s", "-", "(unknown)", "-", "-");
		else
			fprintf(out, "%8u%c%-15s %-8s %-24s", line->sum.pid,
				line->sum.exited ? '*' : ' ', command, device_of(&line->sum),
				cgroup);
	}
}

static const char *const who_titles[VIEW_BYS] = {
	[VIEW_PROCESS] = "     PID COMMAND         DEVICE   CGROUP                  ",
	[VIEW_CGROUP] = "CGROUP                                  ",
	[VIEW_DEVICE] = "DEVICE          ",
};

void view_print(const struct view *view, const struct monitor_reader *reader, FILE *out)
{
	const struct monitor_head *head = reader->head;
	__u64 observed = monitor_reader_observed(reader);

	fputs(who_titles[view->by], out);
	for (unsigned i = 0; i < COLUMNS; i++)
		fprintf(out, columns[i].bytes ? " %9s" : " %6s", columns[i].title);
	fprintf(out, " %8s %8s\n", "MADE/S", "GONE/S");
	for (size_t i = 0; i < view->count; i++) {
		const struct line *line = &view->line[i];

		print_who(view, line, out);
		for (unsigned j = 0; j < COLUMNS; j++) {
			__u64 count = count_of(&line->sum, columns[j].counter);
			char text[24];

			if (!(observed >> columns[j].counter & 1))
				snprintf(text, sizeof(text), "?");
			else if (columns[j].bytes)
				size_text(count, text);
			else
				snprintf(text, sizeof(text), "%llu", (unsigned long long)count);
			fprintf(out, columns[j].bytes ? " %9s" : " %6s", text);
		}
		fprintf(out, " %8.1f %8.1f\n", line->made_rate, line->gone_rate);
	}
	if (head->lost_objects || head->lost_rows)
		fprintf(out, "not complete: %llu objects had no room, %llu had no row\n",
			(unsigned long long)head->lost_objects,
			(unsigned long long)head->lost_rows);
	fflush(out);
}

/* ---- JSON */

static json_t *counts_json(const struct monitor_row *row, __u64 observed)
{
	json_t *counts = json_object();

	for (unsigned i = 0; i < MONITOR_COUNTERS; i++)
		json_object_set_new(counts, monitor_counter_names[i],
				    observed >> i & 1 ? json_integer((json_int_t)count_of(row, i)) :
							json_null());
	return counts;
}

/* What is no UTF-8 is shown byte by byte, as if it were Latin-1. */
static json_t *text_json(const char *text)
{
	json_t *string = json_string(text);
	char latin[PATH_MAX * 2];
	size_t at = 0;

	if (string)
		return string;
	for (; *text && at + 3 < sizeof(latin); text++) {
		unsigned char letter = (unsigned char)*text;

		if (letter >= 0x80)
			latin[at++] = (char)(0xc0 | letter >> 6);
		latin[at++] = letter >= 0x80 ? (char)(0x80 | (letter & 0x3f)) : *text;
	}
	latin[at] = '\0';
	return json_string(latin);
}

static json_t *line_json(const struct view *view, const struct line *line, __u64 observed)
{
	char command[MONITOR_COMMAND], cgroup[PATH_MAX];
	json_t *object = json_object();

	if (view->by == VIEW_PROCESS) {
		command_of(&line->sum, command);
		json_object_set_new(object, "pid", json_integer(line->sum.pid));
		json_object_set_new(object, "start",
				    json_integer((json_int_t)monitor_row_start(&line->sum)));
		json_object_set_new(object, "command", text_json(command));
		json_object_set_new(object, "uid", json_integer(line->sum.uid));
		json_object_set_new(object, "ended", json_boolean(line->sum.exited));
	}
	if (view->by != VIEW_DEVICE) {
		cgroup_path(line->sum.cgroup, cgroup, sizeof(cgroup));
		json_object_set_new(object, "cgroup", text_json(cgroup));
		json_object_set_new(object, "cgroup_id",
				    json_integer((json_int_t)line->sum.cgroup));
	}
	if (view->by != VIEW_CGROUP)
		json_object_set_new(object, "device", text_json(device_of(&line->sum)));
	json_object_set_new(object, "counts", counts_json(&line->sum, observed));
	json_object_set_new(object, "made", json_integer((json_int_t)line->made));
	json_object_set_new(object, "gone", json_integer((json_int_t)line->gone));
	json_object_set_new(object, "made_per_second", json_real(line->made_rate));
	json_object_set_new(object, "gone_per_second", json_real(line->gone_rate));
	return object;
}

static void dump(json_t *object, FILE *out)
{
	json_dumpf(object, out, JSON_COMPACT | JSON_PRESERVE_ORDER);
	fputc('\n', out);
	fflush(out);
	json_decref(object);
}

void view_print_json(const struct view *view, const struct monitor_reader *reader, FILE *out)
{
	const struct monitor_head *head = reader->head;
	json_t *object = json_object(), *lines = json_array(), *hooks = json_object();

	for (unsigned i = 0; i < MONITOR_HOOKS; i++)
		json_object_set_new(hooks, monitor_hook_functions[i], json_boolean(head->hook[i]));
	for (size_t i = 0; i < view->count; i++)
		json_array_append_new(lines, line_json(view, &view->line[i],
						       monitor_reader_observed(reader)));
	json_object_set_new(object, "mode",
			    json_string(head->mode <= MONITOR_NETLINK ?
						monitor_mode_names[head->mode] :
						"unknown"));
	json_object_set_new(object, "complete", json_boolean(head->seeded_ns));
	json_object_set_new(object, "found_at_start", json_integer((json_int_t)head->seeded));
	json_object_set_new(object, "lost_objects", json_integer((json_int_t)head->lost_objects));
	json_object_set_new(object, "lost_rows", json_integer((json_int_t)head->lost_rows));
	json_object_set_new(object, "dropped_events", json_integer((json_int_t)head->dropped));
	json_object_set_new(object, "hooks", hooks);
	json_object_set_new(object,
			    view->by == VIEW_PROCESS ? "processes" :
			    view->by == VIEW_CGROUP  ? "cgroups" :
						       "devices",
			    lines);
	dump(object, out);
}

/* ---- objects and events */

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

static void object_json(json_t *json, const struct monitor_object *object)
{
	json_object_set_new(json, "kind",
			    json_string(object->counter < MONITOR_COUNTERS ?
						monitor_counter_names[object->counter] :
						"?"));
	switch (object->counter) {
	case KIND_qp:
		json_object_set_new(json, "number", json_integer(object->number));
		json_object_set_new(json, "type", json_string(queue_type(object->subtype)));
		json_object_set_new(json, "send_wr", json_integer((json_int_t)object->size));
		json_object_set_new(json, "recv_wr", json_integer((json_int_t)object->size2));
		break;
	case KIND_cq:
		json_object_set_new(json, "cqe", json_integer((json_int_t)object->size));
		break;
	case KIND_mr:
		json_object_set_new(json, "bytes", json_integer((json_int_t)object->size));
		break;
	case MONITOR_driver:
	case MONITOR_other:
		json_object_set_new(json, "type", json_integer(object->type));
		json_object_set_new(json, "bytes", json_integer((json_int_t)object->size));
		break;
	}
}

static void object_text(const struct monitor_object *object, char *ret, size_t size)
{
	char bytes[16];

	switch (object->counter) {
	case KIND_qp:
		snprintf(ret, size, "number %u, %s, send_wr %llu, recv_wr %llu", object->number,
			 queue_type(object->subtype), (unsigned long long)object->size,
			 (unsigned long long)object->size2);
		return;
	case KIND_cq:
		snprintf(ret, size, "cqe %llu", (unsigned long long)object->size);
		return;
	case KIND_mr:
		size_text(object->size, bytes);
		snprintf(ret, size, "bytes %s", bytes);
		return;
	case MONITOR_driver:
	case MONITOR_other:
		snprintf(ret, size, "type %#x", object->type);
		return;
	}
	ret[0] = '\0';
}

void view_print_event(const struct monitor_event *event, bool json, FILE *out)
{
	const char *what = event->type < sizeof(event_names) / sizeof(event_names[0]) ?
				   event_names[event->type] :
				   "?";
	char command[MONITOR_COMMAND], text[128];

	snprintf(command, sizeof(command), "%.15s", event->command);
	if (json) {
		json_t *object = json_object();

		json_object_set_new(object, "time", json_real((double)event->time_ns / 1e9));
		json_object_set_new(object, "event", json_string(what));
		json_object_set_new(object, "pid", json_integer(event->pid));
		json_object_set_new(object, "command", text_json(command));
		json_object_set_new(object, "device",
				    text_json(event->device_name[0] ? event->device_name : "-"));
		object_json(object, &event->object);
		dump(object, out);
		return;
	}
	printable(command);
	object_text(&event->object, text, sizeof(text));
	fprintf(out, "%14.6f %-7s %8u %-15s %-8s %-12s %s\n", (double)event->time_ns / 1e9, what,
		event->pid, command, event->device_name[0] ? event->device_name : "-",
		event->object.counter < MONITOR_COUNTERS ?
			monitor_counter_names[event->object.counter] :
			"?",
		text);
}

void view_print_object(const struct monitor_object *object, const struct monitor_row *row,
		       bool json, FILE *out)
{
	char command[MONITOR_COMMAND], text[128];

	snprintf(command, sizeof(command), "%.15s", row->command);
	if (json) {
		json_t *line = json_object();

		json_object_set_new(line, "pid", json_integer(row->pid));
		json_object_set_new(line, "command", text_json(command));
		json_object_set_new(line, "device", text_json(device_of(row)));
		json_object_set_new(line, "made", json_real((double)object->made_ns / 1e9));
		object_json(line, object);
		dump(line, out);
		return;
	}
	printable(command);
	object_text(object, text, sizeof(text));
	fprintf(out, "%8u %-15s %-8s %-12s %s\n", row->pid, command, device_of(row),
		object->counter < MONITOR_COUNTERS ? monitor_counter_names[object->counter] : "?",
		text);
}
