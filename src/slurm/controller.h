/* SPDX-License-Identifier: MIT */
/* What the plugin asks and tells Slurm's controller. */
#ifndef SLURM_CONTROLLER_H
#define SLURM_CONTROLLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether the job is certainly not on this node any more: it has ended, is somewhere else, or is not
 * known. False if the controller does not answer. */
bool controller_job_is_over(uint32_t number, const char *node);

/* Puts a text into the job's AdminComment, behind what others have written there and in place of an
 * earlier text that begins with the same bytes: 0, or an error of Slurm's. A job that has ended, or was
 * cancelled, takes none. */
int controller_job_comment(uint32_t number, const char *text, size_t begins);

const char *controller_error_text(int error);

#endif
