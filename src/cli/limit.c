/* SPDX-License-Identifier: MIT */
/* limit get, set and unset: the limits of the host, of tenants and of their processes. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/change.h"
#include "cli/owners.h"
#include "cli/paces.h"
#include "cli/rates.h"
#include "view/vocabulary.h"

/* ---- get */

struct limit {
	char section[2 * NAME_SIZE];
	char key[LIMIT_KEY + 16]; /* "guarantee." and a key */
	const char *kind;
	char device[NAME_SIZE + 4]; /* or a port of one */
	uint32_t of_each_process;
	struct amount value;
};

static const struct column limit_columns[] = {
	COLUMN(struct limit, section, "section", "section", form_text),
	COLUMN(struct limit, key, "key", "key", form_text),
	COLUMN(struct limit, value, "value", "value", form_amount),
	COLUMN(struct limit, kind, "kind", NULL, form_string),
	COLUMN(struct limit, device, "device", NULL, form_text),
	COLUMN(struct limit, of_each_process, "of_each_process", NULL, form_flag),
	COLUMNS_END,
};

static void limit_place(const struct owner *owner, const struct share *share,
			char ret_place[NAME_SIZE + 4])
{
	unsigned port = kind_port((unsigned)(share - owner->share));

	snprintf(ret_place, NAME_SIZE + 4, port ? "%s/%u" : "%s", owner->row.device, port);
}

/* What a tenant, each of its processes, or the host has of a kind: the amounts of a share. */
enum limit_sort { LIMIT_OF_ALL, LIMIT_OF_EACH, LIMIT_RESERVED, LIMIT_SORTS };

/* NULL: the policy says nothing of it. */
static const struct amount *limit_value(const struct owner *owner, const struct share *share,
					enum limit_sort sort)
{
	const struct amount *const amounts[LIMIT_SORTS] = {
		[LIMIT_OF_ALL] = &share->limit,
		[LIMIT_OF_EACH] = &share->process_limit,
		[LIMIT_RESERVED] = &share->guarantee,
	};
	uint64_t nothing = sort == LIMIT_RESERVED ? 0 : UNLIMITED;

	if (amounts[sort]->value == nothing ||
	    (owner->row.flags & ROW_FORBIDDEN && sort != LIMIT_OF_EACH))
		return NULL;
	return amounts[sort];
}

static void limit_append(struct list *limits, const char *section, const struct owner *owner,
			 const struct share *share, enum limit_sort sort)
{
	const struct amount *value = limit_value(owner, share, sort);
	char key[LIMIT_KEY];
	struct limit *limit;

	if (!value)
		return;
	limit = list_add(limits);
	strcpy(limit->section, section);
	limit_place(owner, share, limit->device);
	limit->kind = share->kind;
	limit->of_each_process = sort == LIMIT_OF_EACH;
	limit->value = *value;
	vocabulary_key(limit->of_each_process, limit->device, share->kind, key);
	snprintf(limit->key, sizeof(limit->key), "%s%s", sort == LIMIT_RESERVED ? "guarantee." : "",
		 key);
}

/* What a policy would call the owner. */
static void section_of(const struct owner *owner, char ret_section[2 * NAME_SIZE])
{
	if (owner->row.scope == ROW_HOST)
		strcpy(ret_section, "host");
	else
		strcat(strcpy(ret_section, "tenant "), owner->row.tenant);
}

/* Limits of the owners whose section is wanted ("": of all); whether there are such owners. */
static bool limits_append(struct list *limits, const struct list *owners, const char *wanted)
{
	bool found = false;

	for (size_t i = 0; i < owners->count; i++) {
		const struct owner *owner = list_at(owners, i);
		char section[2 * NAME_SIZE];

		section_of(owner, section);
		if (*wanted && strcmp(wanted, section))
			continue;
		found = true;
		for (int kind = 0; kind < KINDS_COUNTED; kind++)
			for (int sort = 0; sort < LIMIT_SORTS; sort++)
				limit_append(limits, section, owner, &owner->share[kind],
					     (enum limit_sort)sort);
	}
	return found;
}

static int limit_compare(const void *one, const void *other)
{
	const struct limit *a = one, *b = other;
	int order = strcmp(a->section, b->section);

	if (!order)
		order = strcmp(a->device, b->device);
	if (!order)
		order = (int)a->of_each_process - (int)b->of_each_process;
	return order ? order : strcmp(a->key, b->key);
}

/* What else limits the tenant of a section, or ("") all of them: rates and paces. */
static int settings_append(const struct cli *cli, struct page *page, const char *section)
{
	struct proto_choose choose = { .flags = 0 };
	int result;

	if (*section)
		snprintf(choose.tenant, sizeof(choose.tenant), "%.*s", NAME_SIZE - 1,
			 section + strlen("tenant "));
	result = rates_show(cli, page, &choose);
	return result ? result : paces_show(cli, page, choose.tenant);
}

int command_limit_get(const struct cli *cli)
{
	struct proto_change wanted = { .section = "" };
	struct list limits = { .size = sizeof(struct limit) };
	struct owners owners;
	struct page page;
	unsigned words = 0;
	bool found = false;
	int result = cli->count ? change_section(cli, &wanted, &words) : CLI_OK;

	if (!result)
		result = cli_operands(cli, 0, words);
	if (result)
		return result;
	/* The collector tells what is in force, which for [default] shows at the tenant of
	 * those that no rule names. */
	if (!strcmp(wanted.section, "default"))
		strcpy(wanted.section, "tenant default");
	result = owners_ask(cli, MESSAGE_GET_STATS, NULL, &owners);
	for (int scope = 0; !result && scope < OWNER_SCOPES; scope++) {
		found |= limits_append(&limits, &owners.in_total[scope], wanted.section);
		limits_append(&limits, &owners.on_devices[scope], wanted.section);
	}
	if (!result && !found)
		result = cli_fail(cli, CLI_WRONG, "the collector knows no %s", wanted.section);
	if (!result) {
		if (limits.count)
			qsort(limits.row, limits.count, limits.size, limit_compare);
		cli_page_begin(&page, cli);
		page_table(&page, "limits", limit_columns, &limits);
		if (strcmp(wanted.section, "host") != 0)
			result = settings_append(cli, &page, wanted.section);
		if (!result)
			result = page_end(&page);
	}
	owners_free(&owners);
	free(limits.row);
	return result;
}

/* ---- set and unset */

/* The words after the section, each made a line of the change. */
static int send_lines(const struct cli *cli,
		      int (*line)(const struct cli *cli, struct proto_change *change,
				  const char *word))
{
	struct proto_change change;
	unsigned words;
	int result = change_section(cli, &change, &words);

	if (!result)
		result = cli_operands(cli, words + 1, UINT_MAX);
	for (unsigned i = words; !result && i < cli->count; i++)
		result = line(cli, &change, cli->operand[i]);
	return result ? result : change_send(cli, MESSAGE_CHANGE_POLICY, &change);
}

static int line_unset(const struct cli *cli, struct proto_change *change, const char *key)
{
	return change_line(cli, change, key, "unset");
}

int command_limit_set(const struct cli *cli)
{
	return send_lines(cli, change_assignment);
}

int command_limit_unset(const struct cli *cli)
{
	return send_lines(cli, line_unset);
}
