/* SPDX-License-Identifier: MIT */
/* Changes of the policy in force; see change.h. */
#include "cli/change.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/collector.h"
#include "output/form.h"
#include "output/memory.h"
#include "output/page.h"
#include "policy/keys.h"
#include "policy/policy.h"

#define OWNERS "host, default or tenant NAME"

static bool one_line(const char *text)
{
	while (*text && !iscntrl((unsigned char)*text))
		text++;
	return !*text;
}

int change_tenant(const struct cli *cli, const char *name, struct proto_change *ret_change)
{
	if (!*name || strlen(name) >= NAME_SIZE || !one_line(name))
		return cli_fail(cli, CLI_USAGE,
				"invalid name of a tenant '%s': expected " POLICY_NAME_EXPECTED,
				name);
	*ret_change = (struct proto_change){ .section = "tenant " };
	strcat(ret_change->section, name);
	return CLI_OK;
}

int change_section(const struct cli *cli, struct proto_change *ret_change, unsigned *ret_words)
{
	static const char *const plain[] = { "host", "default" };
	const char *word = cli->count ? cli->operand[0] : "";

	for (unsigned i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		if (!strcmp(word, plain[i])) {
			*ret_change = (struct proto_change){ .text = "" };
			strcpy(ret_change->section, word);
			*ret_words = 1;
			return CLI_OK;
		}
	if (!cli->count || (!strcmp(word, "tenant") && cli->count < 2))
		return cli_fail(cli, CLI_USAGE, "%s: missing argument: expected " OWNERS,
				cli->command->name);
	if (strcmp(word, "tenant"))
		return cli_fail(cli, CLI_USAGE,
				"%s: unknown section '%s': expected " OWNERS ", such as tenant ml",
				cli->command->name, word);
	*ret_words = 2;
	return change_tenant(cli, cli->operand[1], ret_change);
}

int change_line(const struct cli *cli, struct proto_change *change, const char *key,
		const char *value)
{
	size_t used = strlen(change->text);
	int length;

	if (!one_line(key) || !one_line(value))
		return cli_fail(cli, CLI_USAGE, "%s: invalid value '%s': expected one line", key, value);
	length =
		snprintf(change->text + used, sizeof(change->text) - used, "%s = %s\n", key, value);
	if ((size_t)length >= sizeof(change->text) - used)
		return cli_fail(cli, CLI_USAGE,
				"the change is too long at '%s': expected at most %zu bytes in one "
				"command",
				key, sizeof(change->text) - 1);
	return CLI_OK;
}

static bool change_has_key(const struct proto_change *change, const char *key)
{
	size_t length = strlen(key);

	for (const char *line = change->text; *line; line = strchr(line, '\n') + 1)
		if (!strncmp(line, key, length) && line[length] == ' ')
			return true;
	return false;
}

int change_assignment(const struct cli *cli, struct proto_change *change, const char *word)
{
	const char *equals = strchr(word, '=');
	char key[PROTO_TEXT];

	if (!equals || equals == word || !equals[1])
		return cli_fail(cli, CLI_USAGE, "invalid argument '%s': expected KEY=VALUE", word);
	snprintf(key, sizeof(key), "%.*s", (int)(equals - word), word);
	if (change_has_key(change, key) && strcmp(key, "match"))
		return cli_fail(cli, CLI_USAGE, "%s: '%s' is given twice: expected each key once",
				cli->command->name, key);
	return change_line(cli, change, key, equals + 1);
}

/* The sentence of the collector is English. The same reader says it in the user's language. */
static void change_problem_translate(const struct proto_change *change, char problem[PROBLEM_SIZE])
{
	struct policy *policy = memory_need(policy_new());
	char own[PROBLEM_SIZE];

	if (policy_change(policy, change->section, change->text, own) == -EINVAL)
		strcpy(problem, own);
	policy_free(policy);
}

int change_ask(const struct cli *cli, enum message type, const struct proto_change *change)
{
	char path[PROTO_PATH], problem[PROBLEM_SIZE];
	int result = collector_path(cli, path);

	if (result)
		return result;
	result = proto_call(path, type, change, NULL, NULL, PROTO_LOOKS_UP, 0, problem);
	if (result == -EINVAL)
		change_problem_translate(change, problem);
	return result < 0 ? collector_fail_change(cli, path, result, problem) : CLI_OK;
}

int change_send(const struct cli *cli, enum message type, const struct proto_change *change)
{
	struct page page;
	int result = change_ask(cli, type, change);

	if (result)
		return result;
	cli_page_begin(&page, cli);
	page_json(&page, "section", form_json_text(change->section));
	return page_end(&page);
}
