/* SPDX-License-Identifier: MIT */
/*
 * Policies that are changed by commands, merged and written: what is written reads as the same
 * policy.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "policyfiles.h"

static void changed(struct policy *policy, const char *section, const char *text)
{
	policy_complaint[0] = '\0';
	CHECK(policy_change(policy, section, text, policy_complaint) == 0, "[%s] %s: %s", section,
	      text, policy_complaint);
}

static void not_changed(struct policy *policy, const char *section, const char *text,
			const char *words)
{
	char *before = policy_written(policy), *after;

	CHECK(policy_change(policy, section, text, policy_complaint) < 0, "[%s] %s", section, text);
	CHECK(strstr(policy_complaint, words) != NULL, "%s: %s", words, policy_complaint);
	after = policy_written(policy);
	CHECK(!strcmp(before, after), "[%s] %s", section, text);
}

static unsigned rules_of(const struct policy *policy)
{
	unsigned rules = 0;

	for (const struct policy_rule *rule = policy->rules; rule; rule = rule->next)
		rules++;
	return rules;
}

static void commands(void)
{
	struct policy *policy = policy_good("[tenant a]\nqp = 5\nmatch = uid=1\n");

	changed(policy, "tenant a", "qp = 6\nprocess.device.x.mr = 7");
	CHECK(policy_limit_of(policy, "a", false, NULL, KIND_qp) == 6);
	CHECK(policy_limit_of(policy, "a", true, "x", KIND_mr) == 7);
	CHECK(!policy_tenant_find(policy, "a")->runtime && rules_of(policy) == 1);
	changed(policy, "tenant a",
		"qp = unset\nprocess.device.x.mr = unset\ndevice.y.qp = unset\n");
	CHECK(policy_limit_of(policy, "a", false, NULL, KIND_qp) == NONE);
	CHECK(policy_tenant_find(policy, "a")->process.devices == 0);
	CHECK(policy_tenant_find(policy, "a")->all.devices == 0);
	changed(policy, "host", "qp = 100");
	changed(policy, "default", "mode = audit");
	CHECK(policy_limit(&policy->host, NULL, KIND_qp) == 100);
	CHECK(policy_tenant_mode(policy, NULL) == MODE_AUDIT);
	changed(policy, "default", "mode = unset");
	CHECK(policy_tenant_mode(policy, NULL) == MODE_ENFORCE);
	changed(policy, "default", "guard = on");
	changed(policy, "tenant a", "guard = off");
	changed(policy, "host", "guard_writes = on");
	CHECK(policy_tenant_guard(policy, NULL) && policy->guard_writes == POLICY_ON &&
	      !policy_tenant_guard(policy, policy_tenant_find(policy, "a")));
	CHECK(strstr(policy_written(policy), "guard_writes = on\n") &&
	      strstr(policy_written(policy), "guard = on\n") &&
	      strstr(policy_written(policy), "guard = off\n"));
	changed(policy, "tenant a", "guard = unset");
	changed(policy, "host", "guard_writes = unset");
	CHECK(policy_tenant_guard(policy, policy_tenant_find(policy, "a")) &&
	      policy->guard_writes == SWITCH_UNSET);
	changed(policy, "default", "guard = unset");
	CHECK(!policy_tenant_guard(policy, policy_tenant_find(policy, "a")));
	changed(policy, " tenant  b ", "");
	CHECK(policy_tenant_find(policy, "b") && policy_tenant_find(policy, "b")->runtime);
	/* The same rule once, however often it is given. */
	changed(policy, "tenant b", "match = uid=2\nmatch = uid=2-2\nmatch = uid=3\n");
	changed(policy, "tenant b", "match = uid=3");
	CHECK(rules_of(policy) == 3);
	CHECK(!strcmp(policy->rules->next->source, "command") &&
	      !strcmp(policy->rules->next->text, "uid=2"));
	changed(policy, "tenant b", "match = unset\nmatch = uid=4");
	CHECK(rules_of(policy) == 2 && policy->rules->next->uid.range[0].first == 4);

	/* One rule of several, by its conditions. */
	changed(policy, "tenant b", "match = first cgroup=/x\nmatch = first cgroup=/x/*");
	changed(policy, "tenant b", "match = unset first  cgroup=/x/*");
	CHECK(rules_of(policy) == 3 && !strcmp(policy->rules->cgroup, "/x"));
	not_changed(policy, "tenant b", "match = unset cgroup=/x", "no command has added the line 'cgroup=/x'");
	not_changed(policy, "tenant a", "match = unset first cgroup=/x", "no command has added");
	not_changed(policy, "tenant b", "match = unset first", "missing condition");
	changed(policy, "tenant b", "match = unset first cgroup=/x");
	CHECK(rules_of(policy) == 2);

	not_changed(policy, "tenant a", "qp = 1\nmr = no", "'no'");
	not_changed(policy, "tenant a", "match = unset\nmatch = no", "'no'");
	not_changed(policy, "tenant new", "mode = no", "'no'");
	not_changed(policy, "tenant new", "guard = no", "'no'");
	not_changed(policy, "tenant", "qp = 1", "name");
	not_changed(policy, "tenant x/y", "qp = 1", "'x/y'");
	not_changed(policy, "collector", "state = /x",
		    "[collector]: unknown section: expected [host]");
	not_changed(policy, "", "qp = 1", "[]");
	not_changed(policy, "host\n", "qp = 1", "[host?]");
	not_changed(policy, "host", "qp = 1\nqp = 2", "qp: set already in line 1");
	not_changed(policy, "host", "[default]\nqp = 2", "one section");
	not_changed(policy, "host", "qp = UNSET", "'UNSET'");
	policy_free(policy);
}

static void merging(void)
{
	struct policy *base =
		policy_good("[collector]\nsocket = /a\nstate = /b\n[host]\nqp = 1\nmr = 2\n"
			    "guard_writes = on\n"
			    "[default]\nmode = warn\nguard = on\n"
			    "[tenant a]\nqp = 3\nmatch = uid=1\nguard = off\n"
			    "[tenant b]\nmatch = uid=2\n");
	struct policy *over = policy_new(), *both, *wide;
	char text[64];

	changed(over, "host", "qp = unlimited");
	changed(over, "tenant c", "match = uid=3");
	changed(over, "tenant a", "process.qp = 4\nmatch = uid=1\nmatch = uid=4\nmode = audit");
	changed(over, "tenant c", "guard = off");
	both = policy_merge(base, over);
	CHECK(!strcmp(both->file, base->file) && !strcmp(both->socket, "/a") &&
	      !strcmp(both->state, "/b"));
	CHECK(policy_limit(&both->host, NULL, KIND_qp) == NONE);
	CHECK(policy_limit(&both->host, NULL, KIND_mr) == 2);
	CHECK(policy_limit_of(both, "a", false, NULL, KIND_qp) == 3);
	CHECK(policy_limit_of(both, "a", true, NULL, KIND_qp) == 4);
	CHECK(policy_tenant_mode(both, policy_tenant_find(both, "a")) == MODE_AUDIT);
	CHECK(policy_tenant_mode(both, policy_tenant_find(both, "b")) == MODE_WARN);
	CHECK(!policy_tenant_guard(both, policy_tenant_find(both, "a")) &&
	      policy_tenant_guard(both, policy_tenant_find(both, "b")) &&
	      !policy_tenant_guard(both, policy_tenant_find(both, "c")) &&
	      both->guard_writes == POLICY_ON);
	CHECK(!policy_tenant_find(both, "a")->runtime && policy_tenant_find(both, "c")->runtime);
	CHECK(!strcmp(both->tenants->name, "a") && !strcmp(both->tenants->next->name, "b") &&
	      !strcmp(both->tenants->next->next->name, "c"));
	CHECK(rules_of(both) == 4 && strstr(both->rules->source, "policy.conf:13") &&
	      !strcmp(both->rules->text, "uid=1"));
	policy_belongs(both, 3, 3, "/", "c");
	policy_belongs(both, 4, 3, "/", "a");
	/* The parts are untouched, and do not hold the whole. */
	CHECK(policy_limit(&base->host, NULL, KIND_qp) == 1);
	wide = policy_merge(over, base);
	CHECK(!strcmp(wide->file, base->file) && policy_limit(&wide->host, NULL, KIND_qp) == 1);
	policy_free(wide);
	policy_free(base);
	policy_free(over);
	policy_belongs(both, 1, 3, "/", "a");

	base = policy_new();
	wide = policy_new();
	for (int i = 0; i < POLICY_DEVICES; i++) {
		snprintf(text, sizeof(text), "device.x%d.qp = 1", i);
		changed(base, "host", text);
	}
	changed(wide, "host", "device.y.qp = 1");
	errno = 0;
	CHECK(!policy_merge(base, wide) && errno == E2BIG);
	changed(base, "host", "device.x0.qp = unset\ndevice.y.qp = 2");
	policy_free(policy_merge(base, wide));
	policy_free(base);
	policy_free(wide);
	policy_free(both);
}

static bool same(const struct policy *a, const struct policy *b)
{
	char *text = policy_written(a);

	return !strcmp(text, policy_written(b));
}

/* Reads back what was written, and finds the same. */
static void comes_back(const struct policy *policy)
{
	struct policy *again = policy_new();
	const struct policy_rule *rule, *other;
	struct stat status;
	int result;

	CHECK(policy_write(policy, file_path("again")) == 0);
	CHECK(stat(file_path("again"), &status) == 0 && (status.st_mode & 07777) == 0600);
	result = policy_read_file(again, file_path("again"), true, policy_complaint);
	CHECK(result == 0, "%s", policy_complaint);
	CHECK(same(policy, again));
	for (int kind = 0; kind < KIND_COUNT; kind++)
		CHECK(policy->host.total[kind] == again->host.total[kind] &&
		      policy->fallback.process.total[kind] == again->fallback.process.total[kind]);
	for (rule = policy->rules, other = again->rules; rule && other;
	     rule = rule->next, other = other->next)
		CHECK(!strcmp(rule->tenant->name, other->tenant->name) &&
		      !strcmp(rule->cgroup, other->cgroup) &&
		      !memcmp(&rule->uid, &other->uid, sizeof(rule->uid)));
	CHECK(!rule && !other && !again->file[0]);
	for (const struct policy_tenant *tenant = again->tenants; tenant; tenant = tenant->next)
		CHECK(tenant->runtime);
	policy_free(again);
}

static unsigned pick(unsigned below)
{
	return (unsigned)random() % below;
}

static void random_limit(struct policy_limits *limits)
{
	static const char *const devices[] = { NULL, NULL, "mlx5_0", "a.b.c", "x-1", "device.qp" };
	const uint64_t numbers[] = { 0, 1, pick(100000), (uint64_t)random() << 31, NONE - 2, NONE,
				     UNSET };

	const char *device = devices[pick(6)];

	/* Only a device has ports. */
	CHECK(policy_limit_set(limits, device, (enum kind)pick(device ? KINDS_COUNTED : KIND_COUNT),
			       numbers[pick(7)]) == 0);
}

static void random_ids(struct policy_ids *ids)
{
	ids->count = pick(3) ? 0 : pick(POLICY_IDS) + 1;
	for (unsigned i = 0; i < ids->count; i++) {
		ids->range[i].first = pick(UINT32_MAX);
		ids->range[i].last = ids->range[i].first + (pick(2) ? pick(1000) : 0);
		if (ids->range[i].last == UINT32_MAX || ids->range[i].last < ids->range[i].first)
			ids->range[i].last = ids->range[i].first;
	}
}

static void random_rule(struct policy *policy, struct policy_tenant *tenant)
{
	static const char *const globs[] = {
		"*", "/a/*", "[x]?", "/=#;", "/unset", "*\\x2d\xc3\xa9"
	};
	struct policy_rule rule = { .next = NULL };

	random_ids(&rule.uid);
	random_ids(&rule.gid);
	strcpy(rule.cgroup, globs[pick(6)]);
	if (pick(2))
		strcpy(rule.container, globs[pick(6)]);
	if (pick(2))
		strcpy(rule.job, globs[pick(6)]);
	CHECK(policy_rule_add(policy, tenant, &rule) == 0);
}

static struct policy *random_policy(void)
{
	struct policy *policy = policy_new();
	struct policy_tenant *tenant;
	char name[16];

	if (pick(2))
		strcpy(policy->socket, "/run/a b.sock");
	policy->guard_writes = (enum policy_switch)pick(3);
	for (unsigned i = pick(20); i > 0; i--)
		random_limit(&policy->host);
	for (unsigned i = pick(20); i > 0; i--)
		random_limit(pick(2) ? &policy->fallback.all : &policy->fallback.process);
	for (unsigned i = pick(200); i > 0; i--) {
		snprintf(name, sizeof(name), "t%u", pick(8));
		CHECK(policy_tenant_add(policy, name, true, &tenant) == 0);
		random_limit(pick(2) ? &tenant->all : &tenant->process);
		if (pick(4) == 0)
			tenant->mode = (enum mode)pick(4);
		if (pick(4) == 0)
			tenant->guard = (enum policy_switch)pick(3);
		if (pick(4) == 0)
			random_rule(policy, tenant);
	}
	return policy;
}

static void round_trips(void)
{
	struct policy *policy =
		policy_good("[tenant a]\nmatch = uid=1\n[tenant b]\nmatch = uid=1-2\n"
			    "[tenant a]\nmatch = uid=2\nqp = 4\n");

	comes_back(policy);
	CHECK(policy_write(policy, file_path("nowhere/file")) == -ENOENT);
	mkdir(file_path("taken"), 0700);
	CHECK(policy_write(policy, file_path("taken")) == -EISDIR);
	rmdir(file_path("taken"));
	policy_free(policy);
	srandom(1);
	for (int i = 0; i < 200; i++) {
		struct policy *one = random_policy(), *other = random_policy();
		struct policy *empty = policy_new(), *copy = policy_merge(one, NULL);
		struct policy *both = policy_merge(one, other), *twice = policy_merge(both, other);
		struct policy *onto = policy_merge(empty, one);

		comes_back(one);
		comes_back(both);
		CHECK(same(one, copy) && same(one, onto) && same(both, twice));
		for (struct policy **each = (struct policy *[]){ one, other, empty, copy, both,
								 twice, onto, NULL };
		     *each; each++)
			policy_free(*each);
	}
}

static void driver(void)
{
	policy_files_begin();
	RUN(commands);
	RUN(merging);
	RUN(round_trips);
	policy_files_remove();
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
