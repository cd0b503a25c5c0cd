/* SPDX-License-Identifier: MIT */
/*
 * Names may be any bytes. How they are shown to people and in JSON, by the room that both programs
 * print with; cli.sh and print.c hold the programs against the same rule.
 */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/translation.h"
#include "harness.h"
#include "output/form.h"
#include "output/memory.h"
#include "output/table.h"

static const struct {
	const char *name, *shown, *json;
} names[] = {
	{ "plain", "plain", "\"plain\"" },
	{ "\033[31m\"red\"", "\\x1b[31m\"red\"", "\"\\u001B[31m\\\"red\\\"\"" },
	{ "two\nlines\t", "two\\x0alines\\x09", "\"two\\nlines\\t\"" },
	{ "del\x7f", "del\\x7f", "\"del\x7f\"" },
	{ "gr\xc3\xb6\xc3\x9f" "e", "gr\xc3\xb6\xc3\x9f" "e", "\"gr\\u00F6\\u00DFe\"" },
	{ "\xe2\x80\xaeturned", "\\xe2\\x80\\xaeturned", "\"\\u202Eturned\"" },
	{ "\xff", "\\xff", "\"\\uFFFD\"" },
};

static void rules(void)
{
	setlocale(LC_CTYPE, "C.UTF-8");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char *shown = form_printable(names[i].name, NULL);
		json_t *value = form_json_text(names[i].name);
		char *json = memory_need(json_dumps(value, JSON_ENSURE_ASCII | JSON_ENCODE_ANY));

		CHECK(!strcmp(shown, names[i].shown), "name %zu: %s", i, shown);
		CHECK(!strcasecmp(json, names[i].json), "name %zu: %s", i, json);
		free(shown);
		free(json);
		json_decref(value);
	}
	CHECK(json_is_null(form_json_text("")) && json_is_null(form_json_text(NULL)));
}

static void bytes(void)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} sizes[] = {
		{ 0, "0" },
		{ 1023, "1023" },
		{ 1024, "1K" },
		{ 1536, "1.5K" },
		{ (1 << 20) - 1, "1M" },
		{ 3ull << 30, "3G" },
		{ 1ull << 60, "1048576T" },
	};
	char text[BYTES_TEXT];

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		CHECK(!strcmp(bytes_text(sizes[i].bytes, text), sizes[i].text), "%s",
		      bytes_text(sizes[i].bytes, text));
}

/* ---- titles in another language */

struct line {
	const char *name;
	uint64_t count;
	const char *text;
};

static const struct column columns[] = {
	COLUMN(struct line, name, "name", "name", form_string),
	COLUMN(struct line, count, "count", "count", form_count),
	COLUMN(struct line, text, "text", "text", form_message),
	COLUMNS_END,
};

static char *chinese(const char *text)
{
	return (char *)(!strcmp(text, "name")  ? "\u540d\u79f0" :
			!strcmp(text, "count") ? "\u6570" :
			!strcmp(text, "yes")   ? "\u662f" :
						 text);
}

/* What is printed by the function, in a static buffer. */
static const char *printed(void (*print)(const struct screen *screen, const struct list *rows),
			   const struct list *rows)
{
	static char text[512];
	FILE *before = stdout;

	memset(text, 0, sizeof(text));
	stdout = fmemopen(text, sizeof(text), "w");
	print(&(const struct screen){ .width = 0 }, rows);
	fclose(stdout);
	stdout = before;
	return text;
}

static void print_as_table(const struct screen *screen, const struct list *rows)
{
	table_print(screen, columns, rows);
}

static void print_as_record(const struct screen *screen, const struct list *rows)
{
	table_print_record(screen, columns, rows->row);
}

/* Columns are aligned by what a terminal shows, where a Chinese character takes two. */
static void titles(void)
{
	struct line lines[] = { { "a", 12345, "yes" }, { "\u79df\u6237-long", 7, "no" } };
	const struct list rows = { lines, 2, sizeof(lines[0]) };
	json_t *json;

	setlocale(LC_CTYPE, "C.UTF-8");
	CHECK(!strcmp(printed(print_as_table, &rows), "NAME       COUNT  TEXT\n"
						      "a          12345  yes\n"
						      "\u79df\u6237-long      7  no\n"),
	      "%s", printed(print_as_table, &rows));
	translation_use(chinese);
	CHECK(!strcmp(printed(print_as_table, &rows), "\u540d\u79f0          \u6570  TEXT\n"
						      "a          12345  \u662f\n"
						      "\u79df\u6237-long      7  no\n"),
	      "%s", printed(print_as_table, &rows));
	CHECK(!strcmp(printed(print_as_record, &rows), "\u540d\u79f0  a\n"
						       "\u6570    12345\n"
						       "text  \u662f\n"),
	      "%s", printed(print_as_record, &rows));
	json = table_json_record(columns, &lines[0]);
	CHECK(!strcmp(json_string_value(json_object_get(json, "text")), "yes"));
	json_decref(json);
	CHECK(!strcmp(translated(""), "") && !strcmp(translated("name"), "\u540d\u79f0"));
	translation_use(NULL);
	CHECK(!strcmp(translated("name"), "name"));
}

/* A table that does not fit: texts are cut, then columns are left out, then it is a list. */
struct narrow_row {
	char name[40], path[40];
	uint64_t count;
};

static const char *narrow(unsigned width)
{
	static const struct column narrow_columns[] = {
		COLUMN(struct narrow_row, name, NULL, "name", form_text),
		COLUMN(struct narrow_row, path, NULL, "path", form_text, .shrinks = 8),
		COLUMN(struct narrow_row, count, NULL, "count", form_count, .rank = 1),
		COLUMNS_END,
	};
	struct narrow_row row = { "ab", "/one/two/three/gr\xc3\xb6\xc3\x9f" "e", 7 };
	const struct list rows = { &row, 1, sizeof(row) };
	static char text[512];
	FILE *kept = stdout;

	memset(text, 0, sizeof(text));
	stdout = fmemopen(text, sizeof(text) - 1, "w");
	table_print(&(struct screen){ .width = width }, narrow_columns, &rows);
	fclose(stdout);
	stdout = kept;
	return text;
}

static void narrow_tables(void)
{
	static const struct {
		unsigned width;
		const char *text;
	} cases[] = {
		{ 0, "NAME  PATH                  COUNT\nab    /one/two/three/gr\xc3\xb6\xc3\x9f" "e      7\n" },
		{ 33, "NAME  PATH                  COUNT\nab    /one/two/three/gr\xc3\xb6\xc3\x9f" "e      7\n" },
		{ 25, "NAME  PATH          COUNT\nab    ..hree/gr\xc3\xb6\xc3\x9f" "e      7\n" },
		{ 21, "NAME  PATH      COUNT\nab    ../gr\xc3\xb6\xc3\x9f" "e      7\n" },
		{ 20, "NAME  PATH\nab    ../three/gr\xc3\xb6\xc3\x9f" "e\n" },
		{ 5, "name   ab\npath   /one/two/three/gr\xc3\xb6\xc3\x9f" "e\ncount  7\n" },
	};

	setlocale(LC_CTYPE, "C.UTF-8");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		CHECK(!strcmp(narrow(cases[i].width), cases[i].text), "width %u:\n%s", cases[i].width,
		      narrow(cases[i].width));
}

static void driver(void)
{
	RUN(rules);
	RUN(narrow_tables);
	RUN(bytes);
	RUN(titles);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
