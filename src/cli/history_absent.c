/* SPDX-License-Identifier: MIT */
/* history, and events --since, in a build without the dashboard, and so without its database. */
#include "cli/cli.h"
#include "cli/past_events.h"

int command_history(const struct cli *cli)
{
	return cli_fail(cli, CLI_WRONG,
			"history: not in this build: expected one with -DRDMA_INTERCEPT_DASHBOARD=ON");
}

int past_events_since(const struct cli *cli, uint64_t *ret_ns)
{
	*ret_ns = 0;
	if (!cli_value(&cli->options.since))
		return CLI_OK;
	return cli_fail(cli, CLI_WRONG,
			"--since: not in this build: expected one with -DRDMA_INTERCEPT_DASHBOARD=ON");
}

int past_events_read(const struct cli *cli, uint64_t since_ns, const struct list *known,
		     struct list *events)
{
	return CLI_OK;
}
