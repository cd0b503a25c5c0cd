/* SPDX-License-Identifier: MIT */
/*
 * Pods of Kubernetes: the namespace and the name that belong to a pod's UID. The kubelet of this host
 * makes a directory NAMESPACE_NAME_UID for each pod before it starts a container of it, for the logs;
 * the names of these directories are all that is read. Knows nothing of processes and of cgroups.
 */
#ifndef COLLECTOR_PODS_H
#define COLLECTOR_PODS_H

#include <stdbool.h>

#include "terms/placement.h"

/* Where kubelets have it, unless their configuration (podLogsDir) says otherwise. */
#define PODS_DIRECTORY "/var/log/pods"

struct log;
struct pods;

/* Reads nothing yet. NULL: out of memory. */
struct pods *pods_new(const char *directory, struct log *log);
void pods_free(struct pods *pods);

/* NAMESPACE/NAME of the pod with that UID; false, and the output untouched, if it is not known.
 * Reads the directory if it has changed and the UID is new. */
bool pods_find(struct pods *pods, const char *uid, char ret_pod[POD_SIZE]);

/* How often the directory was read, for tests. */
unsigned pods_reads(const struct pods *pods);

/* The name of such a directory as NAMESPACE/NAME and UID; false if it is another one. */
bool pods_name_parse(const char *name, char ret_pod[POD_SIZE], char ret_uid[NAME_SIZE]);

#endif
