/* SPDX-License-Identifier: MIT */
/* Files for the collector; see directory.h. */
#include "fleet/directory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "policy/check.h"
#include "policy/fleet.h"

#define RECEIVED "received.conf"
#define DEVICES_OF_HOST "/sys/class/infiniband"

enum { DIRECTORY_PATH = POLICY_PATH };

static int fleet_path_print(const char *directory, const char *name, char ret_path[DIRECTORY_PATH],
		      char problem[PROBLEM_SIZE])
{
	if (snprintf(ret_path, DIRECTORY_PATH, "%s/%s", directory, name) < DIRECTORY_PATH)
		return 0;
	return problem_set(-ENAMETOOLONG, problem, "%.300s: name too long", directory);
}

int fleet_directory_take(const char *directory, char problem[PROBLEM_SIZE])
{
	int result = file_make_directories(directory, 0755, 0755, false), fd;

	if (result < 0)
		return problem_set(result, problem, "%.300s: cannot be made: %s", directory,
				   strerror(-result));
	/* Until the process ends: two would divide one host's files. */
	fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0 && !flock(fd, LOCK_EX | LOCK_NB))
		return 0;
	result = -errno;
	if (fd >= 0)
		close(fd);
	return result == -EWOULDBLOCK ?
		       problem_set(-EBUSY, problem, "%.300s: another rdma_fleet uses it", directory) :
		       problem_set(result, problem, "%.300s: %s", directory, strerror(-result));
}

struct file_text {
	const char *text;
	size_t length;
};

static int file_text_print(FILE *file, const void *closure)
{
	const struct file_text *text = closure;

	return fwrite(text->text, 1, text->length, file) == text->length &&
			       !fchmod(fileno(file), 0644) ?
		       0 :
		       -EIO;
}

static int file_put(const char *directory, const char *name, const struct file_text *text,
		    char problem[PROBLEM_SIZE])
{
	char path[DIRECTORY_PATH];
	int result = fleet_path_print(directory, name, path, problem);

	if (result < 0)
		return result;
	result = file_replace(path, file_text_print, text);
	return result < 0 ? problem_set(result, problem, "%.300s: %s", path, strerror(-result)) : 0;
}

char *fleet_file_text(const char *directory, const char *name)
{
	char path[DIRECTORY_PATH], problem[PROBLEM_SIZE];
	char *text = malloc(POLICY_FILE_MOST + 2);

	if (!text || fleet_path_print(directory, name, path, problem) < 0 ||
	    file_read_small(path, text, POLICY_FILE_MOST + 2) < 0) {
		free(text);
		return NULL;
	}
	return text;
}

int fleet_file_write(const char *directory, const char *name, const char *text,
		     char problem[PROBLEM_SIZE])
{
	char *before = fleet_file_text(directory, name);
	bool same = before && !strcmp(before, text);

	free(before);
	return same ? 0 :
		      file_put(directory, name, &(struct file_text){ text, strlen(text) }, problem);
}

int fleet_lease_write(const char *directory, uint64_t until_ns, char problem[PROBLEM_SIZE])
{
	char text[FLEET_LEASE_TEXT];
	int result = policy_fleet_lease_print(until_ns, text);

	if (result < 0)
		return problem_set(result, problem, "the kernel does not tell the boot's id: %s",
				   strerror(-result));
	return file_put(directory, FLEET_LEASE, &(struct file_text){ text, strlen(text) }, problem);
}

static int report_verdict(const struct policy *policy, const char *path, char problem[PROBLEM_SIZE])
{
	const struct policy_report *report = policy->report;

	for (unsigned i = 0; i < report->count; i++) {
		const struct policy_finding *finding = &report->finding[i];

		if (policy_check_is_error(finding->check))
			return problem_set(-EINVAL, problem, "line %u: %.500s", finding->line,
					   finding->text);
	}
	return policy_fleet_check(policy, path, problem);
}

/* The file is there; it stays if it is in order. */
static int received_check(const char *path, char problem[PROBLEM_SIZE])
{
	struct policy_report report = { .count = 0 };
	struct policy *policy = policy_new();
	int result = -ENOMEM;

	if (policy) {
		policy->report = &report;
		result = policy_check(policy, path, DEVICES_OF_HOST);
	}
	if (result < 0)
		problem_set(result, problem, "the policy cannot be checked: %s", strerror(-result));
	else
		result = report_verdict(policy, path, problem);
	policy_free(policy);
	policy_report_free(&report);
	return result;
}

static int received_write(const char *directory, const char *text, size_t length,
			  char ret_path[DIRECTORY_PATH], char problem[PROBLEM_SIZE])
{
	int result;

	if (length > POLICY_FILE_MOST)
		return problem_set(-EINVAL, problem, "policy too large: expected at most 1 MiB");
	if (length && text[length - 1] != '\n')
		return problem_set(-EINVAL, problem,
				   "the last line has no newline at its end: the policy may be cut");
	result = fleet_path_print(directory, RECEIVED, ret_path, problem);
	if (result == 0)
		result = file_put(directory, RECEIVED, &(struct file_text){ text, length }, problem);
	return result;
}

int fleet_policy_check(const char *directory, const char *text, size_t length,
		       char problem[PROBLEM_SIZE])
{
	char path[DIRECTORY_PATH];
	int result = received_write(directory, text, length, path, problem);

	if (result < 0)
		return result;
	result = received_check(path, problem);
	unlink(path);
	return result;
}

int fleet_policy_write(const char *directory, const char *text, size_t length,
		       char problem[PROBLEM_SIZE])
{
	char path[DIRECTORY_PATH], place[DIRECTORY_PATH] = "";
	int result = received_write(directory, text, length, path, problem);

	if (result == 0)
		result = fleet_path_print(directory, FLEET_POLICY, place, problem);
	if (result == 0)
		result = received_check(path, problem);
	if (result == 0 && rename(path, place))
		result = problem_set(-errno, problem, "%.300s: %s", place, strerror(errno));
	if (result < 0)
		unlink(path);
	return result;
}
