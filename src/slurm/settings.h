/* SPDX-License-Identifier: MIT */
/* The words behind the plugin's path in plugstack.conf. */
#ifndef SLURM_SETTINGS_H
#define SLURM_SETTINGS_H

#include <stdbool.h>

#include "base/problem.h"
#include "proto/client.h"
#include "terms/terms.h"

enum { SETTINGS_PATH = 256 };

struct plugin_settings {
	char library[SETTINGS_PATH]; /* that tasks load; "": none */
	char socket[PROTO_PATH];     /* of the collector; "": the usual one */
	char within[NAME_SIZE];	     /* the tenant or pattern whose limits no job passes; "": the
					pattern that the policy has for jobs */
	bool guard;		     /* the kernel keeps a job's limits, too */
	bool comment;		     /* the figures go into the job's AdminComment */
};

/* 0; or -EINVAL with a sentence about the first word that is wrong, and the others are taken. */
int plugin_settings_read(int count, char **words, struct plugin_settings *ret_settings,
			 char problem[PROBLEM_SIZE]);

#endif
