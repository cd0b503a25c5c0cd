/* SPDX-License-Identifier: MIT */
/* Text that grows; see text.h. */
#include "dashboard/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/memory.h"

static void text_reserve(struct text *text, size_t more)
{
	size_t wanted = text->length + more;

	if (wanted <= text->size)
		return;
	text->size = wanted + wanted / 2 + 64;
	text->data = memory_need(realloc(text->data, text->size));
}

void text_append(struct text *text, const void *data, size_t length)
{
	if (!length)
		return;
	text_reserve(text, length);
	memcpy(text->data + text->length, data, length);
	text->length += length;
}

void text_add(struct text *text, const char *string)
{
	text_append(text, string, strlen(string));
}

void text_add_number(struct text *text, int64_t number)
{
	uint64_t rest = number < 0 ? -(uint64_t)number : (uint64_t)number;
	char digits[24], *at = digits + sizeof(digits);

	do
		*--at = (char)('0' + rest % 10);
	while (rest /= 10);
	if (number < 0)
		*--at = '-';
	text_append(text, at, (size_t)(digits + sizeof(digits) - at));
}

void text_print(struct text *text, const char *format, ...)
{
	va_list arguments;
	char *string;
	int length;

	va_start(arguments, format);
	length = vasprintf(&string, format, arguments);
	va_end(arguments);
	if (length < 0)
		memory_need(NULL);
	text_append(text, string, (size_t)length);
	free(string);
}

void text_free(struct text *text)
{
	free(text->data);
	*text = (struct text){ .data = NULL };
}

struct body *body_make(struct text *text)
{
	struct body *body = memory_need(malloc(sizeof(*body)));

	*body = (struct body){ .references = 1, .text = *text };
	*text = (struct text){ .data = NULL };
	return body;
}

struct body *body_hold(struct body *body)
{
	__atomic_add_fetch(&body->references, 1, __ATOMIC_RELAXED);
	return body;
}

void body_release(struct body *body)
{
	if (!body || __atomic_sub_fetch(&body->references, 1, __ATOMIC_ACQ_REL))
		return;
	text_free(&body->text);
	free(body);
}
