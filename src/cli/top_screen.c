/* SPDX-License-Identifier: MIT */
/* The terminal, by ncurses; see top_screen.h. The only file that knows ncurses. */
#define NCURSES_WIDECHAR 1
#define NCURSES_NOMACROS 1
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <term.h>
#include <termios.h>
#include <unistd.h>
#include <curses.h>
/* term.h has short names for capabilities. */
#undef lines
#undef columns

#include "cli/top_model.h"
#include "cli/top_screen.h"

enum { RESTORE_SIZE = 256, MOST_COLUMNS = 1024, MOST_LINES = 512 };

/* Pairs of colours are numbered by styles; 0 is not one of them. */
static const struct {
	attr_t attribute;
	short colour; /* -1: the terminal's own */
} looks[CANVAS_STYLES] = {
	[CANVAS_PLAIN] = { A_NORMAL, -1 },	     [CANVAS_BOLD] = { A_BOLD, -1 },
	[CANVAS_DIM] = { A_DIM, -1 },		     [CANVAS_GOOD] = { A_NORMAL, COLOR_GREEN },
	[CANVAS_WARNING] = { A_BOLD, COLOR_YELLOW }, [CANVAS_BAD] = { A_BOLD, COLOR_RED },
};

static struct {
	SCREEN *terminal; /* NULL: it is not taken */
	bool colour;
	struct termios settings; /* as they were before */
	char restore[RESTORE_SIZE]; /* what ends the use of the whole screen, */
	size_t length;		    /* for a handler that may call nothing else */
	sigset_t outside;	    /* signals that are let in while we wait */
} screen;

static volatile sig_atomic_t caught;

/* ---- signals */

static void signal_note(int number)
{
	caught = number;
}

static void signal_resize(int number)
{
}

/* The program crashes: with the few calls that are allowed here. */
static void signal_crash(int number)
{
	if (screen.terminal) {
		ssize_t written = write(STDOUT_FILENO, screen.restore, screen.length);

		(void)written;
		tcsetattr(STDIN_FILENO, TCSANOW, &screen.settings);
	}
	raise(number); /* by SA_RESETHAND it ends the program now */
}

static void signals_take(void)
{
	static const int ends[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	static const int crashes[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };
	struct sigaction action = { .sa_handler = signal_note };
	sigset_t held;

	sigemptyset(&held);
	for (unsigned i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		sigaddset(&held, ends[i]);
		sigaction(ends[i], &action, NULL);
	}
	action.sa_handler = signal_resize;
	sigaddset(&held, SIGWINCH);
	sigaction(SIGWINCH, &action, NULL);
	action.sa_handler = signal_crash;
	action.sa_flags = (int)(SA_RESETHAND | SA_NODEFER);
	for (unsigned i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++)
		sigaction(crashes[i], &action, NULL);
	/* They come only while screen_wait waits, so that none is missed. */
	sigprocmask(SIG_BLOCK, &held, &screen.outside);
}

void screen_raise(void)
{
	if (!caught)
		return;
	signal(caught, SIG_DFL);
	sigprocmask(SIG_SETMASK, &screen.outside, NULL);
	raise(caught);
}

/* ---- the terminal */

static int restore_add(int character)
{
	if (screen.length < sizeof(screen.restore))
		screen.restore[screen.length++] = (char)character;
	return character;
}

/* What endwin would write. */
static void restore_prepare(void)
{
	static const char *const names[] = { "sgr0", "cnorm", "rmkx", "rmcup" };

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *text = tigetstr(names[i]);

		if (text && text != (const char *)-1)
			tputs(text, 1, restore_add);
	}
	restore_add('\r');
	restore_add('\n');
}

static void colours_start(void)
{
	if (!screen.colour || !has_colors() || start_color() == ERR ||
	    use_default_colors() == ERR) {
		screen.colour = false;
		return;
	}
	for (short style = 1; style < CANVAS_STYLES; style++)
		init_pair(style, looks[style].colour, -1);
}

int screen_open(bool colour, char problem[PROBLEM_SIZE])
{
	const char *type = getenv("TERM");

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) ||
	    tcgetattr(STDIN_FILENO, &screen.settings))
		return problem_set(-ENOTTY, problem,
				   "standard input and output are not both a terminal");
	screen.terminal = newterm(NULL, stdout, stdin);
	if (!screen.terminal)
		return problem_set(-ENOTTY, problem, "TERM: unknown terminal '%s'",
				   type ? type : "");
	screen.colour = colour;
	colours_start();
	restore_prepare();
	signals_take();
	atexit(screen_close);
	cbreak();
	noecho();
	nonl();
	intrflush(stdscr, FALSE);
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(25);
	curs_set(0);
	return 0;
}

void screen_close(void)
{
	if (!screen.terminal)
		return;
	endwin();
	delscreen(screen.terminal);
	screen.terminal = NULL;
}

void screen_size(unsigned *ret_lines, unsigned *ret_columns)
{
	struct winsize size;

	if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_row && size.ws_col &&
	    (size.ws_row != getmaxy(stdscr) || size.ws_col != getmaxx(stdscr)))
		resizeterm(size.ws_row, size.ws_col);
	*ret_lines = (unsigned)getmaxy(stdscr);
	*ret_columns = (unsigned)getmaxx(stdscr);
	if (*ret_lines > MOST_LINES)
		*ret_lines = MOST_LINES;
	if (*ret_columns > MOST_COLUMNS)
		*ret_columns = MOST_COLUMNS;
}

static void style_set(unsigned style)
{
	unsigned look = style & (CANVAS_SELECTED - 1);
	attr_t attribute = looks[look].attribute;

	/* Without colours what is bad still stands out. */
	if (style & CANVAS_SELECTED)
		attribute = (attribute & ~A_DIM) | A_REVERSE;
	attr_set(attribute, screen.colour ? (short)look : 0, NULL);
}

/* The cells of one style that follow one another; where the next ones begin. */
static unsigned run_show(const struct canvas *canvas, unsigned line, unsigned from)
{
	unsigned style = canvas_at(canvas, line, from)->style, column;
	wchar_t text[MOST_COLUMNS + 1];
	int length = 0;

	for (column = from; column < canvas->columns; column++) {
		const struct canvas_cell *cell = canvas_at(canvas, line, column);

		if (cell->style != style)
			break;
		if (cell->character)
			text[length++] = cell->character;
	}
	style_set(style);
	mvaddnwstr((int)line, (int)from, text, length);
	return column;
}

void screen_show(const struct canvas *canvas)
{
	erase();
	for (unsigned line = 0; line < canvas->lines; line++)
		for (unsigned column = 0; column < canvas->columns;)
			column = run_show(canvas, line, column);
	refresh();
}

/* ---- keys */

static int key_translate(int result, wint_t key)
{
	static const struct {
		wint_t from;
		int to;
	} keys[] = {
		{ KEY_UP, TOP_UP },	    { KEY_DOWN, TOP_DOWN },   { KEY_LEFT, TOP_LEFT },
		{ KEY_RIGHT, TOP_RIGHT },   { KEY_PPAGE, TOP_PAGE_UP }, { KEY_NPAGE, TOP_PAGE_DOWN },
		{ KEY_HOME, TOP_HOME },	    { KEY_END, TOP_END },     { KEY_BACKSPACE, TOP_BACKSPACE },
		{ KEY_ENTER, '\n' },
	};

	if (result == OK)
		return key == 127 || key == '\b' ? TOP_BACKSPACE : (int)key;
	for (unsigned i = 0; result == KEY_CODE_YES && i < sizeof(keys) / sizeof(keys[0]); i++)
		if (keys[i].from == key)
			return keys[i].to;
	return SCREEN_NOTHING;
}

int screen_wait(int milliseconds)
{
	const struct timespec time = { milliseconds / 1000, milliseconds % 1000 * 1000000l };
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	wint_t key = 0;
	int result = get_wch(&key); /* one may be there already */

	if (result == ERR) {
		int ready = ppoll(&input, 1, &time, &screen.outside);

		if (caught || (ready > 0 && input.revents & (POLLHUP | POLLERR | POLLNVAL)))
			return SCREEN_ENDED;
		if (ready <= 0)
			return SCREEN_NOTHING;
		result = get_wch(&key);
	}
	return key_translate(result, key);
}
