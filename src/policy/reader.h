/* SPDX-License-Identifier: MIT */
/* The reader of a policy's text, for files.c. */
#ifndef POLICY_READER_H
#define POLICY_READER_H

#include "policy/policy.h"
#include "policy/problem.h"

enum { POLICY_DIRECTORY = POLICY_PATH + sizeof("tenants.d") };

/* The directory tenants.d beside a policy file, and whether a file in it is read. */
void policy_directory_print(const char *path, char ret_directory[POLICY_DIRECTORY]);
bool policy_file_is_read(const char *name);

/* Adds the text of a file; text[length] is there to be written. `runtime` marks the tenants that
 * it adds. 0 or -errno with a problem. */
int policy_read_text(struct policy *policy, const struct policy_source *source, bool runtime,
		     char *text, size_t length);

/* policy_change, with another origin of the values than POLICY_COMMAND. */
int policy_change_from(struct policy *policy, const char *section, const char *text,
		       const char *origin, char problem[PROBLEM_SIZE]);

#endif
