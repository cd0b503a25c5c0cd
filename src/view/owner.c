/* SPDX-License-Identifier: MIT */
/* Owners of resources and how they are shown; see owner.h. */
#include "view/owner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/translation.h"
#include "output/memory.h"
#include "terms/fair.h"
#include "view/vocabulary.h"

/* ---- forms and columns */

/* In the order of the bits of proto_row.flags. Of ROW_WATCHED the shares tell. */
static const char *const state_names[] = { "draining", "orphan",  "unattached", "socket",
					   "runtime",  "removed", "uncovered",	"drift",
					   NULL,       "inactive", "forbidden", "pattern" };

_Static_assert(ROW_DRAINING == 1 << 0 && ROW_ORPHAN == 1 << 1 && ROW_UNATTACHED == 1 << 2 &&
		       ROW_SOCKET == 1 << 3 && ROW_RUNTIME == 1 << 4 && ROW_REMOVED == 1 << 5 &&
		       ROW_UNCOVERED == 1 << 6 && ROW_DRIFT == 1 << 7 && ROW_INACTIVE == 1 << 9 &&
		       ROW_FORBIDDEN == 1 << 10 && ROW_PATTERN == 1 << 11,
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

static bool share_is_in_force(const struct share *share)
{
	return share->reason != FAIR_CONFIGURED && share->reason < FAIR_REASONS;
}

/* Of the share as a whole: for people only where a share is in force. */
static void configured_show(const struct form *form, const void *field, struct cell *ret_cell)
{
	const struct share *share = field;
	char text[AMOUNT_TEXT];

	cell_print(ret_cell, NULL, "%s",
		   share_is_in_force(share) ? amount_text(&share->configured, text) : "");
}

static json_t *configured_json(const struct form *form, const void *field)
{
	return form_amount.json(&form_amount, &((const struct share *)field)->configured);
}

static const struct form form_configured = {
	.show = configured_show, .json = configured_json, .right = true
};

static void guarantee_show(const struct form *form, const void *field, struct cell *ret_cell)
{
	const struct amount *guarantee = field;
	char text[AMOUNT_TEXT];

	cell_print(ret_cell, NULL, "%s", guarantee->value ? amount_text(guarantee, text) : "");
}

static json_t *guarantee_json(const struct form *form, const void *field)
{
	return form_amount.json(&form_amount, field);
}

static const struct form form_guarantee = { guarantee_show, guarantee_json, .right = true };

static void reason_show(const struct form *form, const void *field, struct cell *ret_cell)
{
	const struct share *share = field;

	cell_print(ret_cell, NULL, "%s",
		   share_is_in_force(share) ? _(fair_reason_texts[share->reason]) : "");
}

static json_t *reason_json(const struct form *form, const void *field)
{
	uint32_t reason = ((const struct share *)field)->reason;

	return form_json_text(fair_reason_names[reason < FAIR_REASONS ? reason : FAIR_CONFIGURED]);
}

static const struct form form_reason = { .show = reason_show, .json = reason_json };

static json_t *peak_time_json(const struct form *form, const void *field)
{
	return *(const uint64_t *)field ? form_time.json(&form_time, field) : json_null();
}

static const struct form form_peak_time = { .json = peak_time_json };

static const struct column share_columns[] = {
	COLUMN(struct share, used, "used", "used", form_amount),
	COLUMN(struct share, kernel, "kernel", "kernel", form_kernel),
	{ .key = "drift", .title = N_("drift"), .form = &form_drift },
	COLUMN(struct share, leased, "leased", "leased", form_amount),
	COLUMN(struct share, peak, "peak", "peak", form_amount),
	COLUMN(struct share, peak_ns, "peak_time", NULL, form_peak_time),
	COLUMN(struct share, limit, "limit", "limit", form_amount),
	{ .key = "configured", .title = N_("configured"), .form = &form_configured },
	COLUMN(struct share, guarantee, "guarantee", "guarantee", form_guarantee),
	{ .key = "reason", .title = N_("in force is"), .form = &form_reason, .flows = true },
	COLUMN(struct share, process_limit, "process_limit", "per process", form_amount),
	COLUMN(struct share, refused, "refused", "refused", form_count),
	COLUMN(struct share, tolerated, "tolerated", "would refuse", form_guarantee),
	{ .title = "", .form = &form_mark }, /* of the share as a whole */
	COLUMNS_END,
};

/* The kernel does not count by port. */
static const struct column share_on_port_columns[] = {
	COLUMN(struct share, used, "used", "used", form_amount),
	COLUMN(struct share, leased, "leased", "leased", form_amount),
	COLUMN(struct share, peak, "peak", "peak", form_amount),
	COLUMN(struct share, limit, "limit", "limit", form_amount),
	COLUMN(struct share, process_limit, "process_limit", "per process", form_amount),
	COLUMN(struct share, refused, "refused", "refused", form_count),
	COLUMN(struct share, tolerated, "tolerated", "would refuse", form_guarantee),
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

const struct form form_share = { .show = share_show, .right = true };

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

bool share_on_port_matters(const struct share *share)
{
	return share->used.value || share->peak.value || share->refused || share->tolerated.value ||
	       share->limit.value != UNLIMITED || share->process_limit.value != UNLIMITED;
}

/* [{"port": 1, "kinds": {...}}, ...] of the ports of which there is something to say. */
static json_t *ports_json(const struct form *form, const void *field)
{
	const struct share *share = field;
	json_t *ports = memory_need(json_array()), *port, *kinds;

	for (unsigned number = 1; number <= PORTS_COUNTED; number++) {
		bool matters = false;

		kinds = memory_need(json_object());
		for (unsigned i = 0; i < PORT_KINDS; i++) {
			const struct share *one = &share[kind_on_port(kinds_by_port[i], number)];

			matters |= share_on_port_matters(one);
			json_object_set_new(kinds, one->kind,
					    table_json_record(share_on_port_columns, one));
		}
		port = memory_need(json_object());
		json_object_set_new(port, "port", form_json_number(number));
		json_object_set_new(port, "kinds", kinds);
		if (matters)
			json_array_append_new(ports, port);
		else
			json_decref(port);
	}
	return ports;
}

static const struct form form_ports = { .json = ports_json };

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
	COLUMN(struct owner, row.weight, "weight", NULL, form_number),
	SHARES,
	COLUMN(struct owner, row.flags, "state", "state", form_state),
	COLUMNS_END,
};

const struct column process_columns[] = {
	COLUMN(struct owner, row.pid, "pid", "pid", form_pid),
	COLUMN(struct owner, row.command, "command", "command", form_text),
	COLUMN(struct owner, row.uid, "uid", "uid", form_number),
	COLUMN(struct owner, user, "user", "user", form_text_or_blank),
	COLUMN(struct owner, row.tenant, "tenant", "tenant", form_text),
	COLUMN(struct owner, row.mode, "mode", "mode", form_mode),
	SHARES,
	COLUMN(struct owner, row.flags, "state", "state", form_state),
	COLUMNS_END,
};

const struct column device_columns[] = {
	COLUMN(struct owner, row.device, "device", "device", form_text),
	SHARES,
	COLUMN(struct owner, share, "ports", NULL, form_ports),
	COLUMNS_END,
};

/* ---- rows of the collector */

static struct share share_of(const struct proto_row *row, int kind)
{
	const struct kind_row *unit = &kind_rows[kind];
	bool plain = kind < KIND_COUNT; /* not on a port */
	bool watched = row->flags & ROW_WATCHED && plain;

	return (struct share){
		.kind = unit->name,
		.used = { row->used[kind], unit },
		.kernel = { watched ? row->kernel[kind] : 0, watched ? unit : NULL },
		.drift = watched ? row->drift[kind] : 0,
		.uncovered = row->flags & ROW_UNCOVERED,
		.leased = { row->granted[kind], unit },
		.peak = { row->peak[kind], unit },
		.peak_ns = row->peak_time[kind] * CLOCK_SECOND_NS,
		.limit = { row->limit[kind], unit },
		.configured = { row->scope == ROW_TENANT ? row->configured[kind] :
							   row->limit[kind],
				unit },
		.guarantee = { plain ? row->guarantee[kind] : 0, unit },
		.reason = plain ? row->reason[kind] : FAIR_CONFIGURED,
		.process_limit = { row->process_limit[kind], unit },
		.refused = row->refused[kind],
		.tolerated = { row->tolerated[kind], &kind_rows[KIND_qp] },
	};
}

void owner_read(struct owner *owner, const struct proto_row *given)
{
	owner->user[0] = '\0';
	owner->row = *given;
	proto_text(owner->row.tenant);
	proto_text(owner->row.device);
	proto_text(owner->row.command);
	for (int kind = 0; kind < KINDS_COUNTED; kind++)
		owner->share[kind] = share_of(given, kind);
}

int owners_take(const void *row, void *closure)
{
	const struct proto_row *given = row;
	struct owners *owners = closure;

	if (given->scope >= OWNER_SCOPES)
		return 0;
	owner_read(list_add(given->device[0] ? &owners->on_devices[given->scope] :
					       &owners->in_total[given->scope]),
		   given);
	return 0;
}

static int place_compare(const void *left, const void *right)
{
	const struct proto_row *a = &((const struct owner *)left)->row;
	const struct proto_row *b = &((const struct owner *)right)->row;
	int order = strverscmp(a->device, b->device);

	if (!order)
		order = strcmp(a->tenant, b->tenant);
	return order ? order : (a->pid > b->pid) - (a->pid < b->pid);
}

void owners_sort(struct owners *owners)
{
	for (int scope = 0; scope < OWNER_SCOPES; scope++) {
		const struct list *list = &owners->on_devices[scope];

		if (list->count)
			qsort(list->row, list->count, list->size, place_compare);
	}
}

void owners_clear(struct owners *owners)
{
	for (int scope = 0; scope < OWNER_SCOPES; scope++)
		owners->in_total[scope] = owners->on_devices[scope] =
			(struct list){ .size = sizeof(struct owner) };
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
	return share_size(share) || share->leased.value || share->refused || share->tolerated.value;
}

bool share_matters(const struct share *share)
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
		if (owner->row.flags & ROW_FORBIDDEN ? share_held(&owner->share[kind]) :
						       share_matters(&owner->share[kind])) {
			struct share *share = list_add(shares);

			*share = owner->share[kind];
			strcpy(share->place, device);
		}
	for (int kind = KIND_COUNT; kind < KINDS_COUNTED && owner->row.device[0]; kind++)
		if (share_on_port_matters(&owner->share[kind])) {
			struct share *share = list_add(shares);

			*share = owner->share[kind];
			snprintf(share->place, sizeof(share->place), "%s/%u", owner->row.device,
				 kind_port((unsigned)kind));
		}
}

static const struct form form_place = { .show = form_text_show, .nothing = "" };

void owner_show(struct page *page, const char *key, const struct column *columns,
		const struct owner *owner, const struct list *on_devices)
{
	static const struct column place_columns[] = {
		COLUMN(struct share, place, NULL, "device", form_place),
		COLUMN(struct share, kind, NULL, "kind", form_string),
		COLUMNS_END,
	};
	struct list shares = { .size = sizeof(struct share) };
	struct list all = { .size = sizeof(struct column) };

	page_record(page, key, columns, owner);
	shares_append(&shares, owner, "");
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

/* A share with the name of its owner. */
struct owned_share {
	const char *tenant;
	struct share share;
};

static void owned_shares_append(struct list *shares, const struct list *owners)
{
	for (size_t i = 0; i < owners->count; i++) {
		const struct owner *owner = list_at(owners, i);

		for (int kind = 0; kind < KIND_COUNT; kind++) {
			struct owned_share *owned;

			if (!share_is_in_force(&owner->share[kind]) ||
			    owner->share[kind].limit.value == owner->share[kind].configured.value)
				continue;
			owned = list_add(shares);
			owned->tenant = owner->row.tenant;
			owned->share = owner->share[kind];
			snprintf(owned->share.place, sizeof(owned->share.place), "%s",
				 owner->row.device);
		}
	}
}

void owners_show_shares(struct page *page, const struct owners *owners)
{
	static const struct column columns[] = {
		COLUMN(struct owned_share, tenant, NULL, "shares of", form_string),
		COLUMN(struct owned_share, share.place, NULL, "device", form_place),
		COLUMN(struct owned_share, share.kind, NULL, "kind", form_string),
		COLUMN(struct owned_share, share.configured, NULL, "configured", form_amount),
		COLUMN(struct owned_share, share.guarantee, NULL, "guarantee", form_guarantee),
		COLUMN(struct owned_share, share.limit, NULL, "in force", form_amount),
		COLUMN(struct owned_share, share, NULL, "which is", form_reason, .flows = true),
		COLUMNS_END,
	};
	struct list shares = { .size = sizeof(struct owned_share) };

	owned_shares_append(&shares, &owners->in_total[ROW_TENANT]);
	owned_shares_append(&shares, &owners->on_devices[ROW_TENANT]);
	if (shares.count)
		page_table(page, NULL, columns, &shares);
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
