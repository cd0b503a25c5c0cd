/* SPDX-License-Identifier: MIT */
/* Files of a policy: the one that is named, and those in tenants.d beside it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "policy/policy.h"
#include "policy/reader.h"
#include "policy/report.h"

static int policy_file_open(const struct policy_source *source)
{
	struct stat status;
	int result = 0;
	/* Nonblocking, since a pipe would have us wait for its writer. */
	int fd = open(source->file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 || fstat(fd, &status))
		result = policy_fail_errno(source, -errno);
	else if (S_ISDIR(status.st_mode))
		result = policy_fail_errno(source, -EISDIR);
	else if (!S_ISREG(status.st_mode))
		result =
			policy_fail(source, -EINVAL, "wrong type of file: expected a regular file");
	if (result == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return result;
}

int policy_read_file(struct policy *policy, const char *path, bool runtime,
		     char problem[PROBLEM_SIZE])
{
	const struct policy_source source = { .file = path, .problem = problem };
	ssize_t length;
	char *text;
	int fd, result;

	fd = policy_file_open(&source);
	if (fd < 0)
		return fd;
	text = malloc(POLICY_FILE_MOST + 1);
	length = text ? file_read(fd, text, POLICY_FILE_MOST + 1) : -ENOMEM;
	if (length < 0)
		result = policy_fail_errno(&source, (int)length);
	else if (length > POLICY_FILE_MOST)
		result = policy_fail(&source, -EFBIG, "file too large: expected at most 1 MiB");
	else
		result = policy_read_text(policy, &source, runtime, text, (size_t)length);
	free(text);
	close(fd);
	return result;
}

bool policy_file_is_read(const char *name)
{
	return fnmatch("?*.conf", name, FNM_PERIOD) == 0;
}

static int policy_file_is_named(const struct dirent *entry)
{
	return policy_file_is_read(entry->d_name);
}

static int policy_file_compare(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int directory_file_read(struct policy *policy, const char *directory, const char *name,
			       char problem[PROBLEM_SIZE])
{
	char path[2 * POLICY_PATH + sizeof("tenants.d/")];
	const struct policy_source source = { .file = path, .problem = problem };
	int result;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	result = policy_read_file(policy, path, false, problem);
	/* To the caller, -ENOENT is a host without a policy; this is a link to nowhere. */
	return policy_report_mistake(policy, POLICY_CHECK_invalid, &source,
				     result == -ENOENT ? -EINVAL : result);
}

static int directory_read(struct policy *policy, const char *directory, char problem[PROBLEM_SIZE])
{
	const struct policy_source source = { .file = directory, .problem = problem };
	struct dirent **entries;
	int result = 0;
	int count = scandir(directory, &entries, policy_file_is_named, policy_file_compare);

	if (count < 0)
		return errno == ENOENT ? 0 :
					 policy_report_mistake(policy, POLICY_CHECK_invalid, &source,
							       policy_fail_errno(&source, -errno));
	for (int i = 0; i < count; i++) {
		const char *name = entries[i]->d_name;

		if (result == 0)
			result = directory_file_read(policy, directory, name, problem);
		free(entries[i]);
	}
	free(entries);
	return result;
}

void policy_directory_print(const char *path, char ret_directory[POLICY_DIRECTORY])
{
	const char *slash = strrchr(path, '/');
	int parent = slash ? (int)(slash - path) + 1 : 0;

	snprintf(ret_directory, POLICY_DIRECTORY, "%.*stenants.d", parent, path);
}

int policy_read(struct policy *policy, const char *path, char problem[PROBLEM_SIZE])
{
	char directory[POLICY_DIRECTORY];
	const struct policy_source source = { .file = path, .problem = problem };
	int result;

	if (strlen(path) >= sizeof(policy->file))
		result = policy_fail_errno(&source, -ENAMETOOLONG);
	else
		result = policy_read_file(policy, path, false, problem);
	if (result < 0)
		return policy_report_mistake(policy, POLICY_CHECK_invalid, &source, result);
	snprintf(policy->file, sizeof(policy->file), "%s", path);
	policy_directory_print(path, directory);
	result = directory_read(policy, directory, problem);
	policy_bases_find(policy);
	return result < 0 ? result : policy_guarantees_check(policy, problem);
}
