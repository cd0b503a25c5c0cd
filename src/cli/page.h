/* SPDX-License-Identifier: MIT */
/*
 * The answer of a subcommand: a sequence of parts that is printed as text as it
 * grows, or becomes one JSON document whose members are the parts with a key.
 */
#ifndef CLI_PAGE_H
#define CLI_PAGE_H

#include <jansson.h>
#include <stdbool.h>

#include "cli/table.h"

struct cli;

struct page {
	const struct screen *screen;
	json_t *document; /* NULL: it is text */
	bool begun;	  /* some text is there */
};

void page_begin(struct page *page, const struct cli *cli);

/* A part with the key NULL is for people only. */
void page_table(struct page *page, const char *key, const struct column *columns,
		const struct list *rows);
void page_record(struct page *page, const char *key, const struct column *columns, const void *row);
void page_sentence(struct page *page, const char *key, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* A part that is for programs only; takes the reference. */
void page_json(struct page *page, const char *key, json_t *value);

/* CLI_OK, for the caller to return. */
int page_end(struct page *page);

/* One JSON value on a line of its own; takes the reference. */
void page_json_line(json_t *value);

#endif
