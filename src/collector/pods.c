/* SPDX-License-Identifier: MIT */
/* Names of pods from the directory of their logs; see pods.h. */
#include "collector/pods.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "policy/policy.h"

enum {
	PODS_BUCKETS = 4096,
	PODS_MOST = 32768,    /* names, also those that are read of a larger directory */
	PODS_GONE_MOST = 4096, /* of these, of directories that were removed */
	/* A change of the directory may carry the same time as one before it. */
	PODS_SETTLED_S = 2,
	NAMESPACE_MOST = NAME_SIZE - 1,
	POD_NAME_MOST = 253,
};

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define NAMESPACE_CHARACTERS LOWER "0123456789-"

/* A pod's UID is never used again, so what was read once stays true. */
struct pod {
	struct pod *next;
	unsigned seen; /* the number of the read that found it last */
	bool asked;    /* for it; it is kept when its directory is gone */
	char uid[NAME_SIZE];
	char name[]; /* NAMESPACE/NAME */
};

struct pods {
	struct log *log;
	char directory[POLICY_PATH];
	struct pod *bucket[PODS_BUCKETS];
	unsigned count, reads;
	struct stat last; /* of the directory as it was read last; all 0: it was not */
	time_t read_at;
	int told; /* the problem that the log has, as -errno; 0: none */
	struct log_seldom missed;
};

bool pods_name_parse(const char *name, char ret_pod[POD_SIZE], char ret_uid[NAME_SIZE])
{
	const char *first = strchr(name, '_'), *last = strrchr(name, '_');
	size_t namespace, pod, uid;

	if (!first || first == last)
		return false;
	namespace = (size_t)(first - name);
	pod = (size_t)(last - first) - 1;
	uid = strlen(last + 1);
	if (!namespace || namespace > NAMESPACE_MOST || !pod || pod > POD_NAME_MOST || !uid ||
	    uid >= NAME_SIZE || strspn(name, NAMESPACE_CHARACTERS) != namespace ||
	    strspn(first + 1, NAMESPACE_CHARACTERS ".") != pod ||
	    strspn(last + 1, POLICY_POD_UID_CHARACTERS) != uid)
		return false;
	snprintf(ret_pod, POD_SIZE, "%.*s/%.*s", (int)namespace, name, (int)pod, first + 1);
	snprintf(ret_uid, NAME_SIZE, "%s", last + 1);
	return true;
}

/* ---- the table */

static struct pod **pod_bucket(struct pods *pods, const char *uid)
{
	uint32_t hash = 2166136261u;

	for (; *uid; uid++)
		hash = (hash ^ (unsigned char)*uid) * 16777619u;
	return &pods->bucket[hash % PODS_BUCKETS];
}

static struct pod *pod_known(struct pods *pods, const char *uid)
{
	struct pod *pod = *pod_bucket(pods, uid);

	while (pod && strcmp(pod->uid, uid))
		pod = pod->next;
	return pod;
}

static void pod_add(struct pods *pods, const char *uid, const char *name)
{
	struct pod **bucket = pod_bucket(pods, uid), *pod = pod_known(pods, uid);

	if (pod) {
		pod->seen = pods->reads;
		return;
	}
	/* Without memory it is a pod without a name until the next read. */
	pod = calloc(1, sizeof(*pod) + strlen(name) + 1);
	if (!pod)
		return;
	pod->seen = pods->reads;
	strcpy(pod->uid, uid);
	strcpy(pod->name, name);
	pod->next = *bucket;
	*bucket = pod;
	pods->count++;
}

/* Whose directory is gone goes, too; those that were asked for only when they are many. */
static void pods_sort_out(struct pods *pods, bool all)
{
	unsigned gone = 0;

	for (unsigned i = 0; i < PODS_BUCKETS; i++)
		for (struct pod **link = &pods->bucket[i], *pod; (pod = *link);) {
			if (pod->seen == pods->reads || (pod->asked && !all)) {
				gone += pod->seen != pods->reads;
				link = &pod->next;
				continue;
			}
			*link = pod->next;
			pods->count--;
			free(pod);
		}
	if (gone > PODS_GONE_MOST)
		pods_sort_out(pods, true);
}

/* ---- the directory */

static int pods_complain(struct pods *pods, int result, const char *problem)
{
	if (pods->told != result)
		log_write(pods->log, LOG_WARN,
			  "pods: %s: %s: the names of pods are not known, and processes of pods "
			  "meet no pod= and no namespace=",
			  pods->directory, problem);
	pods->told = result;
	return result;
}

/* Names count if root alone, or whom the collector runs as, can have given them. */
static bool pods_directory_is_trusted(const struct stat *status)
{
	return (status->st_uid == 0 || status->st_uid == geteuid()) && !(status->st_mode & 022);
}

/* Whether a read would find what the last one has found. */
static bool pods_directory_is_same(const struct pods *pods, const struct stat *status)
{
	return pods->last.st_dev == status->st_dev && pods->last.st_ino == status->st_ino &&
	       pods->last.st_mtim.tv_sec == status->st_mtim.tv_sec &&
	       pods->last.st_mtim.tv_nsec == status->st_mtim.tv_nsec &&
	       pods->read_at >= status->st_mtim.tv_sec + PODS_SETTLED_S;
}

static void pods_directory_read(struct pods *pods, DIR *directory)
{
	char name[POD_SIZE], uid[NAME_SIZE];
	const struct dirent *entry;
	unsigned found = 0;

	pods->reads++;
	while (found < PODS_MOST && (entry = readdir(directory))) {
		if ((entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN) ||
		    !pods_name_parse(entry->d_name, name, uid))
			continue;
		pod_add(pods, uid, name);
		found++;
	}
	if (found == PODS_MOST)
		pods_complain(pods, -E2BIG, "more than 32768 directories of pods");
	else
		pods->told = 0;
	pods_sort_out(pods, false);
}

static int pods_read(struct pods *pods)
{
	struct stat status;
	struct timespec now;
	DIR *directory;
	int fd = open(pods->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return pods_complain(pods, -errno, strerror(errno));
	if (fstat(fd, &status) < 0 || !pods_directory_is_trusted(&status)) {
		close(fd);
		return pods_complain(pods, -EPERM,
				     "expected a directory of root that only root can write");
	}
	if (pods_directory_is_same(pods, &status)) {
		close(fd);
		return 0;
	}
	directory = fdopendir(fd);
	if (!directory) {
		close(fd);
		return pods_complain(pods, -ENOMEM, strerror(ENOMEM));
	}
	clock_gettime(CLOCK_REALTIME, &now);
	pods->last = status;
	pods->read_at = now.tv_sec;
	pods_directory_read(pods, directory);
	closedir(directory);
	return 0;
}

/* ---- open, asked and closed */

struct pods *pods_new(const char *directory, struct log *log)
{
	struct pods *pods = calloc(1, sizeof(*pods));

	if (!pods)
		return NULL;
	pods->log = log;
	snprintf(pods->directory, sizeof(pods->directory), "%s", directory);
	return pods;
}

void pods_free(struct pods *pods)
{
	if (!pods)
		return;
	pods->reads++;
	pods_sort_out(pods, true);
	free(pods);
}

bool pods_find(struct pods *pods, const char *uid, char ret_pod[POD_SIZE])
{
	struct pod *pod = pod_known(pods, uid);

	if (!pod && pods_read(pods) == 0) {
		pod = pod_known(pods, uid);
		if (!pod)
			log_seldom(pods->log, &pods->missed, LOG_WARN,
				   "pods: %s: no directory of the pod %s: its processes meet no "
				   "pod= and no namespace=",
				   pods->directory, uid);
	}
	if (!pod)
		return false;
	pod->asked = true;
	strcpy(ret_pod, pod->name);
	return true;
}

unsigned pods_reads(const struct pods *pods)
{
	return pods->reads;
}
