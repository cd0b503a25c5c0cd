/* SPDX-License-Identifier: MIT */
/* Owners of resources and how they are shown; see owner.h. */
#include "cli/owner.h"

#include <stdlib.h>
#include <string.h>

#include "cli/collector.h"
#include "cli/embedded.h"
#include "cli/vocabulary.h"

/* ---- forms and columns */

/* In the order of the bits of proto_row.flags. Of ROW_WATCHED the shares tell. */
static const char *const state_names[] = { "draining", "orphan",  "unattached", "socket",
					   "runtime",  "removed", "uncovered",	"drift",
					   NULL,       "inactive" };

_Static_assert(ROW_DRAINING == 1 << 0 && ROW_ORPHAN == 1 << 1 && ROW_UNATTACHED == 1 << 2 &&
		       ROW_SOCKET == 1 << 3 && ROW_RUNTIME == 1 << 4 && ROW_REMOVED == 1 << 5 &&
		       ROW_UNCOVERED == 1 << 6 && ROW_DRIFT == 1 << 7 && ROW_INACTIVE == 1 << 9,
	       "a name for each bit");

static const struct form form_state = {
	.show = form_set_show,
	.json = form_set_json,
	.names = state_names,
	.count = sizeof(state_names) / sizeof(state_names[0]),
	.loud = ROW_UNCOVERED | ROW_DRIFT,
};

/* How close a share is to its limit: full, or four fifths of it. */
struct mark {
	const char *text;
	const char *colour;
};

static const struct mark full = { "!!", COLOUR_BAD };
static const struct mark nearly = { "!", COLOUR_WARNING };
static const struct mark unmarked = { "", NULL };

static const struct mark *mark_of(const struct share *share)
{
	uint64_t used = share->used.value, limit = share->limit.value;

	if (used == 0 || limit == UNLIMITED)
		return &unmarked;
	return used >= limit ? &full : used >= limit - limit / 5 ? &nearly : &unmarked;
}

static void mark_show(const struct form *form, const void *field, struct cell *ret_cell)
{
	const struct mark *mark = mark_of(field);

	cell_print(ret_cell, mark->colour, "%s", mark->text);
}

static const struct form form_mark = { .show = mark_show };

/* Without a monitor there is no column. */
static void kernel_show(const struct form *form, const void *field, struct cell *ret_cell)
{
	const struct amount *kernel = field;
	char text[AMOUNT_TEXT];

	cell_print(ret_cell, NULL, "%s", kernel->kind ? amount_text(kernel, text) : "");
}

static json_t *kernel_json(const struct form *form, const void *field)
{
	return form_amount.json(&form_amount, field);
}

static const struct form form_kernel = { .show = kernel_show, .json = kernel_json, .right = true };

/* Of the share as a whole, since zero means something only where the kernel is watched. */
static void drift_show(const struct form *form, const void *field, struct cell *ret_cell)
{
	const struct share *share = field;
	struct amount size = { (uint64_t)llabs(share->drift), share->kernel.kind };
	char text[AMOUNT_TEXT];

	if (!size.kind || !size.value)
		cell_print(ret_cell, NULL, "%s", "");
	else
		cell_print(ret_cell, COLOUR_BAD, "%c%s", share->drift < 0 ? '-' : '+',
			   amount_text(&size, text));
}

static json_t *drift_json(const struct form *form, const void *field)
{
	const struct share *share = field;

	return share->kernel.kind && share->kernel.value != PROTO_UNKNOWN ?
		       memory_need(json_integer(share->drift)) :
		       json_null();
}

static const struct form form_drift = { .show = drift_show, .json = drift_json, .right = true };

static const struct column share_columns[] = {
	COLUMN(struct share, used, "used", "used", form_amount),
	COLUMN(struct share, kernel, "kernel", "kernel", form_kernel),
	{ .key = "drift", .title = "drift", .form = &form_drift },
	COLUMN(struct share, leased, "leased", "leased", form_amount),
	COLUMN(struct share, peak, "peak", "peak", form_amount),
	COLUMN(struct share, limit, "limit", "limit", form_amount),
	COLUMN(struct share, process_limit, "process_limit", "per process", form_amount),
	COLUMN(struct share, refused, "refused", "refused", form_count),
	{ .title = "", .form = &form_mark }, /* of the share as a whole */
	COLUMNS_END,
};

/* Whether the kernel is known to have something else than the books say. */
static bool share_differs(const struct share *share)
{
	return share->kernel.kind && share->kernel.value != PROTO_UNKNOWN &&
	       (share->drift || (share->uncovered && share->kernel.value != share->used.value));
}

/* A share in one cell: the mark, what is used, the limit if there is one, and what the kernel
 * has if that is something else. */
static void share_show(const struct form *form, const void *field, struct cell *ret_cell)
{
	const struct share *share = field;
	const struct mark *mark = mark_of(share);
	bool limited = share->limit.value != UNLIMITED;
	char used[AMOUNT_TEXT], limit[AMOUNT_TEXT], kernel[AMOUNT_TEXT];
	bool differs = share_differs(share);

	cell_print(ret_cell, differs ? COLOUR_BAD : mark->colour, "%s%s%s%s%s%s%s%s", mark->text,
		   *mark->text ? " " : "", amount_text(&share->used, used), limited ? "/" : "",
		   limited ? amount_text(&share->limit, limit) : "", differs ? " (" : "",
		   differs ? amount_text(&share->kernel, kernel) : "", differs ? ")" : "");
}

static const struct form form_share = { .show = share_show, .right = true };

/* All shares of an owner. For people they take a column each: see kind_columns. */
static json_t *shares_json(const struct form *form, const void *field)
{
	const struct share *share = field;
	json_t *kinds = memory_need(json_object());

	for (int kind = 0; kind < KIND_COUNT; kind++)
		json_object_set_new(kinds, share[kind].kind,
				    table_json_record(share_columns, &share[kind]));
	return kinds;
}

static const struct form form_shares = { .json = shares_json };

#define SHARES COLUMN(struct owner, share, "kinds", NULL, form_shares)

const struct column host_columns[] = {
	COLUMN(struct owner, row.processes, "processes", "host procs", form_number),
	SHARES,
	COLUMNS_END,
};

const struct column tenant_columns[] = {
	COLUMN(struct owner, row.tenant, "name", "name", form_text),
	COLUMN(struct owner, row.mode, "mode", "mode", form_mode),
	COLUMN(struct owner, row.processes, "processes", "procs", form_number),
	SHARES,
	COLUMN(struct owner, row.flags, "state", "state", form_state),
	COLUMNS_END,
};

const struct column process_columns[] = {
	COLUMN(struct owner, row.pid, "pid", "pid", form_pid),
	COLUMN(struct owner, row.command, "command", "command", form_text),
	COLUMN(struct owner, row.uid, "uid", "uid", form_number),
	COLUMN(struct owner, row.tenant, "tenant", "tenant", form_text),
	COLUMN(struct owner, row.mode, "mode", "mode", form_mode),
	SHARES,
	COLUMN(struct owner, row.flags, "state", "state", form_state),
	COLUMNS_END,
};

const struct column device_columns[] = {
	COLUMN(struct owner, row.device, "device", "device", form_text),
	SHARES,
	COLUMNS_END,
};

/* ---- rows of the collector */

static struct share share_of(const struct proto_row *row, int kind)
{
	const struct kind_row *unit = &kind_rows[kind];

	return (struct share){
		.kind = unit->name,
		.used = { row->used[kind], unit },
		.kernel = { row->kernel[kind], row->flags & ROW_WATCHED ? unit : NULL },
		.drift = row->drift[kind],
		.uncovered = row->flags & ROW_UNCOVERED,
		.leased = { row->granted[kind], unit },
		.peak = { row->peak[kind], unit },
		.limit = { row->limit[kind], unit },
		.process_limit = { row->process_limit[kind], unit },
		.refused = row->refused[kind],
	};
}

static int owner_row_take(const void *row, void *closure)
{
	const struct proto_row *given = row;
	struct owners *owners = closure;
	struct owner *owner;

	if (given->scope >= OWNER_SCOPES)
		return 0;
	owner = list_add(given->device[0] ? &owners->on_devices[given->scope] :
					    &owners->in_total[given->scope]);
	owner->row = *given;
	proto_text(owner->row.tenant);
	proto_text(owner->row.device);
	proto_text(owner->row.command);
	for (int kind = 0; kind < KIND_COUNT; kind++)
		owner->share[kind] = share_of(given, kind);
	return 0;
}

static const struct proto_choose everything;

static void owners_clear(struct owners *owners)
{
	for (int scope = 0; scope < OWNER_SCOPES; scope++)
		owners->in_total[scope] = owners->on_devices[scope] =
			(struct list){ .size = sizeof(struct owner) };
}

int owners_ask(const struct cli *cli, enum message type, const struct proto_choose *choose,
	       struct owners *ret_owners)
{
	owners_clear(ret_owners);
	return collector_rows(cli, type, choose ? choose : &everything, owner_row_take, ret_owners);
}

int owners_ask_anywhere(const struct cli *cli, enum message type,
			const struct proto_choose *choose, struct owners *ret_owners)
{
	char path[EMBEDDED_PATH];

	if (!embedded_is_used(cli, path))
		return owners_ask(cli, type, choose, ret_owners);
	owners_clear(ret_owners);
	return embedded_rows(cli, choose ? choose : &everything, owner_row_take, ret_owners);
}

void owners_free(struct owners *owners)
{
	for (int scope = 0; scope < OWNER_SCOPES; scope++) {
		free(owners->in_total[scope].row);
		free(owners->on_devices[scope].row);
	}
}

/* ---- showing */

/* As the books say, or the kernel if that has more. */
static uint64_t share_size(const struct share *share)
{
	bool known = share->kernel.kind && share->kernel.value != PROTO_UNKNOWN;

	return known && share->kernel.value > share->used.value ? share->kernel.value :
								  share->used.value;
}

static bool share_held(const struct share *share)
{
	return share_size(share) || share->leased.value || share->refused;
}

static bool share_matters(const struct share *share)
{
	return share_held(share) || share->limit.value != UNLIMITED ||
	       share->process_limit.value != UNLIMITED;
}

/* The columns with others in the place where the shares stand, and an end. */
static struct list columns_with(const struct column *columns, const struct list *instead)
{
	struct list all = { .size = sizeof(struct column) };

	for (; columns->key || columns->title; columns++) {
		const struct column one[] = { *columns, COLUMNS_END };

		columns_append(&all, columns->form == &form_shares ? instead->row : one, 0);
	}
	list_add(&all);
	return all;
}

/* In JSON all shares; for people one column for each kind that matters to any owner. With
 * an end. */
static struct list kind_columns(const struct list *owners)
{
	struct list columns = { .size = sizeof(struct column) };

	*(struct column *)list_add(&columns) = (struct column)SHARES;
	for (int kind = 0; kind < KIND_COUNT; kind++)
		for (size_t i = 0; i < owners->count; i++) {
			const struct owner *owner = list_at(owners, i);

			if (!share_matters(&owner->share[kind]))
				continue;
			*(struct column *)list_add(&columns) = (struct column){
				.title = kind_rows[kind].name,
				.form = &form_share,
				.offset = offsetof(struct owner, share[kind]),
			};
			break;
		}
	list_add(&columns);
	return columns;
}

void owners_show(struct page *page, const char *key, const struct column *columns,
		 const struct list *owners)
{
	struct list kinds = kind_columns(owners);
	struct list all = columns_with(columns, &kinds);

	page_table(page, key, all.row, owners);
	free(all.row);
	free(kinds.row);
}

static void shares_append(struct list *shares, const struct owner *owner, const char *device)
{
	for (int kind = 0; kind < KIND_COUNT; kind++)
		if (share_matters(&owner->share[kind])) {
			struct share *share = list_add(shares);

			*share = owner->share[kind];
			share->device = device;
		}
}

void owner_show(struct page *page, const char *key, const struct column *columns,
		const struct owner *owner, const struct list *on_devices)
{
	static const struct form form_place = { .show = form_string_show, .nothing = "" };
	static const struct column place_columns[] = {
		COLUMN(struct share, device, NULL, "device", form_place),
		COLUMN(struct share, kind, NULL, "kind", form_string),
		COLUMNS_END,
	};
	struct list shares = { .size = sizeof(struct share) };
	struct list all = { .size = sizeof(struct column) };

	page_record(page, key, columns, owner);
	shares_append(&shares, owner, NULL);
	for (size_t i = 0; on_devices && i < on_devices->count; i++) {
		const struct owner *there = list_at(on_devices, i);

		shares_append(&shares, there, there->row.device);
	}
	columns_append(&all, place_columns, 0);
	columns_append(&all, share_columns, 0);
	list_add(&all);
	page_table(page, NULL, all.row, &shares);
	if (on_devices)
		page_json(page, "devices", table_json(device_columns, on_devices));
	free(all.row);
	free(shares.row);
}

static int share_compare(const void *one, const void *other, void *kind)
{
	const struct share *a = &((const struct owner *)one)->share[*(enum kind *)kind];
	const struct share *b = &((const struct owner *)other)->share[*(enum kind *)kind];

	if (share_size(a) != share_size(b))
		return share_size(a) < share_size(b) ? 1 : -1;
	return (a->leased.value < b->leased.value) - (a->leased.value > b->leased.value);
}

void owners_show_kind(struct page *page, const char *key, const struct column *columns,
		      const struct list *owners, enum kind kind)
{
	struct list holders = { .size = sizeof(struct owner) };
	struct list shares = { .size = sizeof(struct column) };
	struct list all;

	for (size_t i = 0; i < owners->count; i++) {
		const struct owner *owner = list_at(owners, i);

		if (share_held(&owner->share[kind]))
			*(struct owner *)list_add(&holders) = *owner;
	}
	if (holders.count)
		qsort_r(holders.row, holders.count, holders.size, share_compare, &kind);
	columns_append(&shares, share_columns, offsetof(struct owner, share[kind]));
	list_add(&shares);
	all = columns_with(columns, &shares);
	page_table(page, key, all.row, &holders);
	free(all.row);
	free(shares.row);
	free(holders.row);
}
