/* SPDX-License-Identifier: MIT */
/*
 * What rdma_monitor prints of rows, objects and events whose names are of a process's or a driver's
 * making: by the rule of output.c, as text and as JSON, and with all fields.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "monitor/tool/print.h"

enum { GONE_PID = 0x7ffffff0 }; /* a pid that no process has */

static struct monitor_head head = { .mode = MONITOR_KPROBE, .seeded_ns = 1 };
static struct monitor_row rows[MONITOR_ROWS];
static const struct monitor_reader reader = { &head, rows };

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
	struct view *view = view_new(by);

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
		CHECK(says("1.5K") && says(" ? ") && says("MADE/S"), "%s", text);
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
	CHECK(!strchr(text, '\033') && says("\\x1b[31m\"red\"") && says("1.500000") &&
		      says("number 17, RC, send_wr 64, recv_wr 32\n"),
	      "%s", text);
	print_begin();
	print_event(&event, true);
	print_end();
	CHECK(says("{\"time\":1.5,\"event\":\"made\",\"pid\":2147483632,") &&
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
	CHECK(says("{\"made\":2.0,") && says("\"type\":null") && says("\"kernel_type\":4099"), "%s",
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
	}
	print_begin();
	print_event(&event, true);
	print_object(&event.object, &rows[1], true);
	print_end();
	fields_compare(document);
}

static void driver(void)
{
	RUN(tables);
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
