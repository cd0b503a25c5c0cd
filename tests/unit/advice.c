/* SPDX-License-Identifier: MIT */
/*
 * The rules of advice: each has an observation that triggers it and one, close to it, that does
 * not. On a host where all is well no rule says anything.
 */
#include <stdlib.h>
#include <string.h>

#include "advice/advice.h"
#include "advice/rules.h"
#include "harness.h"
#include "terms/fair.h"

/* A host in order: two tenants with limits that they use in part, a process of the first. */
struct scene {
	struct observation observation;
	struct proto_row host, other, ml, process, device;
	struct proto_details counters, queues;
	struct proto_guard guard;
	struct proto_rate rate;
	struct churn churn;
	struct memlock memlock;
};

static struct proto_row row_make(enum proto_scope scope, const char *tenant)
{
	struct proto_row row = { .scope = scope, .flags = ROW_WATCHED, .mode = MODE_ENFORCE, .weight = 1 };

	strcpy(row.tenant, tenant);
	for (int kind = 0; kind < KINDS_COUNTED; kind++)
		row.limit[kind] = row.configured[kind] = row.process_limit[kind] = UNLIMITED;
	return row;
}

static void use(struct proto_row *row, enum kind kind, uint64_t used, uint64_t limit)
{
	row->used[kind] = row->peak[kind] = used;
	row->limit[kind] = row->configured[kind] = limit;
}

static struct scene scene_make(void)
{
	struct scene scene = {
		.host = row_make(ROW_HOST, ""),
		.device = row_make(ROW_HOST, ""),
		.other = row_make(ROW_TENANT, "default"),
		.ml = row_make(ROW_TENANT, "ml"),
		.process = row_make(ROW_PROCESS, "ml"),
		.counters = { .pid = 42 },
		.queues = { .pid = 42, .device = "mlx5_0" },
		.guard = { .scope = ROW_TENANT, .on = 1, .guarantee = GUARANTEE_KERNEL, .tenant = "ml" },
		.rate = { .tenant = "ml", .class = RATE_reg_mr, .owner = RATE_OF_TENANT, .per_second = 50 },
		.churn = { .pid = 42, .tenant = "ml", .falls = 1 },
		.memlock = { 42, UNLIMITED },
	};
	struct proto_status *status = &scene.observation.status;

	status->uptime_seconds = 7200;
	strcpy(status->monitor, "fentry");
	strcpy(status->policy, "/etc/p");
	use(&scene.host, KIND_qp, 30, 100);
	use(&scene.ml, KIND_qp, 30, 50);
	use(&scene.process, KIND_qp, 30, UNLIMITED);
	use(&scene.process, KIND_cq, 2, UNLIMITED);
	use(&scene.process, KIND_cqe, 8000, UNLIMITED);
	use(&scene.process, KIND_send_wr, 3000, UNLIMITED);
	use(&scene.process, KIND_recv_wr, 3000, UNLIMITED);
	strcpy(scene.device.device, "mlx5_0");
	strcpy(scene.process.command, "train");
	scene.process.pid = 42;
	scene.process.uid = 1000;
	scene.ml.processes = 2;
	scene.queues.gauges.qp_state[QP_RTS] = 30;
	scene.observation.readings = 10;
	scene.observation.seconds = 1;
	return scene;
}

/* Whether the rule of this name speaks; the others must not, unless they may. */
static struct list advice_of(struct scene *scene, const char *tenant)
{
	struct list advice = { .size = sizeof(struct advice) };
	struct observation *observation = &scene->observation;
	const struct observation figures = *observation;

	observation_begin(observation);
	observation->status = figures.status;
	observation->readings = figures.readings;
	observation->seconds = figures.seconds;
	observation_take_row(&scene->host, observation);
	observation_take_row(&scene->device, observation);
	observation_take_row(&scene->other, observation);
	observation_take_row(&scene->ml, observation);
	observation_take_row(&scene->process, observation);
	observation_take_details(&scene->counters, observation);
	observation_take_details(&scene->queues, observation);
	observation_take_guard(&scene->guard, observation);
	observation_take_rate(&scene->rate, observation);
	*(struct churn *)list_add(&observation->churns) = scene->churn;
	*(struct memlock *)list_add(&observation->memlocks) = scene->memlock;
	advice_collect(observation, tenant, ADVICE_MOST, &advice);
	observation_free(observation);
	*observation = figures;
	return advice;
}

/* What makes a rule speak, a figure that its sentence has, and what does not make it speak. */
struct trial {
	const char *rule;
	const char *figure;
	void (*triggers)(struct scene *scene);
	void (*almost)(struct scene *scene);
};

#define TRIAL(name, change, close)                                                                 \
	static void name##_triggers(struct scene *s)                                               \
	{                                                                                          \
		change;                                                                            \
	}                                                                                          \
	static void name##_almost(struct scene *s)                                                 \
	{                                                                                          \
		close;                                                                             \
	}

TRIAL(policy_not_loaded, strcpy(s->observation.status.problem, "/etc/p:3: x"), (void)s)
TRIAL(guard_not_armed, s->guard.guarantee = GUARANTEE_NONE; strcpy(s->guard.reason, "no BPF LSM"),
      s->guard.guarantee = GUARANTEE_NONE; s->guard.on = 0)
TRIAL(uncovered_process, s->process.flags |= ROW_UNCOVERED; s->process.kernel[KIND_qp] = 17,
      s->process.kernel[KIND_qp] = 17)
TRIAL(drift, s->process.flags |= ROW_DRIFT; s->process.drift[KIND_mr] = -9,
      s->process.drift[KIND_mr] = -9)
TRIAL(monitor_tables_full, s->observation.status.lost_objects = 33, (void)s)
TRIAL(guarantee_unmet, use(&s->host, KIND_qp, 95, 100); s->ml.guarantee[KIND_qp] = 40,
      use(&s->host, KIND_qp, 90, 100); s->ml.guarantee[KIND_qp] = 40)
TRIAL(limit_always_hit, use(&s->ml, KIND_qp, 50, 50); s->ml.refused_here[KIND_qp] = 12,
      /* By limits of processes and of programs' environments, or not at all. */
      use(&s->ml, KIND_qp, 50, 50); s->ml.refused_here[KIND_qp] = 2; s->ml.refused[KIND_qp] = 90;
      s->ml.tolerated[KIND_qp] = s->ml.tolerated_here[KIND_qp] = 90)
TRIAL(limit_out_of_reach, s->device.limit[KIND_qp] = 20, s->device.limit[KIND_qp] = 50)
TRIAL(memlock_in_the_way, s->memlock.bytes = 8 << 20, s->memlock.bytes = 8 << 20; s->process.uid = 0)
TRIAL(audit_would_refuse, s->ml.mode = MODE_AUDIT; use(&s->ml, KIND_qp, 70, 50); s->ml.tolerated_here[KIND_qp] = 6,
      use(&s->ml, KIND_qp, 49, 50); s->ml.tolerated_here[KIND_qp] = 6)
TRIAL(audit_can_enforce, s->ml.mode = MODE_AUDIT,
      s->ml.mode = MODE_AUDIT; s->observation.status.uptime_seconds = 60)
TRIAL(limit_never_approached, use(&s->ml, KIND_mr, 3, 100),
      use(&s->ml, KIND_mr, 3, 100); s->observation.status.uptime_seconds = 60)
TRIAL(one_process_takes_all, use(&s->process, KIND_qp, 47, UNLIMITED); use(&s->ml, KIND_qp, 48, 50),
      use(&s->process, KIND_qp, 47, UNLIMITED); s->ml.process_limit[KIND_qp] = 48)
TRIAL(tenant_without_processes, use(&s->ml, KIND_qp, 0, 50); s->ml.processes = 0,
      use(&s->ml, KIND_qp, 0, 50); s->ml.processes = 0; s->ml.peak[KIND_ctx] = 1)
TRIAL(unmatched_processes, s->other.processes = 5, s->other.processes = 5; s->other.process_limit[KIND_qp] = 9)
TRIAL(registration_loop, s->churn.falls = 4, s->churn.falls = 2)
TRIAL(calls_throttled, s->rate.throttled = 77; s->rate.throttled_ns = 1500000000, (void)s)
TRIAL(idle_queue_pairs, s->queues.gauges.qp_state[QP_INIT] = 31, s->queues.gauges.qp_state[QP_RTR] = 31)
TRIAL(failed_queue_pairs, s->queues.gauges.qp_state[QP_ERR] = 3, s->queues.gauges.qp_state[QP_SQD] = 3)
TRIAL(completion_queues_too_small, use(&s->process, KIND_recv_wr, 9000, UNLIMITED),
      use(&s->process, KIND_recv_wr, 8000, UNLIMITED))
TRIAL(completion_queues_too_large, use(&s->process, KIND_cqe, 65536, UNLIMITED),
      use(&s->process, KIND_cqe, 16384, UNLIMITED))
TRIAL(events_not_acknowledged, s->counters.tallies.counter[COUNTER_CQ_EVENTS] = 5000,
      s->counters.tallies.counter[COUNTER_CQ_EVENTS] = 5000; s->counters.tallies.counter[COUNTER_CQ_ACKS] = 4900)
TRIAL(connections_fail, s->counters.tallies.cm_event[8] = 21,
      s->counters.tallies.cm_event[8] = 21; s->counters.tallies.cm_event[9] = 400)
TRIAL(no_monitor, strcpy(s->observation.status.monitor, "none"), strcpy(s->observation.status.monitor, "kprobe"))

#define ROW(name, figure) { #name, figure, name##_triggers, name##_almost }
/* A policy that lacks something is accepted by --replace only. */
static void policy_replaced(void)
{
	static const struct {
		const char *problem, *command;
	} rows[] = {
		{ "/etc/p:3: x", "rdma_intercept check /etc/p && rdma_intercept reload" },
		{ "/etc/p: [tenant a] is missing: complete it, or accept it with 'rdma_intercept "
		  "reload --replace'", "rdma_intercept reload --replace" },
		{ "/etc/p: No such file or directory", "rdma_intercept reload --replace" },
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct list advice = { .size = sizeof(struct advice) };
		struct observation observation = { .rows = { .size = sizeof(struct proto_row) } };

		strcpy(observation.status.problem, rows[i].problem);
		strcpy(observation.status.policy, "/etc/p");
		advise_policy_not_loaded(&observation, &advice);
		CHECK(advice.count == 1 &&
			      !strcmp(((struct advice *)advice.row)->command, rows[i].command),
		      "%s", rows[i].problem);
		CHECK(strstr(((struct advice *)advice.row)->text, rows[i].problem));
		free(advice.row);
	}
}

static const struct trial trials[] = {
	ROW(policy_not_loaded, "/etc/p:3: x"),
	ROW(guard_not_armed, "no BPF LSM"),
	ROW(uncovered_process, "17 objects"),
	ROW(drift, "9 fewer mr"),
	ROW(monitor_tables_full, "33 objects"),
	ROW(guarantee_unmet, "5 of the host's 100 are free"),
	ROW(limit_always_hit, "qp 12 times"),
	ROW(limit_out_of_reach, "allow 20"),
	ROW(memlock_in_the_way, "is 8M"),
	ROW(audit_would_refuse, "up to 70, and its limit is 50"),
	ROW(audit_can_enforce, "at most 60 %"),
	ROW(limit_never_approached, "3 of 100 mr (3 %)"),
	ROW(one_process_takes_all, "47 of the 50"),
	ROW(tenant_without_processes, "in 2 hours"),
	ROW(unmatched_processes, "5 processes match"),
	ROW(registration_loop, "fell 4 times in 10 readings"),
	ROW(calls_throttled, "77 calls waited 1.5 s"),
	ROW(idle_queue_pairs, "31 of 61"),
	ROW(failed_queue_pairs, "3 queue pairs"),
	ROW(completion_queues_too_small, "9000"),
	ROW(completion_queues_too_large, "9 % can be used"),
	ROW(events_not_acknowledged, "0 of 5000"),
	ROW(connections_fail, "21 rejected"),
	ROW(no_monitor, "not seen"),
};
enum { TRIALS = sizeof(trials) / sizeof(trials[0]) };

static const struct advice *advice_find(const struct list *advice, const char *rule)
{
	for (size_t i = 0; i < advice->count; i++) {
		const struct advice *one = list_at(advice, i);

		if (!strcmp(one->rule, rule))
			return one;
	}
	return NULL;
}

static void quiet(void)
{
	struct scene scene = scene_make();
	struct list advice = advice_of(&scene, NULL);

	for (size_t i = 0; i < advice.count; i++) {
		const struct advice *one = list_at(&advice, i);

		CHECK(false, "%s: %s", one->rule, one->text);
	}
	CHECK(!advice.count, "a host in order needs no advice");
	free(advice.row);
}

/* The command fits the reason why the kernel keeps no limit. */
static void guard_way_out(void)
{
	static const struct {
		uint32_t mode;
		const char *monitor, *command;
	} ways[] = {
		{ MODE_AUDIT, "none", "rdma_intercept limit set tenant ml mode=enforce" },
		{ MODE_ENFORCE, "none", "rdma_monitor" },
		{ MODE_ENFORCE, "fentry", "rdma_intercept doctor" },
	};

	for (unsigned i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct scene scene = scene_make();
		const struct advice *one;
		struct list advice;

		scene.guard.guarantee = GUARANTEE_NONE;
		scene.ml.mode = ways[i].mode;
		strcpy(scene.observation.status.monitor, ways[i].monitor);
		advice = advice_of(&scene, NULL);
		one = advice_find(&advice, "guard_not_armed");
		CHECK(one && strstr(one->command, ways[i].command), "%s: %s", ways[i].command,
		      one ? one->command : "no advice");
		free(advice.row);
	}
}

static void each_rule(void)
{
	CHECK(advice_rules_count == TRIALS, "%u rules, %d trials", advice_rules_count, (int)TRIALS);
	for (unsigned i = 0; i < TRIALS; i++) {
		const struct trial *trial = &trials[i];
		struct scene scene = scene_make();
		const struct advice *one;
		struct list advice;

		CHECK(i < advice_rules_count && !strcmp(advice_rules[i].name, trial->rule), "rule %u", i);
		trial->triggers(&scene);
		advice = advice_of(&scene, NULL);
		one = advice_find(&advice, trial->rule);
		if (CHECK(one, "%s is triggered", trial->rule)) {
			CHECK(strstr(one->text, trial->figure), "%s: %s", trial->rule, one->text);
			CHECK(*one->command, "%s: a command", trial->rule);
		}
		free(advice.row);
		scene = scene_make();
		trial->almost(&scene);
		advice = advice_of(&scene, NULL);
		one = advice_find(&advice, trial->rule);
		CHECK(!one, "%s is not: %s", trial->rule, one ? one->text : "");
		free(advice.row);
	}
}

static void of_a_tenant(void)
{
	struct scene scene = scene_make();
	struct list advice;

	scene.churn.falls = 4;
	strcpy(scene.observation.status.problem, "bad");
	advice = advice_of(&scene, "ml");
	CHECK(advice.count == 1 && advice_find(&advice, "registration_loop"), "%zu", advice.count);
	free(advice.row);
	advice = advice_of(&scene, "default");
	CHECK(!advice.count, "%zu", advice.count);
	free(advice.row);
}

/* A name is quoted for a shell, and many findings are cut. */
static void names_and_numbers(void)
{
	struct scene scene = scene_make();
	unsigned found = 0, more = 0;
	const struct advice *one;
	struct list advice;

	strcpy(scene.ml.tenant, "a b'; rm");
	use(&scene.ml, KIND_qp, 50, 50);
	scene.ml.refused_here[KIND_qp] = 12;
	advice = advice_of(&scene, NULL);
	one = advice_find(&advice, "limit_always_hit");
	CHECK(one && !strcmp(one->command, "rdma_intercept limit set tenant 'a b'\\''; rm' qp=63"), "%s",
	      one ? one->command : "");
	free(advice.row);
	/* At a share, the configured limit is not the obstacle. */
	scene.ml.reason[KIND_qp] = FAIR_SHARE;
	scene.ml.configured[KIND_qp] = 120;
	scene.ml.weight = 2;
	strcpy(scene.ml.tenant, "ml");
	advice = advice_of(&scene, NULL);
	one = advice_find(&advice, "limit_always_hit");
	CHECK(one && strstr(one->text, "50 of 120") &&
		      !strcmp(one->command, "rdma_intercept limit set tenant ml weight=3"),
	      "%s", one ? one->command : "");
	free(advice.row);
	scene = scene_make();
	for (int kind = 0; kind < KIND_COUNT; kind++)
		use(&scene.ml, (enum kind)kind, 3, 1000);
	advice = advice_of(&scene, NULL);
	for (size_t i = 0; i < advice.count; i++) {
		one = list_at(&advice, i);
		found += !strcmp(one->rule, "limit_never_approached");
		more += !strcmp(one->rule, "limit_never_approached") ? one->more : 0;
	}
	CHECK(found == ADVICE_MOST && more == KIND_COUNT - ADVICE_MOST, "%u, and %u more", found, more);
	free(advice.row);
}

static void driver(void)
{
	RUN(quiet);
	RUN(guard_way_out);
	RUN(each_rule);
	RUN(policy_replaced);
	RUN(of_a_tenant);
	RUN(names_and_numbers);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
