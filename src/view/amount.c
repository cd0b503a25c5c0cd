/* SPDX-License-Identifier: MIT */
/* The form of amounts; see amount.h. */
#include "view/amount.h"

#include <inttypes.h>
#include <stdio.h>

#include "proto/messages.h"

const char *amount_text(const struct amount *amount, char ret_text[AMOUNT_TEXT])
{
	if (!amount->kind || amount->value == UNLIMITED)
		return "-";
	if (amount->kind->unit == UNIT_BYTES)
		return bytes_text(amount->value, ret_text);
	snprintf(ret_text, AMOUNT_TEXT, "%" PRIu64, amount->value);
	return ret_text;
}

static void amount_show(const struct form *form, const void *field, struct cell *ret_cell)
{
	char text[AMOUNT_TEXT];

	cell_print(ret_cell, NULL, "%s", amount_text(field, text));
}

static json_t *amount_json(const struct form *form, const void *field)
{
	const struct amount *amount = field;

	return amount->kind && amount->value != UNLIMITED ? form_json_number(amount->value) :
								  json_null();
}

const struct form form_amount = { .show = amount_show, .json = amount_json, .right = true };
