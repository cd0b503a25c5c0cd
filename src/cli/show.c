/* SPDX-License-Identifier: MIT */
/*
 * show tenant, process, device and kind: without a name one line for each, with
 * one all there is to know about it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/translation.h"
#include "cli/collector.h"
#include "cli/details.h"
#include "cli/embedded.h"
#include "cli/matches.h"
#include "cli/owners.h"
#include "cli/paces.h"
#include "cli/rates.h"
#include "cli/tenant_settings.h"
#include "view/match.h"

/* How the owners of one scope are asked for and shown. */
struct view {
	enum proto_scope scope;
	enum message type;
	const char *one, *many; /* keys of the document; the first is also a word for people */
	const char *empty; /* why there may be none */
	const struct column *columns;
	int (*ask)(const struct cli *cli, enum message type, const struct proto_choose *choose,
		   struct owners *ret_owners);
};

static const struct view tenants = {
	.scope = ROW_TENANT,
	.type = MESSAGE_GET_STATS,
	.one = N_("tenant"),
	.many = "tenants",
	.columns = tenant_columns,
	.ask = owners_ask,
};

static const struct view processes = {
	.scope = ROW_PROCESS,
	.type = MESSAGE_GET_PROC_STATS,
	.one = N_("process"),
	.many = "processes",
	.empty = N_("no process is registered: a process registers when it first uses RDMA, if the "
		    "library is loaded in it ('rdma_intercept run', or LD_PRELOAD); 'rdma_intercept "
		    "doctor' looks for what is missing"),
	.columns = process_columns,
	.ask = owners_ask_anywhere,
};

static int unknown(const struct cli *cli, const char *what)
{
	return cli_fail(cli, CLI_WRONG, "the collector has no %s '%s': '%s %s' lists them", _(what),
			cli->operand[0], CLI_NAME, cli->command->name);
}

/* The operand as a name in a message; one that does not fit is nobody's. */
static int name_operand(const struct cli *cli, const char *what, char ret_name[NAME_SIZE])
{
	const char *name = cli->operand[0];

	if (!*name || strlen(name) >= NAME_SIZE)
		return unknown(cli, what);
	strcpy(ret_name, name);
	return CLI_OK;
}

static const char no_devices[] =
	N_("no device is known yet: a device is known when a registered process uses it, or the policy "
	   "has a limit for it; 'rdma_intercept doctor' lists the devices of the host");

/* For people only: in JSON the list is empty. */
static void empty_show(struct page *page, const struct list *list, const char *why)
{
	if (!list->count && why && !page->document)
		page_sentence(page, NULL, "%s", _(why));
}

static int show_all(const struct cli *cli, const struct view *view)
{
	struct owners owners;
	struct page page;
	int result = view->ask(cli, view->type, NULL, &owners);

	if (!result) {
		cli_page_begin(&page, cli);
		owners_show(&page, view->many, view->columns, &owners.in_total[view->scope]);
		empty_show(&page, &owners.in_total[view->scope], view->empty);
		result = page_end(&page);
	}
	owners_free(&owners);
	return result;
}

/* Of a tenant, or of a process. Without a collector only counters tell of rates. */
static int one_rates_show(const struct cli *cli, struct page *page,
			  const struct proto_choose *choose)
{
	struct proto_choose rates = *choose;
	char path[EMBEDDED_PATH];

	if (embedded_is_used(cli, path))
		return CLI_OK;
	rates.flags = choose->pid ? CHOOSE_PROCESSES : 0;
	return rates_show(cli, page, &rates);
}

/* A pattern holds nothing itself: its tenants do. */
static int show_pattern(const struct cli *cli, const char *name)
{
	struct list matches = { .size = sizeof(struct proto_match) };
	int result = matches_ask(cli, name, &matches);
	struct page page;

	if (!result && !matches.count)
		result = unknown(cli, tenants.one);
	if (!result) {
		cli_page_begin(&page, cli);
		page_sentence(&page, NULL,
			      "%s is a pattern: the collector makes a tenant of it for each user, "
			      "job, container, namespace or pod that matches. 'show tenants' lists "
			      "these, with the "
			      "state pattern.",
			      name);
		page_json(&page, "pattern", form_json_text(name));
		page_table(&page, "matches", match_columns, &matches);
		result = page_end(&page);
	}
	free(matches.row);
	return result;
}

static int show_one(const struct cli *cli, const struct view *view,
		    const struct proto_choose *choose)
{
	struct owners owners;
	const struct list *found = &owners.in_total[view->scope];
	struct page page;
	int result = view->ask(cli, view->type, choose, &owners);

	if (!result && !found->count && strchr(choose->tenant, '%')) {
		owners_free(&owners);
		return show_pattern(cli, choose->tenant);
	}
	if (!result && !found->count)
		result = unknown(cli, view->one);
	if (!result) {
		cli_page_begin(&page, cli);
		owner_show(&page, view->one, view->columns, found->row,
			   &owners.on_devices[view->scope]);
		result = details_show(cli, &page, choose);
		if (!result && !choose->pid)
			result = tenant_settings_show(cli, &page, choose->tenant);
		if (!result)
			result = one_rates_show(cli, &page, choose);
		if (!result && view == &tenants)
			result = paces_show(cli, &page, choose->tenant);
		if (!result && view == &tenants)
			result = matches_show(cli, &page, choose->tenant);
		if (!result)
			result = page_end(&page);
	}
	owners_free(&owners);
	return result;
}

int command_show_tenant(const struct cli *cli)
{
	struct proto_choose choose = { .flags = CHOOSE_TENANTS };
	int result = cli_operands(cli, 0, 1);

	if (result)
		return result;
	if (!cli->count)
		return show_all(cli, &tenants);
	result = name_operand(cli, tenants.one, choose.tenant);
	return result ? result : show_one(cli, &tenants, &choose);
}

int command_show_process(const struct cli *cli)
{
	struct proto_choose choose = { .pid = 0 };
	int result = cli_operands(cli, 0, 1);

	if (result)
		return result;
	if (!cli->count)
		return show_all(cli, &processes);
	result = cli_pid(cli, cli->operand[0], strlen(cli->operand[0]), &choose.pid);
	return result ? result : show_one(cli, &processes, &choose);
}

static int show_devices(const struct cli *cli)
{
	struct owners owners;
	struct page page;
	int result = owners_ask_anywhere(cli, MESSAGE_GET_STATS, NULL, &owners);

	if (!result) {
		cli_page_begin(&page, cli);
		owners_show(&page, "devices", device_columns, &owners.on_devices[ROW_HOST]);
		empty_show(&page, &owners.on_devices[ROW_HOST], no_devices);
		result = page_end(&page);
	}
	owners_free(&owners);
	return result;
}

static int show_device(const struct cli *cli, const struct proto_choose *choose)
{
	struct owners owners, members = { 0 };
	const struct list *found = &owners.on_devices[ROW_HOST];
	struct page page;
	int result = owners_ask_anywhere(cli, MESSAGE_GET_STATS, choose, &owners);

	if (!result && !found->count)
		result = unknown(cli, N_("device"));
	if (!result)
		result = owners_ask_anywhere(cli, processes.type, choose, &members);
	if (!result) {
		cli_page_begin(&page, cli);
		owner_show(&page, "device", device_columns, found->row, NULL);
		owners_show(&page, tenants.many, tenants.columns, &owners.on_devices[ROW_TENANT]);
		owners_show(&page, processes.many, processes.columns,
			    &members.on_devices[ROW_PROCESS]);
		result = details_show_device(cli, &page, choose->device);
		if (!result)
			result = page_end(&page);
	}
	owners_free(&owners);
	owners_free(&members);
	return result;
}

int command_show_device(const struct cli *cli)
{
	struct proto_choose choose = { .pid = 0 };
	int result = cli_operands(cli, 0, 1);

	if (result)
		return result;
	if (!cli->count)
		return show_devices(cli);
	result = name_operand(cli, N_("device"), choose.device);
	return result ? result : show_device(cli, &choose);
}

static const struct form form_unit = {
	.show = form_name_show,
	.json = form_name_json,
	.names = (const char *const[]){ [UNIT_COUNT] = "count", [UNIT_BYTES] = "bytes" },
	.count = 2,
};

static const struct column kind_columns[] = {
	COLUMN(struct kind_row, name, "name", "name", form_string),
	COLUMN(struct kind_row, unit, "unit", "unit", form_unit),
	COLUMN(struct kind_row, text, "meaning", "meaning", form_message, .flows = true),
	COLUMNS_END,
};

_Static_assert(sizeof(enum kind_unit) == sizeof(uint32_t), "a form for names reads it");

static int show_holders(const struct cli *cli, const char *name)
{
	static const struct view *const views[] = { &tenants, &processes };
	enum { VIEWS = sizeof(views) / sizeof(views[0]) };
	struct owners owners[VIEWS] = { 0 };
	int kind = kind_find(name, strlen(name)), result = CLI_OK;
	struct page page;

	if (kind < 0)
		return cli_fail(cli, CLI_WRONG, "unknown kind '%s': '%s show kind' lists them", name,
				CLI_NAME);
	for (int i = 0; !result && i < VIEWS; i++)
		result = owners_ask_anywhere(cli, views[i]->type, NULL, &owners[i]);
	if (!result) {
		cli_page_begin(&page, cli);
		page_record(&page, "kind", kind_columns, &kind_rows[kind]);
		for (int i = 0; i < VIEWS; i++)
			owners_show_kind(&page, views[i]->many, views[i]->columns,
					 &owners[i].in_total[views[i]->scope], (enum kind)kind);
		result = page_end(&page);
	}
	for (int i = 0; i < VIEWS; i++)
		owners_free(&owners[i]);
	return result;
}

int command_show_kind(const struct cli *cli)
{
	const struct list kinds = { (void *)kind_rows, KIND_COUNT, sizeof(kind_rows[0]) };
	struct page page;
	int result = cli_operands(cli, 0, 1);

	if (result)
		return result;
	if (cli->count)
		return show_holders(cli, cli->operand[0]);
	cli_page_begin(&page, cli);
	page_table(&page, "kinds", kind_columns, &kinds);
	return page_end(&page);
}
