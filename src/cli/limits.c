/* SPDX-License-Identifier: MIT */
/* The limits in force; see limits.h. */
#include "cli/limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/matches.h"
#include "cli/origins.h"
#include "cli/owners.h"
#include "policy/keys.h"
#include "policy/policy.h"
#include "view/vocabulary.h"

struct limit {
	char section[2 * NAME_SIZE];
	char key[PROTO_KEY];
	const char *kind;
	char device[NAME_SIZE + 4]; /* or a port of one */
	uint32_t of_each_process;
	struct amount value;
	char origin[ORIGIN_TEXT];
};

static const struct column limit_columns[] = {
	COLUMN(struct limit, section, "section", "section", form_text),
	COLUMN(struct limit, key, "key", "key", form_text),
	COLUMN(struct limit, value, "value", "value", form_amount),
	COLUMN(struct limit, origin, "from", "from", form_text),
	COLUMN(struct limit, kind, "kind", NULL, form_string),
	COLUMN(struct limit, device, "device", NULL, form_text),
	COLUMN(struct limit, of_each_process, "of_each_process", NULL, form_flag),
	COLUMNS_END,
};

static void limit_place(const struct owner *owner, const struct share *share,
			char ret_place[NAME_SIZE + 4])
{
	unsigned port = kind_port((unsigned)(share - owner->share));

	snprintf(ret_place, NAME_SIZE + 4, port ? "%s/%u" : "%s", owner->row.device, port);
}

/* What a tenant, each of its processes, or the host has of a kind: the amounts of a share. */
enum limit_sort { LIMIT_OF_ALL, LIMIT_OF_EACH, LIMIT_RESERVED, LIMIT_SORTS };

/* NULL: the policy says nothing of it. */
static const struct amount *limit_value(const struct owner *owner, const struct share *share,
					enum limit_sort sort)
{
	const struct amount *const amounts[LIMIT_SORTS] = {
		[LIMIT_OF_ALL] = &share->limit,
		[LIMIT_OF_EACH] = &share->process_limit,
		[LIMIT_RESERVED] = &share->guarantee,
	};
	uint64_t nothing = sort == LIMIT_RESERVED ? 0 : UNLIMITED;

	if (amounts[sort]->value == nothing ||
	    (owner->row.flags & ROW_FORBIDDEN && sort != LIMIT_OF_EACH))
		return NULL;
	return amounts[sort];
}

static void limit_append(struct list *limits, const struct list *keys, const char *section,
			 const struct owner *owner, const struct share *share, enum limit_sort sort)
{
	const struct amount *value = limit_value(owner, share, sort);
	char key[LIMIT_KEY];
	struct limit *limit;

	if (!value)
		return;
	limit = list_add(limits);
	strcpy(limit->section, section);
	limit_place(owner, share, limit->device);
	limit->kind = share->kind;
	limit->of_each_process = sort == LIMIT_OF_EACH;
	limit->value = *value;
	vocabulary_key(limit->of_each_process, limit->device, share->kind, key);
	snprintf(limit->key, sizeof(limit->key), "%s%s", sort == LIMIT_RESERVED ? "guarantee." : "",
		 key);
	origins_find(keys, section, limit->key, limit->origin);
}

/* What a policy would call the owner. */
static void section_of(const struct owner *owner, char ret_section[2 * NAME_SIZE])
{
	if (owner->row.scope == ROW_HOST)
		strcpy(ret_section, "host");
	else
		strcat(strcpy(ret_section, "tenant "), owner->row.tenant);
}

/* Which sections are wanted. */
struct limit_choice {
	const char *section; /* "": all */
	bool with_host;
};

static bool section_is_chosen(const struct limit_choice *choice, const char *section)
{
	return !*choice->section || !strcmp(choice->section, section) ||
	       (choice->with_host && !strcmp("host", section));
}

/* Limits of the owners that are chosen; whether there are such owners. */
static bool limits_append(struct list *limits, const struct list *keys, const struct list *owners,
			  const struct limit_choice *choice, struct list *sections)
{
	bool found = false;

	for (size_t i = 0; i < owners->count; i++) {
		const struct owner *owner = list_at(owners, i);
		char section[2 * NAME_SIZE];

		section_of(owner, section);
		if (!section_is_chosen(choice, section))
			continue;
		found = true;
		if (sections)
			*(char **)list_add(sections) = memory_need(strdup(section));
		for (int kind = 0; kind < KINDS_COUNTED; kind++)
			for (int sort = 0; sort < LIMIT_SORTS; sort++)
				limit_append(limits, keys, section, owner, &owner->share[kind],
					     (enum limit_sort)sort);
	}
	return found;
}

static bool section_has_key(const struct list *keys, const char *section, const char *name)
{
	for (size_t i = 0; i < keys->count; i++) {
		const struct proto_key *key = list_at(keys, i);

		if (!strcmp(key->section, section) && !strcmp(key->key, name))
			return true;
	}
	return false;
}

/* What the policy says in a section that no owner stands for: [default], or a pattern, for which
 * the keys of [default] count (`from`) where it has none itself. */
static void section_append(struct list *limits, const struct list *keys, const char *shown,
			   const char *from)
{
	const struct policy_section *section = policy_sections;
	bool inherited = strcmp(shown, from) != 0;

	while (section->bit != POLICY_IN_DEFAULT) /* its keys of limits are those of tenants */
		section++;
	for (size_t i = 0; i < keys->count; i++) {
		const struct proto_key *key = list_at(keys, i);
		const struct policy_key *found;
		struct policy_place place;
		struct limit *limit;

		if (strcmp(key->section, from) ||
		    (inherited && section_has_key(keys, shown, key->key)))
			continue;
		found = policy_key_find(section, key->key, &place);
		if (!found || found->type->shape != POLICY_PER_KIND)
			continue;
		limit = list_add(limits);
		snprintf(limit->section, sizeof(limit->section), "%s", shown);
		snprintf(limit->key, sizeof(limit->key), "%s", key->key);
		snprintf(limit->origin, sizeof(limit->origin), "%s%s", key->origin,
			 inherited ? " [default]" : "");
		limit->kind = kind_rows[place.kind].name;
		limit->of_each_process = found == &policy_keys[POLICY_KEY_process];
		limit->value = (struct amount){ UNLIMITED, &kind_rows[place.kind] };
		kind_amount_parse(place.kind, key->value, strlen(key->value), &limit->value.value);
		snprintf(limit->device, sizeof(limit->device), kind_port(place.kind) ? "%s/%u" : "%s",
			 place.device, kind_port(place.kind));
	}
}

/* Patterns of the policy, by their match lines; they own nothing, so that no row stands for them. */
static int patterns_append(const struct cli *cli, struct list *limits, const struct list *keys,
			   const struct limit_choice *choice, struct list *sections, bool *ret_found)
{
	struct list matches = { .size = sizeof(struct proto_match) };
	int result = matches_ask(cli, "", &matches);

	for (size_t i = 0; !result && i < matches.count; i++) {
		const struct proto_match *match = list_at(&matches, i);
		char section[2 * NAME_SIZE];
		bool again = false;

		snprintf(section, sizeof(section), "tenant %.*s", NAME_SIZE - 1, match->tenant);
		for (size_t j = 0; j < sections->count; j++)
			again |= !strcmp(*(char **)list_at(sections, j), section);
		if (again || !policy_name_is_pattern(match->tenant) ||
		    !section_is_chosen(choice, section))
			continue;
		*(char **)list_add(sections) = memory_need(strdup(section));
		section_append(limits, keys, section, section);
		section_append(limits, keys, section, "default");
		*ret_found = true;
	}
	free(matches.row);
	return result;
}

static int limit_compare(const void *one, const void *other)
{
	const struct limit *a = one, *b = other;
	int order = strcmp(a->section, b->section);

	if (!order)
		order = strcmp(a->device, b->device);
	if (!order)
		order = (int)a->of_each_process - (int)b->of_each_process;
	return order ? order : strcmp(a->key, b->key);
}

int limits_show(const struct cli *cli, struct page *page, const char *section, bool with_host,
		bool *ret_found)
{
	const struct limit_choice choice = { section, with_host };
	struct list limits = { .size = sizeof(struct limit) }, sections = { .size = sizeof(char *) };
	bool of_default = section_is_chosen(&choice, "default"), found = of_default;
	struct owners owners;
	struct list keys;
	int result = owners_ask(cli, MESSAGE_GET_STATS, NULL, &owners);

	if (result)
		return result;
	result = origins_ask(cli, &keys);
	for (int scope = 0; !result && scope < OWNER_SCOPES; scope++) {
		found |= limits_append(&limits, &keys, &owners.in_total[scope], &choice, &sections);
		limits_append(&limits, &keys, &owners.on_devices[scope], &choice, NULL);
	}
	if (!result && of_default) {
		section_append(&limits, &keys, "default", "default");
		*(char **)list_add(&sections) = memory_need(strdup("default"));
	}
	if (!result)
		result = patterns_append(cli, &limits, &keys, &choice, &sections, &found);
	if (!result && found) {
		if (limits.count)
			qsort(limits.row, limits.count, limits.size, limit_compare);
		page_table(page, "limits", limit_columns, &limits);
		if (ret_found) /* otherwise the limits are a part of something else */
			origins_show_settings(page, &keys, &sections);
	}
	if (ret_found)
		*ret_found = found;
	for (size_t i = 0; i < sections.count; i++)
		free(*(char **)list_at(&sections, i));
	free(sections.row);
	free(keys.row);
	owners_free(&owners);
	free(limits.row);
	return result;
}
