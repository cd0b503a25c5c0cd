/* SPDX-License-Identifier: MIT */
/* The copy of the last good policy; see control.h. */
#include "collector/control.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/accounts.h"

/* Whether nobody else can have put something there. */
static int good_directory_check(const char *directory)
{
	struct stat status;

	if (lstat(directory, &status))
		return -errno;
	return S_ISDIR(status.st_mode) && status.st_uid == geteuid() && !(status.st_mode & 022) ?
		       0 :
		       -EPERM;
}

/* A name that tells which policy file it is a copy of. */
static int good_path_make(struct collector *collector, const char *directory)
{
	int length = snprintf(collector->good_path, sizeof(collector->good_path),
			      "%.250s/" CONTROL_GOOD "%s", directory, collector->policy_path);

	if (length >= (int)sizeof(collector->good_path))
		return -ENAMETOOLONG;
	for (char *at = collector->good_path + strlen(directory) + 1; (at = strchr(at, '/'));)
		*at = ':';
	return 0;
}

void control_recall(struct collector *collector, const char *directory)
{
	struct policy *good;
	char problem[PROBLEM_SIZE] = "";
	int result = good_path_make(collector, directory);

	if (result == 0)
		result = good_directory_check(directory);
	/* Better without the group of administrators than without limits. */
	accounts_do_without(collector, true);
	if (result == 0)
		result = control_read_own(collector, collector->good_path, false, &good, problem);
	accounts_do_without(collector, false);
	if (result == 0) {
		snprintf(good->file, sizeof(good->file), "%.255s", collector->good_path);
		control_adopt(&collector->files, good);
		return;
	}
	if (result != -ENOENT)
		log_write(&collector->log, LOG_ERROR, "the last good policy is lost: %s",
			  problem[0] ? problem : strerror(-result));
}

void control_keep(struct collector *collector)
{
	char directory[sizeof(collector->good_path)];
	int result;

	snprintf(directory, sizeof(directory), "%.*s",
		 (int)(strrchr(collector->good_path, '/') - collector->good_path),
		 collector->good_path);
	if (mkdir(directory, 0700) && errno != EEXIST)
		result = -errno;
	else
		result = good_directory_check(directory);
	if (result == 0 && !strcmp(collector->files->file, collector->policy_path))
		result = policy_write(collector->files, collector->good_path);
	else if (result == 0 && !collector->files->file[0] && unlink(collector->good_path) &&
		 errno != ENOENT)
		result = -errno;
	if (result < 0)
		log_write(
			&collector->log, LOG_WARN,
			"%s: %s: a collector that starts with a bad policy will not have this one",
			collector->good_path, strerror(-result));
}
