/* SPDX-License-Identifier: MIT */
/*
 * What rdma_monitor prints of rows, objects and events whose names are of a process's or a driver's
 * making: by the rule of output.c, as text and as JSON, and with all fields.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "harness.h"
#include "monitor/tool/print.h"
#include "schema.h"

enum { GONE_PID = 0x7ffffff0 }; /* a pid that no process has */

static struct monitor_head head = { .mode = MONITOR_KPROBE, .seeded_ns = 1 };
static struct monitor_row rows[MONITOR_ROWS];
static const struct monitor_reader reader = { &head, rows };

static struct monitor_filter filter; /* for view_print */

static FILE *kept;
static char *text;
static size_t length;

/* What is printed goes to the text, until its end. */
static void print_begin(void)
{
	free(text);
	text = NULL;
	kept = stdout;
	stdout = open_memstream(&text, &length);
}

static void print_end(void)
{
	fclose(stdout);
	stdout = kept;
}

static bool says(const char *part)
{
	return strstr(text, part);
}

static void row_make(void)
{
	memset(rows, 0, sizeof(rows));
	head.observed = ~0ull & ~(1ull << KIND_ah);
	rows[1] = (struct monitor_row){ .generation = 1,
					.live = 2,
					.pid = GONE_PID,
					.exited = 1,
					.device_name = "\033[1mrxe0",
					.command = "\033[31m\"red\"" };
	rows[1].made[KIND_qp] = 3;
	rows[1].gone[KIND_qp] = 1;
	rows[1].made[KIND_mr_bytes] = 1536;
}

static void view_print(enum view_by by, bool json)
{
	struct view *view = view_new(by, &filter);

	CHECK(view_refresh(view, &reader) == 0);
	print_begin();
	print_view(view, &reader, json);
	print_end();
	view_free(view);
}

static void tables(void)
{
	row_make();
	for (int by = 0; by < VIEW_BYS; by++) {
		view_print((enum view_by)by, false);
		CHECK(!strchr(text, '\033'), "%s", text);
		CHECK(says("1.5K") && says("MADE/S"), "%s", text);
		/* The kind that is not seen; among long names there is no room for it. */
		CHECK(by == VIEW_PROCESS || says(" ? "), "%s", text);
	}
	view_print(VIEW_PROCESS, false);
	CHECK(says("\\x1b[31m\"red\"") && says("\\x1b[1mrxe0") && says("2147483632*"), "%s", text);
	view_print(VIEW_DEVICE, false);
	CHECK(says("\\x1b[1mrxe0"), "%s", text);
}

static void documents(void)
{
	row_make();
	view_print(VIEW_PROCESS, true);
	CHECK(says("\"command\":\"\\u001B[31m\\\"red\\\"\"") &&
		      says("\"device\":\"\\u001B[1mrxe0\""),
	      "%s", text);
	CHECK(says("\"qp\":2") && says("\"mr_bytes\":1536") && says("\"ah\":null"), "%s", text);
	CHECK(says("\"cgroup\":null") && says("\"mode\":\"kprobe\"") && says("\"ended\":true"),
	      "%s", text);
	CHECK(strchr(text, '\n') == text + length - 1, "one line");
}

/* Each row of kinds.def is a field; trials.sh builds this once more with a row of its own. */
static void every_kind(void)
{
	char field[64];

	row_make();
	head.observed = ~0ull;
	for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
		rows[1].made[kind] = 100 + kind;
		rows[1].gone[kind] = 0;
	}
	view_print(VIEW_PROCESS, true);
	for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
		snprintf(field, sizeof(field), "\"%s\":%u", kind_rows[kind].name, 100 + kind);
		CHECK(says(field), "%s: %s", field, text);
	}
}

/* Rows that nobody is known for, and no rows at all. */
static void nobody(void)
{
	row_make();
	rows[0] = (struct monitor_row){ .generation = 1, .live = 1, .device = MONITOR_NO_DEVICE };
	view_print(VIEW_PROCESS, false);
	CHECK(says("(unknown)"), "%s", text);
	view_print(VIEW_PROCESS, true);
	CHECK(says("{\"pid\":null,") && says("\"command\":null") && says("\"device\":null"), "%s",
	      text);
	memset(rows, 0, sizeof(rows));
	view_print(VIEW_PROCESS, false);
	CHECK(!strcmp(text, "no process has RDMA objects\n"), "%s", text);
	view_print(VIEW_CGROUP, true);
	CHECK(says("\"cgroups\":[]"), "%s", text);
}

/* Whether there is a time by RFC 3339 of so many characters, about BOOTED seconds after the machine was
 * started. */
static bool is_moment(const char *at, size_t size)
{
	struct tm parts = { 0 };
	const char *end = strptime(at, "%Y-%m-%dT%H:%M:%S.", &parts);
	time_t booted = (time_t)((clock_ns(CLOCK_REALTIME) - clock_boot_ns()) / CLOCK_SECOND_NS);
	time_t moment = timegm(&parts);

	return end && strspn(end, "0123456789") == size - 21 && at[size - 1] == 'Z' &&
	       moment >= booted && moment <= booted + 4;
}

/* The longest line of the text. */
static size_t text_width(void)
{
	size_t width = 0;

	for (const char *at = text; *at; at += strcspn(at, "\n") + 1)
		if (strcspn(at, "\n") > width)
			width = strcspn(at, "\n");
	return width;
}

/* Where everything is used a table that is not for a terminal fits 80 columns, and what matters most is
 * there. */
static void widths(void)
{
	row_make();
	head.observed = ~0ull;
	for (unsigned i = 0; i < MONITOR_COUNTERS; i++)
		rows[1].made[i] = 1000000;
	for (int by = 0; by < VIEW_BYS; by++) {
		view_print((enum view_by)by, false);
		CHECK(text_width() <= 80 && text_width() > 50, "%zu: %s", text_width(), text);
		CHECK(says("QP") && says("MR") && !says("RWQ_TABLE"), "%s", text);
	}
	/* What is not used has no column. */
	row_make();
	head.observed = ~0ull;
	view_print(VIEW_PROCESS, false);
	CHECK(says("QP") && says("MR_BYTES") && !says("SRQ") && !says("CTX"), "%s", text);
}

/* How many lines of the table fit a filter. */
static unsigned filtered(const struct monitor_filter *wanted)
{
	unsigned count = 0;

	filter = *wanted;
	filter.is_set = 1;
	view_print(VIEW_PROCESS, true);
	filter = (struct monitor_filter){ .is_set = 0 };
	for (const char *at = text; (at = strstr(at, "\"start\":")); at++)
		count++;
	return count;
}

static void filters(void)
{
	struct monitor_filter chosen = { .is_set = 0 };
	char problem[PROBLEM_SIZE], cgroup[32];

	memset(rows, 0, sizeof(rows));
	head.observed = ~0ull;
	for (unsigned i = 1; i <= 4; i++) {
		rows[i] = (struct monitor_row){
			.generation = 1, .live = 1, .pid = GONE_PID + i, .start_ns = i, .cgroup = i % 2 + 7
		};
		snprintf(rows[i].device_name, sizeof(rows[i].device_name), "rxe%u", i / 3);
		rows[i].made[i == 1 ? KIND_qp : KIND_mr] = 1;
	}
	CHECK(filtered(&chosen) == 4);
	CHECK(!filter_set_kind(&chosen, "qp", problem) && filtered(&chosen) == 1);
	CHECK(!filter_set_kind(&chosen, "mr", problem) && filtered(&chosen) == 4);
	CHECK(!filter_set_device(&chosen, "rxe1", problem) && filtered(&chosen) == 2);
	CHECK(!filter_set_cgroup(&chosen, "8", problem) && filtered(&chosen) == 1);
	snprintf(cgroup, sizeof(cgroup), "%u", (unsigned)GONE_PID + 4);
	CHECK(!filter_set_pid(&chosen, cgroup, problem) && filtered(&chosen) == 0);
	chosen = (struct monitor_filter){ .pid = GONE_PID + 4 };
	CHECK(filtered(&chosen) == 1);
	/* Only the columns of the kinds that were asked for. */
	filter = (struct monitor_filter){ .is_set = 1, .counters = 1ull << KIND_mr };
	view_print(VIEW_PROCESS, false);
	CHECK(says("MR") && !says("QP"), "%s", text);
	filter = (struct monitor_filter){ .is_set = 1, .pid = 1 };
	view_print(VIEW_PROCESS, false);
	CHECK(!strcmp(text, "no process has such RDMA objects\n"), "%s", text);
	filter = (struct monitor_filter){ .is_set = 0 };
	/* Errors name the option, the value and what is expected. */
	CHECK(filter_set_pid(&chosen, "x", problem) == -EINVAL &&
		      !strcmp(problem, "--pid: invalid value 'x': expected a process ID"),
	      "%s", problem);
	CHECK(filter_set_pid(&chosen, "0", problem) == -EINVAL);
	CHECK(filter_set_device(&chosen, "", problem) == -EINVAL &&
		      strstr(problem, "--device: invalid value ''"),
	      "%s", problem);
	CHECK(filter_set_cgroup(&chosen, "x", problem) == -EINVAL &&
		      strstr(problem, "expected a path such as /user.slice"),
	      "%s", problem);
	CHECK(filter_set_cgroup(&chosen, "/no such", problem) == -EINVAL &&
		      strstr(problem, "/no such: No such file"),
	      "%s", problem);
	CHECK(filter_set_kind(&chosen, "x", problem) == -EINVAL &&
		      strstr(problem, "--kind: unknown kind 'x': expected one of: ctx, "),
	      "%s", problem);
}

static void events(void)
{
	struct monitor_event event = { .time_ns = 1500000000,
				       .type = MONITOR_MADE,
				       .pid = GONE_PID,
				       .object = { .counter = KIND_qp,
						   .number = 17,
						   .subtype = 2,
						   .size = 64,
						   .size2 = 32 },
				       .device_name = "\033[1mrxe0",
				       .command = "\033[31m\"red\"" };

	print_begin();
	print_event(&event, false);
	print_end();
	CHECK(!strchr(text, '\033') && says("\\x1b[31m\"red\"") && is_moment(text, 24) &&
		      says("number 17, RC, send_wr 64, recv_wr 32\n"),
	      "%s", text);
	print_begin();
	print_event(&event, true);
	print_end();
	CHECK(says("{\"time\":\"") && is_moment(text + 9, 30) &&
		      says("Z\",\"event\":\"made\",\"pid\":2147483632,") &&
		      says("\"command\":\"\\u001B[31m\\\"red\\\"\"") &&
		      says("\"kind\":\"qp\",\"number\":17,\"type\":\"RC\",\"send_wr\":64,\"recv_wr\":32,") &&
		      says("\"cqe\":null,\"bytes\":null,\"kernel_type\":null}\n"),
	      "%s", text);
}

static void objects(void)
{
	const struct monitor_object object = { .counter = MONITOR_driver,
					       .type = 0x1003,
					       .made_ns = 2000000000 };

	row_make();
	print_begin();
	print_object(&object, &rows[1], false);
	print_end();
	CHECK(!strchr(text, '\033') && says("driver") && says("type 0x1003\n"), "%s", text);
	print_begin();
	print_object(&object, &rows[1], true);
	print_end();
	CHECK(says("{\"made\":\"") && is_moment(text + 9, 30) && says("\"type\":null") && says("\"kernel_type\":4099"), "%s",
	      text);
}

static bool is_name_of_many(const char *field)
{
	for (unsigned i = 0; i < MONITOR_COUNTERS; i++)
		if (!strcmp(monitor_counter_names[i], field))
			return true;
	for (unsigned i = 0; i < MONITOR_HOOKS; i++)
		if (!strcmp(monitor_hook_functions[i], field))
			return true;
	return false;
}

/* Each field of what was printed is in the users' reference. */
static void fields_compare(const char *reference)
{
	char field[64], named[70];

	for (const char *at = text; (at = strchr(at, '"'));) {
		size_t size = strcspn(at + 1, "\"");

		snprintf(field, sizeof(field), "%.*s", (int)size, at + 1);
		snprintf(named, sizeof(named), "`%s`", field);
		at += size + 2;
		if (*at == ':')
			CHECK(is_name_of_many(field) || strstr(reference, named), "%s", field);
	}
}

/* What was printed fits its schema, and would not with a field more. */
static void schema_compare(const char *source, const char *name)
{
	char directory[512], problem[SCHEMA_PROBLEM];
	json_t *document = json_loads(text, 0, NULL);

	snprintf(directory, sizeof(directory), "%s/docs/schemas", source ? source : ".");
	CHECK(document && schema_fits(directory, name, document, problem), "%s: %s", name, problem);
	json_object_set_new(document, "surprise", json_true());
	CHECK(!schema_fits(directory, name, document, problem), "%s", name);
	json_decref(document);
}

static void reference(void)
{
	const char *source = getenv("SOURCE_DIRECTORY");
	const struct monitor_event event = { .object = { .counter = KIND_cq } };
	static char document[65536];
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s/docs/json.md", source ? source : ".");
	file = fopen(path, "re");
	CHECK(file && fread(document, 1, sizeof(document) - 1, file) > 1000, "%s", path);
	if (file)
		fclose(file);
	memset(rows, 0, sizeof(rows));
	rows[1] = (struct monitor_row){ .generation = 1, .live = 1, .pid = GONE_PID };
	for (int by = 0; by < VIEW_BYS; by++) {
		view_print((enum view_by)by, true);
		fields_compare(document);
		schema_compare(source, "monitor-table");
	}
	print_begin();
	print_event(&event, true);
	print_end();
	fields_compare(document);
	schema_compare(source, "monitor-event");
	print_begin();
	print_object(&event.object, &rows[1], true);
	print_end();
	fields_compare(document);
	schema_compare(source, "monitor-object");
}

static void driver(void)
{
	RUN(tables);
	RUN(widths);
	RUN(filters);
	RUN(documents);
	RUN(every_kind);
	RUN(nobody);
	RUN(events);
	RUN(objects);
	RUN(reference);
	free(text);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
