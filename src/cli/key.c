/* SPDX-License-Identifier: MIT */
/*
 * show key: the keys that a policy can have, section by section, and the conditions of
 * its match lines, as the tables of the policy have them. The completion reads it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "output/form.h"
#include "output/memory.h"
#include "output/page.h"
#include "policy/conditions.h"
#include "policy/keys.h"

struct key_line {
	const char *section;
	char key[POLICY_KEY_NAME];
	const char *expected;
	char *initial;
	const char *help;
};

static const struct column key_columns[] = {
	COLUMN(struct key_line, section, "section", "section", form_string),
	COLUMN(struct key_line, key, "key", "key", form_text),
	COLUMN(struct key_line, initial, "default", "default", form_string),
	COLUMN(struct key_line, help, "meaning", "meaning", form_message, .flows = true),
	COLUMN(struct key_line, expected, "expected", NULL, form_string),
	COLUMNS_END,
};

struct condition_line {
	const char *condition;
	uint32_t in_kernel;
	const char *expected;
	const char *help;
};

static const struct column condition_columns[] = {
	COLUMN(struct condition_line, condition, "condition", "condition", form_string),
	COLUMN(struct condition_line, in_kernel, "guarded", "guarded", form_flag),
	COLUMN(struct condition_line, help, "meaning", "meaning", form_message, .flows = true),
	COLUMN(struct condition_line, expected, "expected", NULL, form_string),
	COLUMNS_END,
};

/* What counts if no section sets the key. */
static char *key_initial(const struct policy_key *key)
{
	char *text = NULL;
	size_t length;
	FILE *file = memory_need(open_memstream(&text, &length));

	if (key->initial)
		key->type->print(file, key->initial);
	fclose(file);
	return memory_need(text);
}

static void keys_append(struct list *lines, const struct policy_section *section)
{
	char form[POLICY_KEY_NAME];

	for (const struct policy_key *key = policy_keys; key < policy_keys + POLICY_KEYS; key++)
		for (unsigned i = 0; key->sections & section->bit && policy_key_form(key, i, form);
		     i++) {
			struct key_line *line = list_add(lines);

			line->section = section->name;
			strcpy(line->key, form);
			line->expected = key->type->expected;
			line->initial = key_initial(key);
			line->help = key->help;
		}
}

static void conditions_append(struct list *lines)
{
	for (int i = 0; i < POLICY_CONDITIONS; i++)
		*(struct condition_line *)list_add(lines) = (struct condition_line){
			.condition = policy_conditions[i].name,
			.in_kernel = policy_conditions[i].in_kernel,
			.expected = policy_conditions[i].type->expected,
			.help = policy_conditions[i].help,
		};
}

int command_show_key(const struct cli *cli)
{
	struct list keys = { .size = sizeof(struct key_line) };
	struct list conditions = { .size = sizeof(struct condition_line) };
	struct page page;
	int result = cli_operands(cli, 0, 1);

	if (result)
		return result;
	for (int i = 0; i < POLICY_SECTIONS; i++)
		if (!cli->count || !strcmp(policy_sections[i].name, cli->operand[0]))
			keys_append(&keys, &policy_sections[i]);
	if (!keys.count)
		return cli_fail(cli, CLI_USAGE,
				"show key: unknown section '%s': expected collector, host, default "
				"or tenant",
				cli->operand[0]);
	conditions_append(&conditions);
	cli_page_begin(&page, cli);
	page_table(&page, "keys", key_columns, &keys);
	page_table(&page, "conditions", condition_columns, &conditions);
	for (size_t i = 0; i < keys.count; i++)
		free(((struct key_line *)list_at(&keys, i))->initial);
	free(keys.row);
	free(conditions.row);
	return page_end(&page);
}
