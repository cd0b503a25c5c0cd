/* SPDX-License-Identifier: MIT */
/*
 * Jobs as tenants of this node's collector: added before the job's first process, removed after the
 * last. Root calls this. Knows the collector's messages and nothing of Slurm's interface.
 */
#ifndef SLURM_JOBS_H
#define SLURM_JOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/problem.h"
#include "slurm/options.h"
#include "slurm/settings.h"

struct job {
	uint32_t number;
	uid_t uid;
	gid_t gid;
	const char *node; /* its name in Slurm */
};

/* How the figures of a job begin. */
#define JOB_FIGURES "rdma node="

/* A set. */
enum {
	JOB_IS_OF_OTHERS = 1,	 /* no tenant was added: the policy has no pattern for this job */
	JOB_UNGUARDED = 2,	 /* the tenant was added, and the guard does not hold it */
	JOB_WITHOUT_OPTIONS = 4, /* the tenant was added without the limits: they cannot be, and why is in
				  * `problem` */
};

/* Adds the job's tenant with these limits, in place of an earlier one of the same job: a set of the
 * results above; -errno with a sentence. */
int job_register(const struct plugin_settings *settings, const struct job *job,
		 const struct job_limits *limits, char problem[PROBLEM_SIZE]);

/* Removes it. 0, -ENOENT if it has none, or -errno with a sentence. */
int job_unregister(const struct plugin_settings *settings, uint32_t number,
		   char problem[PROBLEM_SIZE]);

/* What the job has used on this node, as "KEY=VALUE ..."; "" if it used no RDMA. 0, -ENOENT if the job
 * has no tenant of its own, or -errno with a sentence. */
int job_account(const struct plugin_settings *settings, const struct job *job, char *ret_text,
		size_t size, char problem[PROBLEM_SIZE]);

/*
 * Removes tenants of jobs that are over, except of this one: of those without a process in their
 * control group on this node, is_over is asked. One process does this at a time; another one returns at once. The number of
 * tenants removed, or -errno with a sentence.
 */
int jobs_sweep(const struct plugin_settings *settings, const struct job *job,
	       bool (*is_over)(uint32_t number, const char *node), char problem[PROBLEM_SIZE]);

#endif
