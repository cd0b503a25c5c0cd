/* SPDX-License-Identifier: MIT */
/*
 * A screen as cells in memory: what `top` draws, and what tests read. Knows neither a terminal nor
 * what is drawn.
 */
#ifndef CLI_CANVAS_H
#define CLI_CANVAS_H

#include <stdbool.h>
#include <stddef.h>
#include <wchar.h>

/* How a cell looks. The numbers are places in tables; CANVAS_SELECTED is added to one of them. */
enum canvas_style {
	CANVAS_PLAIN,
	CANVAS_BOLD,
	CANVAS_DIM,
	CANVAS_GOOD,
	CANVAS_WARNING,
	CANVAS_BAD,
	CANVAS_STYLES,
	CANVAS_SELECTED = 8,
};

struct canvas_cell {
	wchar_t character; /* 0: the second half of the wide character before it */
	unsigned style;
};

struct canvas {
	unsigned lines, columns;
	struct canvas_cell *cell;
};

/* Empty, in this size; canvas_free gives it back. What the canvas had is lost. */
void canvas_clear(struct canvas *canvas, unsigned lines, unsigned columns);
void canvas_free(struct canvas *canvas);

struct canvas_cell *canvas_at(const struct canvas *canvas, unsigned line, unsigned column);

/* Where something is put, and how. At most `width` columns are used, and what lies outside of the
 * canvas is left out. */
struct canvas_place {
	unsigned line, column, width;
	unsigned style;
	bool right; /* the text ends at the end of the width */
};

/* Puts a text of the locale's encoding, which must be printable (form_printable). A text that is
 * too long ends with '~'. Returns how many columns it took. */
unsigned canvas_put(struct canvas *canvas, const struct canvas_place *place, const char *text);

/* "[####    ]", as full as the part of the whole; more than the whole is full. */
void canvas_put_bar(struct canvas *canvas, const struct canvas_place *place, double part);

/* Adds the style to the cells of a line. */
void canvas_select(struct canvas *canvas, unsigned line);

/* Writes a line as text, without blanks at its end, into at most `size` bytes. */
void canvas_line_text(const struct canvas *canvas, unsigned line, char *ret_text, size_t size);

#endif
