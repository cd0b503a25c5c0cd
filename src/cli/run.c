/* SPDX-License-Identifier: MIT */
/*
 * run: starts a program with the library in front of all others it is preloaded
 * with, and with the settings that the options ask for. Everything is checked
 * before, since the library itself would only complain and go on.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/collector.h"
#include "cli/library.h"
#include "terms/limit_list.h"
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

/* ---- limits */

/* Writes one list as the library takes it, with the scope of each part. */
static int list_write(const struct cli *cli, FILE *out, const char *text)
{
	struct limit_list list = { .at = text, .typed = true };
	struct limit_item item;
	int result;

	while ((result = limit_list_next(&list, &item)) > 0) {
		if (!item.first)
			fputc(',', out);
		else if (ftell(out))
			fputc(';', out);
		if (item.first && item.port)
			fprintf(out, "port:%.*s/%u:", (int)item.device_length, item.device,
				item.port);
		else if (item.first && item.scope == SCOPE_DEVICE)
			fprintf(out, "device:%.*s:", (int)item.device_length, item.device);
		else if (item.first)
			fprintf(out, "%s:", scope_names[item.scope]);
		fprintf(out, "%.*s", (int)item.length, item.text);
	}
	if (result < 0 || !*text) /* an empty list is a mistake, an empty end is not */
		return cli_fail(cli, CLI_RUN,
				"'%.*s' is not a limit such as qp=10 or host:mr_bytes=1G; "
				"see %s show kind",
				(int)strcspn(list.at, ",;"), list.at, CLI_NAME);
	return CLI_OK;
}

/* What the environment says already stays in force where the options are silent: of two
 * values for one limit, the library takes the later. */
static int set_limits(const struct cli *cli)
{
	const struct given *option = &cli->options.limit;
	const char *inherited = getenv(SETTING("LIMITS"));
	char *limits = NULL;
	size_t size;
	FILE *out;
	int result;

	if (!option->count)
		return CLI_OK;
	out = memory_need(open_memstream(&limits, &size));
	result = inherited && *inherited ? list_write(cli, out, inherited) : CLI_OK;
	for (unsigned i = 0; !result && i < option->count; i++)
		result = list_write(cli, out, option->value[i]);
	if (fclose(out))
		memory_need(NULL);
	if (!result)
		set(SETTING("LIMITS"), limits);
	free(limits);
	return result;
}

/* ---- the other settings */

static int set_choice(const struct cli *cli, const char *name, const char *option,
		      const struct given *given, const struct words *words)
{
	const char *word = cli_value(given);
	int result = word ? cli_one_of(cli, option, word, words) : CLI_OK;

	if (word && !result)
		set(name, word);
	return result;
}

static int set_preload(const struct cli *cli)
{
	const char *others = getenv(PRELOAD);
	char library[PATH_MAX], problem[PROBLEM_SIZE], *all;

	if (library_find(library, problem) < 0)
		return cli_fail(cli, CLI_RUN, "%s", problem);
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
	int result = cli_operands(cli, 1, UINT_MAX), error;

	if (!result)
		result = check_tenant(cli);
	if (!result)
		result = set_limits(cli);
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
	cli_fail(cli, CLI_RUN, "%s: %s", cli->operand[0], strerror(error));
	return error == ENOENT ? CLI_RUN_NOT_FOUND : CLI_RUN_FAILED;
}
