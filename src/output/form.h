/* SPDX-License-Identifier: MIT */
/*
 * How one field is shown: to people as a cell of text, to programs as JSON. A
 * form knows the type of the field it is pointed at and nothing of where the
 * field stands; columns (table.h) say that.
 */
#ifndef OUTPUT_FORM_H
#define OUTPUT_FORM_H

#include <stdbool.h>
#include <stdint.h>

#include "output/json.h"

#define COLOUR_BAD "\033[31m"
#define COLOUR_WARNING "\033[33m"
#define COLOUR_GOOD "\033[32m"
#define COLOUR_END "\033[m"

struct cell {
	char *text; /* printable: safe for a terminal */
	unsigned width;
	const char *colour; /* NULL for none */
};

void cell_print(struct cell *ret_cell, const char *colour, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* A copy of the text in which everything that could steer a terminal is written as \xNN. */
char *form_printable(const char *text, unsigned *ret_width);

/* How many columns of a terminal the text takes. */
unsigned form_width(const char *text);

/* A JSON string of any bytes: those that are not UTF-8 become U+FFFD; null for NULL and "". */
json_t *form_json_text(const char *text);

/* A JSON number that is not negative; above 2^63-1 it is that. */
json_t *form_json_number(uint64_t value);

struct form {
	void (*show)(const struct form *form, const void *field, struct cell *ret_cell);
	json_t *(*json)(const struct form *form, const void *field);
	bool right;	     /* numbers stand at the right of their column */
	const char *nothing; /* what stands for an empty text */
	const char *const *names;
	unsigned count; /* of the names */
	uint32_t loud;	/* bits of a set that stand out */
};

/* A number of bytes as people write it: "12", "1.5G". */
enum { BYTES_TEXT = 24 };
const char *bytes_text(uint64_t bytes, char ret_text[BYTES_TEXT]);

extern const struct form form_text;    /* char[] */
extern const struct form form_text_or_blank; /* char[], nothing is shown for "" */
extern const struct form form_string;  /* const char * */
extern const struct form form_message; /* const char *, in the language of the reader */
extern const struct form form_words;   /* const char *, words with spaces between */
extern const struct form form_count;   /* uint64_t */
extern const struct form form_number;  /* uint32_t */
extern const struct form form_pid;     /* int32_t, 0 if there is none */
extern const struct form form_flag;    /* uint32_t, zero or not */
extern const struct form form_seconds; /* uint64_t */
extern const struct form form_time;    /* uint64_t, ns since 1970 */

/* For forms of other files: texts with something else for nothing, */
void form_text_show(const struct form *form, const void *field, struct cell *ret_cell);
json_t *form_text_json(const struct form *form, const void *field);
void form_string_show(const struct form *form, const void *field, struct cell *ret_cell);

/* a uint32_t that is a place in names, and one whose bits are; those without a name are not
 * spoken of. */
void form_name_show(const struct form *form, const void *field, struct cell *ret_cell);
json_t *form_name_json(const struct form *form, const void *field);
void form_set_show(const struct form *form, const void *field, struct cell *ret_cell);
json_t *form_set_json(const struct form *form, const void *field);

#endif
