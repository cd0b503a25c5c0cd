/* SPDX-License-Identifier: MIT */
/* What of a cgroup's path is believed: names that only root can have given. */
#include "collector/subject.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"

static char root[256];

/* Makes a directory below the stand-in for the hierarchy. */
static void make(const char *path, uid_t owner, mode_t mode)
{
	char whole[512];

	snprintf(whole, sizeof(whole), "%s%s", root, path);
	if (mkdir(whole, 0755) || chown(whole, owner, owner) || chmod(whole, mode))
		abort();
}

static void rooted(const char *cgroup, const char *expected)
{
	char found[SUBJECT_CGROUP];

	subject_rooted(root, cgroup, found);
	CHECK(!strcmp(found, expected), "%s: %s", cgroup, found);
}

/* A user who has a cgroup of his own makes others below it, named like those of batch systems and
 * containers. */
static void forged_names(void)
{
	static const char service[] = "/system.slice/web.service";
	char container[2 * NAME_SIZE], job[NAME_SIZE], found[SUBJECT_CGROUP];

	if (geteuid())
		skip("this test needs root, to give directories to a user");
	snprintf(root, sizeof(root), "%s", harness_path("cgroup"));
	make("", 0, 0755);
	make("/slurm", 0, 0755);
	make("/slurm/uid_7", 0, 0755);
	make("/slurm/uid_7/job_1", 7, 0755);
	make("/slurm/uid_7/job_1/step", 7, 0755);
	make("/slurm/uid_8", 8, 0755);
	make("/slurm/uid_8/job_2", 8, 0755);
	make("/slurm/uid_9", 0, 0777);
	make("/slurm/uid_9/job_3", 0, 0755);
	make("/system.slice", 0, 0755);
	make(service, 7, 0755);
	make("/system.slice/web.service/lxc.payload.web", 7, 0755);
	/* What root made counts, also if it was given away; what is below does not. */
	rooted("/slurm/uid_7/job_1", "/slurm/uid_7/job_1");
	rooted("/slurm/uid_7/job_1/step", "/slurm/uid_7/job_1");
	rooted("/slurm/uid_8/job_2", "/slurm/uid_8");
	rooted("/slurm/uid_9/job_3", "/slurm/uid_9");
	rooted("/system.slice/web.service/lxc.payload.web", service);
	/* What does not exist, and ways out. */
	rooted("/slurm/uid_7/job_5", "/slurm/uid_7");
	rooted("/../slurm/uid_7/job_1", "");
	rooted("/", "");
	rooted("", "");
	subject_rooted(root, "/system.slice/web.service/lxc.payload.web", found);
	policy_labels(found, container, job);
	CHECK(!container[0] && !job[0], "%s %s", container, job);
}

static void driver(void)
{
	RUN(forged_names);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
