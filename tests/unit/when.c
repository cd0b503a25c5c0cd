/* SPDX-License-Identifier: MIT */
/* Rules that count for a time: what may be written, when one is in force, and what it changes. */
#include <errno.h>
#include <string.h>

#include "harness.h"
#include "policy/problem.h"
#include "policy/when.h"

static char problem[PROBLEM_SIZE];
static const struct policy_source source = { .file = "F", .line = 7, .problem = problem };

static struct policy_when parsed(const char *text)
{
	struct policy_when when = { .next = NULL };

	CHECK(policy_when_parse(&source, text, &when) == 0, "%s: %s", text, problem);
	return when;
}

static void valid(void)
{
	struct policy_when when = parsed("host.qp > 80% : default.process.qp = 4");

	CHECK(!when.by_time && !when.usage.tenant[0] && !when.usage.device[0] &&
	      when.usage.kind == KIND_qp && when.usage.above && when.usage.percent &&
	      when.usage.mark == 80);
	CHECK(!strcmp(when.section, "default") && !strcmp(when.change, "process.qp = 4") &&
	      !strcmp(when.source, "F:7"));
	when = parsed("tenant.a.b.device.mlx5_0.mr_bytes<2G : tenant.x.y.process.device.rxe0.mr = 5");
	CHECK(!strcmp(when.usage.tenant, "a.b") && !strcmp(when.usage.device, "mlx5_0") &&
	      when.usage.kind == KIND_mr_bytes && !when.usage.above && !when.usage.percent &&
	      when.usage.mark == 2ull << 30, "%s %s", when.usage.tenant, when.usage.device);
	CHECK(!strcmp(when.section, "tenant x.y") &&
	      !strcmp(when.change, "process.device.rxe0.mr = 5"), "%s: %s", when.section,
	      when.change);
	when = parsed("mon-fri 08:00-20:00 : tenant.batch.mode = enforce");
	CHECK(when.by_time && when.window.days == 0x3e && when.window.begin == 480 &&
	      when.window.end == 1200, "%x", when.window.days);
	CHECK(parsed("Fri-Mon : host.qp = 1").window.days == (1 << 5 | 1 << 6 | 1 | 2));
	CHECK(parsed("mon,mon-sun : host.qp = 1").window.days == 0x7f);
	CHECK(parsed("22:00-06:00 : host.qp = 1").window.days == 0x7f);
}

static void invalid(void)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{ "host.qp > 80%", "CONDITION : SECTION.KEY = VALUE" },
		{ "host.qp : host.qp = 1", "invalid condition" },
		{ "host.qp > 101% : host.qp = 1", "invalid mark" },
		{ "host.qp > -1 : host.qp = 1", "invalid mark" },
		{ "host.qp > 80%% : host.qp = 1", "invalid mark" },
		{ "host.qp > unlimited : host.qp = 1", "invalid mark" },
		{ "host.nope > 80% : host.qp = 1", "'host.nope': unknown usage" },
		{ "default.qp > 80% : host.qp = 1", "unknown usage" },
		{ "host.guard_writes > 1 : host.qp = 1", "unknown usage" },
		{ "tenant.a.process.qp > 1 : host.qp = ", "" },
		{ "mon-fry 08:00-20:00 : host.qp = 1", "invalid window of time" },
		{ "mon 8:00-20:00 : host.qp = 1", "invalid window of time" },
		{ "25:00-26:00 : host.qp = 1", "invalid window of time" },
		{ "08:61-09:00 : host.qp = 1", "invalid window of time" },
		{ "mon-fri 08:00-20:00 x : host.qp = 1", "invalid window of time" },
		{ "mon : collector.socket = /x", "unknown key" },
		{ "mon : tenant.a.match = uid=1", "unknown key" },
		{ "mon : host.when = mon : host.qp = 1", "unknown key" },
		{ "mon : host.qp = many", "'many'" },
		{ "mon : tenant.a.mode = off", "'off'" },
		{ "mon : qp = 1", "unknown key" },
	};
	struct policy_when when;

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		problem[0] = '\0';
		CHECK(policy_when_parse(&source, rows[i].text, &when) == -EINVAL, "%s",
		      rows[i].text);
		CHECK(!strncmp(problem, "F:7: ", 5) && strstr(problem, rows[i].says) &&
			      strstr(problem, "expected"),
		      "%s: %s", rows[i].text, problem);
	}
}

static void usage(void)
{
	static const struct {
		const char *condition;
		uint64_t used, limit;
		bool held, holds;
	} rows[] = {
		{ "host.qp > 80%", 80, 100, false, false }, { "host.qp > 80%", 81, 100, false, true },
		{ "host.qp > 80%", 71, 100, true, true },   { "host.qp > 80%", 70, 100, true, false },
		{ "host.qp > 80%", 1, 0, false, true },	    { "host.qp > 80%", 0, 0, true, false },
		{ "host.qp > 80%", UINT64_MAX - 1, UNLIMITED, true, false },
		{ "host.qp > 80%", 1ull << 63, 1ull << 63, false, true },
		{ "host.qp > 50", 50, 9, false, false },    { "host.qp > 50", 51, UNLIMITED, false, true },
		{ "host.qp > 50", 46, 9, true, true },	    { "host.qp > 50", 45, 9, true, false },
		{ "host.qp < 20%", 20, 100, false, false }, { "host.qp < 20%", 19, 100, false, true },
		{ "host.qp < 20%", 29, 100, true, true },   { "host.qp < 20%", 30, 100, true, false },
		{ "host.qp > 5%", 0, 100, true, false },
	};
	char text[64];

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct policy_when when;

		snprintf(text, sizeof(text), "%s : host.mr = 1", rows[i].condition);
		when = parsed(text);
		CHECK(policy_when_usage_holds(&when.usage, rows[i].used, rows[i].limit,
					      rows[i].held) == rows[i].holds,
		      "row %u: %s", i, rows[i].condition);
	}
}

static void windows(void)
{
	static const struct {
		const char *window;
		int day, hour, minute;
		bool holds;
	} rows[] = {
		{ "mon-fri 08:00-20:00", 1, 8, 0, true },  { "mon-fri 08:00-20:00", 1, 7, 59, false },
		{ "mon-fri 08:00-20:00", 5, 19, 59, true }, { "mon-fri 08:00-20:00", 5, 20, 0, false },
		{ "mon-fri 08:00-20:00", 6, 12, 0, false }, { "fri 22:00-06:00", 5, 23, 0, true },
		{ "fri 22:00-06:00", 6, 5, 59, true },	    { "fri 22:00-06:00", 6, 6, 0, false },
		{ "fri 22:00-06:00", 5, 5, 0, false },	    { "fri 22:00-06:00", 6, 23, 0, false },
		{ "sat,sun", 6, 0, 0, true },		    { "sat,sun", 0, 23, 59, true },
		{ "sat,sun", 1, 0, 0, false },		    { "00:00-24:00", 3, 23, 59, true },
		{ "sat 12:00-12:00", 0, 11, 59, true },	    { "sat 12:00-12:00", 0, 12, 0, false },
	};
	char text[64];

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tm now = { .tm_wday = rows[i].day, .tm_hour = rows[i].hour,
				  .tm_min = rows[i].minute };
		struct policy_when when;

		snprintf(text, sizeof(text), "%s : host.mr = 1", rows[i].window);
		when = parsed(text);
		CHECK(policy_when_window_holds(&when.window, &now) == rows[i].holds, "row %u: %s", i,
		      rows[i].window);
	}
}

static void changes(void)
{
	struct policy *policy = policy_new(), *copy;
	struct policy_when when = parsed("mon : default.process.qp = 4");

	CHECK(policy_change(policy, "host", "qp = 9\nwhen = host.qp > 80% : default.process.qp = 4\n",
			    problem) == 0, "%s", problem);
	CHECK(policy->whens && !policy->whens->next && !strcmp(policy->whens->source, "command"));
	copy = policy_merge(policy, NULL);
	CHECK(copy->whens && !strcmp(copy->whens->text, "host.qp > 80% : default.process.qp = 4"));
	CHECK(policy_when_apply(copy, &when, problem) == 0 && copy->whens &&
	      policy_tenant_limit(copy, NULL, true, NULL, KIND_qp) == 4 &&
	      policy_tenant_limit(policy, NULL, true, NULL, KIND_qp) == UNLIMITED);
	CHECK(policy_change(copy, "host", "when = unset", problem) == 0 && !copy->whens);
	CHECK(policy_lacks(copy, policy, problem) && strstr(problem, "fewer when lines"), "%s",
	      problem);
	CHECK(!policy_lacks(policy, copy, problem) ||
	      !strstr(problem, "when"), "%s", problem);
	policy_free(copy);
	policy_free(policy);
}

static void driver(void)
{
	RUN(valid);
	RUN(invalid);
	RUN(usage);
	RUN(windows);
	RUN(changes);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
