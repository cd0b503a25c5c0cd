/* SPDX-License-Identifier: MIT */
/* In the place of top_screen.c where the program is built without ncurses. */
#include <errno.h>

#include "cli/top_screen.h"

int screen_open(bool colour, char problem[PROBLEM_SIZE])
{
	return problem_set(-ENOTSUP, problem,
			   "this program was built without ncurses: it prints once and ends");
}

void screen_close(void)
{
}

void screen_size(unsigned *ret_lines, unsigned *ret_columns)
{
	*ret_lines = *ret_columns = 0;
}

void screen_show(const struct canvas *canvas)
{
}

int screen_wait(int milliseconds)
{
	return SCREEN_ENDED;
}

void screen_raise(void)
{
}
