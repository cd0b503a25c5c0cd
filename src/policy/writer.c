/* SPDX-License-Identifier: MIT */
/* Writing a policy as a file that the reader reads back the same. Knows no key by name. */
#include <errno.h>
#include <stdio.h>

#include "base/file.h"
#include "policy/conditions.h"
#include "policy/keys.h"
#include "policy/policy.h"
#include "policy/when.h"

static void keys_write(FILE *file, unsigned section, const void *structure)
{
	char name[POLICY_KEY_NAME];

	for (const struct policy_key *key = policy_keys; key < policy_keys + POLICY_KEYS; key++) {
		struct policy_place place = { .next = 0 };
		const void *value;

		while (key->sections & section &&
		       (value = policy_key_next(key, structure, &place))) {
			policy_key_print(key, &place, name);
			fprintf(file, "%s = ", name);
			key->type->print(file, value);
			fputc('\n', file);
		}
	}
}

static void rule_write(FILE *file, const struct policy_rule *rule)
{
	fprintf(file, "match =%s", rule->first ? " " POLICY_FIRST : "");
	for (int i = 0; i < POLICY_CONDITIONS; i++) {
		const void *field = policy_condition_get(&policy_conditions[i], rule);

		if (!field)
			continue;
		fprintf(file, " %s=", policy_conditions[i].name);
		policy_conditions[i].type->print(file, field);
	}
	fputc('\n', file);
}

/* Rules stand apart from the tenants' keys, since their order over all tenants counts. */
static void rule_list_write(FILE *file, const struct policy_rule *rule)
{
	const struct policy_tenant *tenant = NULL;

	for (; rule; rule = rule->next) {
		if (rule->tenant != tenant)
			fprintf(file, "\n[tenant %s]\n", rule->tenant->name);
		tenant = rule->tenant;
		rule_write(file, rule);
	}
}

static int policy_print(FILE *file, const void *closure)
{
	const struct policy *policy = closure;

	fprintf(file, "# Written by the collector; see rdma_intercept_policy(5).\n\n[collector]\n");
	keys_write(file, POLICY_IN_COLLECTOR, policy);
	fprintf(file, "\n[host]\n");
	keys_write(file, POLICY_IN_HOST, policy);
	for (const struct policy_when *when = policy->whens; when; when = when->next)
		fprintf(file, "when = %s\n", when->text);
	fprintf(file, "\n[default]\n");
	keys_write(file, POLICY_IN_DEFAULT, &policy->fallback);
	for (const struct policy_tenant *tenant = policy->tenants; tenant; tenant = tenant->next) {
		fprintf(file, "\n[tenant %s]\n", tenant->name);
		keys_write(file, POLICY_IN_TENANT, tenant);
	}
	rule_list_write(file, policy->rules);
	return ftello(file) > POLICY_FILE_MOST ? -EFBIG : 0;
}

int policy_write(const struct policy *policy, const char *path)
{
	return file_replace(path, policy_print, policy);
}
