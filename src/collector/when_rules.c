/* SPDX-License-Identifier: MIT */
/* When lines of the policy; see when_rules.h. */
#include "collector/when_rules.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "collector/answers.h"
#include "collector/control.h"

/* Usage that a line looks at, as it was measured last; 0 of a tenant or a device that is not on the
 * books. */
static uint64_t mark_used(const struct collector *collector, const struct policy_usage_mark *mark)
{
	const struct books *books = &collector->books;
	const struct owner *owner = &books->host;
	const struct scope *scope;
	unsigned device = 0;
	int tenant;

	if (!books->members_count) /* the sums are those of the last one */
		return 0;
	if (mark->tenant[0]) {
		tenant = books_tenant_find(books, mark->tenant);
		if (tenant < 0)
			return 0;
		owner = &books->tenant[tenant]->all;
	}
	scope = &owner->total;
	if (mark->device[0]) {
		do {
			if (++device == DEVICES_MAX || !books_device_name(books, device))
				return 0;
		} while (strcmp(books_device_name(books, device), mark->device));
		scope = &owner->device[device];
	}
	return books_clamp(scope->used[mark->kind]);
}

/* The limit that percents are of: as it is without rules, so that none changes its own mark. */
static uint64_t mark_limit(const struct policy *policy, const struct policy_usage_mark *mark)
{
	const char *device = mark->device[0] ? mark->device : NULL;

	if (!mark->tenant[0])
		return policy_limit(&policy->host, device, mark->kind);
	return policy_tenant_limit(policy, policy_tenant_find(policy, mark->tenant), false, device,
				   mark->kind);
}

/* Whether the rule is to be in force now. */
static bool rule_holds(const struct collector *collector, struct when_rule *rule)
{
	time_t now = time(NULL);
	struct tm local;

	if (rule->when.by_time)
		return localtime_r(&now, &local) &&
		       policy_when_window_holds(&rule->when.window, &local);
	if (!collector->books.file)
		return rule->in_force;
	rule->used = mark_used(collector, &rule->when.usage);
	return policy_when_usage_holds(&rule->when.usage, rule->used, rule->limit, rule->in_force);
}

static void rule_report(struct collector *collector, const struct when_rule *rule)
{
	struct proto_event event = { .type = EVENT_RULE };

	snprintf(event.text, sizeof(event.text), "%.160s: %s (%.60s)", rule->when.text,
		 rule->in_force ? "in force" : "no longer in force", rule->when.source);
	collector_event(collector, &event);
	log_write(&collector->log, LOG_INFO, "when = %s", event.text);
}

/* True if it changed. */
static bool rule_look(struct collector *collector, struct when_rule *rule)
{
	bool holds = rule_holds(collector, rule);

	if (holds == rule->in_force)
		return false;
	rule->in_force = holds;
	rule->since_ns = clock_ns(CLOCK_REALTIME);
	rule_report(collector, rule);
	return true;
}

static const struct when_rule *rule_find(const struct when_rules *rules, const char *text)
{
	for (unsigned i = 0; i < rules->count; i++)
		if (!strcmp(rules->rule[i].when.text, text))
			return &rules->rule[i];
	return NULL;
}

/* The rules of another policy; those that were there before are still in force. */
static void rules_take(struct collector *collector, const struct policy *policy)
{
	static struct when_rules before;

	before = collector->rules;
	collector->rules.count = 0;
	for (const struct policy_when *when = policy->whens; when; when = when->next) {
		struct when_rule *rule = &collector->rules.rule[collector->rules.count++];
		const struct when_rule *same = rule_find(&before, when->text);

		*rule = same ? *same : (struct when_rule){ .in_force = false };
		rule->when = *when;
		rule->limit = when->by_time ? 0 : mark_limit(policy, &when->usage);
		rule_look(collector, rule);
	}
}

void when_rules_apply(struct collector *collector, struct policy *policy)
{
	rules_take(collector, policy);
	for (unsigned i = 0; i < collector->rules.count; i++) {
		struct when_rule *rule = &collector->rules.rule[i];
		char problem[PROBLEM_SIZE] = "";

		/* A misspelt name must not make a tenant. */
		if (!strncmp(rule->when.section, "tenant ", 7) &&
		    !policy_tenant_find(policy, rule->when.section + 7))
			snprintf(problem, sizeof(problem), "there is no tenant '%s'",
				 rule->when.section + 7);
		else if (rule->in_force)
			policy_when_apply(policy, &rule->when, problem);
		if (problem[0] && strcmp(problem, rule->problem))
			log_write(&collector->log, LOG_ERROR, "%s: when = %s: no effect: %s",
				  rule->when.source, rule->when.text, problem);
		memcpy(rule->problem, problem, sizeof(problem));
	}
}

void when_rules_check(struct collector *collector)
{
	bool changed = false;

	for (unsigned i = 0; i < collector->rules.count; i++)
		changed |= rule_look(collector, &collector->rules.rule[i]);
	if (changed)
		control_renew(collector, true, (char[PROBLEM_SIZE]){ "" });
}

void answer_GET_RULES(struct collector *collector, const struct request *request)
{
	for (unsigned i = 0; i < collector->rules.count; i++) {
		const struct when_rule *rule = &collector->rules.rule[i];
		struct proto_rule row = {
			.in_force = rule->in_force,
			.by_time = rule->when.by_time,
			.since_ns = rule->since_ns,
			.used = rule->used,
			.limit = rule->limit,
		};

		snprintf(row.text, sizeof(row.text), "%s", rule->when.text);
		snprintf(row.source, sizeof(row.source), "%s", rule->when.source);
		snprintf(row.problem, sizeof(row.problem), "%.250s", rule->problem);
		server_row(request, &row);
	}
	server_end(request);
}
