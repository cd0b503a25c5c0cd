/* SPDX-License-Identifier: MIT */
/* What `top` shows of readings and after keys, on a canvas; the terminal is top.sh's. */
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/top_model.h"
#include "harness.h"

enum { SCREEN_TEXT = 64 * 1024 };

static char screen_text[SCREEN_TEXT];

/* The screen of this size as text. */
static const char *drawn(struct top *top, unsigned lines, unsigned columns)
{
	struct canvas canvas = { .lines = 0 };
	size_t length = 0;

	canvas_clear(&canvas, lines, columns);
	top_draw(top, &canvas);
	for (unsigned line = 0; line < lines && length + 1024 < sizeof(screen_text); line++) {
		canvas_line_text(&canvas, line, screen_text + length, 1000);
		length += strlen(screen_text + length);
		screen_text[length++] = '\n';
	}
	screen_text[length] = '\0';
	canvas_free(&canvas);
	return screen_text;
}

static bool shows(struct top *top, const char *text)
{
	return strstr(drawn(top, 24, 80), text);
}

/* Whether the first text comes before the second. */
static bool in_order(struct top *top, const char *first, const char *second)
{
	const char *screen = drawn(top, 24, 80), *a = strstr(screen, first), *b = strstr(screen, second);

	return a && b && a < b;
}

static struct proto_row row_make(enum proto_scope scope, const char *tenant, int32_t pid)
{
	struct proto_row row = { .scope = scope, .pid = pid };

	snprintf(row.tenant, sizeof(row.tenant), "%s", tenant);
	if (pid)
		snprintf(row.command, sizeof(row.command), "program-%d", (int)pid);
	for (int kind = 0; kind < KINDS_COUNTED; kind++)
		row.limit[kind] = row.process_limit[kind] = row.configured[kind] = UNLIMITED;
	return row;
}

/* Two tenants with limits, three processes, one of them uncovered. */
static struct top_reading reading_make(unsigned second, uint64_t alpha_qp, uint64_t alpha_refused)
{
	struct proto_row host = row_make(ROW_HOST, "", 0);
	struct proto_row alpha = row_make(ROW_TENANT, "alpha", 0), beta = row_make(ROW_TENANT, "beta", 0);
	struct proto_row one = row_make(ROW_PROCESS, "alpha", 101);
	struct proto_row two = row_make(ROW_PROCESS, "alpha", 102);
	struct proto_row three = row_make(ROW_PROCESS, "beta", 203);
	struct proto_row *const rows[] = { &host, &alpha, &beta, &one, &two, &three };
	struct top_reading reading;

	host.limit[KIND_qp] = 100;
	alpha.used[KIND_qp] = host.used[KIND_qp] = alpha_qp;
	alpha.limit[KIND_qp] = 10;
	alpha.refused[KIND_qp] = alpha_refused;
	beta.used[KIND_mr] = beta.limit[KIND_mr] = 7;
	one.used[KIND_qp] = alpha_qp;
	three.flags = ROW_UNCOVERED | ROW_WATCHED;
	three.kernel[KIND_mr] = 7;
	top_reading_begin(&reading);
	reading.time_ns = (1 + second) * (uint64_t)CLOCK_SECOND_NS;
	reading.status.pid = 4711;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		top_reading_take_row(rows[i], &reading);
	return reading;
}

static void top_make(struct top *top)
{
	struct top_reading reading = reading_make(0, 4, 2);

	top_begin(top);
	top_take(top, &reading);
}

static void top_later(struct top *top, unsigned second, uint64_t alpha_qp, uint64_t alpha_refused)
{
	struct top_reading reading = reading_make(second, alpha_qp, alpha_refused);

	top_take(top, &reading);
}

static void tenants(void)
{
	struct top top;

	top_make(&top);
	CHECK(shows(&top, "4/10"), "%s", screen_text);
	CHECK(shows(&top, "["), "a bar");
	CHECK(shows(&top, "host  qp 4/100"), "%s", screen_text);
	CHECK(in_order(&top, "alpha", "beta"), "the one that uses more is first");
	CHECK(!shows(&top, "program-101"), "no processes yet");
	top_free(&top);
}

static void bars(void)
{
	struct canvas canvas = { .lines = 0 };
	static const struct {
		double part;
		const char *text;
	} rows[] = { { 0, "[    ]" },	   { 0.5, "[\u2588\u2588  ]" },
		     { 0.001, "[\u258f   ]" }, { 0.999, "[\u2588\u2588\u2588\u2589]" },
		     { 1, "[\u2588\u2588\u2588\u2588]" },   { 7, "[\u2588\u2588\u2588\u2588]" } };

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[64];

		canvas_clear(&canvas, 1, 8);
		canvas_put_bar(&canvas, &(struct canvas_place){ .width = 6 }, rows[i].part);
		canvas_line_text(&canvas, 0, text, sizeof(text));
		CHECK(!strcmp(text, rows[i].text), "part %g: %s", rows[i].part, text);
	}
	canvas_free(&canvas);
}

static void rates(void)
{
	struct top top;

	top_make(&top);
	CHECK(shows(&top, "refused 2, 0.0/s"), "one reading has no rate: %s", screen_text);
	top_later(&top, 2, 8, 12);
	CHECK(shows(&top, "refused 12, 5.0/s"), "%s", screen_text);
	CHECK(shows(&top, "2.0"), "the growth of 4 in two seconds");
	CHECK(shows(&top, "! 8/10"), "the mark of 80 %%");
	top_later(&top, 3, 8, 12);
	CHECK(shows(&top, "refused 12, 0.0/s"), "%s", screen_text);
	top.before.status.pid++;
	top.before.tenants.count = 0;
	CHECK(shows(&top, "refused 12, 0.0/s"), "another collector has other counters");
	top_free(&top);
}

static void order(void)
{
	struct top top;

	top_make(&top);
	top_press(&top, 'r');
	CHECK(in_order(&top, "beta", "alpha"), "turned around");
	top_press(&top, 'r');
	for (unsigned i = 0; i < top_sorts_count; i++, top_press(&top, 's'))
		CHECK(shows(&top, top_sorts[i].name), "by %s: %s", top_sorts[i].name, screen_text);
	CHECK(shows(&top, top_sorts[0].name), "and the first again");
	top_press(&top, TOP_RIGHT);
	CHECK(top.kind == KIND_mr && in_order(&top, "beta", "alpha"), "by another kind: %s",
	      screen_text);
	top_press(&top, TOP_LEFT);
	CHECK(top.kind == KIND_qp, "kind %d", (int)top.kind);
	top_free(&top);
}

static void type(struct top *top, const char *text)
{
	for (; *text; text++)
		top_press(top, (unsigned char)*text);
}

static void filter(void)
{
	struct top top;

	top_make(&top);
	type(&top, "/BET");
	CHECK(shows(&top, "filter: BET"), "%s", screen_text);
	CHECK(top.lines.count == 1 && shows(&top, "beta"), "%zu rows", top.lines.count);
	type(&top, "q");
	CHECK(!top.ended && !top.lines.count, "q is a character of the filter");
	top_press(&top, TOP_BACKSPACE);
	top_press(&top, '\n');
	CHECK(!top.typing && shows(&top, "with BET"), "%s", screen_text);
	top_later(&top, 1, 5, 2);
	CHECK(top.lines.count == 1, "it stays with the next reading");
	top_press(&top, TOP_ESCAPE);
	CHECK(top.lines.count == 2, "Esc takes it off");
	type(&top, "p/102\n");
	CHECK(top.lines.count == 1 && shows(&top, "program-102"), "by the pid: %s", screen_text);
	top_free(&top);
}

static void levels(void)
{
	struct top top;

	top_make(&top);
	CHECK(top.level == TOP_TENANTS, "it begins with tenants");
	top_press(&top, '\n');
	CHECK(top.level == TOP_PROCESSES && !strcmp(top.tenant, "alpha"), "the first tenant");
	CHECK(shows(&top, "tenant alpha"), "%s", screen_text);
	CHECK(shows(&top, "program-101") && !shows(&top, "program-203"), "its processes only");
	top_press(&top, TOP_DOWN);
	top_press(&top, '\n');
	CHECK(top.level == TOP_DETAILS && top.pid == 102, "pid %d", (int)top.pid);
	CHECK(shows(&top, "process 102") && shows(&top, "program-102"), "%s", screen_text);
	top_press(&top, TOP_ESCAPE);
	CHECK(top.level == TOP_PROCESSES && top.cursor == 1, "back at the row that was opened");
	top_press(&top, TOP_ESCAPE);
	CHECK(top.level == TOP_TENANTS && !*top.tenant, "back to the tenants");
	top_press(&top, 'p');
	CHECK(top.lines.count == 3 && shows(&top, "program-203"), "all processes: %s", screen_text);
	top_press(&top, 't');
	CHECK(top.level == TOP_TENANTS && top.lines.count == 2, "all tenants");
	top_free(&top);
}

static void uncovered(void)
{
	struct top top;

	top_make(&top);
	top_press(&top, 'p');
	CHECK(shows(&top, "UNCOVERED"), "%s", screen_text);
	top_press(&top, 'u');
	CHECK(top.lines.count == 1 && shows(&top, "program-203"), "rows with problems: %s",
	      screen_text);
	top_free(&top);
}

/* The chosen row stays chosen when others come before it. */
static void chosen(void)
{
	struct top top;

	top_make(&top);
	top_press(&top, TOP_DOWN);
	CHECK(top.cursor == 1, "beta");
	top_press(&top, 'r');
	CHECK(top.cursor == 0, "beta is the first now");
	top_later(&top, 1, 4, 2);
	CHECK(top.cursor == 0, "and after a reading");
	top_press(&top, TOP_END);
	top_press(&top, TOP_DOWN);
	CHECK(top.cursor == 1, "not past the end");
	top_free(&top);
}

static void waiting(void)
{
	struct top top;

	top_make(&top);
	top_fail(&top, "/x: no collector");
	CHECK(shows(&top, "waiting for the collector: /x: no collector"), "%s", screen_text);
	CHECK(shows(&top, "alpha"), "what it said last stays");
	top_later(&top, 1, 4, 2);
	CHECK(!shows(&top, "waiting"), "until it answers");
	top_press(&top, '?');
	CHECK(shows(&top, "end the program"), "the help");
	for (unsigned i = 0; i < top_keys_count; i++)
		CHECK(!top_keys[i].help || shows(&top, top_keys[i].help), "key %s: %s",
		      top_keys[i].name, screen_text);
	top_press(&top, 'q');
	CHECK(!top.ended && !top.help, "any key ends the help, and nothing else");
	top_press(&top, 'q');
	CHECK(top.ended, "q ends");
	top_free(&top);
}

/* Nothing is drawn outside; sanitizers look. Names may be wide, and may steer a terminal. */
static void sizes(void)
{
	struct proto_row wide = row_make(ROW_TENANT, "\u79df\u6237\u540d\u79f0\u5f88\u957f\u5f88\u957f", 0);
	struct proto_row bad = row_make(ROW_TENANT, "\033[2Jx", 0);
	struct top top;

	for (unsigned level = 0; level < 4; level++)
		for (unsigned lines = 1; lines < 40; lines += 3)
			for (unsigned columns = 1; columns < 240; columns += 7) {
				struct top_reading reading = reading_make(0, 4, 2);

				top_reading_take_row(&wide, &reading);
				top_reading_take_row(&bad, &reading);
				top_begin(&top);
				top_take(&top, &reading);
				top.help = level == 3;
				for (unsigned i = 0; i < level && level < 3; i++)
					top_press(&top, '\n');
				drawn(&top, lines, columns);
				CHECK(!strchr(screen_text, '\033'), "%u x %u", columns, lines);
				top_free(&top);
			}
}

static void large(void)
{
	enum { TENANTS = 1000, PROCESSES = 4000 };
	struct top_reading reading;
	struct top top;
	uint64_t begun;

	top_begin(&top);
	for (unsigned second = 0; second < 2; second++) {
		top_reading_begin(&reading);
		reading.time_ns = (1 + second) * (uint64_t)CLOCK_SECOND_NS;
		for (int i = 0; i < TENANTS + PROCESSES; i++) {
			struct proto_row row = row_make(i < TENANTS ? ROW_TENANT : ROW_PROCESS, "",
							i < TENANTS ? 0 : i);

			snprintf(row.tenant, sizeof(row.tenant), "tenant-%d", i % TENANTS);
			row.used[KIND_qp] = (uint64_t)i % 97;
			row.limit[KIND_qp] = 100;
			top_reading_take_row(&row, &reading);
		}
		begun = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
		top_take(&top, &reading);
	}
	printf("a reading of %d tenants and %d processes is taken in %.1f ms\n", TENANTS, PROCESSES,
	       (double)(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begun) / 1e6);
	top_press(&top, 'p');
	begun = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	drawn(&top, 50, 200);
	printf("a screen of 200 x 50 is drawn in %.1f ms\n",
	       (double)(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begun) / 1e6);
	CHECK(strstr(screen_text, "1-44 of 4000"), "%s", screen_text);
	top_press(&top, TOP_END);
	drawn(&top, 50, 200);
	CHECK(strstr(screen_text, "3957-4000 of 4000"), "%s", screen_text);
	top_free(&top);
}

static void driver(void)
{
	setlocale(LC_CTYPE, "C.UTF-8");
	RUN(tenants);
	RUN(bars);
	RUN(rates);
	RUN(order);
	RUN(filter);
	RUN(levels);
	RUN(uncovered);
	RUN(chosen);
	RUN(waiting);
	RUN(sizes);
	RUN(large);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
