/* SPDX-License-Identifier: MIT */
/*
 * run: starts a program with the library in front of all others it is preloaded
 * with, and with the settings that the options ask for. Everything is checked
 * before: the library itself would only complain and go on, and the dynamic linker
 * starts a program without the library if it cannot load it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/translation.h"
#include "cli/collector.h"
#include "cli/library.h"
#include "cli/program.h"
#include "cli/run_limits.h"
#include "terms/terms.h"

#define SETTING(name) "RDMA_INTERCEPT_" name
#define PRELOAD "LD_PRELOAD"

static const struct words modes = { mode_names, MODES };
static const struct words transports = { transport_names, TRANSPORTS };

static void set(const char *name, const char *value)
{
	if (setenv(name, value, true))
		memory_need(NULL);
}

static int set_choice(const struct cli *cli, const char *name, const char *option,
		      const struct given *given, const struct words *words)
{
	const char *word = cli_value(given);
	int result = word ? cli_one_of(cli, option, word, words) : CLI_OK;

	if (word && !result)
		set(name, word);
	return result;
}

/* Refuses, or with --try warns of, a program that would run without the library. */
static int check_program(const struct cli *cli, const char *library)
{
	char reason[PROBLEM_SIZE], problem[PROBLEM_SIZE];

	if (!program_check(cli->operand[0], library, problem)) {
		if (!library_load_try(library, reason))
			return CLI_OK;
		problem_set(-ELIBBAD, problem,
			    _("not started: the library cannot be loaded: %s: install the one that was "
			      "built for this system, or set %s; --try starts the program anyway, "
			      "without limits"),
			    reason, LIBRARY_VARIABLE);
	}
	if (!cli->options.try.count)
		return cli_fail(cli, CLI_RUN, "%s", problem);
	fprintf(stderr, _("%s: warning: the program starts without limits\n"), CLI_NAME);
	return CLI_OK;
}

static int set_preload(const struct cli *cli)
{
	const char *others = getenv(PRELOAD);
	char library[PATH_MAX], problem[PROBLEM_SIZE], *all;
	int result;

	if (library_find(library, problem) < 0)
		return cli_fail(cli, CLI_RUN, "%s", problem);
	result = check_program(cli, library);
	if (result)
		return result;
	if (asprintf(&all, "%s%s%s", library, others && *others ? ":" : "", others ? others : "") <
	    0)
		memory_need(NULL);
	set(PRELOAD, all);
	free(all);
	return CLI_OK;
}

/* A process cannot choose its tenant; but it can be told not to start in another one. */
static int check_tenant(const struct cli *cli)
{
	const char *wanted = cli_value(&cli->options.tenant);
	const struct proto_ask ask = { .pid = 0 }; /* whoever asks: our number may be another one there */
	struct proto_explanation explanation;
	int result;

	if (!wanted)
		return CLI_OK;
	result = collector_ask(cli, MESSAGE_EXPLAIN, &ask, &explanation);
	if (!result && strcmp(wanted, proto_text(explanation.tenant)))
		result = cli_fail(cli, CLI_RUN,
				  "not started: this process belongs to tenant '%s', not to '%s'; "
				  "see %s explain %d",
				  explanation.tenant, wanted, CLI_NAME, (int)getppid());
	return result;
}

int command_run(const struct cli *cli)
{
	const struct options *options = &cli->options;
	char problem[PROBLEM_SIZE];
	int result = cli_operands(cli, 1, UINT_MAX), error;

	if (!result)
		result = check_tenant(cli);
	if (!result)
		result = run_limits_set(cli);
	if (!result)
		result =
			set_choice(cli, SETTING("MODE"), "mode", &options->mode, &modes);
	if (!result)
		result = set_choice(cli, SETTING("TRANSPORT"), "transport", &options->transport,
				    &transports);
	if (!result && options->socket.count)
		set(PROTO_SOCKET_VARIABLE, cli_value(&options->socket));
	if (!result && options->quiet.count)
		set(SETTING("QUIET"), "1");
	if (!result)
		result = set_preload(cli);
	if (result)
		return result;
	execvp(cli->operand[0], cli->operand);
	error = errno;
	program_failure(cli->operand[0], error, problem);
	cli_fail(cli, CLI_RUN, "%s", problem);
	return error == ENOENT ? CLI_RUN_NOT_FOUND : CLI_RUN_FAILED;
}
