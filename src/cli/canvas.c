/* SPDX-License-Identifier: MIT */
/* A screen as cells in memory; see canvas.h. */
#include "cli/canvas.h"

#include <stdlib.h>
#include <string.h>

#include "output/memory.h"

void canvas_clear(struct canvas *canvas, unsigned lines, unsigned columns)
{
	size_t count = (size_t)lines * columns;

	if (canvas->lines != lines || canvas->columns != columns || !canvas->cell) {
		free(canvas->cell);
		canvas->cell = memory_need(calloc(count + 1, sizeof(*canvas->cell)));
		canvas->lines = lines;
		canvas->columns = columns;
	}
	for (size_t i = 0; i < count; i++)
		canvas->cell[i] = (struct canvas_cell){ L' ', CANVAS_PLAIN };
}

void canvas_free(struct canvas *canvas)
{
	free(canvas->cell);
	*canvas = (struct canvas){ .lines = 0 };
}

struct canvas_cell *canvas_at(const struct canvas *canvas, unsigned line, unsigned column)
{
	return &canvas->cell[(size_t)line * canvas->columns + column];
}

/* One character of the text: its length in bytes and in columns. What cannot be shown is '?'. */
static size_t character_read(const char *text, mbstate_t *state, wchar_t *ret_character,
			     unsigned *ret_width)
{
	size_t length = mbrtowc(ret_character, text, MB_CUR_MAX, state);
	int width;

	if (length == 0 || length > MB_CUR_MAX) {
		memset(state, 0, sizeof(*state));
		*ret_character = L'?';
		length = 1;
	}
	width = wcwidth(*ret_character);
	if (width < 1) {
		*ret_character = L'?';
		width = 1;
	}
	*ret_width = (unsigned)width;
	return length;
}

static unsigned text_columns(const char *text)
{
	mbstate_t state = { 0 };
	unsigned columns = 0, width;
	wchar_t character;

	for (; *text; columns += width)
		text += character_read(text, &state, &character, &width);
	return columns;
}

unsigned canvas_put(struct canvas *canvas, const struct canvas_place *place, const char *text)
{
	unsigned needed = text_columns(text), room = place->width, at = place->column, width;
	mbstate_t state = { 0 };
	wchar_t character;
	unsigned end;

	if (place->line >= canvas->lines || place->column >= canvas->columns)
		return 0;
	if (room > canvas->columns - place->column)
		room = canvas->columns - place->column;
	end = at + room;
	if (place->right && needed < room)
		at += room - needed;
	while (*text) {
		text += character_read(text, &state, &character, &width);
		if (at + width > end || (needed > room && at + width > end - 1)) {
			if (at < end)
				*canvas_at(canvas, place->line, at++) =
					(struct canvas_cell){ L'~', place->style };
			break;
		}
		*canvas_at(canvas, place->line, at) =
			(struct canvas_cell){ character, place->style };
		if (width == 2)
			*canvas_at(canvas, place->line, at + 1) =
				(struct canvas_cell){ L'\0', place->style };
		at += width;
	}
	return at - place->column;
}

/* A full cell, or the part of one in eighths where the locale has such characters. */
static wchar_t bar_character(unsigned eighths)
{
	static const wchar_t blocks[] = { L' ',	  L'\u258f', L'\u258e', L'\u258d', L'\u258c',
					  L'\u258b', L'\u258a', L'\u2589', L'\u2588' };

	if (MB_CUR_MAX > 1)
		return blocks[eighths > 8 ? 8 : eighths];
	return eighths >= 4 ? L'#' : L' ';
}

void canvas_put_bar(struct canvas *canvas, const struct canvas_place *place, double part)
{
	unsigned inside = place->width - 2, eighths;

	if (place->width < 3 || place->line >= canvas->lines ||
	    place->column + place->width > canvas->columns)
		return;
	part = part > 1 ? 1 : part > 0 ? part : 0;
	eighths = (unsigned)(part * inside * 8 + 0.5);
	/* The least use is seen, and full looks full only if it is. */
	if (part > 0 && !eighths)
		eighths = 1;
	if (part < 1 && eighths == inside * 8)
		eighths--;
	*canvas_at(canvas, place->line, place->column) = (struct canvas_cell){ L'[', CANVAS_DIM };
	for (unsigned i = 0; i < inside; i++)
		*canvas_at(canvas, place->line, place->column + 1 + i) = (struct canvas_cell){
			bar_character(eighths > i * 8 ? eighths - i * 8 : 0), place->style
		};
	*canvas_at(canvas, place->line, place->column + place->width - 1) =
		(struct canvas_cell){ L']', CANVAS_DIM };
}

void canvas_select(struct canvas *canvas, unsigned line)
{
	for (unsigned column = 0; line < canvas->lines && column < canvas->columns; column++)
		canvas_at(canvas, line, column)->style |= CANVAS_SELECTED;
}

void canvas_line_text(const struct canvas *canvas, unsigned line, char *ret_text, size_t size)
{
	mbstate_t state = { 0 };
	size_t length = 0, end = 0;

	for (unsigned column = 0; column < canvas->columns; column++) {
		wchar_t character = canvas_at(canvas, line, column)->character;
		char bytes[16];
		size_t more;

		if (!character)
			continue;
		more = wcrtomb(bytes, character, &state);
		if (more > sizeof(bytes) || length + more >= size)
			continue;
		memcpy(ret_text + length, bytes, more);
		length += more;
		if (character != L' ')
			end = length;
	}
	ret_text[end] = '\0';
}
