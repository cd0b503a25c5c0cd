/* SPDX-License-Identifier: MIT */
/* Policy files in a directory of the test, and what reading them says. */
#ifndef TESTS_UNIT_POLICYFILES_H
#define TESTS_UNIT_POLICYFILES_H

#include "base/problem.h"
#include "harness.h"
#include "policy/policy.h"

#define NONE UNLIMITED

extern char policy_directory[];
extern char policy_complaint[PROBLEM_SIZE]; /* of the last policy that was read or changed */

/* Makes the directory; removes it, and checks that no file is left there. */
void policy_files_begin(void);
void policy_files_remove(void);

/* A path in the directory. */
const char *file_path(const char *name);
void file_write(const char *name, const char *bytes, size_t length);
void file_is(const char *name, const char *text);
char *file_text(const char *path);

/* A fresh policy from policy.conf and tenants.d; NULL when it is refused, with *ret_result. */
struct policy *policy_from_files(int *ret_result);

/* Of policy.conf with this text, which must be right. */
struct policy *policy_good(const char *text);

/* Refused in that line (0: none) for a reason that has all the words of the list. */
void policy_bad_bytes(const char *text, size_t length, unsigned line, const char *words);
void policy_bad(const char *text, unsigned line, const char *words);

/* The text that policy_write makes of it. */
char *policy_written(const struct policy *policy);

uint64_t policy_limit_of(const struct policy *policy, const char *name, bool process,
			 const char *device, enum kind kind);

void policy_belongs(const struct policy *policy, uid_t uid, gid_t gid, const char *cgroup,
		    const char *tenant);

#endif
