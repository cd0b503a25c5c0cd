/* SPDX-License-Identifier: MIT */
/*
 * rdma.max of a tenant's cgroups: the collector writes it below the limits of the guard, and only
 * where something changes. Cgroups and devices are directories; collector and command are real.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fixture.h"
#include "guardfiles.h"
#include "harness.h"
#include "kernel.h"

/* The last line that a file has for a device, and how many. */
static const char *floor_of(const char *cgroup, const char *device, unsigned *ret_lines)
{
	static char last[128];
	char path[300], line[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/rdma.max", cgroup_path(cgroup));
	file = fopen(path, "re");
	last[0] = '\0';
	*ret_lines = 0;
	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, device, strlen(device))) {
			line[strcspn(line, "\n")] = '\0';
			strcpy(last, line);
			++*ret_lines;
		}
	if (file)
		fclose(file);
	return last;
}

static bool floor_is(const char *cgroup, const char *line, unsigned lines)
{
	char device[32];
	unsigned found;

	snprintf(device, sizeof(device), "%.*s", (int)strcspn(line, " "), line);
	return !strcmp(floor_of(cgroup, device, &found), line) && found == lines;
}

static void floor_make(const char *cgroup)
{
	char path[300];
	int fd;

	snprintf(path, sizeof(path), "%s/rdma.max", cgroup_path(cgroup));
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0)
		abort();
	close(fd);
}

static void floor_below_limits(void)
{
	static const char all[] =
		"pd = 1\ncq = 2\nqp = 3\nsrq = 4\nmr = 5\nmw = 6\nah = 7\nxrcd = 8\n"
		"wq = 9\nrwq_table = 10\nflow = 11\nmr_bytes = 4096\n";
	char policy[512], path[160];

	floor_make("/a");
	snprintf(path, sizeof(path), "%s/rxe0", guard_devices);
	mkdir(path, 0755);
	snprintf(policy, sizeof(policy), "[tenant a]\nmatch = cgroup=/a\nctx = 12\n%sguard = on\n",
		 all);
	collector_fresh(policy, guard_variables);
	/* Without a guard it is all there is. */
	CHECK(floor_is("/a", "rxe0 hca_handle=12 hca_object=66", 1));
	CHECK(guard_is("a", GUARANTEE_FLOOR, "no rdma_monitor is loaded") &&
	      guard_row("a").floor == 1);
	CHECK(strstr(command_output("guard status"), "rdma.max only: "));
	/* Written only where something is to be changed. */
	usleep((useconds_t)(SAMPLE * 1e6));
	CHECK(floor_is("/a", "rxe0 hca_handle=12 hca_object=66", 1));
	snprintf(path, sizeof(path), "%s/rxe1", guard_devices);
	mkdir(path, 0755);
	EVENTUALLY(floor_is("/a", "rxe1 hca_handle=12 hca_object=66", 1));
	CHECK(collector_set("tenant a", "flow = unlimited") == 0);
	CHECK(floor_is("/a", "rxe0 hca_handle=12 hca_object=max", 2));
	CHECK(collector_set("tenant a", "flow = unset\nctx = unlimited") == 0);
	CHECK(floor_is("/a", "rxe0 hca_handle=max hca_object=66", 3));
	CHECK(collector_set("tenant a", "mode = warn") == 0);
	CHECK(floor_is("/a", "rxe0 hca_handle=max hca_object=max", 4) &&
	      guard_is("a", GUARANTEE_NONE, "mode is warn"));
	CHECK(collector_set("tenant a", "mode = unset") == 0);
	CHECK(floor_is("/a", "rxe0 hca_handle=max hca_object=66", 5));
	/* Nothing to hold anybody to is no floor. */
	CHECK(collector_set("tenant a", "pd = unlimited") == 0);
	CHECK(floor_is("/a", "rxe0 hca_handle=max hca_object=max", 6) &&
	      guard_is("a", GUARANTEE_NONE, "no rdma_monitor"));
	CHECK(collector_set("tenant a", "pd = unset") == 0);
	/* With a guard it stays below it. */
	guard_load(guard_usual());
	EVENTUALLY(guard_is("a", GUARANTEE_KERNEL, ""));
	CHECK(guard_row("a").floor == 1);
	/* Off, also by one who did not set it; and what others set stays. */
	collector_kill();
	guard_unload();
	collector_policy("[tenant a]\nmatch = cgroup=/a\n");
	CHECK(floor_is("/a", "rxe0 hca_handle=max hca_object=66", 7));
	collector_start(guard_variables);
	CHECK(collector_set("tenant a", "guard = off") == 0);
	CHECK(floor_is("/a", "rxe0 hca_handle=max hca_object=max", 8));
	floor_make("/b");
	collector_stop();
	collector_policy("[tenant b]\nmatch = cgroup=/b\nqp = 1\n");
	collector_start(guard_variables);
	usleep((useconds_t)(SAMPLE * 1e6));
	CHECK(floor_is("/a", "rxe0 hca_handle=max hca_object=max", 8));
	CHECK(floor_is("/b", "", 0), "a tenant that is not guarded");
	collector_stop();
}

static void drive(void)
{
	guard_files_prepare();
	RUN(floor_below_limits);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, drive);
}
