/* SPDX-License-Identifier: MIT */
/* Lines that users can cause are written seldom, and with the number of those left out. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "harness.h"

enum { OFTEN = 1000 };

/* What the log has; its lines are counted. */
static const char *lines_of(const struct log *log, unsigned *ret_lines)
{
	static char text[1 << 16];
	FILE *file = fopen(log->path, "r");

	if (!file)
		abort();
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	*ret_lines = 0;
	for (const char *at = text; (at = strchr(at, '\n')); at++)
		++*ret_lines;
	return text;
}

static void seldom(void)
{
	struct log_seldom place = { 0 };
	struct log log = { 0 };
	unsigned lines;
	const char *text;

	CHECK(log_open(&log, LOG_WARN, harness_path("log"), NULL) == 0);
	for (int i = 0; i < OFTEN; i++)
		log_seldom(&log, &place, LOG_WARN, "no descriptor is left (%d)", i);
	text = lines_of(&log, &lines);
	CHECK(lines == 1 && strstr(text, "no descriptor is left (0)"), "%u lines: %.200s", lines, text);
	place.next_s = 0; /* the time is over */
	log_seldom(&log, &place, LOG_WARN, "no descriptor is left (%d)", OFTEN);
	text = lines_of(&log, &lines);
	CHECK(lines == 3 && strstr(text, "999 more lines such as the next were left out") &&
		      strstr(text, "no descriptor is left (1000)"),
	      "%u lines: %.400s", lines, text);
	unlink(log.path);
}

static void driver(void)
{
	RUN(seldom);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
