/* SPDX-License-Identifier: MIT */
/* What the kernel says of a process, for the rules of the policy. */
#ifndef COLLECTOR_SUBJECT_H
#define COLLECTOR_SUBJECT_H

#include "policy/policy.h"

struct pods;

enum { SUBJECT_GROUPS = 256, SUBJECT_CGROUP = 1024 };

struct subject {
	struct policy_subject policy; /* its pointers lead into this structure */
	gid_t group[SUBJECT_GROUPS];
	char cgroup[SUBJECT_CGROUP];
	char rooted[SUBJECT_CGROUP];
	char container[2 * NAME_SIZE];
	char job[NAME_SIZE];
	char pod_uid[NAME_SIZE]; /* "": in no pod */
	char pod[POD_SIZE];	 /* NAMESPACE/NAME; "": in no pod, or its name is not known */
};

/*
 * The beginning of a cgroup's path whose names only root can have given: up to the first directory
 * below `hierarchy` that belongs to another user, or that others may write to. Who is given a
 * cgroup can make others below it, and call them what he likes.
 */
void subject_rooted(const char *hierarchy, const char *cgroup, char ret_rooted[SUBJECT_CGROUP]);

/* The process at the other end of a connection, with the credentials it connected with. */
void subject_of_peer(struct subject *subject, struct pods *pods, int connection, pid_t pid,
		     uid_t uid, gid_t gid);

/* Any process; -ESRCH. */
int subject_of_process(struct subject *subject, struct pods *pods, pid_t pid);

#endif
