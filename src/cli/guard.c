/* SPDX-License-Identifier: MIT */
/*
 * guard status, on and off: the limits that the kernel keeps by itself, what tenants can
 * count on, and what they cannot.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/translation.h"
#include "cli/change.h"
#include "cli/collector.h"
#include "output/form.h"
#include "output/page.h"
#include "view/guard.h"

/* guard on waits so long, in such steps, for rdma_monitor to attach and to count. */
enum { AWAIT_MOST_MS = 60000, AWAIT_STEP_MS = 50 };

/* ---- status */

/* What the kernel keeps nobody from, however well it is guarded. */
static void tell_gaps(struct page *page, const struct proto_guard *host)
{
	char kinds[512] = "";

	if (!host->on)
		return;
	for (int kind = 0; kind < KIND_COUNT; kind++)
		if (host->armed && !(host->guarded >> kind & 1))
			snprintf(strchr(kinds, '\0'), sizeof(kinds) - strlen(kinds), "%s%s",
				 *kinds ? ", " : "", kind_rows[kind].name);
	if (*kinds)
		page_sentence(page, NULL, "Not guarded in the kernel, but by the library only: %s.",
			      kinds);
	if (host->armed && !(host->ways & WAY_WRITE))
		page_sentence(page, NULL,
			      host->wanted & WAY_WRITE ?
				      N_("Not guarded yet: commands that come by write().") :
				      N_("Not guarded: commands that come by write(), "
					 "since [host] has guard_writes = off."));
	if (host->armed && !(host->ways & WAY_COMPAT))
		page_sentence(page, NULL, "Not guarded: commands of 32-bit programs.");
}

static void tell_ports(struct page *page, const struct list *tenants)
{
	for (size_t i = 0; i < tenants->count; i++) {
		const struct proto_guard *given = &((const struct guard *)list_at(tenants, i))->given;

		if (given->on && given->port_limits)
			page_sentence(page, NULL,
				      "Not guarded in the kernel, but by the library only: limits of "
				      "ports that hold for tenant %s.",
				      given->tenant);
	}
}

static void guard_show_one(struct page *page, const struct guard *guard)
{
	struct list holds = { .size = sizeof(struct hold) };

	page_record(page, "tenant", guard_tenant_columns, guard);
	for (int kind = 0; kind < KIND_COUNT; kind++) {
		const struct hold *hold = &guard->hold[kind];

		if (hold->used.value || hold->limit.value != UNLIMITED || hold->refused ||
		    hold->overrun)
			*(struct hold *)list_add(&holds) = *hold;
	}
	page_table(page, NULL, hold_columns, &holds);
	free(holds.row);
}

int command_guard_status(const struct cli *cli)
{
	struct list guards = { .size = sizeof(struct guard) };
	struct proto_choose choose = { .pid = 0 };
	struct page page;
	int result = cli_operands(cli, 0, 1);

	if (result)
		return result;
	if (cli->count && strlen(cli->operand[0]) < sizeof(choose.tenant))
		strcpy(choose.tenant, cli->operand[0]);
	result = collector_rows(cli, MESSAGE_GUARD, &choose, guard_take, &guards);
	if (!result && cli->count && (guards.count != 2 || !choose.tenant[0]))
		result = collector_has_no_tenant(cli, cli->operand[0]);
	if (!result && guards.count) {
		const struct guard *host = list_at(&guards, 0);
		const struct list tenants = { list_at(&guards, 1), guards.count - 1, guards.size };

		cli_page_begin(&page, cli);
		page_record(&page, "guard", guard_host_columns, host);
		if (cli->count)
			guard_show_one(&page, tenants.row);
		else
			page_table(&page, "tenants", guard_tenant_columns, &tenants);
		tell_gaps(&page, &host->given);
		tell_ports(&page, &tenants);
		result = page_end(&page);
	}
	free(guards.row);
	return result;
}

/* ---- on and off */

/* Waits until rdma_monitor has finished with the named tenants, and returns their guards. */
static int await(const struct cli *cli, struct list *ret_guards)
{
	const struct timespec moment = { 0, AWAIT_STEP_MS * 1000000l };
	int result = 0;

	for (unsigned waited = 0; !result; waited += AWAIT_STEP_MS) {
		bool pending = false;

		ret_guards->count = 0;
		for (unsigned i = 0; i < cli->count && !result; i++) {
			struct proto_choose choose = { .pid = 0 };
			size_t before = ret_guards->count;

			strcpy(choose.tenant, cli->operand[i]); /* it was changed: it fits */
			result = collector_rows(cli, MESSAGE_GUARD, &choose, guard_take, ret_guards);
			if (!result && ret_guards->count != before + 2)
				result = collector_has_no_tenant(cli, choose.tenant);
			if (result)
				break;
			/* The first of the two is the host's. */
			memcpy(list_at(ret_guards, before), list_at(ret_guards, before + 1),
			       ret_guards->size);
			ret_guards->count--;
			pending |= ((const struct guard *)list_at(ret_guards, before))->given.pending;
		}
		if (!pending || waited >= AWAIT_MOST_MS)
			break;
		nanosleep(&moment, NULL);
	}
	return result;
}

/* Says what the tenants can count on; fails if that is not the kernel. */
static int conclude(const struct cli *cli, json_t *sections)
{
	struct list guards = { .size = sizeof(struct guard) };
	const struct proto_guard *lacking = NULL;
	struct page page;
	int result = await(cli, &guards);

	for (size_t i = 0; !result && !lacking && i < guards.count; i++) {
		const struct proto_guard *given = &((struct guard *)list_at(&guards, i))->given;

		if (given->guarantee != GUARANTEE_KERNEL && given->guarantee != GUARANTEE_PARTLY)
			lacking = given;
	}
	if (lacking)
		result = cli_fail(cli, CLI_WRONG, "tenant %s: guard = on is set, but %s: %s",
				  lacking->tenant,
				  lacking->guarantee == GUARANTEE_FLOOR ?
					  _("only rdma.max limits it") :
					  _("nothing is guarded"),
				  *lacking->reason ? lacking->reason : _("no reason is known"));
	if (result) {
		json_decref(sections);
	} else {
		cli_page_begin(&page, cli);
		page_json(&page, "sections", sections);
		page_table(&page, "tenants", guarantee_columns, &guards);
		result = page_end(&page);
	}
	free(guards.row);
	return result;
}

static int turn(const struct cli *cli, const char *position, bool on)
{
	json_t *sections = memory_need(json_array());
	struct proto_change change;
	struct page page;
	int result = cli_operands(cli, 1, UINT_MAX);

	for (unsigned i = 0; !result && i < cli->count; i++) {
		result = change_tenant(cli, cli->operand[i], &change);
		if (!result)
			result = change_line(cli, &change, "guard", position);
		if (!result)
			result = change_ask(cli, MESSAGE_CHANGE_POLICY, &change);
		if (!result)
			json_array_append_new(sections, form_json_text(change.section));
	}
	if (result) {
		json_decref(sections);
		return result;
	}
	if (on)
		return conclude(cli, sections);
	cli_page_begin(&page, cli);
	page_json(&page, "sections", sections);
	return page_end(&page);
}

int command_guard_on(const struct cli *cli)
{
	return turn(cli, "on", true);
}

int command_guard_off(const struct cli *cli)
{
	return turn(cli, "off", false);
}
