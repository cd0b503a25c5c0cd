/* SPDX-License-Identifier: MIT */
/*
 * What every subcommand gets: the options as they were given, its operands, and
 * one way to fail. A subcommand is a row of commands.def; it returns an exit
 * status. There is no other state than struct cli.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stdbool.h>
#include <stdint.h>

#include "output/memory.h"
#include "output/table.h"

#define CLI_NAME "rdma_intercept"

/* Exit statuses; the man page explains them. */
enum {
	CLI_OK = 0,
	CLI_WRONG = 1, /* what was asked about is wrong, does not exist, or was refused */
	CLI_USAGE = 2,
	CLI_ABSENT = 3, /* no collector answers */
	CLI_FORBIDDEN = 4,
	CLI_RUN = 125,		 /* run: every failure of ours, */
	CLI_RUN_FAILED = 126,	 /* a program that cannot be executed, */
	CLI_RUN_NOT_FOUND = 127, /* one that is not there */
};

/* How often an option was given, and with which values. */
struct given {
	unsigned count;
	const char **value;
};

struct options {
#define OPTION(name, letter, argument, common, help) struct given name;
#include "cli/options.def"
#undef OPTION
};

struct command;

struct cli {
	struct options options;
	const struct command *command; /* NULL until it is known */
	unsigned count;		       /* of the operands after the command's name */
	char **operand;
	struct screen screen;
};

/* A row of commands.def, which explains them. */
struct command {
	const char *name;
	const char *synopsis;
	const char *options;
	const char *help;
	const char *examples;
	bool starts;
	int (*run)(const struct cli *cli);
};

#define COMMAND(function, name, synopsis, options, starts, help, examples)                         \
	int command_##function(const struct cli *cli);
#include "cli/commands.def"
#undef COMMAND

/* The last value of an option, or NULL. */
const char *cli_value(const struct given *option);

/* Says why, as one line on stderr or as a JSON document, and returns the exit status. */
int cli_fail(const struct cli *cli, int status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* 0 if there are at least and at most so many operands, or the exit status. */
int cli_operands(const struct cli *cli, unsigned least, unsigned most);

/* Words of which one may be chosen, and whether it was; an exit status. */
struct words {
	const char *const *word;
	unsigned count;
};
int cli_one_of(const struct cli *cli, const char *option, const char *word,
	       const struct words *words);

/* A process ID as it was typed; an exit status. */
int cli_pid(const struct cli *cli, const char *text, size_t length, int32_t *ret_pid);

/* Begins the answer, as text or as JSON. */
struct page;
void cli_page_begin(struct page *page, const struct cli *cli);

#endif
