/* SPDX-License-Identifier: MIT */
/*
 * The answer of a program: a sequence of parts that is printed as text as it
 * grows, or becomes one JSON document whose members are the parts with a key.
 */
#ifndef OUTPUT_PAGE_H
#define OUTPUT_PAGE_H

#include <stdbool.h>

#include "output/table.h"

struct page {
	const struct screen *screen;
	json_t *document; /* NULL: it is text */
	bool begun;	  /* some text is there */
};

void page_open(struct page *page, const struct screen *screen, bool json);

/* A part with the key NULL is for people only. */
void page_table(struct page *page, const char *key, const struct column *columns,
		const struct list *rows);
void page_record(struct page *page, const char *key, const struct column *columns, const void *row);
void page_sentence(struct page *page, const char *key, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Lines under a heading, for people only. */
void page_lines(struct page *page, const char *heading, const char *lines);

/* A part that is for programs only; takes the reference. */
void page_json(struct page *page, const char *key, json_t *value);

/* 0, for the caller to return. */
int page_end(struct page *page);

/* One JSON value on a line of its own, in ASCII; takes the reference. */
void page_json_line(json_t *value);

/* {"error": sentence}, on such a line. */
void page_json_error(const char *sentence);

#endif
