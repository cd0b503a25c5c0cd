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

#include "cli/amount.h"
#include "cli/change.h"
#include "cli/collector.h"
#include "output/form.h"
#include "output/page.h"

/* guard on waits so long, in such steps, for rdma_monitor to attach and to count. */
enum { AWAIT_MOST_MS = 60000, AWAIT_STEP_MS = 50 };

/* ---- status */

/* What a tenant has of one kind in the kernel. */
struct hold {
	const char *kind;
	uint32_t guarded;
	struct amount used, limit;
	uint64_t refused, overrun;
};

struct guard {
	struct proto_guard given;
	struct hold hold[KIND_COUNT];
};

static const char *const way_names[] = { "ioctl", "compat", "write" };
_Static_assert(WAY_IOCTL == 1 << 0 && WAY_COMPAT == 1 << 1 && WAY_WRITE == 1 << 2,
	       "a name for each bit");

static const struct form form_ways = {
	.show = form_set_show,
	.json = form_set_json,
	.names = way_names,
	.count = sizeof(way_names) / sizeof(way_names[0]),
};

static const struct form form_guarantee = {
	.json = form_name_json,
	.names = (const char *const[]){ [GUARANTEE_OFF] = "off",
					[GUARANTEE_KERNEL] = "kernel",
					[GUARANTEE_FLOOR] = "floor",
					[GUARANTEE_NONE] = "none",
					[GUARANTEE_PARTLY] = "partly" },
	.count = GUARANTEES,
};

/* The guarantee of a tenant in words. */
static void word_show(const struct form *form, const void *field, struct cell *ret_cell)
{
	static const struct {
		const char *text, *colour;
	} words[GUARANTEES] = {
		[GUARANTEE_OFF] = { "off", NULL },
		[GUARANTEE_KERNEL] = { "in the kernel", COLOUR_GOOD },
		[GUARANTEE_FLOOR] = { "rdma.max only", COLOUR_WARNING },
		[GUARANTEE_NONE] = { "not guarded", COLOUR_BAD },
		[GUARANTEE_PARTLY] = { "partly", COLOUR_WARNING },
	};
	const struct proto_guard *guard = field;
	uint32_t guarantee = guard->guarantee < GUARANTEES ? guard->guarantee : GUARANTEE_NONE;

	cell_print(ret_cell, words[guarantee].colour, "%s%s%s", words[guarantee].text,
		   *guard->reason ? ": " : "", guard->reason);
}

static const struct form form_word = { .show = word_show };

static json_t *kinds_json(const struct form *form, const void *field)
{
	uint64_t guarded = *(const uint64_t *)field;
	json_t *kinds = memory_need(json_array());

	for (int kind = 0; kind < KIND_COUNT; kind++)
		if (guarded >> kind & 1)
			json_array_append_new(kinds, form_json_text(kind_rows[kind].name));
	return kinds;
}

static const struct form form_kinds = { .json = kinds_json };

static const struct column hold_columns[] = {
	COLUMN(struct hold, kind, NULL, "kind", form_string),
	COLUMN(struct hold, guarded, "guarded", "guarded", form_flag),
	COLUMN(struct hold, used, "used", "used", form_amount),
	COLUMN(struct hold, limit, "limit", "limit", form_amount),
	COLUMN(struct hold, refused, "refused", "refused", form_count),
	COLUMN(struct hold, overrun, "overrun", "overrun", form_count),
	COLUMNS_END,
};

static json_t *holds_json(const struct form *form, const void *field)
{
	const struct hold *hold = field;
	json_t *kinds = memory_need(json_object());

	for (int kind = 0; kind < KIND_COUNT; kind++)
		json_object_set_new(kinds, hold[kind].kind,
				    table_json_record(hold_columns, &hold[kind]));
	return kinds;
}

static const struct form form_holds = { .json = holds_json };

static const struct column host_columns[] = {
	COLUMN(struct guard, given.armed, "armed", "armed", form_flag),
	COLUMN(struct guard, given.ways, "ways", "ways", form_ways),
	COLUMN(struct guard, given.wanted, "wanted", "wanted", form_ways),
	COLUMN(struct guard, given.guarded, "guarded", NULL, form_kinds),
	COLUMN(struct guard, given.reason, "reason", "problem", form_text),
	COLUMN(struct guard, given.on, "tenants", "tenants", form_number),
	COLUMN(struct guard, given.cgroups, "cgroups", "cgroups", form_number),
	COLUMN(struct guard, given.killed, "killed", "killed", form_count),
	COLUMNS_END,
};

static const struct column tenant_columns[] = {
	COLUMN(struct guard, given.tenant, "name", "name", form_text),
	COLUMN(struct guard, given.on, "on", "on", form_flag),
	COLUMN(struct guard, given.guarantee, "guarantee", NULL, form_guarantee),
	COLUMN(struct guard, given.reason, "reason", NULL, form_text),
	COLUMN(struct guard, given.cgroups, "cgroups", "cgroups", form_number),
	COLUMN(struct guard, given.floor, "floor", "rdma.max", form_number),
	COLUMN(struct guard, given.killed, "killed", "killed", form_count),
	COLUMN(struct guard, hold, "kinds", NULL, form_holds),
	COLUMN(struct guard, given, NULL, "guarantee", form_word, .flows = true),
	COLUMNS_END,
};

/* What a tenant can count on, and nothing else. */
static const struct column guarantee_columns[] = {
	COLUMN(struct guard, given.tenant, "name", "name", form_text),
	COLUMN(struct guard, given.guarantee, "guarantee", NULL, form_guarantee),
	COLUMN(struct guard, given.reason, "reason", NULL, form_text),
	COLUMN(struct guard, given, NULL, "guarantee", form_word, .flows = true),
	COLUMNS_END,
};

static int guard_row_take(const void *row, void *list)
{
	struct guard *guard = list_add(list);
	struct proto_guard *given = &guard->given;

	*given = *(const struct proto_guard *)row;
	proto_text(given->tenant);
	proto_text(given->reason);
	for (int kind = 0; kind < KIND_COUNT; kind++)
		guard->hold[kind] = (struct hold){
			.kind = kind_rows[kind].name,
			.guarded = given->guarded >> kind & 1,
			.used = { given->used[kind], &kind_rows[kind] },
			.limit = { given->limit[kind], &kind_rows[kind] },
			.refused = given->refused[kind],
			.overrun = given->overrun[kind],
		};
	return 0;
}

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
		page_sentence(page, NULL, "%s",
			      host->wanted & WAY_WRITE ?
				      "Not guarded yet: commands that come by write()." :
				      "Not guarded: commands that come by write(), "
				      "since [host] has guard_writes = off.");
	if (host->armed && !(host->ways & WAY_COMPAT))
		page_sentence(page, NULL, "Not guarded: commands of 32-bit programs.");
}

static void guard_show_one(struct page *page, const struct guard *guard)
{
	struct list holds = { .size = sizeof(struct hold) };

	page_record(page, "tenant", tenant_columns, guard);
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
	result = collector_rows(cli, MESSAGE_GUARD, &choose, guard_row_take, &guards);
	if (!result && cli->count && (guards.count != 2 || !choose.tenant[0]))
		result = cli_fail(cli, CLI_WRONG, "the collector knows no tenant '%s'",
				  cli->operand[0]);
	if (!result && guards.count) {
		const struct guard *host = list_at(&guards, 0);
		const struct list tenants = { list_at(&guards, 1), guards.count - 1, guards.size };

		cli_page_begin(&page, cli);
		page_record(&page, "guard", host_columns, host);
		if (cli->count)
			guard_show_one(&page, tenants.row);
		else
			page_table(&page, "tenants", tenant_columns, &tenants);
		tell_gaps(&page, &host->given);
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
			result = collector_rows(cli, MESSAGE_GUARD, &choose, guard_row_take, ret_guards);
			if (!result && ret_guards->count != before + 2)
				result = cli_fail(cli, CLI_WRONG,
						  "the collector knows no tenant '%s'",
						  choose.tenant);
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
					  "only rdma.max limits it" :
					  "nothing is guarded",
				  *lacking->reason ? lacking->reason : "no reason is known");
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
			result = collector_ask(cli, MESSAGE_CHANGE_POLICY, &change, NULL);
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
