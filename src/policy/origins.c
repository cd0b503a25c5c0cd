/* SPDX-License-Identifier: MIT */
/* Where values of a policy were set; see origins.h. */
#include "policy/origins.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct policy_origin **policy_origins(struct policy *policy, struct policy_tenant *owner)
{
	return owner ? &owner->origins : &policy->origins;
}

static bool origin_is_of(const struct policy_origin *origin, const struct policy_key *key,
			 const struct policy_place *place)
{
	if (origin->key != key)
		return false;
	return key->type->shape != POLICY_PER_KIND ||
	       (origin->place.kind == place->kind && !strcmp(origin->place.device, place->device));
}

int policy_origin_set(struct policy_origin **origins, const struct policy_key *key,
		      const struct policy_place *place, const char *source)
{
	struct policy_origin **at = origins, *origin = NULL;
	size_t length = source ? strlen(source) + 1 : 0;

	if (source) {
		origin = malloc(sizeof(*origin) + length);
		if (!origin)
			return -ENOMEM;
		*origin = (struct policy_origin){ NULL, key, *place };
		memcpy(origin->source, source, length);
	}
	while (*at && !origin_is_of(*at, key, place))
		at = &(*at)->next;
	if (*at) {
		struct policy_origin *old = *at;

		*at = old->next;
		free(old);
	}
	if (origin) {
		origin->next = *at;
		*at = origin;
	}
	return 0;
}

const char *policy_origin_find(const struct policy_origin *origin, const struct policy_key *key,
			       const struct policy_place *place)
{
	while (origin && !origin_is_of(origin, key, place))
		origin = origin->next;
	return origin ? origin->source : "";
}

int policy_origin_copy(struct policy_origin **origins, const struct policy_origin *from,
		       const struct policy_key *key, const struct policy_place *place)
{
	const char *source = policy_origin_find(from, key, place);

	return policy_origin_set(origins, key, place, *source ? source : NULL);
}

void policy_origins_drop(struct policy_origin **origins)
{
	while (*origins) {
		struct policy_origin *origin = *origins;

		*origins = origin->next;
		free(origin);
	}
}

void policy_value_origin(const struct policy *policy, const struct policy_tenant *tenant,
			 const struct policy_key *key, const struct policy_place *place,
			 char ret_source[POLICY_ORIGIN])
{
	const struct policy_tenant *own = tenant;

	ret_source[0] = '\0';
	if (key->sections & POLICY_OF_POLICY) {
		if (policy_key_get(key, policy, place))
			snprintf(ret_source, POLICY_ORIGIN, "%s",
				 policy_origin_find(policy->origins, key, place));
		return;
	}
	/* One that was made from a pattern, or is within another one, has its values. */
	while (own && !policy_key_get(key, own, place))
		own = policy_tenant_below(own);
	if (own && own != &policy->fallback)
		snprintf(ret_source, POLICY_ORIGIN, "%s",
			 policy_origin_find(own->origins, key, place));
	else if (policy_key_get(key, &policy->fallback, place))
		snprintf(ret_source, POLICY_ORIGIN, "%.*s [default]",
			 POLICY_ORIGIN - (int)sizeof(" [default]"),
			 policy_origin_find(policy->fallback.origins, key, place));
}

/* ---- limits, for those who know no keys */

/* Whether the limit in force is the tenant's own, and not that of the one that it is within. */
static bool limit_is_own(const struct policy *policy, const struct policy_tenant *tenant,
			 enum policy_key_number key, const char *device,
			 const struct policy_place *place)
{
	const uint64_t *own = policy_key_get(&policy_keys[key], tenant, place);

	return own && *own == policy_tenant_limit(policy, tenant, key == POLICY_KEY_process, device,
						  place->kind);
}

void policy_limit_origin(const struct policy *policy, const struct policy_tenant *tenant,
			 enum limit_scope scope, const char *device, enum kind kind,
			 char ret_origin[POLICY_ORIGIN])
{
	static const struct {
		enum policy_key_number key;
		bool on_device;
	} scopes[SCOPES] = {
		[SCOPE_PROCESS] = { POLICY_KEY_process, false },
		[SCOPE_PROCESS_DEVICE] = { POLICY_KEY_process, true },
		[SCOPE_TENANT] = { POLICY_KEY_all, false },
		[SCOPE_TENANT_DEVICE] = { POLICY_KEY_all, true },
		[SCOPE_DEVICE] = { POLICY_KEY_host, true },
		[SCOPE_HOST] = { POLICY_KEY_host, false },
	};
	struct policy_place place = { .kind = kind };

	if (scopes[scope].on_device)
		snprintf(place.device, sizeof(place.device), "%s", device);
	else
		device = NULL;
	/* The lower limit is in force. */
	while (tenant && tenant->base && scopes[scope].key != POLICY_KEY_host &&
	       !limit_is_own(policy, tenant, scopes[scope].key, device, &place))
		tenant = tenant->base;
	policy_value_origin(policy, tenant, &policy_keys[scopes[scope].key], &place, ret_origin);
}

void policy_devices_origin(const struct policy *policy, const struct policy_tenant *tenant,
			   char ret_origin[POLICY_ORIGIN])
{
	const struct policy_place place = { .next = 0 };

	policy_value_origin(policy, tenant, &policy_keys[POLICY_KEY_devices], &place, ret_origin);
}

int policy_host_limit_set(struct policy *policy, enum kind kind, uint64_t value,
			  const char *variable)
{
	const struct policy_place place = { .kind = kind };
	char origin[POLICY_ORIGIN];

	policy->host.total[kind] = value;
	snprintf(origin, sizeof(origin), "environment %s", variable);
	return policy_origin_set(&policy->origins, &policy_keys[POLICY_KEY_host], &place, origin);
}

/* ---- all values */

struct lines_visit {
	bool (*visit)(void *closure, const struct policy_line *line);
	void *closure;
};

/* The values of one section that `over` does not set, too (NULL: all); false at the end of the visit. */
static bool section_visit(const struct lines_visit *lines, const char *title, unsigned section,
			  const void *structure, const struct policy_origin *origins,
			  const void *over)
{
	for (const struct policy_key *key = policy_keys; key < policy_keys + POLICY_KEYS; key++) {
		struct policy_place place = { .next = 0 };
		const void *value;

		while (key->sections & section &&
		       (value = policy_key_next(key, structure, &place))) {
			char name[POLICY_KEY_NAME], text[POLICY_PATH] = "";
			const struct policy_line line = { title, name, text,
							  policy_origin_find(origins, key, &place) };
			FILE *file;

			if (over && policy_key_get(key, over, &place))
				continue;
			file = fmemopen(text, sizeof(text) - 1, "w");
			if (!file)
				return false;
			key->type->print(file, value);
			fclose(file);
			policy_key_print(key, &place, name);
			if (!lines->visit(lines->closure, &line))
				return false;
		}
	}
	return true;
}

void policy_lines_visit(const struct policy *policy, const char *tenant,
			bool (*visit)(void *closure, const struct policy_line *line), void *closure)
{
	const struct lines_visit lines = { visit, closure };
	const struct policy_tenant *one = policy->tenants;
	bool goes_on = section_visit(&lines, "host", POLICY_IN_HOST, policy, policy->origins, NULL) &&
		       section_visit(&lines, "default", POLICY_IN_DEFAULT, &policy->fallback,
				     policy->fallback.origins, NULL);

	for (; goes_on && one; one = one->next) {
		const struct policy_tenant *below = policy_tenant_below(one);
		char title[sizeof("tenant ") + NAME_SIZE];

		if (tenant && strcmp(tenant, one->name) != 0)
			continue;
		snprintf(title, sizeof(title), "tenant %s", one->name);
		goes_on = section_visit(&lines, title, POLICY_IN_TENANT, one, one->origins, NULL);
		if (goes_on && below && below != &policy->fallback)
			goes_on = section_visit(&lines, title, POLICY_IN_TENANT, below,
						below->origins, one);
	}
}
