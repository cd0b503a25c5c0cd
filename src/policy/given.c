/* SPDX-License-Identifier: MIT */
/*
 * A process as a person describes it: conditions as in a match line, but with values instead of
 * ranges and patterns. The reader of match lines reads them; here they become a subject.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policy/conditions.h"
#include "policy/problem.h"

#define LETTERS "abcdefghijklmnopqrstuvwxyz_"

/* An id that no process has, and no match line can name. */
#define ID_NONE UINT32_MAX

/* Cuts the first condition off. Values may have commas: the next condition begins behind one that
 * NAME= follows. */
static char *given_next(char **rest)
{
	char *condition = *rest, *comma = condition;

	while ((comma = strchr(comma, ','))) {
		size_t length = strspn(comma + 1, LETTERS);

		if (length && comma[1 + length] == '=')
			break;
		comma++;
	}
	if (comma)
		*comma++ = '\0';
	*rest = comma;
	return condition;
}

static int given_id_check(const struct policy_source *source, const char *name,
			  const struct policy_ids *ids, unsigned most)
{
	for (unsigned i = 0; i < ids->count; i++)
		if (ids->count > most || ids->range[i].first != ids->range[i].last)
			return policy_fail(source, -EINVAL,
					   "%s: more than one value: expected a number or a name",
					   name);
	return 0;
}

/* The fields of the rule as values. A condition that is not among these cannot be given. */
static int given_take(const struct policy_source *source, const struct policy_rule *rule,
		      struct policy_given *given)
{
	struct policy_subject *subject = &given->subject;
	int result = given_id_check(source, "uid", &rule->uid, 1);

	if (result == 0)
		result = given_id_check(source, "gid", &rule->gid, POLICY_IDS);
	if (result < 0)
		return result;
	*subject = (struct policy_subject){
		.uid = rule->uid.count ? rule->uid.range[0].first : ID_NONE,
		.gid = rule->gid.count ? rule->gid.range[0].first : ID_NONE,
		.group = given->group,
		.cgroup = given->cgroup,
		.container = rule->container[0] ? given->container : NULL,
		.job = rule->job[0] ? given->job : NULL,
		.pod = rule->pod[0] ? given->pod : NULL,
		.namespace = rule->namespace[0] ? given->namespace : NULL,
	};
	for (unsigned i = 1; i < rule->gid.count; i++)
		given->group[subject->groups++] = rule->gid.range[i].first;
	snprintf(given->cgroup, sizeof(given->cgroup), "%s", rule->cgroup);
	snprintf(given->container, sizeof(given->container), "%.*s",
		 (int)sizeof(given->container) - 1, rule->container);
	snprintf(given->job, sizeof(given->job), "%s", rule->job);
	snprintf(given->pod, sizeof(given->pod), "%s", rule->pod);
	snprintf(given->namespace, sizeof(given->namespace), "%s", rule->namespace);
	return 0;
}

static bool condition_can_be_given(const struct policy_condition *condition)
{
	static const unsigned can[] = {
		POLICY_CONDITION_NUMBER_uid,	   POLICY_CONDITION_NUMBER_gid,
		POLICY_CONDITION_NUMBER_cgroup,	   POLICY_CONDITION_NUMBER_container,
		POLICY_CONDITION_NUMBER_job,	   POLICY_CONDITION_NUMBER_pod,
		POLICY_CONDITION_NUMBER_namespace,
	};

	for (unsigned i = 0; i < sizeof(can) / sizeof(can[0]); i++)
		if (condition == &policy_conditions[can[i]])
			return true;
	return false;
}

int policy_given_parse(const char *text, struct policy_given *ret_given,
		       char problem[PROBLEM_SIZE])
{
	const struct policy_source source = { .problem = problem, .what = "--as" };
	struct policy_rule rule = { .next = NULL };
	char *copy = strdup(text), *rest = copy;
	int result = copy ? 0 : policy_fail_errno(&source, -ENOMEM);

	while (result == 0 && rest)
		result = policy_condition_parse(&source, given_next(&rest), &rule);
	for (unsigned i = 0; i < POLICY_CONDITIONS && result == 0; i++)
		if (policy_condition_get(&policy_conditions[i], &rule) &&
		    !condition_can_be_given(&policy_conditions[i]))
			result = policy_fail(&source, -EINVAL,
					     "%s: condition %s= is not possible here: expected explain PID for a process "
					     "that runs",
					     source.what, policy_conditions[i].name);
	if (result == 0)
		result = given_take(&source, &rule, ret_given);
	free(copy);
	return result;
}
