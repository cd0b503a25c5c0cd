/* SPDX-License-Identifier: MIT */
/* Reading of subjects from /proc and the socket; see subject.h. */
#include "collector/subject.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "base/file.h"
#include "base/proc.h"
#include "collector/pods.h"

static bool directory_is_roots(int directory)
{
	struct stat status;

	return !fstat(directory, &status) && status.st_uid == 0 && !(status.st_mode & 022);
}

void subject_rooted(const char *hierarchy, const char *cgroup, char ret_rooted[SUBJECT_CGROUP])
{
	int directory = open(hierarchy, O_PATH | O_DIRECTORY | O_CLOEXEC), below;
	char name[NAME_MAX + 1];
	size_t used = 0;

	while (directory >= 0 && cgroup[0] == '/' && directory_is_roots(directory)) {
		size_t length = strcspn(cgroup + 1, "/");

		if (!length || length >= sizeof(name) || used + length + 2 > SUBJECT_CGROUP)
			break;
		snprintf(name, sizeof(name), "%.*s", (int)length, cgroup + 1);
		below = strcmp(name, "..") ? openat(directory, name,
						    O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) :
					     -1;
		close(directory);
		directory = below;
		if (directory < 0)
			break;
		memcpy(ret_rooted + used, cgroup, length + 1);
		used += length + 1;
		cgroup += length + 1;
	}
	if (directory >= 0)
		close(directory);
	ret_rooted[used] = '\0';
}

/* Where the hierarchy is that a line NUMBER:CONTROLLERS:PATH is about. */
static void cgroup_hierarchy_of(const char *controllers, char ret[PATH_MAX])
{
	if (strncmp(controllers, "name=", 5) == 0)
		controllers += 5;
	if (controllers[0])
		snprintf(ret, PATH_MAX, CGROUP_MOUNT "/%s", controllers);
	else
		snprintf(ret, PATH_MAX, "%s", cgroup_mount());
}

/* The path in the unified hierarchy if that is used, otherwise the first of the others
 * that says more than "/". Lines are NUMBER:CONTROLLERS:PATH. */
static void subject_cgroup_read(struct subject *subject, pid_t pid)
{
	char text[16384], hierarchy[PATH_MAX] = CGROUP_MOUNT, *line, *rest = text;

	strcpy(subject->cgroup, "/");
	subject->rooted[0] = '\0';
	if (proc_read(pid, "cgroup", text, sizeof(text)) <= 0)
		return;
	while ((line = strsep(&rest, "\n"))) {
		char *path = strchr(line, ':');

		path = path ? strchr(path + 1, ':') : NULL;
		if (!path || !strcmp(path, ":/"))
			continue;
		if (!strncmp(line, "0::", 3) || !strcmp(subject->cgroup, "/")) {
			snprintf(subject->cgroup, sizeof(subject->cgroup), "%s", path + 1);
			*path = '\0';
			cgroup_hierarchy_of(strchr(line, ':') + 1, hierarchy);
		}
	}
	subject_rooted(hierarchy, subject->cgroup, subject->rooted);
}

static void subject_complete(struct subject *subject, struct pods *pods, pid_t pid)
{
	subject->policy.group = subject->group;
	subject->policy.cgroup = subject->cgroup;
	subject->policy.rooted = subject->rooted;
	subject_cgroup_read(subject, pid);
	policy_labels(subject->rooted, subject->container, subject->job);
	subject->pod_uid[0] = subject->pod[0] = '\0';
	if (policy_pod_uid(subject->rooted, subject->pod_uid) &&
	    pods_find(pods, subject->pod_uid, subject->pod))
		subject->policy.pod = subject->pod;
}

void subject_of_peer(struct subject *subject, struct pods *pods, int connection, pid_t pid,
		     uid_t uid, gid_t gid)
{
	socklen_t size = sizeof(subject->group);

	subject->policy = (struct policy_subject){ .uid = uid, .gid = gid };
	if (!getsockopt(connection, SOL_SOCKET, SO_PEERGROUPS, subject->group, &size))
		subject->policy.groups = size / sizeof(subject->group[0]);
	subject_complete(subject, pods, pid);
}

/* "Uid:\t1000\t1000..." : the effective one is the second */
static unsigned long subject_status_number(const char *text, const char *label)
{
	unsigned long real = 0, effective = 0;
	const char *line = strstr(text, label);

	if (line)
		sscanf(line + strlen(label), "%lu %lu", &real, &effective);
	return effective;
}

int subject_of_process(struct subject *subject, struct pods *pods, pid_t pid)
{
	char text[8192], *groups, *end;

	if (proc_read(pid, "status", text, sizeof(text)) <= 0)
		return -ESRCH;
	subject->policy = (struct policy_subject){
		.uid = (uid_t)subject_status_number(text, "\nUid:"),
		.gid = (gid_t)subject_status_number(text, "\nGid:"),
	};
	groups = strstr(text, "\nGroups:");
	for (groups += groups ? strlen("\nGroups:") : 0;
	     groups && subject->policy.groups < SUBJECT_GROUPS; groups = end) {
		unsigned long group;

		while (*groups == ' ' || *groups == '\t')
			groups++;
		group = strtoul(groups, &end, 10);
		if (end == groups)
			break;
		subject->group[subject->policy.groups++] = (gid_t)group;
	}
	subject_complete(subject, pods, pid);
	return 0;
}
