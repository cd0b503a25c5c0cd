/* SPDX-License-Identifier: MIT */
/* dashboard: becomes rdma_dashboard, in the foreground, with the collector of this command. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/collector.h"
#include "cli/library.h"

#define DASHBOARD_PROGRAM "rdma_dashboard"

int command_dashboard(const struct cli *cli)
{
	static const char *const places[] = { "", "/../sbin" };
	const struct {
		const char *name, *value;
	} passed[] = {
		{ "--listen", cli_value(&cli->options.listen) },
		{ "--state", cli_value(&cli->options.state) },
	};
	char directory[PATH_MAX], program[PATH_MAX + 32], socket[PROTO_PATH];
	const char *arguments[16] = { DASHBOARD_PROGRAM, "--socket", socket };
	unsigned count = 3;
	int result = cli_operands(cli, 0, 0);

	if (!result)
		result = collector_path(cli, socket);
	if (result)
		return result;
	for (unsigned i = 0; i < sizeof(passed) / sizeof(passed[0]); i++)
		if (passed[i].value) {
			arguments[count++] = passed[i].name;
			arguments[count++] = passed[i].value;
		}
	if (cli->options.token.count)
		arguments[count++] = "--token";
	if (cli->options.token.count && cli->options.json.count)
		arguments[count++] = "--json";
	library_own_directory(directory);
	for (unsigned i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(program, sizeof(program), "%s%s/%s", directory, places[i],
			 DASHBOARD_PROGRAM);
		execv(program, (char *const *)arguments);
	}
	execvp(DASHBOARD_PROGRAM, (char *const *)arguments);
	return cli_fail(cli, CLI_WRONG, "%s: cannot be started: %s", DASHBOARD_PROGRAM,
			strerror(errno));
}
