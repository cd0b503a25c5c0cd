/* SPDX-License-Identifier: MIT */
/*
 * Calls to Slurm's controller; see controller.h. The functions are those of the program that has
 * loaded the plugin.
 */
#include "slurm/controller.h"

#include <errno.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <stdio.h>
#include <string.h>

enum { COMMENT_SIZE = 4096 };

#define COMMENT_BETWEEN "; "

static bool job_is_on(const slurm_job_info_t *job, const char *node)
{
	hostlist_t nodes = job->nodes ? slurm_hostlist_create(job->nodes) : NULL;
	bool found = nodes && slurm_hostlist_find(nodes, node) >= 0;

	if (nodes)
		slurm_hostlist_destroy(nodes);
	return found;
}

static bool job_has_ended(const slurm_job_info_t *job)
{
	return (job->job_state & JOB_STATE_BASE) > JOB_SUSPENDED;
}

bool controller_job_is_over(uint32_t number, const char *node)
{
	job_info_msg_t *answer = NULL;
	bool over = true;

	if (slurm_load_job(&answer, number, SHOW_ALL) != SLURM_SUCCESS)
		return errno == ESLURM_INVALID_JOB_ID;
	/* While it completes, its epilog is still to come. */
	for (uint32_t i = 0; i < answer->record_count; i++) {
		const slurm_job_info_t *job = &answer->job_array[i];

		if (job->job_id == number && job_is_on(job, node) &&
		    (!job_has_ended(job) || (job->job_state & JOB_COMPLETING)))
			over = false;
	}
	slurm_free_job_info_msg(answer);
	return over;
}

/* What others have written into the comment, without an earlier text of ours. */
static size_t comment_of_others(const char *comment, const char *text, size_t begins)
{
	const char *ours = comment ? strstr(comment, COMMENT_BETWEEN) : NULL;

	if (!comment || !strncmp(comment, text, begins))
		return 0;
	while (ours && strncmp(ours + strlen(COMMENT_BETWEEN), text, begins) != 0)
		ours = strstr(ours + 1, COMMENT_BETWEEN);
	return ours ? (size_t)(ours - comment) : strlen(comment);
}

int controller_job_comment(uint32_t number, const char *text, size_t begins)
{
	job_info_msg_t *answer = NULL;
	job_desc_msg_t change;
	const char *comment;
	char all[COMMENT_SIZE];
	size_t others;
	int result;

	if (slurm_load_job(&answer, number, SHOW_ALL) != SLURM_SUCCESS)
		return errno;
	comment = answer->record_count ? answer->job_array[0].admin_comment : NULL;
	others = comment_of_others(comment, text, begins);
	result = snprintf(all, sizeof(all), "%.*s%s%s", (int)others, others ? comment : "",
			  others ? COMMENT_BETWEEN : "", text);
	slurm_free_job_info_msg(answer);
	if (result >= COMMENT_SIZE)
		return ENOSPC;
	slurm_init_job_desc_msg(&change);
	change.job_id = number;
	change.admin_comment = all;
	return slurm_update_job(&change) == SLURM_SUCCESS ? 0 : errno;
}

const char *controller_error_text(int error)
{
	return slurm_strerror(error);
}
