/* SPDX-License-Identifier: MIT */
/* Files for the collector; see directory.h. */
#include "fleet/directory.h"

#include <dirent.h>
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
#define BOOT_UNKNOWN "the kernel does not tell the boot's id: %s"

enum { DIRECTORY_PATH = POLICY_PATH };

static int fleet_path_print(const char *directory, const char *name, char ret_path[DIRECTORY_PATH],
		      char problem[PROBLEM_SIZE])
{
	if (snprintf(ret_path, DIRECTORY_PATH, "%s/%s", directory, name) < DIRECTORY_PATH)
		return 0;
	return problem_set(-ENAMETOOLONG, problem, "%.300s: name too long", directory);
}

/* "kept.conf.a1B2c3", as file_replace() calls a file before it is complete. */
static bool name_is_unfinished(const char *name)
{
	static const char *const names[] = { FLEET_POLICY, FLEET_KEPT, FLEET_LEASED, FLEET_LEASE,
					     RECEIVED };

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t length = strlen(names[i]);

		if (!strncmp(name, names[i], length) && name[length] == '.' &&
		    strlen(name + length + 1) == 6)
			return true;
	}
	return !strcmp(name, RECEIVED);
}

static void unfinished_remove(int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	DIR *files = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *file;

	if (!files && copy >= 0)
		close(copy);
	while (files && (file = readdir(files)))
		if (name_is_unfinished(file->d_name))
			unlinkat(fd, file->d_name, 0);
	if (files)
		closedir(files);
}

int fleet_directory_take(const char *directory, char problem[PROBLEM_SIZE])
{
	int result = file_make_directories(directory, 0755, 0755, false), fd;

	if (result < 0)
		return problem_set(result, problem, "%.300s: cannot be made: %s", directory,
				   strerror(-result));
	/* Until the process ends: two would divide one host's files. */
	fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0 && !flock(fd, LOCK_EX | LOCK_NB)) {
		unfinished_remove(fd);
		return 0;
	}
	result = -errno;
	if (fd >= 0)
		close(fd);
	return result == -EWOULDBLOCK ?
		       problem_set(-EBUSY, problem, "%.300s: another rdma_fleet uses it", directory) :
		       problem_set(result, problem, "%.300s: %s", directory, strerror(-result));
}

int fleet_identity_print(const char *directory, char ret_id[FLEET_IDENTITY],
			 char problem[PROBLEM_SIZE])
{
	char boot[FLEET_LEASE_TEXT];
	struct stat status;
	int result = policy_fleet_lease_print(0, boot);

	if (result < 0)
		return problem_set(result, problem, BOOT_UNKNOWN, strerror(-result));
	if (stat(directory, &status))
		return problem_set(-errno, problem, "%.300s: %s", directory, strerror(errno));
	snprintf(ret_id, FLEET_IDENTITY, "{\"boot\":\"%.*s\",\"directory\":\"%llx:%llx\"}",
		 (int)strcspn(boot, " "), boot, (unsigned long long)status.st_dev,
		 (unsigned long long)status.st_ino);
	return 0;
}

struct file_text {
	const char *text;
	size_t length;
	bool lasts; /* it must be there after a crash of the host, too */
};

static int file_text_print(FILE *file, const void *closure)
{
	const struct file_text *text = closure;

	if (fwrite(text->text, 1, text->length, file) != text->length || fflush(file) ||
	    fchmod(fileno(file), 0644) || (text->lasts && fsync(fileno(file))))
		return errno ? -errno : -EIO;
	return 0;
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
		      file_put(directory, name, &(struct file_text){ text, strlen(text), true },
			       problem);
}

int fleet_lease_write(const char *directory, uint64_t until_ns, char problem[PROBLEM_SIZE])
{
	char text[FLEET_LEASE_TEXT];
	int result = policy_fleet_lease_print(until_ns, text);

	if (result < 0)
		return problem_set(result, problem, BOOT_UNKNOWN, strerror(-result));
	/* After a crash it counts no more. */
	return file_put(directory, FLEET_LEASE, &(struct file_text){ text, strlen(text), false },
			problem);
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
		result = file_put(directory, RECEIVED, &(struct file_text){ text, length, true },
				  problem);
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
