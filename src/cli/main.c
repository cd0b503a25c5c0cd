/* SPDX-License-Identifier: MIT */
/*
 * The command for people. This file reads the command line by the tables
 * options.def and commands.def, makes the help texts from them, and calls the
 * subcommand; what it does is in a file of its own.
 */
#include <errno.h>
#include <getopt.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/cli.h"
#include "output/form.h"
#include "output/page.h"

/* ---- the tables */

struct option_row {
	const char *name;
	char letter;
	const char *argument;
	bool common;
	const char *help;
	size_t offset; /* in struct options */
};

static const struct option_row option_rows[] = {
#define OPTION(name, letter, argument, common, help)                                               \
	{ #name, letter, argument, common, help, offsetof(struct options, name) },
#include "cli/options.def"
#undef OPTION
};
enum { OPTIONS = sizeof(option_rows) / sizeof(option_rows[0]) };

static const struct command commands[] = {
#define COMMAND(function, name, synopsis, options, starts, help)                                   \
	{ name, synopsis, options, help, starts, command_##function },
#include "cli/commands.def"
#undef COMMAND
};
enum { COMMANDS = sizeof(commands) / sizeof(commands[0]) };

/* Whether the word stands in a text of words with spaces between. */
static bool has_word(const char *words, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = words; (at = strstr(at, word)); at += length)
		if ((at == words || at[-1] == ' ') && (!at[length] || at[length] == ' '))
			return true;
	return false;
}

static bool takes(const struct command *command, const struct option_row *option)
{
	return option->common || (command && has_word(command->options, option->name));
}

static struct given *given_of(struct cli *cli, const struct option_row *option)
{
	return (struct given *)((char *)&cli->options + option->offset);
}

/* ---- finding the command */

/* How many of the words are the command's name; 0 if they are another's. */
static unsigned name_length(const struct command *command, unsigned count, char **words)
{
	const char *name = command->name;

	for (unsigned i = 0; i < count; i++) {
		size_t length = strlen(words[i]);

		if (strncmp(name, words[i], length) || (name[length] && name[length] != ' '))
			return 0;
		if (!name[length])
			return i + 1;
		name += length + 1;
	}
	return 0;
}

static const struct command *command_find(unsigned count, char **words)
{
	for (unsigned i = 0; i < COMMANDS; i++)
		if (name_length(&commands[i], count, words))
			return &commands[i];
	return NULL;
}

/* Says which command it cannot be. */
static int not_found(const struct cli *cli)
{
	char seconds[256] = "";
	size_t length;

	if (!cli->count)
		return cli_fail(cli, CLI_USAGE, "which command? See %s --help", CLI_NAME);
	length = strlen(cli->operand[0]);
	for (unsigned i = 0; i < COMMANDS; i++)
		if (!strncmp(commands[i].name, cli->operand[0], length) &&
		    commands[i].name[length] == ' ')
			snprintf(strchr(seconds, '\0'), sizeof(seconds) - strlen(seconds), "%s%s",
				 *seconds ? ", " : "", commands[i].name + length + 1);
	if (*seconds)
		return cli_fail(cli, CLI_USAGE, "%s what? One of: %s", cli->operand[0], seconds);
	return cli_fail(cli, CLI_USAGE, "there is no command '%s'; see %s --help", cli->operand[0],
			CLI_NAME);
}

/* ---- reading the command line */

/* What getopt_long returns for an option without a letter: its place, past all letters. */
enum { PLACES = 256 };

static const struct option_row *row_of(int found)
{
	for (int i = 0; i < OPTIONS; i++)
		if (found == PLACES + i || (found && found == option_rows[i].letter))
			return &option_rows[i];
	return NULL;
}

struct getopt_tables {
	char letters[3 * OPTIONS + 3];
	struct option names[OPTIONS + 1];
};

static struct getopt_tables getopt_tables(void)
{
	/* Operands come in their place, and it is for us to speak of mistakes. */
	struct getopt_tables tables = { .letters = "-:" };

	for (int i = 0; i < OPTIONS; i++) {
		const struct option_row *row = &option_rows[i];
		char letter[] = { row->letter, row->argument ? ':' : '\0', '\0' };

		if (row->letter)
			strcat(tables.letters, letter);
		tables.names[i] = (struct option){
			.name = row->name,
			.has_arg = row->argument ? required_argument : no_argument,
			.val = row->letter ? row->letter : PLACES + i,
		};
	}
	return tables;
}

/* An option that is none, or not in this way. */
struct mistake {
	int found; /* by getopt_long; 0: there is no mistake */
	int letter;
	const char *word;
};

static int complain(const struct cli *cli, const struct mistake *mistake)
{
	const struct option_row *row = row_of(mistake->letter);

	if (row && mistake->found == ':')
		return cli_fail(cli, CLI_USAGE, "option --%s needs a value: %s", row->name,
				row->argument);
	if (row)
		return cli_fail(cli, CLI_USAGE, "option --%s takes no value", row->name);
	if (mistake->letter)
		return cli_fail(cli, CLI_USAGE, "there is no option -%c; see %s --help",
				mistake->letter, CLI_NAME);
	return cli_fail(cli, CLI_USAGE, "there is no option %s; see %s --help", mistake->word,
			CLI_NAME);
}

static void add_operand(struct cli *cli, char *word)
{
	cli->operand[cli->count++] = word;
	if (!cli->command)
		cli->command = command_find(cli->count, cli->operand);
}

static void add_option(struct cli *cli, const struct option_row *row, const char *value)
{
	struct given *given = given_of(cli, row);

	given->value =
		memory_need(reallocarray(given->value, given->count + 1, sizeof(*given->value)));
	given->value[given->count++] = value;
}

/* The options into cli->options, and all other words into cli->operand. Reading goes on
 * after a mistake: how to complain of it may be said later on. */
static int read_words(struct cli *cli, int argc, char **argv)
{
	const struct getopt_tables tables = getopt_tables();
	struct mistake first = { 0 };
	bool ended = false; /* the words from here on are another program's */
	int found;

	while (!ended &&
	       (found = getopt_long(argc, argv, tables.letters, tables.names, NULL)) != -1) {
		const struct option_row *row = row_of(found);

		if (found == 1) {
			ended = cli->command && cli->command->starts;
			add_operand(cli, optarg);
		} else if (row) {
			add_option(cli, row, optarg);
		} else if (!first.found) {
			first = (struct mistake){ found, optopt, argv[optind - 1] };
		}
	}
	while (optind < argc)
		add_operand(cli, argv[optind++]);
	return first.found ? complain(cli, &first) : CLI_OK;
}

static int check_options(struct cli *cli)
{
	for (int i = 0; i < OPTIONS; i++)
		if (given_of(cli, &option_rows[i])->count && !takes(cli->command, &option_rows[i]))
			return cli_fail(cli, CLI_USAGE, "%s takes no option --%s",
					cli->command->name, option_rows[i].name);
	return CLI_OK;
}

/* Colours and width, as far as the output is a terminal's. */
static int look_at_screen(struct cli *cli)
{
	static const char *const choices[] = { "auto", "always", "never" };
	static const struct words words = { choices, sizeof(choices) / sizeof(choices[0]) };
	const char *when = cli_value(&cli->options.color), *refused = getenv("NO_COLOR");
	bool terminal = isatty(STDOUT_FILENO);
	struct winsize size;

	if (terminal && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size))
		cli->screen.width = size.ws_col;
	if (!when || !strcmp(when, "auto"))
		cli->screen.colour = terminal && !(refused && *refused);
	else
		cli->screen.colour = !strcmp(when, "always");
	return when ? cli_one_of(cli, "color", when, &words) : CLI_OK;
}

/* ---- help */

static void option_show(const struct form *form, const void *field, struct cell *ret_cell)
{
	const struct option_row *row = field;
	char letter[] = { '-', row->letter, ',', '\0' };

	cell_print(ret_cell, NULL, "  %3s --%s%s%s", row->letter ? letter : "", row->name,
		   row->argument ? " " : "", row->argument ? row->argument : "");
}

static const struct form form_option = { .show = option_show };

static json_t *letter_json(const struct form *form, const void *field)
{
	const char letter[] = { *(const char *)field, '\0' };

	return form_json_text(letter);
}

static const struct form form_letter = { .json = letter_json };

static const struct column option_columns[] = {
	{ .title = "", .form = &form_option },
	COLUMN(struct option_row, name, "name", NULL, form_string),
	COLUMN(struct option_row, letter, "letter", NULL, form_letter),
	COLUMN(struct option_row, argument, "argument", NULL, form_string),
	COLUMN(struct option_row, help, "help", "", form_string, .flows = true),
	COLUMNS_END,
};

static const struct column command_columns[] = {
	COLUMN(struct command, name, "name", "", form_string),
	COLUMN(struct command, synopsis, "synopsis", NULL, form_string),
	COLUMN(struct command, options, "options", NULL, form_words),
	COLUMN(struct command, help, "help", "", form_string, .flows = true),
	COLUMNS_END,
};

static int help(const struct cli *cli)
{
	static const struct command any = { .name = "COMMAND",
					    .synopsis = "[OPTION]... [ARGUMENT]..." };
	const struct command *command = cli->command ? cli->command : &any;
	const struct list all = { (void *)commands, COMMANDS, sizeof(commands[0]) };
	struct list options = { .size = sizeof(struct option_row) };
	struct page page;

	for (int i = 0; i < OPTIONS; i++)
		if (takes(cli->command, &option_rows[i]))
			*(struct option_row *)list_add(&options) = option_rows[i];
	cli_page_begin(&page, cli);
	page_sentence(&page, NULL, "usage: %s %s%s%s", CLI_NAME, command->name,
		      *command->synopsis ? " " : "", command->synopsis);
	if (cli->command) {
		page_sentence(&page, NULL, "%s", command->help);
		page_json(&page, "command", table_json_record(command_columns, command));
	} else {
		page_table(&page, "commands", command_columns, &all);
	}
	page_table(&page, "options", option_columns, &options);
	free(options.row);
	return page_end(&page);
}

static int version(const struct cli *cli)
{
	struct page page;

	cli_page_begin(&page, cli);
	page_sentence(&page, NULL, "%s %s", CLI_NAME, CLI_VERSION);
	page_json(&page, "version", form_json_text(CLI_VERSION));
	return page_end(&page);
}

/* ---- from start to end */

static int serve(struct cli *cli, int argc, char **argv)
{
	int result = read_words(cli, argc, argv);
	unsigned name;

	if (!result)
		result = look_at_screen(cli);
	if (result)
		return result;
	if (cli->options.version.count)
		return version(cli);
	if (cli->options.help.count && (cli->command || !cli->count))
		return help(cli);
	if (!cli->command)
		return not_found(cli);
	result = check_options(cli);
	if (result)
		return result;
	name = name_length(cli->command, cli->count, cli->operand);
	cli->operand += name;
	cli->count -= name;
	return cli->command->run(cli);
}

int main(int argc, char **argv)
{
	char **words = memory_need(calloc((size_t)argc + 1, sizeof(*words)));
	struct cli cli = { .operand = words };
	int result;

	setlocale(LC_CTYPE, "");
	result = serve(&cli, argc, argv);
	for (int i = 0; i < OPTIONS; i++)
		free(given_of(&cli, &option_rows[i])->value);
	free(words);
	errno = 0;
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "%s: the output cannot be written: %s\n", CLI_NAME,
			strerror(errno ? errno : EIO));
		return result ? result : CLI_WRONG;
	}
	return result;
}
