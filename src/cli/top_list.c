/* SPDX-License-Identifier: MIT */
/*
 * The list of tenants or processes: which columns fit, and their cells. What is said of an owner
 * comes from the columns of view/owner.h; this file adds the bar and what happens in a second.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/translation.h"
#include "cli/top_layout.h"
#include "output/memory.h"
#include "view/owner.h"

/* One column of the list. Those with the lowest rank are left out first where it is narrow. */
struct top_column {
	const char *title;
	const struct column *column; /* of the view; otherwise: */
	void (*show)(const struct top *top, const struct top_line *line,
		     const struct owner *owner, struct cell *ret_cell);
	int kind;      /* the cell is the share of this kind; otherwise -1 */
	bool bar;      /* with a bar before it */
	bool optional; /* left out where no row has a text */
	bool right;
	unsigned rank;
	unsigned width; /* 0: left out */
};

enum {
	TOP_COLUMNS = KIND_COUNT + 16,
	NAME_WIDTH = 24, /* the most of a text */
	COLUMN_GAP = 2,
	RANK_ALWAYS = 1000,
};

/* Columns of the view that a narrow screen does without, the first one first. */
static const char *const dispensable[] = { "uid", "mode", "tenant", "procs" };

unsigned top_style(const char *colour)
{
	static const struct {
		const char *colour;
		unsigned style;
	} styles[] = { { COLOUR_BAD, CANVAS_BAD },
		       { COLOUR_WARNING, CANVAS_WARNING },
		       { COLOUR_GOOD, CANVAS_GOOD } };

	for (unsigned i = 0; colour && i < sizeof(styles) / sizeof(styles[0]); i++)
		if (!strcmp(colour, styles[i].colour))
			return styles[i].style;
	return CANVAS_PLAIN;
}

static void rate_cell(struct cell *ret_cell, const char *colour, double rate)
{
	if (rate == 0)
		cell_print(ret_cell, NULL, "%s", "");
	else
		cell_print(ret_cell, colour, rate >= 100 || rate <= -100 ? "%.0f" : "%.1f", rate);
}

static void top_refused_show(const struct top *top, const struct top_line *line,
			 const struct owner *owner, struct cell *ret_cell)
{
	cell_print(ret_cell, line->refused ? COLOUR_WARNING : NULL, "%llu",
		   (unsigned long long)line->refused);
}

static void refused_rate_show(const struct top *top, const struct top_line *line,
			      const struct owner *owner, struct cell *ret_cell)
{
	rate_cell(ret_cell, COLOUR_BAD, line->refused_rate);
}

static void growth_show(const struct top *top, const struct top_line *line,
			const struct owner *owner, struct cell *ret_cell)
{
	struct amount amount = { (uint64_t)(line->growth < 0 ? -line->growth : line->growth),
				 &kind_rows[top->kind] };
	char text[AMOUNT_TEXT];

	if (amount.kind->unit == UNIT_BYTES && amount.value)
		cell_print(ret_cell, NULL, "%c%s", line->growth < 0 ? '-' : '+',
			   amount_text(&amount, text));
	else
		rate_cell(ret_cell, NULL, line->growth);
}

static unsigned column_rank(const struct column *column)
{
	for (unsigned i = 0; i < sizeof(dispensable) / sizeof(dispensable[0]); i++)
		if (!strcmp(dispensable[i], column->title))
			return 100 + i;
	return RANK_ALWAYS;
}

/* The columns of the view are those that are no shares: before the bar, but for the last one. */
static unsigned columns_choose(const struct top *top, struct top_column *columns)
{
	const struct column *of_view = top->level == TOP_TENANTS ? tenant_columns :
								   process_columns;
	const struct column *state = NULL;
	unsigned count = 0;

	for (; of_view->key || of_view->title; of_view++) {
		/* Names of users would have to be looked up again and again. */
		if (!of_view->title || !strcmp(of_view->title, "user"))
			continue;
		if (!strcmp(of_view->title, "state"))
			state = of_view;
		else
			columns[count++] = (struct top_column){ .title = of_view->title,
								.column = of_view,
								.kind = -1,
								.right = of_view->form->right,
								.rank = column_rank(of_view) };
	}
	columns[count++] = (struct top_column){ .title = kind_rows[top->kind].name,
						.kind = (int)top->kind,
						.bar = true,
						.right = true,
						.rank = RANK_ALWAYS };
	columns[count++] = (struct top_column){ .title = N_("growth/s"),
						.show = growth_show,
						.kind = -1,
						.right = true,
						.rank = 50 };
	columns[count++] = (struct top_column){ .title = N_("refused"),
						.show = top_refused_show,
						.kind = -1,
						.right = true,
						.rank = RANK_ALWAYS };
	columns[count++] = (struct top_column){ .title = "/s",
						.show = refused_rate_show,
						.kind = -1,
						.right = true,
						.rank = 200 };
	for (int kind = 0; kind < KIND_COUNT; kind++)
		if (kind != (int)top->kind)
			columns[count++] = (struct top_column){ .title = kind_rows[kind].name,
								.kind = kind,
								.optional = true,
								.right = true,
								.rank = KIND_COUNT -
									(unsigned)kind };
	if (state)
		columns[count++] = (struct top_column){ .title = state->title,
							.column = state,
							.kind = -1,
							.optional = true,
							.rank = RANK_ALWAYS };
	return count;
}

static void top_cell_show(const struct top *top, const struct top_column *column,
		      const struct top_line *line, const struct owner *owner, struct cell *ret_cell)
{
	if (column->show)
		column->show(top, line, owner, ret_cell);
	else if (column->column)
		column->column->form->show(column->column->form,
					   (const char *)owner + column->column->offset, ret_cell);
	else if (column->bar || share_matters(&owner->share[column->kind]))
		form_share.show(&form_share, &owner->share[column->kind], ret_cell);
	else
		cell_print(ret_cell, NULL, "%s", "");
}

/* Leaves columns out until the rest fits. */
static void columns_fit(struct top_column *columns, unsigned count, unsigned room)
{
	for (;;) {
		struct top_column *least = NULL;
		unsigned total = 0;

		for (unsigned i = 0; i < count; i++) {
			struct top_column *column = &columns[i];

			if (!column->width)
				continue;
			total += (total ? COLUMN_GAP : 0) + column->width +
				 (column->bar ? TOP_BAR + 1 : 0);
			if (column->rank < RANK_ALWAYS && (!least || column->rank < least->rank))
				least = column;
		}
		if (total <= room || !least)
			return;
		least->width = 0;
	}
}

static void titles_draw(struct canvas *canvas, unsigned line, const struct top_column *columns,
			unsigned count)
{
	struct canvas_place place = { .line = line, .style = CANVAS_BOLD };
	char title[NAME_SIZE];

	for (unsigned i = 0; i < count; i++) {
		const struct top_column *column = &columns[i];
		const char *text = _(column->title);
		size_t at;

		if (!column->width)
			continue;
		for (at = 0; text[at] && at + 1 < sizeof(title); at++)
			title[at] = (char)(text[at] >= 'a' && text[at] <= 'z' ? text[at] - 'a' + 'A' :
										text[at]);
		title[at] = '\0';
		place.width = column->width + (column->bar ? TOP_BAR + 1 : 0);
		place.right = column->right;
		canvas_put(canvas, &place, title);
		place.column += place.width + COLUMN_GAP;
	}
}

static double share_part(const struct proto_row *row, int kind)
{
	uint64_t limit = row->limit[kind];

	return limit == UNLIMITED ? -1 : limit ? (double)row->used[kind] / (double)limit :
				    row->used[kind] ? 1 : 0;
}

/* A bar in the colour of its cell: green, if that has none. */
static void bar_draw(struct canvas *canvas, struct canvas_place place, const struct cell *cell,
		     double part)
{
	place.style = top_style(cell->colour);
	place.style = place.style ? place.style : CANVAS_GOOD;
	place.width = TOP_BAR;
	if (part >= 0)
		canvas_put_bar(canvas, &place, part);
}

static void line_draw(const struct top_line *line, struct canvas *canvas, unsigned at,
		      const struct top_column *columns, unsigned count, const struct cell *cells)
{
	struct canvas_place place = { .line = at };

	for (unsigned i = 0; i < count; i++) {
		const struct top_column *column = &columns[i];

		if (!column->width)
			continue;
		if (column->bar) {
			bar_draw(canvas, place, &cells[i], share_part(line->row, column->kind));
			place.column += TOP_BAR + 1;
		}
		place.width = column->width;
		place.right = column->right;
		place.style = top_style(cells[i].colour);
		canvas_put(canvas, &place, cells[i].text);
		place.column += column->width + COLUMN_GAP;
	}
}

/* The widths that titles and cells need. */
static void columns_measure(struct top_column *columns, unsigned count, const struct cell *cells,
			    unsigned lines)
{
	for (unsigned i = 0; i < count; i++) {
		unsigned width = 0, title = form_width(_(columns[i].title));

		for (unsigned line = 0; line < lines; line++)
			if (width < cells[(size_t)line * count + i].width)
				width = cells[(size_t)line * count + i].width;
		if (!width && columns[i].optional)
			continue;
		width = width < title ? title : width;
		columns[i].width = width > NAME_WIDTH && !columns[i].right ? NAME_WIDTH : width;
	}
}

void top_list_draw(struct top *top, struct canvas *canvas, unsigned from, unsigned end)
{
	struct top_column columns[TOP_COLUMNS];
	unsigned count = columns_choose(top, columns);
	size_t shown = top->lines.count - top->first;
	unsigned lines = end > from + 1 ? end - from - 1 : 0;
	struct cell *cells;

	lines = shown < lines ? (unsigned)shown : lines;
	cells = memory_need(calloc((size_t)lines * count + 1, sizeof(*cells)));
	for (unsigned i = 0; i < lines; i++) {
		const struct top_line *line = list_at(&top->lines, top->first + i);
		struct owner owner;

		owner_read(&owner, line->row);
		for (unsigned j = 0; j < count; j++)
			top_cell_show(top, &columns[j], line, &owner, &cells[(size_t)i * count + j]);
	}
	columns_measure(columns, count, cells, lines);
	columns_fit(columns, count, canvas->columns);
	titles_draw(canvas, from, columns, count);
	for (unsigned i = 0; i < lines; i++) {
		line_draw(list_at(&top->lines, top->first + i), canvas, from + 1 + i, columns,
			  count, &cells[(size_t)i * count]);
		if (!top->plain && top->first + i == top->cursor)
			canvas_select(canvas, from + 1 + i);
	}
	for (size_t i = 0; i < (size_t)lines * count; i++)
		free(cells[i].text);
	free(cells);
}

void top_shares_draw(const struct top *top, struct canvas *canvas, unsigned line,
		     const struct proto_row *row)
{
	struct canvas_place place = { .line = line };
	char text[160], name[NAME_SIZE + 8];
	struct owner owner;

	owner_read(&owner, row);
	if (row->scope == ROW_TENANT)
		snprintf(name, sizeof(name), _("tenant %s"), row->tenant);
	else
		snprintf(name, sizeof(name), "%s", _("host"));
	for (int i = -2; i < KIND_COUNT; i++) {
		int kind = i < 0 ? (int)top->kind : i;
		struct cell cell = { .text = NULL };
		char *printable;

		if (i == -2) {
			printable = form_printable(name, NULL);
			place.width = NAME_WIDTH + 8;
			place.style = CANVAS_BOLD;
			place.column += canvas_put(canvas, &place, printable) + COLUMN_GAP;
			free(printable);
			continue;
		}
		if (i >= 0 && (i == (int)top->kind || !share_matters(&owner.share[kind])))
			continue;
		form_share.show(&form_share, &owner.share[kind], &cell);
		snprintf(text, sizeof(text), "%s %s", kind_rows[kind].name, cell.text);
		place.width = (unsigned)strlen(text);
		place.style = top_style(cell.colour);
		if (place.column + place.width <= canvas->columns)
			place.column += canvas_put(canvas, &place, text) + COLUMN_GAP;
		if (i < 0 && share_part(row, kind) >= 0) {
			place.column--;
			bar_draw(canvas, place, &cell, share_part(row, kind));
			place.column += TOP_BAR + COLUMN_GAP;
		}
		free(cell.text);
	}
}
