/* SPDX-License-Identifier: MIT */
/* Whether guarantees can be kept; see policy_guarantees_check in policy.h. */
#include "policy/policy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/translation.h"
#include "policy/guarantees.h"
#include "policy/keys.h"
#include "policy/origins.h"
#include "policy/report.h"

/* ---- the check */

/* One guarantee, and what is found about it. */
struct guarantee {
	const struct policy *policy;
	const struct policy_tenant *tenant; /* NULL: the tenant TENANT_OTHERS, which is not named */
	struct policy_place place;
	uint64_t amount;
	uint64_t sum; /* of all tenants; 0: looked at alone */
	char *problem;
};

/* The limit of WHOSE that the guarantee, or the sum of all, is above. */
static int guarantee_fail(const struct guarantee *guarantee, const char *whose, uint64_t limit)
{
	const struct policy_key *key = &policy_keys[POLICY_KEY_guarantee];
	struct policy_source source = { .problem = guarantee->problem };
	char name[POLICY_KEY_NAME], amount[POLICY_AMOUNT], most[POLICY_AMOUNT];
	unsigned kind = guarantee->place.kind;
	int result;
	char origin[POLICY_ORIGIN], *colon;

	/* A line of a file names itself; who gave a command knows it. */
	policy_value_origin(guarantee->policy, guarantee->tenant, key, &guarantee->place, origin);
	colon = strrchr(origin, ':');
	if (colon) {
		source.line = (unsigned)strtoul(colon + 1, NULL, 10);
		*colon = '\0';
		source.file = origin;
	}
	policy_key_print(key, &guarantee->place, name);
	policy_amount_print(kind, guarantee->sum ? guarantee->sum : guarantee->amount, amount);
	policy_amount_print(kind, limit, most);
	if (guarantee->sum)
		result = policy_fail(
			&source, -EINVAL,
			"%s: %s for all tenants together: expected at most %s, the limit of %s",
			name, amount, most, whose);
	else
		result = policy_fail(
			&source, -EINVAL,
			"%s: %s for tenant '%s': expected at most %s, the limit of %s", name,
			amount, guarantee->tenant ? guarantee->tenant->name : TENANT_OTHERS, most,
			whose);
	return policy_report_mistake(guarantee->policy, POLICY_CHECK_guarantee_too_large, &source,
				     result);
}

static const char *place_device(const struct policy_place *place)
{
	return place->device[0] ? place->device : NULL;
}

static int guarantee_check(const struct guarantee *guarantee)
{
	const struct policy_place *place = &guarantee->place;
	uint64_t on_device = policy_tenant_limit(guarantee->policy, guarantee->tenant, false,
						 place_device(place), place->kind);
	uint64_t in_total = policy_tenant_limit(guarantee->policy, guarantee->tenant, false, NULL,
						place->kind);

	if (guarantee->amount > on_device)
		return guarantee_fail(guarantee, _("the tenant"), on_device);
	if (guarantee->amount > in_total)
		return guarantee_fail(guarantee, _("the tenant in total"), in_total);
	return 0;
}

/* Of all tenants together; the tenant TENANT_OTHERS has one even if the policy does not name it. */
static uint64_t place_sum(const struct policy *policy, const struct policy_place *place)
{
	const char *device = place_device(place);
	uint64_t sum = policy_tenant_find(policy, TENANT_OTHERS) ?
			       0 :
			       policy_tenant_guarantee(policy, NULL, device, place->kind);

	for (const struct policy_tenant *tenant = policy->tenants; tenant; tenant = tenant->next)
		if (__builtin_add_overflow(
			    sum, policy_tenant_guarantee(policy, tenant, device, place->kind), &sum))
			return UINT64_MAX;
	return sum;
}

/* The guarantees of all tenants for one kind, in total or on one device. */
static int place_check(const struct policy *policy, const struct policy_place *place,
		       char problem[PROBLEM_SIZE])
{
	uint64_t limit = policy_limit(&policy->host, place_device(place), place->kind), sum = 0;
	bool others = !policy_tenant_find(policy, TENANT_OTHERS), told = false;
	const struct policy_tenant *tenant = policy->tenants;
	int result = 0;

	while (result == 0 && (tenant || others)) {
		struct guarantee guarantee = {
			policy, tenant, *place,
			policy_tenant_guarantee(policy, tenant, place_device(place), place->kind),
			0, problem
		};

		if (guarantee.amount)
			result = guarantee_check(&guarantee);
		sum = sum + guarantee.amount < sum ? UINT64_MAX : sum + guarantee.amount;
		guarantee.sum = place_sum(policy, place);
		if (result == 0 && guarantee.amount && sum > limit && !told) {
			told = true;
			result = guarantee_fail(&guarantee,
						place->device[0] ? _("the device") : _("the host"),
						limit);
		}
		if (!tenant)
			others = false;
		else
			tenant = tenant->next;
	}
	return result;
}

/* A place is checked by the first section that has a guarantee there; another would find the
 * same. */
static int section_check(const struct policy *policy, const struct policy_tenant *section,
			 char problem[PROBLEM_SIZE])
{
	const struct policy_key *key = &policy_keys[POLICY_KEY_guarantee];
	struct policy_place place = { .next = 0 };
	int result = 0;

	while (result == 0 && policy_key_next(key, section, &place)) {
		const struct policy_tenant *first = policy->tenants;

		while (first && first != section && !policy_key_get(key, first, &place))
			first = first->next;
		if (section == &policy->fallback || first == section)
			result = place_check(policy, &place, problem);
	}
	return result;
}

int policy_guarantees_check(const struct policy *policy, char problem[PROBLEM_SIZE])
{
	int result = section_check(policy, &policy->fallback, problem);

	for (const struct policy_tenant *tenant = policy->tenants; tenant && result == 0;
	     tenant = tenant->next)
		result = section_check(policy, tenant, problem);
	return result;
}
