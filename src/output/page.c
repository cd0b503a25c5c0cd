/* SPDX-License-Identifier: MIT */
/* The answer of a program, as text or as JSON; see page.h. */
#include "output/page.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/translation.h"
#include "output/form.h"
#include "output/memory.h"

void page_open(struct page *page, const struct screen *screen, bool json)
{
	*page = (struct page){
		.screen = screen,
		.document = json ? memory_need(json_object()) : NULL,
	};
}

/* Whether a part is to be printed; if so, apart from the one before. */
static bool page_begin_text(struct page *page)
{
	if (page->document)
		return false;
	if (page->begun)
		putchar('\n');
	page->begun = true;
	return true;
}

void page_json(struct page *page, const char *key, json_t *value)
{
	if (page->document && key)
		json_object_set_new(page->document, key, value);
	else
		json_decref(value);
}

void page_table(struct page *page, const char *key, const struct column *columns,
		const struct list *rows)
{
	if (page->document)
		page_json(page, key, table_json(columns, rows));
	else if (rows->count && page_begin_text(page))
		table_print(page->screen, columns, rows);
}

void page_record(struct page *page, const char *key, const struct column *columns, const void *row)
{
	if (page_begin_text(page))
		table_print_record(page->screen, columns, row);
	else
		page_json(page, key, table_json_record(columns, row));
}

void page_sentence(struct page *page, const char *key, const char *format, ...)
{
	va_list arguments;
	char *sentence, *printable;
	int length;

	va_start(arguments, format);
	length = vasprintf(&sentence, _(format), arguments);
	va_end(arguments);
	if (length < 0)
		memory_need(NULL);
	printable = form_printable(sentence, NULL);
	if (page_begin_text(page))
		puts(printable);
	else
		page_json(page, key, form_json_text(sentence));
	free(printable);
	free(sentence);
}

void page_lines(struct page *page, const char *heading, const char *lines)
{
	if (!page_begin_text(page))
		return;
	puts(_(heading));
	while (*lines) {
		size_t length = strcspn(lines, "\n");

		printf("  %.*s\n", (int)length, lines);
		lines += length + (lines[length] == '\n');
	}
}

void page_json_line(json_t *value)
{
	/* ASCII only: no text in it can steer a terminal. */
	json_dumpf(value, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
	putchar('\n');
	json_decref(value);
}

void page_json_error(const char *sentence)
{
	page_json_line(memory_need(json_pack("{s:o}", "error", form_json_text(sentence))));
}

int page_end(struct page *page)
{
	if (page->document)
		page_json_line(page->document);
	return 0;
}
