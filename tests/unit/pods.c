/* SPDX-License-Identifier: MIT */
/* The names of pods: which directories count, when they are read, and what is remembered. */
#include "collector/pods.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "harness.h"

#define UID "8cd1ab34-0123-4567-89ab-0123456789ab"
#define HASH "0123456789abcdef0123456789abcdef"

static struct log quiet = { .level = LOG_OFF };
static char root[256];

static void make(const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	if (mkdir(path, 0755))
		abort();
}

static void drop(const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	if (rmdir(path))
		abort();
}

/* As if the directory had last been changed long ago. */
static void settle(unsigned seconds)
{
	struct timespec times[2] = { { .tv_sec = 1000000000 + seconds } };

	times[1] = times[0];
	if (utimensat(AT_FDCWD, root, times, 0))
		abort();
}

static void known(struct pods *pods, const char *uid, const char *expected)
{
	char pod[POD_SIZE] = "";

	CHECK(pods_find(pods, uid, pod) == (expected[0] != '\0') && !strcmp(pod, expected),
	      "%s: %s", uid, pod);
}

static void names(void)
{
	static const struct {
		const char *name, *pod, *uid;
	} rows[] = {
		{ "default_web-0_" UID, "default/web-0", UID },
		{ "kube-system_etcd-node1.example_" HASH, "kube-system/etcd-node1.example", HASH },
		{ "a_b_c", "a/b", "c" },
		{ "", "", "" },
		{ "default", "", "" },
		{ "default_web", "", "" },
		{ "_web_" UID, "", "" },
		{ "default__" UID, "", "" },
		{ "default_web_", "", "" },
		{ "default_we_b_" UID, "", "" },
		{ "Default_web_" UID, "", "" },
		{ "de.fault_web_" UID, "", "" },
		{ "default_we/b_" UID, "", "" },
		{ "default_web_" UID "$", "", "" },
		{ "default_web_" HASH HASH, "", "" },
	};
	char pod[POD_SIZE], uid[NAME_SIZE], longest[400];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		bool good = pods_name_parse(rows[i].name, pod, uid);

		CHECK(good == (rows[i].pod[0] != '\0'), "%s", rows[i].name);
		CHECK(!good || (!strcmp(pod, rows[i].pod) && !strcmp(uid, rows[i].uid)), "%s: %s %s",
		      rows[i].name, pod, uid);
	}
	memset(longest, 'a', sizeof(longest));
	longest[63] = longest[63 + 1 + 253] = '_';
	strcpy(longest + 63 + 1 + 253 + 1, UID);
	CHECK(pods_name_parse(longest, pod, uid) && strlen(pod) == 63 + 1 + 253);
	memset(longest, 'a', sizeof(longest));
	longest[64] = longest[100] = '_';
	strcpy(longest + 101, UID);
	CHECK(!pods_name_parse(longest, pod, uid));
}

/* A directory that has not changed is not read again, whatever is asked for. */
static void reading(void)
{
	struct pods *pods = pods_new(root, &quiet);

	make("default_web-0_" UID);
	make("kube-system_etcd_" HASH);
	make("other");
	settle(0);
	CHECK(pods_reads(pods) == 0);
	known(pods, UID, "default/web-0");
	known(pods, HASH, "kube-system/etcd");
	known(pods, "other", "");
	known(pods, "absent", "");
	CHECK(pods_reads(pods) == 1);
	make("team-a_late_2");
	known(pods, "2", "team-a/late");
	CHECK(pods_reads(pods) == 2);
	/* It has changed now: the next change may have the same time. */
	known(pods, "absent", "");
	CHECK(pods_reads(pods) == 3);
	/* After the pod is gone: what was asked for is known, and the rest is not. */
	make("team-a_never_3");
	settle(1);
	known(pods, "absent", "");
	drop("team-a_late_2");
	drop("team-a_never_3");
	settle(2);
	known(pods, "absent", "");
	known(pods, "2", "team-a/late");
	known(pods, "3", "");
	drop("default_web-0_" UID);
	drop("kube-system_etcd_" HASH);
	drop("other");
	pods_free(pods);
}

/* A directory that another one takes the place of, or that appears late. */
static void late(void)
{
	struct pods *pods;
	char other[300];

	snprintf(other, sizeof(other), "%s/pods", root);
	pods = pods_new(other, &quiet);
	known(pods, UID, "");
	make("pods");
	make("pods/default_web-0_" UID);
	known(pods, UID, "default/web-0");
	drop("pods/default_web-0_" UID);
	drop("pods");
	make("pods");
	make("pods/default_web-1_1");
	known(pods, "1", "default/web-1");
	drop("pods/default_web-1_1");
	drop("pods");
	pods_free(pods);
}

/* Others could have made its directories. */
static void untrusted(void)
{
	struct pods *pods = pods_new(root, &quiet);

	make("default_web-0_" UID);
	if (chmod(root, 0775))
		abort();
	known(pods, UID, "");
	if (chmod(root, 0757))
		abort();
	known(pods, UID, "");
	if (geteuid() == 0) {
		if (chmod(root, 0755) || chown(root, 1000, 0))
			abort();
		known(pods, UID, "");
		if (chown(root, 0, 0))
			abort();
	}
	if (chmod(root, 0755))
		abort();
	CHECK(pods_reads(pods) == 0);
	known(pods, UID, "default/web-0");
	drop("default_web-0_" UID);
	pods_free(pods);
}

/* Many directories of pods that are gone: one read, and what it costs is printed. */
static void many(void)
{
	enum { STALE = 10000 };
	struct pods *pods = pods_new(root, &quiet);
	struct timespec begin, end;
	char name[64];

	for (unsigned i = 0; i < STALE; i++) {
		snprintf(name, sizeof(name), "namespace-%u_web-%u_%u", i % 100, i, i);
		make(name);
	}
	settle(0);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	known(pods, "4711", "namespace-11/web-4711");
	clock_gettime(CLOCK_MONOTONIC, &end);
	printf("%u directories: %ld us\n", STALE,
	       (end.tv_sec - begin.tv_sec) * 1000000 + (end.tv_nsec - begin.tv_nsec) / 1000);
	for (unsigned i = 0; i < STALE; i++) {
		char uid[16], expected[64];

		snprintf(uid, sizeof(uid), "%u", i);
		snprintf(expected, sizeof(expected), "namespace-%u/web-%u", i % 100, i);
		known(pods, uid, expected);
		known(pods, "absent", "");
	}
	CHECK(pods_reads(pods) == 1);
	for (unsigned i = 0; i < STALE; i++) {
		snprintf(name, sizeof(name), "namespace-%u_web-%u_%u", i % 100, i, i);
		drop(name);
	}
	/* All were asked for, and they are more than are kept without a directory. */
	settle(1);
	known(pods, "absent", "");
	known(pods, "4711", "");
	CHECK(pods_reads(pods) == 2);
	pods_free(pods);
}

static void driver(void)
{
	/* Thousands of directories take seconds on a disk that others use. */
	snprintf(root, sizeof(root), "/dev/shm/unit_pods.XXXXXX");
	if (!mkdtemp(root) || chmod(root, 0755))
		abort();
	RUN(names);
	RUN(reading);
	RUN(late);
	RUN(untrusted);
	RUN(many);
	rmdir(root);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
