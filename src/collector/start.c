/* SPDX-License-Identifier: MIT */
/*
 * The order of the start: policy, books, commands' layer, members, loop, socket; see start.h.
 */
#include "collector/start.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/accounts.h"
#include "collector/answers.h"
#include "collector/control.h"
#include "collector/grants.h"
#include "collector/library_loaded.h"
#include "collector/pods.h"
#include "proto/client.h"

#define ROOT_STATE "/run/rdma_intercept/state"

/* Below a directory of the user's own that ends with the machine's run, as the processes do. */
static void state_directory_default(char *ret, size_t size)
{
	if (geteuid() == 0)
		snprintf(ret, size, ROOT_STATE);
	else
		snprintf(ret, size, "/dev/shm/rdma_intercept.%u", (unsigned)geteuid());
}

static int path_make_absolute(const char *path, char ret[POLICY_PATH])
{
	char here[POLICY_PATH];

	if (path[0] == '/')
		return snprintf(ret, POLICY_PATH, "%s", path) < POLICY_PATH ? 0 : -ENAMETOOLONG;
	if (!getcwd(here, sizeof(here)))
		return -errno;
	return snprintf(ret, POLICY_PATH, "%s/%s", here, path) < POLICY_PATH ? 0 : -ENAMETOOLONG;
}

static const char *first_of(const char *a, const char *b, const char *c)
{
	return a && a[0] ? a : b && b[0] ? b : c;
}

/* Where the last good policy is kept: a place that outlives a boot if the service manager gives
 * one, and one that is known without a policy in any case. */
static void good_directory_of(const struct start_options *options, char *ret, size_t size)
{
	const char *given = getenv("STATE_DIRECTORY"); /* of systemd: names, separated by colons */

	if (given && given[0] == '/')
		snprintf(ret, size, "%.*s", (int)strcspn(given, ":"), given);
	else if (options->state && options->state[0])
		snprintf(ret, size, "%s", options->state);
	else
		state_directory_default(ret, size);
}

/* The files, or if these are not in order what they said in an earlier life: a host without a
 * collector would have no limits at all. */
static int start_policy(struct collector *collector, const struct start_options *options,
			char problem[PROBLEM_SIZE])
{
	char good[POLICY_PATH];
	const char *path = first_of(options->policy, NULL, POLICY_DEFAULT_FILE);
	int result;

	collector->policy_must_exist = options->policy && options->policy[0];
	result = path_make_absolute(path, collector->policy_path);
	if (result < 0)
		problem_set(result, problem, "%.300s: %s", path, strerror(-result));
	else
		result = control_environment(collector, problem);
	collector->runtime = policy_new();
	if (result < 0 || !collector->runtime)
		return result < 0 ? result : -ENOMEM;
	good_directory_of(options, good, sizeof(good));
	control_recall(collector, good);
	result = control_reload(collector, RELOAD_WHOLE, NULL);
	if (result < 0 && collector->files) {
		collector->effective = control_merge(collector, collector->files, NULL, problem);
		result = collector->effective ? 0 : -errno;
	}
	if (result < 0)
		problem_set(result, problem, "%s", collector->problem);
	else
		fleet_layer_start(collector);
	return result;
}

static int start_runtime(struct collector *collector, const char *state, char problem[PROBLEM_SIZE])
{
	struct policy *merged, *runtime;
	int result;

	snprintf(collector->runtime_path, sizeof(collector->runtime_path), "%.*s/runtime.conf",
		 (int)sizeof(collector->runtime_path) - 16, state);
	result = control_read_own(collector, collector->runtime_path, true, &runtime, problem);
	if (result < 0 && result != -ENOENT)
		return result;
	if (result == 0)
		control_adopt(&collector->runtime, runtime);
	merged = control_merge(collector, collector->files, collector->runtime, problem);
	if (!merged) {
		/* Files were changed meanwhile. Too large guarantees count in proportion, and all
		 * limits hold; without a collector none would. */
		log_write(&collector->log, LOG_ERROR, "%s: %s", collector->runtime_path, problem);
		snprintf(collector->problem, sizeof(collector->problem), "%s", problem);
		merged = control_merge(collector, collector->files, collector->runtime, NULL);
	}
	if (!merged)
		return -errno;
	policy_free(collector->effective);
	collector->effective = merged;
	return 0;
}

static int start_problem(char problem[PROBLEM_SIZE], const char *what, int result)
{
	return problem_set(result, problem, "%s: %s", what, strerror(-result));
}

/* Books, members, loop and socket. */
static int start_parts(struct collector *collector, const char *state, const char *socket_path,
		       char problem[PROBLEM_SIZE])
{
	int result = books_open(&collector->books, state, &collector->log, problem);

	if (result < 0)
		return result;
	result = start_runtime(collector, state, problem);
	if (result < 0)
		return result;
	control_keep(collector);
	/* Better a collector without some of the tenants than none. */
	result = control_prepare(collector, collector->effective, collector->problem);
	if (result < 0)
		log_write(&collector->log, LOG_ERROR, "%s", collector->problem);
	control_apply(collector);
	result = members_init(&collector->members, &collector->books);
	if (result < 0)
		return start_problem(problem, "registration", result);
	collector->members.ended = collector_member_ended;
	collector->members.remains = reconcile_remains;
	collector->members.closure = collector;
	members_attach(&collector->members);
	grants_enforce(&collector->books);
	rates_apply(collector);
	result = collector_loop_prepare(collector);
	if (result < 0)
		return start_problem(problem, "event loop", result);
	return server_new(&collector->server, collector->event, socket_path, &collector->log,
			  answer, collector, problem);
}

int collector_start(struct collector *collector, const struct start_options *options,
		    char problem[PROBLEM_SIZE])
{
	char state_default[64], state[PATH_MAX], socket_path[PATH_MAX];
	int result = accounts_open(collector);

	if (result >= 0)
		result = library_looks_open(collector);
	if (result < 0)
		return start_problem(problem, "event loop", result);
	result = start_policy(collector, options, problem);
	if (result < 0)
		return result;
	state_directory_default(state_default, sizeof(state_default));
	/* Copies: the policy in force is another one before the socket is served. */
	snprintf(state, sizeof(state), "%s",
		 first_of(options->state, collector->effective->state, state_default));
	snprintf(socket_path, sizeof(socket_path), "%s",
		 first_of(options->socket, collector->effective->socket, PROTO_DEFAULT_SOCKET));
	collector->pods = pods_new(first_of(collector->effective->pods, NULL, PODS_DIRECTORY),
				   &collector->log);
	if (!collector->pods)
		return -ENOMEM;
	result = start_parts(collector, state, socket_path, problem);
	if (result == 0)
		log_write(&collector->log, LOG_INFO,
			  "serving %s, books in %s, registered processes: %u", socket_path, state,
			  collector->books.members_count);
	return result;
}

void collector_stop(struct collector *collector)
{
	if (collector->server)
		server_free(collector->server);
	collector->server = NULL;
	if (collector->books.file) {
		members_close(&collector->members);
		books_close(&collector->books);
	}
	kernel_close(&collector->kernel);
	drift_close(&collector->drift);
	reconcile_close(&collector->reconcile);
	guards_close(&collector->guards);
	policy_free(collector->environment);
	policy_free(collector->files);
	policy_free(collector->runtime);
	policy_free(collector->effective);
	pods_free(collector->pods);
	accounts_close(collector);
	library_looks_close(collector);
	collector_loop_close(collector);
}
