/* SPDX-License-Identifier: MIT */
/*
 * The kinds of resource as C sees them, and a cost: how much of a few kinds
 * one object takes. Everything here comes from the rows of kinds.def.
 *
 * What is on one port of a device is counted, too, of a few kinds. In the ledger "qp on port 1"
 * is a kind like any other: it has its number behind those of the rows, and every rule that holds
 * for a kind holds for it. Those numbers are never shown; people see the kind and the port.
 */
#ifndef TERMS_KINDS_H
#define TERMS_KINDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Ports of a device that are counted one by one: 1 to PORTS_COUNTED; and how many kinds are. */
enum { PORTS_COUNTED = 4, PORT_KINDS = 2 };

enum kind {
#define KIND(name, unit, form, rdmacg, kernel, guarded, text) KIND_##name,
#include "terms/kinds.def"
#undef KIND
	KIND_COUNT, /* rows of kinds.def; numbers from here on are kinds on a port */
	KINDS_COUNTED = KIND_COUNT + PORT_KINDS * PORTS_COUNTED
};

enum kind_unit { UNIT_COUNT, UNIT_BYTES };
enum kind_form { FORM_OBJECT, FORM_MEASURE };
enum kind_rdmacg { RDMACG_NOT, RDMACG_HANDLE, RDMACG_OBJECT };

enum kind_guarded { GUARDED_NO, GUARDED_YES };

/* Differences between the kernel's number and the books' that are a fault; bits. */
enum kind_drift { DRIFT_NONE = 0, DRIFT_MORE = 1, DRIFT_LESS = 2, DRIFT_ANY = 3 };

struct kind_row {
	const char *name;
	enum kind_unit unit;
	enum kind_form form;
	enum kind_rdmacg rdmacg;
	enum kind_drift drift;
	bool guarded;
	const char *text;
};

extern const struct kind_row kind_rows[KINDS_COUNTED];

/* The kinds that are counted by port. */
static const enum kind kinds_by_port[PORT_KINDS] = { KIND_qp, KIND_ah };

/* The port that a number of a kind is about; 0: the kind as such. */
static inline unsigned kind_port(unsigned kind)
{
	return kind < KIND_COUNT ? 0 : (kind - KIND_COUNT) / PORT_KINDS + 1;
}

/* The kind of kinds.def that it is. */
static inline enum kind kind_plain(unsigned kind)
{
	return kind < KIND_COUNT ? (enum kind)kind :
				   kinds_by_port[(kind - KIND_COUNT) % PORT_KINDS];
}

/* The kind on a port, or -1 if that is not counted. */
static inline int kind_on_port(enum kind kind, unsigned port)
{
	if (port - 1 < PORTS_COUNTED)
		for (int i = 0; i < PORT_KINDS; i++)
			if (kinds_by_port[i] == kind)
				return KIND_COUNT + (int)(port - 1) * PORT_KINDS + i;
	return -1;
}

/* The kind called name[0..length), or -1. */
int kind_find(const char *name, size_t length);

/* Reads all of text[0..length) as an amount of the kind, or unlimited: a count, or a size, also with
 * a suffix. 0, or -EINVAL / -ERANGE with *ret_amount untouched. */
int kind_amount_parse(enum kind kind, const char *text, size_t length, uint64_t *ret_amount);

/* Bit k: the guard can refuse kind k in the kernel. */
uint64_t kinds_guarded(void);

/* A number that differs where the rows differ: part of every shared layout. */
uint64_t kinds_signature(void);

/* What one object takes, all or nothing. No kind stands twice in it, and no amount
 * is above COST_MOST, so that sums cannot wrap around. Making an object takes COST_MADE kinds at
 * most; the last place is for the port that a QP comes to later. */
enum { COST_KINDS = 4, COST_MADE = 3 };
#define COST_MOST (1ull << 60)

struct cost {
	uint8_t count;
	uint8_t kind[COST_KINDS];
	uint64_t amount[COST_KINDS];
};

#define COST1(k1, n1) ((struct cost){ 1, { KIND_##k1 }, { n1 } })
#define COST2(k1, n1, k2, n2) ((struct cost){ 2, { KIND_##k1, KIND_##k2 }, { n1, n2 } })
#define COST3(k1, n1, k2, n2, k3, n3)                                                              \
	((struct cost){ 3, { KIND_##k1, KIND_##k2, KIND_##k3 }, { n1, n2, n3 } })

#endif
