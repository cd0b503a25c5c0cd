/* SPDX-License-Identifier: MIT */
/*
 * A screen of `top` from top to bottom: the collector, what is wrong, the host or the tenant, then
 * the list or a text, and a line of keys.
 */
#include "cli/top_layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/translation.h"
#include "view/host.h"

/* Lines above the list: collector, problem, host, order. */
enum { TOP_HEAD = 4, TOP_FOOT = 1 };

static void line_put(struct canvas *canvas, unsigned line, unsigned style, const char *text)
{
	char *printable = form_printable(text, NULL);

	canvas_put(canvas,
		   &(struct canvas_place){ .line = line, .width = canvas->columns, .style = style },
		   printable);
	free(printable);
}

static void collector_draw(const struct top *top, struct canvas *canvas)
{
	const struct proto_status *status = &top->now.status;
	unsigned long long refused = 0, before = 0, tolerated = 0;
	struct cell up = { .text = NULL };
	char text[240], would[48] = "";

	for (size_t i = 0; i < top->now.tenants.count; i++) {
		const struct proto_row *row = list_at(&top->now.tenants, i);
		const struct proto_row *earlier = top_row_before(top, row);

		for (int kind = 0; kind < KINDS_COUNTED; kind++) {
			refused += row->refused[kind];
			tolerated += row->tolerated[kind];
			before += earlier ? earlier->refused[kind] : row->refused[kind];
		}
	}
	form_seconds.show(&form_seconds, &status->uptime_seconds, &up);
	if (tolerated)
		snprintf(would, sizeof(would), _(", would refuse %llu"), tolerated);
	snprintf(text, sizeof(text),
		 _("rdma_intercept%s%s  up %s  tenants %u  processes %u  refused %llu, %.1f/s%s%s"),
		 *top->clock ? " " : "", top->clock, up.text, status->tenants, status->processes,
		 refused, top_rate(top, refused, before), would, top->paused ? _("  PAUSED") : "");
	free(up.text);
	line_put(canvas, 0, CANVAS_BOLD, text);
}

/* The worst that there is to say. */
static void problem_draw(const struct top *top, struct canvas *canvas)
{
	const struct proto_status *status = &top->now.status;
	char text[PROBLEM_SIZE + 64];

	if (*top->problem) {
		snprintf(text, sizeof(text), _("waiting for the collector: %s"), top->problem);
		line_put(canvas, 1, CANVAS_BAD, text);
	} else if (*status->problem) {
		snprintf(text, sizeof(text), _("the policy was not reloaded: %s"), status->problem);
		line_put(canvas, 1, CANVAS_BAD, text);
	} else if (status->uncovered == 1) {
		snprintf(text, sizeof(text),
			 _("1 process UNCOVERED, %u with DRIFT (u shows rows with problems)"),
			 status->drifting);
		line_put(canvas, 1, CANVAS_BAD, text);
	} else if (status->uncovered || status->drifting) {
		snprintf(text, sizeof(text),
			 _("%u processes UNCOVERED, %u with DRIFT (u shows rows with problems)"),
			 status->uncovered, status->drifting);
		line_put(canvas, 1, CANVAS_BAD, text);
	} else if (!strcmp(status->monitor, "none")) {
		line_put(canvas, 1, CANVAS_DIM,
			 _("no monitor: programs without the library are not seen"));
	} else {
		snprintf(text, sizeof(text), _("monitor %s: no process is uncovered or drifts"),
			 status->monitor);
		line_put(canvas, 1, CANVAS_GOOD, text);
	}
}

/* The host, or the tenant whose processes are shown. */
static void owner_draw(const struct top *top, struct canvas *canvas)
{
	for (size_t i = 0; top->level == TOP_PROCESSES && i < top->now.tenants.count; i++) {
		const struct proto_row *row = list_at(&top->now.tenants, i);

		if (!strcmp(row->tenant, top->tenant)) {
			top_shares_draw(top, canvas, 2, row);
			return;
		}
	}
	if (top->now.hosts.count)
		top_shares_draw(top, canvas, 2, top->now.hosts.row);
}

static void order_draw(const struct top *top, struct canvas *canvas)
{
	const char *what = top->level == TOP_TENANTS ? _("tenants") : _("processes");
	size_t last = top->first + top->page;
	char text[240];

	if (top->help)
		snprintf(text, sizeof(text), "%s", _("keys"));
	else if (top->level == TOP_DETAILS)
		snprintf(text, sizeof(text), _("process %d"), (int)top->pid);
	else
		snprintf(text, sizeof(text), _("%s by %s of %s%s, %zu-%zu of %zu%s%s%s"), what,
			 _(top_sorts[top->sort].name), kind_rows[top->kind].name,
			 top->reversed ? _(", smallest first") : "",
			 top->lines.count ? top->first + 1 : 0,
			 last < top->lines.count ? last : top->lines.count, top->lines.count,
			 *top->filter ? _(", with ") : "", top->filter,
			 top->problems ? _(", with problems") : "");
	line_put(canvas, 3, CANVAS_DIM, text);
}

static void text_draw(struct top *top, struct canvas *canvas, unsigned from, unsigned end)
{
	for (unsigned i = 0; from + i < end && top->first + i < top->text.count; i++) {
		const struct top_text *text = list_at(&top->text, top->first + i);

		line_put(canvas, from + i, text->style, text->text);
		if (text->bar)
			canvas_put_bar(canvas,
				       &(struct canvas_place){ .line = from + i,
							       .column = text->bar,
							       .width = TOP_BAR,
							       .style = text->part >= 1 ?
										CANVAS_BAD :
										CANVAS_GOOD },
				       text->part);
	}
}

/* Before the first answer of a collector: what can be done. */
static void absence_draw(struct canvas *canvas, unsigned from, unsigned end)
{
	const struct {
		const char *label, *command;
	} lines[] = {
		{ N_("No collector has answered yet. This screen goes on as soon as one does."), NULL },
		{ "", NULL },
		{ N_("Start the collector:     "), host_start(HOST_COLLECTOR) },
		{ N_("Or name another socket:  rdma_intercept top --socket PATH"), NULL },
		{ N_("Find out more:           rdma_intercept doctor"), NULL },
	};

	char text[240];

	for (unsigned i = 0; i < sizeof(lines) / sizeof(lines[0]) && from + i < end; i++) {
		snprintf(text, sizeof(text), "%s%s", *lines[i].label ? _(lines[i].label) : "",
			 lines[i].command ? lines[i].command : "");
		line_put(canvas, from + i, CANVAS_PLAIN, text);
	}
}

static void foot_draw(const struct top *top, struct canvas *canvas)
{
	char text[TOP_FILTER + 80];

	if (top->typing)
		snprintf(text, sizeof(text), _("filter: %s_   (Enter: keep, Esc: remove)"),
			 top->filter);
	else
		snprintf(text, sizeof(text), "%s",
			 _("q end  ? help  Enter open  Esc back  s sort  / filter  Left Right kind"));
	line_put(canvas, canvas->lines - 1, CANVAS_DIM, text);
}

void top_draw(struct top *top, struct canvas *canvas)
{
	bool text = top->help || top->level == TOP_DETAILS;
	unsigned end = canvas->lines - (top->plain || !canvas->lines ? 0 : TOP_FOOT);
	size_t cursor = top->cursor, first = top->first;
	unsigned titles;

	collector_draw(top, canvas);
	problem_draw(top, canvas);
	owner_draw(top, canvas);
	top->text = (struct list){ .size = sizeof(struct top_text) };
	if (top->help)
		top_help_fill(top);
	else if (top->level == TOP_DETAILS)
		top_details_fill(top);
	titles = text ? 0 : 1;
	top->page = end > TOP_HEAD + titles ? end - TOP_HEAD - titles : 1;
	if (top->help) {
		top->first = 0;
	} else if (text) {
		size_t most = top->text.count > top->page ? top->text.count - top->page : 0;

		top->first = top->first < most ? top->first : most;
	} else {
		top_arrange(top);
	}
	order_draw(top, canvas);
	if (!top->now.time_ns && !top->help)
		absence_draw(canvas, TOP_HEAD, end);
	else if (text)
		text_draw(top, canvas, TOP_HEAD, end);
	else
		top_list_draw(top, canvas, TOP_HEAD, end);
	if (!top->plain && canvas->lines)
		foot_draw(top, canvas);
	if (top->help) {
		top->cursor = cursor;
		top->first = first;
	}
	free(top->text.row);
	top->text.row = NULL;
}
