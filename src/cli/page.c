/* SPDX-License-Identifier: MIT */
/* The answer of a subcommand, as text or as JSON; see page.h. */
#include "cli/page.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "cli/form.h"

void page_begin(struct page *page, const struct cli *cli)
{
	*page = (struct page){
		.screen = &cli->screen,
		.document = cli->options.json.count ? cli_memory(json_object()) : NULL,
	};
}

/* Whether a part is to be printed; if so, apart from the one before. */
static bool begin_text(struct page *page)
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
	else if (rows->count && begin_text(page))
		table_print(page->screen, columns, rows);
}

void page_record(struct page *page, const char *key, const struct column *columns, const void *row)
{
	if (begin_text(page))
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
	length = vasprintf(&sentence, format, arguments);
	va_end(arguments);
	if (length < 0)
		cli_memory(NULL);
	printable = form_printable(sentence, NULL);
	if (begin_text(page))
		puts(printable);
	else
		page_json(page, key, form_json_text(sentence));
	free(printable);
	free(sentence);
}

void page_json_line(json_t *value)
{
	/* ASCII only: no text in it can steer a terminal. */
	json_dumpf(value, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
	putchar('\n');
	json_decref(value);
}

int page_end(struct page *page)
{
	if (page->document)
		page_json_line(page->document);
	return CLI_OK;
}
