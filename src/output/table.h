/* SPDX-License-Identifier: MIT */
/*
 * Rows and the columns that describe them. One description serves the table for
 * people, the list "title value" for a single row, and JSON; so each field is
 * written down once. Knows forms, not what the rows are about.
 */
#ifndef OUTPUT_TABLE_H
#define OUTPUT_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "output/json.h"

struct form;

struct column {
	const char *key;   /* in JSON; NULL: for people only. Neither key nor title: the end */
	const char *title; /* for people, in their language; NULL: in JSON only */
	const struct form *form;
	size_t offset;	/* of the field in the row */
	unsigned least; /* width, for tables whose rows are not known beforehand */
	bool flows;	/* long text at the end of a line, which may run over its end */
	/* Where a table does not fit: */
	unsigned shrinks; /* texts may be cut at their beginning to this width; 0: they may not */
	unsigned rank;	  /* the column with the highest rank is left out first; 0: it stays */
};

/* COLUMN(struct, field, key, title, form, further members); arrays end with COLUMNS_END. */
#define COLUMN(type, field, key_, title_, form_, ...)                                              \
	{ .key = key_, .title = title_, .form = &form_, .offset = offsetof(type, field), __VA_ARGS__ }
#define COLUMNS_END { .key = NULL, .title = NULL }

/* Rows of one size, one after the other. */
struct list {
	void *row;
	size_t count;
	size_t size;
};

/* A further row, all zero. */
void *list_add(struct list *list);
void *list_at(const struct list *list, size_t index);

/* Adds columns to a list of struct column, their fields further into the row. */
void columns_append(struct list *columns, const struct column *more, size_t offset);

struct screen {
	bool colour;
	unsigned width; /* 0: as wide as need be */
};

/* Columns without a text in any row are left out. Where the others do not fit, texts that may be
 * are cut, then columns with a rank are left out; and if that is not enough, each row becomes a list
 * of its fields. */
void table_print(const struct screen *screen, const struct column *columns,
		 const struct list *rows);

/* One row in the least widths (every column shown must have one), without titles: for rows
 * that come one by one. */
void table_print_line(const struct screen *screen, const struct column *columns, const void *row);

void table_print_record(const struct screen *screen, const struct column *columns, const void *row);

json_t *table_json(const struct column *columns, const struct list *rows);
json_t *table_json_record(const struct column *columns, const void *row);

#endif
