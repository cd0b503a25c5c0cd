/* SPDX-License-Identifier: MIT */
/* Accounting and guard, looked after by one process; see keeper.h. */
#include "monitor/tool/keeper.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "monitor/guard/guard_loader.h"
#include "monitor/kernel/lockfile.h"
#include "monitor/kernel/pins.h"

enum {
	UNLOAD_WAIT_MS = 5000,
	UNLOAD_STEP_MS = 10,
};

struct keeper {
	struct loader_options options;
	struct loader *loader;
	struct guard_loader *guard; /* NULL: there can be none */
	char guard_problem[PROBLEM_SIZE];
	int lock;
};

/* With the lock on changes held. */
static int keeper_load(struct keeper *keeper, char problem[PROBLEM_SIZE])
{
	const struct loader_options *options = &keeper->options;
	int result;

	keeper->lock = lockfile_take(LOCKFILE_KEEPER, LOCK_EX | LOCK_NB);
	if (keeper->lock == -EWOULDBLOCK)
		return KEEPER_OTHER;
	if (keeper->lock < 0)
		return problem_set(keeper->lock, problem, LOCKFILE_KEEPER ": %s",
				   strerror(-keeper->lock));
	result = loader_open(&keeper->loader, options, problem);
	if (result < 0)
		return result;
	/* Counting goes on without a guard. */
	if (loader_probe(keeper->loader)->mode == MONITOR_FENTRY)
		guard_loader_open(&keeper->guard, options->directory,
				  options->tables ? options->tables : pins_places(),
				  keeper->guard_problem);
	return 0;
}

int keeper_start(struct keeper **ret_keeper, const struct loader_options *options,
		 char problem[PROBLEM_SIZE])
{
	struct keeper *keeper = calloc(1, sizeof(*keeper));
	int change = -1, result;

	if (!keeper)
		return problem_set(-ENOMEM, problem, "no memory");
	pins_listen();
	keeper->options = *options;
	keeper->lock = -1;
	result = probe_rights(problem);
	if (result == 0) {
		change = lockfile_take(LOCKFILE_CHANGE, LOCK_EX);
		result = change < 0 ? problem_set(change, problem, LOCKFILE_CHANGE ": %s",
						  strerror(-change)) :
				      keeper_load(keeper, problem);
	}
	if (change >= 0)
		close(change);
	if (result)
		keeper_stop(keeper);
	else
		*ret_keeper = keeper;
	return result;
}

const struct probe *keeper_probe(const struct keeper *keeper)
{
	return loader_probe(keeper->loader);
}

const char *keeper_guard_problem(const struct keeper *keeper)
{
	return keeper->guard_problem;
}

int keeper_tend(struct keeper *keeper, char problem[PROBLEM_SIZE])
{
	int result = loader_tend(keeper->loader, problem), lock;

	if (result < 0 || !keeper->guard)
		return result;
	lock = lockfile_take(LOCKFILE_CHANGE, LOCK_EX);
	if (pins_is_bpf(keeper->options.directory) && /* nobody has taken everything out by now */
	    guard_loader_tend(keeper->guard, &keeper->options.probe))
		loader_attached(keeper->loader);
	if (lock >= 0)
		close(lock);
	return 0;
}

void keeper_stop(struct keeper *keeper)
{
	guard_loader_close(keeper->guard);
	loader_close(keeper->loader);
	if (keeper->lock >= 0)
		close(keeper->lock);
	free(keeper);
}

/* The keeper sees that everything is gone, and with it goes what could not be pinned. */
static int keeper_wait(char problem[PROBLEM_SIZE])
{
	struct timespec step = { 0, UNLOAD_STEP_MS * 1000000l };

	for (unsigned waited = 0; waited < UNLOAD_WAIT_MS; waited += UNLOAD_STEP_MS) {
		int lock = lockfile_take(LOCKFILE_KEEPER, LOCK_EX | LOCK_NB);

		if (lock >= 0) {
			close(lock);
			return 0;
		}
		nanosleep(&step, NULL);
	}
	return problem_set(-EBUSY, problem,
			   "the process that keeps it loaded (see " LOCKFILE_KEEPER ") did not end");
}

int keeper_unload(const char *directory, char problem[PROBLEM_SIZE])
{
	int change = lockfile_take(LOCKFILE_CHANGE, LOCK_EX), result;

	if (change < 0)
		return problem_set(change, problem, LOCKFILE_CHANGE ": %s", strerror(-change));
	if (pins_is_bpf(directory))
		guard_loader_disarm(directory);
	result = pins_is_bpf(directory) ? pins_remove(directory) : -ENOENT;
	close(change);
	if (result < 0)
		return problem_set(result, problem, "%s: %s", directory,
				   result == -ENOENT ? "nothing is loaded" : strerror(-result));
	return keeper_wait(problem);
}
