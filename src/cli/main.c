/* SPDX-License-Identifier: MIT */
/*
 * The command for people. This file reads the command line by the tables
 * options.def and commands.def, makes the help texts from them, and calls the
 * subcommand; what it does is in a file of its own.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/translation.h"
#include "base/nearest.h"
#include "cli/cli.h"
#include "cli/names.h"
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
#define COMMAND(function, name, synopsis, options, starts, help, examples)                         \
	{ name, synopsis, options, help, examples, starts, command_##function },
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

/* Whether the command's name begins with all of the words, as "limit set" does with "limit". */
static bool command_begins(const struct command *command, unsigned count, char **words)
{
	const char *name = command->name;

	for (unsigned i = 0; i < count; i++) {
		size_t length = strlen(words[i]);

		if (strncmp(name, words[i], length) || (name[length] && name[length] != ' '))
			return false;
		name += length + (name[length] == ' ');
	}
	return true;
}

static bool is_group(unsigned count, char **words)
{
	for (unsigned i = 0; i < COMMANDS; i++)
		if (command_begins(&commands[i], count, words))
			return true;
	return false;
}

/* The second words of the commands with this first one. */
static int second_missing(const struct cli *cli)
{
	struct nearest nearest = { .word = cli->count > 1 ? cli->operand[1] : "" };
	char seconds[256] = "";

	for (unsigned i = 0; i < COMMANDS; i++) {
		const char *second = strchr(commands[i].name, ' ');

		if (!second || !command_begins(&commands[i], 1, cli->operand))
			continue;
		nearest_offer(&nearest, second + 1, strlen(second + 1));
		snprintf(strchr(seconds, '\0'), sizeof(seconds) - strlen(seconds), "%s%s",
			 *seconds ? ", " : "", second + 1);
	}
	if (nearest.best)
		return cli_fail(cli, CLI_USAGE, "%s: unknown word '%s': did you mean '%s'?",
				cli->operand[0], nearest.word, nearest.best);
	if (*nearest.word)
		return cli_fail(cli, CLI_USAGE, "%s: unknown word '%s': expected one of: %s",
				cli->operand[0], nearest.word, seconds);
	return cli_fail(cli, CLI_USAGE, "%s: missing word: expected one of: %s", cli->operand[0],
			seconds);
}

/* The command whose second word is this one, or its plural, as "limit set" for "set"; NULL if no
 * command has this second word. */
static const char *command_of_second(const char *word)
{
	for (unsigned i = 0; i < COMMANDS; i++) {
		const char *second = strchr(commands[i].name, ' ');
		size_t length = second ? strlen(second + 1) : 0;

		if (length && !strncmp(second + 1, word, length) &&
		    (!word[length] || !strcmp(word + length, "s") || !strcmp(word + length, "es")))
			return commands[i].name;
	}
	return NULL;
}

static int not_found(const struct cli *cli)
{
	const char *other;
	struct nearest nearest = { .word = cli->count ? cli->operand[0] : "" };

	if (!cli->count)
		return cli_fail(cli, CLI_USAGE, "missing command: %s help lists them", CLI_NAME);
	if (is_group(1, cli->operand))
		return second_missing(cli);
	other = command_of_second(nearest.word);
	if (other)
		return cli_fail(cli, CLI_USAGE, "unknown command '%s': did you mean '%s'?", nearest.word,
				other);
	for (unsigned i = 0; i < COMMANDS; i++)
		nearest_offer(&nearest, commands[i].name, strcspn(commands[i].name, " "));
	if (nearest.best)
		return cli_fail(cli, CLI_USAGE, "unknown command '%s': did you mean '%.*s'?",
				nearest.word, (int)nearest.length, nearest.best);
	return cli_fail(cli, CLI_USAGE, "unknown command '%s': %s help lists them", nearest.word,
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

static int option_unknown(const struct cli *cli, const char *word)
{
	char name[64];
	struct nearest nearest = { .word = name };

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(word + 2, "="), word + 2);
	for (int i = 0; i < OPTIONS; i++)
		if (!cli->command || takes(cli->command, &option_rows[i]))
			nearest_offer(&nearest, option_rows[i].name, strlen(option_rows[i].name));
	if (nearest.best)
		return cli_fail(cli, CLI_USAGE, "unknown option '%s': did you mean '--%s'?", word,
				nearest.best);
	return cli_fail(cli, CLI_USAGE, "unknown option '%s': %s --help lists them", word, CLI_NAME);
}

static int complain(const struct cli *cli, const struct mistake *mistake)
{
	const struct option_row *row = row_of(mistake->letter);

	if (row && mistake->found == ':')
		return cli_fail(cli, CLI_USAGE, "option --%s needs a value: %s", row->name,
				row->argument);
	if (row)
		return cli_fail(cli, CLI_USAGE, "option --%s takes no value", row->name);
	if (mistake->letter)
		return cli_fail(cli, CLI_USAGE, "unknown option '-%c': %s --help lists them",
				mistake->letter, CLI_NAME);
	return option_unknown(cli, mistake->word);
}

/* "show tenants" is "show tenant", and so it is behind "help". */
static char *singular(const struct cli *cli, char *word)
{
	static char *const nouns[][2] = {
		{ "tenants", "tenant" }, { "processes", "process" }, { "devices", "device" },
		{ "kinds", "kind" },	 { "keys", "key" },
	};

	unsigned first = cli->count && !strcmp(cli->operand[0], "help");

	for (unsigned i = 0; i < sizeof(nouns) / sizeof(nouns[0]); i++)
		if (cli->count == first + 1 && !strcmp(cli->operand[first], "show") &&
		    !strcmp(word, nouns[i][0]))
			return nouns[i][1];
	return word;
}

static void add_operand(struct cli *cli, char *word)
{
	cli->operand[cli->count] = singular(cli, word);
	cli->count++;
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
	/* JSON is for programs: its sentences are English in every locale. */
	if (cli->options.json.count)
		translation_close();
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
	const char *kind = getenv("TERM");
	bool terminal = isatty(STDOUT_FILENO);
	struct winsize size;

	if (terminal && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size))
		cli->screen.width = size.ws_col;
	if (!when || !strcmp(when, "auto"))
		cli->screen.colour = terminal && !(refused && *refused) && kind &&
				     strcmp(kind, "dumb") != 0;
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
	COLUMN(struct option_row, help, "help", "", form_message, .flows = true),
	COLUMNS_END,
};

static const struct column command_columns[] = {
	COLUMN(struct command, name, "name", "", form_string),
	COLUMN(struct command, synopsis, "synopsis", NULL, form_string),
	COLUMN(struct command, options, "options", NULL, form_words),
	COLUMN(struct command, help, "help", "", form_message, .flows = true),
	COLUMN(struct command, examples, "examples", NULL, form_string),
	COLUMNS_END,
};

/* Of one command, or of those whose names begin with the words. */
static int help(const struct cli *cli, unsigned count, char **words)
{
	const struct command *command = command_find(count, words);
	struct list options = { .size = sizeof(struct option_row) };
	struct list members = { .size = sizeof(struct command) };
	struct page page;

	for (int i = 0; i < OPTIONS; i++)
		if (takes(command, &option_rows[i]))
			*(struct option_row *)list_add(&options) = option_rows[i];
	for (unsigned i = 0; i < COMMANDS; i++)
		if (command_begins(&commands[i], count, words))
			*(struct command *)list_add(&members) = commands[i];
	cli_page_begin(&page, cli);
	if (command) {
		page_sentence(&page, NULL, "usage: %s %s%s%s", CLI_NAME, command->name,
			      *command->synopsis ? " " : "", command->synopsis);
		page_sentence(&page, NULL, "%s", _(command->help));
		page_json(&page, "command", table_json_record(command_columns, command));
	} else {
		page_sentence(&page, NULL, "usage: %s %s%sCOMMAND [OPTION]... [ARGUMENT]...",
			      CLI_NAME, count ? words[0] : "", count ? " " : "");
		page_table(&page, "commands", command_columns, &members);
	}
	page_table(&page, "options", option_columns, &options);
	if (command)
		page_lines(&page, "Examples:", command->examples);
	free(options.row);
	free(members.row);
	return page_end(&page);
}

int command_help(const struct cli *cli)
{
	return is_group(cli->count, cli->operand) || command_find(cli->count, cli->operand) ?
		       help(cli, cli->count, cli->operand) :
		       not_found(cli);
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
	if (cli->options.help.count && (cli->command || is_group(cli->count, cli->operand)))
		return help(cli, cli->count, cli->operand);
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

	translation_open();
	policy_accounts_by(name_ask, NULL);
	result = serve(&cli, argc, argv);
	for (int i = 0; i < OPTIONS; i++)
		free(given_of(&cli, &option_rows[i])->value);
	free(words);
	errno = 0;
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, _("%s: the output cannot be written: %s\n"), CLI_NAME,
			strerror(errno ? errno : EIO));
		return result ? result : CLI_WRONG;
	}
	return result;
}
