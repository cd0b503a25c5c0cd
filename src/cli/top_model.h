/* SPDX-License-Identifier: MIT */
/*
 * What `top` shows and which part of it: two readings of the collector, a level (tenants, the
 * processes of one, a process), order, filter and the chosen row. Changes by readings and keys, and
 * draws itself on a canvas. Knows no terminal, no clock and no socket.
 */
#ifndef CLI_TOP_MODEL_H
#define CLI_TOP_MODEL_H

#include <stdbool.h>

#include "base/problem.h"
#include "cli/canvas.h"
#include "output/table.h"
#include "proto/messages.h"

/* Keys that are no characters. */
enum top_key {
	TOP_ESCAPE = 27,
	TOP_NO_CHARACTER = 0x200000,
	TOP_UP,
	TOP_DOWN,
	TOP_LEFT,
	TOP_RIGHT,
	TOP_PAGE_UP,
	TOP_PAGE_DOWN,
	TOP_HOME,
	TOP_END,
	TOP_BACKSPACE,
};

enum top_level { TOP_TENANTS, TOP_PROCESSES, TOP_DETAILS };

/* What the collector said at one moment. */
struct top_reading {
	uint64_t time_ns; /* CLOCK_MONOTONIC; 0 before the first answer */
	struct proto_status status;
	struct list hosts;	/* struct proto_row in total: one, or none */
	struct list tenants;	/* likewise: all */
	struct list processes;	/* likewise: those that were asked for */
	struct list on_devices; /* struct proto_row of the process whose details are shown */
	struct list details;	/* struct proto_details of it */
};

void top_reading_begin(struct top_reading *reading);
void top_reading_free(struct top_reading *reading);
/* A proto_row_function: a row of GET_STATS or GET_PROC_STATS into a struct top_reading. */
int top_reading_take_row(const void *row, void *reading);
/* Likewise of GET_DETAILS. */
int top_reading_take_details(const void *row, void *reading);

/* One row of the list: an owner now, and what changed since the reading before. */
struct top_line {
	const struct proto_row *row;
	uint64_t refused;   /* of all kinds */
	double refused_rate; /* a second */
	double growth;	    /* of the chosen kind, a second */
};

enum { TOP_FILTER = 48 };

struct top {
	struct top_reading now, before;
	char problem[PROBLEM_SIZE]; /* why the collector does not answer; "": it does */
	char clock[16];		    /* the time of day, as text */

	enum top_level level;
	char tenant[NAME_SIZE]; /* processes: of this one; "": of all */
	int32_t pid;		/* details: of this process */
	enum kind kind;		/* whose bar is drawn */
	unsigned sort;		/* row of top_sorts */
	bool reversed;
	char filter[TOP_FILTER];
	bool typing;   /* keys go into the filter */
	bool problems; /* rows with a problem only */
	bool help;
	bool paused;
	bool ended;
	bool plain; /* drawn for a file: no chosen row, no line of keys */

	struct list lines; /* struct top_line, in order */
	size_t cursor;	   /* the chosen one */
	size_t first;	   /* the first that is on the screen */
	unsigned page;	   /* lines on the screen */
	struct list text;  /* struct top_text: lines of details and help */
};

void top_begin(struct top *top);
void top_free(struct top *top);

/* The reading becomes the present one; its lists are taken. */
void top_take(struct top *top, struct top_reading *reading);
/* The collector does not answer; what it said last stays. */
void top_fail(struct top *top, const char *problem);

/* A character or an enum top_key. */
void top_press(struct top *top, unsigned key);

/* Orders and filters the rows again, after a change of what top_line shows. */
void top_arrange(struct top *top);

/* The seconds between the two readings; 0: there are not two of the same collector. */
double top_seconds(const struct top *top);
/* The difference of two counters a second; 0 if it is not known. */
double top_rate(const struct top *top, uint64_t now, uint64_t before);
const struct proto_row *top_row_before(const struct top *top, const struct proto_row *row);

/* Orders of rows. */
struct top_sort {
	const char *name;
	/* Larger ones come first; NULL: by name. */
	double (*value)(const struct top *top, const struct top_line *line);
};
extern const struct top_sort top_sorts[];
extern const unsigned top_sorts_count;

struct top_key_row {
	unsigned key;
	const char *name;
	void (*press)(struct top *top);
	const char *help;
};
extern const struct top_key_row top_keys[];
extern const unsigned top_keys_count;

/* Draws all of it, in the size of the canvas. */
void top_draw(struct top *top, struct canvas *canvas);

#endif
