/* SPDX-License-Identifier: MIT */
/* The parts of a screen of `top`: the list of owners, and text that is moved as a whole. */
#ifndef CLI_TOP_LAYOUT_H
#define CLI_TOP_LAYOUT_H

#include "cli/top_model.h"
#include "output/form.h"

/* A line of details or help. A bar is drawn where its column says, if that is not 0. */
struct top_text {
	char text[240];
	unsigned style;
	unsigned bar; /* column */
	double part;
};

enum { TOP_BAR = 12 }; /* columns of a bar, with its ends */

/* What one process has and tells, or the keys, into top->text. */
void top_details_fill(struct top *top);
void top_help_fill(struct top *top);

/* The style that belongs to a colour of output/form.h. */
unsigned top_style(const char *colour);

/* The lines from `from` to before `end`: rows with their titles. */
void top_list_draw(struct top *top, struct canvas *canvas, unsigned from, unsigned end);

/* "name used/limit" of each kind that matters to the row, after the bar of the chosen one. */
void top_shares_draw(const struct top *top, struct canvas *canvas, unsigned line,
		     const struct proto_row *row);

#endif
