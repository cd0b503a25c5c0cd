/* SPDX-License-Identifier: MIT */
/*
 * The limits that a job asks for: from the texts of its options, and as lines of a policy's section.
 * The texts come from users, also where root reads them: what is written holds numbers only. Knows
 * neither Slurm nor the collector.
 */
#ifndef SLURM_OPTIONS_H
#define SLURM_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/problem.h"
#include "terms/kinds.h"
#include "terms/pace_rate.h"
#include "terms/rates.h"

/* Where an option is given twice, also by two options, the lower value counts. */
struct job_limits {
	uint64_t amount[KIND_COUNT];   /* UNLIMITED: not asked for */
	struct rate rate[RATE_CLASSES]; /* 0 per second: likewise */
	struct pace_rate pace;	       /* of bytes; likewise */
};

struct job_option {
	const char *name, *argument, *help;
	int (*read)(const struct job_option *option, const char *text, struct job_limits *limits,
		    char problem[PROBLEM_SIZE]);
	unsigned kind;
};

extern const struct job_option job_options[];
extern const unsigned job_options_count;

void job_limits_init(struct job_limits *limits);

/* Adds what an option asks for: 0, or -EINVAL with a sentence and the limits untouched. */
int job_option_take(const struct job_option *option, const char *text, struct job_limits *limits,
		    char problem[PROBLEM_SIZE]);

/* Whether the job asks for anything. */
bool job_limits_are_set(const struct job_limits *limits);

/* The limits as "KEY = VALUE\n" lines; -E2BIG. */
int job_limits_print(const struct job_limits *limits, char *ret_text, size_t size);

#endif
