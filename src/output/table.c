/* SPDX-License-Identifier: MIT */
/* Tables, records and JSON from rows and their columns; see table.h. */
#include "output/table.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/translation.h"
#include "output/form.h"
#include "output/memory.h"

enum { GAP = 2 }; /* between columns */

/* ---- lists */

void *list_add(struct list *list)
{
	/* Room is doubled whenever the count has reached a power of two. */
	if ((list->count & (list->count - 1)) == 0)
		list->row = memory_need(
			reallocarray(list->row, list->count ? 2 * list->count : 1, list->size));
	list->count++;
	return memset(list_at(list, list->count - 1), 0, list->size);
}

void *list_at(const struct list *list, size_t index)
{
	return (char *)list->row + index * list->size;
}

static bool is_end(const struct column *column)
{
	return !column->key && !column->title;
}

void columns_append(struct list *columns, const struct column *more, size_t offset)
{
	for (; !is_end(more); more++) {
		struct column *column = list_add(columns);

		*column = *more;
		column->offset += offset;
	}
}

/* ---- text */

/* The rows as people see them: columns with a title, and a cell for each of them in each row. */
struct grid {
	struct list columns;
	size_t rows;
	struct cell *cells;
	unsigned *widths; /* 0: the column is left out */
};

static struct grid grid_make(const struct column *columns, const void *rows, size_t count,
			     size_t size)
{
	struct grid grid = { .columns = { .size = sizeof(struct column) }, .rows = count };
	struct cell *cell;

	for (; !is_end(columns); columns++)
		if (columns->title)
			*(struct column *)list_add(&grid.columns) = *columns;
	cell = grid.cells = memory_need(calloc(count * grid.columns.count + 1, sizeof(*cell)));
	grid.widths = memory_need(calloc(grid.columns.count + 1, sizeof(*grid.widths)));
	for (size_t row = 0; row < count; row++)
		for (size_t i = 0; i < grid.columns.count; i++) {
			const struct column *column = list_at(&grid.columns, i);
			const char *field = (const char *)rows + row * size + column->offset;

			column->form->show(column->form, field, cell++);
		}
	return grid;
}

static void grid_free(struct grid *grid)
{
	for (size_t i = 0; i < grid->rows * grid->columns.count; i++)
		free(grid->cells[i].text);
	free(grid->cells);
	free(grid->widths);
	free(grid->columns.row);
}

/* Sets the widths to what titles and cells need; how much all of them together need. */
static size_t grid_measure(struct grid *grid)
{
	size_t total = 0, count = grid->columns.count;

	for (size_t i = 0; i < count; i++) {
		const struct column *column = list_at(&grid->columns, i);
		unsigned width = 0, title = form_width(_(column->title));

		for (size_t row = 0; row < grid->rows; row++)
			if (width < grid->cells[row * count + i].width)
				width = grid->cells[row * count + i].width;
		if (width && width < title)
			width = title;
		grid->widths[i] = width;
		if (width && !column->flows)
			total += (total ? GAP : 0) + width;
	}
	return total;
}

/* How much less a column needs if its texts are cut. */
static unsigned grid_slack(const struct grid *grid, size_t i)
{
	const struct column *column = list_at(&grid->columns, i);
	unsigned least = form_width(_(column->title));

	if (!column->shrinks || !grid->widths[i])
		return 0;
	least = column->shrinks > least ? column->shrinks : least;
	return grid->widths[i] > least ? grid->widths[i] - least : 0;
}

/* The column that can be left out first; the number of columns if none can. */
static size_t grid_dispensable(const struct grid *grid)
{
	size_t found = grid->columns.count;
	unsigned rank = 0;

	for (size_t i = 0; i < grid->columns.count; i++) {
		const struct column *column = list_at(&grid->columns, i);

		if (grid->widths[i] && column->rank > rank) {
			rank = column->rank;
			found = i;
		}
	}
	return found;
}

/* The last characters of a text, with dots before them. */
static void cell_cut(struct cell *cell, unsigned width)
{
	const char *rest = cell->text;
	unsigned left = cell->width;
	char *text;

	while (left + 2 > width && *rest) {
		do
			rest++;
		while ((*rest & 0xc0) == 0x80); /* inside of a character */
		left = form_width(rest);
	}
	if (asprintf(&text, "..%s", rest) < 0)
		memory_need(NULL);
	free(cell->text);
	cell->text = text;
	cell->width = left + 2;
}

/* Makes a table that needs so much fit into the width; whether it does. */
static bool grid_fit(struct grid *grid, size_t needed, unsigned width)
{
	size_t count = grid->columns.count, slack = 0, drop;

	for (size_t i = 0; i < count; i++)
		slack += grid_slack(grid, i);
	while (needed - slack > width && (drop = grid_dispensable(grid)) < count) {
		needed -= grid->widths[drop] + GAP;
		grid->widths[drop] = 0;
	}
	if (needed - slack > width)
		return false;
	for (size_t i = 0; i < count && needed > width; i++) {
		size_t cut = grid_slack(grid, i);

		cut = cut < needed - width ? cut : needed - width;
		grid->widths[i] -= (unsigned)cut;
		needed -= cut;
		for (size_t row = 0; row < grid->rows && cut; row++)
			if (grid->cells[row * count + i].width > grid->widths[i])
				cell_cut(&grid->cells[row * count + i], grid->widths[i]);
	}
	return true;
}

static void print_cell(const struct screen *screen, const struct cell *cell)
{
	bool colour = screen->colour && cell->colour;

	printf("%s%s%s", colour ? cell->colour : "", cell->text, colour ? COLOUR_END : "");
}

/* One line; nothing stands after the last text in it, not even spaces. */
static void print_line(const struct screen *screen, const struct grid *grid,
		       const struct cell *cells)
{
	unsigned owed = 0;

	for (size_t i = 0; i < grid->columns.count; i++) {
		const struct column *column = list_at(&grid->columns, i);
		unsigned width = grid->widths[i], used = cells[i].width;
		unsigned padding = width > used ? width - used : 0;

		if (!width)
			continue;
		if (!used) {
			owed += width + GAP;
			continue;
		}
		printf("%*s", (int)(owed + (column->form->right ? padding : 0)), "");
		print_cell(screen, &cells[i]);
		owed = GAP + (column->form->right ? 0 : padding);
	}
	putchar('\n');
}

static void print_titles(const struct screen *screen, const struct grid *grid)
{
	struct cell *cells = memory_need(calloc(grid->columns.count + 1, sizeof(*cells)));
	bool any = false;

	for (size_t i = 0; i < grid->columns.count; i++) {
		const struct column *column = list_at(&grid->columns, i);

		cell_print(&cells[i], NULL, "%s", _(column->title));
		for (char *at = cells[i].text; *at; at++)
			*at = (char)toupper((unsigned char)*at);
		any = any || cells[i].width;
	}
	if (any)
		print_line(screen, grid, cells);
	for (size_t i = 0; i < grid->columns.count; i++)
		free(cells[i].text);
	free(cells);
}

static void print_record(const struct screen *screen, const struct grid *grid,
			 const struct cell *cells)
{
	unsigned width = 0;

	for (size_t i = 0; i < grid->columns.count; i++) {
		const struct column *column = list_at(&grid->columns, i);
		unsigned title = form_width(_(column->title));

		width = width < title ? title : width;
	}
	for (size_t i = 0; i < grid->columns.count; i++) {
		const struct column *column = list_at(&grid->columns, i);

		if (!cells[i].width)
			continue;
		printf("%s%*s", _(column->title), (int)(width + GAP - form_width(_(column->title))), "");
		print_cell(screen, &cells[i]);
		putchar('\n');
	}
}

void table_print(const struct screen *screen, const struct column *columns, const struct list *rows)
{
	struct grid grid = grid_make(columns, rows->row, rows->count, rows->size);
	size_t needed = grid_measure(&grid);
	bool fits = !screen->width || needed <= screen->width ||
		    grid_fit(&grid, needed, screen->width);

	if (fits)
		print_titles(screen, &grid);
	for (size_t row = 0; row < rows->count; row++) {
		const struct cell *cells = grid.cells + row * grid.columns.count;

		if (fits) {
			print_line(screen, &grid, cells);
		} else {
			if (row)
				putchar('\n');
			print_record(screen, &grid, cells);
		}
	}
	grid_free(&grid);
}

void table_print_line(const struct screen *screen, const struct column *columns, const void *row)
{
	struct grid grid = grid_make(columns, row, 1, 0);

	for (size_t i = 0; i < grid.columns.count; i++) {
		const struct column *column = list_at(&grid.columns, i);

		grid.widths[i] = column->least;
	}
	print_line(screen, &grid, grid.cells);
	grid_free(&grid);
}

void table_print_record(const struct screen *screen, const struct column *columns, const void *row)
{
	struct grid grid = grid_make(columns, row, 1, 0);

	print_record(screen, &grid, grid.cells);
	grid_free(&grid);
}

/* ---- JSON */

json_t *table_json_record(const struct column *columns, const void *row)
{
	json_t *object = memory_need(json_object());

	for (; !is_end(columns); columns++) {
		const char *field = (const char *)row + columns->offset;

		if (columns->key)
			json_object_set_new(object, columns->key,
					    columns->form->json(columns->form, field));
	}
	return object;
}

json_t *table_json(const struct column *columns, const struct list *rows)
{
	json_t *array = memory_need(json_array());

	for (size_t row = 0; row < rows->count; row++)
		json_array_append_new(array, table_json_record(columns, list_at(rows, row)));
	return array;
}
