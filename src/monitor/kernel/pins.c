/* SPDX-License-Identifier: MIT */
/* Maps, links and iterators that are pinned; see pins.h. */
#include "monitor/kernel/pins.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <time.h>
#include <unistd.h>

enum {
	COMPLAINT = 512,
	MOMENT_MS = 50,
	/* Places in a table. Where memory is taken as needed, an empty one costs 16 bytes: */
	PLACES_LEAST = 1 << 20,
	PLACES_MOST = 1 << 22,
	PLACE_MEMORY = 8192, /* of the machine, for each place in between */
};

/* ---- libbpf's complaints */

static char complaint[COMPLAINT]; /* the first of a call */

static int complaint_note(enum libbpf_print_level level, const char *format, va_list arguments)
{
	if (getenv("RDMA_MONITOR_DEBUG"))
		return vfprintf(stderr, format, arguments);
	if (level == LIBBPF_WARN && !complaint[0]) {
		vsnprintf(complaint, sizeof(complaint), format, arguments);
		complaint[strcspn(complaint, "\n")] = '\0';
	}
	return 0;
}

void pins_listen(void)
{
	libbpf_set_print(complaint_note);
}

/* ---- the directory */

bool pins_is_bpf(const char *path)
{
	struct statfs where;

	return !statfs(path, &where) && where.f_type == BPF_FS_MAGIC;
}

void pins_path(const char *directory, const char *kind, const char *name, char ret[PATH_MAX])
{
	if (snprintf(ret, PATH_MAX, "%s/%s%s", directory, kind, name) >= PATH_MAX)
		ret[0] = '\0';
}

int pins_directory_make(const char *directory, char problem[PROBLEM_SIZE])
{
	char parent[PATH_MAX], links[PATH_MAX + 8];
	char *slash;

	snprintf(parent, sizeof(parent), "%s", directory);
	slash = strrchr(parent, '/');
	if (!slash || slash == parent)
		return problem_set(-EINVAL, problem, "%s: cannot pin here: expected a directory of a bpf file system", directory);
	*slash = '\0';
	if (!pins_is_bpf(parent) &&
	    (strcmp(parent, "/sys/fs/bpf") || mount("bpf", parent, "bpf", 0, NULL)))
		return problem_set(-ENODEV, problem,
				   "%s: not a bpf file system: mount one with mount -t bpf bpf %s", parent,
				   parent);
	snprintf(links, sizeof(links), "%s/links", directory);
	if ((mkdir(directory, 0755) && errno != EEXIST) || (mkdir(links, 0755) && errno != EEXIST))
		return problem_set(-errno, problem, "%s: %s", directory, strerror(errno));
	return 0;
}

int pins_remove(const char *path)
{
	DIR *directory = opendir(path);
	struct dirent *entry;
	char name[PATH_MAX];
	int result = 0;

	if (!directory)
		return -errno;
	while ((entry = readdir(directory))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") ||
		    snprintf(name, sizeof(name), "%s/%s", path, entry->d_name) >= (int)sizeof(name))
			continue;
		if (unlink(name) && (errno == EISDIR || errno == EPERM) && pins_remove(name) < 0)
			result = -EBUSY;
	}
	closedir(directory);
	if (rmdir(path))
		result = -errno;
	return result;
}

/* ---- objects and maps */

void pins_object(const char *directory, struct bpf_object *object)
{
	struct bpf_program *each;
	struct bpf_map *map;
	char path[PATH_MAX];

	bpf_object__for_each_map(map, object)
	{
		if (bpf_map__is_internal(map))
			continue;
		pins_path(directory, "", bpf_map__name(map), path);
		bpf_map__set_pin_path(map, path);
	}
	bpf_object__for_each_program(each, object) bpf_program__set_autoload(each, false);
}

/* In a table that has an entry for each object. */
unsigned pins_places(void)
{
	__u64 memory = (__u64)sysconf(_SC_PHYS_PAGES) * (__u64)sysconf(_SC_PAGESIZE),
	      count = PLACES_LEAST;

	while (count < PLACES_MOST && count < memory / PLACE_MEMORY)
		count *= 2;
	return (unsigned)count;
}

unsigned pins_size(const char *directory, struct bpf_map *map, unsigned places)
{
	struct bpf_map_info info = { 0 };
	__u32 size = sizeof(info);
	int fd = pins_open(directory, bpf_map__name(map));

	if (fd >= 0) {
		if (!bpf_obj_get_info_by_fd(fd, &info, &size))
			places = info.max_entries;
		close(fd);
	}
	bpf_map__set_max_entries(map, places);
	return places;
}

int pins_load(struct bpf_object *object, char problem[PROBLEM_SIZE])
{
	int result;

	complaint[0] = '\0';
	result = bpf_object__load(object);
	if (result < 0)
		return problem_set(result, problem,
				   "the kernel rejected the BPF programs: %s (%s)",
				   strerror(-result), complaint);
	return 0;
}

int pins_open(const char *directory, const char *name)
{
	char path[PATH_MAX];

	pins_path(directory, "", name, path);
	return bpf_obj_get(path);
}

void *pins_memory(const char *directory, const char *name, size_t bytes)
{
	int fd = pins_open(directory, name);
	void *memory = MAP_FAILED;

	if (fd >= 0) {
		memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		close(fd);
	}
	return memory == MAP_FAILED ? NULL : memory;
}

/* ---- links */

int pins_attach(const char *directory, struct bpf_program *prog, const char *pin,
		struct bpf_link **ret_link, char problem[PROBLEM_SIZE])
{
	struct bpf_link *link;
	char path[PATH_MAX];

	complaint[0] = '\0';
	link = bpf_program__attach(prog);
	if (!link)
		return problem_set(-errno, problem, "%s: %s (%s)", bpf_program__name(prog),
				   strerror(errno), complaint);
	pins_path(directory, "links/", pin, path);
	if (bpf_link__pin(link, path) < 0) {
		*ret_link = link;
		return 0;
	}
	bpf_link__destroy(link); /* the pin holds it */
	*ret_link = NULL;
	return 0;
}

bool pins_has_link(const char *directory, const char *name)
{
	char path[PATH_MAX];

	pins_path(directory, "links/", name, path);
	return !access(path, F_OK);
}

void pins_unlink(const char *directory, const char *name)
{
	char path[PATH_MAX];

	pins_path(directory, "links/", name, path);
	unlink(path);
}

__u64 pins_misses(const char *directory, const char *name)
{
	struct bpf_link_info link = { 0 };
	struct bpf_prog_info prog = { 0 };
	__u32 link_size = sizeof(link), prog_size = sizeof(prog);
	char path[PATH_MAX];
	int fd, prog_fd = -1;

	pins_path(directory, "links/", name, path);
	fd = bpf_obj_get(path);
	if (fd < 0)
		return 0;
	if (!bpf_obj_get_info_by_fd(fd, &link, &link_size))
		prog_fd = bpf_prog_get_fd_by_id(link.prog_id);
	if (prog_fd >= 0) {
		bpf_obj_get_info_by_fd(prog_fd, &prog, &prog_size);
		close(prog_fd);
	}
	close(fd);
	return prog.recursion_misses;
}

/* ---- iterators */

int pins_program(const char *directory, struct bpf_program *prog, char problem[PROBLEM_SIZE])
{
	char path[PATH_MAX];
	int result;

	pins_path(directory, "", bpf_program__name(prog), path);
	unlink(path);
	result = bpf_program__pin(prog, path);
	return result < 0 ? problem_set(result, problem, "%s: %s", bpf_program__name(prog),
					strerror(-result)) :
			    0;
}

int pins_iterator(const char *directory, struct bpf_program *prog, const struct bpf_map *map,
		  char problem[PROBLEM_SIZE])
{
	union bpf_iter_link_info info = { 0 };
	LIBBPF_OPTS(bpf_iter_attach_opts, options);
	struct bpf_link *link;
	char path[PATH_MAX];
	int result;

	if (map) {
		info.map.map_fd = (__u32)bpf_map__fd(map);
		options.link_info = &info;
		options.link_info_len = sizeof(info);
	}
	link = bpf_program__attach_iter(prog, &options);
	if (!link)
		return problem_set(-errno, problem, "%s: %s", bpf_program__name(prog),
				   strerror(errno));
	pins_path(directory, "", bpf_program__name(prog), path);
	unlink(path);
	result = bpf_link__pin(link, path);
	if (result < 0)
		problem_set(result, problem, "%s: %s", bpf_program__name(prog), strerror(-result));
	bpf_link__destroy(link);
	return result;
}

int pins_iterate(const char *directory, const char *name, size_t size, pins_each *each,
		 void *closure)
{
	char path[PATH_MAX], page[4096];
	ssize_t length;
	int fd;

	pins_path(directory, "", name, path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while ((length = read(fd, page, sizeof(page))) > 0)
		for (size_t at = 0; each && at + size <= (size_t)length; at += size)
			each(closure, page + at);
	if (length < 0)
		length = -errno;
	close(fd);
	return (int)length;
}

struct records {
	char *record;
	size_t size, count, room;
};

static void records_add(void *closure, const void *record)
{
	struct records *records = closure;

	if (records->count == records->room) {
		size_t room = records->room ? 2 * records->room : 1024;
		char *grown = realloc(records->record, room * records->size);

		if (!grown)
			return;
		records->record = grown;
		records->room = room;
	}
	memcpy(records->record + records->count++ * records->size, record, records->size);
}

void pins_iterate_twice(const char *directory, const char *name, size_t size, pins_each *each,
			void *closure)
{
	struct timespec moment = { 0, MOMENT_MS * 1000000l };
	struct records first = { .size = size }, second = { .size = size };
	size_t at = 0;

	pins_iterate(directory, name, size, records_add, &first);
	if (first.count) {
		nanosleep(&moment, NULL);
		pins_iterate(directory, name, size, records_add, &second);
	}
	/* Both come in the table's order. */
	for (size_t i = 0; i < second.count; i++) {
		const char *record = second.record + i * size;

		for (size_t j = 0; j < first.count; j++, at++)
			if (!memcmp(first.record + at % first.count * size, record, size)) {
				each(closure, record);
				break;
			}
	}
	free(first.record);
	free(second.record);
}
