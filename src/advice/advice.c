/* SPDX-License-Identifier: MIT */
/* All rules over one observation; see advice.h. */
#include "advice/advice.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "advice/rules.h"
#include "base/translation.h"
#include "output/form.h"
#include "view/amount.h"

const struct advice_rule advice_rules[] = {
#define ADVICE(name, function, text) { name, text, advise_##function },
#include "advice/advice.def"
#undef ADVICE
};
const unsigned advice_rules_count = sizeof(advice_rules) / sizeof(advice_rules[0]);

static const struct form form_advice_text = { .show = form_text_show, .json = form_text_json };

const struct column advice_columns[] = {
	COLUMN(struct advice, rule, "rule", "rule", form_string),
	COLUMN(struct advice, tenant, "tenant", NULL, form_text),
	COLUMN(struct advice, pid, "pid", NULL, form_pid),
	COLUMN(struct advice, text, "text", "what", form_advice_text),
	COLUMN(struct advice, command, "command", "run", form_advice_text),
	COLUMN(struct advice, more, "more", NULL, form_count),
	COLUMNS_END,
};

void advice_select(const struct list *from, const char *tenant, unsigned most, struct list *to)
{
	struct advice *last = NULL;
	unsigned kept = 0;

	for (size_t i = 0; i < from->count; i++) {
		const struct advice *one = list_at(from, i);

		if (tenant && strcmp(tenant, one->tenant))
			continue;
		if (!last || strcmp(last->rule, one->rule))
			kept = 0;
		if (last && kept >= most) {
			last->more += 1 + one->more;
			continue;
		}
		last = list_add(to);
		*last = *one;
		kept++;
	}
}

void advice_collect(const struct observation *observation, const char *tenant, unsigned most,
		    struct list *advice)
{
	for (unsigned i = 0; i < advice_rules_count; i++) {
		struct list found = { .size = sizeof(struct advice) };

		advice_rules[i].advise(observation, &found);
		for (size_t j = 0; j < found.count; j++)
			((struct advice *)list_at(&found, j))->rule = advice_rules[i].name;
		advice_select(&found, tenant, most, advice);
		free(found.row);
	}
}

/* ---- what rules share */

const struct proto_row *rule_next_row(const struct observation *observation, uint32_t scope,
				      bool on_device, size_t *at)
{
	while (*at < observation->rows.count) {
		const struct proto_row *row = list_at(&observation->rows, (*at)++);

		if (row->scope == scope && on_device == (row->device[0] != '\0'))
			return row;
	}
	return NULL;
}

const struct proto_row *rule_host(const struct observation *observation)
{
	size_t at = 0;

	return rule_next_row(observation, ROW_HOST, false, &at);
}

const struct proto_row *rule_tenant(const struct observation *observation, const char *tenant)
{
	const struct proto_row *row;

	RULE_EACH_ROW(row, observation, ROW_TENANT, false)
		if (!strcmp(row->tenant, tenant))
			return row;
	return NULL;
}

const struct proto_row *rule_process(const struct observation *observation, int32_t pid)
{
	const struct proto_row *row;

	RULE_EACH_ROW(row, observation, ROW_PROCESS, false)
		if (row->pid == pid)
			return row;
	return NULL;
}

struct advice *rule_add(struct list *advice, const char *tenant, int32_t pid)
{
	struct advice *one = list_add(advice);

	snprintf(one->tenant, sizeof(one->tenant), "%s", tenant);
	one->pid = pid;
	return one;
}

void rule_say(struct advice *advice, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(advice->text, sizeof(advice->text), _(format), arguments);
	va_end(arguments);
}

void rule_command(struct advice *advice, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(advice->command, sizeof(advice->command), format, arguments);
	va_end(arguments);
}

/* Texts for one statement: each call takes the next of a few; dashboards have several threads. */
enum { RULE_TEXTS = 8, RULE_TEXT = 4 * NAME_SIZE + 8 };

static char *rule_text(void)
{
	static _Thread_local char texts[RULE_TEXTS][RULE_TEXT];
	static _Thread_local unsigned next;

	return texts[next++ % RULE_TEXTS];
}

const char *rule_amount(int kind, uint64_t value)
{
	const struct amount amount = { value, &kind_rows[kind] };

	return amount_text(&amount, rule_text());
}

const char *rule_value(int kind, uint64_t value)
{
	char *text = rule_text();

	/* Bytes in whole megabytes: a value that a person would write. */
	if (kind_rows[kind].unit == UNIT_BYTES)
		snprintf(text, RULE_TEXT, "%" PRIu64 "M", (value + (1 << 20) - 1) >> 20);
	else
		snprintf(text, RULE_TEXT, "%" PRIu64, value);
	return text;
}

unsigned rule_percent(uint64_t part, uint64_t whole)
{
	return whole ? (unsigned)((double)part * 100 / (double)whole + 0.5) : 100;
}

const char *rule_quoted(const char *name)
{
	char *text = rule_text(), *to = text;

	if (*name && strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				  "_-./") == strlen(name))
		return strcpy(text, name);
	*to++ = '\'';
	for (; *name; name++)
		if (*name == '\'')
			to = stpcpy(to, "'\\''");
		else
			*to++ = *name;
	return strcpy(to, "'"), text;
}
