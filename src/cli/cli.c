/* SPDX-License-Identifier: MIT */
/* What subcommands share: answering, failing, counting operands; see cli.h. */
#include "cli/cli.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "base/translation.h"
#include "terms/size.h"
#include "output/form.h"
#include "output/page.h"

const char *cli_value(const struct given *option)
{
	return option->count ? option->value[option->count - 1] : NULL;
}

void cli_page_begin(struct page *page, const struct cli *cli)
{
	page_open(page, &cli->screen, cli->options.json.count);
}

/* Runtimes throw away what hooks print: the administrator finds it in the system's log. */
static void failure_log(const struct cli *cli, const char *sentence)
{
	static const char hooks[] = "oci-hook ";

	if (!cli->command || strncmp(cli->command->name, hooks, sizeof(hooks) - 1))
		return;
	openlog(CLI_NAME, LOG_PID, LOG_DAEMON);
	syslog(LOG_ERR, "%s", sentence);
	closelog();
}

static int vfail(const struct cli *cli, int status, const char *format, va_list arguments)
{
	char *sentence;

	if (vasprintf(&sentence, _(format), arguments) < 0)
		memory_need(NULL);
	failure_log(cli, sentence);
	if (cli->options.json.count) {
		page_json_error(sentence);
	} else {
		char *printable = form_printable(sentence, NULL);

		fflush(stdout);
		fprintf(stderr, "%s: %s\n", CLI_NAME, printable);
		free(printable);
	}
	free(sentence);
	return cli->command && cli->command->starts ? CLI_RUN : status;
}

int cli_fail(const struct cli *cli, int status, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	status = vfail(cli, status, format, arguments);
	va_end(arguments);
	return status;
}

int cli_operands(const struct cli *cli, unsigned least, unsigned most)
{
	if (cli->count < least)
		return cli_fail(cli, CLI_USAGE, "%s: missing argument: expected %s",
				cli->command->name, cli->command->synopsis);
	if (cli->count > most)
		return cli_fail(cli, CLI_USAGE, "%s: unexpected argument '%s': expected %s",
				cli->command->name, cli->operand[most],
				most ? cli->command->synopsis : _("no argument"));
	return CLI_OK;
}

int cli_one_of(const struct cli *cli, const char *option, const char *word,
	       const struct words *words)
{
	char all[256] = "";

	for (unsigned i = 0; i < words->count; i++) {
		if (!strcmp(word, words->word[i]))
			return CLI_OK;
		snprintf(strchr(all, '\0'), sizeof(all) - strlen(all), "%s%s", i ? ", " : "",
			 words->word[i]);
	}
	return cli_fail(cli, CLI_USAGE, "--%s: invalid value '%s': expected one of: %s", option, word,
			all);
}

int cli_pid(const struct cli *cli, const char *text, size_t length, int32_t *ret_pid)
{
	uint64_t pid;

	if (size_parse(text, length, 1, false, &pid) < 0 || pid < 1 || pid > INT32_MAX)
		return cli_fail(cli, CLI_USAGE, "invalid process ID '%.*s': expected a number from 1 to %d",
				(int)length, text, INT32_MAX);
	*ret_pid = (int32_t)pid;
	return CLI_OK;
}
