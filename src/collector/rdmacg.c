/* SPDX-License-Identifier: MIT */
/* rdma.max; see rdmacg.h. */
#include "collector/rdmacg.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "terms/settings.h"

#define DEVICES_VARIABLE "RDMA_COLLECTOR_DEVICES" /* for tests: another place than */
#define DEVICES "/sys/class/infiniband"

enum { DEVICE_NAME = 64, FILE_TEXT = 16384 };

const struct rdmacg_limit rdmacg_unlimited = { "max", "max" };
static const struct rdmacg_limit rdmacg_forbidden = { "0", "0" };

static void rdmacg_number_print(char ret[RDMACG_NUMBER], uint64_t number)
{
	if (number >= INT_MAX)
		strcpy(ret, "max");
	else
		snprintf(ret, RDMACG_NUMBER, "%" PRIu64, number);
}

struct rdmacg_limit rdmacg_limit_of(const uint64_t limit[KIND_COUNT])
{
	struct rdmacg_limit ret = { 0 };
	uint64_t sum = 0;

	for (unsigned kind = 0; kind < KIND_COUNT; kind++)
		if (kind_rows[kind].rdmacg == RDMACG_OBJECT)
			sum = limit[kind] > INT_MAX || sum > INT_MAX ? INT_MAX : sum + limit[kind];
	rdmacg_number_print(ret.handles, limit[KIND_ctx]);
	rdmacg_number_print(ret.objects, sum);
	return ret;
}

bool rdmacg_is_same(const struct rdmacg_limit *a, const struct rdmacg_limit *b)
{
	return !strcmp(a->handles, b->handles) && !strcmp(a->objects, b->objects);
}

bool rdmacg_is_possible(const char *cgroup)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/rdma.max", cgroup);
	return !access(path, F_OK);
}

/* What a file says of a device: the last line counts; without one nothing is limited. */
static struct rdmacg_limit rdmacg_read(int fd, const char *device)
{
	static char text[FILE_TEXT];
	ssize_t length = pread(fd, text, sizeof(text) - 1, 0);
	struct rdmacg_limit ret = rdmacg_unlimited, found;
	char *line, *rest = text, name[DEVICE_NAME];

	text[length > 0 ? length : 0] = '\0';
	while ((line = strsep(&rest, "\n")))
		if (sscanf(line, "%63s hca_handle=%23s hca_object=%23s", name, found.handles,
			   found.objects) == 3 &&
		    !strcmp(name, device))
			ret = found;
	return ret;
}

/* Appended, since of files in place of the kernel's the last line counts. */
int rdmacg_write(const char *cgroup, const struct rdmacg_limit *limit, const char *patterns)
{
	const char *named = getenv(DEVICES_VARIABLE);
	DIR *devices = opendir(named && named[0] ? named : DEVICES);
	char path[PATH_MAX], line[DEVICE_NAME + 2 * RDMACG_NUMBER + 32];
	const struct rdmacg_limit *wanted;
	struct dirent *entry;
	struct rdmacg_limit now;
	unsigned count = 0;
	int fd, length, result = 0;

	snprintf(path, sizeof(path), "%s/rdma.max", cgroup);
	fd = open(path, O_RDWR | O_APPEND | O_CLOEXEC);
	if (fd < 0)
		result = -errno;
	while (fd >= 0 && devices && (entry = readdir(devices))) {
		if (entry->d_name[0] == '.' || strlen(entry->d_name) >= DEVICE_NAME)
			continue;
		count++;
		now = rdmacg_read(fd, entry->d_name);
		wanted = settings_device_matches(patterns, entry->d_name) ? limit :
									    &rdmacg_forbidden;
		if (rdmacg_is_same(&now, wanted))
			continue;
		length = snprintf(line, sizeof(line), "%.63s hca_handle=%s hca_object=%s\n",
				  entry->d_name, wanted->handles, wanted->objects);
		if (write(fd, line, (size_t)length) != length)
			result = -errno;
	}
	if (fd >= 0)
		close(fd);
	if (devices)
		closedir(devices);
	return result == 0 && !count ? -ENODEV : result;
}
