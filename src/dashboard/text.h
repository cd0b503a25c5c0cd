/* SPDX-License-Identifier: MIT */
/* Text that grows, and bodies: finished texts that several answers share. */
#ifndef DASHBOARD_TEXT_H
#define DASHBOARD_TEXT_H

#include <stddef.h>
#include <stdint.h>

struct text {
	char *data; /* no NUL at its end; NULL while it is empty */
	size_t length;
	size_t size;
};

void text_append(struct text *text, const void *data, size_t length);
void text_add(struct text *text, const char *string);
void text_add_number(struct text *text, int64_t number);
void text_print(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_free(struct text *text);

struct body {
	unsigned references; /* atomically */
	struct text text;
};

/* A body with one reference; takes the text. */
struct body *body_make(struct text *text);
struct body *body_hold(struct body *body);
void body_release(struct body *body); /* NULL is allowed */

#endif
