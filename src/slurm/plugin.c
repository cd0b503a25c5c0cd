/* SPDX-License-Identifier: MIT */
/*
 * The SPANK plugin: what Slurm calls. In srun, sbatch and salloc it has options and checks them; in
 * prolog and epilog it adds and removes the job's tenant; around tasks it puts the library into their
 * environment and the figures into the job's comment. Except for a wrong option nothing here fails: a
 * plugin that fails on a node makes Slurm drain it, and lets srun end with 0 for tasks that never ran.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#pragma GCC visibility push(default)
#include <slurm/spank.h>

SPANK_PLUGIN(rdma_intercept, 1)
#pragma GCC visibility pop

#include "slurm/controller.h"
#include "slurm/jobs.h"
#include "slurm/options.h"
#include "slurm/settings.h"

enum { TEXT_SIZE = 1024, NODE_SIZE = 256 };

#define PRELOAD "LD_PRELOAD"
/* What a job's own commands inherit of its options, by Slurm's rule. */
#define INHERITED "SLURM_SPANK__SLURM_SPANK_OPTION_rdma_intercept_"

static struct plugin_settings settings;
static char node[NODE_SIZE];

/* Slurm calls init in most places, but not before prolog and epilog. */
static void settings_get(int count, char **words)
{
	char problem[PROBLEM_SIZE];

	if (plugin_settings_read(count, words, &settings, problem) < 0)
		slurm_error("rdma_intercept: %s", problem);
}

static bool is_context(spank_context_t context)
{
	return spank_context() == context;
}

/* ---- options */

/* A step of a job that is there: its limits are those of the job. A step gets the job's options from its
 * environment, as if somebody gave them. */
static bool option_is_of_step(const struct job_option *option, const char *text)
{
	char name[sizeof(INHERITED) + 64];
	const char *inherited;

	if (!is_context(S_CTX_LOCAL) || !getenv("SLURM_JOB_ID"))
		return false;
	snprintf(name, sizeof(name), INHERITED "%s", option->name);
	for (char *at = name; *at; at++)
		if (*at == '-')
			*at = '_';
	inherited = getenv(name);
	return !inherited || strcmp(inherited, text) != 0;
}

static int option_given(int value, const char *text, int remote)
{
	const struct job_option *option = &job_options[value];
	char problem[PROBLEM_SIZE];
	struct job_limits limits;

	if (remote)
		return 0;
	job_limits_init(&limits);
	if (job_option_take(option, text, &limits, problem) < 0) {
		slurm_error("%s", problem);
		return -1;
	}
	if (option_is_of_step(option, text)) {
		slurm_error("--%s: job %s has its limits already: expected the option of sbatch or "
			    "salloc, or of an srun that makes the job",
			    option->name, getenv("SLURM_JOB_ID"));
		return -1;
	}
	return 0;
}

static struct spank_option option_of(unsigned number)
{
	const struct job_option *option = &job_options[number];

	return (struct spank_option){ .name = (char *)option->name,
				      .arginfo = (char *)option->argument,
				      .usage = (char *)option->help,
				      .has_arg = 1,
				      .val = (int)number,
				      .cb = option_given };
}

int slurm_spank_init(spank_t spank, int count, char **words)
{
	settings_get(count, words);
	for (unsigned i = 0; i < job_options_count && !is_context(S_CTX_SLURMD); i++) {
		struct spank_option option = option_of(i);

		if (spank_option_register(spank, &option) != ESPANK_SUCCESS)
			slurm_error("rdma_intercept: the option --%s cannot be added", option.name);
	}
	return 0;
}

/* ---- prolog and epilog: once for a job on a node */

static bool job_of(spank_t spank, struct job *ret_job)
{
	const char *name = getenv("SLURMD_NODENAME");

	if (!name) {
		gethostname(node, sizeof(node) - 1);
		node[strcspn(node, ".")] = '\0';
		name = node;
	}
	*ret_job = (struct job){ .node = name };
	return spank_get_item(spank, S_JOB_ID, &ret_job->number) == ESPANK_SUCCESS &&
	       spank_get_item(spank, S_JOB_UID, &ret_job->uid) == ESPANK_SUCCESS &&
	       spank_get_item(spank, S_JOB_GID, &ret_job->gid) == ESPANK_SUCCESS;
}

/* As they were when they were checked; but a user may have written them into the environment, too. */
static void job_limits_get(spank_t spank, const struct job *job, struct job_limits *ret_limits)
{
	char problem[PROBLEM_SIZE];

	job_limits_init(ret_limits);
	for (unsigned i = 0; i < job_options_count; i++) {
		struct spank_option option = option_of(i);
		char *text = NULL;

		if (spank_option_getopt(spank, &option, &text) == ESPANK_SUCCESS &&
		    job_option_take(&job_options[i], text, ret_limits, problem) < 0)
			slurm_error("rdma_intercept: job %u: %s", job->number, problem);
	}
}

static void stale_remove(const struct job *job)
{
	char problem[PROBLEM_SIZE];
	int result = jobs_sweep(&settings, job, controller_job_is_over, problem);

	if (result > 0)
		slurm_info("rdma_intercept: %d tenants of jobs that are over are removed", result);
	else if (result < 0)
		slurm_error("rdma_intercept: tenants of jobs that are over: %s", problem);
}

int slurm_spank_job_prolog(spank_t spank, int count, char **words)
{
	char problem[PROBLEM_SIZE];
	struct job_limits limits;
	struct job job;
	int result;

	settings_get(count, words);
	if (!job_of(spank, &job))
		return 0;
	job_limits_get(spank, &job, &limits);
	result = job_register(&settings, &job, &limits, problem);
	if (result < 0)
		slurm_error("rdma_intercept: job %u: it has no tenant of its own: %s", job.number,
			    problem);
	else if (result & JOB_IS_OF_OTHERS && job_limits_are_set(&limits))
		slurm_error("rdma_intercept: job %u: its options have no effect: the policy has no "
			    "pattern for jobs, such as [tenant job-%%j] with match = job=*",
			    job.number);
	if (result > 0 && result & JOB_WITHOUT_OPTIONS)
		slurm_error("rdma_intercept: job %u: its options have no effect: %s", job.number, problem);
	if (result > 0 && result & JOB_UNGUARDED)
		slurm_error("rdma_intercept: job %u: the guard does not hold it: slurmd has no control "
			    "group in the unified hierarchy",
			    job.number);
	if (result >= 0)
		stale_remove(&job);
	return 0;
}

int slurm_spank_job_epilog(spank_t spank, int count, char **words)
{
	char problem[PROBLEM_SIZE], text[TEXT_SIZE];
	struct job job;
	int result;

	settings_get(count, words);
	if (!job_of(spank, &job))
		return 0;
	result = job_account(&settings, &job, text, sizeof(text), problem);
	if (result == 0 && text[0])
		slurm_info("rdma_intercept: job %u: %s", job.number, text);
	if (result == 0)
		result = job_unregister(&settings, job.number, problem);
	if (result < 0 && result != -ENOENT)
		slurm_error("rdma_intercept: job %u: its tenant stays for now: %s", job.number,
			    problem);
	else
		stale_remove(&job);
	return 0;
}

/* ---- tasks */

/* The library before those of the user. */
int slurm_spank_task_init(spank_t spank, int count, char **words)
{
	char others[4096] = "", all[sizeof(others) + SETTINGS_PATH];
	size_t length = strlen(settings.library);

	if (!length)
		return 0;
	if (access(settings.library, R_OK)) {
		slurm_error("rdma_intercept: %s: %m: the task runs without the library", settings.library);
		return 0;
	}
	if (settings.socket[0])
		spank_setenv(spank, PROTO_SOCKET_VARIABLE, settings.socket, 1);
	if (spank_getenv(spank, PRELOAD, others, sizeof(others)) == ESPANK_NOSPACE) {
		slurm_error("rdma_intercept: " PRELOAD " is too long: the task runs without the library");
		return 0;
	}
	/* A step of a step has it in front already. (strchr finds the end of the text, too) */
	if (!strncmp(others, settings.library, length) && strchr(": ", others[length]))
		return 0;
	snprintf(all, sizeof(all), "%s%s%s", settings.library, others[0] ? ":" : "", others);
	spank_setenv(spank, PRELOAD, all, 1);
	return 0;
}

/* After the last task of a step, while the job may still have a comment: at the epilog it has ended. The
 * first node of the step writes; the others would overwrite it. */
int slurm_spank_task_exit(spank_t spank, int count, char **words)
{
	static unsigned ended;
	char problem[PROBLEM_SIZE], text[TEXT_SIZE];
	uint32_t tasks = 0, number = 0;
	struct job job;
	int error;

	if (!settings.comment || spank_get_item(spank, S_JOB_LOCAL_TASK_COUNT, &tasks) != ESPANK_SUCCESS ||
	    ++ended < tasks || spank_get_item(spank, S_JOB_NODEID, &number) != ESPANK_SUCCESS ||
	    number != 0 || !job_of(spank, &job))
		return 0;
	if (job_account(&settings, &job, text, sizeof(text), problem) < 0 || !text[0])
		return 0;
	error = controller_job_comment(job.number, text, strlen(JOB_FIGURES));
	if (error)
		slurm_verbose("rdma_intercept: job %u: AdminComment: %s", job.number,
			      controller_error_text(error));
	return 0;
}
