/* SPDX-License-Identifier: MIT */
/* Loading, attaching, pinning, seeding; see loader.h. */
#include "monitor/loader.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <time.h>
#include <unistd.h>

#include "monitor/accounting.skel.h"
#include "monitor/reader.h"

#define RUN_DIRECTORY "/run/rdma_intercept"
#define CHANGE_LOCK RUN_DIRECTORY "/monitor.change" /* held while something is changed */
#define KEEPER_LOCK RUN_DIRECTORY "/monitor.keeper" /* held by the one who looks after it */
#define EXIT_LINK "process_exit"

enum {
	OBJECTS_GROWING = 1 << 20, /* where memory is taken as needed */
	OBJECTS_FIXED = 1 << 18,   /* where it is taken at once: 30 MB */
	SEED_PASSES = 4096,
	GHOST_WAIT_MS = 50, /* an object is none if it was none twice, this far apart */
	UNLOAD_WAIT_MS = 5000,
	ACTIVE_MS = 200,
	IDLE_MS = 10000,
	FAILURES_MOST = 10, /* a module on its way in is not complete at once */
};

/* The programs of a hook, as accounting.bpf.c names them; the entry's may be missing. */
static const struct {
	const char *name;
	__u64 counters;
} hooks[MONITOR_HOOKS] = {
#define HOOK(name, function, counters) { #name, counters },
#include "monitor/hooks.def"
#undef HOOK
};

struct attached {
	struct bpf_link *link, *entry; /* of links that cannot be pinned */
};

struct loader {
	struct loader_wish wish;
	char directory[PATH_MAX];
	struct ground ground;
	struct monitor_head *head;
	struct monitor_row *rows;
	struct attached hook[MONITOR_HOOKS];
	__u64 address[MONITOR_HOOKS]; /* as in the head: where each is attached */
	int keeper;		      /* the lock */
	__u64 modules, activity;      /* when it was last complete */
	__u32 listed[GROUND_OFFSETS]; /* offsets that the lists were made with */
	bool taken_up;		      /* from another who left it */
	unsigned failures;	      /* to attach, in a row */
};

static int fail(int error, char *problem, size_t size, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
static int fail(int error, char *problem, size_t size, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(problem, size, format, arguments);
	va_end(arguments);
	return error;
}

static __u64 now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (__u64)now.tv_sec * 1000000000 + (__u64)now.tv_nsec;
}

static void wait_ms(unsigned ms)
{
	struct timespec time = { ms / 1000, ms % 1000 * 1000000l };

	nanosleep(&time, NULL);
}

/* ---- locks */

/* The lock's descriptor; -EWOULDBLOCK when another has it and we do not wait. */
static int lock_take(const char *path, int how)
{
	int fd, result;

	if (mkdir(RUN_DIRECTORY, 0755) && errno != EEXIST)
		return -errno;
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	if (!flock(fd, how))
		return fd;
	result = -errno;
	close(fd);
	return result;
}

/* ---- the directory */

static bool is_bpf(const char *path)
{
	struct statfs where;

	return !statfs(path, &where) && where.f_type == BPF_FS_MAGIC;
}

static int directory_make(const char *directory, char *problem, size_t size)
{
	char parent[PATH_MAX], links[PATH_MAX + 8];
	char *slash;

	snprintf(parent, sizeof(parent), "%s", directory);
	slash = strrchr(parent, '/');
	if (!slash || slash == parent)
		return fail(-EINVAL, problem, size, "%s: not a directory to pin in", directory);
	*slash = '\0';
	if (!is_bpf(parent) &&
	    (strcmp(parent, "/sys/fs/bpf") || mount("bpf", parent, "bpf", 0, NULL)))
		return fail(-ENODEV, problem, size,
			    "%s is no bpf file system (mount -t bpf bpf %s)", parent, parent);
	snprintf(links, sizeof(links), "%s/links", directory);
	if ((mkdir(directory, 0755) && errno != EEXIST) || (mkdir(links, 0755) && errno != EEXIST))
		return fail(-errno, problem, size, "%s: %s", directory, strerror(errno));
	return 0;
}

static void pin_path(const struct loader *loader, const char *kind, const char *name,
		     char ret[PATH_MAX])
{
	if (snprintf(ret, PATH_MAX, "%s/%s%s", loader->directory, kind, name) >= PATH_MAX)
		ret[0] = '\0';
}

static int remove_all(const char *path)
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
		if (unlink(name) && (errno == EISDIR || errno == EPERM) && remove_all(name) < 0)
			result = -EBUSY;
	}
	closedir(directory);
	if (rmdir(path))
		result = -errno;
	return result;
}

/* ---- the object: opened once for each change, with the programs that it needs */

static struct bpf_program *program(const struct accounting *object, enum monitor_mode mode,
				   unsigned hook, const char *which)
{
	char name[64];

	snprintf(name, sizeof(name), "%c_%s%s", mode == MONITOR_FENTRY ? 'f' : 'k',
		 hooks[hook].name, which);
	return bpf_object__find_program_by_name(object->obj, name);
}

static void offsets_write(struct accounting *object, const struct ground *ground)
{
#define OFFSET(name, structure, member, old)                                                       \
	object->rodata->offset_##name = ground->offset[OFFSET_##name];
#include "monitor/offsets.def"
#undef OFFSET
}

/* The maps are taken up where they are pinned, and pinned where they are made. */
static int object_open(const struct loader *loader, struct accounting **ret_object, char *problem,
		       size_t size)
{
	LIBBPF_OPTS(bpf_object_open_opts, options, .btf_custom_path = loader->wish.ground.btf);
	struct accounting *object = accounting__open_opts(&options);
	struct bpf_program *each;
	struct bpf_map *map;
	char path[PATH_MAX];

	if (!object)
		return fail(-errno, problem, size, "the programs cannot be read: %s",
			    strerror(errno));
	offsets_write(object, &loader->ground);
	bpf_map__set_max_entries(object->maps.objects, loader->wish.objects ? loader->wish.objects :
						       loader->ground.allocates ? OBJECTS_GROWING :
										  OBJECTS_FIXED);
	if (loader->ground.allocates)
		bpf_map__set_map_flags(object->maps.objects, BPF_F_NO_PREALLOC);
	bpf_object__for_each_map(map, object->obj)
	{
		if (bpf_map__is_internal(map))
			continue;
		pin_path(loader, "", bpf_map__name(map), path);
		bpf_map__set_pin_path(map, path);
	}
	bpf_object__for_each_program(each, object->obj) bpf_program__set_autoload(each, false);
	*ret_object = object;
	return 0;
}

static char complaint[GROUND_TEXT]; /* of libbpf, its last */

static int on_complaint(enum libbpf_print_level level, const char *format, va_list arguments)
{
	if (getenv("RDMA_MONITOR_DEBUG"))
		return vfprintf(stderr, format, arguments);
	if (level == LIBBPF_WARN && !complaint[0]) {
		vsnprintf(complaint, sizeof(complaint), format, arguments);
		complaint[strcspn(complaint, "\n")] = '\0';
	}
	return 0;
}

static int object_load(struct accounting *object, char *problem, size_t size)
{
	int result;

	complaint[0] = '\0';
	result = accounting__load(object);
	if (result < 0)
		return fail(result, problem, size, "the kernel does not take the programs: %s (%s)",
			    strerror(-result), complaint);
	return 0;
}

/* ---- memory that is shared with the kernel */

static int map_open(const struct loader *loader, const char *name)
{
	char path[PATH_MAX];

	pin_path(loader, "", name, path);
	return bpf_obj_get(path);
}

static void *map_memory(const struct loader *loader, const char *name, size_t bytes)
{
	int fd = map_open(loader, name);
	void *memory = MAP_FAILED;

	if (fd >= 0) {
		memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		close(fd);
	}
	return memory == MAP_FAILED ? NULL : memory;
}

static int head_make(struct loader *loader, char *problem, size_t size)
{
	struct monitor_head *head = loader->head;
	int vacant = map_open(loader, "vacant"), result = 0;
	__u32 left;

	/* Somebody may have been killed here before. */
	while (!bpf_map_lookup_and_delete_elem(vacant, NULL, &left))
		;
	/* The first row is nobody's, and always there. */
	for (__u32 row = MONITOR_ROWS - 1; row > 0 && result == 0; row--)
		if (bpf_map_update_elem(vacant, NULL, &row, BPF_ANY))
			result = fail(-errno, problem, size, "vacant rows: %s", strerror(errno));
	if (vacant >= 0)
		close(vacant);
	if (result < 0)
		return result;
	loader->rows[0].generation = 1;
	loader->rows[0].device = MONITOR_NO_DEVICE;
	head->version = MONITOR_VERSION;
	head->rows = MONITOR_ROWS;
	head->kinds = kinds_signature();
	head->mode = loader->ground.mode;
	if (getrandom(&head->load, sizeof(head->load), 0) != sizeof(head->load))
		head->load = now_ns();
	/* Last: who reads it finds the rest. */
	__atomic_store_n(&head->magic, MONITOR_MAGIC, __ATOMIC_RELEASE);
	return 0;
}

static int memory_open(struct loader *loader, char *problem, size_t size)
{
	if (!loader->head) {
		loader->head = map_memory(loader, "head", sizeof(*loader->head));
		loader->rows = map_memory(loader, "rows", MONITOR_ROWS * sizeof(*loader->rows));
	}
	if (!loader->head || !loader->rows)
		return fail(-errno, problem, size, "the maps cannot be mapped: %s",
			    strerror(errno));
	return loader->head->magic ? 0 : head_make(loader, problem, size);
}

/* ---- attaching */

/* Whether a link is in place without us. */
static bool is_pinned(const struct loader *loader, const char *name)
{
	char path[PATH_MAX];

	pin_path(loader, "links/", name, path);
	return !access(path, F_OK);
}

static void unpin(const struct loader *loader, const char *name)
{
	char path[PATH_MAX];

	pin_path(loader, "links/", name, path);
	unlink(path);
}

/* Attached and pinned; where the kernel has no links for kprobes, the link is ours to keep. */
static int attach(struct loader *loader, struct bpf_program *prog, const char *pin,
		  struct bpf_link **ret_link, char *problem, size_t size)
{
	struct bpf_link *link;
	char path[PATH_MAX];

	complaint[0] = '\0';
	link = bpf_program__attach(prog);
	if (!link)
		return fail(-errno, problem, size, "%s: %s (%s)", bpf_program__name(prog),
			    strerror(errno), complaint);
	pin_path(loader, "links/", pin, path);
	if (bpf_link__pin(link, path) < 0) {
		*ret_link = link;
		return 0;
	}
	bpf_link__destroy(link); /* the pin holds it */
	*ret_link = NULL;
	return 0;
}

static int hook_attach(struct loader *loader, const struct accounting *object, unsigned hook,
		       char *problem, size_t size)
{
	struct bpf_program *entry = program(object, loader->ground.mode, hook, "_entry");
	struct attached *attached = &loader->hook[hook];
	char name[64];
	int result = 0;

	snprintf(name, sizeof(name), "%s_entry", hooks[hook].name);
	if (entry)
		result = attach(loader, entry, name, &attached->entry, problem, size);
	if (result == 0)
		result = attach(loader, program(object, loader->ground.mode, hook, ""),
				hooks[hook].name, &attached->link, problem, size);
	if (result < 0)
		return result;
	loader->address[hook] = loader->head->hook[hook] = loader->ground.hook[hook].address;
	return 0;
}

static void hook_detach(struct loader *loader, unsigned hook)
{
	char name[64];

	snprintf(name, sizeof(name), "%s_entry", hooks[hook].name);
	unpin(loader, name);
	unpin(loader, hooks[hook].name);
	bpf_link__destroy(loader->hook[hook].entry);
	bpf_link__destroy(loader->hook[hook].link);
	loader->hook[hook] = (struct attached){ 0 };
	loader->address[hook] = loader->head->hook[hook] = 0;
}

/* Attached where the function is now. */
static bool hook_holds(const struct loader *loader, unsigned hook)
{
	return loader->address[hook] &&
	       loader->address[hook] == loader->ground.hook[hook].address &&
	       (loader->hook[hook].link || is_pinned(loader, hooks[hook].name));
}

static bool exit_holds(const struct loader *loader)
{
	return is_pinned(loader, EXIT_LINK);
}

/* A counter is complete if all that it needs is attached. */
static void observed_write(struct loader *loader)
{
	__u64 observed = (1ull << MONITOR_COUNTERS) - 1;

	for (unsigned i = 0; i < MONITOR_HOOKS; i++)
		if (!loader->head->hook[i])
			observed &= ~hooks[i].counters;
	loader->head->observed = observed;
	loader->head->modules = loader->modules;
	loader->head->uverbs_fops[0] = loader->ground.uverbs_fops[0].address;
	loader->head->uverbs_fops[1] = loader->ground.uverbs_fops[1].address;
	loader->head->ucm_fops = loader->ground.ucm_fops.address;
}

/* ---- what is there: found, and put right */

/* Reads a pinned iterator to its end, which runs it. */
static int iterator_run(const struct loader *loader, const char *name,
			void (*each)(void *closure, __u64 word), void *closure)
{
	char path[PATH_MAX];
	__u64 words[512];
	ssize_t length;
	int fd;

	pin_path(loader, "", name, path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while ((length = read(fd, words, sizeof(words))) > 0)
		for (size_t i = 0; each && i < (size_t)length / sizeof(words[0]); i++)
			each(closure, words[i]);
	if (length < 0)
		length = -errno;
	close(fd);
	return (int)length;
}

/* Pinned, so that what is there can be looked for at any time, by whoever looks after it. */
static int iterator_pin(const struct loader *loader, struct bpf_program *prog,
			const struct bpf_map *map, char *problem, size_t size)
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
		return fail(-errno, problem, size, "%s: %s", bpf_program__name(prog),
			    strerror(errno));
	pin_path(loader, "", bpf_program__name(prog), path);
	unlink(path);
	result = bpf_link__pin(link, path);
	if (result < 0)
		fail(result, problem, size, "%s: %s", bpf_program__name(prog), strerror(-result));
	bpf_link__destroy(link);
	return result;
}

static int seed(struct loader *loader, char *problem, size_t size)
{
	for (unsigned pass = 0; pass < SEED_PASSES; pass++) {
		int result;

		__atomic_store_n(&loader->head->seed_unfinished, 0, __ATOMIC_SEQ_CST);
		result = iterator_run(loader, "seed", NULL, NULL);
		if (result < 0)
			return fail(result, problem, size, "what is there cannot be listed: %s",
				    strerror(-result));
		if (!__atomic_load_n(&loader->head->seed_unfinished, __ATOMIC_SEQ_CST))
			return 0;
	}
	return fail(-EOVERFLOW, problem, size, "what is there has no end");
}

struct ghosts {
	__u64 *address;
	size_t count, room;
};

static void ghost_note(void *closure, __u64 address)
{
	struct ghosts *ghosts = closure;

	if (ghosts->count == ghosts->room) {
		size_t room = ghosts->room ? 2 * ghosts->room : 1024;
		__u64 *grown = realloc(ghosts->address, room * sizeof(*grown));

		if (!grown)
			return;
		ghosts->address = grown;
		ghosts->room = room;
	}
	ghosts->address[ghosts->count++] = address;
}

static void row_uncharge(struct monitor_row *row, const struct monitor_object *object)
{
	static const struct {
		unsigned counter, size, size2;
	} sizes[] = {
		{ KIND_mr, KIND_mr_bytes, MONITOR_COUNTERS },
		{ KIND_cq, KIND_cqe, MONITOR_COUNTERS },
		{ KIND_qp, KIND_send_wr, KIND_recv_wr },
		{ MONITOR_other, KIND_dm_bytes, MONITOR_COUNTERS },
	};

	__atomic_fetch_add(&row->gone[object->counter], 1, __ATOMIC_SEQ_CST);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		if (sizes[i].counter != object->counter)
			continue;
		__atomic_fetch_add(&row->gone[sizes[i].size], object->size, __ATOMIC_SEQ_CST);
		if (sizes[i].size2 < MONITOR_COUNTERS)
			__atomic_fetch_add(&row->gone[sizes[i].size2], object->size2,
					   __ATOMIC_SEQ_CST);
	}
	__atomic_fetch_sub(&row->live, 1, __ATOMIC_SEQ_CST);
}

/* As in the kernel: whoever deletes the key has the rest to do. */
static void ghost_remove(const struct loader *loader, int objects, __u64 address)
{
	struct monitor_object ghost;

	if (bpf_map_lookup_elem(objects, &address, &ghost) ||
	    bpf_map_delete_elem(objects, &address) || ghost.row >= MONITOR_ROWS ||
	    ghost.counter >= MONITOR_COUNTERS)
		return;
	if (ghost.flags & MONITOR_DEPTHLESS)
		__atomic_fetch_sub(&loader->head->depthless, 1, __ATOMIC_SEQ_CST);
	row_uncharge(&loader->rows[ghost.row], &ghost);
}

/* Objects whose end was not seen; only a gap in the watching leaves any. */
static void ghosts_remove(struct loader *loader, int objects)
{
	struct ghosts first = { 0 }, second = { 0 };
	size_t at = 0;

	iterator_run(loader, "ghosts", ghost_note, &first);
	if (first.count) {
		wait_ms(GHOST_WAIT_MS);
		iterator_run(loader, "ghosts", ghost_note, &second);
	}
	/* Both come in the table's order. */
	for (size_t i = 0; i < second.count; i++) {
		for (size_t j = 0; j < first.count; j++, at++)
			if (first.address[at % first.count] == second.address[i]) {
				ghost_remove(loader, objects, second.address[i]);
				break;
			}
	}
	free(first.address);
	free(second.address);
}

/* Rows of processes whose end was not seen. */
static bool has_ended(const struct monitor_row *row)
{
	char path[64], text[1024], *after;
	unsigned long long start;
	ssize_t length;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/stat", row->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT;
	length = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (length <= 0)
		return true;
	text[length] = '\0';
	after = strrchr(text, ')');
	if (!after ||
	    sscanf(after + 1,
		   " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
		   "%*d %llu",
		   &start) != 1)
		return false;
	return start != row->start_ns / (1000000000 / (__u64)sysconf(_SC_CLK_TCK));
}

static void rows_vacate(struct loader *loader, int owners, int vacant)
{
	for (__u32 i = 1; i < MONITOR_ROWS; i++) {
		struct monitor_row *row = &loader->rows[i];
		struct {
			__u32 pid, nth;
			__u64 start_ns;
		} key = { row->pid, row->nth, row->start_ns };

		if (!(row->generation & 1) || !has_ended(row))
			continue;
		__atomic_store_n(&row->exited, 1, __ATOMIC_SEQ_CST);
		if (__atomic_load_n(&row->live, __ATOMIC_SEQ_CST) == 0 &&
		    !bpf_map_delete_elem(owners, &key)) {
			__atomic_fetch_add(&row->generation, 1, __ATOMIC_SEQ_CST);
			bpf_map_update_elem(vacant, NULL, &i, BPF_ANY);
		}
	}
}

/* Finds what was missed, and removes what is there no more. */
static int reconcile(struct loader *loader, char *problem, size_t size)
{
	int objects = map_open(loader, "objects"), owners = map_open(loader, "owners"),
	    vacant = map_open(loader, "vacant");
	int result = seed(loader, problem, size);

	if (result == 0 && (objects < 0 || owners < 0 || vacant < 0))
		result = fail(-ENOENT, problem, size, "%s: maps are missing", loader->directory);
	if (result == 0) {
		ghosts_remove(loader, objects);
		rows_vacate(loader, owners, vacant);
		loader->head->seeded_ns = now_ns();
	}
	if (objects >= 0)
		close(objects);
	if (owners >= 0)
		close(owners);
	if (vacant >= 0)
		close(vacant);
	return result;
}

/* The programs that list what is there are in place, and read the modules as they are now. */
static bool lists_hold(const struct loader *loader)
{
	char path[PATH_MAX];

	pin_path(loader, "", "ghosts", path);
	return !access(path, F_OK) &&
	       !memcmp(loader->listed, loader->ground.offset, sizeof(loader->listed));
}

/* ---- what was missed */

/*
 * The kernel skips a program that is running on the same processor already, as it is when a
 * thread was preempted in it, and counts that.
 */
static __u64 misses_of(const struct loader *loader, const char *name)
{
	struct bpf_link_info link = { 0 };
	struct bpf_prog_info prog = { 0 };
	__u32 link_size = sizeof(link), prog_size = sizeof(prog);
	char path[PATH_MAX];
	int fd, prog_fd = -1;

	pin_path(loader, "links/", name, path);
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

static __u64 misses(const struct loader *loader)
{
	__u64 sum = misses_of(loader, EXIT_LINK);

	for (unsigned i = 0; i < MONITOR_HOOKS; i++)
		sum += misses_of(loader, hooks[i].name);
	return sum;
}

/* A number that changes when anything is made or goes. */
static __u64 activity(const struct loader *loader)
{
	__u64 sum = 0;

	for (unsigned i = 0; i < MONITOR_ROWS; i++) {
		const struct monitor_row *row = &loader->rows[i];

		sum += row->generation;
		for (unsigned j = 0; row->generation & 1 && j < MONITOR_COUNTERS; j++)
			sum += row->made[j] + row->gone[j];
	}
	return sum;
}

/* By kprobes, not all that is missed is counted: then it is looked for while there is activity,
 * and seldom otherwise. */
static bool is_due(const struct loader *loader)
{
	__u64 since_ms = (now_ns() - loader->head->seeded_ns) / 1000000;

	if (misses(loader) != loader->head->misses)
		return true;
	return loader->ground.mode == MONITOR_KPROBE &&
	       (since_ms > IDLE_MS ||
		(since_ms > ACTIVE_MS && activity(loader) != loader->activity));
}

/* ---- the whole */

/* What we have of it; what is pinned stays. */
static void forget(struct loader *loader)
{
	for (unsigned i = 0; i < MONITOR_HOOKS; i++) {
		bpf_link__destroy(loader->hook[i].entry);
		bpf_link__destroy(loader->hook[i].link);
	}
	memset(loader->hook, 0, sizeof(loader->hook));
	memset(loader->address, 0, sizeof(loader->address));
	if (loader->head)
		munmap(loader->head, sizeof(*loader->head));
	if (loader->rows)
		munmap(loader->rows, MONITOR_ROWS * sizeof(*loader->rows));
	loader->head = NULL;
	loader->rows = NULL;
}

/* Links that are ours end with us. */
static void beat(struct loader *loader)
{
	for (unsigned i = 0; i < MONITOR_HOOKS; i++)
		if (loader->hook[i].link) {
			loader->head->beat_ns = now_ns();
			return;
		}
}

/* What is missed while we look is for the next time. */
static int catch_up(struct loader *loader, char *problem, size_t size)
{
	__u64 missed = misses(loader), before = activity(loader);
	int result = 0;

	/* Where nothing can be listed, what was there before stays unknown. */
	if (lists_hold(loader))
		result = reconcile(loader, problem, size);
	loader->head->misses = missed;
	loader->activity = before;
	return result;
}

/* Attaches what is there and not attached, where it is now, and lets go what is not there any
 * more; then counts what was missed. */
static int attach_missing(struct loader *loader, char *problem, size_t size)
{
	struct accounting *object = NULL;
	bool missing[MONITOR_HOOKS], exit_missing = !exit_holds(loader);
	bool list_missing = loader->ground.iterates && !lists_hold(loader);
	int result = object_open(loader, &object, problem, size);

	if (result < 0)
		return result;
	for (unsigned i = 0; i < MONITOR_HOOKS; i++) {
		struct bpf_program *entry = program(object, loader->ground.mode, i, "_entry");

		missing[i] = loader->ground.hook[i].address && !hook_holds(loader, i);
		bpf_program__set_autoload(program(object, loader->ground.mode, i, ""), missing[i]);
		if (entry)
			bpf_program__set_autoload(entry, missing[i]);
	}
	bpf_program__set_autoload(object->progs.process_exit, exit_missing);
	bpf_program__set_autoload(object->progs.seed, list_missing);
	bpf_program__set_autoload(object->progs.ghosts, list_missing);
	result = object_load(object, problem, size);
	if (result == 0)
		result = memory_open(loader, problem, size);
	if (result == 0 && exit_missing) {
		struct bpf_link *link;

		result =
			attach(loader, object->progs.process_exit, EXIT_LINK, &link, problem, size);
	}
	for (unsigned i = 0; i < MONITOR_HOOKS && result == 0; i++) {
		if (missing[i] || !loader->ground.hook[i].address)
			hook_detach(loader, i); /* from a module that is gone */
		if (missing[i])
			result = hook_attach(loader, object, i, problem, size);
	}
	if (result == 0) {
		observed_write(loader);
		beat(loader);
	}
	if (result == 0 && list_missing)
		result = iterator_pin(loader, object->progs.seed, NULL, problem, size);
	if (result == 0 && list_missing)
		result = iterator_pin(loader, object->progs.ghosts, object->maps.objects, problem,
				      size);
	if (result == 0 && list_missing)
		memcpy(loader->listed, loader->ground.offset, sizeof(loader->listed));
	accounting__destroy(object);
	return result < 0 ? result : catch_up(loader, problem, size);
}

int loader_tend(struct loader *loader, char *problem, size_t size)
{
	char path[PATH_MAX];
	__u64 modules = ground_modules();
	bool gone = false;
	int lock, result;

	pin_path(loader, "", "head", path);
	if (access(path, F_OK))
		return fail(-ENOENT, problem, size, "%s: unloaded by somebody else",
			    loader->directory);
	beat(loader);
	if (modules == loader->modules)
		return is_due(loader) ? catch_up(loader, problem, size) : 0;
	result = ground_survey(&loader->ground, &loader->wish.ground, problem, size);
	if (result == -ENODEV) { /* the module is gone: it may come again */
		memset(loader->ground.hook, 0, sizeof(loader->ground.hook));
		result = 0;
	}
	if (result == 0) {
		loader->modules = modules;
		lock = lock_take(CHANGE_LOCK, LOCK_EX);
		gone = access(path, F_OK);
		result = gone ? -ENOENT : attach_missing(loader, problem, size);
		if (lock >= 0)
			close(lock);
	}
	loader->failures = result < 0 ? loader->failures + 1 : 0;
	loader->modules = result < 0 && loader->failures < FAILURES_MOST ? 0 : modules;
	return gone ? -ENOENT : 0;
}

/* Everything is attached as another left it, and no module came or went since. */
static bool is_left_whole(const struct loader *loader, const struct monitor_head *head)
{
	if (head->modules != loader->modules || !head->seeded_ns || !exit_holds(loader) ||
	    head->misses != misses(loader))
		return false;
	for (unsigned i = 0; i < MONITOR_HOOKS; i++)
		if (head->hook[i] && !is_pinned(loader, hooks[i].name))
			return false;
	return true;
}

/* What is loaded already is taken up as it is. */
static int take_up(struct loader *loader, char *problem, size_t size)
{
	struct monitor_reader reader;
	int result = monitor_reader_open(&reader, loader->directory, problem, size);

	if (result == -ENOENT)
		return 0;
	if (result < 0)
		return result;
	if (loader->wish.ground.mode != MONITOR_NONE &&
	    loader->wish.ground.mode != reader.head->mode)
		result = fail(-EBUSY, problem, size,
			      "it is loaded by %s; take it out with: rdma_monitor --unload",
			      monitor_mode_names[reader.head->mode]);
	else if (is_left_whole(loader, reader.head))
		result = 1;
	loader->taken_up = true;
	loader->wish.ground.mode = reader.head->mode;
	memcpy(loader->address, reader.head->hook, sizeof(loader->address));
	monitor_reader_close(&reader);
	return result;
}

/* By the best way, or by the next if the kernel does not take that after all. */
static int load_anew(struct loader *loader, char *problem, size_t size)
{
	bool free_choice = loader->wish.ground.mode == MONITOR_NONE;

	for (;;) {
		int result = attach_missing(loader, problem, size);

		if (result == 0)
			return 0;
		remove_all(loader->directory); /* nothing half done */
		forget(loader);
		if (!free_choice)
			return result;
		snprintf(loader->ground.shortfall, sizeof(loader->ground.shortfall), "%s", problem);
		loader->ground.mode++;
		if (loader->ground.mode == MONITOR_NETLINK)
			return 0;
		result = directory_make(loader->directory, problem, size);
		if (result < 0)
			return result;
	}
}

static int start(struct loader *loader, char *problem, size_t size)
{
	int result;

	loader->modules = ground_modules();
	result = take_up(loader, problem, size);
	if (result < 0)
		return result;
	if (result > 0) {
		loader->ground.mode = loader->wish.ground.mode;
		return memory_open(loader, problem, size);
	}
	result = ground_survey(&loader->ground, &loader->wish.ground, problem, size);
	if (result < 0 || loader->ground.mode == MONITOR_NETLINK)
		return result;
	result = directory_make(loader->directory, problem, size);
	if (result == 0)
		result = loader->taken_up ? attach_missing(loader, problem, size) :
					    load_anew(loader, problem, size);
	loader->wish.ground.mode = loader->ground.mode; /* what is loaded stays of one kind */
	return result;
}

int loader_start(struct loader **ret_loader, const struct loader_wish *wish, char *problem,
		 size_t size)
{
	struct loader *loader = calloc(1, sizeof(*loader));
	int change = -1, result;

	if (!loader)
		return fail(-ENOMEM, problem, size, "no memory");
	libbpf_set_print(on_complaint);
	loader->wish = *wish;
	snprintf(loader->directory, sizeof(loader->directory), "%s", wish->directory);
	loader->keeper = -1;
	result = ground_rights(problem, size);
	if (result < 0)
		goto out;
	change = lock_take(CHANGE_LOCK, LOCK_EX);
	if (change < 0) {
		result = fail(change, problem, size, CHANGE_LOCK ": %s", strerror(-change));
		goto out;
	}
	loader->keeper = lock_take(KEEPER_LOCK, LOCK_EX | LOCK_NB);
	if (loader->keeper == -EWOULDBLOCK)
		result = LOADER_OTHER;
	else if (loader->keeper < 0)
		result = fail(loader->keeper, problem, size, KEEPER_LOCK ": %s",
			      strerror(-loader->keeper));
	else
		result = start(loader, problem, size);
out:
	if (change >= 0)
		close(change);
	if (result)
		loader_free(loader);
	else
		*ret_loader = loader;
	return result;
}

const struct ground *loader_ground(const struct loader *loader)
{
	return &loader->ground;
}

void loader_free(struct loader *loader)
{
	forget(loader);
	if (loader->keeper >= 0)
		close(loader->keeper);
	free(loader);
}

int loader_unload(const char *directory, char *problem, size_t size)
{
	int change = lock_take(CHANGE_LOCK, LOCK_EX), keeper, result;

	if (change < 0)
		return fail(change, problem, size, CHANGE_LOCK ": %s", strerror(-change));
	result = is_bpf(directory) ? remove_all(directory) : -ENOENT;
	close(change);
	if (result < 0)
		return fail(result, problem, size, "%s: %s", directory,
			    result == -ENOENT ? "nothing is loaded" : strerror(-result));
	/* Who looks after it sees that it is gone, and with it goes what could not be pinned. */
	for (unsigned waited = 0; waited < UNLOAD_WAIT_MS; waited += 10) {
		keeper = lock_take(KEEPER_LOCK, LOCK_EX | LOCK_NB);
		if (keeper >= 0) {
			close(keeper);
			return 0;
		}
		wait_ms(10);
	}
	return fail(-EBUSY, problem, size,
		    "the process that looks after it (see " KEEPER_LOCK ") did not end");
}
