/* SPDX-License-Identifier: MIT */
/* The keys of the policy in force; see origins.h. */
#include "cli/origins.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/collector.h"
#include "output/form.h"
#include "policy/keys.h"

static int key_take(const void *row, void *keys)
{
	struct proto_key *key = list_add(keys);

	*key = *(const struct proto_key *)row;
	proto_text(key->section);
	proto_text(key->key);
	proto_text(key->value);
	proto_text(key->origin);
	return 0;
}

int origins_ask(const struct cli *cli, struct list *ret_keys)
{
	static const struct proto_choose everything;

	*ret_keys = (struct list){ .size = sizeof(struct proto_key) };
	return collector_rows(cli, MESSAGE_GET_KEYS, &everything, key_take, ret_keys);
}

static const struct proto_key *origins_row_find(const struct list *keys, const char *section,
					const char *name)
{
	for (size_t i = 0; i < keys->count; i++) {
		const struct proto_key *key = list_at(keys, i);

		if (!strcmp(key->section, section) && !strcmp(key->key, name))
			return key;
	}
	return NULL;
}

static bool section_is_tenant(const char *section)
{
	return !strncmp(section, "tenant ", strlen("tenant "));
}

/* The key that counts for a section: its own, or for a tenant that of [default]. */
static const struct proto_key *key_in_force(const struct list *keys, const char *section,
					    const char *name, char ret_origin[ORIGIN_TEXT])
{
	const struct proto_key *key = origins_row_find(keys, section, name);
	bool inherited = !key && section_is_tenant(section);

	if (inherited)
		key = origins_row_find(keys, "default", name);
	snprintf(ret_origin, ORIGIN_TEXT, "%s%s", key ? key->origin : "",
		 key && inherited ? " [default]" : "");
	return key;
}

void origins_find(const struct list *keys, const char *section, const char *key,
		  char ret_origin[ORIGIN_TEXT])
{
	key_in_force(keys, section, key, ret_origin);
}

/* ---- settings */

struct setting_line {
	char section[2 * NAME_SIZE];
	const char *key;
	char value[PROTO_VALUE];
	char origin[ORIGIN_TEXT];
};

static const struct form form_origin = {
	.show = form_text_show,
	.json = form_text_json,
	.nothing = "not set",
};

static const struct column setting_columns[] = {
	COLUMN(struct setting_line, section, "section", "section", form_text),
	COLUMN(struct setting_line, key, "key", "setting", form_string),
	COLUMN(struct setting_line, value, "value", "value", form_text),
	COLUMN(struct setting_line, origin, "from", "from", form_origin),
	COLUMNS_END,
};

/* Of these the initial value is shown, too: it decides what happens at a limit. */
static bool key_is_always_shown(const struct policy_key *key)
{
	return key == &policy_keys[POLICY_KEY_mode] || key == &policy_keys[POLICY_KEY_weight];
}

static void setting_append(struct list *settings, const struct list *keys, const char *section,
			   const struct policy_key *key)
{
	char origin[ORIGIN_TEXT];
	const struct proto_key *found = key_in_force(keys, section, key->name, origin);
	struct setting_line *line;
	FILE *file;

	if (!found && (!key_is_always_shown(key) || !section_is_tenant(section)))
		return;
	line = list_add(settings);
	snprintf(line->section, sizeof(line->section), "%s", section);
	line->key = key->name;
	strcpy(line->origin, origin);
	if (found) {
		snprintf(line->value, sizeof(line->value), "%s", found->value);
		return;
	}
	file = fmemopen(line->value, sizeof(line->value) - 1, "w");
	if (!file)
		return;
	key->type->print(file, key->initial);
	fclose(file);
}

void origins_show_settings(struct page *page, const struct list *keys, const struct list *sections)
{
	struct list settings = { .size = sizeof(struct setting_line) };

	for (size_t i = 0; i < sections->count; i++) {
		const char *section = *(const char *const *)list_at(sections, i);
		unsigned in = !strcmp(section, "host")	  ? POLICY_IN_HOST :
			      !strcmp(section, "default") ? POLICY_IN_DEFAULT :
							    POLICY_IN_TENANT;

		for (unsigned key = 0; key < POLICY_KEYS; key++)
			if (policy_keys[key].sections & in &&
			    policy_keys[key].type->shape == POLICY_SINGLE)
				setting_append(&settings, keys, section, &policy_keys[key]);
	}
	if (settings.count || page->document)
		page_table(page, "settings", setting_columns, &settings);
	free(settings.row);
}
