/* SPDX-License-Identifier: MIT */
/*
 * The terminal that `top` uses as a whole. However the program ends, the terminal is as it was
 * before: at a key, by a signal, and, as far as a handler can do it, by a crash.
 */
#ifndef CLI_TOP_SCREEN_H
#define CLI_TOP_SCREEN_H

#include <stdbool.h>

#include "base/problem.h"
#include "cli/canvas.h"

/* Takes the terminal of standard input and output. 0, or -errno with the reason: -ENOTSUP if this
 * program was built without ncurses, -ENOTTY where there is no terminal that can be used. */
int screen_open(bool colour, char problem[PROBLEM_SIZE]);
void screen_close(void);

/* Its size at this moment. */
void screen_size(unsigned *ret_lines, unsigned *ret_columns);
void screen_show(const struct canvas *canvas);

/* Waits for at most so many milliseconds: a key (a character or an enum top_key), or */
enum { SCREEN_NOTHING = 0, SCREEN_ENDED = -1 };
/* that a signal or the end of the terminal wants the program to end. */
int screen_wait(int milliseconds);

/* After screen_close: ends the program by the signal that screen_wait saw, if it was one. */
void screen_raise(void);

#endif
