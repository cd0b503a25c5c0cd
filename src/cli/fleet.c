/* SPDX-License-Identifier: MIT */
/* fleet: becomes rdma_fleet, which alone speaks with etcd, with the second word of the command. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/library.h"
#include "output/memory.h"

#define FLEET_PROGRAM "rdma_fleet"

static int fleet_become(const struct cli *cli, unsigned most)
{
	static const char *const places[] = { "", "/../sbin" };
	const char *config = cli_value(&cli->options.config);
	const char **arguments = memory_need(calloc(cli->count + 8, sizeof(*arguments)));
	char directory[PATH_MAX], program[PATH_MAX + 32];
	unsigned count = 0;
	int result = cli_operands(cli, 0, most);

	if (result)
		return result;
	arguments[count++] = FLEET_PROGRAM;
	if (config) {
		arguments[count++] = "--config";
		arguments[count++] = config;
	}
	if (cli->options.json.count)
		arguments[count++] = "--json";
	arguments[count++] = strchr(cli->command->name, ' ') + 1;
	for (unsigned i = 0; i < cli->count; i++)
		arguments[count++] = cli->operand[i];
	library_own_directory(directory);
	for (unsigned i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(program, sizeof(program), "%s%s/%s", directory, places[i], FLEET_PROGRAM);
		execv(program, (char *const *)arguments);
	}
	execvp(FLEET_PROGRAM, (char *const *)arguments);
	if (errno == ENOENT)
		return cli_fail(cli, CLI_WRONG, "%s is not installed: install the package "
				"rdma-intercept-fleet, or build it with libcurl", FLEET_PROGRAM);
	return cli_fail(cli, CLI_WRONG, "%s: cannot be started: %s", FLEET_PROGRAM, strerror(errno));
}

int command_fleet_status(const struct cli *cli)
{
	return fleet_become(cli, 0);
}

int command_fleet_tenants(const struct cli *cli)
{
	return fleet_become(cli, 0);
}

int command_fleet_limit(const struct cli *cli)
{
	return fleet_become(cli, UINT_MAX);
}

int command_fleet_quota(const struct cli *cli)
{
	return fleet_become(cli, UINT_MAX);
}

int command_fleet_policy(const struct cli *cli)
{
	return fleet_become(cli, 1);
}

int command_fleet_forget(const struct cli *cli)
{
	return fleet_become(cli, 1);
}
