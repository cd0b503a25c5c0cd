/* SPDX-License-Identifier: MIT */
/*
 * Variables without effect are named in the log, once, and never on standard error; limits of QPs
 * need no switch.
 */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"
#include "harness.h"

/* ---- scenarios ---- */

/* Gets exactly so many QPs of 4. */
static void makes(const char *argument)
{
	struct fixture fixture = fixture_open();
	long most = strtol(argument, NULL, 10), made = 0;

	for (unsigned i = 0; i < 4; i++)
		made += qp_make(&fixture, IBV_QPT_RC) != NULL;
	CHECK(made == most, "%ld QPs", made);
	fixture_close(&fixture);
}

/* A child has the variables of its parent, and starts the library again. */
static void forks(const char *argument)
{
	struct fixture fixture = fixture_open();
	pid_t child = fork_child();
	int status;

	if (child == 0) {
		struct ibv_context *context = ibv_open_device(fixture.devices[0]);

		_exit(!context || ibv_close_device(context));
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0, "status %d", status);
	fixture_close(&fixture);
}

/* ---- drivers ---- */

static void log_has(const char *settings, const char *line, unsigned times)
{
	CHECK(occurrences(log_text(), line) == times, "%s: expected %u times '%s' in: %s", settings,
	      times, line, log_text());
	CHECK(!strstr(stderr_text(), "RDMA_"), "%s: stderr: %s", settings, stderr_text());
}

static void spawn_fresh(const char *scenario, const char *settings)
{
	log_clear();
	shm_remove();
	spawn(scenario, settings);
}

static void unknown_names(void)
{
	static const struct {
		const char *settings, *line;
	} rows[] = {
		{ "MAX_QPS=3", "RDMA_INTERCEPT_MAX_QPS: unknown variable, it has no effect: did you mean "
			       "RDMA_INTERCEPT_MAX_QP?" },
		{ "LIMIT=process:qp=1", "RDMA_INTERCEPT_LIMIT: unknown variable, it has no effect: did you "
					"mean RDMA_INTERCEPT_LIMITS?" },
		{ "!RDMA_INTERCPT_MODE=audit", "RDMA_INTERCPT_MODE: unknown variable, it has no effect: did "
					       "you mean RDMA_INTERCEPT_MODE?" },
		{ "!RDMA_COLECTOR_SOCKET=/x", "RDMA_COLECTOR_SOCKET: unknown variable, it has no effect: did "
					      "you mean RDMA_COLLECTOR_SOCKET?" },
		{ "COMPLETELY_DIFFERENT=1",
		  "RDMA_INTERCEPT_COMPLETELY_DIFFERENT: unknown variable, it has no effect\n" },
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		spawn_fresh("makes:4", rows[i].settings);
		log_has(rows[i].settings, rows[i].line, 1);
	}
	spawn_fresh("forks", "MAX_QPS=3");
	log_has("forks", "unknown variable", 1);
}

static void other_names(void)
{
	static const char *const fine[] = {
		"POLICY=/x", "LIBRARY=/x", "TEST_FACTOR=1", "MODE=audit", "!RDMAV_FORK_SAFE=1",
		"!RDMA_CORE=1", "!RDMA_COLLECTOR_STATE=/x", "!IBV_SHOW_WARNINGS=1",
	};

	for (unsigned i = 0; i < sizeof(fine) / sizeof(fine[0]); i++) {
		spawn_fresh("makes:4", fine[i]);
		log_has(fine[i], "no effect", 0);
	}
}

static void no_effect(void)
{
	spawn_fresh("makes:4", "ENABLE_QP_CONTROL=0\nMAX_QP_PER_PROCESS=2\nMAX_GLOBAL_QP=3");
	log_has("switched off",
		"RDMA_INTERCEPT_MAX_QP_PER_PROCESS, RDMA_INTERCEPT_MAX_GLOBAL_QP: no effect, since "
		"RDMA_INTERCEPT_ENABLE_QP_CONTROL is 0",
		1);
	spawn_fresh("makes:4", "TRANSPORT=embedded\n!RDMA_COLLECTOR_SOCKET=/x");
	log_has("embedded",
		"RDMA_COLLECTOR_SOCKET: no effect, since RDMA_INTERCEPT_TRANSPORT is embedded", 1);
}

static void switch_is_not_needed(void)
{
	static const char *const settings[] = { "MAX_QP_PER_PROCESS=2", "MAX_GLOBAL_QP=2", "MAX_QP=2",
						"ENABLE_QP_CONTROL=1\nMAX_QP_PER_PROCESS=2" };

	for (unsigned i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		log_clear();
		shm_remove();
		spawn("makes:2", settings[i]);
		CHECK(!strstr(log_text(), "no effect"), "%s: %s", settings[i], log_text());
	}
}

static void driver(void)
{
	RUN(unknown_names);
	RUN(other_names);
	RUN(no_effect);
	RUN(switch_is_not_needed);
}

static const struct scenario scenarios[] = {
	{ "makes", makes },
	{ "forks", forks },
	{ NULL, NULL },
};

int main(int argc, char **argv)
{
	return harness_main(argc, argv, scenarios, driver);
}
