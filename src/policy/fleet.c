/* SPDX-License-Identifier: MIT */
/* The directory between rdma_fleet and the collector; see fleet.h. */
#include "policy/fleet.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "policy/keys.h"
#include "policy/reader.h"

#define BOOT_ID "/proc/sys/kernel/random/boot_id"

struct fleet_directory {
	const char *path;
	int fd;
	uid_t owner;
	uint64_t sum; /* of all texts so far */
	char *problem;
};

static int boot_id_read(char ret_id[FLEET_LEASE_TEXT / 2])
{
	ssize_t length = file_read_small(BOOT_ID, ret_id, FLEET_LEASE_TEXT / 2);

	if (length < 0)
		return (int)length;
	ret_id[strcspn(ret_id, "\n")] = '\0';
	return *ret_id ? 0 : -ENODATA;
}

int policy_fleet_lease_print(uint64_t until_ns, char ret_text[FLEET_LEASE_TEXT])
{
	char id[FLEET_LEASE_TEXT / 2];
	int result = boot_id_read(id);

	if (result == 0)
		snprintf(ret_text, FLEET_LEASE_TEXT, "%s %" PRIu64 "\n", id, until_ns);
	return result;
}

static bool owner_is_trusted(const struct fleet_directory *directory, const struct stat *status)
{
	return (status->st_uid == 0 || status->st_uid == directory->owner) &&
	       !(status->st_mode & (S_IWGRP | S_IWOTH));
}

static int fleet_directory_open(struct fleet_directory *directory)
{
	const struct policy_source source = { .file = directory->path,
					      .problem = directory->problem };
	struct stat status;

	directory->fd = open(directory->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (directory->fd < 0)
		return policy_fail_errno(&source, -errno);
	if (fstat(directory->fd, &status))
		return policy_fail_errno(&source, -errno);
	directory->owner = status.st_uid;
	if (owner_is_trusted(directory, &status))
		return 0;
	return policy_fail(&source, -EPERM,
			   "not trusted: expected a directory that only its owner can write");
}

/* The text of a file that may be trusted, with room for a NUL; its length, or -errno. */
static ssize_t fleet_file_take(const struct fleet_directory *directory, const char *name,
			       const struct policy_source *source, char **ret_text)
{
	int fd = openat(directory->fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	struct stat status;
	ssize_t length;
	char *text;

	if (fd < 0 && errno == ENOENT)
		return -ENOENT;
	if (fd < 0 || fstat(fd, &status)) {
		length = policy_fail_errno(source, -errno);
		goto end;
	}
	if (!S_ISREG(status.st_mode) || !owner_is_trusted(directory, &status)) {
		length = policy_fail(source, -EPERM,
				     "not trusted: expected a regular file that belongs to the "
				     "owner of the directory and that only its owner can write");
		goto end;
	}
	text = malloc(POLICY_FILE_MOST + 1);
	length = text ? file_read(fd, text, POLICY_FILE_MOST + 1) : -ENOMEM;
	if (length > POLICY_FILE_MOST)
		length = policy_fail(source, -EFBIG, "file too large: expected at most 1 MiB");
	else if (length < 0)
		length = policy_fail_errno(source, (int)length);
	if (length < 0)
		free(text);
	else
		*ret_text = text;
end:
	if (fd >= 0)
		close(fd);
	return length;
}

int policy_fleet_check(const struct policy *policy, const char *file, char problem[PROBLEM_SIZE])
{
	const struct policy_source source = { .file = file, .problem = problem };

	for (const struct policy_key *key = policy_keys; key < policy_keys + POLICY_KEYS; key++) {
		struct policy_place place = { .next = 0 };

		if (key->sections & POLICY_IN_COLLECTOR && policy_key_next(key, policy, &place))
			return policy_fail(&source, -EINVAL,
					   "[collector] %s: not allowed here: expected only [host], "
					   "[default] and [tenant NAME]",
					   key->name);
	}
	for (const struct policy_rule *rule = policy->rules; rule; rule = rule->next)
		if (rule->first)
			return policy_fail(&source, -EINVAL,
					   "[tenant %s] match: " POLICY_FIRST
					   " is not allowed here: expected it in files of the host",
					   rule->tenant->name);
	return 0;
}

/* FNV-1a: it notices changes, not attacks. */
static void fleet_sum_add(uint64_t *sum, const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		*sum = (*sum ^ (unsigned char)text[i]) * 0x100000001b3u;
}

static int fleet_file_read(struct fleet_directory *directory, const char *name,
			   struct policy *policy, bool *ret_exists)
{
	char path[POLICY_PATH + 32], *text = NULL;
	const struct policy_source source = { .file = path, .problem = directory->problem };
	ssize_t length;
	int result;

	snprintf(path, sizeof(path), "%s/%s", directory->path, name);
	length = fleet_file_take(directory, name, &source, &text);
	*ret_exists = length != -ENOENT;
	if (length < 0)
		return length == -ENOENT ? 0 : (int)length;
	fleet_sum_add(&directory->sum, name, strlen(name) + 1);
	fleet_sum_add(&directory->sum, text, (size_t)length);
	result = policy_read_text(policy, &source, false, text, (size_t)length);
	if (result == 0)
		result = policy_fleet_check(policy, path, directory->problem);
	free(text);
	return result;
}

/* A lease of another boot, or one that is not in order, has ended. */
static int fleet_lease_read(const struct fleet_directory *directory, uint64_t now_ns,
			    uint64_t *ret_until_ns)
{
	char path[POLICY_PATH + 32], id[FLEET_LEASE_TEXT / 2], *text = NULL, *end;
	const struct policy_source source = { .file = path, .problem = directory->problem };
	uint64_t until_ns = 0;
	ssize_t length;

	*ret_until_ns = 0;
	snprintf(path, sizeof(path), "%s/" FLEET_LEASE, directory->path);
	length = fleet_file_take(directory, FLEET_LEASE, &source, &text);
	if (length < 0)
		return length == -ENOENT ? 0 : (int)length;
	text[length] = '\0';
	if (boot_id_read(id) == 0 && !strncmp(text, id, strlen(id)) && text[strlen(id)] == ' ') {
		until_ns = strtoull(text + strlen(id) + 1, &end, 10);
		if (strcmp(end, "\n"))
			until_ns = 0;
	}
	free(text);
	if (until_ns > now_ns && until_ns - now_ns <= FLEET_LEASE_MOST_S * (uint64_t)CLOCK_SECOND_NS)
		*ret_until_ns = until_ns;
	return 0;
}

void policy_fleet_free(struct policy_fleet *fleet)
{
	policy_free(fleet->kept);
	policy_free(fleet->leased);
	*fleet = (struct policy_fleet){ .kept = NULL };
}

int policy_fleet_read(const char *path, uint64_t now_ns, struct policy_fleet *ret_fleet,
		      char problem[PROBLEM_SIZE])
{
	struct fleet_directory directory = { .path = path, .fd = -1, .sum = 0xcbf29ce484222325u, .problem = problem };
	struct policy_fleet fleet = { .kept = policy_new() };
	bool has_leased;
	int result = fleet.kept ? fleet_directory_open(&directory) : -ENOMEM;

	if (result == 0)
		result = fleet_lease_read(&directory, now_ns, &fleet.until_ns);
	if (result == 0)
		result = fleet_file_read(&directory, FLEET_POLICY, fleet.kept, &fleet.has_policy);
	if (result == 0)
		result = fleet_file_read(&directory, FLEET_KEPT, fleet.kept, &fleet.has_kept);
	if (result == 0 && fleet.until_ns) {
		fleet.leased = policy_merge(fleet.kept, NULL);
		result = fleet.leased ? fleet_file_read(&directory, FLEET_LEASED, fleet.leased,
						       &has_leased) :
				       -ENOMEM;
	}
	fleet.sum = directory.sum;
	if (directory.fd >= 0)
		close(directory.fd);
	if (result < 0)
		policy_fleet_free(&fleet);
	else
		*ret_fleet = fleet;
	return result;
}
