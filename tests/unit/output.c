/* SPDX-License-Identifier: MIT */
/*
 * Names may be any bytes. How they are shown to people and in JSON, by the room that both programs
 * print with; cli.sh and print.c hold the programs against the same rule.
 */
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "output/form.h"
#include "output/memory.h"

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

static void driver(void)
{
	RUN(rules);
	RUN(bytes);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
