/* SPDX-License-Identifier: MIT */
/* Asking the collector, and what its failures mean for the user; see collector.h. */
#include "cli/collector.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "view/host.h"

int collector_path(const struct cli *cli, char ret_path[PROTO_PATH])
{
	const char *chosen = cli_value(&cli->options.socket);

	if (!chosen)
		chosen = getenv(PROTO_SOCKET_VARIABLE);
	if (proto_socket_path(chosen, ret_path) < 0)
		return cli_fail(cli, CLI_USAGE, "%s: a socket's path has less than %d characters",
				chosen, PROTO_PATH);
	return CLI_OK;
}

static const struct {
	int error;
	int status;
} outcomes[] = {
	{ -ECONNREFUSED, CLI_ABSENT }, { -ECONNRESET, CLI_ABSENT }, { -ETIMEDOUT, CLI_ABSENT },
	{ -EPROTO, CLI_ABSENT },       { -EPERM, CLI_FORBIDDEN },   { -EACCES, CLI_FORBIDDEN },
};

static int outcome(const char *path, int error)
{
	struct proto_status status;
	char problem[PROBLEM_SIZE];

	/* Either there is no socket, or a collector that knows no such thing. */
	if (error == -ENOENT)
		return proto_call(path, MESSAGE_STATUS, NULL, &status, NULL, 0, 0, problem) < 0 ?
			       CLI_ABSENT :
			       CLI_WRONG;
	for (unsigned i = 0; i < sizeof(outcomes) / sizeof(outcomes[0]); i++)
		if (outcomes[i].error == error)
			return outcomes[i].status;
	return CLI_WRONG;
}

bool collector_may_come(int error)
{
	return error == -ENOENT || error == -ECONNREFUSED || error == -ECONNRESET ||
	       error == -ETIMEDOUT;
}

int collector_has_no_tenant(const struct cli *cli, const char *tenant)
{
	return cli_fail(cli, CLI_WRONG,
			"the collector has no tenant '%s': '" CLI_NAME " show tenants' lists them",
			tenant);
}

int collector_fail(const struct cli *cli, const char *path, int error, const char *problem)
{
	struct proto_status status;
	char unused[PROBLEM_SIZE];
	struct stat there;

	if (!stat(path, &there) && !S_ISSOCK(there.st_mode))
		return cli_fail(cli, CLI_ABSENT,
				"%s is not a socket: expected the path of the collector's socket: "
				"--socket PATH",
				path);
	if ((error == -ENOENT || error == -ECONNREFUSED) && outcome(path, error) == CLI_ABSENT)
		/* (no unit serves a socket that was named) */
		return cli_value(&cli->options.socket) ?
			       cli_fail(cli, CLI_ABSENT,
					"%s; start it: collector_server --daemon --socket %s, or name "
					"another socket: --socket PATH",
					problem, path) :
			       cli_fail(cli, CLI_ABSENT,
					"%s; start it: %s, or name another socket: --socket PATH",
					problem, host_start(HOST_COLLECTOR));
	if (error != -EPROTO ||
	    proto_call(path, MESSAGE_STATUS, NULL, &status, NULL, 0, 0, unused) < 0)
		return cli_fail(cli, outcome(path, error), "%s", problem);
	return cli_fail(cli, outcome(path, error),
			"%s (the collector is of version %s, this command of %s)", problem,
			proto_text(status.version), CLI_VERSION);
}

int collector_fail_change(const struct cli *cli, const char *path, int error, const char *problem)
{
	int status = outcome(path, error);

	if (status == CLI_ABSENT)
		return collector_fail(cli, path, error, problem);
	return cli_fail(cli, status, "%s: %s", cli->command->name, problem);
}

int collector_ask(const struct cli *cli, enum message type, const void *body, void *ret_body)
{
	char path[PROTO_PATH], problem[PROBLEM_SIZE];
	/* Changes of the policy may have names of users and groups in them. */
	unsigned flags = proto_message(type)->access == ACCESS_ADMIN ? PROTO_LOOKS_UP : 0;
	int result = collector_path(cli, path);

	if (result)
		return result;
	result = proto_call(path, type, body, ret_body, NULL, flags, 0, problem);
	if (result >= 0)
		return CLI_OK;
	return (flags ? collector_fail_change : collector_fail)(cli, path, result, problem);
}

int collector_rows(const struct cli *cli, enum message type, const struct proto_choose *choose,
		   proto_row_function *each, void *closure)
{
	char path[PROTO_PATH], problem[PROBLEM_SIZE];
	int result = collector_path(cli, path);

	if (result)
		return result;
	result = proto_rows(path, type, choose, each, closure, 0, problem);
	return result < 0 ? collector_fail(cli, path, result, problem) : result;
}
