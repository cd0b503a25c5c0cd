/* SPDX-License-Identifier: MIT */
/* Loading, attaching, pinning, seeding; see loader.h. */
#include "monitor/accounting/loader.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "monitor/accounting/accounting.skel.h"
#include "monitor/guard/guard_loader.h"
#include "monitor/kernel/pins.h"
#include "monitor/reader/reader.h"

#define RUN_DIRECTORY "/run/rdma_intercept"
#define CHANGE_LOCK RUN_DIRECTORY "/monitor.change" /* held while something is changed */
#define KEEPER_LOCK RUN_DIRECTORY "/monitor.keeper" /* held by the one who looks after it */
#define EXIT_LINK "process_exit"

enum {
	/* Places in a table. Where memory is taken as needed, an empty one costs 16 bytes: */
	PLACES_LEAST = 1 << 20,
	PLACES_MOST = 1 << 22,
	PLACE_MEMORY = 8192,	/* of the machine, for each place in between */
	PLACES_FIXED = 1 << 18, /* where it is taken at once: 30 MB */
	OBJECTS_OF_ROW = 32,	/* where tables are small */
	SEED_PASSES = 4096,
	UNLOAD_WAIT_MS = 5000,
	ACTIVE_MS = 200,
	IDLE_MS = 10000,
	SELDOM_MS = 60000,
	FAILURES_MOST = 10, /* a module on its way in is not complete at once */
};

/* The programs of a hook, as accounting.bpf.c names them; the entry's may be missing. */
static const struct {
	const char *name;
	__u64 counters;
} hooks[MONITOR_HOOKS] = {
#define HOOK(name, function, counters) { #name, counters },
#include "monitor/reader/hooks.def"
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
	struct guardian *guardian; /* NULL: there can be none */
	struct accounting *object; /* loaded; NULL: not kept, see may_keep */
	struct attached hook[MONITOR_HOOKS];
	__u64 address[MONITOR_HOOKS]; /* as in the head: where each is attached */
	int keeper;		      /* the lock */
	__u64 modules, activity;      /* when it was last complete */
	__u64 attached_ns;	      /* when something was last attached, also of the guard */
	__u32 loaded[GROUND_OFFSETS]; /* offsets that the object was made with, */
	__u32 listed[GROUND_OFFSETS]; /* and the lists */
	bool taken_up;		      /* from another who left it */
	unsigned failures;	      /* to attach, in a row */
};

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

static int directory_make(const char *directory, char *problem, size_t size)
{
	char parent[PATH_MAX], links[PATH_MAX + 8];
	char *slash;

	snprintf(parent, sizeof(parent), "%s", directory);
	slash = strrchr(parent, '/');
	if (!slash || slash == parent)
		return pins_fail(-EINVAL, problem, size, "%s: not a directory to pin in",
				 directory);
	*slash = '\0';
	if (!pins_is_bpf(parent) &&
	    (strcmp(parent, "/sys/fs/bpf") || mount("bpf", parent, "bpf", 0, NULL)))
		return pins_fail(-ENODEV, problem, size,
				 "%s is no bpf file system (mount -t bpf bpf %s)", parent, parent);
	snprintf(links, sizeof(links), "%s/links", directory);
	if ((mkdir(directory, 0755) && errno != EEXIST) || (mkdir(links, 0755) && errno != EEXIST))
		return pins_fail(-errno, problem, size, "%s: %s", directory, strerror(errno));
	return 0;
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

/* ---- the object: the programs, opened for a change */

static struct bpf_program *program_find(const struct accounting *object, char way, unsigned hook,
					const char *which)
{
	char name[64];

	snprintf(name, sizeof(name), "%c_%s%s", way, hooks[hook].name, which);
	return bpf_object__find_program_by_name(object->obj, name);
}

/* See hooks.def. */
static bool is_entry(const struct bpf_program *by_kprobe)
{
	return !strncmp(bpf_program__section_name(by_kprobe), "kprobe/", 7);
}

static struct bpf_program *program(const struct accounting *object, const struct ground *ground,
				   unsigned hook, const char *which)
{
	bool by_kprobe = ground->mode == MONITOR_KPROBE ||
			 (ground->preempts && is_entry(program_find(object, 'k', hook, "")));

	return program_find(object, by_kprobe ? 'k' : 'f', hook, which);
}

static void offsets_write(struct accounting *object, const struct ground *ground)
{
#define OFFSET(name, structure, member, old)                                                       \
	object->rodata->offset_##name = ground->offset[OFFSET_##name];
#include "monitor/kernel/offsets.def"
#undef OFFSET
}

/* In a table that has an entry for each object. */
static unsigned places(void)
{
	__u64 memory = (__u64)sysconf(_SC_PHYS_PAGES) * (__u64)sysconf(_SC_PAGESIZE),
	      count = PLACES_LEAST;

	while (count < PLACES_MOST && count < memory / PLACE_MEMORY)
		count *= 2;
	return (unsigned)count;
}

static int object_open(const struct loader *loader, struct accounting **ret_object, char *problem,
		       size_t size)
{
	LIBBPF_OPTS(bpf_object_open_opts, options, .btf_custom_path = loader->wish.ground.btf);
	struct accounting *object = accounting__open_opts(&options);

	if (!object)
		return pins_fail(-errno, problem, size, "the programs cannot be read: %s",
				 strerror(errno));
	offsets_write(object, &loader->ground);
	pins_size(loader->directory, object->maps.objects,
		  loader->wish.tables	   ? 2 * loader->wish.tables :
		  loader->ground.allocates ? places() :
					     PLACES_FIXED);
	if (loader->ground.allocates)
		bpf_map__set_map_flags(object->maps.objects, BPF_F_NO_PREALLOC);
	pins_object(loader->directory, object->obj);
	*ret_object = object;
	return 0;
}

/* ---- memory that is shared with the kernel */

static int head_make(struct loader *loader, char *problem, size_t size)
{
	struct monitor_head *head = loader->head;
	int vacant = pins_open(loader->directory, "vacant"), result = 0;
	__u32 left, rows = MONITOR_ROWS;

	if (loader->wish.tables && loader->wish.tables / OBJECTS_OF_ROW < MONITOR_ROWS)
		rows = loader->wish.tables / OBJECTS_OF_ROW;
	/* Somebody may have been killed here before. */
	while (!bpf_map_lookup_and_delete_elem(vacant, NULL, &left))
		;
	/* The first row is nobody's, and always there. */
	for (__u32 row = rows - 1; row > 0 && result == 0; row--)
		if (bpf_map_update_elem(vacant, NULL, &row, BPF_ANY))
			result = pins_fail(-errno, problem, size, "vacant rows: %s",
					   strerror(errno));
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
		head->load = pins_now_ns();
	/* Last: who reads it finds the rest. */
	__atomic_store_n(&head->magic, MONITOR_MAGIC, __ATOMIC_RELEASE);
	return 0;
}

static int memory_open(struct loader *loader, char *problem, size_t size)
{
	if (!loader->head) {
		loader->head = pins_memory(loader->directory, "head", sizeof(*loader->head));
		loader->rows = pins_memory(loader->directory, "rows",
					   MONITOR_ROWS * sizeof(*loader->rows));
	}
	if (!loader->head || !loader->rows)
		return pins_fail(-errno, problem, size, "the maps cannot be mapped: %s",
				 strerror(errno));
	return loader->head->magic ? 0 : head_make(loader, problem, size);
}

/* ---- attaching */

static int hook_attach(struct loader *loader, const struct accounting *object, unsigned hook,
		       char *problem, size_t size)
{
	struct bpf_program *entry = program(object, &loader->ground, hook, "_entry");
	struct attached *attached = &loader->hook[hook];
	char name[64];
	int result = 0;

	snprintf(name, sizeof(name), "%s_entry", hooks[hook].name);
	if (entry)
		result = pins_attach(loader->directory, entry, name, &attached->entry, problem,
				     size);
	if (result == 0)
		result = pins_attach(loader->directory, program(object, &loader->ground, hook, ""),
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
	pins_unlink(loader->directory, name);
	pins_unlink(loader->directory, hooks[hook].name);
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
	       (loader->hook[hook].link || pins_has_link(loader->directory, hooks[hook].name));
}

static bool exit_holds(const struct loader *loader)
{
	return pins_has_link(loader->directory, EXIT_LINK);
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

static int seed(struct loader *loader, char *problem, size_t size)
{
	for (unsigned pass = 0; pass < SEED_PASSES; pass++) {
		int result;

		__atomic_store_n(&loader->head->seed_unfinished, 0, __ATOMIC_SEQ_CST);
		result = pins_iterate(loader->directory, "seed", sizeof(__u64), NULL, NULL);
		if (result < 0)
			return pins_fail(result, problem, size,
					 "what is there cannot be listed: %s", strerror(-result));
		if (!__atomic_load_n(&loader->head->seed_unfinished, __ATOMIC_SEQ_CST))
			return 0;
	}
	return pins_fail(-EOVERFLOW, problem, size, "what is there has no end");
}

struct ghosts {
	int bury; /* the program */
	unsigned removed;
};

/* An object whose end was not seen; only a gap in the watching leaves any. In the kernel, since
 * here another object could come to be there between a look at it and its removal. */
static void ghost_remove(void *closure, const void *record)
{
	struct ghosts *ghosts = closure;
	__u64 address = *(const __u64 *)record;
	LIBBPF_OPTS(bpf_test_run_opts, run, .ctx_in = &address, .ctx_size_in = sizeof(address));

	if (!bpf_prog_test_run_opts(ghosts->bury, &run) && run.retval)
		ghosts->removed++;
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
	int owners = pins_open(loader->directory, "owners"),
	    vacant = pins_open(loader->directory, "vacant");
	struct ghosts ghosts = { .bury = pins_open(loader->directory, "bury") };
	int result = seed(loader, problem, size);

	if (result == 0 && (ghosts.bury < 0 || owners < 0 || vacant < 0))
		result = pins_fail(-ENOENT, problem, size, "%s: something is missing",
				   loader->directory);
	if (result == 0) {
		pins_iterate_twice(loader->directory, "ghosts", sizeof(__u64), ghost_remove,
				   &ghosts);
		/* Another object may be where one of them was. */
		if (ghosts.removed)
			result = seed(loader, problem, size);
	}
	if (result == 0) {
		rows_vacate(loader, owners, vacant);
		loader->head->seeded_ns = pins_now_ns();
	}
	if (ghosts.bury >= 0)
		close(ghosts.bury);
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

	pins_path(loader->directory, "", "ghosts", path);
	return !access(path, F_OK) &&
	       !memcmp(loader->listed, loader->ground.offset, sizeof(loader->listed));
}

/* ---- what was missed */

static __u64 misses(const struct loader *loader)
{
	__u64 sum = pins_misses(loader->directory, EXIT_LINK);

	for (unsigned i = 0; i < MONITOR_HOOKS; i++)
		if (i != MONITOR_HOOK_destroy || !loader->ground.preempts) /* others see it, too */
			sum += pins_misses(loader->directory, hooks[i].name);
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

/* By kprobes, not all that is missed is counted: then it is looked for while there is activity.
 * What was under way when a hook was attached is missed by that hook. */
static bool is_due(const struct loader *loader)
{
	__u64 now = pins_now_ns(), since_ms = (now - loader->head->seeded_ns) / 1000000;
	bool by_kprobe = loader->ground.mode == MONITOR_KPROBE,
	     young = (now - loader->attached_ns) / 1000000 < PINS_YOUNG_MS;

	return misses(loader) != loader->head->misses || (young && since_ms > PINS_YOUNG_STEP_MS) ||
	       since_ms > (by_kprobe ? IDLE_MS : SELDOM_MS) ||
	       (by_kprobe && since_ms > ACTIVE_MS && activity(loader) != loader->activity);
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
	accounting__destroy(loader->object);
	loader->object = NULL;
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
			loader->head->beat_ns = pins_now_ns();
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

/* Programs of kprobes are of no module, and hold none: loaded once, they can be attached
 * whenever their functions come back. Loading is most of the time that this takes. */
static bool may_keep(const struct loader *loader)
{
	return loader->ground.mode == MONITOR_KPROBE;
}

/* What is to be done of all that can be attached. */
struct missing {
	bool hook[MONITOR_HOOKS], exit, lists;
};

static int object_load(const struct loader *loader, const struct missing *missing,
		       struct accounting **ret_object, char *problem, size_t size)
{
	struct accounting *object = NULL;
	int result = object_open(loader, &object, problem, size);

	if (result < 0)
		return result;
	for (unsigned i = 0; i < MONITOR_HOOKS; i++) {
		struct bpf_program *entry = program(object, &loader->ground, i, "_entry");
		bool wanted = missing->hook[i] || may_keep(loader);

		bpf_program__set_autoload(program(object, &loader->ground, i, ""), wanted);
		if (entry)
			bpf_program__set_autoload(entry, wanted);
	}
	bpf_program__set_autoload(object->progs.process_exit, missing->exit);
	bpf_program__set_autoload(object->progs.seed, missing->lists);
	bpf_program__set_autoload(object->progs.ghosts, missing->lists);
	bpf_program__set_autoload(object->progs.bury, missing->lists);
	result = pins_load(object->obj, problem, size);
	if (result < 0)
		accounting__destroy(object);
	else
		*ret_object = object;
	return result;
}

static int object_attach(struct loader *loader, const struct accounting *object,
			 const struct missing *missing, char *problem, size_t size)
{
	int result = memory_open(loader, problem, size);

	if (result == 0 && missing->exit) {
		struct bpf_link *link;

		result = pins_attach(loader->directory, object->progs.process_exit, EXIT_LINK,
				     &link, problem, size);
	}
	for (unsigned i = 0; i < MONITOR_HOOKS && result == 0; i++) {
		if (missing->hook[i] || !loader->ground.hook[i].address)
			hook_detach(loader, i); /* from a module that is gone */
		if (missing->hook[i])
			result = hook_attach(loader, object, i, problem, size);
	}
	if (result == 0) {
		observed_write(loader);
		beat(loader);
		loader->attached_ns = pins_now_ns();
	}
	if (result == 0 && missing->lists)
		result = pins_program(loader->directory, object->progs.bury, problem, size);
	if (result == 0 && missing->lists)
		result = pins_iterator(loader->directory, object->progs.seed, NULL, problem, size);
	if (result == 0 && missing->lists)
		result = pins_iterator(loader->directory, object->progs.ghosts,
				       object->maps.objects, problem, size);
	if (result == 0 && missing->lists)
		memcpy(loader->listed, loader->ground.offset, sizeof(loader->listed));
	return result;
}

/* Attaches what is there and not attached, where it is now, and lets go what is not there any
 * more; then counts what was missed. */
static int attach_missing(struct loader *loader, char *problem, size_t size)
{
	struct missing missing = { .exit = !exit_holds(loader),
				   .lists = loader->ground.iterates && !lists_hold(loader) };
	struct accounting *object = loader->object;
	int result = 0;

	for (unsigned i = 0; i < MONITOR_HOOKS; i++)
		missing.hook[i] = loader->ground.hook[i].address && !hook_holds(loader, i);
	if (object && (missing.exit || missing.lists ||
		       memcmp(loader->loaded, loader->ground.offset, sizeof(loader->loaded)))) {
		accounting__destroy(object); /* not all is in it, or it is for other modules */
		object = loader->object = NULL;
	}
	if (!object) {
		result = object_load(loader, &missing, &object, problem, size);
		memcpy(loader->loaded, loader->ground.offset, sizeof(loader->loaded));
	}
	if (result == 0)
		result = object_attach(loader, object, &missing, problem, size);
	if (may_keep(loader) && result == 0)
		loader->object = object;
	else if (object != loader->object)
		accounting__destroy(object);
	return result < 0 ? result : catch_up(loader, problem, size);
}

static int tend(struct loader *loader, char *problem, size_t size)
{
	char path[PATH_MAX];
	__u64 modules = ground_modules();
	bool gone = false;
	int lock, result;

	pins_path(loader->directory, "", "head", path);
	if (access(path, F_OK))
		return pins_fail(-ENOENT, problem, size, "%s: unloaded by somebody else",
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

int loader_tend(struct loader *loader, char *problem, size_t size)
{
	int result = tend(loader, problem, size), lock;

	if (result < 0 || !loader->guardian)
		return result;
	lock = lock_take(CHANGE_LOCK, LOCK_EX);
	if (pins_is_bpf(loader->directory) && /* nobody has taken everything out by now */
	    guardian_tend(loader->guardian, &loader->wish.ground))
		loader->attached_ns = pins_now_ns();
	if (lock >= 0)
		close(lock);
	return 0;
}

/* Everything is attached as another left it, and no module came or went since. */
static bool is_left_whole(const struct loader *loader, const struct monitor_head *head)
{
	if (head->modules != loader->modules || !head->seeded_ns || !exit_holds(loader) ||
	    head->misses != misses(loader))
		return false;
	for (unsigned i = 0; i < MONITOR_HOOKS; i++)
		if (head->hook[i] && !pins_has_link(loader->directory, hooks[i].name))
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
		result = pins_fail(-EBUSY, problem, size,
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
		return pins_fail(-ENOMEM, problem, size, "no memory");
	pins_listen();
	loader->wish = *wish;
	snprintf(loader->directory, sizeof(loader->directory), "%s", wish->directory);
	loader->keeper = -1;
	result = ground_rights(problem, size);
	if (result < 0)
		goto out;
	change = lock_take(CHANGE_LOCK, LOCK_EX);
	if (change < 0) {
		result = pins_fail(change, problem, size, CHANGE_LOCK ": %s", strerror(-change));
		goto out;
	}
	loader->keeper = lock_take(KEEPER_LOCK, LOCK_EX | LOCK_NB);
	if (loader->keeper == -EWOULDBLOCK)
		result = LOADER_OTHER;
	else if (loader->keeper < 0)
		result = pins_fail(loader->keeper, problem, size, KEEPER_LOCK ": %s",
				   strerror(-loader->keeper));
	else
		result = start(loader, problem, size);
	/* Counting goes on without a guard. */
	problem[0] = result == 0 ? '\0' : problem[0];
	if (result == 0 && loader->ground.mode == MONITOR_FENTRY)
		guardian_open(&loader->guardian, loader->directory,
			      loader->wish.tables ? loader->wish.tables : places(), problem, size);
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
	guardian_close(loader->guardian);
	forget(loader);
	if (loader->keeper >= 0)
		close(loader->keeper);
	free(loader);
}

int loader_unload(const char *directory, char *problem, size_t size)
{
	int change = lock_take(CHANGE_LOCK, LOCK_EX), keeper, result;

	if (change < 0)
		return pins_fail(change, problem, size, CHANGE_LOCK ": %s", strerror(-change));
	if (pins_is_bpf(directory))
		guardian_disarm(directory);
	result = pins_is_bpf(directory) ? remove_all(directory) : -ENOENT;
	close(change);
	if (result < 0)
		return pins_fail(result, problem, size, "%s: %s", directory,
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
	return pins_fail(-EBUSY, problem, size,
			 "the process that looks after it (see " KEEPER_LOCK ") did not end");
}
