/* SPDX-License-Identifier: MIT */
/* The kernel's guard in the form in which it is shown; see guard.h. */
#include "view/guard.h"

#include "base/translation.h"
#include "output/form.h"
#include "output/memory.h"

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
		[GUARANTEE_KERNEL] = { N_("in the kernel"), COLOUR_GOOD },
		[GUARANTEE_FLOOR] = { N_("rdma.max only"), COLOUR_WARNING },
		[GUARANTEE_NONE] = { N_("not guarded"), COLOUR_BAD },
		[GUARANTEE_PARTLY] = { N_("partly"), COLOUR_WARNING },
	};
	const struct proto_guard *guard = field;
	uint32_t guarantee = guard->guarantee < GUARANTEES ? guard->guarantee : GUARANTEE_NONE;

	cell_print(ret_cell, words[guarantee].colour, "%s%s%s", _(words[guarantee].text),
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

const struct column hold_columns[] = {
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

const struct column guard_host_columns[] = {
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

const struct column guard_tenant_columns[] = {
	COLUMN(struct guard, given.tenant, "name", "name", form_text),
	COLUMN(struct guard, given.on, "on", "on", form_flag),
	COLUMN(struct guard, given.guarantee, "guarantee", NULL, form_guarantee),
	COLUMN(struct guard, given.reason, "reason", NULL, form_text),
	COLUMN(struct guard, given.cgroups, "cgroups", "cgroups", form_number),
	COLUMN(struct guard, given.floor, "floor", "rdma.max", form_number),
	COLUMN(struct guard, given.killed, "killed", "killed", form_count),
	COLUMN(struct guard, given.port_limits, "port_limits", NULL, form_flag),
	COLUMN(struct guard, hold, "kinds", NULL, form_holds),
	COLUMN(struct guard, given, NULL, "guarantee", form_word, .flows = true),
	COLUMNS_END,
};

/* What a tenant can count on, and nothing else. */
const struct column guarantee_columns[] = {
	COLUMN(struct guard, given.tenant, "name", "name", form_text),
	COLUMN(struct guard, given.guarantee, "guarantee", NULL, form_guarantee),
	COLUMN(struct guard, given.reason, "reason", NULL, form_text),
	COLUMN(struct guard, given, NULL, "guarantee", form_word, .flows = true),
	COLUMNS_END,
};

void guard_read(struct guard *guard, const struct proto_guard *row)
{
	struct proto_guard *given = &guard->given;

	*given = *row;
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
}

int guard_take(const void *row, void *guards)
{
	guard_read(list_add(guards), row);
	return 0;
}
