/* SPDX-License-Identifier: MIT */
/* Texts of `top`: all about one process, and the keys. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/translation.h"
#include "cli/top_layout.h"
#include "view/owner.h"

static struct top_text *text_line(struct top *top, unsigned style, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static struct top_text *text_line(struct top *top, unsigned style, const char *format, ...)
{
	struct top_text *line = list_add(&top->text);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(line->text, sizeof(line->text), _(format), arguments);
	va_end(arguments);
	line->style = style;
	return line;
}

/* A text in so many columns, which printf would count in bytes. Negative: at the left. */
struct fitted {
	char text[96];
};

static struct fitted text_fit(const char *text, int columns)
{
	int room = abs(columns) - (int)form_width(text);
	struct fitted fitted;

	room = room > 0 ? room : 0;
	snprintf(fitted.text, sizeof(fitted.text), "%*s%s%*s", columns > 0 ? room : 0, "", text,
		 columns < 0 ? room : 0, "");
	return fitted;
}

void top_help_fill(struct top *top)
{
	for (unsigned i = 0; i < top_keys_count; i++)
		if (top_keys[i].help)
			text_line(top, CANVAS_PLAIN, "%-14s %s", top_keys[i].name,
				  _(top_keys[i].help));
	text_line(top, CANVAS_PLAIN, "%s", "");
	text_line(top, CANVAS_DIM,
		  "! 80 %% of a limit  !! 100 %%  UNCOVERED: objects made without the library");
}

/* The columns of the view, a line each. */
static void process_fill(struct top *top, const struct owner *owner)
{
	const struct column *column;

	for (column = process_columns; column->key || column->title; column++) {
		struct cell cell = { .text = NULL };

		if (!column->title)
			continue;
		column->form->show(column->form, (const char *)owner + column->offset, &cell);
		if (cell.width)
			text_line(top, top_style(cell.colour), "%s %s",
				  text_fit(_(column->title), -10).text, cell.text);
		free(cell.text);
	}
}

#define SHARE_FORMAT "%s %-12s %10s %10s"

static void share_fill(struct top *top, const struct share *share, const char *device)
{
	char used[AMOUNT_TEXT], peak[AMOUNT_TEXT], limit[AMOUNT_TEXT];
	bool limited = share->limit.value != UNLIMITED;
	struct top_text *line;

	if (!share_matters(share) || (!share->used.value && !share->peak.value && !share->refused && !share->tolerated.value))
		return;
	line = text_line(top, share->refused ? CANVAS_WARNING : CANVAS_PLAIN,
			 SHARE_FORMAT " %*s %10s %8" PRIu64, text_fit(device, -12).text, share->kind,
			 amount_text(&share->used, used), amount_text(&share->limit, limit),
			 TOP_BAR, "", amount_text(&share->peak, peak), share->refused);
	if (limited) {
		line->bar = 12 + 1 + 12 + 1 + 10 + 1 + 10 + 1;
		line->part = share->limit.value ? (double)share->used.value /
							  (double)share->limit.value :
						  1;
	}
}

static void shares_fill(struct top *top, const struct proto_row *row)
{
	struct owner owner;

	owner_read(&owner, row);
	for (int kind = 0; kind < KIND_COUNT; kind++)
		share_fill(top, &owner.share[kind], *row->device ? row->device : _("total"));
}

static const struct proto_details *details_before(const struct top *top,
						  const struct proto_details *details)
{
	for (size_t i = 0; i < top->before.details.count; i++) {
		const struct proto_details *before = list_at(&top->before.details, i);

		if (before->pid == details->pid && !strcmp(before->device, details->device))
			return before;
	}
	return NULL;
}

/* Numbers that are not 0, and how much more of each came in a second. */
static void tallies_fill(struct top *top, const char *device, const struct tally_row *rows,
			 unsigned count, const void *now, const void *before)
{
	for (unsigned i = 0; i < count; i++) {
		uint64_t value = tally_value(now, &rows[i]);
		double rate = before ? top_rate(top, value, tally_value(before, &rows[i])) : 0;
		char text[32] = "";

		if (!value)
			continue;
		if (rate > 0)
			snprintf(text, sizeof(text), "%.1f/s", rate);
		text_line(top, CANVAS_PLAIN, "%-12s %-20s %-18s %14" PRIu64 " %12s", device,
			  rows[i].group, rows[i].name, value, text);
	}
}

/* States of queue pairs on each device, or counters of the process, of which there are many more. */
static void details_fill(struct top *top, bool on_devices)
{
	for (size_t i = 0; i < top->now.details.count; i++) {
		const struct proto_details *now = list_at(&top->now.details, i);
		const struct proto_details *before = details_before(top, now);

		if (on_devices && now->device[0])
			tallies_fill(top, now->device, gauge_rows, gauge_count, &now->gauges,
				     before ? &before->gauges : NULL);
		else if (!on_devices && !now->device[0])
			tallies_fill(top, "", tally_rows, tally_count, &now->tallies,
				     before ? &before->tallies : NULL);
	}
}

void top_details_fill(struct top *top)
{
	const struct proto_row *process = NULL;
	struct owner owner;

	for (size_t i = 0; i < top->now.processes.count; i++) {
		const struct proto_row *row = list_at(&top->now.processes, i);

		if (row->pid == top->pid)
			process = row;
	}
	if (!process) {
		text_line(top, CANVAS_BAD, "process %d has ended, or is not known yet",
			  (int)top->pid);
		return;
	}
	owner_read(&owner, process);
	process_fill(top, &owner);
	text_line(top, CANVAS_PLAIN, "%s", "");
	text_line(top, CANVAS_BOLD, "%s %s %s %s %*s %s %s", text_fit(_("DEVICE"), -12).text,
		  text_fit(_("KIND"), -12).text, text_fit(_("USED"), 10).text,
		  text_fit(_("LIMIT"), 10).text, TOP_BAR, "", text_fit(_("PEAK"), 10).text,
		  text_fit(_("REFUSED"), 8).text);
	shares_fill(top, process);
	for (size_t i = 0; i < top->now.on_devices.count; i++) {
		const struct proto_row *row = list_at(&top->now.on_devices, i);

		if (row->pid == top->pid)
			shares_fill(top, row);
	}
	if (top->now.details.count) {
		text_line(top, CANVAS_PLAIN, "%s", "");
		text_line(top, CANVAS_BOLD, "%s %s %s %s %s", text_fit(_("DEVICE"), -12).text,
			  text_fit(_("COUNTER"), -20).text, text_fit(_("OF"), -18).text,
			  text_fit(_("COUNT"), 14).text, text_fit(_("CHANGE"), 12).text);
	}
	details_fill(top, true);
	details_fill(top, false);
}
