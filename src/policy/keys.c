/* SPDX-License-Identifier: MIT */
/* The table of keys, and the way to their values; see keys.h. */
#include "policy/keys.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "base/translation.h"
#include "policy/limits.h"
#include "policy/problem.h"

#define DEVICE "device."
#define PORT "port."

const struct policy_section policy_sections[POLICY_SECTIONS] = {
	{ "collector", "[collector]", POLICY_IN_COLLECTOR, false },
	{ "host", "[host]", POLICY_IN_HOST, true },
	{ "default", "[default]", POLICY_IN_DEFAULT, true },
	{ "tenant", "[tenant NAME]", POLICY_IN_TENANT, true },
};

#define KEY(structure, sections, field, name, type, initial, help)                                 \
	[POLICY_KEY_##field] = { name,                                                             \
				 sections,                                                         \
				 &policy_type_##type,                                              \
				 offsetof(structure, field),                                       \
				 sizeof(POLICY_VALUE_##type()),                                    \
				 &(const POLICY_VALUE_##type()){ initial },                        \
				 help },

const struct policy_key policy_keys[POLICY_KEYS] = {
#define KEY_COLLECTOR(...) KEY(struct policy, POLICY_IN_COLLECTOR, __VA_ARGS__)
#define KEY_HOST(...) KEY(struct policy, POLICY_IN_HOST, __VA_ARGS__)
#define KEY_TENANT(...) KEY(struct policy_tenant, POLICY_OF_TENANT, __VA_ARGS__)
#define KEY_ONE_TENANT(...) KEY(struct policy_tenant, POLICY_IN_TENANT, __VA_ARGS__)
#include "policy/keys.def"
	/* Its values are the list of rules of struct policy: the order over all tenants counts. */
	[POLICY_KEY_match] = { .name = "match",
			       .sections = POLICY_IN_TENANT,
			       .type = &policy_type_rule,
			       .help = N_("conditions: a process that meets all of them belongs "
					  "to the tenant") },
	[POLICY_KEY_when] = { .name = "when",
			      .sections = POLICY_IN_HOST,
			      .type = &policy_type_when,
			      .help = N_("a value in force while usage passes a mark, or in a "
					 "window of time") },
};

/* ---- values */

static bool value_is_set(const struct policy_key *key, const void *value)
{
	return memcmp(value, key->type->unset, key->size) != 0;
}

const void *policy_key_get(const struct policy_key *key, const void *structure,
			   const struct policy_place *place)
{
	const void *value = (const char *)structure + key->offset;

	if (key->type->shape == POLICY_LINES)
		return NULL;
	if (key->type->shape == POLICY_PER_KIND)
		value = policy_limits_find(value, place->device[0] ? place->device : NULL,
					   place->kind);
	return value && value_is_set(key, value) ? value : NULL;
}

int policy_key_set(const struct policy_key *key, void *structure, const struct policy_place *place,
		   const void *value)
{
	void *field = (char *)structure + key->offset;

	if (!value)
		value = key->type->unset;
	if (key->type->shape == POLICY_PER_KIND)
		return policy_limit_set(field, place->device[0] ? place->device : NULL, place->kind,
					*(const uint64_t *)value);
	memcpy(field, value, key->size);
	return 0;
}

/* The place with this number; false past the last one. */
static bool place_set(const struct policy_key *key, const void *structure, unsigned number,
		      struct policy_place *place)
{
	const struct policy_limits *limits;
	unsigned row = number / KINDS_COUNTED;

	if (key->type->shape != POLICY_PER_KIND)
		return key->type->shape == POLICY_SINGLE && number == 0;
	limits = (const void *)((const char *)structure + key->offset);
	if (row > limits->devices)
		return false;
	strcpy(place->device, row ? limits->device[row - 1].name : "");
	place->kind = (enum kind)(number % KINDS_COUNTED);
	return true;
}

const void *policy_key_next(const struct policy_key *key, const void *structure,
			    struct policy_place *place)
{
	const void *value = NULL;

	while (!value && place_set(key, structure, place->next, place)) {
		place->next++;
		value = policy_key_get(key, structure, place);
	}
	return value;
}

void policy_keys_unset(unsigned sections, void *structure)
{
	for (const struct policy_key *key = policy_keys; key < policy_keys + POLICY_KEYS; key++) {
		void *field = (char *)structure + key->offset;

		if (!(key->sections & sections))
			continue;
		if (key->type->shape == POLICY_PER_KIND)
			policy_limits_init(field);
		else if (key->type->shape == POLICY_SINGLE)
			memcpy(field, key->type->unset, key->size);
	}
}

void policy_keys_release(unsigned sections, void *structure)
{
	for (const struct policy_key *key = policy_keys; key < policy_keys + POLICY_KEYS; key++)
		if (key->sections & sections && key->type->shape == POLICY_PER_KIND)
			policy_limits_release((void *)((char *)structure + key->offset));
}

/* ---- names */

bool policy_name_is_valid(const char *name)
{
	size_t length = strlen(name);

	return length > 0 && length < NAME_SIZE && strspn(name, POLICY_NAME_CHARACTERS) == length;
}

void policy_key_print(const struct policy_key *key, const struct policy_place *place,
		      char ret_name[POLICY_KEY_NAME])
{
	bool per_kind = key->type->shape == POLICY_PER_KIND, device = per_kind && place->device[0];
	unsigned port = device ? kind_port(place->kind) : 0;
	char number[16] = "";

	if (port)
		snprintf(number, sizeof(number), "/%u", port);
	snprintf(ret_name, POLICY_KEY_NAME, "%s%s%s%s%s%s", key->name,
		 port	? PORT :
		 device ? DEVICE :
			  "",
		 device ? place->device : "", number, device ? "." : "",
		 per_kind ? kind_rows[place->kind].name : "");
}

const char *policy_key_form(const struct policy_key *key, unsigned number,
			    char ret_form[POLICY_KEY_NAME])
{
	static const char *const per_kind[] = { "KIND", DEVICE "NAME.KIND",
						PORT "NAME/PORT.KIND" };
	bool single = key->type->shape != POLICY_PER_KIND;
	unsigned forms = single ? 1 : key->type->by_port ? 3 : 2;

	if (number >= forms)
		return NULL;
	snprintf(ret_form, POLICY_KEY_NAME, "%s%s", key->name, single ? "" : per_kind[number]);
	return ret_form;
}

static const char *kinds_list(char *text, size_t size)
{
	text[0] = '\0';
	for (unsigned kind = 0; kind < KIND_COUNT; kind++)
		policy_list_add(text, size, kind, KIND_COUNT, kind_rows[kind].name);
	return text;
}

static const char *classes_list(char *text, size_t size)
{
	text[0] = '\0';
	for (unsigned class = 0; class < RATE_CLASSES; class ++)
		policy_list_add(text, size, class, RATE_CLASSES, rate_rows[class].name);
	return text;
}

/* How much of the key's name all keys of its family have; 0: it is of none. */
static size_t family_length(const struct policy_key *key)
{
	return key->type->family ? (size_t)(strrchr(key->name, '.') + 1 - key->name) : 0;
}

static bool family_has(const struct policy_key *key, const char *text)
{
	size_t length = family_length(key);

	return length && !strncmp(key->name, text, length);
}

/* A form for all keys of a family: of the first one. */
static const char *key_form_in_list(const struct policy_key *key, unsigned number,
				    char ret_form[POLICY_KEY_NAME])
{
	if (!family_length(key))
		return policy_key_form(key, number, ret_form);
	if (number || (key > policy_keys && family_has(key, key[-1].name)))
		return NULL;
	snprintf(ret_form, POLICY_KEY_NAME, "%.*s%s", (int)family_length(key), key->name,
		 key->type->family);
	return ret_form;
}

static const char *port_kinds_list(char *text, size_t size)
{
	text[0] = '\0';
	for (unsigned i = 0; i < PORT_KINDS; i++)
		policy_list_add(text, size, i, PORT_KINDS, kind_rows[kinds_by_port[i]].name);
	return text;
}

/* What may be written in a section; whether KIND is part of it. */
static bool forms_list(const struct policy_section *section, char *text, size_t size)
{
	char form[POLICY_KEY_NAME];
	unsigned count = 0, number = 0;
	bool per_kind = false;

	/* The last one has another word before it: counted first, then written. */
	for (int writing = 0; writing < 2; writing++)
		for (const struct policy_key *key = policy_keys; key < policy_keys + POLICY_KEYS;
		     key++) {
			if (!(key->sections & section->bit))
				continue;
			per_kind |= key->type->shape == POLICY_PER_KIND;
			for (unsigned i = 0; key_form_in_list(key, i, form); i++) {
				if (writing)
					policy_list_add(text, size, number++, count, form);
				else
					count++;
			}
		}
	return per_kind;
}

/* The key or kind that a misspelt one was probably meant to be; NULL: none is near. */
static const char *key_nearest(const struct policy_section *section, const char *text)
{
	struct nearest nearest = { .word = text };

	for (const struct policy_key *key = policy_keys; key < policy_keys + POLICY_KEYS; key++) {
		if (!(key->sections & section->bit))
			continue;
		if (key->type->shape != POLICY_PER_KIND)
			nearest_offer(&nearest, key->name, strlen(key->name));
		else if (!*key->name)
			for (unsigned kind = 0; kind < KIND_COUNT; kind++)
				nearest_offer(&nearest, kind_rows[kind].name,
					      strlen(kind_rows[kind].name));
	}
	return nearest.best;
}

static int key_fail(const struct policy_source *source, const struct policy_section *section,
		    const char *text)
{
	char forms[768] = "";
	bool per_kind = forms_list(section, forms, sizeof(forms));
	const char *meant = key_nearest(section, text);

	if (meant)
		return policy_fail(source, -EINVAL,
				   POLICY_WORD ": unknown key in [%s]: did you mean '%s'? "
					       "'rdma_intercept show key' lists the keys",
				   text, section->name, meant);
	/* The list of kinds would make it longer than a problem may be. */
	return policy_fail(source, -EINVAL, POLICY_WORD ": unknown key in [%s]: expected %s%s", text,
			   section->name, forms,
			   per_kind ? _("; 'rdma_intercept show kind' lists KIND") : "");
}

static int class_fail(const struct policy_source *source, const char *text, const char *class)
{
	char classes[256];

	return policy_fail(source, -EINVAL, "%.128s: unknown class " POLICY_WORD ": expected %s",
			   text, class, classes_list(classes, sizeof(classes)));
}

/* The key of one value with this name, or the one with values for kinds whose name is the longest
 * beginning of the text; NULL if there is none. */
static const struct policy_key *key_find(const struct policy_section *section, const char *text)
{
	const struct policy_key *found = NULL;

	for (const struct policy_key *key = policy_keys; key < policy_keys + POLICY_KEYS; key++) {
		size_t length = strlen(key->name);

		if (!(key->sections & section->bit))
			continue;
		if (key->type->shape != POLICY_PER_KIND && !strcmp(key->name, text))
			return key;
		if (key->type->shape == POLICY_PER_KIND && !strncmp(key->name, text, length) &&
		    (!found || length > strlen(found->name)))
			found = key;
	}
	return found;
}

static int place_device_parse(const struct policy_source *source, const char *text, const char *name,
			      int length, struct policy_place *place)
{
	snprintf(place->device, sizeof(place->device), "%.*s", length, name);
	return length < NAME_SIZE && policy_name_is_valid(place->device) ?
		       0 :
		       policy_fail(source, -EINVAL,
				   POLICY_WORD
				   ": invalid name of a device: expected " POLICY_NAME_EXPECTED,
				   text);
}

/* NAME/PORT.KIND. The name of a device has no slash, and a number no dot. */
static int place_parse_port(const struct policy_source *source, const char *text, const char *at,
			    struct policy_place *ret_place)
{
	const char *slash = strchr(at, '/'), *dot = slash ? strchr(slash, '.') : NULL;
	struct policy_place place = { .next = 0 };
	uint64_t port = 0;
	char kinds[64];
	int kind, result;

	if (!dot)
		return policy_fail(source, -EINVAL,
				   POLICY_WORD ": invalid key of a port: expected " PORT
					       "NAME/PORT.KIND, such as " PORT "mlx5_0/1.qp",
				   text);
	result = place_device_parse(source, text, at, (int)(slash - at), &place);
	if (result < 0)
		return result;
	size_parse(slash + 1, (size_t)(dot - slash - 1), 1, false, &port);
	if (port < 1 || port > PORTS_COUNTED)
		return policy_fail(source, -EINVAL,
				   "%.128s: invalid port '%.*s': expected a number from 1 to %d",
				   text, (int)(dot - slash - 1), slash + 1, PORTS_COUNTED);
	kind = kind_find(dot + 1, strlen(dot + 1));
	kind = kind < 0 ? kind : kind_on_port((enum kind)kind, (unsigned)port);
	if (kind < 0)
		return policy_fail(source, -EINVAL,
				   "%.128s: invalid kind of a port " POLICY_WORD ": expected %s",
				   text, dot + 1, port_kinds_list(kinds, sizeof(kinds)));
	place.kind = (enum kind)kind;
	*ret_place = place;
	return 0;
}

/* [device.NAME.]KIND behind the key's name, or port.NAME/PORT.KIND. A kind has no dots, so that
 * the name of a device may have some. */
static int place_parse(const struct policy_source *source, const struct policy_section *section,
		       const struct policy_key *key, const char *text,
		       struct policy_place *ret_place)
{
	const char *at = text + strlen(key->name), *dot;
	struct policy_place place = { .next = 0 };
	char kinds[256];
	int kind, result;

	if (key->type->by_port && !strncmp(at, PORT, strlen(PORT)))
		return place_parse_port(source, text, at + strlen(PORT), ret_place);
	if (!strncmp(at, DEVICE, strlen(DEVICE))) {
		at += strlen(DEVICE);
		dot = strrchr(at, '.');
		if (!dot)
			return key_fail(source, section, text);
		result = place_device_parse(source, text, at, (int)(dot - at), &place);
		if (result < 0)
			return result;
		at = dot + 1;
	}
	kind = kind_find(at, strlen(at));
	if (kind < 0 && at == text)
		return key_fail(source, section, text);
	if (kind < 0)
		return policy_fail(source, -EINVAL,
				   "%.128s: unknown kind " POLICY_WORD ": expected %s", text, at,
				   kinds_list(kinds, sizeof(kinds)));
	place.kind = (enum kind)kind;
	*ret_place = place;
	return 0;
}

int policy_key_parse(const struct policy_source *source, const struct policy_section *section,
		     const char *text, const struct policy_key **ret_key,
		     struct policy_place *ret_place)
{
	const struct policy_key *key = key_find(section, text);
	struct policy_place place = { .next = 0 };
	int result = key ? 0 : key_fail(source, section, text);

	for (const struct policy_key *one = policy_keys; one < policy_keys + POLICY_KEYS; one++)
		if (one != key && one->sections & section->bit && family_has(one, text) &&
		    (!key || key->type != one->type))
			return class_fail(source, text, text + family_length(one));
	if (key && key->type->shape == POLICY_PER_KIND)
		result = place_parse(source, section, key, text, &place);
	if (result < 0)
		return result;
	*ret_key = key;
	*ret_place = place;
	return 0;
}

const struct policy_key *policy_key_find(const struct policy_section *section, const char *text,
					 struct policy_place *ret_place)
{
	char problem[PROBLEM_SIZE];
	const struct policy_source unheard = { .problem = problem };
	const struct policy_key *key = NULL;

	if (policy_key_parse(&unheard, section, text, &key, ret_place) < 0)
		return NULL;
	return !key || key->type->shape == POLICY_LINES ? NULL : key;
}
